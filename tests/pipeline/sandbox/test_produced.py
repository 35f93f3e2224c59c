"""Files that a run leaves behind, through every back end: which come out, and how."""

from __future__ import annotations

import json
import os
import textwrap
from pathlib import Path

from pipeline.digests import file_digest, tree_digest
from tests.pipeline.sandbox.conftest import Runner
from tests.pipeline.sandbox.test_contract import stdout


def test_created_and_changed_files_come_out(run: Runner, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    for name in ("same", "changed", "touched"):
        (tree / name).write_text(name)
    script = """
    import os, pathlib
    pathlib.Path('changed').write_text('other')
    pathlib.Path('touched').write_text('touched')
    pathlib.Path('deep/er').mkdir(parents=True)
    pathlib.Path('deep/er/new.bin').write_bytes(bytes(range(256)))
    """
    before = tree_digest(tree)
    result = run(textwrap.dedent(script))
    assert [produced.path for produced in result.produced] == ["changed", "deep/er/new.bin"]
    assert [produced.path for produced in result.rewritten] == ["touched"]
    assert [produced.path for produced in result.written] == ["changed", "deep/er/new.bin", "touched"]
    for produced in result.written:
        copied = tmp_path / "out/files" / produced.path
        assert (copied.stat().st_size, file_digest(copied)) == (produced.size, produced.sha256)
    (tree / "script0.py").unlink()
    assert tree_digest(tree) == before


def test_keep_selects(run: Runner) -> None:
    script = """
    import pathlib
    pathlib.Path('results/a').mkdir(parents=True)
    for name in ('top.csv', 'results/x.json', 'results/a/y.json', 'results/model.bin'):
        pathlib.Path(name).write_text(name)
    """
    result = run(textwrap.dedent(script), keep=("results/*.json", "**/*.csv"))
    assert [produced.path for produced in result.produced] == ["results/a/y.json", "results/x.json", "top.csv"]


def test_links_out_of_the_tree_are_refused(run: Runner, tmp_path: Path) -> None:
    script = """
    import os
    os.symlink('/etc/passwd', 'passwd')
    os.symlink('/etc', 'etc')
    os.symlink('../../..', 'up')
    os.mkfifo('pipe')
    os.link('script0.py', 'hard')
    """
    result = run(textwrap.dedent(script))
    assert [produced.path for produced in result.produced] == ["hard"]
    refused = {p.where: p.message for p in result.problems if p.component == "sandbox.copy"}
    assert set(refused) == {"passwd", "etc", "up", "pipe"}
    assert "symbolic link" in refused["passwd"]
    assert not any(path.is_symlink() for path in (tmp_path / "out").rglob("*"))


def test_links_of_the_tree_stay_links(run: Runner, tmp_path: Path) -> None:
    tree = tmp_path / "tree"
    (tree / "data").write_text("here")
    (tree / "link").symlink_to("data")
    (tree / "away").symlink_to("/etc/hostname")
    (tree / "folder").symlink_to("/etc")
    result = run("import os; print(open('link').read(), os.readlink('away'), os.readlink('folder'))")
    assert stdout(tmp_path) == "here /etc/hostname /etc\n"
    assert result.produced == ()
    assert not [problem for problem in result.problems if problem.component == "sandbox.copy"]


def test_odd_names_both_ways(run: Runner, tmp_path: Path) -> None:
    tree = os.fsencode(tmp_path / "tree")
    names = [b"with space", b"new\nline", b"\xff\xfe", "ünïcode".encode(), b"-rf", b"a\\b"]
    for name in names:
        Path(os.fsdecode(tree + b"/" + name)).write_bytes(name)
    script = """
    import os
    names = sorted(n for n in os.listdir(b'.') if not n.startswith(b'script'))
    print(names)
    for name in names:
        assert open(name, 'rb').read() == name
        open(b'out ' + name, 'wb').write(name)
    """
    result = run(textwrap.dedent(script))
    assert result.failure is None, result.message
    assert stdout(tmp_path) == f"{sorted(names)}\n"
    shown = sorted(("out " + n.decode("utf-8", "backslashreplace")) for n in names)
    assert [produced.path for produced in result.produced] == shown
    assert (tmp_path / "out/files/out \\xff\\xfe").read_bytes() == b"\xff\xfe"
    json.dumps([produced.path for produced in result.produced]).encode("utf-8")


def test_unreadable_files_and_directories_come_out(run: Runner) -> None:
    script = """
    import os, pathlib
    pathlib.Path('closed').mkdir()
    pathlib.Path('closed/file').write_text('x')
    os.chmod('closed/file', 0)
    os.chmod('closed', 0)
    """
    assert [produced.path for produced in run(textwrap.dedent(script)).produced] == ["closed/file"]


def test_sparse_file_does_not_count_as_content(run: Runner) -> None:
    result = run("open('huge', 'wb').truncate(SIZE)".replace("SIZE", str(60 << 20)) + "\nopen('small', 'w').write('x')")
    assert [produced.path for produced in result.produced] == ["huge", "small"]
    result = run("for i in range(8):\n    with open(f'h{i}', 'wb') as stream: stream.truncate(40 << 20)")
    assert len(result.produced) == 1
    assert len([problem for problem in result.problems if "disk limit" in problem.message]) == 7
