"""Which addresses a gateway of ours may connect to on behalf of other people's code: public ones only."""

from __future__ import annotations

import ipaddress
import socket

__all__ = ["is_public", "public_address"]


def is_public(address: str) -> bool:
    """Is it nobody's private one: no address of this machine, of a private network or of a cloud's metadata service?

    IPv6 addresses that stand for an IPv4 address (mapped, 6to4, Teredo, NAT64) are judged by it, too.
    """
    found = ipaddress.ip_address(address.partition("%")[0])
    meant: list[ipaddress.IPv4Address | ipaddress.IPv6Address | None] = [found]
    if isinstance(found, ipaddress.IPv6Address):
        if found.ipv4_mapped is not None:
            return is_public(str(found.ipv4_mapped))
        meant += [found.sixtofour, *(found.teredo or ())]
        if found in ipaddress.ip_network("64:ff9b::/96"):
            meant.append(ipaddress.IPv4Address(int(found) & 0xFFFFFFFF))
    return all(one is None or (one.is_global and not one.is_multicast) for one in meant)


def public_address(host: str, port: int) -> str | None:
    """An address of the host when all of them are public; connect to it, not to the name again.

    Args:
        host: name or address.
        port: that is to be reached.
    """
    try:
        found = socket.getaddrinfo(host, port, type=socket.SOCK_STREAM)
    except (OSError, UnicodeError):
        return None
    addresses = [str(entry[4][0]) for entry in found]
    return addresses[0] if addresses and all(is_public(address) for address in addresses) else None
