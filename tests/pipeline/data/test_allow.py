"""The list of data hosts."""

from __future__ import annotations

import pytest

from pipeline.data.allow import default_allow_list
from pipeline.errors import ExpbenchError, FailureKind
from pipeline.settings import Settings


@pytest.mark.parametrize(
    ("url", "allowed"),
    [
        ("https://api.openml.org/api/v1/json/data/61", True),
        ("https://github.com/a/b/releases/download/v1/data.zip", True),
        ("https://github.com/a/b/settings", False),
        ("https://github.com/a/b/releases/download/%2e%2e/%2e%2e/x", False),
        ("https://s3-eu-west-1.amazonaws.com/pfigshare-u-files/1/x.csv", True),
        ("https://s3-eu-west-1.amazonaws.com/other/x.csv", False),
        ("https://openml.org.evil.com/", False),
        ("https://evilopenml.org/", False),
        ("https://www.kaggle.com/datasets", False),
        ("http://yann.lecun.com/exdb/mnist/", True),
    ],
)
def test_the_default_list(url: str, allowed: bool) -> None:
    assert default_allow_list().allows("GET", url) == allowed


def test_settings_add_hosts(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("EXPBENCH_DATA_HOSTS", "Data.Example.org, files.example.net/Pub/*")
    allow = default_allow_list().extended(Settings().data_hosts)
    assert allow.allows("GET", "https://data.example.org/x")
    assert allow.allows("GET", "https://files.example.net/Pub/x")
    assert not allow.allows("GET", "https://files.example.net/private")


@pytest.mark.parametrize(
    "entry", ["*", "*.org", "10.0.0.1", "https://example.org", "localhost", "example.org:8080", "*.*"]
)
def test_an_entry_must_name_a_host(entry: str) -> None:
    with pytest.raises(ExpbenchError, match="EXPBENCH_DATA_HOSTS") as caught:
        default_allow_list().extended([entry])
    assert caught.value.kind is FailureKind.USAGE
