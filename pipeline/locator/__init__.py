"""Stage 2.2 (EXP-Bench 3.2): from a task and a snapshot to the chain of scripts that answers it, or `not_found`."""
