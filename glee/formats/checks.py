"""What a manifest must satisfy beyond its schema: rules that need only the manifest itself."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from fnmatch import fnmatchcase
from typing import Any

from msgspec import Struct

from glee.definitions.placeholder import find_templates, has_unclosed, parse_template
from glee.definitions.url import parse_url
from glee.errors import DefinitionError
from glee.formats import expectation
from glee.schemas.defaults import compile_defaults
from glee.schemas.validator import Path, SchemaFault, Validator, find_schema_fault, nearest

KINDS = ("http", "command", "python")
_OWN_HEADERS = {"host", "content-length", "transfer-encoding", "connection", "upgrade", "te", "trailer"}
_FILLED = {
    "http": ("url", "headers", "query", "body"),
    "command": ("args",),
    "python": ("args",),
}


class Finding(Struct, frozen=True):
    """A problem before it has a file and a line."""

    path: Path
    rule: str
    message: str
    hint: str
    key: bool = False
    """True if it is about the key at `path`, not about its value."""


def check_manifest(manifest: Mapping[str, Any], folder: str) -> Iterator[Finding]:
    """Every problem of a manifest that already has the right shape where these rules look."""
    yield from check_name(manifest, folder)
    yield from check_exec(manifest)
    yield from check_approval(manifest)
    yield from check_network(manifest)
    yield from check_placeholders(manifest)
    yield from check_secrets(manifest)
    yield from check_url(manifest)
    yield from check_headers(manifest)
    yield from check_schemas(manifest)


def dig(value: Any, *path: str) -> Any:
    """What stands at a path of mappings, or None."""
    for part in path:
        value = value.get(part) if isinstance(value, Mapping) else None
    return value


def mapping(value: Any, *path: str) -> Mapping[str, Any]:
    found = dig(value, *path)
    return found if isinstance(found, Mapping) else {}


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
            ("approval",),
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
    if not any(_admits(str(host), parsed.host, parsed.port) for host in hosts):
        yield Finding(
            (*path, "hosts"),
            "network",
            f"the URL's host {parsed.authority} is not among the hosts",
            f"add {parsed.host}",
        )


def _admits(pattern: str, host: str, port: int) -> bool:
    name, _, wanted = pattern.partition(":")
    return fnmatchcase(host, name.lower()) and (not wanted or wanted == str(port))


def _literal_url(url: str) -> str:
    """The URL with a harmless word for each placeholder."""
    return "".join(part if isinstance(part, str) else "x" for part in parse_template(url).parts)


def kind_of(manifest: Mapping[str, Any]) -> Any:
    """The kind, or the one its only block speaks of where the word itself is wrong."""
    kind = manifest.get("kind")
    blocks = [block for block in KINDS if block in mapping(manifest, "exec")]
    return blocks[0] if kind not in KINDS and len(blocks) == 1 else kind


def input_names(manifest: Mapping[str, Any]) -> list[str]:
    return list(mapping(manifest, "inputs", "schema", "properties"))


def check_placeholders(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    kind = kind_of(manifest)
    block = mapping(manifest, "exec", str(kind))
    inputs, secrets = input_names(manifest), list(mapping(manifest, "permissions", "secrets"))
    for path, text in find_templates(block):
        whole: Path = ("exec", str(kind), *path)
        if path[0] not in _FILLED.get(str(kind), ()):
            if parse_template(text).names:
                yield Finding(
                    whole,
                    "placeholder",
                    f"placeholders are not filled in {path[0]}",
                    "write a literal value; a model must not choose it",
                )
            continue
        if has_unclosed(text):
            yield Finding(whole, "placeholder", "a placeholder is not closed", "write ${name}, or $${ for a literal ${")
        for name in parse_template(text).names:
            if name not in inputs and name not in secrets:
                near = nearest(name, inputs + secrets)
                yield Finding(
                    whole,
                    "placeholder",
                    f"${{{name}}} is neither an input nor a declared secret",
                    f"write ${{{near}}}"
                    if near
                    else f"add {name} to inputs.schema.properties or to permissions.secrets",
                )


def check_secrets(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    kind = kind_of(manifest)
    block = mapping(manifest, "exec", str(kind))
    secrets = mapping(manifest, "permissions", "secrets")
    for name in secrets:
        if name in input_names(manifest):
            yield Finding(
                ("permissions", "secrets", name),
                "secret",
                f"{name} is an input and a secret at once",
                "rename one of them",
                key=True,
            )
    used: set[str] = set()
    for path, text in find_templates(block):
        names = parse_template(text).names
        used.update(names)
        if kind == "command" and path[0] == "args":
            for name in set(names) & set(secrets):
                yield Finding(
                    ("exec", "command", *path),
                    "secret",
                    f"the secret {name} stands in a command argument, which any local user can read",
                    f"remove it; the program finds it in its environment as {name}",
                )
    if kind == "http":
        for name in secrets:
            if name not in used:
                yield Finding(
                    ("permissions", "secrets", name),
                    "secret",
                    f"the secret {name} is not used",
                    f"put ${{{name}}} into a header, or remove it",
                    key=True,
                )


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
    for name, value in mapping(manifest, "exec", "http", "headers").items():
        path = ("exec", "http", "headers", name)
        if name.lower() in _OWN_HEADERS:
            yield Finding(path, "header", f"the header {name} is Glee's to set", "remove it", key=True)
        elif isinstance(value, str) and any(ord(c) < 0x20 and c != "\t" for c in value):
            yield Finding(
                path, "header", f"the header {name} holds a line break or control character", "write it on one line"
            )


def check_schemas(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    schema = dig(manifest, "inputs", "schema")
    if isinstance(schema, dict):
        fault = find_schema_fault(schema)
        if fault:
            yield _schema_finding(("inputs", "schema"), fault)
        else:
            yield from check_defaults(schema)
            yield from check_example_params(manifest, schema)
    output = dig(manifest, "outputs", "schema")
    if output is not None:
        fault = find_schema_fault(output)
        if fault:
            yield _schema_finding(("outputs", "schema"), fault)
            output = None
    yield from check_expected(manifest, output)


def _schema_finding(base: Path, fault: SchemaFault) -> Finding:
    return Finding(
        (*base, *fault.path),
        "schema",
        f"not valid JSON Schema 2020-12: {fault.message}",
        "mend the schema; it may not refer to anything outside itself",
    )


def check_defaults(schema: Mapping[str, Any], path: Path = ()) -> Iterator[Finding]:
    """Each default against the subschema it belongs to, wherever `properties` lead."""
    root = {**schema, "$id": "urn:glee:root"} if not path else schema
    yield from _check_defaults(root, schema, path)


def _check_defaults(root: Mapping[str, Any], schema: Any, path: Path) -> Iterator[Finding]:
    for name, sub in mapping(schema, "properties").items():
        if not isinstance(sub, Mapping):
            continue
        here = (*path, "properties", name)
        if "default" in sub:
            pointer = "/".join(
                part.replace("~", "~0").replace("/", "~1").replace("%", "%25") for part in map(str, here)
            )
            try:
                validator = Validator({"$ref": f"urn:glee:root#/{pointer}", "$defs": {"root": root}})
            except DefinitionError:
                continue
            for violation in validator.violations(sub["default"]):
                yield Finding(
                    ("inputs", "schema", *here, "default"),
                    "default",
                    f"the default does not fit its own schema: {violation.message}",
                    "change the default or the schema",
                )
        yield from _check_defaults(root, sub, here)


def _examples(manifest: Mapping[str, Any]) -> Iterator[tuple[int, Mapping[str, Any]]]:
    examples = manifest.get("examples")
    if isinstance(examples, list):
        yield from ((index, item) for index, item in enumerate(examples) if isinstance(item, Mapping))


def check_example_params(manifest: Mapping[str, Any], schema: dict[str, Any]) -> Iterator[Finding]:
    if not any(True for _ in _examples(manifest)):
        return
    validator, fill = Validator(schema), compile_defaults(schema)
    for index, example in _examples(manifest):
        params = example.get("params")
        if not isinstance(params, dict):
            continue
        for path, _, error in validator.errors(fill(params) if fill else params):
            yield Finding(
                ("examples", index, "params", *path),
                "example",
                f"the example does not fit inputs.schema: {str(error).splitlines()[0]}",
                "change the example or the schema",
            )


def check_expected(manifest: Mapping[str, Any], schema: Any) -> Iterator[Finding]:
    json_wanted = _output_format(manifest) == "json"
    validator = Validator(schema) if schema is not None else None
    for index, example in _examples(manifest):
        expected = example.get("expected_output")
        if expected is None or not json_wanted:
            continue
        path: Path = ("examples", index, "expected_output")
        if isinstance(expected, str):
            try:
                expected = expectation.parse_expected(expected)
            except ValueError as error:
                yield Finding(
                    path, "example", f"the expected output is not JSON: {error}", "write JSON, or outputs.format: text"
                )
                continue
        yield from _check_expected_value(path, expected, validator)


def _check_expected_value(path: Path, expected: Any, validator: Validator | None) -> Iterator[Finding]:
    if validator is None:
        return
    for at, _, error in validator.errors(expectation.without_rest(expected)):
        if not expectation.is_open(expected, at):
            yield Finding(
                path,
                "example",
                f"the expected output does not fit outputs.schema: {str(error).splitlines()[0]}",
                "change the example or the schema",
            )


def _output_format(manifest: Mapping[str, Any]) -> str:
    declared = dig(manifest, "outputs", "format") or dig(manifest, "exec", "command", "stdout", "format")
    return str(declared or ("text" if manifest.get("kind") == "command" else "json"))
