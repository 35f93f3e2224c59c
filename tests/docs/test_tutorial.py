"""The tutorial's commands run as they stand, one after another, in an empty directory."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from tests.docs.blocks import ROOT, blocks


@pytest.mark.docker
def test_the_tutorial_runs(tmp_path: Path):
    shell = [block for block in blocks(ROOT / "docs/tutorial.md") if block.language == "bash"]
    assert len(shell) >= 6
    environment = os.environ | {
        "PATH": f"{Path(sys.executable).parent}:{os.environ['PATH']}",
        "HF_HOME": str(tmp_path / "hf"),
    }
    for block in shell:
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", block.text], cwd=tmp_path, env=environment, capture_output=True, text=True,
            timeout=900, check=False,
        )  # fmt: skip
        assert done.returncode == 0, f"{block}\n{block.text}\n{done.stdout}\n{done.stderr}"
    assert (tmp_path / "work/index.html").is_file()
    assert (tmp_path / "report/index.html").is_file()
    scores = subprocess.run(
        [Path(sys.executable).parent / "expbench", "episodes", "runs/oracle"], cwd=tmp_path, env=environment,
        capture_output=True, text=True, timeout=120, check=True,
    )  # fmt: skip
    assert "1.00" in scores.stdout
