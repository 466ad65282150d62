"""What a manifest's hosts must satisfy: those it may reach, and those that its secrets belong to."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from glee.definitions.hosts import HostRule, find_rule, parse_authority, parse_hosts
from glee.formats.finding import Finding, dig, kind_of, mapping
from glee.schemas.validator import Path

_HOSTS = ("permissions", "network", "hosts")


def is_host(path: Path) -> bool:
    """True for the paths that the checks here look at."""
    return path[:3] == _HOSTS or (path[:2] == ("permissions", "secrets") and path[3:] == ("host",))


def check_hosts(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    for index, text in _texts(manifest):
        try:
            parse_hosts([text])
        except ValueError as error:
            message, _, hint = str(error).rpartition("; ")
            yield Finding((*_HOSTS, index), "host", message, hint)


def check_secret_hosts(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """A secret is put in by the proxy, which there is only for programs with a network of named hosts."""
    for name, need in mapping(manifest, "permissions", "secrets").items():
        host = dig(need, "host")
        if not isinstance(host, str):
            continue
        path: Path = ("permissions", "secrets", name, "host")
        if kind_of(manifest) not in ("command", "python"):
            yield Finding(
                path,
                "host",
                f"the secret {name} has a host, which is for kinds command and python",
                f"remove it; ${{{name}}} goes to the URL's host alone",
                key=True,
            )
            continue
        try:
            address, port = parse_authority(host)
        except ValueError as error:
            hint = "write it as api.example.com or api.example.com:8443"
            yield Finding(path, "host", f"{host!a} is not a host: {error}", hint)
            continue
        if find_rule(read_rules(manifest), address, port or 443) is None:
            yield Finding(
                path,
                "host",
                f"the secret {name} belongs to {host}, which the tool may not reach",
                f'add "{host}" under permissions.network.hosts',
            )


def read_rules(manifest: Mapping[str, Any]) -> list[HostRule]:
    """The rules that can be read; the others have findings of their own."""
    rules: list[HostRule] = []
    for _, text in _texts(manifest):
        try:
            rules += parse_hosts([text])
        except ValueError:
            pass
    return rules


def _texts(manifest: Mapping[str, Any]) -> Iterator[tuple[int, str]]:
    hosts = dig(manifest, *_HOSTS)
    for index, text in enumerate(hosts if isinstance(hosts, list) else ()):
        if isinstance(text, str):
            yield index, text
