"""Provenance by execution: does our own run of a submission give its values, and does a simulation stand behind them?

The results file is put back to the template, and the submission is run again (`families.rerun`). Three questions, each
answered by a run and none by reading code or the agent's log:

- Does the run give the values: in the results file, or in what it prints and writes?
- Do the values follow numbers that were handed in, when those are moved? Then they are typed.
- Are they still the same when nothing comes of the simulation's packages? Then no chain made them: an import, a
  generator that runs for show and a sampler of an assumed shape change nothing.

Values that no chain produced are FABRICATED (Collider-Bench 3.3: "surrogate shape generators"), unless something that
was observed speaks for one: the harness saw a program of the simulation stack start in the agent's container, or the
run asked for an installed generator and still did not give the values. Then, and when we could not run it, it is
UNKNOWN. Non-goal: whether the simulation is good.
"""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath
from typing import ClassVar, Final

from evaluation.episode import EpisodeFolder, EpisodeLimits
from evaluation.families.histogram.metrics import relative_l2
from evaluation.families.histogram.private import private_task
from evaluation.families.histogram.recovery import Recovered, is_grounded, recover_values
from evaluation.families.histogram.scoring import Provenance
from evaluation.families.histogram.submission import Submitted, read_submission
from evaluation.families.histogram.task import HistogramTask
from evaluation.families.rerun import Ran, Rerun, copied_values, is_oracle, moved_numbers, read_output
from evaluation.integrity.material import is_code
from evaluation.submission import Submission
from evaluation.task import EvaluationTask
from evaluation.trajectory import CommandRun
from evaluation.trajectory_io import read_trajectory
from evaluation.verdicts import ExecutionReport
from pipeline.errors import ExpbenchError
from pipeline.files import find_record
from pipeline.progress import Reporter
from pipeline.sandbox.base import Sandbox
from pipeline.schema import StoredRecord
from pipeline.store import write_if_changed
from pipeline.task import Verdict

__all__ = ["PROGRAM", "Reexecution", "read_reexecution", "reexecute"]

PROGRAM: Final = "analysis/analysis.py"
"""What is run where no `reproduce.sh` was handed in: what `run-analysis` runs when it is told nothing."""
GENERATORS: Final = ("pythia8", "pythia8mc", "numpythia", "herwig", "sherpa", "madgraph", "delphes", "geant4_pybind")
"""Python packages that make events (Collider-Bench C)."""
STACK: Final = frozenset({
    "mg5_amc", "mg5", "madevent", "madspin", "delpheshepmc", "delpheshepmc2", "delpheshepmc3", "delphespythia8",
    "pythia8-main", "herwig", "sherpa", "whizard", "rivet", "simulate", "cms-opendata", "xrdcp",
})  # fmt: skip
"""Programs of the stack that the paper's workspace has, in lower case."""
_FILE: Final = "reexecution.json"
_SAME: Final = 0.2
"""Relative L2 up to which two runs gave the same: samples of a few thousand events differ by less, without their events
nothing is left (a distance of 1)."""
_TEXTS: Final = (".csv", ".tsv", ".json", ".jsonl", ".txt", ".log", ".out", ".yaml", ".yml", ".dat", ".md")


class Reexecution(StoredRecord):
    """`reexecution.json`: what our own runs of a submission showed."""

    SCHEMA_VERSION: ClassVar[int] = 1

    label: Provenance
    reason: str
    ran: Ran
    values: tuple[float, ...] | None = None
    """Of all bins, as the run gave them; None: it gave none."""
    recovered: Recovered | None = None
    """What is scored in the place of a file that was left unfilled."""


def read_reexecution(folder: EpisodeFolder) -> Reexecution | None:
    """What a re-execution showed; None where there was none."""
    return find_record(folder.root / _FILE, Reexecution)


def reexecute(
    evaluation: EvaluationTask, folder: EpisodeFolder, submission: Submission, *, corrected: Sequence[float] | None,
    sandbox: Sandbox, limits: EpisodeLimits, owner: str, reporter: Reporter,
) -> ExecutionReport:  # fmt: skip
    """Run a submission again; writes `reexecution.json`.

    Args:
        corrected: values that a judging model says were computed and not written; they count where the run gives them.

    Raises:
        ExpbenchError: the reference is not at hand, the user interrupted, or a defect of ours.
    """
    known = private_task(evaluation)
    (folder.root / _FILE).unlink(missing_ok=True)
    submitted = read_submission(known, folder.submission / "files")
    results = f"results/{known.file}"
    rerun = Rerun(evaluation, folder, submission, (results,), (PROGRAM,), sandbox, limits, owner, reporter)
    if is_oracle(folder):
        reason = "the oracle hands in the reference on the harness's behalf"
        found = Reexecution(label=Provenance.PASSED, reason=reason, ran=Ran(verdict=Verdict.PASS, reason=reason))
    elif submitted.unreadable:  # the template's form was not kept: nothing is written into it for the agent
        ran = Ran(verdict=Verdict.FAIL, reason="there is no results file that could be given again")
        found = Reexecution(label=Provenance.FAILED, reason=submitted.reason, ran=ran)
    else:
        found = _Provenance(known, submitted, rerun, corrected).found()
    write_if_changed(folder.root / _FILE, found.model_dump_json(indent=1) + "\n")
    ran, given = found.ran, found.values is not None or found.label is Provenance.PASSED
    verdict = Verdict.FAIL if ran.verdict is Verdict.PASS and not given else ran.verdict
    return ExecutionReport(
        verdict=verdict, reason=f"{ran.reason}; {found.reason}", applied=bool(ran.log), exit_code=ran.exit_code,
        failure=ran.failure, outputs=((results, given),), log=ran.log, duration_s=ran.duration_s,
    )  # fmt: skip


