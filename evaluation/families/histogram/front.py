"""Accuracy against cost, with the front that no agent beats in both (Collider-Bench Figures 2b and 7b), as SVG."""

from __future__ import annotations

from collections.abc import Sequence
from html import escape
from typing import Final

from evaluation.families.histogram.tables import AgentSummary

__all__ = ["front_svg"]

_WIDTH: Final = 640
_HEIGHT: Final = 400
_LEFT: Final = 60
_RIGHT: Final = 170
_TOP: Final = 40
_BOTTOM: Final = 50


def front_svg(agents: Sequence[AgentSummary], tau: float) -> str:
    """The plot; agents of unknown cost or accuracy are named below it.

    Args:
        agents: of `histogram_tables`.
        tau: threshold of Acc.
    """
    points = sorted(
        (item.cost_usd.mean, item.accuracy, item.agent, item.on_front)
        for item in agents
        if item.cost_usd.mean is not None and item.accuracy is not None
    )
    dearest = max((cost for cost, *_ in points), default=0.0) or 1.0
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM

    def x_of(cost: float) -> float:
        return _LEFT + (right - _LEFT) * cost / (1.05 * dearest)

    def y_of(accuracy: float) -> float:
        return bottom - (bottom - _TOP) * accuracy

    title = f"Acc (tau = {tau:g}) against the mean cost of a run"
    parts = [f'<text x="{_LEFT}" y="20" font-weight="bold">{title}</text>']
    for share in (0.0, 0.25, 0.5, 0.75, 1.0):
        parts.append(f'<path d="M{_LEFT} {y_of(share):.1f}H{right}" stroke="#e4e4e4"/>')
        parts.append(f'<text x="{_LEFT - 6}" y="{y_of(share) + 4:.1f}" text-anchor="end">{share:g}</text>')
        cost = share * dearest
        parts.append(f'<text x="{x_of(cost):.1f}" y="{bottom + 16}" text-anchor="middle">{cost:.3g}</text>')
    parts.append(f'<path d="M{_LEFT} {_TOP}V{bottom}H{right}" fill="none" stroke="#333"/>')
    parts.append(f'<text x="{(_LEFT + right) / 2}" y="{bottom + 36}" text-anchor="middle">cost, USD</text>')
    front = [(cost, accuracy) for cost, accuracy, _, on_front in points if on_front]
    if front:
        line = "L".join(f"{x_of(cost):.1f} {y_of(accuracy):.1f}" for cost, accuracy in front)
        parts.append(f'<path d="M{line}" fill="none" stroke="#c0392b" stroke-dasharray="5 4"/>')
    for cost, accuracy, agent, on_front in points:
        colour = "#c0392b" if on_front else "#555"
        x, y = x_of(cost), y_of(accuracy)
        parts.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="4" fill="{colour}"/>')
        parts.append(f'<text x="{x + 7:.1f}" y="{y - 6:.1f}">{escape(agent)}</text>')
    unknown = sorted({item.agent for item in agents} - {agent for _, _, agent, _ in points})
    if unknown:
        told = escape(f"without known cost or accuracy: {', '.join(unknown)}")
        parts.append(f'<text x="{_LEFT}" y="{_HEIGHT - 4}" fill="#555">{told}</text>')
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {_WIDTH} {_HEIGHT}" role="img" font-family="sans-serif" '
        f'font-size="12"><title>{title}</title><rect width="{_WIDTH}" height="{_HEIGHT}" fill="#fff"/>'
        f"{''.join(parts)}</svg>\n"
    )
