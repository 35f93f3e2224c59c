"""Stage 3 for one task: environment, re-execution, refinement, and who else in the repository computes the answer."""

from __future__ import annotations

import json
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Final

from extractors.outcome import restate_expected
from flows.chain_attempts import ChainAttempts, Learnt, Tried
from flows.chains import Located
from flows.engines import ModelEngine, fails_here, prompts_digest, with_prompts
from pipeline.digests import digest_of
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.files import remove_tree
from pipeline.llm import ModelError, load_prompt
from pipeline.locator import Chain
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.requirements import requirements_of_run
from pipeline.sandbox import Image, RunResult, Sandbox
from pipeline.schema import Problem, Severity
from pipeline.settings import Settings
from pipeline.store import Workspace
from pipeline.task import SourceScript, Status, Task, Usage, ValidationReport, Verdict
from pipeline.validation import (
    validate_with_refinement,
)
from pipeline.validation.binding import unbound
from pipeline.validation.diagnosis import read_tail
from pipeline.validation.environments import Environments
from pipeline.validation.monitor import WRITTEN
from pipeline.validation.outcome import learn_bands, supported_claims
from pipeline.validation.refine import rank_of
from pipeline.validation.responses import computed, learn_responses
from pipeline.validation.writing import SCRIPT, with_script, write_script

if TYPE_CHECKING:
    from extractors.engine.run import PaperReader

__all__ = ["ValidateStage", "model_stages_digest", "snapshot_of", "written_tree"]

_MENDINGS: Final = 2
"""How often a reader may mend a task."""
_MODEL: Final = "validate.model"
_REQUIREMENTS: Final = "requirements"
"""Component of the problem that says why nothing is known of what ran."""


