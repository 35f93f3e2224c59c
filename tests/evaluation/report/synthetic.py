"""Synthetic runs on disk, in the form of `expbench evaluate`: for tests of reports and for the benchmark. Deterministic.

Not a stand-in for real episodes: the values are drawn, so that reports have something of every kind to show.
"""

from __future__ import annotations

import random
from collections.abc import Sequence
from pathlib import Path

from evaluation.episode import AgentOutcome, EpisodeFolder, EpisodeState, Step
from evaluation.scores import EpisodeScores, EpisodeStatus
from evaluation.submission import ChangedFile, Conclusion, Response, ResponseDesign, Submission
from evaluation.trajectory import (
    CommandRun,
    End,
    Event,
    FileChange,
    ModelCall,
    ModelTurn,
    TokenUsage,
    ToolUse,
    TrajectoryHead,
    Utterance,
)
from evaluation.verdicts import (
    ExecutionReport,
    Finding,
    Grader,
    IntegrityReport,
    ItemVerdict,
    Judgement,
    NumberTrace,
    ViolationKind,
)
from pipeline.schema import StoredRecord
from pipeline.task import Family, Verdict

CATEGORIES = ("RL", "CV", "Language", "Generative Models", "Time Series", "Causality", "")
ERRORS = (
    ("execution", "ModuleNotFoundError: No module named 'flax'"),
    ("execution", "FileNotFoundError: [Errno 2] No such file or directory: '/work/checkpoints/model_{n}.pt'"),
    ("execution", "RuntimeError: The size of tensor a ({n}) must match the size of tensor b (64) at dimension 1"),
    ("design", "the independent variable `noise level` is missing"),
    ("implementation", "requirement 2 (evaluate AUC on the test split) is not implemented"),
    ("conclusion", "no conclusion was given"),
)
GRADER = Grader(engine="keyless")


def write(path: Path, record: StoredRecord) -> None:
    path.parent.mkdir(parents=True, exist_ok=True)
    path.write_text(record.model_dump_json())


def scores_row(**changes: object) -> EpisodeScores:
    """A scored row with nothing known; `changes` are fields."""
    base: dict[str, object] = {
        "run": "run", "task": "paper-task", "family": Family.EXPERIMENT, "paper": "paper", "agent": "agent",
        "repeat": 0, "status": EpisodeStatus.SCORED,
    }  # fmt: skip
    return EpisodeScores.model_validate(base | changes)


def write_run(
    root: Path,
    *,
    agent: str = "openhands",
    model: str | None = "model-a",
    tasks: int = 12,
    repeats: int = 1,
    papers: int = 5,
    events: int = 12,
    skill: float = 0.4,
    cost: float = 0.5,
    seed: int = 0,
    secret: str = "SECRET-TRUTH",
    texts: Sequence[str] = (),
) -> Path:
    """A run of `tasks * repeats` episodes; returns `root`. `texts` are woven into everything an agent can write."""
    generator = random.Random(seed)
    for number in range(tasks):
        paper = f"paper-{number % papers}"
        for repeat in range(repeats):
            folder = EpisodeFolder(root / "episodes" / f"{paper}-task-{number}" / str(repeat))
            write_episode(
                folder, generator, run=root.name, agent=agent, model=model, paper=paper,
                task=f"{paper}-task-{number}", category=CATEGORIES[number % papers % len(CATEGORIES)], repeat=repeat,
                events=events, skill=skill, cost=cost, secret=secret, texts=texts,
            )  # fmt: skip
    return root


