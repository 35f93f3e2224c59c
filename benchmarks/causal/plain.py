"""The five models as one would write them down in NumPy: one replicate, one function, no layout tricks.

What the engines are measured against. The update rules are the engines' own; random streams and summation order are
not, so results agree in distribution only (the run checks that the target's mean does).
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

import numpy as np

from evaluation.families.causal.engines import market as market_engine
from evaluation.families.causal.engines import morph as morph_engine
from evaluation.families.causal.engines import origin as origin_engine
from evaluation.families.causal.engines import social as social_engine
from evaluation.families.causal.engines import swarm as swarm_engine

Plain = Callable[[Mapping[str, float], int], float]


def market(c: Mapping[str, float], seed: int) -> float:
    """Volatility in percent."""
    rng = np.random.default_rng(seed)
    gap = before = c["initial_gap"]
    share, moves = c["initial_fundamentalists"], []
    for _ in range(market_engine._STEPS):
        a, b = rng.standard_normal(2)
        steady = share * (c["fundamental_noise"] * a - c["pull"] * gap)
        eager = (1 - share) * (c["chartist_noise"] * b + c["trend"] * (gap - before))
        before, gap = gap, gap + c["impact"] * (steady + eager)
        moves.append(gap - before)
        pull = c["bias"] + c["herding"] * (2 * share - 1) + c["misalignment"] * gap**2
        pull *= 0.5 * c["switching"]
        share = 0.5 * (1 + pull / (1 + abs(pull)))
    return 100 * float(np.std(moves[market_engine._BURN_IN :]))


def swarm(c: Mapping[str, float], seed: int) -> float:
    """Mean polarization of the second half."""
    rng = np.random.default_rng(seed)
    count, box = int(c["agents"]), c["box"]

    def unit(vectors: np.ndarray) -> np.ndarray:
        return vectors / np.linalg.norm(vectors, axis=1, keepdims=True)

    position, heading = rng.random((count, 2)) * box, unit(rng.standard_normal((count, 2)))
    order = []
    for _ in range(swarm_engine._STEPS):
        apart = position[None] - position[:, None]
        apart -= box * np.round(apart / box)
        distance = np.linalg.norm(apart, axis=2)
        near = distance <= c["radius"]
        number = near.sum(axis=1, keepdims=True)
        close = distance < c["personal_space"]
        wanted = c["alignment"] * (near @ heading) / number
        wanted += c["cohesion"] * (near[..., None] * apart).sum(axis=1) / number
        wanted -= c["separation"] * (close[..., None] * apart).sum(axis=1)
        wanted += c["noise"] * unit(rng.standard_normal((count, 2)))
        heading = unit(c["inertia"] * heading + wanted)
        position = (position + c["speed"] * heading) % box
        order.append(np.linalg.norm(heading.mean(axis=0)))
    return float(np.mean(order[-swarm_engine._MEASURED :]))


def origin(c: Mapping[str, float], seed: int) -> float:
    """Population at the end."""
    rng = np.random.default_rng(seed)
    size = origin_engine._CLASSES
    population = np.zeros(size)
    population[0] = c["founders"]
    fitness = (1 - c["selection"]) ** np.arange(size)
    spectrum = np.array(origin_engine._poisson_weights(c["mutation_rate"]))
    for _ in range(origin_engine._GENERATIONS):
        resource = c["capacity"] * (1 - c["drought_loss"] if rng.random() < c["drought_rate"] else 1.0)
        crowding = 1 / (1 + (c["fertility"] - 1) * population.sum() / resource)
        parents = population * fitness * c["fertility"] * crowding
        population = rng.poisson(np.convolve(parents, spectrum)[:size] * (1 - c["child_mortality"])).astype(float)
    return float(population.sum())


def morph(c: Mapping[str, float], seed: int) -> float:
    """Patterned regions at the end."""
    rng = np.random.default_rng(seed)
    side = morph_engine._SIDE
    u, v = np.ones((side, side), np.float32), np.zeros((side, side), np.float32)
    half = int(c["seed_size"]) // 2
    for y, x in rng.integers(0, side, (int(c["seed_patches"]), 2)):
        ys, xs = np.arange(y - half, y + half + 1) % side, np.arange(x - half, x + half + 1) % side
        u[ys[:, None], xs], v[ys[:, None], xs] = 0.5, 0.25
    u += c["roughness"] * rng.random((side, side), np.float32)
    v += c["roughness"] * rng.random((side, side), np.float32)

    def laplacian(field: np.ndarray) -> np.ndarray:
        return sum(np.roll(field, step, axis) for step in (1, -1) for axis in (0, 1)) - 4 * field

    for _ in range(morph_engine._STEPS):
        reaction = u * v * v
        u, v = (
            u + c["diffusion_u"] * laplacian(u) - reaction + c["feed"] * (1 - u),
            v + c["diffusion_v"] * laplacian(v) + reaction - (c["feed"] + c["kill"]) * v,
        )
    return float(morph_engine.count_blobs(v > morph_engine._LEVEL))


def social(c: Mapping[str, float], seed: int) -> float:
    """Clusters at the end."""
    rng = np.random.default_rng(seed)
    count = int(c["agents"]) // 2 * 2
    opinion = 0.5 + (rng.random(count) - 0.5) * c["initial_spread"]
    fixed = rng.random(count) < c["stubborn"]
    for _ in range(social_engine._SWEEPS):
        order = rng.permutation(count)
        left, right = order[: count // 2], order[count // 2 :]
        gap = opinion[right] - opinion[left]
        change = c["mu"] * gap * (np.abs(gap) < c["epsilon"])
        moved = opinion.copy()
        moved[left] += change
        moved[right] -= change
        moved += c["media"] * (0.5 - moved)
        jumping = rng.random(count) < c["noise"]
        moved[jumping] = rng.random(int(jumping.sum()))
        opinion = np.where(fixed, opinion, moved)
    edges = np.flatnonzero(np.diff(np.sort(opinion)) > social_engine._GAP)
    sizes = np.diff(np.concatenate(([0], edges + 1, [count])))
    return float((sizes >= social_engine._SMALLEST * count).sum())


PLAIN: dict[str, Plain] = {"market": market, "swarm": swarm, "origin": origin, "morph": morph, "social": social}
