"""The data set cards: front matter that `datasets` and the hub read, and what a reader must know.

Everything in the public card is counted over tasks or taken from their public halves; numbers of the expected outcome,
names of source scripts and reviewers' comments have no way in.
"""

from __future__ import annotations

import re
import statistics
from collections import Counter
from collections.abc import Mapping, Sequence
from typing import Any, Final, NamedTuple

import yaml

from pipeline.formats.release_log import VersionEntry
from pipeline.formats.release_plots import bar_chart
from pipeline.formats.release_tables import is_shipped
from pipeline.paper import Paper
from pipeline.task import Task
from pipeline.version import version

__all__ = ["CardFacts", "plots", "private_card", "public_card", "without_private_configs"]

_CASES: Final = ((1_000, "n<1K"), (10_000, "1K<n<10K"), (100_000, "10K<n<100K"))
_FRONT: Final = re.compile(r"\A---\n(?P<front>.*?)\n---\n", re.DOTALL)
_HUB_LICENSES: Final = {
    "Apache-2.0": "apache-2.0", "MIT": "mit", "CC-BY-4.0": "cc-by-4.0", "CC-BY-SA-4.0": "cc-by-sa-4.0",
    "CC0-1.0": "cc0-1.0", "CC-BY-NC-4.0": "cc-by-nc-4.0", "CC-BY-NC-SA-4.0": "cc-by-nc-sa-4.0",
    "BSD-3-Clause": "bsd-3-clause", "BSD-2-Clause": "bsd-2-clause",
}  # fmt: skip
"""The hub's own names; anything else is `other` with its name beside it."""


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


def plots(tasks: Sequence[Task]) -> dict[str, bytes]:
    """Pictures of the card by their path in the release."""
    papers = Counter(task.paper.id for task in tasks)
    domains = Counter(f"{task.paper.venue or 'venue unknown'} {task.paper.year or ''}".strip() for task in tasks)
    steps = [(task.id, float(len(task.truth.requirements))) for task in tasks]
    return {
        "images/tasks-by-paper.png": bar_chart("Tasks by paper", _counted(papers)),
        "images/tasks-by-venue.png": bar_chart("Tasks by venue", _counted(domains)),
        "images/requirements-by-task.png": bar_chart(
            "Implementation requirements by task", sorted(steps, key=lambda item: (-item[1], item[0]))
        ),
    }


def _counted(counts: Counter[str]) -> list[tuple[str, float]]:
    return [(name, float(count)) for name, count in sorted(counts.items(), key=lambda item: (-item[1], item[0]))]


