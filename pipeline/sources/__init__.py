"""Stage 1, source selection and filtering (EXP-Bench 3.2): from exports and look-ups to a ranked list of candidates.

`exports` reads what conferences and people exported; `citations`, `github` and `openreview` look things up through one
cached, rate-limited client (`web`); `filters` says of each candidate why it is kept or not; `ranking` orders those that
are kept; `build` does all of it; `listing` writes the source list that `expbench curate` lists are made of.
"""
