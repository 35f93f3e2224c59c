"""What the locator found for one task as one HTML page that opens without a network."""

from __future__ import annotations

from jinja2 import Environment, PackageLoader, StrictUndefined, select_autoescape

from flows.locate_commands import command_groups
from flows.locate_run import LocateResult, engine_words, problems_of
from pipeline.locator import TaskQuery

__all__ = ["locate_page"]


def locate_page(result: LocateResult, query: TaskQuery, *, shown: int) -> str:
    """The page: the decision with its commands, the ranking with its reasons.

    Args:
        result: from `located`.
        query: the task.
        shown: files of the ranking.
    """
    environment = Environment(
        loader=PackageLoader("flows"), autoescape=select_autoescape(default=True), undefined=StrictUndefined
    )
    chain = result.location.chain
    return environment.get_template("locate.html.j2").render(
        result=result,
        query=query,
        chain=chain,
        commands=command_groups(chain.usage) if chain else (),
        problems=problems_of(result),
        members={source.path: source.role for source in chain.sources} if chain else {},
        ranked=result.location.ranked[:shown],
        engine=engine_words(result),
        alternatives=result.location.alternatives,
        best=max((source.score for source in result.location.ranked), default=1.0),
        worst=min((source.score for source in result.location.ranked[:shown]), default=0.0),
    )
