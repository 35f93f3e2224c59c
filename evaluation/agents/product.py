"""What the adapters of agents from elsewhere share: a bundle, a model, and a log in their own format."""

from __future__ import annotations

from importlib import resources
from typing import Literal

from evaluation.agents.base import AgentAvailability, AgentContext, Mount
from evaluation.agents.bundles import RECIPES, Bundle, bundle_availability, require_bundle
from pipeline.errors import ExpbenchError, FailureKind

__all__ = ["INSTRUCTIONS", "ProductAgent", "model_and_url", "program_text"]

INSTRUCTIONS = "instructions.md"
"""Name of the instructions in the inbox."""


class ProductAgent:
    """Base of the adapters: everything that does not differ between them."""

    name: str
    description: str
    kind: Literal["bound", "loop", "product", "command"] = "product"

    @property
    def version(self) -> str | None:
        """The version that its recipe installs."""
        return RECIPES[self.name].version

    def availability(self) -> AgentAvailability:
        """Is its bundle installed? Never raises."""
        return bundle_availability(self.name)

    def bundle(self) -> tuple[Bundle, tuple[Mount, ...]]:
        """The bundle and its mount.

        Raises:
            ExpbenchError: `TOOL_MISSING`, it is not installed.
        """
        bundle = require_bundle(self.name)
        return bundle, (Mount(source=bundle.path, target=bundle.target),)


def model_and_url(name: str, context: AgentContext, protocol: Literal["openai", "anthropic"]) -> tuple[str, str]:
    """The model's name and the gateway's address for this protocol.

    Raises:
        ExpbenchError: `USAGE`: the agent needs a model and none is given.
    """
    url = context.base_url_openai if protocol == "openai" else context.base_url_anthropic
    if not context.model or not url:
        missing = (
            "no model is given" if not context.model else f"there is no endpoint that speaks {protocol}'s protocol"
        )
        raise ExpbenchError(
            FailureKind.USAGE,
            f"agent {name}",
            f"it needs a model, and {missing}",
            consequence="No episode was run",
            next_step="Name a model with --model or EXPBENCH_MODEL, and its endpoint (docs/models.md)",
        )
    return context.model, url


def program_text(package: str, *names: str) -> dict[str, str]:
    """Files of a program that is shipped into the container: name -> text."""
    folder = resources.files(f"evaluation.agents.{package}")
    return {name: folder.joinpath(name).read_text(encoding="utf-8") for name in names}
