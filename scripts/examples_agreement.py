"""Worked example `agreement-weights`: which runs, which numbers, which tables."""

from __future__ import annotations

import re
from pathlib import Path

from examples_common import Example, ExampleError, Number, Numbers, read_csv
from examples_papers import best, bold_if, table

PROBLEMS = ("moons", "rings", "spirals", "xor")
TITLES = {"moons": "Moons", "rings": "Rings", "spirals": "Spirals", "xor": "XOR"}
METHODS = {"plain": "Plain", "huber": "Huber", "trim": "Trimming", "enn": "ENN", "caw": "CAW (ours)", "clean": "Clean"}
BASELINES = ("plain", "huber", "trim", "enn")
NOISES = ("symmetric", "asymmetric")
VARIANTS = {
    "full": ("full", "CAW (full)"),
    "no cross-fitting": ("cross", "w/o cross-fitting"),
    "no centring": ("centre", "w/o centring"),
    "hard weights": ("hard", "hard weights"),
    "single round": ("rounds", "single round"),
}
WORDS = {2: "two", 3: "three", 4: "all"}
RATES = ("0.0", "0.1", "0.2", "0.3", "0.4")
SIZES = ("200", "400", "800", "1600")


def collect(ran: Path) -> Numbers:
    """All numbers of the paper, and the checks of what it says in words."""
    numbers = Numbers()
    numbers.settings(
        ran / "configs" / "base.yaml",
        "configs/base.yaml",
        (
            "seeds", "n_train", "n_test", "nuisance", "features", "bandwidth", "ridge", "rounds", "folds",
            "temperature", "tail", "huber_delta", "huber_rounds", "neighbours",
        ),
        {"n_train": ",", "n_test": ","},
    )  # fmt: skip
    source = (ran / "caw" / "data.py").read_text(encoding="utf-8")
    for problem in PROBLEMS:
        found = re.search(rf"def {problem}\(.*?return .*?, y, ([0-9.]+)\n", source, re.DOTALL)
        if found is None:
            raise ExampleError(f"caw/data.py: no jitter found for {problem}")
        text = f"{float(found[1]):.2f}"
        numbers.add(Number(f"jitter.{problem}", text, None, {"file": "caw/data.py", "function": problem}))
    _benchmark(ran, numbers)
    _ablation(ran, numbers)
    _sweeps(ran, numbers)
    return numbers


def _benchmark(ran: Path, numbers: Numbers) -> None:
    for row in read_csv(ran / "results" / "benchmark.csv"):
        key = f"benchmark.{row['noise']}.{row['problem']}.{row['method']}"
        origin = {"file": "results/benchmark.csv", "row": {k: row[k] for k in ("noise", "problem", "method")}}
        numbers.measured(key, float(row["accuracy_mean"]), 1, {**origin, "column": "accuracy_mean"})
        numbers.measured(f"{key}.std", float(row["accuracy_std"]), 1, {**origin, "column": "accuracy_std"})

    def value(noise: str, problem: str, method: str) -> float:
        return float(numbers[f"benchmark.{noise}.{problem}.{method}"])

    wins = {
        noise: sum(value(noise, p, "caw") > max(value(noise, p, b) for b in BASELINES) for p in PROBLEMS)
        for noise in NOISES
    }
    numbers.derived("benchmark.wins", {7: "seven", 8: "all"}[sum(wins.values())], "settings in which caw is best")
    numbers.derived("benchmark.symmetric.wins-words", WORDS[wins["symmetric"]], "problems in which caw is best")
    strongest = max(BASELINES, key=lambda b: value("asymmetric", "rings", b))
    numbers.derived(
        "benchmark.asymmetric.rings.best-baseline",
        numbers[f"benchmark.asymmetric.rings.{strongest}"],
        f"benchmark.asymmetric.rings.{strongest}",
    )
    key = "benchmark.symmetric.moons"
    numbers.difference(f"{key}.gap-clean", f"{key}.clean", f"{key}.caw")
    key = "benchmark.asymmetric.spirals"
    numbers.difference(f"{key}.gap-enn", f"{key}.caw", f"{key}.enn")
    gap = min(value("asymmetric", p, "caw") - max(value("asymmetric", p, b) for b in BASELINES) for p in PROBLEMS)
    numbers.derived("benchmark.asymmetric.min-gap", f"{gap:.1f}", "smallest lead of caw over the best baseline")
    facts = {
        "the advantage is largest with one corrupted class": all(
            value("asymmetric", p, "caw") - max(value("asymmetric", p, b) for b in BASELINES)
            > value("symmetric", p, "caw") - max(value("symmetric", p, b) for b in BASELINES)
            for p in PROBLEMS
        ),
        "trimming falls behind plain on Spirals": value("asymmetric", "spirals", "trim")
        < value("asymmetric", "spirals", "plain"),
        "Moons is the easiest": value("symmetric", "moons", "plain")
        == max(value("symmetric", p, "plain") for p in PROBLEMS),
        "ENN wins the remaining setting": value("symmetric", "spirals", "enn")
        == max(value("symmetric", "spirals", m) for m in (*BASELINES, "caw")),
    }
    _require(facts)


