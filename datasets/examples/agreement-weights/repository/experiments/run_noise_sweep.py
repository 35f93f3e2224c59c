"""Robustness: accuracy as a function of the label noise rate."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.config import load
from caw.evaluation import run
from caw.report import print_table, write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/noise_sweep.yaml")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="override single settings")
    parser.add_argument("--out", default="results/noise_sweep.csv")
    args = parser.parse_args()
    settings = load(args.config, args.set)

    records, rows = [], []
    for rate in settings["rates"]:
        found = run(settings["methods"], settings["problem"], settings["noise"], rate, settings)
        rows.append([f"{rate:.2f}", *(f"{values.mean():.1f}" for values in found.values())])
        for method, values in found.items():
            records.append([rate, method, f"{values.mean():.4f}", f"{values.std(ddof=1):.4f}"])
    print_table(
        f"Test accuracy in % on {settings['problem']} against the {settings['noise']} noise rate",
        ["rate", *settings["methods"]],
        rows,
    )
    write_csv(args.out, ["rate", "method", "accuracy_mean", "accuracy_std"], records)


if __name__ == "__main__":
    main()
