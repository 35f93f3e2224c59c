"""The blind bench: the four tools through which a task is investigated, under a hard budget (petri-bench 3.3).

Answers are inferential statistics only. The resolved configurations and the hidden world are never echoed; what the
graders need (raw p values, configurations) goes into the log, which the agent does not get.
"""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Annotated, ClassVar, Final, Literal

import numpy as np
from pydantic import Field

from evaluation.families.causal.engines import ENGINES, Metrics
from evaluation.families.causal.inference import ALPHA, cliffs_delta, holm, mann_whitney, relative_change
from evaluation.families.causal.task import CausalTask, Direction, Effect, Magnitude, Tier
from pipeline.schema import Record, StoredRecord

__all__ = [
    "Bench", "BenchError", "Claim", "EpisodeLog", "Experiment", "MetricStatistics", "Probe", "Statistics", "Submit",
    "VectorStatistics", "signature",
]  # fmt: skip


class BenchError(ValueError):
    """A call that the bench refuses; its text is for the agent."""


class Statistics(Record):
    """What an experiment or a probe gives back."""

    mean_a: float
    mean_b: float
    relative_change: float | None
    """(mean_b - mean_a) / |mean_a|; None where mean_a is 0 and mean_b is not."""
    u: float
    p_adjusted: float
    """Mann-Whitney, adjusted by Holm over the simulation's metrics."""
    significant: bool
    cliffs_delta: float
    """Positive: b is larger."""
    calls_left: int


class MetricStatistics(Record):
    """One metric of a vector answer."""

    mean_a: float
    mean_b: float
    p_adjusted: float
    significant: bool
    cliffs_delta: float


class VectorStatistics(Statistics):
    """An answer over the whole metric vector (L1V): the target's fields, and every metric's."""

    vector: dict[str, MetricStatistics]


class _Entry(Record):
    index: int = Field(ge=0)


class Experiment(_Entry):
    """A logged `experiment` or `probe` call on one metric."""

    tool: Literal["experiment"] = "experiment"
    config_a: dict[str, float]
    """Overrides on the control, resolved: only what differs from it."""
    config_b: dict[str, float]
    metric: str
    p_raw: float
    statistics: VectorStatistics | Statistics

    def isolates(self) -> str | None:
        """The one parameter in which the two configurations differ; None for another number of them."""
        names = set(self.config_a) | set(self.config_b)
        differing = [name for name in sorted(names) if self.config_a.get(name) != self.config_b.get(name)]
        return differing[0] if len(differing) == 1 else None


class Probe(_Entry):
    """A guess compared with the hidden world (side b)."""

    tool: Literal["probe"] = "probe"
    guess: dict[str, float]
    metric: str
    p_raw: float
    statistics: VectorStatistics | Statistics


class Claim(_Entry):
    """A declared belief."""

    tool: Literal["claim"] = "claim"
    parameter: str
    effect: Effect


class Submit(_Entry):
    """The final answer; what the tier does not ask for stays empty."""

    tool: Literal["submit"] = "submit"
    parameters: tuple[str, ...]
    direction: Direction | None = None
    magnitude: Magnitude | None = None
    interaction: Literal["positive", "negative"] | None = None
    metric: str | None = None
    """L1B: the metric that `direction` is about."""
    effects: dict[str, Effect] | None = None
    """L1V: the signature, metric by metric."""
    estimate: float | None = None
    """L4: where the boundary is."""


class Refused(_Entry):
    """A call that was not carried out."""

    tool: Literal["refused"] = "refused"
    call: str
    reason: str
    over_budget: bool = False


Entry = Annotated[Experiment | Probe | Claim | Submit | Refused, Field(discriminator="tool")]


class EpisodeLog(StoredRecord):
    """Everything that happened on the bench; score and audit recompute from it and the task alone."""

    SCHEMA_VERSION: ClassVar[int] = 1

    task: str
    entries: tuple[Entry, ...] = ()

    @property
    def experiments(self) -> list[Experiment]:
        """Experiments, in order."""
        return [entry for entry in self.entries if isinstance(entry, Experiment)]

    @property
    def probes(self) -> list[Probe]:
        """Probes, in order."""
        return [entry for entry in self.entries if isinstance(entry, Probe)]

    @property
    def calls(self) -> int:
        """Calls that count against the budget: experiments and probes."""
        return len(self.experiments) + len(self.probes)

    @property
    def submission(self) -> Submit | None:
        """The answer, if there was one."""
        return next((entry for entry in self.entries if isinstance(entry, Submit)), None)


