"""How a validated chain answers when what it starts from is moved: bands from other random streams, and responses.

After its clean runs the chain is run with a witness: once as it is (which functions ran, with which settings and
seeds), some times with every random stream moved, once with continuous draws muted and once with labels that lost their
tie to the inputs. The first say how far an honest run with seeds of its own may lie from the paper; all of them say how
a submission has to answer, so that typed, decoded or cached numbers are told from computed ones.
"""

from __future__ import annotations

import math
import posixpath
import re
import statistics
from collections.abc import Collection, Mapping, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Final, Literal, NamedTuple

from pipeline.files import remove_tree
from pipeline.progress import Reporter
from pipeline.repository import Snapshot
from pipeline.sandbox.base import Image, Limits, Sandbox, is_container
from pipeline.sandbox.lanes import count_lanes
from pipeline.scratch import scratch_directory
from pipeline.task import Band, Expected, NumericClaim, Task
from pipeline.validation.numbers import half_unit
from pipeline.validation.outcome import match_claims, prediction_reach
from pipeline.validation.outputs import read_run
from pipeline.validation.plan import execution_plan, make_plan
from pipeline.witness.records import FunctionRun, Perturbation, Response, WitnessReport
from pipeline.witness.run import run_witnessed

__all__ = [
    "AMOUNTS", "RECORDED_RUN", "band_of_seeds", "computed", "learn_responses", "seed_nobody_has", "steady_comparisons",
]  # fmt: skip

AMOUNTS: Final = tuple(104_729 + 7_919 * number for number in range(64))
"""By which seeds are moved, run by run; far from the small numbers that people choose, so that no run meets another."""
RECORDED_RUN: Final = "plain"
"""Name of the run that is only watched."""
_COMPONENT: Final = "validation.responses"
_STAGE: Final = "validate"
_CODE: Final = (".py", ".ipynb")
_CHANCE: Final = 0.05
_FEWEST: Final = 3
"""Runs with other streams from which on a spread is taken from them: two values have a Student factor of 15.6."""
_BUDGET_S: Final = 900.0
"""For all of these runs of a task together; a chain of ten minutes is not run a dozen times unasked."""


class _Run(NamedTuple):
    values: dict[str, float]
    """Claim id -> value, of those that the run printed."""
    witness: WitnessReport
    failed: bool
    duration_s: float


def learn_responses(
    task: Task, *, snapshot: Snapshot, image: Image, sandbox: Sandbox, seeds: int, out: Path, owner: str,
    limits: Limits, reporter: Reporter,
) -> Task:  # fmt: skip
    """The task with what ran, bands from other random streams, and how its claims answer to perturbations.

    Args:
        task: its chain runs; where more than what ran is learnt, it reproduces the claims.
        snapshot: the repository.
        image: the built environment.
        sandbox: where it runs; one that cannot carry a witness leaves the task as it is, and says so.
        seeds: runs with moved streams; 0: only what ran is learnt, as it is for a task without claims.
        out: directory; replaced.
        owner: label of the run (`Sandbox.reap`).
        limits: ceilings of each run.
        reporter: progress.

    Raises:
        ExpbenchError: the sandbox broke.
    """
    if not is_container(sandbox):
        return task.noted(_COMPONENT, f"what ran is not known: the {sandbox.name} sandbox cannot carry a witness")
    remove_tree(out)
    series = _Series(task, snapshot, image, sandbox, out, owner, limits, reporter)
    plain = series.run(RECORDED_RUN, Perturbation.NONE)
    if plain.failed:
        return task.noted(_COMPONENT, "what ran is not known: the chain does not run with a witness beside it")
    ran = plain.witness.functions
    needs = tuple(f"file {path}" for path in _data_read(plain.witness, task, snapshot))
    truth = task.truth.evolve(ran=ran, seeds=plain.witness.seeds, data_needs=needs, responses=())
    if not seeds or not task.truth.expected.claims:
        return task.evolve(truth=truth)
    moved, others = _perturbed(series, plain, seeds)
    claims = [_with_band(claim, plain, moved) for claim in task.truth.expected.claims]
    responses = [_response(task, run) for run in (*moved[:1], *others) if run.witness.touched]
    expected = task.truth.expected.evolve(claims=tuple(claims))
    expected = expected.evolve(comparisons=steady_comparisons(expected))
    return task.evolve(truth=truth.evolve(expected=expected, responses=tuple(responses)))


