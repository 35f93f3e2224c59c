"""The pure parts: copying, the host's install settings, reading install logs."""

from __future__ import annotations

import hashlib
import os
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from pipeline.errors import FailureKind
from pipeline.sandbox import BuildSpec
from pipeline.sandbox._copying import Collector, TreeSource
from pipeline.sandbox._hostconfig import debian_mirror, install_settings
from pipeline.sandbox._installlog import diagnose
from pipeline.sandbox._locks import cache_directory


def entry(path: bytes, data: bytes = b"x", kind: str = "file") -> dict[str, object]:
    digest = hashlib.sha256(data).hexdigest()
    return {"path": path.decode("latin-1"), "size": len(data), "kind": kind, "sha256": digest}


@pytest.fixture
def collector(tmp_path: Path) -> Collector:
    (tmp_path / "tree").mkdir()
    return Collector(tmp_path / "out/files", TreeSource(tmp_path / "tree"), (), 1000)


@pytest.mark.parametrize(
    "path",
    [b"/etc/passwd", b"../up", b"a/../../up", b"a//b", b".", b"", b"a/./b", b"nul\0", b"..", b"a/..", b"\xff" * 100],
)
def test_names_that_lead_out_are_refused(collector: Collector, path: bytes) -> None:
    collector.offer(entry(path))
    assert collector.wanted == {}
    assert "unsafe" in collector.problems[0].message


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=200)
@given(path=st.binary(max_size=40) | st.lists(st.sampled_from([b"..", b".", b"a", b"", b"b\xff"])).map(b"/".join))
def test_whatever_the_sandbox_sends_stays_below_the_root(collector: Collector, path: bytes) -> None:
    collector.wanted.clear()
    collector._names.clear()
    collector._folders.clear()
    collector.budget = 1000
    collector.offer(entry(path))
    for shown in collector._names:
        resolved = os.path.normpath(collector.root / shown)
        assert os.path.commonpath([resolved, collector.root]) == str(collector.root)
        assert resolved != str(collector.root)


def test_two_names_that_look_the_same_do_not_overwrite_each_other(collector: Collector) -> None:
    collector.offer(entry(b"\xff"))
    collector.offer(entry(b"\\xff"))
    assert set(collector.wanted) == {b"\xff"}
    assert "ambiguous" in collector.problems[0].message


def test_a_file_and_a_directory_that_look_the_same_do_not_meet(collector: Collector) -> None:
    collector.offer(entry(b"\xff"))
    collector.offer(entry(b"\\xff/below"))
    collector.offer(entry(b"a\\xfe/x"))
    collector.offer(entry(b"a\xfe"))
    assert set(collector.wanted) == {b"\xff", b"a\\xfe/x"}


def test_budget_holds_for_the_sum(collector: Collector) -> None:
    for name in (b"a", b"b", b"c"):
        collector.offer(entry(name, bytes(400)))
    assert sorted(collector.wanted) == [b"a", b"b"]


def test_content_that_is_not_what_the_manifest_said_is_refused(collector: Collector) -> None:
    collector.offer(entry(b"a", b"expected"))
    collector.begin(b"a")
    collector.data(b"other")
    with pytest.raises(ValueError, match="not what the manifest said"):
        collector.end()


def test_file_that_nobody_asked_for_is_refused(collector: Collector) -> None:
    with pytest.raises(ValueError, match="nobody asked"):
        collector.begin(b"a")


def test_many_refusals_are_summed_up(collector: Collector) -> None:
    for index in range(100):
        collector.offer(entry(b"link%d" % index, kind="link"))
    collector.close()
    assert len(collector.problems) == 21
    assert "80 more" in collector.problems[-1].message


def test_tree_is_sent_sorted_and_without_what_is_not_a_file(tmp_path: Path) -> None:
    (tmp_path / "b").write_bytes(b"bee")
    (tmp_path / "a").mkdir()
    (tmp_path / "a/x").symlink_to("/etc/passwd")
    os.mkfifo(tmp_path / "pipe")
    source = TreeSource(tmp_path)
    sent = b"".join(source.frames())
    assert b"root:" not in sent
    assert sent.index(b"bee") < sent.index(b"/etc/passwd") < sent.index(b"Z")
    assert source.links == {b"a/x"}
    assert set(source.digests) == {b"b"}
    assert [problem.where for problem in source.problems] == ["pipe"]
    assert b"".join(TreeSource(tmp_path).frames()) == sent


def test_mirror_is_read_from_both_formats_and_comments_do_not_count(tmp_path: Path) -> None:
    assert debian_mirror(tmp_path) is None
    folder = tmp_path / "sources.list.d"
    folder.mkdir()
    (folder / "debian.sources").write_text(
        "Types: deb\n# http://snapshot.example/archive/debian/2025\nURIs: https://mirror.example/debian\nSuites: bookworm\n"
    )
    (folder / "other.list").write_text("deb https://elsewhere.example/apt stable main\n")
    assert debian_mirror(tmp_path) == "https://mirror.example/debian"
    (tmp_path / "sources.list").write_text(
        "#deb http://no.example/debian x main\ndeb [arch=amd64] http://yes.example/debian/ bookworm main\n"
    )
    assert debian_mirror(tmp_path) == "http://yes.example/debian"


