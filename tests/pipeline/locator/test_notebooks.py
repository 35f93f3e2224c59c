from __future__ import annotations

import json
from pathlib import Path

from pipeline.locator import build_index, locate
from tests.pipeline.locator.repositories import make
from tests.pipeline.locator.test_locate import SPIRALS


def test_a_notebook_is_executed_headless_under_the_sandboxs_own_kernel(tmp_path: Path) -> None:
    """Seen: `python -m jupyter` was not installed, and a kernel named after an author's conda environment is nowhere."""
    code = [
        "# classification accuracy of the logistic estimator on the spirals data set\n",
        "def fit_logistic(x, y, steps):\n    return gradient_descent(x, y, steps)\n",
        "print('spirals test accuracy', fit_logistic(x, y, 3))\n",
    ]
    notebook = {"cells": [{"cell_type": "code", "source": code}], "metadata": {"kernelspec": {"name": "conda-mine"}}}
    files = {"nb/spirals.ipynb": json.dumps(notebook), "README.md": "Logistic gradient descent on spirals, seeds.\n"}
    chain = locate(build_index(make(tmp_path, files)), SPIRALS).chain
    assert chain is not None
    assert chain.entries == ("nb/spirals.ipynb",)
    (usage,) = chain.usage
    assert usage.argv[:3] == ("python", "-m", "nbconvert")
    assert "--ExecutePreprocessor.kernel_name=python3" in usage.argv
    assert usage.argv[-3:] == ("--output", "spirals.executed.ipynb", "nb/spirals.ipynb")
