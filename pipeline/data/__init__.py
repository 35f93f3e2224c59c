"""Data that experiments download: fetched once in a recorded data phase, kept by content, given to offline runs."""

from __future__ import annotations

from pipeline.data.allow import AllowList, default_allow_list
from pipeline.data.phase import DataPhase, open_data_phase, with_data
from pipeline.data.records import UNKNOWN_LICENCE, DataFile, DataRecord

__all__ = [
    "UNKNOWN_LICENCE",
    "AllowList",
    "DataFile",
    "DataPhase",
    "DataRecord",
    "default_allow_list",
    "open_data_phase",
    "with_data",
]
