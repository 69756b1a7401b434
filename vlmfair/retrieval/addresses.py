"""Which addresses are fetched: public ones of the web, and nothing of this machine or its network.

Lists of addresses come from others. One that names a local file, this machine or a machine beside
it is refused, whether it is written so, leads there by its name, or is redirected there.
"""

from __future__ import annotations

import ipaddress
import re
import socket
from dataclasses import dataclass
from urllib.parse import SplitResult, urlsplit

from vlmfair.errors import RetrievalError

PORTS = {"http": 80, "https": 443}
# Names that no public server has; a name without a dot is one of the network's own, too.
LOCAL_NAMES = ("localhost", "local", "localdomain", "internal", "intranet", "lan", "home", "arpa")
_UNSAFE = re.compile(r"[\x00-\x20\x7f\\]")
_NAT64 = ipaddress.ip_network("64:ff9b::/96")

Address = ipaddress.IPv4Address | ipaddress.IPv6Address


class RefusedAddressError(RetrievalError):
    """An address that is not fetched, wherever it comes from."""


@dataclass(frozen=True)
class AddressRule:
    """What is allowed beside public addresses: pairs of IP address and port.

    Nothing is by default, and no configuration can change that.
    """

    allowed: frozenset[tuple[str, int]] = frozenset()

    def allows(self, address: Address, port: int) -> bool:
        """Return whether a server at this address may be asked."""
        return is_public(address) or (str(address), port) in self.allowed


PUBLIC = AddressRule()


def is_public(address: Address) -> bool:
    """Return whether an IP address is one of the public internet, also when it wraps another."""
    if isinstance(address, ipaddress.IPv6Address):
        wrapped = [address.ipv4_mapped, address.sixtofour, *(address.teredo or ())]
        if address in _NAT64:
            wrapped.append(ipaddress.IPv4Address(int(address) & 0xFFFFFFFF))
        if any(inner is not None and not is_public(inner) for inner in wrapped):
            return False
    return address.is_global and not address.is_multicast


def check_address(url: str, rule: AddressRule = PUBLIC) -> SplitResult:
    """Return the parts of an address that may be fetched, as far as its text tells.

    Raises RefusedAddressError on another scheme than http and https, a user name, another port
    than the scheme's, a local name, and an IP address that is not public.
    """
    if _UNSAFE.search(url):
        raise _refused(url, "it has a space, a control character or a backslash in it")
    try:
        parts = urlsplit(url)
        host, port = parts.hostname or "", parts.port
    except ValueError:
        raise _refused(url, "it cannot be read") from None
    if parts.scheme not in PORTS:
        raise _refused(url, f"{parts.scheme or 'no scheme'} is neither http nor https")
    if not host or "%" in host:
        raise _refused(url, "it names no server")
    if parts.username is not None or parts.password is not None:
        raise _refused(url, "it has a user name in it")
    port = PORTS[parts.scheme] if port is None else port
    literal = _as_ip(host)
    if literal is not None:
        if not rule.allows(literal, port):
            raise _refused(url, f"{host} is no public address")
        if is_public(literal) and port not in PORTS.values():
            raise _refused(url, f"port {port} is not that of a web server")
        return parts
    labels = host.rstrip(".").split(".")
    if len(labels) == 1 or labels[-1] in LOCAL_NAMES:
        raise _refused(url, f"{host} is a name of this machine or its network")
    if port not in PORTS.values() and not any(port == own for _, own in rule.allowed):
        raise _refused(url, f"port {port} is not that of a web server")
    return parts


def resolve(host: str, port: int, rule: AddressRule = PUBLIC) -> list[str]:
    """Return the IP addresses of a server, for a connection to exactly these.

    Raises RefusedAddressError when one of them is not public: a name that leads to several places
    could lead elsewhere the next time. Raises OSError when the name is unknown.
    """
    found = socket.getaddrinfo(host.strip("[]"), port, type=socket.SOCK_STREAM)
    addresses = list(dict.fromkeys(str(entry[4][0]).partition("%")[0] for entry in found))
    for address in addresses:
        if not rule.allows(ipaddress.ip_address(address), port):
            raise _refused(host, f"it leads to {address}, which is no public address")
    return addresses


def _as_ip(host: str) -> Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None


def _refused(url: str, why: str) -> RefusedAddressError:
    shown = " ".join(url.split())[:200]
    return RefusedAddressError(
        f"{shown}: the address is refused, because {why}. Correct it, or fetch the file by hand."
    )
