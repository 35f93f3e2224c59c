"""The `table` family: CSV results held against hidden tables with tolerances (PRBench 4.1, A, B)."""
