"""The five simulations of the `causal` family."""

from typing import Final

from evaluation.families.causal.engines import market, morph, origin, social, swarm
from evaluation.families.causal.engines.base import Config, Engine, Metrics, Parameter

__all__ = ["ENGINES", "Config", "Engine", "Metrics", "Parameter"]

ENGINES: Final[dict[str, Engine]] = {
    module.ENGINE.name: module.ENGINE for module in (market, swarm, origin, morph, social)
}
