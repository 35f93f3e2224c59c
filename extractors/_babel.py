"""What LaTeX prints for `Table`, `Figure` and headings in the languages of papers, as the babel package sets them.

A Portuguese paper whose one table says `Tabela 1.` had no table at all, and no task.
"""

from __future__ import annotations

import re
from typing import Final

__all__ = ["ABSTRACT", "FIGURE", "REFERENCES", "TABLE"]


def _either(*names: str) -> str:
    """A pattern for any of the names, as given or in capitals."""
    return "|".join(re.escape(shown) for name in sorted(names, key=len, reverse=True) for shown in (name, name.upper()))


TABLE: Final = _either("Table", "Tab.", "Tabela", "Tabla", "Cuadro", "Tableau", "Tabelle", "Tabella", "Tabel")
FIGURE: Final = _either("Figure", "Fig.", "Figura", "Abbildung", "Abb.", "Figuur")
ABSTRACT: Final = _either("Abstract", "Resumo", "Resumen", "Résumé", "Zusammenfassung", "Sommario", "Samenvatting")
REFERENCES: Final = _either(
    "References", "Referências", "Referencias", "Références", "Literatur", "Literaturverzeichnis", "Bibliografia",
    "Bibliografía", "Bibliographie", "Riferimenti bibliografici", "Bibliografie",
)  # fmt: skip
