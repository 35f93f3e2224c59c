from __future__ import annotations

from pathlib import Path

import pytest

from benchmarks.judges.code_variants import code_variants
from evaluation.integrity.material import load_material
from evaluation.judges.features import Features, coverage, features_of_code, features_of_text
from evaluation.judges.implementation import judge_implementation
from evaluation.judges.judge import judge
from evaluation.judges.units import live_units, units_of
from evaluation.task import EvaluationTask
from evaluation.verdicts import ItemVerdict
from pipeline.errors import ExpbenchError
from pipeline.files import write_text
from pipeline.progress import SilentReporter
from pipeline.task import Requirement, SourceScript, Verdict
from tests.evaluation.integrity.episodes import Made
from tests.evaluation.integrity.world import KEPT, MASKED

REWRITE = """import json

from robust.data import draw
from robust.estimators import mean, median, trimmed_mean

CANDIDATES = [("mean", mean), ("median", median), ("trimmed", trimmed_mean)]


def risk(function, settings, rate):
    collected = [function(draw(settings["n"], rate, seed=1000 + k)) ** 2 for k in range(settings["repetitions"])]
    return sum(collected) / len(collected)


if __name__ == "__main__":
    with open("configs/study.json") as handle:
        settings = json.load(handle)
    lines = []
    for rate in settings["rates"]:
        for label, function in CANDIDATES:
            mse = risk(function, settings, rate)
            lines.append((label, rate, mse))
            print(f"estimator={label} rate={rate} mse={mse:.4f}")
    with open("results.csv", "w") as handle:
        for label, rate, mse in lines:
            handle.write(f"{label},{rate},{mse:.4f}\\n")
"""
PARTIAL = """from robust.data import draw
from robust.estimators import median

for rate in (0.0, 0.1):
    print(rate, median(draw(60, rate, seed=1)))
"""


def _judged(task: EvaluationTask, made: Made, root: Path) -> tuple[ItemVerdict, ...]:
    assert task.truth is not None
    folder, submission = made.write(root)
    return judge_implementation(task.truth, load_material(task, folder, submission))


def _met(items: tuple[ItemVerdict, ...]) -> list[int]:
    return [number for number, item in enumerate(items, 1) if item.verdict is Verdict.PASS]


def test_the_original_meets_everything(task: EvaluationTask, tmp_path: Path) -> None:
    assert len(_met(_judged(task, Made(files=dict(MASKED)), tmp_path / "e"))) == 7


def test_a_second_implementation_meets_everything(task: EvaluationTask, tmp_path: Path) -> None:
    made = Made(
        files={"study.py": REWRITE, "configs/study.json": MASKED["configs/study.json"]}, reproduce="python study.py\n"
    )
    assert len(_met(_judged(task, made, tmp_path / "e"))) == 7


def test_nothing_meets_nothing(task: EvaluationTask, tmp_path: Path) -> None:
    items = _judged(task, Made(files={}, reproduce="", response={}), tmp_path / "e")
    assert {item.verdict for item in items} == {Verdict.FAIL}


def test_a_patch_that_was_not_kept_is_unknown_and_not_nothing(task: EvaluationTask, tmp_path: Path) -> None:
    assert task.truth is not None
    folder, submission = Made(files=dict(MASKED)).write(tmp_path / "e")
    (folder.submission / "patch.diff").unlink()
    kept = submission.evolve(patch_sha256="0" * 64)
    items = judge_implementation(task.truth, load_material(task, folder, kept))
    assert {item.verdict for item in items} == {Verdict.UNKNOWN}


def test_a_part_meets_a_part(task: EvaluationTask, tmp_path: Path) -> None:
    items = _judged(task, Made(files={"part.py": PARTIAL}, reproduce="python part.py\n"), tmp_path / "e")
    assert _met(items) == [5, 6]


@pytest.mark.parametrize("reproduce", ["", "echo done\n", "python -m pytest tests\n", "python robust/estimators.py\n"])
def test_what_was_left_does_not_count_unless_it_is_used(reproduce: str, task: EvaluationTask, tmp_path: Path) -> None:
    made = Made(files={"notes.md": "draw, median, trimmed_mean, results.csv"}, reproduce=reproduce)
    assert _met(_judged(task, made, tmp_path / "e")) == []


def test_quotes_of_met_requirements_exist_in_the_patch(task: EvaluationTask, tmp_path: Path) -> None:
    made = Made(
        files={"study.py": REWRITE, "configs/study.json": MASKED["configs/study.json"]}, reproduce="python study.py\n"
    )
    for item in _judged(task, made, tmp_path / "e"):
        assert item.quote
        assert item.quote in REWRITE or item.quote in made.reproduce or item.quote in MASKED["configs/study.json"]
        assert item.where


