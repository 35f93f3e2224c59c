"""The recording proxy by itself: what it fetches, keeps, and refuses."""

from __future__ import annotations

import gzip
import http.client
import io
import ssl
import zipfile
from hashlib import sha256

import pytest

from pipeline.data.licences import stated_licences
from pipeline.data.store import DataStore
from tests.pipeline.data.conftest import Phases
from tests.pipeline.data.data_host import DataHost, Page

IRIS = "https://api.openml.org/data/v1/download/61"
MODEL = "http://download.pytorch.org/models/net.pth"


def test_a_file_is_fetched_once_and_kept_by_its_content(phase: Phases, host: DataHost, store: DataStore) -> None:
    host.pages["api.openml.org/data/v1/download/61"] = Page(b"@RELATION iris", "text/plain", ETag='"1"')
    first = phase()
    assert first.get(IRIS) == b"@RELATION iris"
    assert first.ask("HEAD", IRIS).headers["Content-Length"] == "14"
    second = phase()
    assert second.get(IRIS) == b"@RELATION iris"
    assert second.ask("HEAD", IRIS).headers["etag"] == '"1"'
    assert host.urls() == ["GET api.openml.org/data/v1/download/61"]
    assert second.outcomes() == [("cached", IRIS)] * 2
    assert second.recorder.fetched_bytes == 0
    assert store.blob(sha256(b"@RELATION iris").hexdigest()).read_bytes() == b"@RELATION iris"


def test_plain_http_is_recorded_too(phase: Phases, host: DataHost) -> None:
    host.pages["download.pytorch.org/models/net.pth"] = Page(b"weights")
    assert phase().get(MODEL) == b"weights"


def test_a_range_is_cut_from_the_whole_file(phase: Phases, host: DataHost) -> None:
    host.pages["download.pytorch.org/models/net.pth"] = Page(b"0123456789")
    answer = phase().ask("GET", MODEL, Range="bytes=2-4")
    assert (answer.status, answer.body, answer.headers["content-range"]) == (206, b"234", "bytes 2-4/10")
    assert "Range" not in host.asked[0][2]
    assert phase().ask("GET", MODEL, Range="bytes=-3").body == b"789"
    assert phase().get(MODEL) == b"0123456789"
    assert len(host.asked) == 1


def test_what_is_not_there_is_an_answer_and_a_passing_failure_is_none(phase: Phases, host: DataHost) -> None:
    host.pages["api.openml.org/busy"] = Page(status=503)
    for _ in range(2):
        one = phase()
        assert one.ask("GET", "https://api.openml.org/gone").status == 404
        assert one.ask("GET", "https://api.openml.org/busy").status == 503
    assert host.urls() == ["GET api.openml.org/gone", "GET api.openml.org/busy", "GET api.openml.org/busy"]


def test_other_bytes_on_a_second_fetch_are_said(phase: Phases, host: DataHost, store: DataStore) -> None:
    host.pages["api.openml.org/data/v1/download/61"] = Page(b"first")
    phase().get(IRIS)
    host.pages["api.openml.org/data/v1/download/61"] = Page(b"second")
    again = phase(refresh=True)
    assert again.get(IRIS) == b"second"
    [problem] = again.recorder.problems
    for said in (sha256(b"first").hexdigest(), sha256(b"second").hexdigest(), "holds other bytes than before"):
        assert said in problem.message
    [before] = store.find(f"GET {IRIS}").previous  # type: ignore[union-attr]
    assert before[0] == sha256(b"first").hexdigest()


def test_a_damaged_file_of_the_cache_is_fetched_again(phase: Phases, host: DataHost, store: DataStore) -> None:
    host.pages["api.openml.org/data/v1/download/61"] = Page(b"good")
    phase().get(IRIS)
    blob = store.blob(sha256(b"good").hexdigest())
    blob.unlink()
    blob.write_bytes(b"evil")
    again = phase()
    assert again.get(IRIS) == b"good"
    assert "damaged" in again.recorder.problems[0].message
    assert blob.read_bytes() == b"good"


