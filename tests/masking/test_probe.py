"""One file against everything: exact copies, canaries, copies of files and functions, compiled names, the paper."""

from __future__ import annotations

import pytest

from masking.fingerprints import KEPT, Share
from masking.numbers import BLOCKING
from masking.papers import PaperProbe
from masking.probe import MIN_EXACT, Probe, Reference, _file_hit, _functions, _names
from masking.units import Unit
from pipeline.task import LeakHit
from tests.masking import builders
from tests.masking.planting import compiled, function, notebook, renamed

RUN = builders.RUN.encode()
PAPER = builders.PAPER_TEXT.encode()


def probe(**changes: object) -> Probe:
    given = {
        "references": [Reference("run_experiment.py", RUN)], "digests": {builders.sha256(RUN): "run_experiment.py"},
        "claims": builders.claims(), "paper": PaperProbe([builders.PAPER_TEXT]), **changes,
    }  # fmt: skip
    return Probe(**given)


def hits(data: bytes, path: str = "a.py", **changes: object) -> list[LeakHit]:
    return probe(**changes).examine(path, data).hits


def kinds(found: list[LeakHit]) -> list[tuple[str, float]]:
    return [(hit.kind, hit.score) for hit in found]


# --- exact -----------------------------------------------------------------------------------------------------------


def test_equal_content_is_evidence_from_a_length_on() -> None:
    for size, kind in ((MIN_EXACT - 1, []), (MIN_EXACT, [("exact", 1.0)])):
        data = b"x" * size
        assert kinds(hits(data, "a.bin", digests={builders.sha256(data): "masked.bin"})) == kind
    (found,) = hits(b"x" * 32, "a.bin", digests={builders.sha256(b"x" * 32): "masked.bin"})
    assert found.detail == "identical to the masked file masked.bin"


def test_a_pointer_to_a_masked_file_is_one() -> None:
    digest = builders.sha256(RUN).encode()
    pointer = b"version https://git-lfs.github.com/spec/v1\next-0-a sha256:x\noid sha256:" + digest + b"\nsize 9\n"
    assert kinds(hits(pointer, "a.bin")) == [("exact", 1.0)]
    assert hits(b"# " + pointer, "a.bin") == []
    paper = frozenset({builders.sha256(RUN)})
    assert [hit.kind for hit in hits(pointer, "a.bin", paper_digests=paper)] == ["paper"]


def test_the_papers_file_is_named_before_the_masked_one() -> None:
    data = b"y" * 40
    found = hits(data, "a.bin", digests={builders.sha256(data): "m"}, paper_digests=frozenset({builders.sha256(data)}))
    assert [(hit.kind, hit.detail) for hit in found] == [("paper", "the paper's file")]


def test_a_canary_is_seen_in_content_and_in_names() -> None:
    for name, data in (("a.py", b"x = 'c-77'"), ("c-77.py", b"x = 1")):
        assert kinds(hits(data, name, canaries=["", "c-77"])) == [("canary", 1.0)]
    assert hits(b"x = 'c-78'", canaries=["c-77", ""]) == []


# --- near ------------------------------------------------------------------------------------------------------------


def test_a_copy_blocks_and_a_mere_resemblance_is_reported() -> None:
    (copy,) = [hit for hit in hits(RUN.replace(b"200", b"300")) if hit.kind == "near_duplicate"]
    assert copy.score > 0.9
    assert copy.detail == f"holds {copy.score:.0%} of the masked file run_experiment.py"
    functions = builders.RUN.split("\n\n\n")
    some = "\n\n\n".join(functions[:3]).encode()
    found = [hit for hit in hits(some) if hit.kind == "near_duplicate"]
    assert [hit.score < BLOCKING for hit in found] == [True] * len(found)
    assert "holds a copy of contaminated_sample, shrinkage_weight of the masked file run_experiment.py" in {
        hit.detail for hit in found
    }


@pytest.mark.parametrize("encoding", ["utf-8", "utf-16"])
def test_a_copy_is_seen_in_the_text_whatever_its_encoding(encoding: str) -> None:
    found = hits(builders.RUN.replace("200", "300").encode(encoding))
    assert [hit.score > 0.9 for hit in found if hit.kind == "near_duplicate"] == [True]


def test_a_copy_with_other_names_says_so() -> None:
    (found,) = [hit for hit in hits(renamed(builders.RUN).encode()) if hit.kind == "near_duplicate"]
    assert found.score >= 0.8
    assert found.detail.endswith("of the masked file run_experiment.py with other names")


