"""What a manifest's placeholders and secrets must satisfy."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any

from glee.definitions.placeholder import find_templates, has_unclosed, parse_template
from glee.formats.finding import Finding, input_names, kind_of, mapping
from glee.schemas.validator import Path, nearest

_FILLED = {
    "http": ("url", "headers", "query", "body"),
    "command": ("args",),
    "python": ("args",),
}


def check_placeholders(manifest: Mapping[str, Any]) -> Iterator[Finding]:
    kind = kind_of(manifest)
    block = mapping(manifest, "exec", str(kind))
    inputs, secrets = input_names(manifest), list(mapping(manifest, "permissions", "secrets"))
    for path in _keys_with_names(block, ("exec", str(kind))):
        yield Finding(path, "placeholder", "placeholders are not filled in keys", "write the key literally", key=True)
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


def _keys_with_names(value: Any, path: Path) -> Iterator[Path]:
    items = value.items() if isinstance(value, Mapping) else enumerate(value) if isinstance(value, list) else ()
    for key, item in items:
        if isinstance(key, str) and "${" in key and parse_template(key).names:
            yield (*path, key)
        yield from _keys_with_names(item, (*path, key))


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