# --- what may not be


@pytest.mark.parametrize("url", ["https://evil.example.com/data", "http://127.0.0.1/", "http://169.254.169.254/latest/",
                                 "http://localhost/", "http://[::1]/", "https://github.com/someone/thing/issues",
                                 "https://github.com/a/releases/download/../../../../login"])  # fmt: skip
def test_only_the_list_is_fetched(phase: Phases, host: DataHost, url: str) -> None:
    one = phase()
    if url.startswith("https://evil"):
        with pytest.raises(ssl.SSLError):  # nobody vouches for a host that may not be reached
            one.ask("GET", url)
    else:
        answer = one.ask("GET", url)
        assert (answer.status, answer.reason) == (403, "Refused by the data phase")
        assert [outcome for outcome, _ in one.outcomes()] == ["refused"]
    assert host.asked == []


@pytest.mark.parametrize("method", ["POST", "PUT", "DELETE", "PATCH", "OPTIONS", "PROPFIND"])
def test_nothing_but_reading(phase: Phases, host: DataHost, method: str) -> None:
    one = phase()
    answer = one.ask(method, "https://api.openml.org/data", b"secret")
    assert answer.status == 403
    assert b"only GET and HEAD" in answer.body
    assert host.asked == []


def test_a_read_by_post_is_bounded_and_told_apart_by_its_body(phase: Phases, host: DataHost) -> None:
    url = "https://huggingface.co/api/datasets/a/b/paths-info/main"
    host.pages["huggingface.co/api/datasets/a/b/paths-info/main"] = Page(b"[]", "application/json")
    one = phase()
    assert one.ask("POST", url, b'{"paths":["x"]}').status == 200
    assert one.ask("POST", url, b'{"paths":["x"]}').status == 200
    assert one.ask("POST", url, b'{"paths":["y"]}').status == 200
    assert len(host.asked) == 2
    assert one.ask("POST", url, b"x" * 3000).status == 403
    assert one.ask("POST", "https://huggingface.co/api/repos/create", b"{}").status == 403


def test_a_name_that_leads_to_a_private_address_is_refused(phase: Phases, monkeypatch: pytest.MonkeyPatch) -> None:
    """An attacker owns a name below a listed one, or the name server."""
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("10.0.0.7", 443))])
    one = phase()
    answer = one.ask("GET", "https://inside.openml.org/secret")
    assert answer.status == 403
    assert b"no public address" in answer.body


def test_a_redirect_to_a_private_address_is_passed_on_told_and_leads_nowhere(phase: Phases, host: DataHost) -> None:
    host.pages["api.openml.org/r"] = Page(status=302, Location="http://169.254.169.254/latest/meta-data/")
    one = phase()
    answer = one.ask("GET", "https://api.openml.org/r")
    assert answer.status == 302
    assert "redirects to http://169.254.169.254/" in one.recorder.problems[0].message
    assert one.ask("GET", answer.headers["location"]).status == 403
    assert len(host.asked) == 1


def test_nothing_of_the_client_goes_out_but_the_url(phase: Phases, host: DataHost) -> None:
    host.pages["api.openml.org/x?q=1"] = Page(b"x")
    phase().ask("GET", "https://api.openml.org/x?q=1", User_Agent="secret", Cookie="secret", Authorization="secret",
                X_Secret="secret", Accept="secret")  # fmt: skip
    [(_, _, headers, _)] = host.asked
    assert "secret" not in str(headers)


def test_what_query_strings_carry_is_bounded_and_logged(phase: Phases, host: DataHost) -> None:
    one = phase()
    assert one.ask("GET", f"https://api.openml.org/?{'a' * 3000}").status == 403
    assert host.asked == []
    told = sum(one.ask("GET", f"https://api.openml.org/?{n}{'a' * 1900}").status != 403 for n in range(60))
    sent = sum(len(url) for _, url, *_ in host.asked)
    assert 0 < told < 40
    assert sent <= 64 << 10
    assert len(one.recorder.requests) == 61
    assert all(asked.url.startswith("https://api.openml.org/?") for asked in one.recorder.requests)


