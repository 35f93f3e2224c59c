"""Where the sentences stand that may say how an experiment is done: its own blocks, and set-up blocks around them.

Geometry of sections only; which sentences are method is decided in `extractors.method_text`.
"""

from __future__ import annotations

import re
from typing import Final

from extractors._reading import Block, Line, Reading, role_of_title
from extractors.takeaways import Experiment

__all__ = ["SETUP_TITLE", "context_blocks", "is_generic_top", "top_title"]

SETUP_TITLE: Final = re.compile(r"experiment|set-?up|setting|implementation|protocol|evaluation", re.IGNORECASE)


def context_blocks(reading: Reading, experiment: Experiment) -> set[int]:
    """The experiment's blocks, what stands directly under their ancestors, and setup blocks beside them."""
    wanted = set(experiment.blocks)
    tops = {reading.blocks[b].path[:1] for b in experiment.blocks if reading.blocks[b].path}
    ancestors = {s for b in experiment.blocks for s in reading.blocks[b].path}
    own = {reading.blocks[b].section for b in experiment.blocks}
    for block in reading.blocks:
        inside = block.path[:1] in tops
        top = _top_of(reading, block)
        if (
            block.role == "setup" and role_of_title(top) == "setup" and SETUP_TITLE.search(top)
        ):  # a section on the setup of all experiments
            wanted.add(block.order)
        if not inside and _sets_up_results(reading, block, tops):
            wanted.add(block.order)
        plain_top = block.section in ancestors and block.section not in own
        same_section = block.section in own and block.role == reading.blocks[experiment.blocks[0]].role
        first_of_section = same_section and block.title == (reading.section_title(block.order) or "")
        if inside and (block.role == "setup" or plain_top or first_of_section):
            wanted.add(block.order)
    if not any(reading.blocks[order].role == "setup" for order in wanted - set(experiment.blocks)):
        wanted |= {block.order for block in reading.blocks if block.role == "setup" and _PART.search(block.title)}
    return wanted


_PART: Final = re.compile(
    r"^(?:the |our )?(?:data ?sets?|data\b|(?:implementation|experimental|training|evaluation)\b|metrics\b|protocol|"
    r"hyper-?param|set-?up)",
    re.IGNORECASE,
)
"""Titles of setup parts that stand under `Methods`, in papers whose results have no setup beside them."""


def _sets_up_results(reading: Reading, block: Block, tops: set[tuple[int, ...]]) -> bool:
    """Is a block part of the `Experiments` that stand right before the `Results` of this experiment?"""
    if not block.path or len(tops) != 1:
        return False
    top = next(iter(tops))
    before = [i for i in range(top[0]) if reading.document.sections[i].level == reading.document.sections[top[0]].level]
    titles = [reading.document.sections[i].title for i in (top[0], block.path[0])]
    results = re.match(r"results?\b|findings\b|main results", titles[0], re.IGNORECASE)
    return bool(results and before and block.path[0] == before[-1] and SETUP_TITLE.search(titles[1]))


def is_generic_top(reading: Reading, experiment: Experiment) -> bool:
    """Is the experiment one of several under a heading such as `Experiments`, so that the setup there is its own too?

    Under a heading with a subject (`DNS tunnel classification`) a setup passage may be about that subject only.
    """
    for block in experiment.blocks:
        title = _top_of(reading, reading.blocks[block])
        if re.search(r"experiment|evaluation|result|empirical|simulation|numerical|appendi", title, re.IGNORECASE):
            return True
    return False


def top_title(reading: Reading, line: Line) -> str:
    """Title of the outermost section that a line stands in; empty before the first."""
    return _top_of(reading, reading.blocks[line.block])


def _top_of(reading: Reading, block: Block) -> str:
    return reading.document.sections[block.path[0]].title if block.path else ""
