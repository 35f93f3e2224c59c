"""Numbers of sentences: found where several are named, not found where one number happens to stand somewhere."""

from __future__ import annotations

import random

from pipeline.match.printed import list_printed
from pipeline.match.prose import match_prose
from tests.pipeline.match.worlds import draw_matrix, make_document, make_table, read_text, write_wide

LOG = """Loading 569 samples
random forest accuracy: 0.91237
logistic regression accuracy: 0.87714
stability of directions: 0.74699
time: 12.31 s
"""


def test_numbers_that_a_sentence_names() -> None:
    said = "We see that the random forest reaches an accuracy of 91.24%, logistic regression 87.71%."
    document = make_document(sentences=["In 2019 we began. " + said, "The stability is 0.747, see above."])

    found = match_prose(document, [read_text("log.txt", LOG, command="python run.py")])

    assert [(match.text, match.observed, match.factor) for match in found] == [
        ("91.24%", 0.91237, 100.0),
        ("87.71%", 0.87714, 100.0),
    ]
    assert found[0].sentence == said
    assert {"random", "forest", "accuracy"} <= set(found[0].words)
    assert found[0].place == "log.txt :: random forest accuracy :: 1"


def test_numbers_of_other_papers_are_not_found() -> None:
    chance = random.Random(7)
    accepted = 0
    for _ in range(60):
        said = [
            f"The accuracy of m{i} is {chance.uniform(70, 95):.1f}% and its f1 {chance.uniform(0.7, 0.95):.3f}."
            for i in range(5)
        ]
        other, _ = draw_matrix("accuracy, 4 decimals", 30, 2, chance)
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