def test_a_signed_url_may_be_long_when_an_allowed_host_gave_it(phase: Phases, host: DataHost) -> None:
    signed = f"api.openml.org/file?X-Amz-Signature={'f' * 3000}"
    host.pages["api.openml.org/r"] = Page(status=302, Location=f"https://{signed}")
    host.pages[signed] = Page(b"file")
    one = phase()
    assert one.get(one.ask("GET", "https://api.openml.org/r").headers["location"]) == b"file"


# --- how much


def test_a_file_over_the_limit_is_refused_before_it_comes(phase: Phases, host: DataHost, store: DataStore) -> None:
    host.pages["download.pytorch.org/models/net.pth"] = Page(b"x" * (2 << 20))
    answer = phase().ask("GET", MODEL)
    assert answer.status == 403
    assert b"2.0 MB, after 0.0 of 1 MB" in answer.body
    assert b"EXPBENCH_DATA_LIMIT_MB" in answer.body
    assert list((store.root / "incoming").glob("*")) == []


def test_a_person_may_let_it_through(phase: Phases, host: DataHost) -> None:
    host.pages["download.pytorch.org/models/net.pth"] = Page(b"x" * (2 << 20))
    asked: list[str] = []

    def agree(text: str) -> bool:
        asked.append(text)
        return True

    assert len(phase(ask=agree).get(MODEL)) == 2 << 20
    assert MODEL in asked[0]


def test_an_endless_body_ends_at_the_limit(phase: Phases, host: DataHost, store: DataStore) -> None:
    host.pages["download.pytorch.org/models/net.pth"] = Page(endless=True, length=False)
    one = phase()
    assert one.ask("GET", MODEL).status == 403
    assert one.outcomes() == [("refused", MODEL)]
    assert one.recorder.fetched_bytes <= 2 << 20
    assert store.find(f"GET {MODEL}") is None
    assert list((store.root / "incoming").glob("*")) == []


def test_a_body_that_breaks_off_reaches_nobody_as_whole(phase: Phases, host: DataHost, store: DataStore) -> None:
    host.pages["download.pytorch.org/models/net.pth"] = Page(b"half", length=False, Content_Length="8")
    assert phase().ask("GET", MODEL).status == 502
    host.pages["download.pytorch.org/models/net.pth"] = Page(bytes(700_000), length=False, Content_Length="800000")
    with pytest.raises(http.client.IncompleteRead):
        phase().ask("GET", MODEL)
    assert store.find(f"GET {MODEL}") is None


def test_a_bomb_stays_a_file(phase: Phases, host: DataHost) -> None:
    """Packed contents are never opened here: a zip and a compressed answer alike."""
    packed = io.BytesIO()
    with zipfile.ZipFile(packed, "w", zipfile.ZIP_DEFLATED) as archive:
        archive.writestr("zeros", bytes(200 << 20))
    host.pages["api.openml.org/bomb.zip"] = Page(packed.getvalue())
    host.pages["api.openml.org/bomb"] = Page(gzip.compress(bytes(200 << 20)), Content_Encoding="gzip")
    one = phase()
    assert one.get("https://api.openml.org/bomb.zip") == packed.getvalue()
    assert one.ask("GET", "https://api.openml.org/bomb").headers["content-encoding"] == "gzip"
    assert one.recorder.fetched_bytes < 1 << 20


def test_a_licence_is_what_the_source_states(phase: Phases, host: DataHost, store: DataStore) -> None:
    described = b'{"data_set_description": {"licence": "Public", "url": "%s"}, "license": 3}' % IRIS.encode()
    host.pages["api.openml.org/61"] = Page(described, "application/json")
    one = phase()
    one.get("https://api.openml.org/61")
    assert stated_licences(one.recorder.replies.values(), store) == {IRIS: "Public"}
