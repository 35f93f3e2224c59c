"""A template with values in it, as an agent would have filled it."""

from __future__ import annotations

from collections.abc import Sequence

import yaml

__all__ = ["filled_template"]


def filled_template(text: str, values: Sequence[float | None]) -> str:
    """Both documents of a template with one value a bin in its first series; metadata and edges are kept.

    Raises:
        ValueError: it has no series, or another number of bins.
    """
    documents = list(yaml.safe_load_all(text))
    for document in documents:
        if isinstance(document, dict) and "dependent_variables" in document:
            entries = document["dependent_variables"][0]["values"]
            if len(entries) != len(values):
                raise ValueError(f"{len(values)} values for {len(entries)} bins")
            document["dependent_variables"][0]["values"] = [{"value": value} for value in values]
            return yaml.safe_dump_all(documents, sort_keys=False, allow_unicode=True, explicit_start=len(documents) > 1)
    raise ValueError("the template has no series")
