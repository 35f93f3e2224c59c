"""The plan's own decisions: what goes by its name, what stays because a run reads it, what is edited or only noted."""

from __future__ import annotations

from pathlib import Path

import pytest

from masking import plan as planning
from masking.plan import plan_mask
from masking.records import MaskPlan
from pipeline.paper import Paper
from pipeline.reports import RunReport
from pipeline.schema import Severity
from pipeline.task import SourceScript, ValidationReport, Verdict
from tests.masking import builders
from tests.masking.planting import NUMBER, function, notebook, zipped


def plan(tmp_path: Path, files: dict[str, bytes], **changes: object) -> MaskPlan:
    return plan_mask(builders.task(**changes), builders.make(tmp_path / "original", files))


def reasons(made: MaskPlan) -> dict[str, str]:
    return {item.path: item.reason for item in made.paths}


def test_what_goes_by_its_name_and_why(tmp_path: Path) -> None:
    made = plan(tmp_path, {"results/a.csv": b"x\n1\n", "sub/.gitmodules": b"[x]\n", "data/a.csv": b"x\n1\n"})
    found = reasons(made)
    assert found["run_experiment.py"] == "source script that answers the question (entry)"
    assert found["README.md"].startswith("README of the repository")
    assert found["results/a.csv"] == "result: a data file in a directory for results"
    assert found["sub/.gitmodules"].startswith("submodules are part of the tree now")
    assert "data/a.csv" not in found
    assert [item.path for item in made.paths] == sorted(found)


def test_an_equivalent_script_says_what_it_is(tmp_path: Path) -> None:
    task = builders.task()
    other = SourceScript(path="other.py", role="entry", score=1.0)
    task = task.evolve(truth=task.truth.evolve(equivalents=(other,)))
    made = plan_mask(task, builders.make(tmp_path / "original", {"other.py": b"print(1)\n"}))
    assert reasons(made)["other.py"] == "script that computes the same answer (entry)"


def test_a_missing_source_is_an_error_and_so_is_none_at_all(tmp_path: Path) -> None:
    task = builders.task((("gone.py", "entry"),))
    snapshot = builders.make(tmp_path / "original")
    (gone,) = [item for item in plan_mask(task, snapshot).problems if item.where == "gone.py"]
    assert (gone.severity, gone.message) == (Severity.ERROR, "a source script of the task is not in the repository")
    (none,) = plan_mask(builders.task(()), snapshot).problems
    assert (none.severity, none.where) == (Severity.ERROR, "shrinkage-mse")
    assert "names no source script" in none.message


def test_a_bare_repository_goes_and_a_file_of_that_name_stays(tmp_path: Path) -> None:
    bare = {f"fixture/{name}": b"x" for name in ("HEAD", "objects/aa/b", "refs/heads/main", "description")}
    half = {"docs/HEAD": b"x", "docs/objects/a": b"x"}
    found = reasons(plan(tmp_path, {**bare, **half}))
    assert {path for path in found if path.startswith(("fixture", "docs"))} == set(bare)
    assert found["fixture/HEAD"] == "part of a bare git repository kept as files (fixture/)"


def test_what_is_too_large_is_compared_by_digest_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    stated = f"shrunk mse {NUMBER}\n".encode()
    monkeypatch.setattr(planning, "MAX_READ", len(stated))
    files = {"tables/small.csv": stated, "tables/large.csv": stated + b"1"}
    made = plan(tmp_path, files)
    assert "tables/small.csv" in reasons(made)
    assert "tables/large.csv" not in reasons(made)
    assert "tables/large.csv" in {item.where for item in made.problems if "compared by digest only" in item.message}


def test_the_papers_file_goes_by_its_digest(tmp_path: Path) -> None:
    snapshot = builders.make(tmp_path / "original", {"doc.bin": b"%PDF- the paper's file"})
    digest = builders.sha256(b"%PDF- the paper's file")
    assert reasons(plan_mask(builders.task(), snapshot, paper_sha256=digest))["doc.bin"] == "the paper itself"
    assert "doc.bin" not in reasons(plan_mask(builders.task(), snapshot))


