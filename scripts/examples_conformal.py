"""Worked example `neighbour-conformal`: which runs, which numbers, which tables."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

from examples_common import Example, ExampleError, Numbers
from examples_papers import best, bold_if, table

PROBLEMS = {"wave": "Wave", "step": "Step", "friedman": "Friedman"}
METHODS = {"split": "Split", "mondrian": "Mondrian", "linear": "Linear scale", "nsc": "NSC (ours)"}
VARIANTS = {
    "full": ("full", "NSC (full)"),
    "in-sample residuals": ("in-sample", "in-sample residuals"),
    "no shrinkage": ("shrinkage", "no shrinkage ($\\gamma=0$)"),
    "root mean square": ("rms", "root mean square"),
    "5 neighbours": ("k5", "$k=5$"),
    "100 neighbours": ("k100", "$k=100$"),
}
SIZES = (25, 50, 100, 200, 400, 800)
TILTS = ("0.0", "1.0", "2.0", "3.0")
SHIFT_CASES = {
    ("split", "none"): ("Split", "none"),
    ("split", "estimated"): ("Split", "estimated"),
    ("nsc", "none"): ("NSC (ours)", "none"),
    ("nsc", "estimated"): ("NSC (ours)", "estimated"),
    ("nsc", "oracle"): ("NSC (ours)", "oracle"),
}


def collect(ran: Path) -> Numbers:
    """All numbers of the paper, and the checks of what it says in words."""
    numbers = Numbers()
    numbers.settings(
        ran / "configs" / "defaults.yaml",
        "configs/defaults.yaml",
        (
            "repetitions", "n_train", "n_cal", "n_test", "bandwidth", "ridge", "folds", "neighbours", "shrinkage",
            "groups",
        ),
        {},
    )  # fmt: skip
    numbers.settings(ran / "configs" / "shift.yaml", "configs/shift.yaml", ("n_unlabelled", "penalty"), {})
    _main(ran, numbers)
    _ablation(ran, numbers)
    _calibration(ran, numbers)
    _shift(ran, numbers)
    return numbers


def _records(ran: Path, name: str, keys: tuple[str, ...]) -> list[tuple[dict[str, Any], dict[str, Any]]]:
    """(record, origin) of each record of a results file."""
    file = f"results/{name}.json"
    records = json.loads((ran / file).read_text(encoding="utf-8"))
    return [(record, {"file": file, "row": {key: record[key] for key in keys}}) for record in records]


def _main(ran: Path, numbers: Numbers) -> None:
    for record, origin in _records(ran, "main_table", ("problem", "method")):
        key = f"main.{record['problem']}.{record['method']}"
        for column, decimals in (("coverage", 1), ("width", 2), ("width_std", 2), ("worst_fifth", 1)):
            numbers.measured(f"{key}.{column}", record[column], decimals, {**origin, "column": column})

    def of(problem: str, method: str, column: str) -> float:
        return float(numbers[f"main.{problem}.{method}.{column}"])

    saving = 100 * (1 - of("wave", "nsc", "width") / of("wave", "split", "width"))
    numbers.derived("main.wave.saving", f"{saving:.0f}", "100 (1 - main.wave.nsc.width / main.wave.split.width)")
    numbers.difference("main.wave.gain-worst", "main.wave.nsc.worst_fifth", "main.wave.split.worst_fifth")
    coverages = [of(p, m, "coverage") for p in PROBLEMS for m in METHODS]
    numbers.derived("main.coverage.low", f"{min(coverages):.1f}", "smallest coverage of the table")
    numbers.derived("main.coverage.high", f"{max(coverages):.1f}", "largest coverage of the table")
    widths = {p: {m: of(p, m, "width") for m in METHODS} for p in PROBLEMS}
    facts = {
        "nsc is narrowest everywhere": all(w["nsc"] < min(w[m] for m in w if m != "nsc") for w in widths.values()),
        "split has the lowest worst-fifth coverage everywhere": all(
            of(p, "split", "worst_fifth") <= min(of(p, m, "worst_fifth") for m in METHODS) for p in PROBLEMS
        ),
        "nsc has the highest worst-fifth coverage on wave and friedman": all(
            of(p, "nsc", "worst_fifth") == max(of(p, m, "worst_fifth") for m in METHODS) for p in ("wave", "friedman")
        ),
        "linear beats nsc in worst-fifth coverage on step": of("step", "linear", "worst_fifth")
        > of("step", "nsc", "worst_fifth"),
        "linear is no narrower than split by more than 5 % on wave": widths["wave"]["linear"]
        > 0.95 * widths["wave"]["split"],
        "the advantage in width is smallest on friedman": max(
            PROBLEMS, key=lambda p: widths[p]["nsc"] / widths[p]["split"]
        )
        == "friedman",
        "mondrian helps on friedman and little on wave": of("friedman", "mondrian", "worst_fifth")
        > of("friedman", "split", "worst_fifth") + 5
        and of("wave", "mondrian", "worst_fifth") < of("wave", "split", "worst_fifth") + 4,
        "no method covers the worst fifth at the nominal level": all(
            of(p, m, "worst_fifth") < 90 for p in PROBLEMS for m in METHODS
        ),
        "the target is met within a point": max(abs(c - 90) for c in coverages) < 1.5,
    }
    _require(facts)


def _ablation(ran: Path, numbers: Numbers) -> None:
    for record, origin in _records(ran, "ablation", ("problem", "variant")):
        key = f"ablation.{record['problem']}.{VARIANTS[record['variant']][0]}"
        for column, decimals in (("interval_score", 3), ("worst_fifth", 1)):
            numbers.measured(f"{key}.{column}", record[column], decimals, {**origin, "column": column})

    def score(problem: str, variant: str) -> float:
        return float(numbers[f"ablation.{problem}.{variant}.interval_score"])

    gap = max(abs(score(p, "in-sample") - score(p, "full")) for p in ("step", "friedman"))
    numbers.derived("ablation.gap-in-sample", f"{gap:.3f}", "largest |in-sample - full| of the interval scores")
    change = max(abs(score(p, "shrinkage") - score(p, "full")) for p in ("step", "friedman"))
    numbers.derived("ablation.gap-shrinkage", f"{change:.3f}", "largest |no shrinkage - full| of the interval scores")
    numbers.difference(
        "ablation.step.gain-shrinkage", "ablation.step.shrinkage.worst_fifth", "ablation.step.full.worst_fifth"
    )
    facts = {
        "in-sample residuals make little difference": gap < 0.02,
        "shrinkage hardly changes the interval score": change < 0.03,
        "5 neighbours are too few": all(score(p, "k5") > score(p, "full") + 0.05 for p in ("step", "friedman")),
        "100 neighbours are too many": all(score(p, "k100") > score(p, "full") + 0.02 for p in ("step", "friedman")),
        "without shrinkage the worst fifth is covered better": all(
            float(numbers[f"ablation.{p}.shrinkage.worst_fifth"]) > float(numbers[f"ablation.{p}.full.worst_fifth"])
            for p in ("step", "friedman")
        ),
        "100 neighbours cover the worst fifth less": all(
            float(numbers[f"ablation.{p}.k100.worst_fifth"]) < float(numbers[f"ablation.{p}.full.worst_fifth"])
            for p in ("step", "friedman")
        ),
    }
    _require(facts)


def _calibration(ran: Path, numbers: Numbers) -> None:
    for record, origin in _records(ran, "calibration_size", ("n_cal", "method")):
        key = f"calibration.{record['n_cal']}.{record['method']}"
        for column, decimals in (("coverage", 1), ("coverage_std", 1), ("width", 2)):
            numbers.measured(f"{key}.{column}", record[column], decimals, {**origin, "column": column})
    spread = {n: float(numbers[f"calibration.{n}.nsc.coverage_std"]) for n in SIZES}
    facts = {
        "the spread falls": spread[25] > 2 * spread[400] and spread[50] > spread[200],
        "nsc is narrower at every size": all(
            float(numbers[f"calibration.{n}.nsc.width"]) < float(numbers[f"calibration.{n}.split.width"]) for n in SIZES
        ),
        "25 points over-cover": float(numbers["calibration.25.nsc.coverage"]) > 91.0,
    }
    _require(facts)


def _shift(ran: Path, numbers: Numbers) -> None:
    for record, origin in _records(ran, "covariate_shift", ("tilt", "method", "weights")):
        key = f"shift.{record['tilt']}.{record['method']}.{record['weights']}"
        for column, decimals in (("coverage", 1), ("width", 2)):
            numbers.measured(f"{key}.{column}", record[column], decimals, {**origin, "column": column})

    def coverage(tilt: str, method: str, weights: str) -> float:
        return float(numbers[f"shift.{tilt}.{method}.{weights}.coverage"])

    gap = max(abs(coverage(t, "nsc", "estimated") - coverage(t, "nsc", "oracle")) for t in TILTS)
    numbers.derived("shift.gap-oracle", f"{gap:.1f}", "largest |estimated - oracle| of the coverages of nsc")
    for method in ("split", "nsc"):
        key = f"shift.3.0.{method}.none.coverage"
        numbers.derived(f"shift.loss-{method}", f"{90 - float(numbers[key]):.1f}", f"90 - {key}")
    falling = [coverage(t, "split", "none") for t in TILTS]
    facts = {
        "coverage of split falls with the tilt": falling == sorted(falling, reverse=True),
        "nsc loses less than split": all(
            coverage(t, "nsc", "none") > coverage(t, "split", "none") + 2 for t in TILTS if t != "0.0"
        ),
        "weights restore it": all(abs(coverage(t, m, "estimated") - 90) < 1.0 for t in TILTS for m in ("split", "nsc")),
        "estimated is close to oracle": gap < 0.6,
    }
    _require(facts)


def _require(facts: dict[str, bool]) -> None:
    for statement, holds in facts.items():
        if not holds:
            raise ExampleError(f"neighbour-conformal: the paper says in words what is not so: {statement}")


def fragments(numbers: Numbers) -> dict[str, str]:
    """LaTeX of the tables and the figure."""
    return {
        "main.tex": _main_table(numbers),
        "problems.tex": _problems_table(),
        "ablation.tex": _ablation_table(numbers),
        "shift.tex": _shift_table(numbers),
        "hyper.tex": _hyper_table(numbers),
        "calibration.tex": _calibration_table(numbers),
        "calibration_figure.tex": _calibration_figure(numbers),
    }


def _problems_table() -> str:
    return table(
        label="tab:problems",
        caption="The three problems: dimension, regression function and standard deviation of the noise.",
        columns="@{}lcll@{}",
        header=("Problem & $d$ & $\\mu(x)$ & $\\sigma(x)$ \\\\",),
        rows=[
            ["Wave", "2", "$\\sin 3x_1+x_2/2$", "$0.1+0.7\\,x_1^2$"],
            ["Step", "2", "$x_1+\\cos 2x_2$", "$0.15$ or $0.75$"],
            ["Friedman", "5", "see \\cite{friedman1991}, divided by 5", "$0.1+0.8\\,u_1u_4$"],
        ],
        setup="\\footnotesize\\setlength{\\tabcolsep}{4pt}",
    )


def _main_table(numbers: Numbers) -> str:
    narrow = {p: best([numbers[f"main.{p}.{m}.width"] for m in METHODS], smallest=True) for p in PROBLEMS}
    high = {p: best([numbers[f"main.{p}.{m}.worst_fifth"] for m in METHODS]) for p in PROBLEMS}
    rows = []
    for method, title in METHODS.items():
        cells = [title]
        for problem in PROBLEMS:
            key = f"main.{problem}.{method}"
            width, worst = numbers[f"{key}.width"], numbers[f"{key}.worst_fifth"]
            cells += [
                numbers[f"{key}.coverage"],
                f"{bold_if(width == narrow[problem], width)} $\\pm$ {numbers[f'{key}.width_std']}",
                bold_if(worst == high[problem], worst),
            ]
        rows.append(cells)
    return table(
        label="tab:main",
        caption=f"Intervals at a target coverage of 90\\%, mean over {numbers['setting.repetitions']} repetitions "
        "(width: $\\pm$ standard deviation). Cov.\\ is the marginal coverage and WFC the worst-fifth coverage, both in "
        "\\%. Narrowest interval and highest WFC in bold.",
        columns="@{}l" + "ccc" * 3 + "@{}",
        header=(
            "& " + " & ".join(f"\\multicolumn{{3}}{{c}}{{{title}}}" for title in PROBLEMS.values()) + " \\\\",
            "\\cmidrule(lr){2-4}\\cmidrule(lr){5-7}\\cmidrule(l){8-10}",
            "Method" + " & Cov. & Width & WFC" * 3 + " \\\\",
        ),
        rows=rows,
        wide=True,
    )


def _ablation_table(numbers: Numbers) -> str:
    problems = ("step", "friedman")
    keys = [key for key, _ in VARIANTS.values()]
    low = {p: best([numbers[f"ablation.{p}.{k}.interval_score"] for k in keys], smallest=True) for p in problems}
    high = {p: best([numbers[f"ablation.{p}.{k}.worst_fifth"] for k in keys]) for p in problems}
    rows = []
    for key, title in VARIANTS.values():
        cells = [title]
        for problem in problems:
            score = numbers[f"ablation.{problem}.{key}.interval_score"]
            worst = numbers[f"ablation.{problem}.{key}.worst_fifth"]
            cells += [bold_if(score == low[problem], score), bold_if(worst == high[problem], worst)]
        rows.append(cells)
    return table(
        label="tab:ablation",
        caption="Ablation of NSC: interval score (IS, smaller is better) and worst-fifth coverage (WFC, \\%).",
        columns="@{}lcccc@{}",
        header=(
            "& \\multicolumn{2}{c}{Step} & \\multicolumn{2}{c}{Friedman} \\\\",
            "\\cmidrule(lr){2-3}\\cmidrule(l){4-5}",
            "Variant & IS & WFC & IS & WFC \\\\",
        ),
        rows=rows,
        rules_before={1: "\\midrule"},
        setup="\\footnotesize\\setlength{\\tabcolsep}{5pt}",
    )


def _shift_table(numbers: Numbers) -> str:
    rows = []
    for (method, weights), titles in SHIFT_CASES.items():
        cells = list(titles)
        for column in ("coverage", "width"):
            cells += [numbers[f"shift.{t}.{method}.{weights}.{column}"] for t in TILTS]
        rows.append(cells)
    return table(
        label="tab:shift",
        caption="Coverage and width on Step when the first test input is tilted by $\\exp(\\beta x_1)$, by method "
        "and kind of weights.",
        columns="@{}llcccccccc@{}",
        header=(
            "& & \\multicolumn{4}{c}{Coverage (\\%) at $\\beta$} & \\multicolumn{4}{c}{Width at $\\beta$} \\\\",
            "\\cmidrule(lr){3-6}\\cmidrule(l){7-10}",
            "Method & Weights" + " & 0 & 1 & 2 & 3" * 2 + " \\\\",
        ),
        rows=rows,
        rules_before={2: "\\midrule"},
        setup="\\scriptsize\\setlength{\\tabcolsep}{2.6pt}",
    )


def _hyper_table(numbers: Numbers) -> str:
    rows = [
        ["Ridge parameter", "$\\lambda$", numbers["setting.ridge"]],
        ["Kernel bandwidth", "$h$", numbers["setting.bandwidth"]],
        ["Folds for the residuals", "$K$", numbers["setting.folds"]],
        ["Neighbours", "$k$", numbers["setting.neighbours"]],
        ["Shrinkage", "$\\gamma$", numbers["setting.shrinkage"]],
        ["Groups of Mondrian", "$G$", numbers["setting.groups"]],
        ["Penalty of the density ratio", "$\\eta$", numbers["setting.penalty"]],
    ]
    return table(
        label="tab:hyper",
        caption="Hyper-parameters.",
        columns="@{}lcc@{}",
        header=("Hyper-parameter & Symbol & Value \\\\",),
        rows=rows,
        place="!ht",
        setup="\\footnotesize",
    )


def _calibration_table(numbers: Numbers) -> str:
    rows = []
    for size in SIZES:
        cells = [str(size)]
        for method in ("split", "nsc"):
            key = f"calibration.{size}.{method}"
            cells += [
                f"{numbers[f'{key}.coverage']} $\\pm$ {numbers[f'{key}.coverage_std']}",
                numbers[f"{key}.width"],
            ]
        rows.append(cells)
    return table(
        label="tab:calibration",
        caption="Coverage (\\%, mean $\\pm$ standard deviation over repetitions) and mean width on Wave by number of "
        "calibration points.",
        columns="@{}rcccc@{}",
        header=(
            "& \\multicolumn{2}{c}{Split} & \\multicolumn{2}{c}{NSC (ours)} \\\\",
            "\\cmidrule(lr){2-3}\\cmidrule(l){4-5}",
            "$n_{\\mathrm{cal}}$ & Cov. & Width & Cov. & Width \\\\",
        ),
        rows=rows,
        place="!ht",
        setup="\\footnotesize",
    )


def _calibration_figure(numbers: Numbers) -> str:
    styles = {"split": "black!60,mark=o", "nsc": "blue!75!black,thick,mark=*"}
    plots = []
    for method, style in styles.items():
        points = " ".join(f"({n},{numbers.value(f'calibration.{n}.{method}.coverage_std'):.2f})" for n in SIZES)
        plots.append(f"\\addplot[{style}] coordinates {{{points}}};\\addlegendentry{{{METHODS[method]}}}\n")
    ticks = ",".join(str(n) for n in SIZES)
    return (
        "\\begin{tikzpicture}\n\\begin{axis}[width=\\linewidth,height=4.6cm,xmode=log,"
        "xlabel={Calibration points $n_{\\mathrm{cal}}$},ylabel={Std.\\ of coverage},"
        f"xtick={{{ticks}}},xticklabels={{{ticks}}},ytick={{0,1,2,3,4,5,6}},ymin=0,"
        "grid=major,grid style={black!10},legend pos=north east,legend style={font=\\scriptsize,draw=black!20},"
        "label style={font=\\footnotesize},tick label style={font=\\scriptsize},legend cell align=left]\n"
        f"{''.join(plots)}\\end{{axis}}\n\\end{{tikzpicture}}\n"
    )


CONFORMAL = Example(
    name="neighbour-conformal",
    runs=(
        ("experiments/main_table.py", "--config", "configs/main.yaml"),
        ("-m", "experiments.ablate", "--config", "configs/ablation.yaml"),
        ("experiments/calibration_size.py", "--config", "configs/calibration.yaml"),
        ("experiments/covariate_shift.py", "--config", "configs/shift.yaml"),
    ),
    collect=collect,
    fragments=fragments,
    keep={
        "results/main_table.json": "history/2-results/results/main_table.json",
        "results/ablation.json": "history/2-results/results/ablation.json",
    },
    submodules=("third_party/ratiokit",),
)
