"""Stage 3 (EXP-Bench 3.2): environment, re-execution, and whether the outcome is the paper's."""
