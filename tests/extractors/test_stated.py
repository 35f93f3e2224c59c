"""Drafts of numbers that sentences state and a run gave: named as the program names them, the sentence hidden."""

from __future__ import annotations

from extractors.stated import Said, draft_sentences
from pipeline.match.prose import match_prose
from pipeline.paper import Document
from pipeline.validation.places import places_of
from tests.pipeline.match.worlds import make_document, read_text

SENTENCES = (
    "We let the walker run on every start of width four until its cycle of turns is closed.",
    "There are 174,762 cycles, more than expected, of which 172,092 have no crossing.",
)
LOG = "cycles: 174762\nwithout_a_crossing = 172092\n"
CODE = "# run the walker on every start of the width until its cycle of turns is closed\n"


def drafted(document: Document, log: str = LOG):  # type: ignore[no-untyped-def]
    source, seen = read_text("log.txt", log, command="python run.py")
    matches = match_prose(document, [(source, seen)])
    named = dict(zip(places_of(seen), seen, strict=True))
    return draft_sentences(document, [Said(source.name, matches, named, CODE)])


def test_the_program_names_the_numbers_and_the_question_tells_none() -> None:
    document = make_document(sentences=SENTENCES)
    result, grounds = drafted(document)
    [draft] = result.drafts
    assert [ground.source for ground in grounds] == ["log.txt"]
    assert draft.question == "What does the experiment give for cycles and without a crossing?"
    assert [(c.metric, c.value, c.place) for c in draft.expected.claims] == [
        ("cycles", 174762.0, "log.txt :: cycles :: 1"),
        ("without a crossing", 172092.0, "log.txt :: without_a_crossing :: 1"),
    ]
    assert draft.method == SENTENCES[0]
    assert "174" not in f"{draft.question} {draft.method} {draft.agent_instructions}"
    assert [item.quote for item in draft.evidence["expected"]] == [SENTENCES[1]]
    assert "does the question say what they are?" in result.problems[0].message


def test_numbers_that_the_program_does_not_name_are_no_task() -> None:
    result, grounds = drafted(make_document(sentences=SENTENCES), "174762\n172092\n")
    assert (result.drafts, grounds) == ((), [])
    assert "does not name" in result.problems[0].message


def test_numbers_of_one_name_are_not_told_apart() -> None:
    result, _ = drafted(make_document(sentences=SENTENCES), "cycles: 174762\ncycles: 172092\n")
    assert result.drafts == ()


def test_what_else_stands_in_a_record_is_told_only_where_names_tell_numbers_apart() -> None:
    log = '{"cycles": 174762, "share": 0.31, "crossed": 172092}'
    document = make_document(sentences=SENTENCES)
    source, seen = read_text("out.json", log, command="python run.py")
    said = Said(
        source.name, match_prose(document, [(source, seen)]), dict(zip(places_of(seen), seen, strict=True)), CODE
    )
    [draft] = draft_sentences(document, [said])[0].drafts
    assert [claim.conditions for claim in draft.expected.claims] == [(), ()]
    rows = "width,kind,cycles\n4,all,174762\n4,plain,172092\n"
    source, seen = read_text("out.csv", rows, command="python run.py")
    said = Said(
        source.name, match_prose(document, [(source, seen)]), dict(zip(places_of(seen), seen, strict=True)), CODE
    )
    [draft] = draft_sentences(document, [said])[0].drafts
    conditions = [[(c.name, c.value) for c in claim.conditions] for claim in draft.expected.claims]
    assert conditions == [[("kind", "all")], [("kind", "plain")]]
