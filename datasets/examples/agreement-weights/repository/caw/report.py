"""Tables on standard output and CSV files below results/."""

import csv
from pathlib import Path


def print_table(title, header, rows):
    """Print rows of strings in aligned columns."""
    widths = [max(len(str(row[i])) for row in [header, *rows]) for i in range(len(header))]
    print(title)
    for row in [header, *rows]:
        print("  ".join(str(cell).ljust(width) for cell, width in zip(row, widths)).rstrip())
    print()


def write_csv(path, header, rows):
    """Write a CSV file, creating its directory."""
    path = Path(path)
    path.parent.mkdir(parents=True, exist_ok=True)
    with path.open("w", newline="") as stream:
        writer = csv.writer(stream, lineterminator="\n")
        writer.writerow(header)
        writer.writerows(rows)
    print(f"wrote {path}")
