"""URLs, parsed once and strictly: what is checked is what is connected to."""

from __future__ import annotations

import ipaddress
import re
from urllib.parse import quote

from msgspec import Struct

_URL = re.compile(
    r"(?P<scheme>https?)://"
    r"(?P<host>\[[0-9A-Fa-f:.]+\]|[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?)"
    r"(:(?P<port>[0-9]{1,5}))?"
    r"(?P<path>/[^?#]*)?"
    r"(\?(?P<query>[^#]*))?"
)
_SAFE_PATH = "/:@!$&'()*+,;=~%-._"
_SAFE_QUERY = _SAFE_PATH + "?"


class Url(Struct, frozen=True, kw_only=True):
    """An absolute http or https URL without user, password or fragment."""

    scheme: str
    host: str
    """Lower case; an IPv6 address without its brackets."""
    port: int
    path: str = "/"
    query: str = ""

    @property
    def authority(self) -> str:
        host = f"[{self.host}]" if ":" in self.host else self.host
        usual = {"http": 80, "https": 443}[self.scheme]
        return host if self.port == usual else f"{host}:{self.port}"

    @property
    def target(self) -> str:
        return self.path + (f"?{self.query}" if self.query else "")

    def __str__(self) -> str:
        return f"{self.scheme}://{self.authority}{self.target}"


def parse_url(text: str) -> Url:
    """A ValueError says in one sentence what is wrong."""
    if any(ord(character) <= 0x20 or ord(character) == 0x7F for character in text):
        raise ValueError("a URL has no spaces or control characters")
    if "\\" in text:
        raise ValueError("a URL has no backslash")
    match = _URL.fullmatch(text)
    if match is None:
        raise ValueError(_why_not(text))
    port = int(match["port"]) if match["port"] else {"http": 80, "https": 443}[match["scheme"]]
    if not 0 < port < 65536:
        raise ValueError(f"port {port} does not exist")
    return Url(
        scheme=match["scheme"],
        host=_check_host(match["host"]),
        port=port,
        path=quote(match["path"] or "/", safe=_SAFE_PATH),
        query=quote(match["query"] or "", safe=_SAFE_QUERY),
    )


def parse_address(text: str) -> tuple[str, int | None]:
    """An IP address with an optional port: `127.0.0.1`, `127.0.0.1:8443`, `[::1]:8443`."""
    host, colon, port = text.rpartition(":")
    if not colon or not port.isdigit() or (":" in host and not host.startswith("[")):
        return str(ipaddress.ip_address(text.strip("[]"))), None
    if not 0 < int(port) < 65536:
        raise ValueError(f"port {port} does not exist")
    return str(ipaddress.ip_address(host.strip("[]"))), int(port)


def _check_host(host: str) -> str:
    if host.startswith("["):
        return str(ipaddress.IPv6Address(host[1:-1]))
    last = host.rsplit(".", 1)[-1]
    if last.isdigit() or last.lower().startswith("0x"):
        try:
            return str(ipaddress.IPv4Address(host))
        except ValueError:
            raise ValueError(f"{host} is not an address in the form 192.0.2.1") from None
    if len(host) > 253 or not all(0 < len(label) < 64 for label in host.split(".")):
        raise ValueError(f"{host} is not a host name")
    return host.lower()


def _why_not(text: str) -> str:
    scheme, colon, rest = text.partition("://")
    if not colon:
        return "a URL begins with https:// or http://"
    if scheme not in ("http", "https"):
        return f"the scheme {scheme!r} is not http or https"
    authority = re.split(r"[/?#]", rest, maxsplit=1)[0]
    if "@" in authority:
        return "a URL has no user or password; put credentials in a header"
    if "#" in text:
        return "a URL that is requested has no fragment (#…)"
    return f"{authority or 'nothing'} is not a host and port"
