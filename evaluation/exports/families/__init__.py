"""Tasks of the families that are made of files, as a release holds them, and back: one module a family.

A module holds `SHAPE` (its typed columns) and `parts`, which reads a source directory of the family and says, file by
file, what is public: by naming it, never by leaving out what is private. `restored` is the way back.
"""