@dataclass(frozen=True)
class ValidateStage:
    """Validates tasks of one snapshot in one sandbox."""

    workspace: Workspace
    settings: Settings
    sandbox: Sandbox
    snapshot: Snapshot
    repeats: int
    reporter: Reporter
    engine: ModelEngine | None = None
    """Words requirements and gives a second opinion on runs; None: keyless."""
    learnt: Learnt = field(default_factory=Learnt)
    reader: PaperReader | None = None
    """Mends a task that its run did not bear out; None: nobody does."""

    @property
    def environments(self) -> Environments:
        """Where the environments of this snapshot's chains come from."""
        return Environments(self.workspace, self.settings, self.sandbox, self.snapshot, self.reporter)

    @property
    def attempts(self) -> ChainAttempts:
        """What tries single chains."""
        return ChainAttempts(self.environments, self.repeats, self.learnt)

    def validated(self, located: Located) -> Task:
        """Try the chains in order until one reproduces the claims (EXP-Bench 3.2, stage 3: refinement).

        Raises:
            ExpbenchError: the machinery failed; nothing is known about the task.
        """
        original = snapshot_of(self.workspace, located.task, self.snapshot)
        if original.root != self.snapshot.root:
            return replace(self, snapshot=original).validated(located)
        if not located.chains:
            return self._written(located.task, located.task, located.task.status_reason)
        candidates: dict[int, Task] = {}

        def attempt(chain: Chain, number: int, _: ValidationReport | None) -> ValidationReport:
            base = located.rehearsed[number - 1] if located.rehearsed else located.task
            tried = self._looked_at(self.attempts.attempt(base, chain, f"attempt-{number}"))
            candidates[number] = tried.task
            return tried.report

        refined = validate_with_refinement(
            located.chains,
            attempt,
            rounds=self.settings.refinement_rounds,
            reporter=self.reporter,
        )
        assert refined is not None, "there was at least one chain"
        report = refined.best.report
        task = candidates[refined.best.number].evolve(validation=report)
        if report.verdict is not Verdict.PASS and self.reader is not None:
            task, report = self._mended(located, task, report)
        if report.verdict is Verdict.PASS:
            others = located.chains[len(refined.attempts) :][: self.settings.equivalents]
            answering = self._answering(_supported(task, report))
            looked_for = not located.rehearsed and answering.status is Status.VALIDATED
            answering = self._with_equivalents(answering, others) if looked_for else answering
            # requirements that a reader, a person or a rehearsal gave have their words
            return answering if located.task.truth.requirements else self._worded(answering)
        task = self._recorded(task)
        reason = "; ".join(f"{attempt.candidate.entries[0]}: {attempt.report.reason}" for attempt in refined.attempts)
        if report.verdict is Verdict.UNKNOWN:
            return task.evolve(status=Status.LOCATED, status_reason=f"not validated: {reason}")
        compared = any(match.observed for attempt in refined.attempts for match in attempt.report.matches)
        outcome = "not reproduced" if compared else "does not run"  # nothing is said of numbers that nobody saw
        rejected = task.evolve(status=Status.REJECTED, status_reason=f"{outcome}: {reason}")
        tried = "; ".join(
            f"{attempt.candidate.entries[0]}: {_tellable(attempt.report)}" for attempt in refined.attempts
        )
        return self._written(rejected, located.task, tried)

    def _mended(self, located: Located, task: Task, report: ValidationReport) -> tuple[Task, ValidationReport]:
        """The task as its reader mended it, at most twice, where that showed more; else as it was."""
        from extractors.engine.mending import mend

        assert self.engine is not None, "a reader has one"
        assert self.reader is not None, "it was asked for"
        tried = Tried(task, report)
        for number in range(1, _MENDINGS + 1):
            try:
                with self.engine.working("validate", task.id):
                    found = mend(self.reader, tried.task, tried.report, self._logs(tried), self.reporter)
            except ModelError as error:
                if not fails_here(error):
                    raise
                return tried.task.noted(_MODEL, f"it was not mended: {error.cause}"), tried.report
            if found is None:
                break
            expected = tried.task.truth.expected
            kept = tuple(claim for claim in expected.claims if claim.id in found.keep)
            if found.chain.usage != tried.task.truth.usage:  # other commands give the numbers in other places
                kept = unbound(kept)
            truth = located.task.truth.evolve(expected=restate_expected(expected, kept))
            base = located.task.evolve(truth=truth, problems=tried.task.problems)
            what = f"mended after `{tried.report.reason}`: {found.why}"
            base = with_prompts(base, [found.prompt]).noted(_MODEL, what)
            again = self._looked_at(self.attempts.attempt(base, found.chain, f"mended-{number}"))
            if rank_of(again.report) < rank_of(tried.report):
                break
            tried = Tried(again.task.evolve(validation=again.report), again.report)
            if tried.report.verdict is Verdict.PASS:
                break
        return tried.task, tried.report

    def _logs(self, tried: Tried) -> dict[str, str]:
        """What the commands of the last run printed, by stream."""
        if not tried.report.runs:
            return {}
        directory = self.workspace.task_dir(tried.task.id) / "validation" / tried.report.runs[-1].log
        names = [f"{number}.{kind}" for number in range(len(tried.task.truth.usage)) for kind in ("stdout", "stderr")]
        return {name: text for name in names if (text := read_tail(directory / name).strip())}

    def _written(self, otherwise: Task, base: Task, failed: str) -> Task:
        """The task with a script that a model wrote, where none of the repository's serves and one passes the checks.

        Args:
            otherwise: the outcome without one.
            base: the task before any chain.
            failed: what was tried and how it failed.
        """
        if self.engine is None or not self.settings.write_scripts or not base.truth.expected.claims:
            return otherwise
        try:
            with self.engine.working("validate", base.id):
                script = write_script(
                    base, self.snapshot, log=failed, client=self.engine.client, reporter=self.reporter
                )
        except ModelError as error:
            if not fails_here(error):
                raise
            return otherwise.noted(_MODEL, f"no script was written: {error.cause}")
        if script is None:
            return otherwise
        base = with_prompts(base, [script.prompt])
        tree = with_script(self.snapshot, script.code, written_tree(self.workspace, base.id))
        by = f"written by {script.model}, not part of the repository: {script.why}"
        source = SourceScript(path=SCRIPT, role="entry", score=0.0, reasons=(by,))
        usage = Usage(argv=("python", SCRIPT), reason=f"written by {script.model}")
        chain = Chain(sources=(source,), usage=(usage,), confidence=0.0)
        stage = replace(self, snapshot=tree)
        base = base.evolve(truth=base.truth.evolve(not_found=None))
        tried = stage._looked_at(stage.attempts.once(base, chain, "written"))
        report = tried.report
        why = report.reason
        if report.verdict is Verdict.PASS:
            task = tried.task.evolve(validation=report).noted(_MODEL, f"its script was {by}: a reviewer has to look")
            task = stage._answering(_supported(task, report))
            if task.status is Status.VALIDATED:
                return stage._worded(task)
            why = task.status_reason
        remove_tree(written_tree(self.workspace, base.id))
        return otherwise.noted(_MODEL, f"a script that {script.model} wrote did not pass either: {why}")

    def _looked_at(self, tried: Tried) -> Tried:
        """A passed attempt with the model's opinion of its last run beside the rules'; never kinder than theirs."""
        task, report = tried.task, tried.report
        if self.engine is None or report.verdict is not Verdict.PASS:
            return tried
        from pipeline.validation.model_monitor import monitor_with_model

        directory = self.workspace.task_dir(task.id) / "validation" / report.runs[-1].log
        try:
            with self.engine.working("validate", task.id):
                opinion = monitor_with_model(
                    self.snapshot,
                    [source.path for source in task.truth.sources],
                    _result_of(directory),
                    directory,
                    task.truth.expected.claims,
                    client=self.engine.client,
                    reporter=self.reporter,
                )
        except ModelError as error:
            if not fails_here(error):
                raise
            problem = Problem(component=_MODEL, where=task.id, message=f"no second opinion: {error.cause}")
            return Tried(task, report.evolve(problems=(*report.problems, problem)))
        task = with_prompts(task, opinion.prompts)
        report = report.evolve(monitor=(*report.monitor, *opinion.problems))
        if opinion.verdict is Verdict.FAIL:
            found = next(p for p in opinion.problems if p.severity is Severity.ERROR)
            reason = f"the outcome was not computed, says {opinion.model}: {found.where}: {found.message}"
            report = report.evolve(verdict=Verdict.FAIL, reason=reason)
        elif opinion.verdict is Verdict.UNKNOWN:
            message = f"{opinion.model} could not settle whether the outcome was computed: a reviewer has to look"
            problem = Problem(component=_MODEL, where=task.id, message=message)
            report = report.evolve(problems=(*report.problems, problem))
        return Tried(task, report)

    def _answering(self, task: Task) -> Task:
        """With what ran, with bands from other random streams, and with how the claims answer to perturbations."""
        task = self._run_with_witness(task, self.settings.seeds)
        report = task.validation
        written = [item for item in report.monitor if item.component == WRITTEN] if report is not None else []
        if written and not computed(task):
            why = f"{written[0].where}: {written[0].message}, and no perturbed run moves them"
            task = task.evolve(status=Status.REJECTED, status_reason=f"the outcome was not computed: {why}")
        return self._required(task)

    def _recorded(self, task: Task) -> Task:
        """A task that is not validated, with what ran: its chain is recorded once where it ran to its end."""
        report = task.validation
        assert report is not None, "it was tried"
        ended = bool(report.runs) and all(run.failure is None and run.scale == "full" for run in report.runs)
        return self._required(self._run_with_witness(task, 0) if ended and not task.truth.ran else task)

    def _run_with_witness(self, task: Task, seeds: int) -> Task:
        return learn_responses(
            task, snapshot=self.snapshot, image=self.image_of(task), sandbox=self.sandbox, seeds=seeds,
            out=self.workspace.task_dir(task.id) / "validation" / "perturbed", owner=self.workspace.owner,
            limits=self.settings.limits, reporter=self.reporter,
        )  # fmt: skip

    def _required(self, task: Task) -> Task:
        """With the requirements of the recorded run, where the task has none; without a run there are none."""
        truth = task.truth
        known = tuple(problem for problem in task.problems if problem.component != _REQUIREMENTS)
        task = task.evolve(problems=known)  # what an earlier validation did not know, this one may
        if truth.requirements:
            return task
        entries = [source.path for source in truth.sources if source.role == "entry"]
        runs = task.validation.runs if task.validation is not None else ()
        ended = any(run.failure is None and run.scale == "full" for run in runs)
        # the cells of a notebook are in no file that a witness could name: that its command ended well tells it
        notebooks = [path for path in entries if path.endswith(".ipynb") and ended]
        seen = bool(truth.ran or notebooks)
        found = requirements_of_run(truth.ran, snapshot=self.snapshot, entries=entries) if seen else ()
        if found:
            return task.evolve(truth=truth.evolve(requirements=found))
        why = "none of its runs is recorded" if ended else "nothing ran"
        if seen:
            why = "no step of the repository's Python code was seen running"
        return task.noted(_REQUIREMENTS, f"requirements unknown: {why}")

    def _worded(self, task: Task) -> Task:
        """The requirements of a validated task in a model's words; their lines stay."""
        if self.engine is None or not task.truth.requirements:
            return task
        from pipeline.requirements.wording import describe_requirements

        try:
            with self.engine.working("validate", task.id):
                described = describe_requirements(
                    task.truth.requirements, self.snapshot, client=self.engine.client, reporter=self.reporter
                )
        except ModelError as error:
            if not fails_here(error):
                raise
            return task.noted("requirements.model", f"the requirements keep the words of the code: {error.cause}")
        truth = task.truth.evolve(requirements=described.requirements)
        worded = task.evolve(truth=truth, problems=(*task.problems, *described.problems))
        return with_prompts(worded, [described.prompt])

    def image_of(self, task: Task) -> Image:
        """The task's image again; building it is a look-up, as it was built for the validation."""
        return self.environments.of_task(task)

    def _with_equivalents(self, task: Task, others: tuple[Chain, ...]) -> Task:
        """Run the chains that were not needed: one that reproduces the claims as well gives the answer away.

        Seen on an outside repository whose second script prints the same table: hiding the first one only would have
        left the experiment ready to run. The runs are on the original files and shared between tasks.
        """
        masked = {source.path for source in task.truth.sources}
        found: list[SourceScript] = []
        problems: list[Problem] = []
        anywhere = _unbound(task)  # another script prints the same numbers in other places
        for number, chain in enumerate(others, 1):
            if set(chain.entries) <= masked:
                continue
            report = self.attempts.once(anywhere, chain, f"equivalent-{number}", repeats=1, scale="full").report
            if report.verdict is not Verdict.PASS:
                if any(run.failure for run in report.runs):
                    message = f"whether it computes the answer too is not known: {report.reason}"
                    problems.append(Problem(component="validate", where=chain.entries[0], message=message))
                continue
            found += [source for source in chain.sources if source.role != "library" and source.path not in masked]
            masked |= set(chain.entries)
            message = f"reproduces the claims too ({report.reason}): it is masked with the sources"
            problems.append(
                Problem(component="validate", where=chain.entries[0], message=message, severity=Severity.INFO)
            )
        known = {source.path: source for source in (*found, *task.truth.equivalents)}
        truth = task.truth.evolve(equivalents=tuple(known.values()))
        return task.evolve(truth=truth, problems=(*task.problems, *problems))


