"""Numbers of sentences: found where several are rare and come out together, not where one happens to stand somewhere."""

from __future__ import annotations

import random

from pipeline.match.printed import list_printed
from pipeline.match.prose import match_prose
from tests.pipeline.match.worlds import KINDS, draw_matrix, make_document, make_table, read_text, write_wide

LOG = """Loading 569 samples
cycles of width 4: 174762
without a crossing: 172092
ratio: 2.98472
bare 174762
time: 12.31 s
"""
SAID = "We find 174,762 cycles, of which 172,092 have no crossing, a ratio of 2.9847. Width 4 took 1.3 s."


def test_rare_numbers_that_come_out_together() -> None:
    document = make_document(sentences=["In 2019 we began. " + SAID, "Again, 174,762 is much."])

    found = match_prose(document, [read_text("log.txt", LOG, command="python run.py")])

    assert [(match.text, match.observed, match.factor) for match in found] == [
        ("174,762", 174762.0, 1.0),
        ("172,092", 172092.0, 1.0),
        ("2.9847", 2.98472, 1.0),
    ]
    assert found[0].sentence == "We find 174,762 cycles, of which 172,092 have no crossing, a ratio of 2.9847."
    assert found[0].place == "log.txt :: cycles of width 4 :: 1"
    assert all(match.chance < -4 for match in found)


def test_what_the_code_sets_and_a_single_number_are_no_outcome() -> None:
    document = make_document(sentences=[SAID])
    source = read_text("log.txt", LOG)
    kept = match_prose(document, [source], lambda _, value: value in {174762.0, 2.9847})
    assert kept == ()  # one number is left
    assert match_prose(make_document(sentences=["There are 174,762 cycles."]), [source]) == ()


def test_of_a_source_that_holds_none_nobody_asks_what_its_code_sets() -> None:
    """The code of every run was read, and most runs of a repository match nothing."""
    asked: list[str] = []
    sources = [read_text("log.txt", LOG), read_text("other.txt", "loss: 0.71\nepoch: 3\n")]
    found = match_prose(make_document(sentences=[SAID]), sources, lambda source, _: bool(asked.append(source.name)))
    assert {match.source for match in found} == set(asked) == {"log.txt"}


def test_numbers_of_other_papers_are_not_found() -> None:
    chance = random.Random(7)
    accepted = 0
    for trial in range(240):
        kind = list(KINDS)[trial % len(KINDS)]
        own, decimals = draw_matrix(kind, 12, 2, chance)
        said = [f"The first is {a:.{decimals}f} and the other {b:.{decimals}f}." for a, b in own]
        other, _ = draw_matrix(kind, 30, 2, chance)
        text = write_wide([f"m{i}" for i in range(30)], ["accuracy", "f1"], other)
        accepted += bool(match_prose(make_document(sentences=said), [read_text("a.csv", text)]))

    assert accepted == 0


def test_what_counts_as_a_printed_number() -> None:
    table = make_table([["", "acc", "ci"], ["a", "0.91 ± 0.02", "[0.65, 0.90]"], ["2", "-", "44 (all)"]])
    document = make_document(table, sentences=["We use 5 seeds. Of 1797 images 3% fail, with a loss of 0.5."])

    printed = list_printed(document)

    cells = [(n.row, n.column, n.part, n.value) for n in printed if not n.sentence]
    assert cells == [(1, 1, 0, 0.91), (1, 1, 1, 0.02), (1, 2, 0, 0.65), (1, 2, 1, 0.9), (2, 2, 0, 44.0)]
    assert [n.text for n in printed if n.sentence] == ["1797", "3%", "0.5"]
    assert printed[-1].sentence == "Of 1797 images 3% fail, with a loss of 0.5."
    assert len({n.id for n in printed}) == len(printed)