def test_a_function_of_a_masked_file_is_reported_and_counts_as_a_copy() -> None:
    examined = probe().examine("helpers.py", function("squared_errors").encode())
    assert kinds(examined.copies) == [("near_duplicate", 0.5)]
    assert examined.copies[0].detail == "holds a copy of squared_errors of the masked file run_experiment.py"
    assert examined.blocking == []


def test_settings_are_copies_only_when_nearly_all_is_the_same() -> None:
    """Launchers of one family are lists of values: a sibling with another data set is another experiment."""
    lines = [f"option_{number}: {number * 7}" for number in range(60)]
    other = [*lines[:54], *(f"choice_{number}: {number * 3 + 1}" for number in range(6))]
    text = "\n".join(lines).encode()
    references = [Reference("a.yaml", text)]
    assert [hit.score for hit in hits(text, "b.yaml", references=references, digests={})] == [1.0]
    (found,) = hits("\n".join(other).encode(), "b.yaml", references=references, digests={})
    assert 0.8 <= found.score < BLOCKING or found.score == pytest.approx(0.693)


def test_what_other_files_share_is_no_copy_and_what_is_its_own_is() -> None:
    habit = "".join(f"parser.add_argument('--option{n}', type=int, default={n})\n" for n in range(40))
    own = "".join(f"state_{n} = advance(state_{n - 1}, rate={n}) + drift_{n} * gain\n" for n in range(1, 30))
    references = [Reference("run.py", (habit + own).encode())]
    siblings = [(habit + f"print('sibling {n}')\n").encode() for n in range(2)]
    third = (habit + "print('the third')\n").encode()
    apart = [
        hit for hit in hits(third, references=references, digests={}, background=siblings) if hit.score >= BLOCKING
    ]
    assert apart == []
    copied = hits(own.encode(), references=references, digests={}, background=siblings)
    assert any(hit.score >= BLOCKING and "of what is its own" in hit.detail for hit in copied)


@pytest.mark.parametrize(
    ("path", "whole", "own", "score"),
    [
        ("a.py", 0.8, None, 0.8), ("a.py", 0.79, None, 0.693), ("a.py", 0.5, 0.5, 0.7), ("a.py", 0.5, 0.75, 0.85),
        ("a.py", 0.5, 1.0, 1.0), ("a.py", 0.5, 0.49, 0.5), ("a.py", 0.3, None, 0.3), ("a.py", 0.29, None, None),
        ("a.py", 0.2, 0.6, 0.76), ("a.yaml", 0.95, None, 0.95), ("a.yaml", 0.94, None, 0.693),
    ],
)  # fmt: skip
def test_what_a_share_of_a_masked_file_weighs(path: str, whole: float, own: float | None, score: float | None) -> None:
    """From 0.7 on it blocks: copies, and texts that hold half of what is the file's own."""
    part = Share("own:" + path, KEPT, own) if own is not None else None
    found = _file_hit(Unit("b.py", "b.py", b"", "file"), Share(path, KEPT, whole), part)
    assert (found.score if found is not None else None) == score


# --- compiled --------------------------------------------------------------------------------------------------------


def test_compiled_code_is_known_by_its_names() -> None:
    found = [hit for hit in hits(compiled(builders.RUN.replace("200", "300")), "a.pyc") if hit.kind == "near_duplicate"]
    assert [hit.score >= BLOCKING for hit in found] == [True]
    assert "of the names and strings of the masked file run_experiment.py" in found[0].detail
    assert not [hit for hit in hits(compiled(builders.ESTIMATORS), "a.pyc") if hit.kind == "near_duplicate"]


def test_a_constant_of_compiled_code_may_state_a_claim() -> None:
    value = builders.claims()[1].text
    found = [hit for hit in hits(compiled(f"X = {value}\n"), "a.pyc") if hit.kind == "number"]
    assert [(hit.score, hit.detail.startswith("a constant equals claim c2")) for hit in found] == [(0.5, True)]


def test_what_compiling_keeps_of_a_file() -> None:
    source = (
        "import module_name\nclass ClassName(BaseName):\n    def method(self, argument, *rest_args, key_only=1):\n"
        "        'A docstring'\n        self.attribute = 'one line' + 'two\\nlines' + 'abc'\n        return __file__, value\n"
        "async def waiting(): pass\nx = 1\nfour = 2\n"
    )
    assert _names(Reference("a.py", source.encode())) == {
        "ClassName", "BaseName", "method", "self", "argument", "rest_args", "key_only", "A docstring", "attribute",
        "one line", "value", "waiting", "four",
    }  # fmt: skip
    assert all(_names(Reference("a.py", broken)) == frozenset() for broken in BROKEN)


BROKEN = [b"def (", b"x = 1\0", b"x" + b".y" * 20_000]