def test_order_of_requirements_has_no_say(task: EvaluationTask, tmp_path: Path) -> None:
    made = Made(files={"part.py": PARTIAL}, reproduce="python part.py\n")
    assert task.truth is not None
    turned = task.evolve(truth=task.truth.evolve(requirements=tuple(reversed(task.truth.requirements))))
    first = {item.text: item.verdict for item in _judged(task, made, tmp_path / "a")}
    assert {item.text: item.verdict for item in _judged(turned, made, tmp_path / "b")} == first


@pytest.mark.parametrize(
    ("text", "verdict"),
    [
        ("Draw samples with `draw` for each rate and compute `trimmed_mean` and `median`", Verdict.PASS),
        ("Fine-tune the transformer with LoRA rank 16 using `peft` and AdamW for 3 epochs", Verdict.FAIL),
        ("Do it", Verdict.UNKNOWN),
    ],
)
def test_requirements_in_words_only(text: str, verdict: Verdict, task: EvaluationTask, tmp_path: Path) -> None:
    assert task.truth is not None
    worded = task.evolve(truth=task.truth.evolve(requirements=(Requirement(text=text, spans=()),)))
    (item,) = _judged(worded, Made(files={"study.py": REWRITE}, reproduce="python study.py\n"), tmp_path / "e")
    assert item.verdict is verdict, item.reason


def test_a_published_task_without_any_repository_is_judged_by_words(task: EvaluationTask, tmp_path: Path) -> None:
    bare = task.evolve(masked_repository=None, original_tree=None)
    assert len(_judged(bare, Made(files={"study.py": REWRITE}, reproduce="python study.py\n"), tmp_path / "e")) == 7


def test_judgement_is_labelled_and_says_what_went_wrong(task: EvaluationTask, tmp_path: Path) -> None:
    folder, submission = Made(files={"part.py": PARTIAL}, reproduce="python part.py\n").write(tmp_path / "e")
    judgement = judge(task, folder, submission, client=None, reporter=SilentReporter())
    assert (judgement.grader.engine, judgement.grader.model) == ("keyless", None)
    assert {phase for phase, _ in judgement.error_analysis} == {"implementation"}
    assert {item.verdict for item in (*judgement.design, *judgement.conclusion)} == {Verdict.PASS}


def test_a_task_without_truth_and_a_panel_without_model_are_refused(task: EvaluationTask, tmp_path: Path) -> None:
    folder, submission = Made().write(tmp_path / "e")
    with pytest.raises(ExpbenchError, match="no ground truth"):
        judge(task.evolve(truth=None), folder, submission, client=None, reporter=SilentReporter())
    with pytest.raises(ExpbenchError, match="panel"):
        judge(task, folder, submission, client=None, panel=3, reporter=SilentReporter())


SIBLING = """import json

from robust.data import draw
from robust.estimators import mean, median, trimmed_mean

ESTIMATORS = {"mean": mean, "median": median, "trimmed": trimmed_mean}


def squared_errors(estimator, settings, n):
    errors = []
    for repetition in range(settings["repetitions"]):
        sample = draw(n, 0.05, seed=1000 + repetition)
        errors.append(estimator(sample) ** 2)
    return errors


if __name__ == "__main__":
    with open("configs/sizes.json") as stream:
        settings = json.load(stream)
    for n in settings["sizes"]:
        for name, estimator in ESTIMATORS.items():
            errors = squared_errors(estimator, settings, n)
            print(f"estimator={name} n={n} mse={sum(errors) / len(errors):.4f}")
"""
SIZES = '{"repetitions": 80, "sizes": [10, 20, 40]}\n'


@pytest.fixture
def with_sibling(task: EvaluationTask, tmp_path: Path) -> EvaluationTask:
    """The task in a repository that also has a study of sample sizes, which was left."""
    assert task.truth is not None
    trees = {}
    for name, files in (("masked", KEPT), ("original", {**KEPT, **MASKED})):
        trees[name] = tmp_path / name
        for path, text in {**files, "run_sizes.py": SIBLING, "configs/sizes.json": SIZES}.items():
            write_text(trees[name] / path, text)
    sources = tuple(SourceScript(path=path, role="entry", score=1.0) for path in MASKED)
    return task.evolve(
        masked_repository=trees["masked"], original_tree=trees["original"],
        truth=task.truth.evolve(sources=sources),
    )  # fmt: skip


def test_a_copy_of_a_sibling_experiment_meets_nothing(with_sibling: EvaluationTask, tmp_path: Path) -> None:
    made = Made(files={"study.py": SIBLING, "configs/sizes.json": SIZES}, reproduce="python study.py\n")
    items = _judged(with_sibling, made, tmp_path / "e")
    assert _met(items) == []
    assert "study.py is a copy of run_sizes.py, another experiment" in items[0].reason
    assert "rates" in items[0].reason