def _perturbed(series: _Series, plain: _Run, seeds: int) -> tuple[list[_Run], list[_Run]]:
    """The runs with moved streams, and those with muted draws and permuted labels; as many at a time as there is room.

    Where the first moved one shows the plain one's numbers, nothing in it is random, or it runs with its own seeds
    only: more of them would tell the same.
    """
    with ThreadPoolExecutor(count_lanes(series.limits), thread_name_prefix="expbench-responses") as pool:
        try:
            first = pool.submit(series.run, "moved-1", Perturbation.MOVED, AMOUNTS[0])
            others = [
                pool.submit(series.run, "muted", Perturbation.MUTED),
                pool.submit(series.run, "permuted", Perturbation.PERMUTED, permute=plain.witness.functions),
            ]
            moved = [first.result()]
            if not moved[0].failed and (moved[0].witness.touched or _differs(plain.values, moved[0].values)):
                count = max(_FEWEST, int(_BUDGET_S / max(plain.duration_s, 1.0)) - 3)
                more = [
                    pool.submit(series.run, f"moved-{at + 1}", Perturbation.MOVED, AMOUNTS[at])
                    for at in range(1, min(seeds, count))
                ]
                moved += [run.result() for run in more]
            return moved, [run.result() for run in others]
        except BaseException:
            pool.shutdown(wait=False, cancel_futures=True)
            series.sandbox.reap(series.owner)  # what is under way would be waited for
            raise


class _Series:
    """Witnessed runs of one chain."""

    def __init__(
        self, task: Task, snapshot: Snapshot, image: Image, sandbox: Sandbox, out: Path, owner: str, limits: Limits,
        reporter: Reporter,
    ) -> None:  # fmt: skip
        self.task, self.snapshot, self.image, self.sandbox = task, snapshot, image, sandbox
        self.out, self.owner, self.limits, self.reporter = out, owner, limits, reporter
        self.plan = execution_plan(task, snapshot)

    def run(self, name: str, perturbation: Perturbation, amount: int = 0, permute: Sequence[FunctionRun] = ()) -> _Run:
        self.reporter.step(_STAGE, f"{self.task.id}: {name} run")
        spec = make_plan(self.task, self.snapshot, limits=self.limits, plan=self.plan)
        directory = self.out / name
        directory.mkdir(parents=True)
        with scratch_directory() as scratch:
            result, witness = run_witnessed(
                spec, self.image, self.snapshot.root, perturbation=perturbation, amount=amount,
                python=self.task.environment.python or "3.11", permute=[(item.path, item.name) for item in permute],
                data=[file.path for file in self.snapshot.files], sandbox=self.sandbox, scratch=scratch, out=directory,
                owner=self.owner,
            )  # fmt: skip
        seen, _ = read_run(result, directory, spec.commands)
        matches = match_claims(self.task.truth.expected.claims, [seen])
        # without noise an experiment may well divide by zero: `nan` is no number, and no JSON
        values = {
            match.claim: match.observed[0] for match in matches if match.observed and math.isfinite(match.observed[0])
        }
        return _Run(values, witness, result.failure is not None, result.duration_s)


def _data_read(witness: WitnessReport, task: Task, snapshot: Snapshot) -> list[str]:
    """Files of the repository that the run read and that its code names: what stays for whoever has to write it anew.

    What it found by listing a folder does not count: committed results of others may lie there.
    """
    own = {file.path for file in snapshot.files}
    written = {path for process in witness.processes for path in process.writes}
    read = dict.fromkeys(path for process in witness.processes for path in process.reads)
    code = {source.path for source in task.truth.sources} | {function.path for function in witness.functions}
    text = "\n".join(snapshot.text(path) for path in sorted(code & own))
    found = [path for path in read if path in own and path not in written and not path.endswith(_CODE)]
    return [path for path in found if re.search(rf"(?<![\w.-]){re.escape(posixpath.basename(path))}(?!\w)", text)]


def _differs(one: Mapping[str, float], other: Mapping[str, float]) -> bool:
    return any(value != other.get(claim) for claim, value in one.items())


