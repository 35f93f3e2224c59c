"""The real flows of curation with stages that only take time: for `benchmarks.prefect.simulate`, and nothing else.

Importing this module replaces the one function that does a paper's work by one that sleeps as long as
`EXPBENCH_SIMULATED_STAGE_S` says, stage by stage, and reports its progress as the real one does (log lines, artifacts).
Everything around it - flows, tasks, retries, slots, fan-out, task runners - is the product's own.
"""

from __future__ import annotations

import os
import random
import time

from flows.curate import CurateOptions
from flows.orchestration import curation
from flows.orchestration.batch import curate
from flows.orchestration.curation import curate_paper
from flows.outcome import Outcome
from pipeline.progress import Reporter
from pipeline.settings import Settings

__all__ = ["curate", "curate_paper"]

STAGES = ("extract", "draft", "locate", "validate", "mask")


def slept(options: CurateOptions, reporter: Reporter, settings: Settings) -> Outcome:
    """Sleep through the stages; the times are drawn by the paper's name, half to one and a half of the mean each."""
    mean = float(os.environ["EXPBENCH_SIMULATED_STAGE_S"]) / len(STAGES)
    draw = random.Random(str(options.pdf))
    for stage in STAGES:
        reporter.start(stage, 1)
        time.sleep(mean * draw.uniform(0.5, 1.5))
        reporter.end(stage)
    root = options.out or options.pdf.parent
    return Outcome(
        workspace=root, page=root / "index.html", engine=settings.engine, sandbox="process", tasks=(), candidates=0
    )


curation.run_curate = slept
