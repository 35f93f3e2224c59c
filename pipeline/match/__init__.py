"""Which printed numbers of a paper do committed files and runs hold, and where? Decided by values and structure alone.

printed.py     the paper's numbers: table cells and numbers of sentences
records.py     sources, and what matched
views.py       a source's numbers as matrices of keys by fields
chance.py      how probable it is that numbers agree by accident
alignment.py   which line of a table is which field, which row which record
tables.py      tables against sources
prose.py       rare numbers of sentences against sources
"""