def test_by_products_of_the_papers_source_go_with_it(tmp_path: Path) -> None:
    tex = f"\\documentclass{{article}}{builders.PAPER_TEXT}".encode()
    files = {"tex/main.tex": tex, "tex/main.aux": b"x", "tex/other.aux": b"x", "main.aux": b"x"}
    snapshot = builders.make(tmp_path / "original", files)
    found = reasons(plan_mask(builders.task(), snapshot, documents=[builders.document()]))
    assert found["tex/main.tex"].startswith("the paper: ")
    assert found["tex/main.aux"] == "by-product of the paper's source tex/main.tex"
    assert not {"tex/other.aux", "main.aux"} & set(found)


def test_a_number_in_code_is_left_and_noted(tmp_path: Path) -> None:
    made = plan(tmp_path, {"lib/a.py": f"mse = {{'shrunk': {NUMBER}}}\n".encode()})
    assert "lib/a.py" not in reasons(made)
    (found,) = [item for item in made.problems if item.where == "lib/a.py:1"]
    assert found.severity is Severity.ERROR
    assert found.message.endswith("it is code, so it was left")


@pytest.mark.parametrize(
    ("line", "action"),
    [
        (f"# about {NUMBER}\n", "edited"),  # bare, in a comment
        (f"x = 'about {NUMBER}'\n", None),  # bare, in a string that the program may use
        (f"x = 'shrunk mse {NUMBER}'\n", "edited"),
    ],
)
def test_what_is_overwritten_in_comments_and_strings(line: str, action: str | None, tmp_path: Path) -> None:
    made = plan(tmp_path, {"lib/a.py": line.encode()})
    assert {item.path: item.action for item in made.paths}.get("lib/a.py") == action
    edits = [edit for edit in made.edits if edit.path == "lib/a.py"]
    assert [line[edit.start : edit.end] for edit in edits] == ([NUMBER] if action else [])


def test_a_damaged_notebook_is_treated_as_text(tmp_path: Path) -> None:
    made = plan(tmp_path, {"n.ipynb": f"{{ shrunk mse {NUMBER}".encode(), "m.ipynb": notebook([("code", "x", "")])})
    assert "n.ipynb" in reasons(made)
    (found,) = [item for item in made.problems if item.where == "n.ipynb"]
    assert (found.severity, "treated as text" in found.message) == (Severity.INFO, True)


def test_documentation_of_a_masked_script_goes_and_licences_stay(tmp_path: Path) -> None:
    call = b"Run `python run_experiment.py` first.\n"
    files = {
        "docs/use.md": call,
        "docs/other.md": b"Run my_run_experiment.pyx\n",
        "docs/LICENSE": call * 2,
        "lib/a.py": b"# " + call,
    }
    found = reasons(plan(tmp_path, files))
    assert found["docs/use.md"] == "documentation of the masked script run_experiment.py"
    assert not {"docs/other.md", "docs/LICENSE", "lib/a.py"} & set(found)


def test_equal_files_go_with_the_masked_one(tmp_path: Path) -> None:
    data = b"estimator,mse\nplain,1\n" * 3
    found = reasons(plan(tmp_path, {"results/a.csv": data, "data/same.csv": data, "data/other.csv": data + b"x"}))
    assert found["data/same.csv"].startswith("identical to the masked file results/a.csv")
    assert "data/other.csv" not in found


def test_of_several_reasons_the_gravest_is_told(tmp_path: Path) -> None:
    stated = f"shrunk mse {NUMBER}\n".encode()
    files = {
        "tables/a.csv": stated,
        "backup/run.txt": builders.RUN.encode() + b"# " + stated,
        "docs/all.md": builders.PAPER_TEXT.encode() + stated,
    }
    found = reasons(
        plan_mask(builders.task(), builders.make(tmp_path / "original", files), documents=[builders.document()])
    )
    assert found["tables/a.csv"].endswith(" (tables/a.csv:1)")
    assert "of the masked file run_experiment.py" in found["backup/run.txt"]
    assert found["docs/all.md"].startswith("the paper: ")


def test_a_number_in_code_goes_with_the_archive_that_holds_it(tmp_path: Path) -> None:
    code = f"mse = {{'shrunk': {NUMBER}}}\n".encode()
    found = reasons(plan(tmp_path, {"lib/a.zip": zipped({"a.py": code}), "lib/a.py": code}))
    assert "lib/a.zip" in found
    assert "lib/a.py" not in found


