"""The weights of the ranking: all of them, in one place, each with the reason why it holds of repositories in general.

The values are the maximum of a listwise softmax likelihood over published tasks, every paper counting the same, with an
L2 penalty on the distance from what each signal's reason lets one expect (`prior`); `benchmarks/locator/learn.py` finds
them and prints this table. A signal may only push in the direction that its reason gives (`sign`). `FIXED` holds what
the published tasks cannot teach, because hardly any of them shows the case.
"""

from __future__ import annotations

from typing import Final, NamedTuple

__all__ = ["ALIKE", "FIXED", "LATER_SIGNALS", "PENALTY", "SIGNALS", "Signal"]

PENALTY: Final = 0.05
"""Strength of the pull towards the expected weights. By leaving papers out, 0.1, 0.05 and 0.03 differ by less than 0.02
in every metric; a pull towards zero, whatever its strength, loses 0.05 of hit@1 and of recall@10, because 16 papers are
too few to learn 35 weights from nothing."""


class Signal(NamedTuple):
    """One signal of the ranking."""

    prior: float
    """What its reason lets one expect, in halves; the weights are learnt as deviations from it."""
    first: float
    """Weight in the first score, which is passed along links."""
    weight: float
    """Weight in the final score."""
    sign: int
    """+1, -1 or 0: the direction that `why` allows."""
    says: str
    """The signal in words, for a reader of the ranking."""
    why: str


