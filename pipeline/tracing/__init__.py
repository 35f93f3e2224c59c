"""Stage 2.2 (EXP-Bench 3.2): from the chain of scripts to implementation requirements, by AST tracing."""
