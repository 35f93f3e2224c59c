"""Which values of several Python programs are made of which others; see `graph` for what is promised."""

from __future__ import annotations

from evaluation.families.histogram.dataflow.graph import (
    DRAWN,
    SOURCE,
    FlowGraph,
    Key,
    Sink,
    file_key,
    is_file_name,
    name_key,
    printed_key,
)
from evaluation.families.histogram.dataflow.names import FlowRules, argv_key
from evaluation.families.histogram.dataflow.programs import read_programs

__all__ = [
    "DRAWN",
    "SOURCE",
    "FlowGraph",
    "FlowRules",
    "Key",
    "Sink",
    "argv_key",
    "file_key",
    "is_file_name",
    "name_key",
    "printed_key",
    "read_programs",
]
