"""The form of a review: what a person fills in, and the rules that Prefect's server checks before it accepts an answer.

Rules stand in the form's JSON schema (if/then): the server refuses a wrong answer on the spot, and the run stays
suspended. A validator in Python would run only after the resume and fail the run with its question used up.
"""

from __future__ import annotations

from typing import Any, ClassVar, Final, Literal

from prefect.input import RunInput
from pydantic import ConfigDict, Field

from flows.review import Answer, Wording, content_digest
from flows.review.page import review_page
from pipeline.store import Workspace
from pipeline.task import Task

__all__ = ["SEND_BACK", "ReviewForm", "form_for"]

SEND_BACK: Final = "send back to locate"
_COMMENT: Final = "Required when you reject or send back."

_NEEDS_COMMENT: Final[dict[str, Any]] = {
    "if": {"properties": {"decision": {"enum": ["reject", SEND_BACK]}}, "required": ["decision"]},
    "then": {"properties": {"comment": {"minLength": 1, "pattern": r"\S"}}, "required": ["comment"]},
}


class ReviewForm(RunInput):
    """What a reviewer answers. Fields are shown in this order."""

    model_config: ClassVar[ConfigDict] = ConfigDict(extra="forbid", json_schema_extra=_NEEDS_COMMENT)

    decision: Literal["approve", "edit", "reject", "send back to locate"] = Field(
        title="Decision",
        description="edit: approve with the changes made below. send back to locate: look for other scripts.",
    )
    reviewer: str = Field(
        title="Reviewer", min_length=1, pattern=r"\S", description="Your name; recorded with the decision."
    )
    comment: str = Field("", title="Comment", description=_COMMENT)
    question: str = Field("", title="Question", description="Must not state the answer: agents read it.")
    method: str = Field("", title="Method", description="Must not state the answer: agents read it.")
    expected: str = Field("", title="Expected outcome", description="Only the judge sees it.")
    sources: str = Field(
        "",
        title="Sources",
        description="One path a line, with its role in brackets. A change re-executes and masks the task again.",
    )
    masked: str = Field(
        "",
        title="Masked paths",
        description="One path a line. A change masks the task again; you will see the new leak report.",
    )

    def answer(self, *, shown: str, run: str) -> Answer:
        """The answer for `flows.review.decide`."""
        return Answer(
            decision="send_back" if self.decision == SEND_BACK else self.decision,
            reviewer=self.reviewer,
            comment=self.comment,
            wording=Wording(
                question=self.question,
                method=self.method,
                expected=self.expected,
                sources=self.sources,
                masked=self.masked,
            ),
            shown=shown,
            run=run,
        )


def form_for(
    workspace: Workspace, task: Task, problems: tuple[str, ...] = (), refused: Answer | None = None
) -> type[ReviewForm]:
    """The form of one task: the page as its description, the texts filled in.

    Args:
        workspace: where the task lies.
        task: as stored.
        problems: what was wrong with the last answer.
        refused: the last answer itself; where the task is still the one it was given on, its texts are filled in.
    """
    wording = Wording.of(task)
    prefilled: dict[str, Any] = {}
    if refused is not None:
        prefilled["reviewer"] = Field(refused.reviewer, title="Reviewer", min_length=1, pattern=r"\S")
        prefilled["comment"] = Field(refused.comment, title="Comment", description=_COMMENT)
        if refused.wording is not None and refused.shown == content_digest(task):
            wording = refused.wording
    for name in Wording.model_fields:
        field = ReviewForm.model_fields[name]
        # a plain value would lose the field's title and description
        prefilled[name] = Field(getattr(wording, name), title=field.title, description=field.description)
    return ReviewForm.with_initial_data(description=review_page(workspace, task, problems), **prefilled)
