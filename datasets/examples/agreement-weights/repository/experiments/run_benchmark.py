"""Main comparison: accuracy of all methods on all problems under symmetric and asymmetric label noise."""

import argparse
import sys
from pathlib import Path

sys.path.insert(0, str(Path(__file__).resolve().parent.parent))

from caw.config import load
from caw.evaluation import run
from caw.report import print_table, write_csv


def main():
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--config", default="configs/benchmark.yaml")
    parser.add_argument("--set", nargs="*", default=[], metavar="KEY=VALUE", help="override single settings")
    parser.add_argument("--out", default="results/benchmark.csv")
    args = parser.parse_args()
    settings = load(args.config, args.set)

    records = []
    for condition in settings["conditions"]:
        noise, rate = condition["noise"], condition["rate"]
        cells = {method: [] for method in settings["methods"]}
        for problem in settings["problems"]:
            for method, values in run(settings["methods"], problem, noise, rate, settings).items():
                cells[method].append(f"{values.mean():.1f} ± {values.std(ddof=1):.1f}")
                records.append([noise, rate, problem, method, f"{values.mean():.4f}", f"{values.std(ddof=1):.4f}"])
        print_table(
            f"Test accuracy in %, {noise} label noise at rate {rate} (mean ± std over {settings['seeds']} seeds)",
            ["method", *settings["problems"]],
            [[method, *cells[method]] for method in settings["methods"]],
        )
    write_csv(args.out, ["noise", "rate", "problem", "method", "accuracy_mean", "accuracy_std"], records)


if __name__ == "__main__":
    main()
