"""Stage 2.2 (EXP-Bench 3.2): from the chain of scripts to implementation requirements, by AST tracing."""

from pipeline.tracing.trace import Trace, trace

__all__ = ["Trace", "trace"]