SIGNALS: Final[dict[str, Signal]] = {
    # --- the task against the file ---
    "question": Signal(
        1,
        0.97,
        0.93,
        1,
        "its text matches the question",
        "An experiment's code speaks of what the experiment is about.",
    ),
    "content": Signal(
        3,
        2.51,
        2.53,
        1,
        "its text matches the task",
        "Names of data sets, methods and metrics occur in the code that handles them.",
    ),
    "path": Signal(
        2,
        1.77,
        1.8,
        1,
        "its path matches the task",
        "People name files and folders after experiment, method or data set.",
    ),
    "path_question": Signal(
        1,
        0.95,
        0.97,
        1,
        "its path matches the question",
        "The question has the words that tell this experiment from its siblings.",
    ),
    "route": Signal(
        0.5, 0.44, 0.43, 1, "the task says its path", "Directories above a script name data set, method and setting."
    ),
    "chunk": Signal(
        1, 0.6, 0.63, 1, "one of its functions matches the task", "In a long file one function may be the experiment."
    ),
    "section": Signal(
        1,
        1.1,
        1.12,
        1,
        "a documentation section that matches the task names it",
        "Documentation groups commands by experiment.",
    ),
    "stem": Signal(
        1, 0.62, 0.64, 1, "the task says its name", "A file named after a method or data set implements it."
    ),
    "unsaid": Signal(
        -1,
        -1.23,
        -1.28,
        -1,
        "its name says something that the task does not",
        "Variants are named by what tells them from each other.",
    ),
    "directory": Signal(
        1,
        1.03,
        1.0,
        1,
        "the task names its directory",
        "Repositories with several projects keep each in a directory of its name.",
    ),
    "explains": Signal(
        0.5,
        0.81,
        0.8,
        1,
        "it is a part that is called, and the task asks how something is done",
        "Who asks how something is done is answered by the part that does it as well as by a script.",
    ),
    # --- place and shape of the file ---
    "main": Signal(0.5, 0.42, 0.46, 1, "it has a main guard", "Files that are meant to be run say so."),
    "runnable": Signal(1, 0.89, 0.86, 1, "it can be run", "An answer comes from running something."),
    "documented": Signal(1, 0.86, 0.82, 1, "the documentation runs it", "Authors document how their results are made."),
    "mentioned": Signal(0.5, 0.5, 0.37, 1, "the documentation names it", "Files that matter to readers are named."),
    "called": Signal(0.5, 0.36, 0.31, 0, "a script of the repository runs it", "As for wrappers."),
    "general": Signal(
        -1,
        -0.87,
        -0.93,
        -1,
        "many scripts of the repository run it",
        "What many wrappers run is the tool of all experiments; which experiment it is, the wrapper says.",
    ),
    "teaching": Signal(
        -0.5,
        -0.55,
        -0.57,
        -1,
        "it is a demo or tutorial",
        "A demo or tutorial shows the use on a small case; a paper's results are made elsewhere.",
    ),
    "verb": Signal(
        0.5,
        0.62,
        0.61,
        1,
        "its name says that it does something (train, evaluate, run)",
        "Entry points are named by verbs, libraries by nouns.",
    ),
    "entry_directory": Signal(
        0.5,
        0.68,
        0.56,
        1,
        "it lies where runnable scripts lie",
        "scripts/, experiments/ and examples/ hold entry points.",
    ),
    "top_level": Signal(
        0.5, 0.54, 0.49, 1, "it lies at the top of the repository", "Small repositories keep entry points at the top."
    ),
    "depth": Signal(-2, -2.14, -2.09, -1, "it lies deep in the tree", "Deep files are parts, not wholes."),
    "imported": Signal(-1, -1.15, -1.14, -1, "other files import it", "What is imported is a library."),
    "shell": Signal(
        -0.5, -0.53, -0.55, 0, "it is a shell script", "A script that only calls others holds few of the words."
    ),
    "wrapper": Signal(
        0.5,
        0.48,
        0.45,
        0,
        "it is a shell script that runs code of the repository",
        "Where a wrapper states the run, some authors name it and some what it runs.",
    ),
    "notebook": Signal(
        0, -0.19, -0.17, 0, "it is a notebook", "Notebooks hold much prose and so match more words than they answer."
    ),
    "config": Signal(
        -1, -0.66, -0.73, 0, "it is a configuration", "Configurations are short, so that word counts misjudge them."
    ),
    "reads_results": Signal(
        0,
        -0.21,
        -0.2,
        0,
        "it reads stored results and reports on them",
        "Some answers are read off the results of other runs.",
    ),
    "computes": Signal(
        0, -0.42, -0.47, 0, "it trains or evaluates", "Libraries do, too: the entry point often only calls them."
    ),
    "length": Signal(-1, -1.35, -1.33, 0, "it is long", "Long files match more words by chance."),
    "tiny": Signal(-1, -1.0, -1.0, -1, "it has fewer than eight lines", "There is nothing in it."),
    "tests": Signal(-2, -2.04, -2.03, -1, "it is a test", "Tests check code; they do not make results."),
    "setup": Signal(-2, -2.03, -2.02, -1, "it is for set-up or documentation", "Installing is not experimenting."),
    "package_file": Signal(-1.5, -1.51, -1.51, -1, "it is a package's __init__", "It only gathers names."),
    # --- among the files with the best first scores ---
    "telling": Signal(
        0.5,
        0.0,
        0.37,
        1,
        "it has words of the question that other good files lack",
        "Words that all candidates share cannot decide between them.",
    ),
    # --- links, from the first score of other files ---
    "run_by": Signal(
        0.5,
        0.0,
        0.43,
        1,
        "a wrapper that matches the task runs it",
        "A wrapper for this experiment points to its entry point.",
    ),
    "config_of": Signal(
        0.5,
        0.0,
        0.8,
        1,
        "a script that matches the task loads it",
        "An entry point's configuration is part of the experiment.",
    ),
    "sibling": Signal(
        0.5, 0.0, 0.44, 1, "a runnable file beside it matches the task", "The steps of an experiment lie side by side."
    ),
    "same_section": Signal(
        0.5, 0.0, 0.54, 1, "documented together with a file that matches the task", "Steps are documented together."
    ),
    "option_of": Signal(
        0.5,
        0.0,
        0.62,
        1,
        "a script that matches the task can be given it",
        "Hydra chooses among the configurations of one directory.",
    ),
    "with_best": Signal(
        0.5, 0.0, 0.93, 1, "one run with a file that matches the task best", "What runs together answers together."
    ),
    "uses_best": Signal(
        0.5,
        0.0,
        0.51,
        1,
        "it is run and imports a file that matches the task best",
        "What a part does is seen when a script that uses it is run.",
    ),
    "config_of_best": Signal(
        0.5,
        0.0,
        0.78,
        1,
        "a script that matches the task best loads it",
        "Beside the entry point, its configuration says what this experiment is.",
    ),
    "named_like_best": Signal(
        0.5,
        0.0,
        0.47,
        1,
        "it has the name of a file that matches the task best",
        "A configuration or wrapper named after a script belongs to that script.",
    ),
    "step_of_best": Signal(
        0.5,
        0.0,
        0.66,
        1,
        "beside a file that matches the task best, for another stage",
        "What trains, evaluates and plots one experiment lies in one directory.",
    ),
}
"""All learnt signals."""

LATER_SIGNALS: Final = (
    "telling",
    "run_by",
    "config_of",
    "sibling",
    "same_section",
    "option_of",
    "with_best",
    "uses_best",
    "config_of_best",
    "named_like_best",
    "step_of_best",
)
"""Those that need a first score of the files."""


ALIKE: Final = Signal(
    0,
    0.0,
    1.0,
    1,
    "its meaning is like the task's, says the configured embedding model",
    "What is paraphrased shares meaning where it shares no word.",
)
"""Only with an embedding model, for the best files. With MiniLM-L6, 1 moved hit@1 of published tasks from .662 to .681
and of others from .736 to .753, within chance; larger weights lost on the published ones."""

FIXED: Final[dict[str, Signal]] = {
    "label": Signal(
        3.0,
        3.0,
        3.0,
        1,
        "it is said to make the table or figure of the task",
        "Authors note which table a script makes.",
    ),
    "named": Signal(
        1.0, 1.0, 1.0, 1, "the task writes its file name", "Nobody writes a file's name without meaning the file."
    ),
    "vendored": Signal(
        -2.0,
        -2.0,
        -2.0,
        -1,
        "it was brought along from elsewhere or generated",
        "Other people's code is not this paper's experiment.",
    ),
}
"""Set by hand: 3 of 103 published tasks write a file name, none is answered by vendored code."""
