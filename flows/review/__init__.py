"""Stage 7, review: what waits for a person, what the person sees, what becomes of the decision. Knows no Prefect."""

from flows.review.content import Wording, content_digest, decided_on
from flows.review.decisions import Answer, decide, problems_of, waits
from flows.review.policy import ReviewPolicy, read_policy, write_policy
from flows.review.queue import QueueEntry, queue_of
from flows.review.rules import Rule, approve_by_rule, parse_rule

__all__ = [
    "Answer", "QueueEntry", "ReviewPolicy", "Rule", "Wording", "approve_by_rule", "content_digest", "decide",
    "decided_on", "parse_rule", "problems_of", "queue_of", "read_policy", "waits",
    "write_policy",
]  # fmt: skip
