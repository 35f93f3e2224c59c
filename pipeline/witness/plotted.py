"""What the plots of a run were given, as observations: the run computed them."""

from __future__ import annotations

from pipeline.validation.observation import Observation, observe
from pipeline.validation.scalars import number_of
from pipeline.witness.records import Plotted, WitnessReport

__all__ = ["observe_plotted"]


def observe_plotted(report: WitnessReport) -> tuple[Observation, ...]:
    """The numbers that plots of all processes were given, in the order of processes and calls.

    Labels are the title, the label of the axis that the values are read from, and the series; the coordinate is where
    the value stands on the other axis. Values between the first and the last 1,000 of a series are not among them.
    """
    found: list[Observation] = []
    before = 0
    for process in report.processes:
        argv = " ".join(process.argv)
        for ordinal, plotted in enumerate(process.plotted, 1):
            found += _observe_series(plotted, before + plotted.axes, ordinal, argv)
        before += max((plotted.axes for plotted in process.plotted), default=0)
    return tuple(found)


def _observe_series(plotted: Plotted, number: int, ordinal: int, argv: str) -> list[Observation]:
    title = f' "{plotted.title}"' if plotted.title else ""
    series = f'series "{plotted.series}"' if plotted.series else f"{plotted.kind} {ordinal}"
    found = []
    for index, (x, value) in enumerate(zip(plotted.x, plotted.values, strict=True)):
        if told := number_of(value):
            observation = observe(
                told._replace(uncertainty=plotted.errors[index] if plotted.errors else None),
                labels=(plotted.title, plotted.y_label, plotted.series),
                coordinates=((plotted.x_label or "x", x if isinstance(x, str) else f"{x:g}"),),
                context=(argv,),
                where=f"plot {number}{title}: {series} [{index}]",
                source=f"plot {number}",
            )
            found.append(observation)
    return found