def _ablation(ran: Path, numbers: Numbers) -> None:
    for row in read_csv(ran / "results" / "ablation.csv"):
        key = f"ablation.{row['noise']}.{row['problem']}.{VARIANTS[row['variant']][0]}"
        origin = {"file": "results/ablation.csv", "row": {k: row[k] for k in ("noise", "problem", "variant")}}
        numbers.measured(key, float(row["accuracy_mean"]), 1, {**origin, "column": "accuracy_mean"})
    key = "ablation.symmetric.rings"
    numbers.difference(f"{key}.drop-cross", f"{key}.full", f"{key}.cross")
    numbers.difference(f"{key}.drop-rounds", f"{key}.full", f"{key}.rounds")

    def gap(noise: str, problem: str, variant: str) -> float:
        key = f"ablation.{noise}.{problem}"
        return float(numbers[f"{key}.full"]) - float(numbers[f"{key}.{variant}"])

    cells = [(noise, problem) for noise in NOISES for problem in ("rings", "spirals")]
    hard = max(abs(gap(*cell, "hard")) for cell in cells)
    numbers.derived("ablation.max-hard", f"{hard:.1f}", "largest |full - hard| in the table")
    facts = {
        "centring is most of the asymmetric gain": all(
            gap("asymmetric", p, "centre") > 8 for p in ("rings", "spirals")
        ),
        "centring is nearly neutral under symmetric noise": all(
            abs(gap("symmetric", p, "centre")) < 1.5 for p in ("rings", "spirals")
        ),
        "hard weights perform like soft ones": hard < 1.0,
        "cross-fitting helps under symmetric noise on Rings": gap("symmetric", "rings", "cross") > 0.3,
        "full equals the benchmark": all(
            numbers[f"ablation.{noise}.{p}.full"] == numbers[f"benchmark.{noise}.{p}.caw"] for noise, p in cells
        ),
    }
    _require(facts)


def _sweeps(ran: Path, numbers: Numbers) -> None:
    for row in read_csv(ran / "results" / "noise_sweep.csv"):
        origin = {"file": "results/noise_sweep.csv", "row": {k: row[k] for k in ("rate", "method")}}
        key = f"noise.{row['rate']}.{row['method']}"
        numbers.measured(key, float(row["accuracy_mean"]), 1, {**origin, "column": "accuracy_mean"})
    for row in read_csv(ran / "results" / "sample_size.csv"):
        origin = {"file": "results/sample_size.csv", "row": {k: row[k] for k in ("n_train", "method")}}
        key = f"size.{row['n_train']}.{row['method']}"
        numbers.measured(key, float(row["accuracy_mean"]), 1, {**origin, "column": "accuracy_mean"})
    for rate, other in (("0.4", "plain"), ("0.4", "trim"), ("0.3", "plain")):
        numbers.difference(f"noise.{rate}.gap-{other}", f"noise.{rate}.caw", f"noise.{rate}.{other}")
    numbers.difference("size.gain-plain", "size.1600.plain", "size.400.plain")
    low = [[float(numbers[f"noise.{r}.{m}"]) for m in ("trim", "enn", "caw")] for r in ("0.0", "0.1")]
    numbers.derived(
        "noise.low-spread", f"{max(max(v) - min(v) for v in low):.1f}", "largest spread at rates 0.0 and 0.1"
    )
    numbers.difference("size.gain-caw", "size.1600.caw", "size.400.caw")
    numbers.difference("size.gain-enn", "size.1600.enn", "size.400.enn")
    facts = {
        "plain gains least from data": float(numbers["size.gain-plain"])
        < min(float(numbers["size.gain-caw"]), float(numbers["size.gain-enn"])) - 1.0,
        "clean labels: caw pays a small price": 0
        < float(numbers["noise.0.0.plain"]) - float(numbers["noise.0.0.caw"]) < 1.0,
        "caw leads at 0.3 and 0.4": all(
            float(numbers[f"noise.{r}.caw"]) > max(float(numbers[f"noise.{r}.{m}"]) for m in ("plain", "trim", "enn"))
            for r in ("0.3", "0.4")
        ),
        "caw is best at every size": all(
            float(numbers[f"size.{s}.caw"]) > max(float(numbers[f"size.{s}.{m}"]) for m in ("plain", "enn"))
            for s in SIZES
        ),
        "400 labels for caw beat 1600 for enn": float(numbers["size.400.caw"]) > float(numbers["size.1600.enn"]),
        "the sweep meets the benchmark": numbers["noise.0.3.caw"] == numbers["benchmark.symmetric.rings.caw"],
    }  # fmt: skip
    _require(facts)


