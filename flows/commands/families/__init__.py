"""Commands of one family each: `expbench score FAMILY` and what else a family brings.

Every module here holds `score`, a typer with the family's one command of the group, and may hold `app` with commands of
the top level.
"""
