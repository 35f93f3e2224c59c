"""Likeness of meaning: in the ranking only with an embedding model, asked over HTTP, for the best files alone."""

import math

import pytest

from pipeline.llm import ModelClient
from pipeline.llm.protocol_server import ProtocolServer
from pipeline.locator import TaskQuery, build_index, locate
from pipeline.locator.dense import describe, likeness
from tests.llm_fixtures import connect, no_ambient_model, protocol_server  # noqa: F401 - fixtures
from tests.pipeline.locator.repositories import make

QUERY = TaskQuery(question="Does the forest learn spirals?", method="Train the forest on spirals.")


@pytest.fixture
def index(tmp_path):
    body = '"""Train on spirals."""\n\n\ndef {0}():\n    return 1\n\n\nif __name__ == "__main__":\n    {0}()\n'
    names = ("forest_spirals", "kernel_spirals", *(f"unrelated_{number}" for number in range(20)))
    return build_index(make(tmp_path / "repository", {f"{name}.py": body.format(name) for name in names}))


def test_an_embedding_model_is_asked_once_for_the_task_and_the_best_files(index, protocol_server, connect):  # noqa: F811
    server: ProtocolServer = protocol_server()
    client: ModelClient = connect(server)
    found = locate(index, QUERY, embed=client.embed)
    (request,) = server.requests
    assert request.path.endswith("/embeddings")
    assert len(request.body["input"]) == 16
    assert any("forest spirals" in text for text in request.body["input"])
    plain = locate(index, QUERY)
    assert {source.path for source in found.ranked[:15]} == {source.path for source in plain.ranked[:15]}
    moved = {source.path: source.score for source in found.ranked}
    changed = {source.path for source in plain.ranked if source.score != moved[source.path]}
    assert changed
    assert changed <= {source.path for source in plain.ranked[:15]}
    assert locate(index, QUERY, embed=client.embed) == found


def test_a_file_that_was_not_compared_never_overtakes_one_that_was(index):
    def embed(texts):
        return [(1.0, 0.0), *((-1.0, 0.1) for _ in texts[1:8]), *((1.0, 0.1) for _ in texts[8:])]

    best = {source.path for source in locate(index, QUERY).ranked[:15]}
    found = locate(index, QUERY, embed=embed)
    assert {source.path for source in found.ranked[:15]} == best
    said = [reason for source in found.ranked for reason in source.reasons if "embedding model" in reason]
    assert said
    assert not any("embedding" in reason for source in locate(index, QUERY).ranked for reason in source.reasons)


def test_likeness_is_the_cosine_less_the_mean_and_a_file_without_words_is_no_error(index):
    vectors = {"task": (1.0, 0.0), describe(index.facts[0]): (2.0, 0.0), describe(index.facts[1]): (0.0, 3.0)}
    found = likeness(lambda texts: [vectors[text] for text in texts], "task", index.facts[:2])
    assert found.tolist() == pytest.approx([0.5, -0.5])
    nothing = likeness(lambda texts: [(0.0, 0.0)] * len(texts), "task", index.facts[:3])
    assert not any(math.isnan(value) for value in nothing.tolist())
    assert likeness(lambda texts: [], "task", []).size == 0
