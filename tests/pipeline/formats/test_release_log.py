"""Versions of a data set follow from what changed, and only grow."""

from __future__ import annotations

from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.formats.release_log import VersionEntry, changelog_markdown, compare, next_version
from tests.pipeline.test_store import make_task

numbers = st.integers(0, 40)


def parts(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


@settings(deadline=None)
@given(st.tuples(numbers, numbers, numbers), st.booleans(), st.booleans(), st.booleans())
def test_a_version_grows_exactly_when_something_changed(
    last: tuple[int, int, int], added: bool, repaired: bool, withdrawn: bool
) -> None:
    earlier = [VersionEntry(version=".".join(map(str, last)), tasks=1)]
    found = next_version(earlier, asked=None, added=added, repaired=repaired, withdrawn=withdrawn)
    assert (parts(found) > last) == (added or repaired or withdrawn)
    assert parts(found)[0] == last[0]
    assert next_version([], asked=None, added=added, repaired=repaired, withdrawn=withdrawn) == "1.0.0"


@settings(deadline=None)
@given(st.sets(st.sampled_from("abcdef")), st.sets(st.sampled_from("abcdef")))
def test_every_task_is_added_withdrawn_or_the_same(before: set[str], after: set[str]) -> None:
    old, new = (
        [make_task(f"paper-{name}") for name in sorted(before)],
        [make_task(f"paper-{name}") for name in sorted(after)],
    )
    added, repaired, withdrawn = compare(old, new, {})
    assert {change.task[-1] for change in added} == after - before
    assert {change.task[-1] for change in withdrawn} == before - after
    assert repaired == ()


def test_what_a_decision_changes_repairs_nothing_and_a_field_does() -> None:
    task = make_task()
    assert compare([task], [task.evolve(status="released", status_reason="x")], {}) == ((), (), ())
    _, (change,), _ = compare([task], [task.evolve(question="Other?", confidence=0.3)], {})
    assert change.what == ("question", "ground truth")
    entry = VersionEntry(version="1.0.1", date="2026-01-02", tasks=1, repaired=(change,))
    text = changelog_markdown([entry, VersionEntry(version="1.0.0", tasks=1)])
    assert "- `paper-table-1-accuracy`: question, ground truth" in text
    assert text.index("## 1.0.1 (2026-01-02)") < text.index("## 1.0.0\n")
