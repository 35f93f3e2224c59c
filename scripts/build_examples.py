"""Build or check the worked examples in datasets/examples: run the experiments, then render everything from numbers.

    python scripts/build_examples.py            # needs numpy, scipy, PyYAML and pdflatex
    python scripts/build_examples.py --check    # runs the experiments again; no LaTeX; changes nothing

No number of a paper, README, notebook or results file is typed by hand. `--check` fails when what is committed is not
what the code computes now, or when the PDF shows another number than its sources state.
"""

from __future__ import annotations

import argparse
import hashlib
import json
import sys
import tempfile
from pathlib import Path

from examples_agreement import AGREEMENT
from examples_common import Example, ExampleError, Numbers, render_templates, run_experiments
from examples_conformal import CONFORMAL
from examples_papers import check_pdf, compile_paper, numbers_macros

ALL = {example.name: example for example in (AGREEMENT, CONFORMAL)}


def generated(example: Example, numbers: Numbers, ran: Path) -> dict[Path, str]:
    """Every generated text file of an example except numbers.json, by path relative to the example."""
    texts = render_templates(example, numbers, ran)
    texts[Path("paper/numbers.tex")] = numbers_macros(numbers)
    for name, text in example.fragments(numbers).items():
        texts[Path("paper/tables") / name] = text
    for produced, kept in example.keep.items():
        texts[Path(kept)] = (ran / produced).read_text(encoding="utf-8")
    return texts


def numbers_text(example: Example, numbers: Numbers, pdf: bytes) -> str:
    """The content of numbers.json."""
    record = {
        "example": example.name,
        "paper_sha256": hashlib.sha256(pdf).hexdigest(),
        "commands": [["python", *run] for run in example.runs],
        "numbers": numbers.as_json(),
    }
    return json.dumps(record, indent=1, ensure_ascii=False) + "\n"


def build(example: Example, python: str) -> None:
    """Run the experiments and write all generated files and the PDF."""
    with tempfile.TemporaryDirectory(prefix="expbench-example-") as directory:
        work = Path(directory)
        ran = run_experiments(example, work, python)
        numbers = example.collect(ran)
        for path, text in generated(example, numbers, ran).items():
            target = example.root / path
            target.parent.mkdir(parents=True, exist_ok=True)
            target.write_text(text, encoding="utf-8")
        pdf, complaints = compile_paper(example.root / "paper", work, example.image_pages)
    (example.root / "paper.pdf").write_bytes(pdf)
    (example.root / "numbers.json").write_text(numbers_text(example, numbers, pdf), encoding="utf-8")
    for complaint in complaints:
        sys.stderr.write(f"{example.name}: {complaint}\n")
    problems = check(example, python)
    if problems:
        raise ExampleError("\n".join(problems))


def check(example: Example, python: str) -> list[str]:
    """Every difference between what is committed and what is computed now."""
    problems = []
    with tempfile.TemporaryDirectory(prefix="expbench-example-") as directory:
        ran = run_experiments(example, Path(directory), python)
        numbers = example.collect(ran)
        for path, text in generated(example, numbers, ran).items():
            target = example.root / path
            if not target.is_file():
                problems.append(f"{example.name}: {path} is missing")
            elif target.read_text(encoding="utf-8") != text:
                problems.append(f"{example.name}: {path} is not what the experiments give now")
        pdf = example.root / "paper.pdf"
        if (example.root / "numbers.json").read_text(encoding="utf-8") != numbers_text(
            example, numbers, pdf.read_bytes()
        ):
            problems.append(
                f"{example.name}: numbers.json is not what the experiments give now, or of another paper.pdf"
            )
    source = example.root / "paper"
    found = check_pdf(pdf, source, numbers, example.image_pages)
    problems += [f"{example.name}: paper.pdf: {problem}" for problem in found]
    problems += strays(example, numbers)
    return problems


def strays(example: Example, numbers: Numbers) -> list[str]:
    """Claimed numbers in files that no reader would take for a statement of results (configs, library code)."""
    claims = {n.text for n in numbers.by_id.values() if n.value is not None and len(n.text.replace(".", "")) > 2}
    allowed = {str(path) for path in generated_names(example)}
    problems = []
    for root in ("repository", "submodules"):
        for path in sorted((example.root / root).rglob("*")):
            relative = str(path.relative_to(example.root))
            if not path.is_file() or relative in allowed or "__pycache__" in relative:
                continue
            text = path.read_text(encoding="utf-8")
            words = set(text.replace(",", " ").replace("(", " ").replace(")", " ").replace("=", " ").split())
            problems += [f"{example.name}: {relative} holds the claimed number {w}" for w in sorted(words & claims)]
    return problems


def generated_names(example: Example) -> list[Path]:
    """Files that state results on purpose."""
    templates = example.root / "templates"
    names = [path.relative_to(templates).with_suffix("") for path in templates.rglob("*.j2")]
    return [*names, *(Path(kept) for kept in example.keep.values())]


def main() -> int:
    """Command line."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("names", nargs="*", metavar="NAME", help=f"examples (default: all of {', '.join(ALL)})")
    parser.add_argument("--check", action="store_true", help="change nothing; exit code 1 when something differs")
    parser.add_argument("--python", default=sys.executable, help="interpreter that runs the experiments")
    args = parser.parse_args()
    if unknown := sorted(set(args.names) - set(ALL)):
        parser.error(f"unknown example {unknown[0]}; known: {', '.join(ALL)}")
    problems: list[str] = []
    for name in args.names or ALL:
        try:
            if args.check:
                problems += check(ALL[name], args.python)
            else:
                build(ALL[name], args.python)
        except ExampleError as error:
            problems.append(str(error))
    for problem in problems:
        sys.stderr.write(f"{problem}\n")
    return 1 if problems else 0


if __name__ == "__main__":
    sys.exit(main())
