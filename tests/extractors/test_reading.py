from __future__ import annotations

import pytest

from extractors._captions import match_label
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


@pytest.mark.parametrize(
    ("text", "label"),
    [
        ("Tabela 1. Desempenho dos classificadores.", "Table 1"),
        ("Tableau 2 : Résultats", "Table 2"),
        ("Abbildung 3: Verlauf", "Figure 3"),
        ("Cuadro 4. Resultados", "Table 4"),
        ("TABELLE IV. Werte", "Table IV"),
        ("Tab. 5: Values", "Table 5"),
    ],
)
def test_captions_of_other_languages_are_captions(text: str, label: str) -> None:
    """A bug it records: a Portuguese paper had no table, and so no task."""
    found = match_label(text)
    assert found is not None
    assert found[0] == label


def test_references_of_other_languages_name_the_same_table() -> None:
    assert references_in("A Tabela 1 resume o desempenho (ver Figura 2).") == {"table 1", "figure 2"}
    assert references_in("Tables 1 and 2 and Fig. 3a") == {"table 1", "table 2", "figure 3"}