class Bench:
    """One task's bench.

    Args:
        task: the mystery world.
        log: of an episode that is taken up again.
    """

    def __init__(self, task: CausalTask, log: EpisodeLog | None = None) -> None:
        self.task = task
        self.engine = ENGINES[task.simulation]
        self._entries: list[Entry] = list(log.entries) if log else []
        self._cells: dict[tuple[tuple[str, float], ...], Metrics] = {}
        control = self.engine.control
        self._base = {name: value for name, value in task.control.items() if value != control[name]}

    @property
    def log(self) -> EpisodeLog:
        """The log so far."""
        return EpisodeLog(task=self.task.id, entries=tuple(self._entries))

    @property
    def calls_left(self) -> int:
        """Experiments and probes that the budget still allows."""
        return self.task.budget - self.log.calls

    @property
    def ended(self) -> bool:
        """Has an answer been submitted?"""
        return self.log.submission is not None

    @cached_property
    def _hidden(self) -> Metrics:
        return self._cell(self.task.hidden.overrides)

    def experiment(
        self, config_a: Mapping[str, float], config_b: Mapping[str, float], metric: str | None = None
    ) -> Statistics:
        """A replicated, controlled comparison of two configurations.

        Args:
            config_a: overrides on the control; an empty mapping is the control.
            config_b: the same for the other side.
            metric: default: the target metric, where the task reveals one.

        Raises:
            BenchError: over budget, after the end, or a configuration or metric that does not exist.
        """
        chosen = self._admit("experiment", metric)
        first, second = (self._resolve("experiment", config) for config in (config_a, config_b))
        p_raw, statistics = self._compare(self._cell(first), self._cell(second), chosen)
        self._add(
            Experiment(
                index=len(self._entries), config_a=first, config_b=second, metric=chosen, p_raw=p_raw,
                statistics=statistics,
            )
        )  # fmt: skip
        return statistics

    def probe(self, guess: Mapping[str, float], metric: str | None = None) -> Statistics:
        """Compare a guessed configuration (side a) with the hidden world (side b).

        Raises:
            BenchError: as `experiment`.
        """
        chosen = self._admit("probe", metric)
        if self.task.tier == "L4":
            self._refuse("probe", "there is no hidden world in a boundary task; use experiment")
        config = self._resolve("probe", guess)
        p_raw, statistics = self._compare(self._cell(config), self._hidden, chosen)
        self._add(Probe(index=len(self._entries), guess=config, metric=chosen, p_raw=p_raw, statistics=statistics))
        return statistics

    def claim(self, parameter: str, effect: Effect) -> None:
        """Record a belief; costs nothing.

        Raises:
            BenchError: after the end, or an unknown parameter or effect.
        """
        self._open("claim")
        if parameter not in self.task.control or effect not in {"up", "down", "none"}:
            self._refuse("claim", f"no parameter {parameter!r} or no effect {effect!r} (up, down, none)")
        self._add(Claim(index=len(self._entries), parameter=parameter, effect=effect))

    def submit(
        self,
        parameters: tuple[str, ...],
        *,
        direction: Direction | None = None,
        magnitude: Magnitude | None = None,
        interaction: Literal["positive", "negative"] | None = None,
        metric: str | None = None,
        effects: Mapping[str, Effect] | None = None,
        estimate: float | None = None,
    ) -> None:
        """Submit the final answer, which ends the episode.

        Raises:
            BenchError: after the end, or an answer that is not of the tier's form.
        """
        self._open("submit")
        task = self.task
        wanted = 2 if task.tier == "L3" else 1
        unknown = [name for name in parameters if name not in task.candidates]
        if unknown or len(set(parameters)) != wanted:
            self._refuse("submit", f"name {wanted} of the candidates {', '.join(task.candidates)}")
        given: dict[str, object] = {
            "direction": direction, "magnitude": magnitude, "interaction": interaction, "metric": metric,
            "effects": effects, "estimate": estimate,
        }  # fmt: skip
        needed = _ASKED[task.tier]
        if any(given[name] is None for name in needed):
            self._refuse("submit", f"this task asks for {', '.join(needed)} too")
        self._check_answer(metric if "metric" in needed else None, effects if "effects" in needed else None, estimate)
        kept = {name: given[name] if name in needed or name in _KEPT_ANYWAY else None for name in given}
        self._add(Submit.model_validate({"index": len(self._entries), "parameters": tuple(sorted(parameters))} | kept))

    def _check_answer(self, metric: str | None, effects: Mapping[str, Effect] | None, estimate: float | None) -> None:
        metrics = self.engine.metrics
        if metric is not None and metric not in metrics:
            self._refuse("submit", f"no metric {metric!r}; there are {', '.join(metrics)}")
        if effects is not None and set(effects) != set(metrics):
            self._refuse("submit", f"effects needs up, down or none for each of {', '.join(metrics)}")
        sweep = self.task.sweep
        if sweep is not None and (estimate is None or not sweep[0] <= estimate <= sweep[1]):
            self._refuse("submit", f"estimate must be between {sweep[0]:g} and {sweep[1]:g}")

    # --- inside ---

    def _add(self, entry: Entry) -> None:
        self._entries.append(entry)

    def _open(self, call: str) -> None:
        if self.ended:
            self._refuse(call, "the episode has ended with your submission")

    def _admit(self, call: str, metric: str | None) -> str:
        self._open(call)
        if self.calls_left <= 0:
            self._refuse(call, f"the budget of {self.task.budget} calls is used up; submit", over_budget=True)
        if metric is None and self.task.tier == "L1B":
            self._refuse(
                call, f"this task does not reveal its target: choose a metric, {', '.join(self.engine.metrics)}"
            )
        chosen = metric or self.task.target
        if chosen not in self.engine.metrics:
            self._refuse(call, f"no metric {chosen!r}; there are {', '.join(self.engine.metrics)}")
        return chosen

    def _resolve(self, call: str, config: Mapping[str, float]) -> dict[str, float]:
        """Overrides that really differ from the control, checked without being run."""
        control, resolved = self.task.control, dict[str, float]()
        for name, value in sorted(config.items()):
            if name not in control:
                self._refuse(call, f"no parameter {name!r}; there are {', '.join(control)}")
            if isinstance(value, bool) or not isinstance(value, int | float):
                self._refuse(call, f"{name}: {value!r} is no number")
            parameter = self.engine.parameter(name)
            low, high = (parameter.low, parameter.high) if self.task.tier == "L4" else parameter.legal
            if not low <= value <= high:
                self._refuse(call, f"{name} must be between {low:g} and {high:g}")
            number = float(round(value)) if parameter.integer else float(value)
            if number != control[name]:
                resolved[name] = number
        return resolved

    def _refuse(self, call: str, reason: str, *, over_budget: bool = False) -> None:
        self._add(Refused(index=len(self._entries), call=call, reason=reason, over_budget=over_budget))
        raise BenchError(reason)

    def _cell(self, overrides: Mapping[str, float]) -> Metrics:
        key = tuple(sorted(overrides.items()))
        if key not in self._cells:
            self._cells[key] = self.engine.run({**self._base, **overrides}, self.task.seeds)
        return self._cells[key]

    def _compare(self, first: Metrics, second: Metrics, metric: str) -> tuple[float, Statistics]:
        names = sorted(first)
        tests = {name: mann_whitney(first[name], second[name]) for name in names}
        adjusted = dict(zip(names, holm([float(tests[name][1]) for name in names]).tolist(), strict=True))
        before, after = float(first[metric].mean()), float(second[metric].mean())
        change = relative_change(before, after)
        statistics = Statistics(
            mean_a=_rounded(before),
            mean_b=_rounded(after),
            relative_change=_rounded(change) if np.isfinite(change) else None,
            u=float(tests[metric][0]),
            p_adjusted=_rounded(adjusted[metric]),
            significant=adjusted[metric] < ALPHA,
            cliffs_delta=_rounded(cliffs_delta(first[metric], second[metric])),
            calls_left=self.calls_left - 1,
        )
        if self.task.tier == "L1V":
            vector = {
                name: MetricStatistics(
                    mean_a=_rounded(float(first[name].mean())), mean_b=_rounded(float(second[name].mean())),
                    p_adjusted=_rounded(adjusted[name]), significant=adjusted[name] < ALPHA,
                    cliffs_delta=_rounded(cliffs_delta(first[name], second[name])),
                )
                for name in names
            }  # fmt: skip
            statistics = VectorStatistics(**statistics.model_dump(), vector=vector)
        return _rounded(float(tests[metric][1])), statistics


_ASKED: Final[dict[Tier, tuple[str, ...]]] = {
    "L1": ("direction",), "L2": ("direction", "magnitude"), "L3": ("interaction",), "L1V": ("effects",),
    "L1B": ("direction", "metric"), "L4": ("estimate",),
}  # fmt: skip
"""What a tier asks for beside the parameters."""
_KEPT_ANYWAY: Final = ("direction", "magnitude", "interaction")
"""Logged also where the tier does not ask for it, as the paper's harness does."""


def signature(statistics: Statistics) -> dict[str, Effect]:
    """Metric -> effect that a vector answer shows from side a to side b; empty for an answer on one metric."""
    if not isinstance(statistics, VectorStatistics):
        return {}
    return {
        name: ("up" if item.cliffs_delta > 0 else "down") if item.significant else "none"
        for name, item in sorted(statistics.vector.items())
    }


def _rounded(value: float) -> float:
    """Six significant digits: what is compared and logged does not depend on the last bits."""
    return float(f"{value:.6g}")
