from __future__ import annotations

import ast

from pipeline.task import SourceScript, Usage
from pipeline.tracing import trace
from pipeline.tracing.focus import drop_unrelated
from tests.pipeline.locator.repositories import make

BODY = "\n".join(f"    step_{number} = {number}" for number in range(8))
SEVERAL = f'''
from lib import shared
def load_text(path):
    """Load text."""
{BODY}
    return path
def exp1_accuracy(out):
    """Error of the estimate against the true rate."""
{BODY}
    return shared("error")
def exp2_order(out):
    """R² by Markov order."""
{BODY}
    return shared("R2")
def exp3_classify(data, out):
    """Adjusted Rand index on tunnels."""
{BODY}
    return "ari"
def draw_figures(out):
    """All figures."""
{BODY}
    return out
def main():
    texts = load_text("x")
    datasets = {{"text": texts}}
    passed = []
    passed.append(exp1_accuracy("out"))
    report = exp2_order("out")
    exp3_classify(datasets, "out")
    draw_figures("out")
    print(report)
if __name__ == "__main__":
    main()
'''


def dropped(source: str, about: str) -> tuple[str, ...]:
    return drop_unrelated(ast.parse(source), about)


def test_only_the_experiment_that_the_task_is_about_is_kept() -> None:
    """Seen: a table of R² by Markov order came with the steps of six other experiments of the same script."""
    assert dropped(SEVERAL, "How does R2 change with the Markov order?") == (
        "draw_figures", "exp1_accuracy", "exp3_classify",
    )  # fmt: skip
    assert dropped(SEVERAL, "Which adjusted Rand index is reached on tunnels?") == (
        "draw_figures", "exp1_accuracy", "exp2_order",
    )  # fmt: skip


def test_everything_stays_when_nothing_stands_out_or_calls_feed_each_other() -> None:
    assert dropped(SEVERAL, "Something else altogether, with none of these in it") == ()
    pipeline = SEVERAL.replace("exp3_classify(datasets", "exp3_classify(report").replace(
        "passed.append", "report = str"
    )
    assert "exp2_order" not in dropped(pipeline, "Adjusted Rand index on tunnels")
    assert dropped("def a():\n    return 1\na()\n", "a") == ()


def test_requirements_follow_the_question_and_the_environment_does_not(tmp_path) -> None:
    files = {
        "run.py": SEVERAL,
        "lib.py": "def shared(name):\n    value = name\n    print(value)\n    value += name\n    return value\n",
    }
    snapshot = make(tmp_path, files)
    sources = [SourceScript(path="run.py", role="entry", score=1.0)]
    usage = [Usage(argv=("python", "run.py"), reason="")]
    about = trace(snapshot, sources, usage, about="How does R2 change with the Markov order?")
    whole = trace(snapshot, sources, usage)
    texts = " ".join(item.text for item in about.requirements)
    assert "(exp2_order)" in texts
    assert "(load_text)" in texts
    assert "(shared)" in texts
    assert "exp1_accuracy" not in texts
    assert "draw_figures" not in texts
    assert "draw_figures" in " ".join(item.text for item in whole.requirements)
    assert about.reached == whole.reached
    (problem,) = about.problems
    assert problem.message.endswith("draw_figures, exp1_accuracy, exp3_classify")


def test_steps_that_say_nothing_are_left_out(tmp_path) -> None:
    source = (
        "import os, subprocess\n"
        "subprocess.check_call(['pip', 'install', 'x'])\n\n"
        "os.makedirs('out', exist_ok=True)\n\n"
        "value = 3\nother = value + 1\nprint(f'{value}')\n\n"
        "def fit(a):\n    def inner(b):\n        c = b\n        d = c\n        e = d\n        f = e\n        return f\n"
        "    g = inner(a)\n    h = g + 1\n    i = h + 1\n    return i\n\n"
        "# Fit the model\nresult = fit(value)\nprint(result)\n"
    )
    snapshot = make(tmp_path, {"run.py": source})
    found = trace(
        snapshot, [SourceScript(path="run.py", role="entry", score=1.0)], [Usage(argv=("python", "run.py"), reason="")]
    )
    texts = [item.text for item in found.requirements]
    assert [text for text in texts if "fit" in text.lower()]
    assert not [text for text in texts if text.startswith(("Print the results", "Create the output", "Set ", "Inner"))]