def model_stages_digest(engine: ModelEngine) -> str:
    """What the stages after extraction depend on when a model takes part: the model and its prompts.

    Raises:
        ExpbenchError: `PROMPT_INVALID` when a prompt file is broken.
    """
    prompts = [
        load_prompt("pipeline.reader.prompts", "choose").ref,
        load_prompt("extractors.prompts", "mend").ref,
        load_prompt("pipeline.requirements.prompts", "describe_steps").ref,
        *(
            load_prompt("pipeline.validation.prompts", name).ref
            for name in ("monitor", "monitor_confirm", "write_script")
        ),
    ]
    return digest_of({"model": engine.identity, "prompts": prompts_digest(prompts)})


def _result_of(directory: Path) -> RunResult:
    """The finished run that `pipeline.validation` recorded there.

    Raises:
        ExpbenchError: `RECORD_INVALID`: it is not there or cannot be read.
    """
    path = directory / "result.json"
    try:
        return RunResult.model_validate(json.loads(path.read_bytes())["result"])
    except (OSError, ValueError, KeyError) as error:
        raise ExpbenchError(
            FailureKind.RECORD_INVALID,
            str(path),
            f"cannot be read as the record of a run: {str(error).splitlines()[0]}",
            consequence="The run was not looked at by the model",
            next_step="Run the same `expbench curate` with --resume",
        ) from error


