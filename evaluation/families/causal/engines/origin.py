"""Evolution of a population whose members carry deleterious mutations and compete for a limited resource.

State: how many individuals carry k mutations. Per generation each leaves a Poisson number of offspring, fewer with more
mutations and with less of the resource left; offspring gain Poisson many mutations. The mutation load follows Haldane
(1937, The effect of variation on fitness) and Kimura and Maruyama (1966, Genetics 54, 1337-1351): mean relative fitness
exp(-U) at equilibrium, and classes Poisson with mean U/s.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from evaluation.families.causal.engines.base import Config, Engine, Metrics, Parameter, generators

__all__ = ["ENGINE", "classes"]

_GENERATIONS = 240
_CLASSES = 40
"""Mutations are counted up to here; at the control no individual of 200 replicates had more than 10. Who gets more is
lost, which is felt where selection hardly acts: at selection 0 and a mutation rate of .15, 14 % end in the last class.
"""


def classes(config: Config, seeds: Sequence[int], generations: int = _GENERATIONS) -> np.ndarray:
    """Individuals by number of mutations after the last generation, shape (replicates, classes)."""
    population = np.zeros((len(seeds), _CLASSES))
    population[:, 0] = float(int(config["founders"]))
    fitness = np.cumprod(np.concatenate(([1.0], np.full(_CLASSES - 1, 1.0 - config["selection"]))))
    spectrum = _poisson_weights(config["mutation_rate"])
    births, shocks = generators(seeds, 0), generators(seeds, 1)
    harsh = np.stack([rng.random(generations) for rng in shocks]) < config["drought_rate"]
    for generation in range(generations):
        total = population.sum(axis=1)
        resource = config["capacity"] * np.where(harsh[:, generation], 1.0 - config["drought_loss"], 1.0)
        crowding = 1.0 / (1.0 + (config["fertility"] - 1.0) * total / resource)  # Beverton-Holt
        parents = population * fitness * (config["fertility"] * crowding)[:, None]
        expected = np.zeros_like(population)
        for gained, weight in enumerate(spectrum):
            expected[:, gained:] += weight * parents[:, : _CLASSES - gained]
        survivors = expected * (1.0 - config["child_mortality"])
        population = np.stack([rng.poisson(row).astype(np.float64) for rng, row in zip(births, survivors, strict=True)])
    return population


def _poisson_weights(rate: float) -> list[float]:
    """Probabilities of 0, 1, 2, ... new mutations, those above 1e-12; by the series itself, not by libm's exp."""
    terms, term = [1.0], 1.0
    while len(terms) < 12 or (term > 1e-12 and len(terms) < _CLASSES):
        term = term * rate / len(terms)
        terms.append(term)
    whole = sum(terms)
    return [value / whole for value in terms if value / whole > 1e-12]


def simulate(config: Config, seeds: Sequence[int]) -> Metrics:
    """Simulate `len(seeds)` populations.

    Returns:
        `population` (individuals at the end), `load` (mean number of mutations), `diversity` (inverse Simpson index of
        mutation classes), `fittest` (share without mutations). The last three are 0 for an extinct population.
    """
    final = classes(config, seeds)
    total = final.sum(axis=1)
    share = final / np.maximum(total, 1.0)[:, None]
    simpson = (share * share).sum(axis=1)
    return {
        "population": total,
        "load": (share * np.arange(_CLASSES)).sum(axis=1),
        "diversity": (total > 0) / np.maximum(simpson, 1e-12),
        "fittest": share[:, 0],
    }


ENGINE = Engine(
    name="origin",
    version="2",
    domain="evolutionary population dynamics",
    parameters=(
        Parameter(name="capacity", control=150.0, low=12.0, high=1250.0, test_value=195.0, hidden=(163.0, 206.0),
                  meaning="resource: population at which an unmutated population holds its size"),
        Parameter(name="fertility", control=2.0, low=1.0, high=10.0, test_value=1.6, hidden=(1.5, 1.88),
                  meaning="offspring per individual when the resource is plenty"),
        Parameter(name="mutation_rate", control=0.1, low=0.0, high=1.0, test_value=0.14, hidden=(0.112, 0.15),
                  published=(0.0, 1.0), source="per genome, microbes to animals (Drake et al., 1998)",
                  meaning="new deleterious mutations per birth"),
        Parameter(name="selection", control=0.08, low=0.0, high=0.99, test_value=0.1,
                  published=(0.0, 1.0), source="a share",
                  meaning="relative fitness that each mutation costs"),
        Parameter(name="child_mortality", control=0.05, low=0.0, high=1.0, test_value=0.2, hidden=(0.095, 0.2375),
                  published=(0.0, 1.0), source="a share",
                  meaning="share of offspring who die before they breed"),
        Parameter(name="drought_rate", control=0.1, low=0.0, high=1.0, test_value=0.115, decoy=True,
                  published=(0.0, 1.0), source="a probability",
                  meaning="probability per generation that the resource is short"),
        Parameter(name="drought_loss", control=0.2, low=0.0, high=0.99, test_value=0.22, decoy=True,
                  published=(0.0, 1.0), source="a share",
                  meaning="share of the resource that a drought takes"),
        Parameter(name="founders", control=50, low=5, high=250, test_value=75, integer=True,
                  meaning="individuals at the start"),
    ),
    metrics=("population", "load", "diversity", "fittest"),
    target="population",
    interaction_target="population",
    simulate=simulate,
)  # fmt: skip