def write_episode(
    folder: EpisodeFolder, generator: random.Random, *, run: str, agent: str, model: str | None, paper: str, task: str,
    category: str, repeat: int, events: int, skill: float, cost: float, secret: str, texts: Sequence[str],
) -> None:  # fmt: skip
    """All records of one episode."""
    said = " ".join(texts)
    fate = generator.random()
    status = EpisodeStatus.SCORED if fate > 0.06 else EpisodeStatus.BLOCKED if fate > 0.03 else EpisodeStatus.UNKNOWN
    judgement = _judgement(generator, skill, secret, said)
    passed = generator.random() < 0.85
    executed = None if not passed or generator.random() < 0.1 else generator.random() < skill
    usage = TokenUsage(input_tokens=generator.randint(10_000, 900_000), output_tokens=generator.randint(500, 40_000))
    spent = round(cost * generator.uniform(0.3, 2.0), 4)
    wall = round(generator.uniform(60, 2400), 1)
    scored = status is EpisodeStatus.SCORED
    design = _share(judgement.design)
    implementation = _share(judgement.implementation)
    write(
        folder.scores,
        scores_row(
            run=run, task=task, paper=paper, category=category, agent=agent, model=model, repeat=repeat, status=status,
            reason="" if scored else "no repository at hand" if status is EpisodeStatus.BLOCKED else "sandbox_broken",
            monitor=float(passed) if scored else None,
            design=design if scored else None,
            implementation=implementation if scored else None,
            execution=float(executed) if scored and executed is not None else None,
            execution_checked=scored and executed is not None,
            conclusion=float(all(item.verdict is Verdict.PASS for item in judgement.conclusion)) if scored else None,
            cost_usd=spent, input_tokens=usage.input_tokens, output_tokens=usage.output_tokens, model_calls=events // 3,
            wall_s=wall, limits=("wall_time",) if wall > 2300 else (), lock=f"lock-{task}",
            graders=(("integrity", GRADER), ("judge", GRADER)) if scored else (),
        ),
    )  # fmt: skip
    write(
        folder.state,
        EpisodeState(
            run=run, task=task, agent=agent, repeat=repeat, finished=tuple(Step), attempts=1,
            outcome=AgentOutcome(reason="finished", exit_code=0, wall_s=wall, usage=usage, cost_usd=spent),
        ),
    )  # fmt: skip
    _trajectory(folder, generator, task, agent, model, events, said)
    write(folder.judgement, judgement)
    _integrity(folder, passed, secret, said)
    _execution(folder, generator, executed, said)
    _submission(folder, said)


def _share(items: Sequence[ItemVerdict]) -> float | None:
    if any(item.verdict is Verdict.UNKNOWN for item in items):
        return None
    return sum(item.verdict is Verdict.PASS for item in items) / len(items)


def _judgement(generator: random.Random, skill: float, secret: str, said: str) -> Judgement:
    def verdict() -> Verdict:
        draw = generator.random()
        return Verdict.UNKNOWN if draw > 0.99 else Verdict.PASS if draw < skill else Verdict.FAIL

    def item(name: str, text: str) -> ItemVerdict:
        return ItemVerdict(
            item=name, text=f"{text} {secret}", verdict=verdict(), reason=f"expected {secret}; the patch says otherwise",
            quote=f"lr = 0.1 {said}", where="patch: run.py:3",
        )  # fmt: skip

    names = ("constant:data set", "independent:noise level", "dependent:AUC")
    steps = (
        "load the data set with the given split",
        "train for 10 epochs with Adam",
        "evaluate AUC on the test split",
    )
    errors = tuple(
        (phase, text.format(n=generator.randint(1, 99))) for phase, text in ERRORS if generator.random() < 0.4
    )
    return Judgement.model_validate(
        {
            "design": [item(name, f"variable {name}") for name in names],
            "implementation": [item(f"requirement:{index}", step) for index, step in enumerate(steps)],
            "conclusion": [item("meaning", "the method beats the baseline")],
            "grader": GRADER,
            "error_analysis": errors,
        }
    )


def _trajectory(
    folder: EpisodeFolder, generator: random.Random, task: str, agent: str, model: str | None, events: int, said: str
) -> None:
    rows: list[Event] = [
        Utterance(seq=0, at=0.0, role="user", text=f"# Experiment\n\nDoes noise in {task} lower the AUC?\n{said}")
    ]
    while len(rows) < events - 1:
        at, step = 3.5 * len(rows), len(rows)
        usage = TokenUsage(input_tokens=1000 + step, output_tokens=80)
        rows.append(
            ModelTurn(
                seq=len(rows), at=at, text=f"Step {step}: I look at the files. {said}", reasoning=f"Hm. {said}",
                tool_uses=(ToolUse(id=f"call-{step}", name="bash", arguments={"command": f"python run.py --n {step}"}),),
                model=model, usage=usage,
            )
        )  # fmt: skip
        rows.append(
            ModelCall(
                seq=len(rows), at=at, endpoint="/v1/chat/completions", status=200, model=model, usage=usage,
                cost_usd=0.01, duration_s=2.0,
            )
        )  # fmt: skip
        failed = generator.random() < 0.3
        rows.append(
            CommandRun(
                seq=len(rows), at=at + 1, call=f"call-{step}", command=f"python run.py --n {step} {said}",
                output="\n".join(f"epoch {epoch}: auc={0.5 + epoch / 100:.3f}" for epoch in range(20)) + said,
                exit_code=int(failed), duration_s=1.5,
            )
        )  # fmt: skip
        rows.append(
            FileChange(seq=len(rows), at=at + 2, path="run.py", action="edited", text=f"+lr = 0.{step}\n{said}")
        )
    rows = rows[: events - 1]
    rows.append(End(seq=len(rows), at=3.5 * len(rows), reason="finished", exit_code=0))
    head = TrajectoryHead(episode=f"{task}/0", agent=agent, model=model)
    folder.trajectory.parent.mkdir(parents=True, exist_ok=True)
    folder.trajectory.write_text("".join(f"{record.model_dump_json()}\n" for record in [head, *rows]))


