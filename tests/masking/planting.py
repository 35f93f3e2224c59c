"""Ways to hide an answer: in the files of the original, in a masked repository, in what an agent stands on."""

from __future__ import annotations

import base64
import bz2
import gzip
import importlib.util
import io
import json
import marshal
import os
import sqlite3
import subprocess
import tarfile
import textwrap
import zipfile
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from tests.masking import builders

NUMBER = builders.claims()[1].text
"""The claim for the estimator `shrunk`."""


def zipped(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with zipfile.ZipFile(buffer, "w", zipfile.ZIP_DEFLATED) as archive:
        for name, data in files.items():
            archive.writestr(zipfile.ZipInfo(name), data)
    return buffer.getvalue()


def tarred(files: Mapping[str, bytes]) -> bytes:
    buffer = io.BytesIO()
    with tarfile.open(fileobj=buffer, mode="w") as archive:
        for name, data in files.items():
            info = tarfile.TarInfo(name)
            info.size = len(data)
            archive.addfile(info, io.BytesIO(data))
    return buffer.getvalue()


def notebook(cells: list[tuple[str, str, str]]) -> bytes:
    """Cells as (type, source, output)."""
    body = []
    for kind, source, output in cells:
        cell: dict[str, Any] = {"cell_type": kind, "metadata": {}, "source": source.splitlines(keepends=True)}
        if kind == "code":
            text = [{"output_type": "stream", "name": "stdout", "text": [output]}] if output else []
            cell |= {"outputs": text, "execution_count": 1 if output else None}
        body.append(cell)
    return json.dumps({"cells": body, "metadata": {}, "nbformat": 4, "nbformat_minor": 5}).encode()


def renamed(source: str) -> str:
    """The same program with other names, through its syntax tree (comments and layout are lost as well)."""
    import ast

    class Renamer(ast.NodeTransformer):
        def visit_Name(self, node: ast.Name) -> ast.Name:
            node.id = builders.RENAMED.get(node.id, node.id)
            return node

        def visit_arg(self, node: ast.arg) -> ast.arg:
            node.arg = builders.RENAMED.get(node.arg, node.arg)
            return node

        def visit_FunctionDef(self, node: ast.FunctionDef) -> ast.FunctionDef:
            node.name = builders.RENAMED.get(node.name, node.name)
            self.generic_visit(node)
            return node

    return ast.unparse(Renamer().visit(ast.parse(source)))


def reformatted(source: str) -> str:
    """Comments and docstrings gone, double quotes, two-space indents: what formatters and minifiers do."""
    import ast

    tree = ast.parse(source)
    for node in ast.walk(tree):
        body = getattr(node, "body", None)
        if isinstance(body, list) and body and isinstance(body[0], ast.Expr) and len(body) > 1:
            body[:] = body[isinstance(body[0].value, ast.Constant) :]
    return ast.unparse(tree).replace("    ", "  ").replace("'", '"')


def compiled(source: str) -> bytes:
    code = compile(source, "run_experiment.py", "exec")
    return importlib.util.MAGIC_NUMBER + bytes(12) + marshal.dumps(code)


def function(name: str) -> str:
    start = builders.RUN.index(f"def {name}(")
    return builders.RUN[start : builders.RUN.index("\n\n\ndef ", start)]


def picture(lines: list[str]) -> bytes:
    """A screenshot of a table, as PNG."""
    from PIL import Image, ImageDraw, ImageFont

    image = Image.new("RGB", (640, 60 + 30 * len(lines)), "white")
    draw = ImageDraw.Draw(image)
    for number, line in enumerate(lines):
        draw.text((20, 20 + 30 * number), line, fill="black", font=ImageFont.load_default(size=16))
    stream = io.BytesIO()
    image.save(stream, "PNG")
    return stream.getvalue()


def database() -> bytes:
    connection = sqlite3.connect(":memory:")
    connection.execute("CREATE TABLE final (estimator TEXT, mse REAL)")
    connection.executemany("INSERT INTO final VALUES (?, ?)", [("plain", 0.2), ("shrunk", float(NUMBER))])
    connection.commit()
    data = connection.serialize()
    connection.close()
    return data


def parquet_table() -> bytes:
    stream = io.BytesIO()
    parquet.write_table(pa.table({"estimator": ["plain", "shrunk"], "mse": [0.2, float(NUMBER)]}), stream)
    return stream.getvalue()


RUN = builders.RUN.encode()

# name -> (files added to the original repository, what must happen to the planted file)
PLANTED: dict[str, tuple[dict[str, bytes], str]] = {
    "identical copy": ({"backup/old_main.py": RUN}, "removed"),
    "renamed copy with an edit": ({"legacy/v1.py": RUN.replace(b"200", b"500").replace(b"gauss", b"normalvariate")}, "removed"),
    "reformatted copy": ({"scratch/clean.py": reformatted(builders.RUN).encode()}, "removed"),
    "identifiers renamed": ({"scratch/other.py": renamed(builders.RUN).encode()}, "removed"),
    "copy in notebook cells": (
        {"demo.ipynb": notebook([("code", part, "") for part in builders.RUN.split("\n\n\n")])}, "removed"),
    "copy in a zip": ({"assets/code.zip": zipped({"deep/inner.py": RUN})}, "removed"),
    "copy in a zip in a tar.gz": ({"assets/all.tgz": gzip.compress(tarred({"a.zip": zipped({"x.py": RUN})}))}, "removed"),
    "copy as bz2": ({"assets/main.bz2": bz2.compress(RUN)}, "removed"),
    "copy in a wheel": ({"dist/pkg-1.0-py3-none-any.whl": zipped({"pkg/run.py": RUN})}, "removed"),
    "compiled python": ({"__pycache__/run_experiment.cpython-311.pyc": compiled(builders.RUN)}, "removed"),
    "compiled python, renamed file": ({"lib/core.bin": compiled(builders.RUN)}, "removed"),
    "build directory": ({"build/lib/pkg/run_experiment.py": RUN}, "removed"),
    "egg-info with the README": (
        {"README.md": (b"# Shrinkage\n\n" + builders.PAPER_TEXT.encode()),
         "pkg.egg-info/PKG-INFO": b"Metadata-Version: 2.1\nName: pkg\n\n# Shrinkage\n\n" + builders.PAPER_TEXT.encode()},
        "removed"),
    "base64 blob": ({"data/blob.txt": base64.encodebytes(RUN)}, "removed"),
    "base64 of gzip in a python string": (
        {"lib/payload.py": b'DATA = "' + base64.b64encode(gzip.compress(RUN)) + b'"\n'}, "removed"),
    "hex blob": ({"data/hex.txt": RUN.hex().encode()}, "removed"),
    "utf-16 copy": ({"win/run.py": builders.RUN.encode("utf-16")}, "removed"),
    "function in a document": (
        {"docs/notes.md": b"# Notes\n\n```python\n" + function("squared_errors").encode() + b"\n```\n"}, "removed"),
    "function in a docstring": (
        {"lib/doc.py": ('"""\n' + function("squared_errors") + '\n"""\n').encode()}, "reported"),
    "usage in a document": ({"docs/usage.md": b"Call `python run_experiment.py --repeats 200`.\n"}, "removed"),
    "number in a test": (
        {"tests/test_table.py": f"def test_mse(mse):\n    assert abs(mse['shrunk'] - {NUMBER}) < 1e-4\n".encode()}, "removed"),
    "number in a docstring": (
        {"lib/doc.py": f'"""The shrunk estimator has an MSE of {NUMBER}."""\n'.encode()}, "edited"),
    "number in a comment of a Dockerfile": (
        {"Dockerfile": f"FROM debian\n# expected: shrunk mse {NUMBER}\nRUN true\n".encode()}, "edited"),
    "number in a Dockerfile environment variable": (
        {"Dockerfile": f"FROM debian\nENV EXPECTED_MSE_SHRUNK={NUMBER}\n".encode()}, "reported"),
    "number in a README table": (
        {"docs/README.md": f"| estimator | MSE |\n|---|---|\n| plain | 1 |\n| shrunk | {NUMBER} |\n".encode()}, "removed"),
    "number in an HTML page": (
        {"site/index.html": f"<table><tr><th>estimator</th><th>MSE</th></tr><tr><td>shrunk</td><td><b>{NUMBER}</b></td></tr></table>".encode()},
        "removed"),
    "number in a CSV of results": ({"tables/final.csv": f"estimator,mse\nplain,0.2\nshrunk,{NUMBER}\n".encode()}, "removed"),
    "number with more digits in JSON": (
        {"tables/final.json": json.dumps({"mse": {"shrunk": builders.expected_values()["shrunk"]}}).encode()}, "removed"),
    "number in a data base": ({"tables/final.db": database()}, "removed"),
    "number in a Parquet table": ({"tables/final.parquet": parquet_table()}, "removed"),
    "number in an SVG figure": (
        {"figures/bar.svg": f"<svg><text>MSE shrunk</text><text>{NUMBER}</text></svg>".encode()}, "removed"),
    "number in a notebook output": (
        {"show.ipynb": notebook([("code", "show()", f"shrunk mse {NUMBER}\n")])}, "outputs_cleared"),
    "number in a notebook's text": (
        {"show.ipynb": notebook([("markdown", f"The shrunk MSE is {NUMBER}.", "")])}, "removed"),
    "picture of a table": (
        {"docs/table.png": picture(["estimator    MSE", "plain    1", f"shrunk    {NUMBER}"])}, "removed"),
    "git LFS pointer to a masked file": (
        {"store/run.bin": b"version https://git-lfs.github.com/spec/v1\noid sha256:" + builders.sha256(RUN).encode()
         + b"\nsize 9\n"}, "removed"),
    "log of a run": ({"logs/train.log": f"shrunk mse {NUMBER}\n".encode()}, "removed"),
    "paper as text": ({"notes/draft.md": builders.PAPER_TEXT.encode()}, "removed"),
    "paper as LaTeX": (
        {"tex/main.tex": ("\\documentclass{article}\\begin{document}\n" + textwrap.fill(builders.PAPER_TEXT, 60) + "\n\\end{document}").encode(),
         "tex/main.bbl": b"\\bibitem{x} X"}, "removed"),
    "paper in a zip": ({"tex/arxiv.zip": zipped({"main.tex": builders.PAPER_TEXT.encode()})}, "removed"),
    "submodule urls": ({".gitmodules": b'[submodule "x"]\n\tpath = x\n\turl = https://example.org/x\n'}, "removed"),
    "git bundle": ({"backup/repo.bundle": b"# v2 git bundle\n" + bytes(40)}, "removed"),
    "loose git object": (
        {"junk/object": __import__("zlib").compress(b"blob %d\0" % len(RUN) + RUN)}, "removed"),
    "bare repository": (
        {"fixture.git/HEAD": b"ref: refs/heads/main\n", "fixture.git/objects/aa/bb": b"x", "fixture.git/refs/heads/main": b"0"},
        "removed"),
}  # fmt: skip


def git(masked: Path, *arguments: str, data: bytes | None = None) -> str:
    person = {
        "GIT_AUTHOR_NAME": "a",
        "GIT_AUTHOR_EMAIL": "a@b",
        "GIT_COMMITTER_NAME": "a",
        "GIT_COMMITTER_EMAIL": "a@b",
    }
    environment = {**os.environ, **person, "GIT_CONFIG_GLOBAL": os.devnull, "GIT_CONFIG_NOSYSTEM": "1"}
    done = subprocess.run(["git", *arguments], cwd=masked, input=data, capture_output=True, check=True, env=environment)
    return done.stdout.decode().strip()


def history(masked: Path) -> None:
    (masked / "run_experiment.py").write_bytes(RUN)
    git(masked, "add", "-A")
    git(masked, "commit", "-qm", "with the answer")
    git(masked, "rm", "-q", "run_experiment.py")
    git(masked, "commit", "-qm", "masked")


def stash(masked: Path) -> None:
    (masked / "run_experiment.py").write_bytes(RUN)
    git(masked, "add", "-A")
    git(masked, "stash", "-q")


def tag(masked: Path) -> None:
    blob = git(masked, "hash-object", "-w", "--stdin", data=RUN)
    git(masked, "tag", "answer", blob)


def notes(masked: Path) -> None:
    git(masked, "notes", "add", "-m", f"shrunk mse {NUMBER}")


def reflog(masked: Path) -> None:
    before = git(masked, "rev-parse", "HEAD")
    history(masked)
    git(masked, "reset", "-q", "--hard", before)


def dangling(masked: Path) -> None:
    git(masked, "hash-object", "-w", "--stdin", data=RUN)


def packed(masked: Path) -> None:
    dangling(masked)
    git(masked, "repack", "-adkq")


def alternates(masked: Path) -> None:
    other = masked.parent / "other"
    other.mkdir()
    git(other, "init", "-q")
    git(other, "hash-object", "-w", "--stdin", data=RUN)
    (masked / ".git/objects/info").mkdir(exist_ok=True)
    (masked / ".git/objects/info/alternates").write_text(f"{other}/.git/objects\n")


def remote(masked: Path) -> None:
    git(masked, "remote", "add", "origin", "https://example.org/original.git")


def config(masked: Path) -> None:
    git(masked, "config", "alias.answer", f"!echo shrunk mse {NUMBER}")


def ignored(masked: Path) -> None:
    (masked / ".git/info/exclude").write_text("run_experiment.py\n")
    (masked / "run_experiment.py").write_bytes(RUN)


def submodule_commit(masked: Path) -> None:
    git(masked, "update-index", "--add", "--cacheinfo", f"160000,{'b' * 40},vendor/original")
    git(masked, "commit", "-qm", "submodule")


def hook(masked: Path) -> None:
    (masked / ".git/hooks").mkdir(exist_ok=True)
    (masked / ".git/hooks/post-checkout").write_bytes(b"#!/bin/sh\n" + RUN)


def module_history(masked: Path) -> None:
    (masked / ".git/modules/sub").mkdir(parents=True)
    (masked / ".git/modules/sub/HEAD").write_text("ref: refs/heads/main\n")


def nested(masked: Path) -> None:
    (masked / "vendor/.git").mkdir(parents=True)
    (masked / "vendor/.git/HEAD").write_text("ref: refs/heads/main\n")


def linked(masked: Path) -> None:
    (masked / ".git").rename(masked.parent / "elsewhere")
    (masked / ".git").write_text(f"gitdir: {masked.parent / 'elsewhere'}\n")


def canary(masked: Path) -> None:
    (masked / "estimators.py").write_text("# canary-7f3a\n")


def canary_in_object(masked: Path) -> None:
    git(masked, "hash-object", "-w", "--stdin", data=b"canary-7f3a")


def canary_in_name(masked: Path) -> None:
    (masked / "canary-7f3a").write_text("")


def source_again(masked: Path) -> None:
    (masked / "run_experiment.py").write_bytes(RUN)


def link_out(masked: Path) -> None:
    (masked / "data").symlink_to("../../original")


TAMPERED: dict[Callable[[Path], None], str] = {
    history: "git_object", stash: "git_object", tag: "git_object", notes: "git_object", reflog: "git_object",
    dangling: "exact", packed: "exact", alternates: "git_object", remote: "git_object", hook: "near_duplicate",
    module_history: "git_object", nested: "git_object", linked: "git_object", canary: "canary",
    canary_in_object: "canary", canary_in_name: "canary", source_again: "exact",
    link_out: "exact", config: "git_object", ignored: "exact", submodule_commit: "git_object",
}  # fmt: skip