def written_tree(workspace: Workspace, task_id: str) -> Path:
    """Where the repository lies together with a script that a model wrote for the task."""
    return workspace.task_dir(task_id) / "written" / "repository"


def snapshot_of(workspace: Workspace, task: Task, snapshot: Snapshot) -> Snapshot:
    """The repository that the task's scripts are part of: with the written script, where its chain is one.

    Raises:
        ExpbenchError: `RECORD_INVALID`: that copy is gone or was changed.
    """
    if all(source.path != SCRIPT for source in task.truth.sources):
        return snapshot
    return Snapshot.load(written_tree(workspace, task.id))


def _tellable(report: ValidationReport) -> str:
    """How a chain failed, for a model that must not learn what the paper states."""
    if report.matches and not any(run.failure for run in report.runs):
        return "it ran, and does not reproduce what the paper reports"
    return report.reason


def _unbound(task: Task) -> Task:
    expected = task.truth.expected
    return task.evolve(truth=task.truth.evolve(expected=expected.evolve(claims=unbound(expected.claims))))


def _supported(task: Task, report: ValidationReport) -> Task:
    """The validated task: claims that the run does not show are dropped, the others stay bound to their places.

    The outcome is stated without the dropped ones.
    """
    before = task.truth.expected
    kept = supported_claims(task, report.matches).truth.expected.claims
    expected = restate_expected(before, learn_bands(kept, report.matches))
    return task.evolve(status=Status.VALIDATED, truth=task.truth.evolve(expected=expected))