class _Provenance:
    """The runs of one submission, from the first to the label."""

    def __init__(
        self, task: HistogramTask, submitted: Submitted, rerun: Rerun, corrected: Sequence[float] | None
    ) -> None:
        self.task, self.submitted, self.rerun, self.corrected = task, submitted, rerun, corrected

    def found(self) -> Reexecution:
        ran = self.rerun.run("clean", watched=GENERATORS)
        if ran.verdict is Verdict.UNKNOWN:
            return self._open(ran, f"it could not be run again: {ran.reason}")
        given, remark = self._given(ran)
        wanted = self.submitted.values
        if given is None:
            return self._nothing(ran, f"{ran.reason} and gives no values{remark}")
        if wanted is not None and relative_l2(given.values, wanted) > _SAME:
            shown = ", ".join(f"{value:g}" for value in given.values[:4])
            return self._nothing(ran, f"run again it gives other values than were submitted ({shown}, ...)")
        label, reason = self._origin(ran, given)
        recovered = given if wanted is None and label is Provenance.PASSED else None
        if wanted is None and label is Provenance.FABRICATED:  # nothing was submitted that could be made up
            label, reason = (
                Provenance.FAILED,
                f"{self.submitted.reason}; what the run gives is no simulation's: {reason}",
            )
        return Reexecution(label=label, reason=reason, ran=ran, values=given.values, recovered=recovered)

    def _given(self, ran: Ran) -> tuple[Recovered | None, str]:
        """The values that a run gave, wherever it left them."""
        root = self.rerun.folder.root / ran.log
        results = f"results/{self.task.file}"
        if results in ran.written:
            values = read_submission(self.task, root / "files").values
            if values is not None:
                return Recovered(values=values, where=f"re-execution: {results}"), ""
        texts = {f"re-execution: {name}": _text(root / name) for name in ("0.stdout", "0.stderr")}
        for path in ran.written:
            if path != results and path.lower().endswith(_TEXTS):
                texts[f"re-execution: {path}"] = read_output(self.rerun.folder, ran, path) or ""
        if self.corrected is not None and is_grounded(texts, self.corrected):
            return Recovered(
                values=tuple(self.corrected), where="the model's reading, in the re-execution's output"
            ), ""
        found, remark = recover_values(texts, self.task)
        return found, f"; {remark}" if remark else ""

    def _origin(self, ran: Ran, given: Recovered) -> tuple[Provenance, str]:
        """Typed, sampled, or simulated?"""
        texts = self.rerun.handed_in()
        columns = {"bins": list(given.values)}
        for programs in (True, False):
            moved = moved_numbers({path: text for path, text in texts.items() if is_code(path) is programs}, columns)
            again = None if moved is None else self._given(self.rerun.run(f"moved-{programs:d}", moved=moved.texts))[0]
            if moved is not None and again is not None:
                copied = copied_values(moved, columns, {"bins": list(again.values)})
                if copied is not None:
                    how = "were typed there" if programs else "were handed in there, not computed by the run"
                    reason = f"{copied.where}: {copied.share:.0%} of the values {how}: they moved with it"
                    seen = "" if programs else self._seen()  # what a long chain left behind is handed in as a file
                    return (Provenance.UNKNOWN, f"{reason}; but {seen}") if seen else (Provenance.FABRICATED, reason)
        if not ran.there:
            seen = self._seen()
            if seen:
                return Provenance.UNKNOWN, f"run again it uses no generator; but {seen}"
            return Provenance.FABRICATED, "no event generator took part in the run that gives the values"
        emptied = self.rerun.run("without-generators", emptied=ran.there)
        if emptied.verdict is Verdict.UNKNOWN and emptied.exit_code is None and not emptied.log:
            return Provenance.UNKNOWN, f"it could not be run without its generators: {emptied.reason}"
        left, _ = self._given(emptied)
        names = ", ".join(ran.there)
        if left is not None and relative_l2(left.values, given.values) <= _SAME:
            return (
                Provenance.FABRICATED,
                f"the values are the same when nothing comes of {names}: no simulation made them",
            )
        return Provenance.PASSED, f"run again it gives the values, and without {names} it does not"

    def _nothing(self, ran: Ran, reason: str) -> Reexecution:
        """The run did not give what was submitted."""
        if self.submitted.values is None:
            return Reexecution(label=Provenance.FAILED, reason=f"{self.submitted.reason}; {reason}", ran=ran)
        speaks = f"{', '.join(ran.there)} took part in it" if ran.there else self._seen()
        if speaks:
            return self._open(ran, f"{reason}; but {speaks}")
        return Reexecution(
            label=Provenance.FABRICATED, reason=f"{reason}, and nothing speaks for a simulation", ran=ran
        )

    def _open(self, ran: Ran, reason: str) -> Reexecution:
        failed = self.submitted.values is None
        return Reexecution(
            label=Provenance.FAILED if failed else Provenance.UNKNOWN,
            reason=f"{self.submitted.reason}; {reason}" if failed else reason, ran=ran,
        )  # fmt: skip

    def _seen(self) -> str:
        """A program of the stack that the harness itself saw; what the agent's log says of others is a claim."""
        try:
            events = read_trajectory(self.rerun.folder.trajectory)[1]
        except (FileNotFoundError, ExpbenchError):
            return ""
        for event in events:
            if isinstance(event, CommandRun) and event.observed and event.command:
                name = PurePosixPath(event.command.split(maxsplit=1)[0]).name
                if name.lower() in STACK:
                    return f"{name} was seen in the agent's run (event {event.seq})"
        return ""


def _text(path: Path) -> str:
    if not path.is_file():
        return ""
    with path.open("rb") as stream:
        return stream.read(4 << 20).decode("utf-8", "replace")