def test_pip_settings_reach_uv_and_local_directories_are_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in list(os.environ):
        if name.startswith(("PIP_", "UV_")) or name.lower().endswith("_proxy"):
            monkeypatch.delenv(name)
    wheels, simple = tmp_path / "wheels", tmp_path / "index/simple"
    wheels.mkdir()
    simple.mkdir(parents=True)
    home = tmp_path / "home"
    (home / ".config/pip").mkdir(parents=True)
    (home / ".config/pip/pip.conf").write_text(
        f"[global]\nindex-url = https://user:word@mirror.example/simple\nfind-links = {wheels}\n"
        f"extra-index-url = file://{simple}\n"
    )
    monkeypatch.setenv("HOME", str(home))
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy.example:3128")
    found = install_settings()
    assert found.environment["UV_DEFAULT_INDEX"] == "https://user:word@mirror.example/simple"
    assert found.environment["UV_INDEX"] == f"file://{simple}"
    assert found.environment["UV_INDEX_STRATEGY"] == "unsafe-best-match"
    assert found.environment["HTTPS_PROXY"] == "http://proxy.example:3128"
    assert {wheels, simple.parent} <= set(found.directories)
    monkeypatch.setenv("UV_DEFAULT_INDEX", "https://own.example/simple")
    assert install_settings().environment["UV_DEFAULT_INDEX"] == "https://own.example/simple"


@pytest.mark.parametrize(
    ("log", "code", "kind", "words"),
    [
        (
            "  × No solution found when resolving dependencies:\n  ╰─▶ Because there is no version of six==99.99 and you\n"
            "      require six==99.99, we can conclude that your requirements are\n      unsatisfiable.\n",
            12, FailureKind.ENVIRONMENT_UNBUILDABLE, "six==99.99",
        ),
        (
            "  ╰─▶ Because foo-bar was not found in the package registry and you require foo-bar==1, ...",
            12, FailureKind.ENVIRONMENT_UNBUILDABLE, "foo-bar",
        ),
        ("  × Failed to build `mpi4py==3.1.4`\n  ├─▶ The build backend returned an error", 12,
         FailureKind.ENVIRONMENT_UNBUILDABLE, "mpi4py==3.1.4"),
        ("error: Failed to fetch: `https://x/simple/six/`\n  Caused by: error sending request\n  Caused by: dns error: failed to lookup address information", 12,
         FailureKind.NETWORK, "index"),
        ("E: Unable to locate package libnone-dev", 10, FailureKind.ENVIRONMENT_UNBUILDABLE, "libnone-dev"),
        ("Temporary failure resolving 'mirror.example'", 10, FailureKind.NETWORK, "index"),
        ("error: Failed to extract archive\n  Caused by: No space left on device (os error 28)", 12, FailureKind.DISK_FULL, "disk"),
        ("error: No interpreter found for Python 3.99", 11, FailureKind.ENVIRONMENT_UNBUILDABLE, "Python 3.11"),
        ("", 12, FailureKind.ENVIRONMENT_UNBUILDABLE, "no output"),
    ],
)  # fmt: skip
def test_install_logs(log: str, code: int, kind: FailureKind, words: str) -> None:
    found, cause = diagnose(log, code, BuildSpec())
    assert found is kind
    assert words in cause


def test_root_keeps_its_cache_where_other_users_can_read(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("XDG_CACHE_HOME", raising=False)
    monkeypatch.setattr(os, "geteuid", lambda: 0)
    assert cache_directory() == Path("/var/cache/expbench")
    monkeypatch.setattr(os, "geteuid", lambda: 1000)
    assert cache_directory() == Path.home() / ".cache/expbench"
    monkeypatch.setenv("XDG_CACHE_HOME", "/elsewhere")
    assert cache_directory() == Path("/elsewhere/expbench")


def test_what_is_written_again_as_it_was_is_told_apart(tmp_path: Path) -> None:
    """Seen: a script that makes the tables again which its repository ships; its outcome could not be read."""
    (tmp_path / "tree").mkdir()
    for name in ("same", "untouched", "other"):
        (tmp_path / "tree" / name).write_bytes(b"x")
    source = TreeSource(tmp_path / "tree")
    list(source.frames())
    collector = Collector(tmp_path / "out/files", source, (), 1000)
    collector.offer({**entry(b"same"), "written": True})
    collector.offer({**entry(b"untouched"), "written": False})
    collector.offer({**entry(b"other", b"y"), "written": True})
    for path, data in ((b"other", b"y"), (b"same", b"x")):
        collector.begin(path)
        collector.data(data)
        collector.end()
    assert [item.path for item in collector.rewritten] == ["same"]
    assert [item.path for item in collector.produced] == ["other"]
    assert (tmp_path / "out/files/same").read_bytes() == b"x"