def test_a_sibling_that_was_adapted_is_judged_like_any_other(with_sibling: EvaluationTask, tmp_path: Path) -> None:
    adapted = SIBLING.replace("sizes", "rates").replace("draw(n, 0.05", "draw(settings['n'], n").replace("n=", "rate=")
    settings = {"configs/rates.json": '{"n": 60, "repetitions": 80, "rates": [0.0, 0.1, 0.2]}\n'}
    made = Made(files={"study.py": adapted, **settings}, reproduce="python study.py\n")
    assert len(_met(_judged(with_sibling, made, tmp_path / "e"))) >= 5


def test_work_of_ones_own_is_no_copy(with_sibling: EvaluationTask, tmp_path: Path) -> None:
    for files, reproduce in (
        (dict(MASKED), "python run_study.py\n"),
        ({"study.py": REWRITE, "configs/study.json": MASKED["configs/study.json"]}, "python study.py\n"),
    ):
        items = _judged(with_sibling, Made(files=files, reproduce=reproduce), tmp_path / reproduce.split()[1])
        assert len(_met(items)) == 7


def test_where_nothing_tells_them_apart_only_a_verbatim_copy_is_called_one(
    with_sibling: EvaluationTask, tmp_path: Path
) -> None:
    assert with_sibling.truth is not None
    untold = with_sibling.evolve(truth=with_sibling.truth.evolve(sources=()))
    copy = Made(files={"study.py": SIBLING}, reproduce="python study.py\n")
    assert _met(_judged(untold, copy, tmp_path / "copy")) == []
    for number, changed in enumerate((
        Made(files={"study.py": SIBLING}, reproduce="python study.py --rates 0.1\n"),
        Made(files={"study.py": SIBLING, "configs/sizes.json": "{}\n"}, reproduce="python study.py\n"),
        Made(files={"study.py": SIBLING.replace("0.05", "0.2")}, reproduce="python study.py\n"),
    )):  # fmt: skip
        assert _met(_judged(untold, changed, tmp_path / f"changed-{number}"))


def test_coverage_of_itself_is_one_and_of_nothing_is_zero() -> None:
    found = features_of_code("for x in load('a', rate=0.25):\n    fit(x)")
    assert coverage(found, found) == 1.0
    assert coverage(found, Features()) == 0.0
    assert coverage(features_of_text("Do it"), found) == 0.0


# --- the same code, changed ------------------------------------------------------------------------------------------


def _with(task: EvaluationTask, files: dict[str, str], root: Path) -> tuple[ItemVerdict, ...]:
    return _judged(task, Made(files=files), root)


def test_what_is_computed_in_another_way_is_met_and_what_was_taken_out_is_not(
    task: EvaluationTask, tmp_path: Path
) -> None:
    assert task.truth is not None
    judged = 0
    for number, variant in enumerate(code_variants(MASKED, task.truth.requirements)):
        items = _with(task, variant.files, tmp_path / str(number))
        if variant.gone is None:
            assert {item.verdict for item in items} == {Verdict.PASS}, variant.kind
        else:
            assert items[variant.gone].verdict is Verdict.FAIL, (variant.kind, items[variant.gone])
        judged += 1
    assert judged >= 15


@pytest.mark.parametrize(
    "hidden",
    [
        "def squared_errors(estimator, settings, rate):\n    return [0.0]\n    {body}\n",
        "def squared_errors(estimator, settings, rate):\n    if False:\n        {body}\n    return [0.0]\n",
        "def never_called(estimator, settings, rate):\n    {body}\n\n\ndef squared_errors(*_):\n    return [0.0]\n",
        "def squared_errors(*_):\n    '''{body}'''\n    return [0.0]\n",
    ],
)
def test_code_that_cannot_run_implements_nothing(hidden: str, task: EvaluationTask, tmp_path: Path) -> None:
    lines = MASKED["run_study.py"].split("\n")
    start = lines.index("def squared_errors(estimator, settings, rate):")
    body = lines[start + 2 : start + 7]
    assert body[-1].strip() == "return errors"
    indent = "\n" + ("        " if "if False" in hidden else "    ")
    text = hidden.replace("{body}", indent.join(line.removeprefix("    ") for line in body))
    changed = "\n".join([*lines[:start], text, *lines[start + 7 :]])
    items = _with(task, {**MASKED, "run_study.py": changed}, tmp_path / "e")
    assert items[0].verdict is Verdict.FAIL, items[0]


def test_a_hook_that_a_framework_calls_is_alive() -> None:
    text = (
        "class Net(Module):\n    def forward(self, x):\n        return x\n\n\n"
        "class Plain:\n    def unused(self):\n        pass\n"
    )
    names = {unit.name for unit in live_units(units_of("net.py", text), named=())}
    assert names == {"forward", "Net", "Plain"}


def test_code_that_does_not_parse_is_read_without_its_comments() -> None:
    units = units_of("x.py", "def broken(:\n    fit(a)\n# ridge(b)\n\ndef second(c):\n    return lasso(c)\n")
    assert [unit.name for unit in units] == ["broken", "second"]
    assert not any("call:ridge" in unit.features.weights for unit in units)
