"""The data set cards: front matter that `datasets` and the hub read, and what a reader must know.

Everything in the public card is counted over tasks or taken from their public halves; numbers of the expected outcome,
names of source scripts and reviewers' comments have no way in.
"""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml

from pipeline.formats.family_parts import FamilyPart, FamilyShape
from pipeline.formats.release_log import VersionEntry
from pipeline.formats.release_statistics import cell, experiment_rows, family_statistics, statistics_table, table
from pipeline.formats.release_tables import is_shipped
from pipeline.paper import Paper
from pipeline.task import PublicTask, Task
from pipeline.version import version

__all__ = ["CardFacts", "private_card", "public_card", "without_private_configs"]

_CASES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
_FRONT: Final = re.compile(r"\A---\n(?P<front>.*?)\n---\n", re.DOTALL)
_HUB_LICENSES: Final = {
    "Apache-2.0": "apache-2.0", "MIT": "mit", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0",
    "CC0-1.0": "cc0-1.0", "CC-BY-NC-4.0": "cc-by-nc-4.0", "CC-BY-NC-SA-4.0": "cc-by-nc-sa-4.0",
    "BSD-3-Clause": "bsd-3-clause", "BSD-2-Clause": "bsd-2-clause",
}  # fmt: skip
"""The hub's own names; anything else is `other` with its name beside it."""


_EXPERIMENT: Final = (
    "the agent gets the repository of a paper, without the scripts that answer the question, and carries the whole "
    "experiment out: design, implementation, execution, conclusion."
)
_MADE: Final = (
    "Each task of the experiment family was re-executed in a clean sandbox; its numbers lie inside the band of each "
    "claim; the masked repository passed the leak scan and the round trip (original passes, masked fails, restored "
    "passes)."
)


_PRIVATE_EXPERIMENTS: Final = (
    "- `truth`: design, requirements, expected outcome with tolerance bands, mask recipe, evidence with pictures, "
    "reviews; `record` holds all of it as JSON.",
    "- `originals/<id>.tar.gz`: the files that the mask took, where the repository's licence allows.",
    "- Pictures of the evidence are excerpts of the papers; the papers' licences apply to them.",
)


_REPOSITORIES: Final = (
    "- `repositories/<id>.tar.gz`: the files of the masked repository, where the licence allows redistribution. Of "
    "the others the tables hold URL and commit, and the ground truth the mask as a recipe: `expbench evaluate` "
    "builds them."
)


class CardFacts(NamedTuple):
    """What a card says beside its tasks."""

    name: str
    entry: VersionEntry
    configs: Sequence[tuple[str, str]]
    """(configuration, its files); the first is the default."""
    license: str | None
    """SPDX identifier of the data set itself; None: its publisher did not state one."""
    paper_licenses: Mapping[str, str]
    """By paper id, where stated."""
    open_set: bool
    """Is the ground truth in the same part?"""
    canary: str
    plots: Sequence[str]
    """Paths of the pictures of the public card."""
    family_parts: Sequence[FamilyPart] = ()
    """Tasks of the families that are made of files."""
    shapes: Sequence[FamilyShape] = ()

    def public(self, tasks: Sequence[Task]) -> list[PublicTask]:
        """The public halves of all tasks."""
        return [*(task.public() for task in tasks), *(part.public for part in self.family_parts)]


def public_card(facts: CardFacts, tasks: Sequence[Task]) -> str:
    """`README.md` of the part that agents may see, or of the open set."""
    everything = facts.public(tasks)
    parts = [
        *_front(facts, facts.configs, len(everything)),
        f"# {facts.name}",
        "",
        f"Version {facts.entry.version}: {len(everything)} research-experiment task(s), made with expbench {version()} "
        f"(engine: {', '.join(sorted({task.provenance.engine for task in everything})) or 'none'}).",
        "",
        *([f"- **experiment**: {_EXPERIMENT}"] if tasks else []),
        *(f"- **{shape.family.value}**: {shape.about}" for shape in facts.shapes),
        "",
        *_contents(facts, experiments=bool(tasks)),
        "## Statistics",
        "",
        *statistics_table(everything),
        "",
        *(["### experiment", "", *table(experiment_rows(tasks)), ""] if tasks else []),
        *(line for shape in facts.shapes for line in family_statistics(shape, facts.family_parts)),
        *(f"![{_title(path)}]({path})\n" for path in facts.plots),
        *(["## How the tasks were made", "", _MADE, ""] if tasks else []),
        *_approval(tasks, facts.family_parts),
        *_licences(facts, tasks),
        *_citation(facts, tasks),
        "## Changes",
        "",
        "See [CHANGELOG.md](CHANGELOG.md).",
    ]
    return "\n".join(parts) + "\n"


