"""Public addresses, and all that is none."""

from __future__ import annotations

import pytest

from pipeline.network.addresses import is_public, public_address


@pytest.mark.parametrize(
    ("address", "public"),
    [
        ("8.8.8.8", True), ("2606:4700::1111", True), ("10.1.2.3", False), ("127.0.0.1", False),
        ("169.254.169.254", False), ("172.17.0.1", False), ("192.168.1.1", False), ("100.64.0.1", False),
        ("0.0.0.0", False), ("224.0.0.1", False), ("::1", False), ("fe80::1%eth0", False), ("fd00:ec2::254", False),
        ("::ffff:127.0.0.1", False), ("::ffff:8.8.8.8", True), ("64:ff9b::a00:1", False), ("2002:0a00:0001::", False),
    ],
)  # fmt: skip
def test_is_public(address: str, public: bool) -> None:
    assert is_public(address) == public


def test_one_private_address_among_public_ones_spoils_the_name(monkeypatch: pytest.MonkeyPatch) -> None:
    found = [(2, 1, 6, "", ("8.8.8.8", 443)), (2, 1, 6, "", ("10.0.0.1", 443))]
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: found)
    assert public_address("data.example.org", 443) is None
    found.pop()
    assert public_address("data.example.org", 443) == "8.8.8.8"
