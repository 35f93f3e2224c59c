"""Names that flows, deployments, limits and the command line agree on. Imports nothing."""

from __future__ import annotations

from typing import Final

__all__ = [
    "API_PORT", "CURATE_PAPER", "DEPLOYMENT", "EVALUATE", "EVALUATE_EPISODE", "LIMITS", "POOL", "QUEUE_ARTIFACT",
    "RELEASE", "REVIEW_TAG", "REVIEW_TASK",
]  # fmt: skip

DEPLOYMENT: Final = "local"
"""The deployment of each flow on the process pool; those on other pools are called after the pool."""
POOL: Final = "expbench"
"""The process pool."""
CURATE_PAPER: Final = "curate-paper"
REVIEW_TASK: Final = "review-task"
RELEASE: Final = "release"
EVALUATE: Final = "evaluate"
EVALUATE_EPISODE: Final = "evaluate-episode"
REVIEW_TAG: Final = "expbench-review"
"""On every review run: `/v2/runs?state=Suspended&tags=expbench-review` is the queue in the user interface."""
QUEUE_ARTIFACT: Final = "review-queue"
API_PORT: Final = 4200
LIMITS: Final = {"expbench-docker": 2, "expbench-model": 4, "expbench-gpu": 1}
"""Global concurrency limits that `expbench up` makes: flow runs that use containers, a language model, GPUs at a time.
Two for Docker: a re-execution is given two cores by default, and machines with four are common. A slot is held by a
lease, so that a run that was killed gives it back when the lease ends."""