def public_card(facts: CardFacts, tasks: Sequence[Task]) -> str:
    """`README.md` of the part that agents may see, or of the open set."""
    parts = [
        *_front(facts, facts.configs, len(tasks)),
        f"# {facts.name}",
        "",
        f"Version {facts.entry.version}: {len(tasks)} research-experiment task(s), made with expbench {version()} "
        f"(engine: {', '.join(sorted({task.provenance.engine for task in tasks})) or 'none'}). Each task gives an "
        "agent the repository of a paper, without the scripts that answer the question, and asks for the whole "
        "experiment: design, implementation, execution, conclusion.",
        "",
        *_contents(facts),
        "## Statistics",
        "",
        *_statistics(tasks),
        "",
        *(f"![{_title(path)}]({path})\n" for path in facts.plots),
        "## How the tasks were made",
        "",
        "Each task was re-executed in a clean sandbox; its numbers lie inside the band of each claim; the masked "
        "repository passed the leak scan and the round trip (original passes, masked fails, restored passes).",
        "",
        *_approval(tasks),
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
    configs = [(name, path.removeprefix("private/")) for name, path in facts.configs if path.startswith("private/")]
    parts = [
        *_front(facts, configs, len(tasks), gate),
        f"# {facts.name}: ground truth",
        "",
        f"Version {facts.entry.version}. Answers to the {len(tasks)} task(s) of {facts.name}, joined by `id`: "
        "**keep them away from agents and from training data.**",
        "",
        f"`{facts.canary}`",
        "",
        "Put this directory as `private/` into the public part, and `expbench evaluate` grades with it.",
        "",
        "- `truth`: design, requirements, expected outcome with tolerance bands, mask recipe, evidence with pictures, "
        "reviews; `record` holds all of it as JSON.",
        "- `originals/<id>.tar.gz`: the files that the mask took, where the repository's licence allows.",
        "- Pictures of the evidence are excerpts of the papers; the papers' licences apply to them.",
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


def _contents(facts: CardFacts) -> list[str]:
    lines = [
        "```python",
        "import datasets",
        "",
        'tasks = datasets.load_dataset("THIS_REPOSITORY")["test"]',
        "```",
        "",
        "- `tasks`: what an agent may see: question, method, instructions, environment, masked repository; `record` "
        "holds the public half of the task as JSON. One configuration per family has the tasks of that family alone.",
        "- `repositories/<id>.tar.gz`: the files of the masked repository, where the licence allows redistribution. Of "
        "the others the tables hold URL and commit, and the ground truth the mask as a recipe: `expbench evaluate` "
        "builds them.",
    ]
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


def _statistics(tasks: Sequence[Task]) -> list[str]:
    rows: list[tuple[str, str]] = [
        ("tasks", str(len(tasks))),
        ("papers", str(len({task.paper.id for task in tasks}))),
        ("repositories", str(len({(task.repository.url, task.repository.commit) for task in tasks}))),
        ("families", _named(Counter(task.family.value for task in tasks))),
        ("requirements per task", _spread([len(task.truth.requirements) for task in tasks])),
        ("numbers in the expected outcome per task", _spread([len(task.truth.expected.claims) for task in tasks])),
        ("design variables per task", _spread([
            len(task.truth.constant) + len(task.truth.independent) + len(task.truth.dependent) for task in tasks
        ])),
        ("masked files per task", _spread([len(task.masked) for task in tasks])),
        ("tasks that need a GPU", str(sum(task.resources.gpus > 0 for task in tasks))),
        ("minutes per task", _spread([task.resources.wall_time_s // 60 for task in tasks])),
        ("Python", _named(Counter(task.environment.python or "not stated" for task in tasks))),
    ]  # fmt: skip
    return ["| | |", "|---|---|", *(f"| {name} | {value} |" for name, value in rows)]


def _spread(values: Sequence[int]) -> str:
    if not values:
        return "none"
    return f"{min(values)} to {max(values)} (median {statistics.median(values):g}, sum {sum(values)})"


def _named(counts: Counter[str]) -> str:
    return ", ".join(f"{name} ({count})" for name, count in sorted(counts.items()))


def _title(path: str) -> str:
    return path.rpartition("/")[2].removesuffix(".png").replace("-", " ").capitalize()


def _approval(tasks: Sequence[Task]) -> list[str]:
    reviewers = Counter(review.reviewer for task in tasks for review in task.reviews)
    return ["## Approval", "", *(f"- {_cell(who)}: {count} task(s)" for who, count in sorted(reviewers.items())), ""]


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
        "",
    ]


def _licence_row(task: Task, paper_licenses: Mapping[str, str]) -> str:
    repository = task.repository
    title = f"[{_cell(task.paper.title)}]({task.paper.url})" if task.paper.url else _cell(task.paper.title)
    cells = (
        title,
        paper_licenses.get(task.paper.id, "not stated"),
        f"{_cell(repository.url)} at `{repository.commit[:12]}`",
        repository.license or "not recognised",
        "files included" if is_shipped(task) else "URL, commit and mask recipe only",
    )
    return f"| {' | '.join(cells)} |"


def _citation(facts: CardFacts, tasks: Sequence[Task]) -> list[str]:
    papers = {task.paper.id: task.paper for task in tasks}
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


def _cell(text: str) -> str:
    """One cell of a table: what papers and people wrote is text there, neither markup nor a link."""
    return re.sub(r"([|\[\]<>`])", r"\\\1", " ".join(text.split()))