def _integrity(folder: EpisodeFolder, passed: bool, secret: str, said: str) -> None:
    finding = Finding(
        kind=ViolationKind.FABRICATED_RESULT, verdict=Verdict.FAIL, events=(3,), where="event 3", quote=f"auc=0.91 {said}",
        reason=f"0.91 is in no command's output; {secret} was expected",
    )  # fmt: skip
    write(
        folder.integrity,
        IntegrityReport(
            verdict=Verdict.PASS if passed else Verdict.FAIL,
            reason="nothing was found" if passed else "a reported number was not computed",
            findings=() if passed else (finding,),
            numbers=(NumberTrace(name="auc", value=0.91, verdict=Verdict.PASS if passed else Verdict.FAIL),),
            causes=() if passed else ("runtime_error",),
            grader=GRADER,
        ),
    )


def _execution(folder: EpisodeFolder, generator: random.Random, executed: bool | None, said: str) -> None:
    if executed is None:
        return
    reason = "ran and produced its outputs" if executed else "reproduce.sh ended with exit code 1"
    write(
        folder.execution,
        ExecutionReport(
            verdict=Verdict.PASS if executed else Verdict.FAIL, reason=reason, applied=True,
            exit_code=0 if executed else 1, failure=None if executed else "run_failed",
            outputs=(("results.csv", executed),), log="execution", duration_s=12.0,
        ),
    )  # fmt: skip
    if not executed:
        log = folder.root / "execution" / "stderr.txt"
        log.parent.mkdir(parents=True, exist_ok=True)
        error = generator.choice([text for phase, text in ERRORS if phase == "execution"])
        log.write_text(f'Traceback (most recent call last):\n  File "run.py", line 3\n{error.format(n=7)}\n{said}\n')


def _submission(folder: EpisodeFolder, said: str) -> None:
    response = Response(
        design=ResponseDesign(
            constant={"data set": ("spirals",)}, independent={"noise level": ("0", "0.1")}, dependent={"AUC": ()},
            procedure=f"Train, then measure. {said}",
        ),
        conclusion=Conclusion(text=f"Noise lowers the AUC. {said}", numbers={"auc": 0.91}),
        outputs=("results.csv",),
    )  # fmt: skip
    write(
        folder.submission / "submission.json",
        Submission(
            response=response, reproduce=True, changed=(ChangedFile(path="run.py", action="added", size=40),),
            patch_sha256="0" * 64, patch_bytes=120,
        ),
    )  # fmt: skip
    (folder.submission / "reproduce.sh").write_text(f"#!/bin/sh\npython run.py  # {said}\n")
    (folder.submission / "patch.diff").write_text(
        "diff --git a/run.py b/run.py\nnew file mode 100644\n--- /dev/null\n+++ b/run.py\n@@ -0,0 +1,3 @@\n"
        f"+import torch\n+lr = 0.1\n+print('auc', 0.91)  # {said}\n"
        "diff --git a/eval.py b/eval.py\n--- a/eval.py\n+++ b/eval.py\n@@ -1,3 +1,3 @@\n def main():\n-    return 1\n+    return 2\n"
    )


FAMILY_METRICS: dict[Family, tuple[str, ...]] = {
    Family.HISTOGRAM: ("distance", "acc_tau", "relative_l2", "delta_norm", "shape_l2", "rmsle"),
    Family.TABLE: ("overall", "end_to_end_callback", "data_accuracy"),
    Family.CAUSAL: ("score", "solved", "p_hacking"),
}


def write_family_rows(root: Path, *, agent: str, model: str | None = None, each: int = 4, seed: int = 0) -> Path:
    """Scores of the families other than `experiment` in a run; nothing but their rows."""
    generator = random.Random(seed)
    for family, names in FAMILY_METRICS.items():
        for number in range(each):
            task = f"{family.value}-{number}"
            drawn = {name: round(generator.random(), 3) for name in names}
            write(
                EpisodeFolder(root / "episodes" / task / "0").scores,
                scores_row(
                    run=root.name, task=task, family=family, paper=f"paper-{number % 2}", agent=agent, model=model,
                    metrics=drawn if number else dict.fromkeys(drawn), monitor=1.0,
                    cost_usd=round(generator.uniform(0.1, 3), 3), wall_s=round(generator.uniform(60, 900), 1),
                ),
            )  # fmt: skip
    return root