def _require(facts: dict[str, bool]) -> None:
    for statement, holds in facts.items():
        if not holds:
            raise ExampleError(f"agreement-weights: the paper says in words what is not so: {statement}")


def fragments(numbers: Numbers) -> dict[str, str]:
    """LaTeX of the tables and the figure."""
    return {
        "main.tex": _main_table(numbers),
        "ablation.tex": _ablation_table(numbers),
        "size.tex": _size_table(numbers),
        "hyper.tex": _hyper_table(numbers),
        "noise.tex": _noise_table(numbers),
        "noise_figure.tex": _noise_figure(numbers),
    }


def _main_table(numbers: Numbers) -> str:
    columns = [(noise, problem) for noise in NOISES for problem in PROBLEMS]
    top = {c: best([numbers[f"benchmark.{c[0]}.{c[1]}.{m}"] for m in METHODS if m != "clean"]) for c in columns}
    rows = []
    for method, title in METHODS.items():
        cells = [title]
        for noise, problem in columns:
            key = f"benchmark.{noise}.{problem}.{method}"
            mean = bold_if(method != "clean" and numbers[key] == top[noise, problem], numbers[key])
            cells.append(f"{mean} {{\\scriptsize$\\pm$ {numbers[key + '.std']}}}")
        rows.append(cells)
    return table(
        label="tab:main",
        caption="Test accuracy (\\%) with 30\\% symmetric and 40\\% asymmetric label noise, mean $\\pm$ standard "
        f"deviation over {numbers['setting.seeds']} seeds. Best method on noisy labels in bold; \\emph{{Clean}} was "
        "trained without label noise.",
        columns="@{}l" + "c" * 8 + "@{}",
        header=(
            "& \\multicolumn{4}{c}{Symmetric noise} & \\multicolumn{4}{c}{Asymmetric noise} \\\\",
            "\\cmidrule(lr){2-5}\\cmidrule(l){6-9}",
            " & ".join(["Method", *(TITLES[p] for p in PROBLEMS * 2)]) + " \\\\",
        ),
        rows=rows,
        rules_before={5: "\\midrule"},
        setup="\\footnotesize\\setlength{\\tabcolsep}{3.2pt}",
    )


def _ablation_table(numbers: Numbers) -> str:
    columns = [(noise, problem) for noise in NOISES for problem in ("rings", "spirals")]
    keys = [key for key, _ in VARIANTS.values()]
    top = {c: best([numbers[f"ablation.{c[0]}.{c[1]}.{k}"] for k in keys]) for c in columns}
    rows = []
    for key, title in VARIANTS.values():
        texts = [(c, numbers[f"ablation.{c[0]}.{c[1]}.{key}"]) for c in columns]
        rows.append([title, *(bold_if(text == top[c], text) for c, text in texts)])
    return table(
        label="tab:ablation",
        caption="Ablation of CAW: mean test accuracy (\\%) when one part is removed or replaced.",
        columns="@{}lcccc@{}",
        header=(
            "& \\multicolumn{2}{c}{Symmetric} & \\multicolumn{2}{c}{Asymmetric} \\\\",
            "\\cmidrule(lr){2-3}\\cmidrule(l){4-5}",
            "Variant & Rings & Spirals & Rings & Spirals \\\\",
        ),
        rows=rows,
        rules_before={1: "\\midrule"},
    )