def test_a_copy_of_a_function_takes_documents_and_notebooks_along_and_leaves_code(tmp_path: Path) -> None:
    code = function("squared_errors")
    files = {
        "docs/a.md": code.encode(), "n.ipynb": notebook([("code", code, "")]), "lib/a.py": code.encode() + b"\n",
        "LICENSE.md": code.encode() + b"\n\n",
    }  # fmt: skip
    found = reasons(plan(tmp_path, files))
    assert {path for path in found if path in files} == {"docs/a.md", "n.ipynb"}
    assert found["docs/a.md"] == "holds a copy of squared_errors of the masked file run_experiment.py (docs/a.md)"


def test_a_number_of_two_claims_is_overwritten_once(tmp_path: Path) -> None:
    task = builders.task()
    shrunk = task.truth.expected.claims[1]
    twice = task.truth.expected.evolve(claims=(shrunk, shrunk.evolve(id="again")))
    task = task.evolve(truth=task.truth.evolve(expected=twice))
    text = f"# shrunk mse {NUMBER}\n# and {NUMBER}\n"
    made = plan_mask(task, builders.make(tmp_path / "original", {"lib/a.py": text.encode()}))
    assert [text[edit.start : edit.end] for edit in made.edits] == [NUMBER, NUMBER]
    assert len({edit.start for edit in made.edits}) == 2


def test_what_is_removed_is_neither_edited_nor_noted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    data = b"%PDF- the paper's file, larger than what is read"
    monkeypatch.setattr(planning, "MAX_READ", len(data) - 1)
    snapshot = builders.make(tmp_path / "original", {"doc.bin": data})
    made = plan_mask(builders.task(), snapshot, paper_sha256=builders.sha256(data))
    assert reasons(made)["doc.bin"] == "the paper itself"
    assert "doc.bin" not in {item.where for item in made.problems}


def test_a_title_beside_a_number_is_overwritten_beside_it_and_once(tmp_path: Path) -> None:
    """Two titles that overlap, and a number within none of them."""
    title = "One Two Three Four"
    text = f"# one two three four five, shrunk mse {NUMBER}, one two three four\n"
    task = builders.task(paper=Paper(id="shrinkage", title=title))
    longer = builders.document().evolve(title=f"{title} Five")
    made = plan_mask(task, builders.make(tmp_path / "original", {"lib/a.py": text.encode()}), documents=[longer])
    edits = sorted((edit.start, text[edit.start : edit.end]) for edit in made.edits)
    assert [words for _, words in edits] == ["one two three four", NUMBER, "one two three four"]


def test_a_need_keeps_the_file_that_it_names_and_no_other(tmp_path: Path) -> None:
    task = builders.task()
    task = task.evolve(truth=task.truth.evolve(data_needs=("file results/in.csv (a.py:1)",)))
    files = {
        "results/in.csv": b"1\n",
        "results/out.csv": b"2\n",
        "old/results/in.csv": b"3\n",
        "xresults/in.csv": b"4\n",
    }
    found = reasons(plan_mask(task, builders.make(tmp_path / "original", files)))
    assert {path for path in found if path.endswith(".csv")} == {"results/out.csv"}


def test_what_the_validation_produced_is_a_result(tmp_path: Path) -> None:
    run = RunReport(repeat=1, exit_codes=(0,), log="run-1", produced=(("out/table.dat", "0" * 64),))
    report = ValidationReport(verdict=Verdict.PASS, reason="test", sandbox="process", runs=(run,))
    files = {"out/table.dat": b"1 2\n", "out/other.dat": b"3\n"}
    found = reasons(plan(tmp_path, files, validation=report))
    assert found["out/table.dat"] == "result: the re-execution of the source scripts produces this file"
    assert "out/other.dat" not in found


def test_a_task_without_scripts_by_name_has_no_documentation_of_them(tmp_path: Path) -> None:
    task = builders.task((("conf.yaml", "config"), ("lib.py", "library")))
    files = {"docs/a.md": b"Use conf.yaml and lib.py. ()\n", "conf.yaml": b"a: 1\n", "lib.py": b"x = 1\n"}
    assert "docs/a.md" not in reasons(plan_mask(task, builders.make(tmp_path / "original", files)))
