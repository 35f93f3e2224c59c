"""What a file's place and shape say about it before any task is known (one vector a signal, one value a file)."""

from __future__ import annotations

import posixpath
import re
from collections import Counter
from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from pipeline.locator.facts import FileFacts
from pipeline.locator.links import Links
from pipeline.locator.text import tokens

__all__ = ["static_signals"]

Vector = npt.NDArray[np.float64]

_ENTRY_DIRECTORIES = frozenset(
    {
        "scripts", "script", "examples", "example", "experiments", "experiment", "tutorials", "tutorial", "notebooks",
        "notebook", "tools", "tool", "benchmark", "benchmarks", "baselines", "demo", "demos", "bin", "projects",
        "recipes", "reproduce", "paper", "figures",
    }
)  # fmt: skip
_VERBS = frozenset(
    {
        "train", "test", "eval", "run", "main", "infer", "finetun", "gen", "demo", "predict", "benchmark", "sampl",
        "compar", "analysi", "analyz", "preproc", "pretrain", "launch", "reproduc", "exp", "ablat", "plot", "exampl",
        "tutorial",
    }
)  # fmt: skip
_TESTS = re.compile(r"(?:^|/)(?:tests?|testing|unit_tests|functional_tests)/|(?:^|/)conftest\.py$")
_TEST_NAME = re.compile(r"(?:^|/)test_[^/]*\.py$|_test\.py$")
_TEST_TOOLS = frozenset({"pytest", "unittest", "absltest", "testing", "nose"})
_SETUP = re.compile(
    r"(?:^|/)(?:setup|conf|versioneer|_?version|noxfile|fabfile|manage|hubconf)\.py$|(?:^|/)docs?/(?:source|build)/|"
    r"(?:^|/)(?:install|build|setup)[\w-]*\.sh$|(?:^|/)(?:download|fetch|get_data|wget)[\w-]*\.(?:py|sh)$",
    re.I,
)
_TEACHING = frozenset({"tutorial", "tutorials", "demo", "demos", "introduction", "walkthrough", "quickstart"})
_WORD = re.compile(r"[a-z]+")
_HELPERS = {"util", "utils", "help", "helper", "helpers", "common", "misc", "logg", "typ", "constant"}


def static_signals(facts: Sequence[FileFacts], links: Links) -> dict[str, Vector]:
    """The vectors of all signals that do not depend on the task. Keys are those of `weights.SIGNALS`."""
    position = {item.path: number for number, item in enumerate(facts)}
    size = len(facts)
    imported = _in_degree(links.imports, position, size)
    called = _in_degree(links.runs, position, size)
    named, documented = np.zeros(size), np.zeros(size)
    for hidden in links.behind:  # documented through its wrapper
        for path in hidden & position.keys():
            named[position[path]] = documented[position[path]] = 1.0
    for _, mentions, runs in links.sections:
        for path in mentions & position.keys():
            named[position[path]] = 1.0
        for path in runs & position.keys():
            documented[position[path]] = 1.0

    def vector(values: list[bool] | list[float]) -> Vector:
        return np.asarray(values, dtype=np.float64)

    kinds = [item.file.kind for item in facts]
    runnable = vector(
        [
            item.file.kind in {"shell", "notebook"}
            or item.main
            or bool(item.hydra)
            or (item.acts and not imported[number] and not item.settings)
            or (item.cli and not imported[number])
            for number, item in enumerate(facts)
        ]
    )
    wrappers = _wrappers(facts, links)
    stems = [set(tokens(posixpath.splitext(posixpath.basename(item.path))[0])) for item in facts]
    parts = [item.path.lower().split("/")[:-1] for item in facts]
    return {
        "main": vector([item.main for item in facts]),
        "runnable": runnable,
        "documented": documented,
        "mentioned": named,
        "shell": vector([kind == "shell" for kind in kinds]),
        "wrapper": vector(
            [kind == "shell" and bool(links.runs.get(item.path)) for kind, item in zip(kinds, facts, strict=True)]
        ),
        "notebook": vector([kind == "notebook" for kind in kinds]),
        "config": vector([kind in {"config", "make"} or i.settings for kind, i in zip(kinds, facts, strict=True)]),
        "called": np.minimum(called, 1.0),
        "general": np.minimum(
            np.log2(np.maximum(vector([float(wrappers[item.path]) for item in facts]), 1.0)) / 3.0, 1.0
        ),
        "teaching": vector([bool(_TEACHING & set(_WORD.findall(item.path.lower()))) for item in facts]),
        "entry_directory": vector([bool(_ENTRY_DIRECTORIES & set(part)) for part in parts]),
        "top_level": vector([not part for part in parts]),
        "depth": np.minimum(vector([float(len(part)) for part in parts]), 6.0) / 6.0,
        "verb": vector([bool(stem & _VERBS) for stem in stems]),
        "imported": np.log1p(imported) / 3.0,
        "tests": vector([_is_test(item) for item in facts]),
        "package_file": vector([item.path.endswith("__init__.py") for item in facts]),
        "setup": vector([bool(_SETUP.search(item.path)) or item.file.tooling for item in facts]),
        "vendored": vector([item.file.vendored or item.generated for item in facts]),
        "helper": vector([bool(stem & _HELPERS) for stem in stems]),
        "tiny": vector([item.lines < 8 for item in facts]),
        "length": np.minimum(np.log(vector([float(item.lines) for item in facts]) + 1.0) / 7.0, 1.3),
        "reads_results": vector([item.reads_results for item in facts]),
        "computes": vector([item.trains or item.evaluates for item in facts]),
    }


def _is_test(item: FileFacts) -> bool:
    """Does it test code? A name alone does not say so: `add_test.py` may evaluate a model on the adding problem."""
    if _TESTS.search(item.path):
        return True
    if not _TEST_NAME.search(item.path):
        return False
    if any(_TEST_TOOLS & {*statement.module.split("."), *statement.names} for statement in item.imports):
        return True
    return not item.cli and any(name.startswith(("test", "Test")) for name in item.definitions)


def _wrappers(facts: Sequence[FileFacts], links: Links) -> Counter[str]:
    """How many shell scripts and Makefiles run each file."""
    count: Counter[str] = Counter()
    for item in facts:
        if item.file.kind in {"shell", "make"}:
            count.update(links.runs.get(item.path, ()))
    return count


def _in_degree(edges: dict[str, set[str]], position: dict[str, int], size: int) -> Vector:
    count = np.zeros(size)
    for targets in edges.values():
        for path in targets:
            if path in position:
                count[position[path]] += 1
    return count
