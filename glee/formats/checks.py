"""What a manifest must satisfy beyond its schema: rules that need only the manifest itself."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping
from typing import Any

from glee.definitions.hosts import find_rule
from glee.definitions.placeholder import parse_template
from glee.definitions.url import parse_url
from glee.formats.finding import KINDS, Finding, dig, mapping
from glee.formats.host_checks import check_hosts, check_secret_hosts, read_rules
from glee.formats.placeholder_checks import check_placeholders, check_secrets
from glee.formats.schema_checks import check_schemas
from glee.schemas.validator import Path

_OWN_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}


def check_manifest(manifest: Mapping[str, Any], folder: str) -> Iterator[Finding]:
    """Every problem of a manifest that already has the right shape where these rules look."""
    yield from check_name(manifest, folder)
    yield from check_exec(manifest)
    yield from check_approval(manifest)
    yield from check_hosts(manifest)
    yield from check_network(manifest)
    yield from check_placeholders(manifest)
    yield from check_secrets(manifest)
    yield from check_secret_hosts(manifest)
    yield from check_url(manifest)
    yield from check_headers(manifest)
    yield from check_response(manifest)
    yield from check_body(manifest)
    yield from check_schemas(manifest)


def check_name(manifest: Mapping[str, Any], folder: str) -> Iterator[Finding]:
    name = manifest.get("name")
    if isinstance(name, str) and name != folder:
        yield Finding(
            ("name",),
            "name",
            f"the name {name!r} is not the name of its folder, {folder!r}",
            f"write name: {folder}, or rename the folder to {name}",
        )


def check_exec(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    blocks = [kind for kind in KINDS if kind in mapping(manifest, "exec")]
    kind = manifest.get("kind")
    if "exec" not in manifest or kind not in KINDS:
        return
    if not blocks:
        yield Finding(("exec",), "exec", "exec has no block", f"add exec.{kind}")
    elif len(blocks) > 1:
        yield Finding(
            ("exec",),
            "exec",
            f"exec has {len(blocks)} blocks: {', '.join(blocks)}",
            f"keep exec.{kind} and remove the others",
        )
    elif blocks != [kind]:
        yield Finding(
            ("exec", blocks[0]),
            "exec",
            f"exec.{blocks[0]} does not match kind: {kind}",
            f"write kind: {blocks[0]}, or replace the block by exec.{kind}",
            key=True,
        )


def check_approval(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    approval = mapping(manifest, "approval")
    if approval.get("required") is True and not str(approval.get("reason") or "").strip():
        yield Finding(
            ("approval", "reason"),
            "reason",
            "approval is required without a reason",
            "add approval.reason: what should a person know before saying yes?",
        )


def check_network(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    if manifest.get("kind") != "http":
        return
    network = dig(manifest, "permissions", "network")
    path = ("permissions", "network")
    if network is False:
        yield Finding(
            path,
            "network",
            "kind: http needs the network, and network is false",
            "write network: true, or name the host under network.hosts",
        )
    hosts = dig(network, "hosts")
    url = dig(manifest, "exec", "http", "url")
    if not isinstance(hosts, list) or not isinstance(url, str):
        return
    try:
        parsed = parse_url(_literal_url(url))
    except ValueError:
        return
    if find_rule(read_rules(manifest), parsed.host, parsed.port) is None:
        yield Finding(
            (*path, "hosts"),
            "network",
            f"the URL's host {parsed.authority} is not among the hosts",
            f"add {parsed.authority}",
        )


def _literal_url(url: str) -> str:
    """The URL with a harmless word for each placeholder."""
    return "".join(part if isinstance(part, str) else "x" for part in parse_template(url).parts)


def check_url(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    url = dig(manifest, "exec", "http", "url")
    if not isinstance(url, str) or manifest.get("kind") != "http":
        return
    path: Path = ("exec", "http", "url")
    first = parse_template(url).parts[0]
    literal_start = first if isinstance(first, str) else ""
    _, found, rest = literal_start.partition("://")
    authority_ends = found and any(mark in rest for mark in "/?#")
    if parse_template(url).names and not authority_ends:
        yield Finding(
            path,
            "url",
            "a placeholder stands in the scheme, host or port",
            "write scheme and host literally, as in https://api.example.com/items/${id}",
        )
        return
    try:
        parse_url(_literal_url(url))
    except ValueError as error:
        yield Finding(path, "url", f"not a usable URL: {error}", "write it as https://host/path")


def check_headers(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    seen: dict[str, str] = {}
    for name, value in mapping(manifest, "exec", "http", "headers").items():
        path = ("exec", "http", "headers", name)
        first = seen.setdefault(name.lower(), name)
        if first != name:
            yield Finding(path, "header", f"the header {name} already stands there as {first}", "keep one", key=True)
        elif name.lower() in _OWN_HEADERS:
            yield Finding(path, "header", f"the header {name} is Glee's to set", "remove it", key=True)
        elif isinstance(value, str) and any(ord(c) < 0x20 and c != "\t" for c in value):
            yield Finding(
                path, "header", f"the header {name} holds a line break or control character", "write it on one line"
            )


def check_response(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Paths are dotted; what looks like JSONPath would silently find nothing."""
    response = mapping(manifest, "exec", "http", "response")
    base: Path = ("exec", "http", "response")
    fields = response.get("fields")
    paths: list[tuple[Path, Any]] = [((*base, "json_path"), response.get("json_path"))]
    paths += [
        ((*base, "fields", index, "path"), mapping(field).get("path"))
        for index, field in enumerate(fields if isinstance(fields, list) else [])
    ]
    for path, text in paths:
        if isinstance(text, str) and re.search(r"[\[\]$*]|^\.|\.\.|\.$", text):
            hint = "write it with dots, numbers for items of a list: data.rows.0.name"
            yield Finding(path, "path", f"{text!r} is not a dotted path", hint)


def check_body(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    """Text with a placeholder in it, sent as JSON or as a form, would let an input add fields."""
    http = mapping(manifest, "exec", "http")
    body = http.get("body")
    if not isinstance(body, str) or not parse_template(body).names or parse_template(body).only_name:
        return
    declared = "".join(
        str(value).lower() for name, value in mapping(http, "headers").items() if name.lower() == "content-type"
    )
    if "json" in declared or "form" in declared:
        yield Finding(
            ("exec", "http", "body"),
            "body",
            "a placeholder inside a text body could add fields to it",
            "write the body as a mapping; Glee encodes it",
        )
