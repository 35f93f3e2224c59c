"""Metric E: the submission runs again, from its patch alone, in a clean, equivalent container (EXP-Bench 4.1).

A fresh checkout of the masked commit, the patch, and `bash reproduce.sh` in the task's environment without network. It
passes when the script ends well, produces what the submission declares, and prints or writes the numbers of the
conclusion. What the agent had shipped does not count as produced: declared outputs are deleted before the run, an
output that is a copy of a shipped file is none, and `response.json` is not there while the script runs.

Then it runs again under perturbations made from outside (`evaluation.counterfactual`): numbers that stay where those of
the task's own code move were not computed.

A failure of the machinery is unknown, never a fail. Non-goals: whether the numbers are right (judge) and were computed
honestly (monitor).
"""

from __future__ import annotations

import shutil
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final, NamedTuple

from evaluation.agents.readers.events import tail
from evaluation.checkout import Checkout, fresh_checkout
from evaluation.counterfactual import applicable, follow_numbers, judge_perturbed
from evaluation.declared_outputs import clear_outputs, declared_outputs, is_produced, without_copies
from evaluation.episode import EpisodeFolder, EpisodeLimits, Perturbing
from evaluation.judges.lookup import look_up
from evaluation.lock import environment_spec
from evaluation.reported_numbers import occurs, trace_numbers
from evaluation.submission import REPRODUCE, Submission
from evaluation.task import EvaluationTask
from evaluation.verdicts import Counterfactual, ExecutionReport, NumberTrace
from pipeline.data.phase import with_data
from pipeline.digests import file_digest
from pipeline.errors import FAILURES, Cause, ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.sandbox.base import Command, Gpus, Image, Limits, RunResult, RunSpec, Sandbox, is_container
from pipeline.schema import Problem, Severity
from pipeline.scratch import scratch_directory
from pipeline.task import Verdict
from pipeline.validation.observation import Observation
from pipeline.validation.outputs import read_file, read_run
from pipeline.witness.records import Perturbation, WitnessReport
from pipeline.witness.run import run_witnessed

__all__ = ["PATCH", "execution_limits", "refuse_interrupted", "validate_execution"]

PATCH: Final = "patch.diff"
_STAGE: Final = "execution"
_COMPONENT: Final = "evaluation.execution"
_ATTEMPTS: Final = 3
"""Of a run that the machinery lost (`Failure.retry`)."""
_READ_BYTES: Final = 8 << 20
"""What `pipeline.validation.outputs` reads of one file."""
_AMOUNT: Final = 1_299_709
"""By which the seeds of a submission are moved; not one of those by which a task's own were."""
_SLOWED: Final = frozenset({FailureKind.RUN_TIMEOUT, FailureKind.RUN_OUT_OF_MEMORY, FailureKind.RUN_DISK_FULL})
_CACHES: Final = ("**/__pycache__/*", "**/*.pyc", "**/.cache/*", "**/.ipynb_checkpoints/*")


def refuse_interrupted(result: RunResult, task: str) -> None:
    """Raise for a run that was ended by us: it has no outcome, not even an unknown one.

    Args:
        result: of a re-execution.
        task: whose.

    Raises:
        ExpbenchError: `INTERRUPTED`.
    """
    if result.failure is FailureKind.INTERRUPTED:
        raise ExpbenchError(
            FailureKind.INTERRUPTED, f"re-execution of {task}", result.message or "interrupted",
            consequence="Its outcome is not known yet",
            next_step="Run the same command with --resume: it is re-executed",
        )  # fmt: skip


def execution_limits(limits: EpisodeLimits) -> Limits:
    """Ceilings of a re-execution: those that the agent worked under."""
    return Limits(
        wall_s=limits.wall_s,
        cpus=limits.cpus,
        memory_mb=limits.memory_mb,
        pids=limits.pids,
        disk_mb=limits.disk_mb,
        output_mb=limits.output_mb,
    )


