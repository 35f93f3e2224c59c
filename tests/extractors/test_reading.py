from __future__ import annotations

from extractors._reading import Reading, label_key, references_in
from tests.extractors.drafting_documents import small_paper


def test_references_to_floats() -> None:
    assert label_key("TABLE II") == label_key("Table 2") == label_key("Tab. 2.") == "table 2"
    assert references_in("see Tables 2 and 3, Fig. 4a and Table A.1") == {"table 2", "table 3", "figure 4", "table a.1"}


def test_sentences_are_quoted_where_they_stand() -> None:
    reading = Reading(small_paper())
    line = next(line for line in reading.lines if "learning rate" in line.text)
    assert reading.section_title(line) == "Experimental setup"
    assert reading.supports(reading.quote(line))
    assert not reading.supports(reading.quote(line._replace(text="The learning rate was never set.")))
