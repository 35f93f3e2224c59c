"""Ubuntu's key on a Debian machine: a key that is not known is never handed on, however it came."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from pipeline.errors import ExpbenchError, FailureKind
from pipeline.sandbox import _ubuntu, open_sandbox, pythons_of
from pipeline.sandbox._base_image import SUITES, BaseRecipe

needs_gpg = pytest.mark.skipif(shutil.which("gpg") is None, reason="gpg is not installed")


@pytest.fixture
def forged(tmp_path: Path) -> Path:
    """A keyring whose key says that it is Ubuntu's."""
    home = tmp_path / "home"
    home.mkdir(mode=0o700)
    gpg = ["gpg", "--homedir", str(home), "--batch", "--quiet"]
    name = "Ubuntu Archive Automatic Signing Key (2018) <ftpmaster@ubuntu.com>"
    subprocess.run(
        [*gpg, "--passphrase", "", "--quick-gen-key", name, "ed25519", "sign"], check=True, capture_output=True
    )
    keyring = tmp_path / "forged.gpg"
    keyring.write_bytes(subprocess.run([*gpg, "--export"], check=True, capture_output=True).stdout)
    subprocess.run(["gpgconf", "--homedir", str(home), "--kill", "gpg-agent"], check=False, capture_output=True)
    return keyring


@needs_gpg
def test_a_forged_key_is_refused(forged: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ubuntu, "_INSTALLED", forged)
    (tmp_path / "scratch").mkdir()
    with pytest.raises(ExpbenchError, match="none of the keys that sign Ubuntu's archive") as caught:
        _ubuntu.ubuntu_keyring(tmp_path / "scratch", "http://127.0.0.1:9/ubuntu")
    assert caught.value.kind is FailureKind.SANDBOX_UNAVAILABLE


def test_a_mirror_that_is_not_there_is_the_network_s_failure(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(_ubuntu, "_INSTALLED", tmp_path / "none")
    with pytest.raises(ExpbenchError, match="could not be fetched") as caught:
        _ubuntu.ubuntu_keyring(tmp_path, "http://127.0.0.1:9/ubuntu")
    assert caught.value.kind is FailureKind.NETWORK


def test_the_mirror_can_be_named(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPBENCH_UBUNTU_MIRROR", "http://mirror.example/ubuntu/")
    assert _ubuntu.ubuntu_mirror() == "http://mirror.example/ubuntu"


def test_six_pythons_older_ones_before_newer_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("EXPBENCH_BASE_IMAGE", raising=False)

    class Docker:
        name = "docker"

    assert pythons_of(Docker()) == ("3.11", "3.10", "3.9", "3.8", "3.12", "3.13")  # type: ignore[arg-type]
    assert pythons_of(open_sandbox("process")) == ("3.11",)
    assert len({BaseRecipe.for_python(python).reference for python in SUITES}) == 6
    jammy = BaseRecipe.for_python("3.10")
    assert (jammy.suite, jammy.components, jammy.registry_tag) == ("jammy", ("main", "universe"), "3.10-slim-bookworm")
    assert BaseRecipe.for_python("3.9").components == ("main",)