def validate_execution(
    task: EvaluationTask,
    folder: EpisodeFolder,
    submission: Submission,
    *,
    sandbox: Sandbox,
    limits: EpisodeLimits,
    owner: str,
    reporter: Reporter,
    perturbing: Perturbing | None = None,
) -> ExecutionReport:
    """Re-execute a submission from its patch in a clean, equivalent sandbox, then under perturbations.

    Args:
        task: gives the masked repository and the environment.
        folder: the episode; `submission/patch.diff` is read, `execution/` is written anew.
        submission: what was handed in.
        sandbox: where it runs, without network.
        limits: those of the episode.
        owner: label of the run (`Sandbox.reap`).
        reporter: progress, as steps of stage `execution`.
        perturbing: which further runs are made; None: `auto`.

    Returns:
        Pass, fail, or unknown where the machinery failed (`failure` says how; `FAILURES` whether to try again).

    Raises:
        ExpbenchError: a defect of ours, or the user interrupted; nothing is known.
    """
    log = folder.root / "execution"
    remove_tree(log)
    early = _before_running(task, folder, submission)
    if early is not None:
        return early
    assert task.masked_repository is not None
    with scratch_directory() as scratch:
        try:
            reporter.step(_STAGE, f"{task.id}: fresh checkout and patch")
            checkout = fresh_checkout(task.masked_repository, scratch / "checkout")
            refused = checkout.apply(folder.submission / PATCH) if submission.patch_sha256 else ""
            if refused:
                # the patch was taken by the harness from a workspace that holds these very files
                return _unknown(f"the patch does not apply to the masked commit: {refused}", FailureKind.INTERNAL)
            attempt = 0
            while True:
                attempt += 1
                rerun = _Rerun(
                    task, folder, submission, checkout, sandbox, limits, owner, reporter, scratch,
                    perturbing or Perturbing(),
                )  # fmt: skip
                try:
                    return rerun.report(log)
                except ExpbenchError as error:
                    if attempt == _ATTEMPTS or not error.failure.retry or not _machinery(error.kind):
                        raise
                    reporter.warn(f"{task.id}: re-execution, attempt {attempt} of {_ATTEMPTS}: {error}")
        except ExpbenchError as error:
            if not _machinery(error.kind):
                raise
            return _unknown(f"{error.object}: {error.cause}", error.kind)


def _machinery(kind: FailureKind) -> bool:
    others = {FailureKind.ENVIRONMENT_UNBUILDABLE, FailureKind.RECORD_INVALID}
    return FAILURES[kind].cause is Cause.INFRASTRUCTURE or kind in others


def _unknown(reason: str, kind: FailureKind) -> ExecutionReport:
    return ExecutionReport(verdict=Verdict.UNKNOWN, reason=reason, failure=kind.value)


def _before_running(task: EvaluationTask, folder: EpisodeFolder, submission: Submission) -> ExecutionReport | None:
    """What is known without running anything."""
    if task.blocked or task.masked_repository is None:
        return ExecutionReport(verdict=Verdict.UNKNOWN, reason=task.blocked or "the masked repository is not at hand")
    if not submission.reproduce:
        return ExecutionReport(verdict=Verdict.FAIL, reason=f"no {REPRODUCE} was handed in")
    patch = folder.submission / PATCH
    if submission.patch_sha256 and (not patch.is_file() or file_digest(patch) != submission.patch_sha256):
        return _unknown("the stored patch is not the one that was handed in", FailureKind.RECORD_INVALID)
    return None


class _Run(NamedTuple):
    """One run of the patched tree."""

    result: RunResult
    seen: tuple[Observation, ...]
    numbers: tuple[NumberTrace, ...]
    witness: WitnessReport | None