def _size_table(numbers: Numbers) -> str:
    methods = ("plain", "enn", "caw")
    top = {s: best([numbers[f"size.{s}.{m}"] for m in methods]) for s in SIZES}
    rows = [
        [METHODS[m], *(bold_if(numbers[f"size.{s}.{m}"] == top[s], numbers[f"size.{s}.{m}"]) for s in SIZES)]
        for m in methods
    ]
    return table(
        label="tab:size",
        caption="Mean test accuracy (\\%) on Spirals with 40\\% asymmetric noise by number of training points.",
        columns="@{}lcccc@{}",
        header=(
            "& \\multicolumn{4}{c}{Training points $n$} \\\\",
            "\\cmidrule(l){2-5}",
            "Method & 200 & 400 & 800 & 1600 \\\\",
        ),
        rows=rows,
    )


def _hyper_table(numbers: Numbers) -> str:
    rows = [
        ["Regularisation strength", "$\\lambda$", numbers["setting.ridge"]],
        ["Number of random features", "$D$", numbers["setting.features"]],
        ["Kernel bandwidth", "$\\sigma$", numbers["setting.bandwidth"]],
        ["Temperature of the weights", "$\\tau$", numbers["setting.temperature"]],
        ["Tail fraction of the centring", "$\\alpha$", numbers["setting.tail"]],
        ["Huber threshold", "$\\delta$", numbers["setting.huber_delta"]],
        ["Iterations of Huber regression", "", numbers["setting.huber_rounds"]],
    ]
    return table(
        label="tab:hyper",
        caption="Hyper-parameters of all experiments.",
        columns="@{}lcc@{}",
        header=("Hyper-parameter & Symbol & Value \\\\",),
        rows=rows,
        place="!ht",
    )


def _noise_table(numbers: Numbers) -> str:
    methods = ("plain", "trim", "enn", "caw")
    rows = []
    for rate in RATES:
        texts = [numbers[f"noise.{rate}.{m}"] for m in methods]
        rows.append([f"{100 * float(rate):.0f}", *(bold_if(text == best(texts), text) for text in texts)])
    return table(
        label="tab:noise",
        caption="Mean test accuracy (\\%) on Rings by rate $\\rho$ of symmetric noise.",
        columns="@{}lcccc@{}",
        header=("$\\rho$ (\\%) & Plain & Trimming & ENN & CAW (ours) \\\\",),
        rows=rows,
        place="!ht",
    )


def _noise_figure(numbers: Numbers) -> str:
    styles = {"plain": "black!55,mark=o", "trim": "orange!85!black,mark=triangle*", "enn": "teal,mark=square*",
              "caw": "blue!75!black,very thick,mark=*"}  # fmt: skip
    plots = []
    for method, style in styles.items():
        points = " ".join(f"({rate},{numbers.value(f'noise.{rate}.{method}'):.2f})" for rate in RATES)
        plots.append(f"\\addplot[{style}] coordinates {{{points}}};\\addlegendentry{{{METHODS[method]}}}\n")
    return (
        "\\begin{tikzpicture}\n\\begin{axis}[width=0.72\\linewidth,height=5.2cm,xlabel={Noise rate $\\rho$},"
        "ylabel={Test accuracy (\\%)},xtick={0,0.1,0.2,0.3,0.4},ytick={70,75,80,85,90,95},ymin=66,ymax=98,"
        "grid=major,grid style={black!10},legend pos=south west,legend style={font=\\footnotesize,draw=black!20},"
        "label style={font=\\small},tick label style={font=\\footnotesize},legend cell align=left]\n"
        f"{''.join(plots)}\\end{{axis}}\n\\end{{tikzpicture}}\n"
    )


AGREEMENT = Example(
    name="agreement-weights",
    runs=(
        ("experiments/run_benchmark.py", "--config", "configs/benchmark.yaml"),
        ("experiments/run_ablation.py", "--config", "configs/ablation.yaml"),
        ("experiments/run_noise_sweep.py", "--config", "configs/noise_sweep.yaml"),
        ("experiments/run_sample_size.py", "--config", "configs/sample_size.yaml"),
    ),
    collect=collect,
    fragments=fragments,
    keep={
        "results/benchmark.csv": "repository/results/benchmark.csv",
        "results/noise_sweep.csv": "repository/results/noise_sweep.csv",
        "results/ablation.csv": "history/2-ablation/results/ablation.csv",
    },
    image_pages=(-1,),
)
