"""Reading code: notebooks and Python files as trees, options of scripts, imports, numbered lines. Nothing is run."""