class _Rerun:
    """One re-execution, from a patched tree to its report."""

    def __init__(
        self,
        task: EvaluationTask,
        folder: EpisodeFolder,
        submission: Submission,
        checkout: Checkout,
        sandbox: Sandbox,
        limits: EpisodeLimits,
        owner: str,
        reporter: Reporter,
        scratch: Path,
        perturbing: Perturbing,
    ) -> None:
        self.task, self.folder, self.submission = task, folder, submission
        self.checkout, self.sandbox, self.limits = checkout, sandbox, limits
        self.owner, self.reporter, self.scratch, self.perturbing = owner, reporter, scratch, perturbing
        response = submission.response
        self.reported: Mapping[str, float] = response.conclusion.numbers if response else {}
        self.changed = {change.path for change in checkout.changes()}
        self.problems: list[Problem] = list(checkout.outward_links())
        self.contained = is_container(sandbox)
        if not self.contained:
            message = "re-executed in the process sandbox, which isolates less than a container"
            self.problems.append(_problem("sandbox", message, Severity.INFO))

    def report(self, log: Path) -> ExecutionReport:
        """Run and decide."""
        response = self.submission.response
        outputs = list(declared_outputs(response.outputs if response else (), self.problems))
        self._add_script()
        shipped = clear_outputs(self.checkout, outputs, self.problems)
        environment = environment_spec(self.task)
        image = self.sandbox.build(environment, log=log / "build.log", owner=self.owner, reporter=self.reporter)
        run = self._witnessed_run(image, log, shipped)
        holders = self._shipped_with(run.numbers, shipped) if run.result.failure is None else []
        if holders:
            shipped = self._without(holders, shipped)
            run = self._witnessed_run(image, log, shipped)
        result = run.result
        produced = tuple((item.declared, is_produced(item, result)) for item in outputs)
        verdict, reason = _decide(result, log, produced, run.numbers, self.submission)
        if holders and verdict is Verdict.FAIL:
            reason += f"; {', '.join(holders[:3])} of the patch hold(s) missing numbers and was deleted before this run"
        counterfactuals, left_out = self._perturbed(run, verdict, image, log, shipped)
        stayed = next((item for item in counterfactuals if item.verdict is Verdict.FAIL), None)
        if stayed is not None:
            verdict, reason = Verdict.FAIL, f"it runs again, and {stayed.reason}"
        return ExecutionReport(
            verdict=verdict,
            reason=reason,
            applied=True,
            exit_code=result.commands[0].exit_code if result.commands else None,
            failure=result.failure.value if result.failure else None,
            outputs=produced,
            numbers=run.numbers,
            witness=run.witness,
            counterfactuals=counterfactuals,
            not_perturbed=left_out,
            log=log.name,
            duration_s=result.duration_s,
            problems=tuple(self.problems),
        )

    # --- perturbed runs

    def _perturbed(
        self, plain: _Run, verdict: Verdict, image: Image, log: Path, shipped: dict[str, str]
    ) -> tuple[tuple[Counterfactual, ...], str]:
        """The perturbed runs that tell something of this task, and why some or all of them were left out."""
        truth = self.task.truth
        todo = applicable(truth)
        reason = self._not_perturbed(plain, verdict, todo)
        if reason or truth is None:
            return (), reason
        found: list[Counterfactual] = []
        spent = 0.0
        claims = {found.name: claim for claim, found in look_up(truth.expected.claims, self.reported).items()}
        for perturbation in todo:
            if self.perturbing.mode == "auto" and spent + plain.result.duration_s > self.perturbing.budget_s:
                return tuple(found), f"{perturbation.value}: the budget of {self.perturbing.budget_s:g} s is used up"
            self.reporter.step(_STAGE, f"{self.task.id}: again, {perturbation.value}")
            out = log / perturbation.value
            run = self._run(image, out, shipped, perturbation)
            spent += run.result.duration_s
            numbers = follow_numbers(self.reported, plain.seen, run.seen)
            found.append(
                judge_perturbed(
                    perturbation,
                    numbers,
                    truth=truth,
                    claims=claims,
                    failed=run.result.failure is not None,
                    touched=0 if run.witness is None else run.witness.touched,
                    duration_s=run.result.duration_s,
                )
            )
            remove_tree(out / "files")  # what came out under another premise is nobody's result
        return tuple(found), ""

    def _not_perturbed(self, plain: _Run, verdict: Verdict, todo: Sequence[Perturbation]) -> str:
        """Why no perturbed run is made at all."""
        if self.perturbing.mode == "off":
            return "not asked for"
        if not self.contained:
            return f"the {self.sandbox.name} sandbox cannot carry a witness"
        if plain.result.failure is not None or verdict is not Verdict.PASS:
            return "it does not run again as it is"
        return "" if todo else "how the task's own numbers answer was not learnt when it was validated"

    def _given_functions(self) -> tuple[tuple[str, str], ...]:
        """Functions of the task's own chain that lie in files which the agent was given and left as they are."""
        truth = self.task.truth
        ran = truth.ran if truth is not None else ()
        return tuple(
            (item.path, item.name)
            for item in ran
            if item.path not in self.changed and (self.checkout.tree / item.path).is_file()
        )

    # --- one run

    def _witnessed_run(self, image: Image, log: Path, shipped: dict[str, str]) -> _Run:
        """The clean run; again without a witness where that made it miss a limit that it would have met."""
        run = self._run(image, log, shipped, Perturbation.NONE)
        if run.result.failure not in _SLOWED or run.witness is None:
            return run
        message = "it met a limit with a witness beside it, and was run again without: what ran in it is not known"
        self.problems.append(_problem("witness", message))
        return self._run(image, log, shipped, None)

    def _run(self, image: Image, log: Path, shipped: dict[str, str], perturbation: Perturbation | None) -> _Run:
        """One run of the tree as it is, and where the reported numbers occur in it."""
        command = Command(argv=("bash", REPRODUCE))
        gpus = Gpus(count=self.limits.gpus) if self.limits.gpus else None
        spec = RunSpec(commands=(command,), limits=execution_limits(self.limits), drop=_CACHES, gpus=gpus)
        if self.task.truth is not None and self.contained:
            # the author's own paths, where the original's run has them: a submission may start from the original's code
            spec = spec.evolve(links=self.task.truth.mapped)
        if self.task.data is not None:
            spec = with_data(spec, self.task.data)  # the process sandbox refuses it
        self.reporter.step(_STAGE, f"{self.task.id}: bash {REPRODUCE}")
        tree, witness = self.checkout.tree, None
        if perturbation is None or not self.contained:
            result = self.sandbox.run(image, tree, spec, out=log, owner=self.owner)
        else:
            result, witness = run_witnessed(
                spec, image, tree, perturbation=perturbation, amount=_AMOUNT,
                python=environment_spec(self.task).python, permute=self._given_functions(),
                data=sorted(_given_files(tree) - self.changed), sandbox=self.sandbox, scratch=self.scratch, out=log,
                owner=self.owner,
            )  # fmt: skip
        refuse_interrupted(result, self.task.id)
        result = without_copies(result, shipped, self.problems)
        seen, complaints = read_run(result, log, (command,))
        self.problems += [item for item in (*result.problems, *complaints) if item not in self.problems]
        self._prune(result, log)
        numbers = trace_numbers(self.reported, seen, complete=_all_read(result, complaints))
        return _Run(result, tuple(seen), numbers, witness)

    def _prune(self, result: RunResult, log: Path) -> None:
        """Checkpoints and data sets are not kept per episode; that they were produced, and their size, is."""
        for item in result.produced:
            if item.size > _READ_BYTES:
                (log / "files" / item.path).unlink(missing_ok=True)
                message = f"produced ({item.size} bytes, sha256 {item.sha256}); too large to be kept"
                self.problems.append(_problem(item.path, message, Severity.INFO))

    def _shipped_with(self, numbers: Sequence[NumberTrace], shipped: dict[str, str]) -> list[str]:
        """Shipped data files that hold numbers which the run did not show.

        A file that the agent's run wrote and that nobody declared is part of the patch; a deterministic run writes the
        same bytes again, and that cannot be told from a run that does not touch it, unless the file is taken away.
        """
        missing = [trace for trace in numbers if trace.verdict is not Verdict.PASS]
        found = []
        for path in sorted(shipped) if missing else ():
            seen, _ = read_file(self.checkout.tree / path, path)
            if any(occurs(trace.name, trace.value, item) for trace in missing for item in seen):
                found.append(path)
        return found

    def _without(self, paths: Sequence[str], shipped: dict[str, str]) -> dict[str, str]:
        """Take shipped files away; returns those that are left."""
        for path in paths:
            (self.checkout.tree / path).unlink()
        return {path: digest for path, digest in shipped.items() if path not in paths}

    def _add_script(self) -> None:
        """`reproduce.sh` where the patch does not hold it; a link of that name stays: nothing is written through it.

        Raises:
            ExpbenchError: `RECORD_INVALID`, it was handed in and is in neither place.
        """
        script, kept = self.checkout.tree / REPRODUCE, self.folder.submission / REPRODUCE
        if script.is_symlink() or script.exists():
            return
        if not kept.is_file():
            raise ExpbenchError(
                FailureKind.RECORD_INVALID,
                f"{self.task.id}: {REPRODUCE}",
                "the submission says that there is one, but neither the patch nor the episode's folder holds it",
                consequence="Nothing was run, and nothing is known of the submission",
                next_step="Take the submission from the workspace again",
            )
        shutil.copyfile(kept, script)


