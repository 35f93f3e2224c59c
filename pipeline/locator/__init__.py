"""Stage 2.2 (EXP-Bench 3.2): from a task and a snapshot to the chain of scripts that answers it, or `not_found`."""

from pipeline.locator.index import RepositoryIndex, build_index
from pipeline.locator.locate import Chain, Location, locate
from pipeline.locator.query import TaskQuery

__all__ = ["Chain", "Location", "RepositoryIndex", "TaskQuery", "build_index", "locate"]
