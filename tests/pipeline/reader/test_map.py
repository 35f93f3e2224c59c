"""The map of a repository: bounded, the same every time, programs named, data counted, nothing left out silently."""

from __future__ import annotations

from pathlib import Path

from pipeline.locator import build_index
from pipeline.reader.map import MAP_CHARACTERS, repository_map
from pipeline.survey import list_candidates
from tests.pipeline.locator.repositories import PROJECT, make


def shown(root: Path, files: dict[str, str | bytes], characters: int = MAP_CHARACTERS) -> str:
    index = build_index(make(root, files))
    return repository_map(index, list_candidates(index, None), characters=characters)


def test_it_names_programs_documents_commands_and_results(tmp_path: Path) -> None:
    files = PROJECT | {"results/spirals.csv": "lr,accuracy\n0.3,91.2\n", "data/points.npy": b"\0\1" * 90}
    text = shown(tmp_path / "one", files)
    assert text == shown(tmp_path / "two", files)
    assert "./ README.md 289, train.py* 1k" in text
    assert "python train.py --dataset spirals --lr 0.3" in text
    assert "scripts/timing.sh:3: python experiments/timing.py --size 100 (in .)" not in text
    assert "scripts/timing.sh:3: python experiments/timing.py --size 100" in text
    assert "experiments/timing.py: Measure how long sorting takes for growing arrays." in text
    assert "data/ [1 .npy, 180]" in text
    assert "results/ spirals.csv" in text


def test_what_is_large_is_counted_and_programs_keep_their_names(tmp_path: Path) -> None:
    files = PROJECT | {f"data/raw/{n}.txt": "1\n" for n in range(500)}
    files |= {f"third_party/lib/{n}.py": "x = 1\n" for n in range(60)}
    files |= {f"configs/run_{n}.yaml": "lr: 1\n" for n in range(300)}
    files |= {f"methods/method_{n}.py": f"def fit_{n}():\n    return {n}\n" for n in range(60)}
    text = shown(tmp_path / "one", files, 6_000)
    assert len(text) <= 6_000
    assert "data/raw/ [500 .txt" in text
    assert "third_party/ [brought along from elsewhere: 60 .py" in text
    assert "configs/ [300 .yaml" in text
    assert all(f"method_{n}.py" in text for n in range(60))


def test_it_is_never_longer_than_asked_and_says_what_it_leaves_out(tmp_path: Path) -> None:
    files: dict[str, str | bytes] = {f"d{n}/program_{n}.py": '"""Do it."""\nprint(1)\n' for n in range(400)}
    files["README.md"] = "# A\n\n" + "".join(
        f"## Part {n}\n\nWords.\n\n    python d{n}/program_{n}.py\n\n" for n in range(200)
    )
    text = shown(tmp_path / "one", files, 5_000)
    assert len(text) <= 5_000
    assert "[400 .py" in text
    assert "more sections hold commands]" in text
    assert "headings by line" in text
    assert "more programs]" in text


def test_an_empty_repository_has_a_map(tmp_path: Path) -> None:
    assert shown(tmp_path / "one", {"LICENSE": "MIT"}).endswith("./ [1 no ending, 3]")