def test_the_functions_of_a_file_are_looked_for_without_their_comments() -> None:
    source = b"import os\n\n\n@wraps\ndef f(x):\n    # why\n    return x\n\n\nclass A:\n    def g(self): return 1\nasync def h(): pass\n"
    found = {name: code.split() for name, code in _functions(Reference("lib/a.py", source))}
    assert list(found) == ["lib/a.py:f", "lib/a.py:A", "lib/a.py:h"]
    assert found["lib/a.py:f"] == b"def f ( x ) : return x".split()
    assert b"".join(found["lib/a.py:A"]) == b"classA:defg(self):return1"
    assert all(_functions(Reference("a.py", broken)) == [] for broken in BROKEN)


def test_few_names_are_no_evidence() -> None:
    short = "".join(f"name_{number} = {number}\n" for number in range(11))
    enough = short + "name_11 = 11\n"
    for source, known in ((short, []), (enough, ["near_duplicate"])):
        references = [Reference("m.py", source.encode())]
        assert [hit.kind for hit in hits(compiled(source + "x = 1\n"), "a.pyc", references=references)] == known


def test_from_what_share_of_the_names_on_it_is_a_copy() -> None:
    lines = [f"name_{number:02} = 1\n" for number in range(15)]
    references = [Reference("m.py", "".join(lines).encode())]
    for count, score in ((8, []), (9, [BLOCKING]), (12, [0.8])):
        found = hits(compiled("".join(lines[:count])), "a.pyc", references=references)
        assert [hit.score for hit in found if hit.kind == "near_duplicate"] == score


# --- numbers and the paper -------------------------------------------------------------------------------------------


def test_the_best_place_of_each_number_is_reported_and_all_of_them_can_be_edited() -> None:
    number = builders.claims()[1].text
    examined = probe().examine("a.py", f"# {number}\n# shrunk mse {number}\n".encode())
    assert [(hit.where, hit.score) for hit in examined.hits] == [("a.py:2", 1.0)]
    assert sorted(hit.line for hit in examined.numbers) == [1, 2]
    inside = probe().examine("n.ipynb", notebook([("code", "x", f"shrunk mse {number}")]))
    assert [hit.where for hit in inside.hits] == ["n.ipynb#output 0:1"]
    assert inside.numbers == []


def test_how_much_of_the_paper_makes_a_copy() -> None:
    (whole,) = hits(PAPER, "a.md")
    assert (whole.kind, whole.score) == ("paper", 1.0)
    assert whole.detail == "100% of the paper's five-word sequences; 100% of this text is the paper"
    rest = " ".join(f"other words number {chr(97 + n % 26)}{chr(97 + n // 26)}x stand here" for n in range(600))
    large = PaperProbe([builders.PAPER_TEXT + " " + rest])
    (quoted,) = hits(PAPER, "a.md", paper=large)
    assert quoted.score == 0.4  # an abstract
    assert hits(PAPER[:150], "a.md") == []


def vocabulary(start: int, count: int) -> list[str]:
    """Words that occur once: so many of them have four runs of five less."""
    letters = "abcdefghij"
    return ["".join(letters[int(digit)] for digit in f"{number:05}") for number in range(start, start + count)]


@pytest.mark.parametrize(
    ("paper", "quoted", "own", "score"),
    [
        (2004, 304, 0, 1.0),  # 300 of 2000 runs: 15 % of the paper
        (2005, 304, 0, 0.8),  # a little less, but all of the file
        (2005, 304, 300, 0.8),  # 300 of 600 runs: half of the file
        (2005, 304, 301, 0.4),
        (2005, 303, 0, 0.4),  # 299 runs are an abstract
        (2005, 44, 0, 0.4),
    ],
)
def test_how_much_of_the_paper_and_of_the_file_weighs_what(paper: int, quoted: int, own: int, score: float) -> None:
    text = " ".join([*vocabulary(0, quoted), *vocabulary(50_000, own)]).encode()
    (found,) = hits(text, "a.md", paper=PaperProbe([" ".join(vocabulary(0, paper))]))
    assert (found.kind, found.score) == ("paper", score)


def test_a_cell_of_a_notebook_is_not_compared_with_the_paper_and_the_notebook_is() -> None:
    found = hits(notebook([("markdown", builders.PAPER_TEXT, "")]), "n.ipynb")
    assert not [hit for hit in found if hit.kind == "paper" and "#cell" in hit.where]


def test_what_an_output_prints_is_prose() -> None:
    assert Probe._kind(Unit("n#output 0", "output.txt", b"", "output")) == "prose"
    assert Probe._kind(Unit("a.csv", "a.csv", b"", "file")) == "table"