def private_card(facts: CardFacts, tasks: Sequence[Task]) -> str:
    """`README.md` of the part with the ground truth; it carries the canary string and asks for an agreement."""
    gate = {
        "extra_gated_prompt": "This is the ground truth of a benchmark. By asking for access you agree not to publish "
        "it, not to show it to agents that are evaluated, and not to train models on it.",
        "extra_gated_fields": {"I agree to these conditions": "checkbox", "What I use it for": "text"},
        "viewer": False,
    }
    count = len(facts.public(tasks))
    configs = [(name, path.removeprefix("private/")) for name, path in facts.configs if path.startswith("private/")]
    parts = [
        *_front(facts, configs, count, gate),
        f"# {facts.name}: ground truth",
        "",
        f"Version {facts.entry.version}. Answers to the {count} task(s) of {facts.name}, joined by `id`: "
        "**keep them away from agents and from training data.**",
        "",
        f"`{facts.canary}`",
        "",
        "Put this directory as `private/` into the public part, and `expbench evaluate` grades with it.",
        "",
        *(_PRIVATE_EXPERIMENTS if tasks else ()),
        *(
            f"- `{shape.family.value}-truth`: {', '.join(f'`{name}`' for name in shape.private)} in the column "
            f"`{shape.family.value}`; `files` holds the files themselves, byte for byte."
            for shape in facts.shapes
        ),
        "",
        *_licences(facts, tasks),
    ]
    return "\n".join(parts) + "\n"


def without_private_configs(card: str) -> str:
    """The card as it is published alone: without the configurations whose files are in the private part."""
    match = _FRONT.match(card)
    if match is None:
        return card
    front = yaml.safe_load(match["front"])
    front["configs"] = [
        config for config in front.get("configs", ())
        if not any(file["path"].startswith("private/") for file in config["data_files"])
    ]  # fmt: skip
    return f"---\n{_dump(front)}\n---\n{card[match.end() :]}"


# --- parts


def _front(
    facts: CardFacts, configs: Sequence[tuple[str, str]], count: int, more: Mapping[str, Any] | None = None
) -> list[str]:
    front: dict[str, Any] = {"pretty_name": facts.name, "language": ["en"]}
    if facts.license is None:
        front["license"] = "unknown"
    elif facts.license in _HUB_LICENSES:
        front["license"] = _HUB_LICENSES[facts.license]
    else:
        front |= {"license": "other", "license_name": facts.license}
    front["tags"] = ["research-agents", "reproducibility", "expbench"]
    front["size_categories"] = [next((name for most, name in _CASES if count < most), "n>100K")]
    front["configs"] = [
        {"config_name": name, **({"default": True} if number == 0 else {}),
         "data_files": [{"split": "test", "path": path}]}
        for number, (name, path) in enumerate(configs)
    ]  # fmt: skip
    return ["---", _dump(front | dict(more or {})), "---", ""]


def _dump(value: Any) -> str:
    return yaml.safe_dump(value, sort_keys=False, allow_unicode=True, width=110).strip()


def _contents(facts: CardFacts, *, experiments: bool) -> list[str]:
    lines = [
        "```python",
        "import datasets",
        "",
        'tasks = datasets.load_dataset("THIS_REPOSITORY")["test"]',
        "```",
        "",
        "- `tasks`: what an agent may see: question, method, instructions, environment, masked repository; `record` "
        "holds the public half of the task as JSON. One configuration per family has the tasks of that family alone.",
    ]
    if experiments:
        lines.append(_REPOSITORIES)
    if facts.shapes:
        names = ", ".join(f"`{shape.family.value}`" for shape in facts.shapes)
        lines.append(
            f"- {names}: the files that an agent is given are in `files`, byte for byte, and what is typed of them in "
            "the column named after the family (the columns of other families are empty). Files of a paper whose "
            "licence does not allow a copy are in `withheld_files` with their sha256: put them back with "
            "`expbench import release DIR --papers DIR`."
        )
    if facts.open_set:
        lines += [
            "- `truth`: ground truth with evidence, joined by `id`. **This is an open set: keep `truth` away from the "
            "agents that you evaluate.**",
            "",
            f"`{facts.canary}`",
        ]
    else:
        lines.append("- The ground truth is a data set of its own, to which access is granted on request.")
    return [*lines, ""]


