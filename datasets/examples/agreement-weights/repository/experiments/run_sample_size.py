"""Sample size: accuracy as a function of the number of noisy training labels."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.config import load
from caw.evaluation import run
from caw.report import print_table, write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/sample_size.yaml")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="override single settings")
    parser.add_argument("--out", default="results/sample_size.csv")
    args = parser.parse_args()
    settings = load(args.config, args.set)

    records, rows = [], []
    for size in settings["sizes"]:
        sized = dict(settings, n_train=size)
        found = run(settings["methods"], settings["problem"], settings["noise"], settings["rate"], sized)
        rows.append([size, *(f"{values.mean():.1f}" for values in found.values())])
        for method, values in found.items():
            records.append([size, method, f"{values.mean():.4f}", f"{values.std(ddof=1):.4f}"])
    print_table(f"Test accuracy in % on {settings['problem']} by training size", ["n", *settings["methods"]], rows)
    write_csv(args.out, ["n_train", "method", "accuracy_mean", "accuracy_std"], records)


if __name__ == "__main__":
    main()
