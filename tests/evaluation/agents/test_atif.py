"""ATIF: the rules of harbor's validator, on recorded and on arbitrary trajectories.

The files that `to_atif` makes of the recorded logs were also checked once by harbor's own `TrajectoryValidator`.
"""

from __future__ import annotations

import json

import pytest
from hypothesis import given
from hypothesis import strategies as st
from pydantic import ValidationError

from evaluation.agents.atif import AtifStep, AtifTrajectory, export_atif, to_atif
from evaluation.trajectory import (
    CommandRun,
    End,
    FileChange,
    LimitHit,
    ModelCall,
    ModelTurn,
    Note,
    TokenUsage,
    ToolResult,
    ToolUse,
    TrajectoryHead,
    Utterance,
)
from evaluation.trajectory_io import TrajectoryWriter
from tests.evaluation.agents.test_readers import MAIN, recorded

HEAD = TrajectoryHead(episode="task/0", agent="x", agent_version="1", model="m")
USAGE = TokenUsage(input_tokens=10, output_tokens=2, cached_input_tokens=4)


def checked(events, head=HEAD):
    """The trajectory as its file says it, read back under the format's rules."""
    return AtifTrajectory.model_validate_json(to_atif(head, events).to_json())


@pytest.mark.parametrize("agent", sorted(MAIN))
def test_recorded_trajectories_are_valid_and_keep_what_was_run(agent):
    events = recorded(agent)
    steps = checked(events).steps
    outputs = [
        r.content for s in steps if s.observation for r in s.observation.results if r.extra and "exit_code" in r.extra
    ]
    assert outputs == [e.output for e in events if isinstance(e, CommandRun) and e.exit_code is not None]
    messages = [s.message for s in steps if s.source == "agent" and s.llm_call_count == 1]
    assert messages == [e.text for e in events if isinstance(e, ModelTurn)]


EVENTS = st.one_of(
    st.builds(Utterance, seq=st.just(0), at=st.floats(0, 9), role=st.sampled_from(["system", "user", "agent"]), text=st.text()),
    st.builds(
        ModelTurn, seq=st.just(0), at=st.floats(0, 9), text=st.text(), reasoning=st.text(), usage=st.none() | st.just(USAGE),
        tool_uses=st.lists(st.builds(ToolUse, id=st.sampled_from("abc"), name=st.just("bash")), max_size=3).map(tuple),
    ),
    st.builds(CommandRun, seq=st.just(0), at=st.floats(0, 9), call=st.none() | st.sampled_from("abcd"), command=st.text()),
    st.builds(ToolResult, seq=st.just(0), at=st.floats(0, 9), call=st.sampled_from(["", "a", "d"]), name=st.text(), output=st.text()),
    st.builds(FileChange, seq=st.just(0), at=st.floats(0, 9), call=st.none() | st.just("b"), path=st.text(), action=st.just("edited")),
    st.builds(ModelCall, seq=st.just(0), at=st.floats(0, 9), endpoint=st.just("/v1"), status=st.just(200), cost_usd=st.none() | st.just(0.5)),
    st.builds(LimitHit, seq=st.just(0), at=st.floats(0, 9), limit=st.just("money"), detail=st.text()),
    st.builds(Note, seq=st.just(0), at=st.floats(0, 9), text=st.text()),
    st.builds(End, seq=st.just(0), at=st.floats(0, 9), reason=st.just("finished")),
)  # fmt: skip


@given(st.lists(EVENTS, max_size=12))
def test_any_trajectory_is_valid(events):
    built = checked([event.model_copy(update={"seq": seq}) for seq, event in enumerate(events)])
    assert built.final_metrics.total_steps == len(built.steps)
    results = sum(len(step.observation.results) for step in built.steps if step.observation)
    assert results == sum(isinstance(event, CommandRun | ToolResult | FileChange) for event in events)


def test_a_trajectory_without_events_has_one_step():
    assert [step.source for step in checked([]).steps] == ["system"]
    assert checked([], TrajectoryHead(episode="t/0", agent="x")).agent.version == "unknown"


def test_totals_are_the_gateways_and_unknown_is_not_zero():
    def call(**values):
        return ModelCall(seq=0, at=0, endpoint="/v1/chat/completions", status=200, **values)

    turn = ModelTurn(seq=0, at=0, usage=TokenUsage(input_tokens=999))
    known = checked([turn, call(usage=USAGE, cost_usd=0.5), call(usage=USAGE, cost_usd=0.25)]).final_metrics
    assert (known.total_prompt_tokens, known.total_cached_tokens, known.total_cost_usd) == (20, 8, 0.75)
    part = checked([call(usage=USAGE, cost_usd=0.5), call()]).final_metrics
    assert (part.total_prompt_tokens, part.total_cost_usd) == (10, None)
    assert part.extra == {"model_calls": 2, "calls_without_usage": 1}
    own = checked([turn]).final_metrics
    assert (own.total_prompt_tokens, own.total_cost_usd) == (999, None)


def test_a_reused_call_id_means_the_latest_turn():
    use = ToolUse(id="a", name="bash")
    events = [
        ModelTurn(seq=0, at=0, text="1", tool_uses=(use,)),
        CommandRun(seq=1, at=0, call="a", command="one", output="first"),
        ModelTurn(seq=2, at=0, text="2", tool_uses=(use,)),
        CommandRun(seq=3, at=0, call="a", command="two", output="second"),
    ]
    assert [step.observation.results[0].content for step in checked(events).steps if step.observation] == [
        "first",
        "second",
    ]


@pytest.mark.parametrize(
    "wrong",
    [
        {"source": "user", "model_name": "m"},
        {"source": "agent", "llm_call_count": 0, "reasoning_content": "r"},
        {"source": "agent", "observation": {"results": [{"source_call_id": "a"}]}},
    ],
)
def test_the_rules_of_the_format_are_kept(wrong):
    with pytest.raises(ValidationError):
        AtifStep.model_validate({"step_id": 1, "message": "", **wrong})


def test_a_trajectory_file_is_exported(tmp_path):
    with TrajectoryWriter(tmp_path / "trajectory.jsonl", HEAD) as writer:
        writer.append(Utterance(seq=0, at=0.5, role="user", text="Ünïcode"))
        writer.append(End(seq=0, at=2, reason="limit", exit_code=137))
    with (tmp_path / "trajectory.jsonl").open("a") as stream:
        stream.write('{"kind": "no')
    problems = export_atif(tmp_path / "trajectory.jsonl", tmp_path / "out" / "atif.json")
    assert len(problems) == 1
    written = json.loads((tmp_path / "out" / "atif.json").read_text())
    assert written["schema_version"] == "ATIF-v1.7"
    assert written["session_id"] == "task/0"
    assert written["steps"] == [{"step_id": 1, "source": "user", "message": "Ünïcode", "extra": {"at_s": 0.5}}]
    assert written["extra"]["end"]["reason"] == "limit"
