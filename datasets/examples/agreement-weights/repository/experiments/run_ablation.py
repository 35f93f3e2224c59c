"""Ablation: CAW without one of its parts at a time."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.config import load
from caw.evaluation import run_variants
from caw.report import print_table, write_csv

VARIANTS = {
    "full": {},
    "no cross-fitting": {"cross_fit": False},
    "no centring": {"centre": False},
    "hard weights": {"hard": True},
    "single round": {"rounds": 1},
}


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/ablation.yaml")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="override single settings")
    parser.add_argument("--out", default="results/ablation.csv")
    args = parser.parse_args()
    settings = load(args.config, args.set)

    columns, records = [], []
    cells = {name: [] for name in VARIANTS}
    for condition in settings["conditions"]:
        for problem in settings["problems"]:
            columns.append(f"{problem} ({condition['noise']})")
            found = run_variants(VARIANTS, problem, condition["noise"], condition["rate"], settings)
            for name, values in found.items():
                cells[name].append(f"{values.mean():.1f}")
                records.append([condition["noise"], problem, name, f"{values.mean():.4f}", f"{values.std(ddof=1):.4f}"])
    print_table("Test accuracy in % of CAW and its variants", ["variant", *columns], [[n, *cells[n]] for n in VARIANTS])
    write_csv(args.out, ["noise", "problem", "variant", "accuracy_mean", "accuracy_std"], records)


if __name__ == "__main__":
    main()
