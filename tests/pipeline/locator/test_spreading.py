"""What links add to a score, against the same thing written as loops; and BM25 against its formula."""

import math
from collections import Counter

import numpy as np
from hypothesis import given, settings
from hypothesis import strategies as st

from pipeline.locator import build_index
from pipeline.locator.lexical import Lexicon, Vocabulary, scores_among
from pipeline.locator.spreading import _groups, link_signals
from pipeline.locator.stages import stage_of
from tests.pipeline.locator.repositories import make

SCORES = st.lists(st.floats(0, 1), min_size=6, max_size=6)
MEMBERS = st.lists(st.lists(st.integers(0, 5), min_size=0, max_size=4, unique=True), max_size=5)


@given(SCORES, MEMBERS)
@settings(deadline=None, max_examples=60)
def test_each_member_of_a_group_gets_the_best_of_the_others(scores, members):
    strength = np.array(scores)
    expected = np.zeros(6)
    for group in members:
        for one in group:
            others = [strength[other] for other in group if other != one]
            expected[one] = max([expected[one], *others])
    assert np.allclose(_groups(members).others(strength, 6), expected)


WORDS = st.lists(st.sampled_from(["train", "loss", "cifar", "plot", "adam"]), max_size=12)


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
@settings(deadline=None, max_examples=60)
def test_bm25_is_lucenes_formula(documents, query):
    lexicon = Lexicon.of([" ".join(words) for words in documents], Vocabulary(), b=0.75)
    # `tokens` stems: ask with the same words, and count what it counts
    mean = sum(map(len, documents)) / len(documents) or 1.0
    for number, words in enumerate(documents):
        total = 0.0
        for word in sorted(set(query)):
            having = sum(word in other for other in documents)
            count = words.count(word)
            if count:
                idf = math.log(1 + (len(documents) - having + 0.5) / (having + 0.5))
                total += idf * count / (count + 1.5 * (0.25 + 0.75 * len(words) / mean))
        assert math.isclose(lexicon.scores(query)[number], total, rel_tol=1e-5, abs_tol=1e-6)


def test_stages_are_read_off_names():
    paths = ("a/prepare_data.py", "x.py", "train.sh", "generate.py", "b/eval_ppl.py", "fid.py", "plot_fig.py")
    assert [stage_of(path) for path in paths] == [0, 1, 1, 2, 3, 3, 4]


def test_the_best_file_lifts_its_configuration_its_namesake_and_the_other_stage_beside_it(tmp_path):
    program = "import argparse\n\n\ndef main():\n    print(1)\n\n\nif __name__ == '__main__':\n    main()\n"
    index = build_index(
        make(
            tmp_path / "repository",
            {
                "run/train_vision.py": program + "CONFIG = 'settings/vision.yaml'\n",
                "run/train_text.py": program,
                "run/evaluate_vision.py": program,
                "other/evaluate_audio.py": program,
                "settings/vision.yaml": "lr: 0.1\n",
                "hydra/train_vision.yaml": "lr: 0.2\n",
                "hydra/audio.yaml": "lr: 0.3\n",
            },
        )
    )
    first = np.zeros(index.size)
    first[index.position["run/train_vision.py"]] = 5.0
    found = link_signals(index.edges, first)

    def lifted(name):
        return {facts.path for facts, value in zip(index.facts, found[name], strict=True) if value > 0.5}

    assert lifted("config_of_best") == {"settings/vision.yaml"}
    assert lifted("named_like_best") == {"hydra/train_vision.yaml"}
    assert lifted("step_of_best") == {"run/evaluate_vision.py"}


def test_code_that_is_run_and_uses_the_best_part_is_lifted_but_neither_tests_nor_what_is_imported(tmp_path):
    files = {
        "lib/memory.py": "def attend():\n    return 1\n",
        "lib/model.py": "from lib.memory import attend\n\n\ndef model():\n    return attend()\n",
        "lib/__init__.py": "",
        "chat.py": "from lib.memory import attend\n\nif __name__ == '__main__':\n    attend()\n",
        "train.py": "from lib.model import model\n\nif __name__ == '__main__':\n    model()\n",
        "tests/test_memory.py": "from lib.memory import attend\n\nif __name__ == '__main__':\n    attend()\n",
    }
    index = build_index(make(tmp_path / "repository", files))
    first = np.zeros(index.size)
    first[index.position["lib/memory.py"]] = 5.0
    found = link_signals(index.edges, first)["uses_best"]
    assert {facts.path for facts, value in zip(index.facts, found, strict=True) if value > 0.5} == {"chat.py"}


def test_a_path_written_in_the_task_is_named(tmp_path):
    from pipeline.locator import TaskQuery
    from pipeline.locator.query import QueryWords
    from pipeline.locator.signals import query_signals

    index = build_index(
        make(
            tmp_path / "repository",
            {"conf/task/vmas/balance.yaml": "n: 3\n", "conf/task/vmas/sampling.yaml": "n: 3\n", "run.py": "print(1)\n"},
        )
    )
    words = QueryWords.of(TaskQuery(question="How does MAPPO perform on the VMAS/balance task?"))
    named = query_signals(index, words)["named"]
    assert {f.path for f, v in zip(index.facts, named, strict=True) if v} == {"conf/task/vmas/balance.yaml"}


def test_an_index_from_the_cache_says_the_same_and_a_damaged_entry_is_read_anew(tmp_path):
    files = {"train.py": "def fit(loss):\n    return loss\n", "README.md": "# Run\n\n    python train.py\n"}
    snapshot = make(tmp_path / "repository", files)
    cache = tmp_path / "cache"
    fresh = build_index(snapshot, cache=cache)
    entries = sorted(cache.rglob("*.json"))
    assert entries
    for damage in (None, '{"words": ["a"], "chunks": []}', "not json"):
        for entry in entries if damage is not None else ():
            entry.write_text(damage, encoding="utf-8")
        again = build_index(snapshot, cache=cache)
        assert [facts.path for facts in again.facts] == [facts.path for facts in fresh.facts]
        assert again.speaks(0) == fresh.speaks(0)
        assert (again.content.scores(["loss"]) == fresh.content.scores(["loss"])).all()


@given(st.lists(WORDS, min_size=1, max_size=6), WORDS)
@settings(deadline=None, max_examples=60)
def test_bm25_among_all_documents_is_that_of_the_lexicon(documents, query):
    vocabulary = Vocabulary()
    bags = [vocabulary.bag(Counter(words)) for words in documents]
    expected = Lexicon(bags, vocabulary).scores(query)
    assert np.allclose(scores_among(bags, vocabulary.weighed(query)), expected, rtol=1e-5, atol=1e-6)