def _with_band(claim: NumericClaim, plain: _Run, moved: Sequence[_Run]) -> NumericClaim:
    """The claim with the band of its runs; as it is where fewer than three of them show it."""
    seen = [run.values[claim.id] for run in (plain, *moved) if not run.failed and claim.id in run.values]
    if len(seen) <= 1 or not any(run.witness.touched for run in moved):
        return claim
    if len(set(seen)) == 1:
        return claim.evolve(band=claim.band.evolve(deviation=0.0))
    if len(seen) <= _FEWEST:
        return claim
    return claim.evolve(band=band_of_seeds(claim, seen))


def steady_comparisons(expected: Expected) -> tuple[tuple[str, Literal["<", ">", "="], str], ...]:
    """The relations that one more honest run keeps: those whose difference stands out from that between its seeds.

    Two numbers of one run share its draws, so their differences are compared, not their bands. A relation of which
    nothing is known stays: `89.6 > 89.3` was one by its printed digits, and three of six honest agents broke it.

    Args:
        expected: its claims with the bands of their seeds.
    """
    claims = {claim.id: claim for claim in expected.claims}
    chance = _CHANCE / max(len(expected.comparisons), 1)
    kept = []
    for left, relation, right in expected.comparisons:
        one, two = claims[left].band.observed, claims[right].band.observed
        apart = [a - b for a, b in zip(one, two, strict=True)] if len(one) == len(two) > _FEWEST else []
        room = prediction_reach(len(apart), chance) * statistics.stdev(apart) if apart else 0.0
        if relation == "=" or not apart or abs(statistics.fmean(apart)) > room:
            kept.append((left, relation, right))
    return tuple(kept)


def computed(task: Task) -> bool:
    """Do most of the numbers that a task's run gave move when it is perturbed? Then they stand nowhere as they are.

    Args:
        task: validated, with what `learn_responses` learnt.
    """
    matches = task.validation.matches if task.validation is not None else ()
    plain = {match.claim: match.observed[0] for match in matches if match.observed}
    moved = {
        claim for response in task.truth.responses for claim, value in response.values if value != plain.get(claim)
    }
    return 2 * len(moved & set(plain)) > len(plain)


def band_of_seeds(claim: NumericClaim, seen: Sequence[float]) -> Band:
    """The interval in which one more run with streams of its own lies in 95 of 100 cases, with the paper's number.

    Args:
        claim: its value and printed digits belong to the band: the authors' own run is one of these runs.
        seen: the claim's value in n >= 3 runs with different streams, in the claim's scale.
    """
    count = len(seen)
    mean, deviation = statistics.fmean(seen), statistics.stdev(seen)
    factor = prediction_reach(count, _CHANCE)
    half = half_unit(claim.decimals)
    return Band(
        low=min(mean - factor * deviation, claim.value - half),
        high=max(mean + factor * deviation, claim.value + half),
        source=f"seeds (n={count})",
        deviation=deviation,
        observed=tuple(seen),
    )


def seed_nobody_has(task: Task, masked: Collection[str]) -> str:
    """Why no honest submission could meet the task's bands; empty when one can.

    A chain whose seed stands in a masked file, and of whose numbers it is not known how they vary with the seed, has
    bands of printed precision: only that seed meets them, and nobody is told it.

    Args:
        task: validated, with what `learn_responses` learnt.
        masked: paths that are taken out of the repository.
    """
    plan = task.validation.plan if task.validation is not None else None
    hidden = [use for use in (plan.seeds if plan else ()) if use.where.rpartition(":")[0] in masked]
    unknown = [claim.id for claim in task.truth.expected.claims if claim.band.deviation is None]
    if not hidden or not task.truth.ran or not task.truth.seeds or not unknown:
        return ""
    return (
        f"its seed ({hidden[0].name} = {hidden[0].value}, {hidden[0].where}) is masked, and how {len(unknown)} of its "
        f"{len(task.truth.expected.claims)} numbers vary with it could not be learnt: no other seed meets their bands"
    )


def _response(task: Task, run: _Run) -> Response:
    return Response(
        perturbation=run.witness.perturbation,
        values=tuple(
            (claim.id, run.values[claim.id]) for claim in task.truth.expected.claims if claim.id in run.values
        ),
        touched=run.witness.touched,
        failed=run.failed,
    )
