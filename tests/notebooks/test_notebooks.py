"""The notebooks run on the stored runs, and are kept without outputs."""

from __future__ import annotations

from pathlib import Path

import pytest

nbclient = pytest.importorskip("nbclient", reason="notebooks come with the extra [notebooks]")
nbformat = pytest.importorskip("nbformat")

FOLDER = Path(__file__).parents[2] / "notebooks"
NOTEBOOKS = sorted(FOLDER.glob("*.ipynb"))


@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_outputs_are_stripped(path: Path):
    notebook = nbformat.read(path, as_version=4)
    nbformat.validate(notebook)
    for cell in notebook.cells:
        if cell.cell_type == "code":
            assert not cell.outputs, "strip outputs: they hold results that nobody can check"
            assert cell.execution_count is None


# the kernel's own threads warn about sockets when they end
@pytest.mark.filterwarnings("ignore::ResourceWarning", "ignore::pytest.PytestUnraisableExceptionWarning")
@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize("path", NOTEBOOKS, ids=lambda path: path.stem)
def test_notebook_runs(path: Path, monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setenv("PYTHONPATH", str(FOLDER.parent))
    for name in ("EXPBENCH_SOURCE", "EXPBENCH_RUNS", "EXPBENCH_WORKSPACES"):
        monkeypatch.delenv(name, raising=False)
    notebook = nbformat.read(path, as_version=4)
    client = nbclient.NotebookClient(notebook, timeout=240, resources={"metadata": {"path": str(FOLDER)}})
    client.execute()
    outputs = [output for cell in notebook.cells if cell.cell_type == "code" for output in cell.outputs]
    assert any("image/png" in output.get("data", {}) for output in outputs), "a notebook without a plot"
    assert not any(output.output_type == "error" for output in outputs)


def test_there_are_notebooks():
    assert {path.stem for path in NOTEBOOKS} == {
        "curation_quality", "dataset_statistics", "failure_analysis", "results_analysis",
    }  # fmt: skip
