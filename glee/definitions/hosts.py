"""Host names and the rules that permit them, by one strict grammar: what is checked is what is reached."""

from __future__ import annotations

import ipaddress
import re
from collections.abc import Iterable, Sequence
from typing import Final

from msgspec import Struct

USUAL_PORTS: Final = (80, 443)
"""What a rule without a port permits."""
_LABEL: Final = re.compile(r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?")
_PORT: Final = re.compile(r"[1-9][0-9]{0,4}")
_BELOW: Final = "*."
_FORM: Final = "write it as api.example.com, *.example.org or api.example.com:8443"


class HostRule(Struct, frozen=True):
    """One line under `permissions.network.hosts`."""

    host: str
    """Lower case; an IPv6 address without its brackets."""
    below: bool = False
    """True for `*.host`: any name below it, and not the host itself."""
    ports: tuple[int, ...] = USUAL_PORTS

    def permits(self, host: str, port: int) -> bool:
        if port not in self.ports:
            return False
        return host.endswith(f".{self.host}") if self.below else host == self.host


def parse_hosts(texts: Iterable[str]) -> tuple[HostRule, ...]:
    """A ValueError names the line, says what is wrong with it, and how to write it."""
    return tuple(_parse_rule(text) for text in texts)


def find_rule(rules: Sequence[HostRule], host: str, port: int) -> HostRule | None:
    """The rule that permits a host; the one that names it comes before one that only covers it."""
    try:
        name = parse_host(f"[{host}]" if ":" in host and not host.startswith("[") else host)
    except ValueError:
        return None
    found = [rule for rule in rules if rule.permits(name, port)]
    return min(found, key=lambda rule: rule.below, default=None)


def parse_authority(text: str) -> tuple[str, int | None]:
    """`host`, `host:port` or `[address]:port`, as it stands in a URL. A ValueError says what is wrong."""
    host, colon, port = text.rpartition(":")
    if text.endswith("]") or not colon:
        return parse_host(text), None
    if not _PORT.fullmatch(port) or int(port) > 65535:
        raise ValueError(f"{port!a} is not a port")
    return parse_host(host), int(port)


def to_authority(host: str, port: int | None = None) -> str:
    """The other way: as it is written in a URL or in a manifest."""
    name = f"[{host}]" if ":" in host else host
    return name if port is None else f"{name}:{port}"


def parse_host(text: str) -> str:
    """A host name in lower case, or an address in its usual form; no other spelling of either."""
    if text.startswith("["):
        return _parse_ipv6(text)
    host = text.lower()
    labels = host.split(".")
    if not text.isascii() or len(text) > 253 or not all(_LABEL.fullmatch(label) for label in labels):
        raise ValueError(_why_not(text))
    if labels[-1].isdigit() or labels[-1].startswith("0x"):  # where some resolvers see an IPv4 address
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError(f"{host} is not an address in the form 192.0.2.1") from None
    return host


def is_address(host: str) -> bool:
    """Of a parsed host: True for an IP address, False for a name."""
    return ":" in host or host.rsplit(".", 1)[-1].isdigit()


def _parse_ipv6(text: str) -> str:
    if text.endswith("]") and "%" not in text:
        try:
            return str(ipaddress.IPv6Address(text[1:-1]))
        except ValueError:
            pass
    raise ValueError(f"{text!a} is not an address in the form [2001:db8::1]")


def _why_not(text: str) -> str:
    if not text:
        return "the host is missing"
    if "@" in text:
        return f"{text!a} holds a user or password"
    if text.endswith("."):
        return f"{text!a} ends with a dot"
    if not text.isascii():
        return f"{text!a} is not in ASCII; international names begin with xn--"
    if ":" in text:
        return f"{text!a} is not a host and port; an IPv6 address stands in brackets"
    return f"{text!a} is not a host name"


def _parse_rule(text: str) -> HostRule:
    below = text.startswith(_BELOW)
    try:
        host, port = parse_authority(text.removeprefix(_BELOW))
        if below and is_address(host):
            raise ValueError(f"there are no names below the address {host}")
    except ValueError as error:
        raise ValueError(f"{text!a} permits no host: {error}; {_FORM}") from None
    return HostRule(host, below, USUAL_PORTS if port is None else (port,))
