"""Which function is called? By its own name, wherever it was imported from.

Non-goal: the dotted name (`pipeline.tracing.parsed.called_name`).
"""

from __future__ import annotations

import ast

from pipeline.tracing.parsed import called_name

__all__ = ["called_function"]


def called_function(call: ast.Call) -> str:
    """The last name of what is called (`np.random.rand` is `rand`, `make().fit` is `fit`); empty where it has none."""
    return called_name(call).rpartition(".")[2]
