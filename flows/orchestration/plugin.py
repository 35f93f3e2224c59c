"""Prefect's start-up hook: `prefect deployment run curate-paper` means `curate-paper/local`.

Prefect asks for FLOW/DEPLOYMENT. The hook completes a name without a slash in the client's look-up by name; everything
else is left alone. It is loaded by Prefect through the entry point group `prefect.plugins`, and only where plug-ins are
enabled (`prefect.toml` of the project, or PREFECT_PLUGINS_ENABLED=1); without it the long name works everywhere.
"""

from __future__ import annotations

import functools
from typing import Any

from prefect.plugins import register_hook

from flows.orchestration.names import DEPLOYMENT

__all__ = ["setup_environment"]


@register_hook
def setup_environment(*, ctx: Any) -> None:
    """Complete short deployment names; called once by Prefect before its command line starts."""
    from prefect.client.orchestration import PrefectClient

    original = PrefectClient.read_deployment_by_name
    if getattr(original, "completes_names", False):
        return

    @functools.wraps(original)
    async def read_deployment_by_name(self: PrefectClient, name: str) -> Any:
        return await original(self, name if "/" in name else f"{name}/{DEPLOYMENT}")

    read_deployment_by_name.completes_names = True  # type: ignore[attr-defined]
    PrefectClient.read_deployment_by_name = read_deployment_by_name  # type: ignore[method-assign, assignment]