def _title(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".png").replace("-", " ").capitalize()


def _approval(tasks: Sequence[Task], parts: Sequence[FamilyPart]) -> list[str]:
    reviewers = Counter(review.reviewer for task in tasks for review in task.reviews)
    others = Counter(part.public.family.value for part in parts)
    return [
        "## Approval",
        "",
        *(f"- {cell(who)}: {count} task(s)" for who, count in sorted(reviewers.items())),
        *(f"- {count} task(s) of the {family} family: taken over as published or generated; nobody reviewed them here"
          for family, count in sorted(others.items())),
        "",
    ]  # fmt: skip


def _licences(facts: CardFacts, tasks: Sequence[Task]) -> list[str]:
    papers: dict[tuple[str, str], Task] = {}
    for task in tasks:
        papers.setdefault((task.paper.id, task.repository.commit), task)
    return [
        "## Licences",
        "",
        f"The data set itself: {facts.license or 'its publisher has not stated a licence'}. It does not cover the "
        "papers and repositories, which keep their own:",
        "",
        "| paper | licence of the paper | repository | licence of the repository | masked repository |",
        "|---|---|---|---|---|",
        *(_licence_row(task, facts.paper_licenses) for _, task in sorted(papers.items())),
        *_files_licences(facts),
        "",
    ]


def _files_licences(facts: CardFacts) -> list[str]:
    """One row a paper and family of the tasks that are made of files."""
    groups: dict[tuple[str, str], list[FamilyPart]] = {}
    for part in facts.family_parts:
        groups.setdefault((part.public.paper.id, part.public.family.value), []).append(part)
    rows = []
    for (paper, family), parts in sorted(groups.items()):
        licences = sorted({part.public.repository.license or "not stated" for part in parts})
        without = any(part.withheld for part in parts)
        cells = (
            _linked(parts[0].public.paper),
            facts.paper_licenses.get(paper, "not stated"),
            f"none ({family}, {len(parts)} task(s))",
            f"{', '.join(licences)} (task files)",
            "task files included, the paper's left out" if without else "task files included",
        )
        rows.append(f"| {' | '.join(cells)} |")
    return rows


def _linked(paper: Paper) -> str:
    return f"[{cell(paper.title)}]({paper.url})" if paper.url else cell(paper.title)


def _licence_row(task: Task, paper_licenses: Mapping[str, str]) -> str:
    repository = task.repository
    cells = (
        _linked(task.paper),
        paper_licenses.get(task.paper.id, "not stated"),
        f"{cell(repository.url)} at `{repository.commit[:12]}`",
        repository.license or "not recognised",
        "files included" if is_shipped(task) else "URL, commit and mask recipe only",
    )
    return f"| {' | '.join(cells)} |"


def _citation(facts: CardFacts, tasks: Sequence[Task]) -> list[str]:
    papers = {task.paper.id: task.paper for task in facts.public(tasks)}
    year = (facts.entry.date or "")[:4]
    own = {"title": f"{facts.name} (version {facts.entry.version})", "howpublished": "made with expbench", "year": year}
    return [
        "## Citation",
        "",
        "Cite the data set, and the papers whose experiments it asks for:",
        "",
        "```bibtex",
        _bibtex("misc", re.sub(r"[^a-z0-9]+", "-", facts.name.lower()).strip("-") or "dataset", own),
        *(_bibtex("inproceedings" if paper.venue else "misc", paper.id, _paper_fields(paper))
          for _, paper in sorted(papers.items())),
        "```",
        "",
    ]  # fmt: skip


def _paper_fields(paper: Paper) -> dict[str, str]:
    year = str(paper.year) if paper.year else ""
    return {"title": paper.title, "booktitle": paper.venue or "", "year": year, "url": paper.url or ""}


def _bibtex(kind: str, key: str, fields: Mapping[str, str]) -> str:
    lines = [f"  {name} = {{{_braced(value)}}}" for name, value in fields.items() if value]
    return f"@{kind}{{{key},\n" + ",\n".join(lines) + "\n}"


def _braced(text: str) -> str:
    """One line with no brace and no fence in it: a title cannot end the entry or the code block."""
    return " ".join(text.replace("`", "'").split()).replace("{", "(").replace("}", ")")