def _given_files(tree: Path) -> set[str]:
    return {path.relative_to(tree).as_posix() for path in tree.rglob("*") if path.is_file() and not path.is_symlink()}


def _all_read(result: RunResult, complaints: Sequence[Problem]) -> bool:
    """Was everything small enough to be read whole? A file in a broken form is the submission's own affair."""
    sizes = [item.size for item in result.produced]
    sizes += [size for command in result.commands for size in (command.stdout_bytes, command.stderr_bytes)]
    left_out = any(problem.severity is Severity.ERROR for problem in result.problems)
    too_many = any(problem.where == "run" for problem in complaints)
    return all(size <= _READ_BYTES for size in sizes) and not left_out and not too_many


def _decide(
    result: RunResult,
    log: Path,
    outputs: Sequence[tuple[str, bool]],
    numbers: Sequence[NumberTrace],
    submission: Submission,
) -> tuple[Verdict, str]:
    if result.failure is not None:
        verdict = Verdict.FAIL if FAILURES[result.failure].graded else Verdict.UNKNOWN
        return verdict, _failure(result, log, submission)
    missing = [name for name, produced in outputs if not produced]
    if missing:
        return (
            Verdict.FAIL,
            f"{len(missing)} of {len(outputs)} declared output(s) not produced: {', '.join(missing[:5])}",
        )
    absent = [trace for trace in numbers if trace.verdict is not Verdict.PASS]
    if absent:
        named = ", ".join(f"{trace.name} = {trace.value:g}" for trace in absent[:5])
        reason = f"{len(absent)} of {len(numbers)} number(s) of the conclusion do not occur in what it printed or wrote"
        if all(trace.verdict is Verdict.UNKNOWN for trace in absent):
            return Verdict.UNKNOWN, f"{reason}: {named}; but not all of it could be read"
        return Verdict.FAIL, f"{reason}: {named}"
    if not outputs and not numbers:
        return Verdict.FAIL, "it declares no outputs and states no numbers: nothing shows that an experiment was run"
    return Verdict.PASS, f"re-executed: {len(outputs)} output(s) produced, {len(numbers)} number(s) found"


def _failure(result: RunResult, log: Path, submission: Submission) -> str:
    assert result.failure is not None
    code = result.commands[0].exit_code if result.commands else None
    said = _last_line(log / "0.stderr") or _last_line(log / "0.stdout")
    parts = [f"{REPRODUCE} ended with exit code {code}" if code is not None else f"{REPRODUCE}: {result.failure.value}"]
    if result.message:
        parts.append(result.message)
    if said:
        parts.append(f"it said: `{said}`")
    if submission.truncated:
        parts.append(f"{len(submission.truncated)} file(s) were left out of the patch because of their size")
    return "; ".join(parts)


def _last_line(path: Path) -> str:
    lines = tail(path).splitlines()
    return lines[-1][-200:] if lines else ""


def _problem(where: str, message: str, severity: Severity = Severity.WARNING) -> Problem:
    return Problem(component=_COMPONENT, where=where, message=message, severity=severity)
