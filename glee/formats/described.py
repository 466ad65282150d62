"""A definition that a package told of itself, read as one that a stranger wrote: checked like any manifest."""

from __future__ import annotations

import hashlib
import itertools
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import structs

from glee.definitions.json_text import encode_json
from glee.definitions.tool import Origin, PackageExec, PackageSite, Tool
from glee.formats.finding import Finding
from glee.formats.functions import is_name
from glee.formats.manifest import find_all, to_dotted, to_tool

MODULE: Final = "glee.runners.package_child"
"""What runs in the jail, and finds the package's function."""
_MAX_FINDINGS: Final = 20
_NOT_TOLD: Final = {"kind", "exec", "limits", "$schema"}
"""Of a manifest's fields, those that are not for a package to say."""
_MAX_BYTES: Final = 262_144


def find_faults(told: Any) -> list[Finding]:
    """All that keeps it from being a tool. ValueError or RecursionError if it cannot even be looked at."""
    if not isinstance(told, Mapping):
        return [Finding((), "type", "a definition is a mapping of fields", "make it with @glee.tool")]
    if len(json.dumps(told, ensure_ascii=False).encode()) > _MAX_BYTES:  # half a character is an error too
        return [Finding((), "size", f"the definition is larger than {_MAX_BYTES:,} bytes", "make its schema smaller")]
    strange = [
        Finding((name,), "unknown", f"the field {name!r} is unknown", "remove it") for name in _NOT_TOLD & told.keys()
    ]
    folder = told["name"] if isinstance(told.get("name"), str) else ""
    return [*strange, *itertools.islice(find_all(_to_manifest(told), folder), _MAX_FINDINGS)]


def find_name(told: Any) -> str | None:
    """The name under which a definition can be listed, even if it is broken otherwise."""
    name = told.get("name") if isinstance(told, Mapping) else None
    return name if isinstance(name, str) and is_name(name) else None


def to_package_tool(told: Mapping[str, Any], *, package: str, target: str, site: PackageSite) -> Tool:
    """The tool of a definition that has no faults."""
    digest = hashlib.sha256(encode_json([package, target, told])).hexdigest()
    tool = to_tool(_to_manifest(told), path=Path(package), digest=digest)
    return structs.replace(
        tool,
        exec=PackageExec(
            module=MODULE,
            function=f"{target}#{tool.name}",
            returns="json",
            timeout_ms=tool.exec.timeout_ms,
            target=target,
            site=site,
        ),
        origin=Origin(source="package", location=package),
    )


def to_probe(name: str, *, package: str, target: str, site: PackageSite) -> Tool:
    """What is run to learn which tools there are. It may touch nothing."""
    execution = PackageExec(
        module=MODULE, function="describe", args=(target,), returns="json", target=target, site=site
    )
    return Tool(
        name=name,
        description="",
        kind="python",
        inputs={},
        exec=execution,
        origin=Origin(source="package", location=package),
    )


def to_field(finding: Finding) -> str:
    return to_dotted(finding.path)


def _to_manifest(told: Mapping[str, Any]) -> dict[str, Any]:
    execution = {"module": "package", "function": "function"}
    if "timeout_ms" in told:
        execution["timeout_ms"] = told["timeout_ms"]
    fields = {name: value for name, value in told.items() if name != "timeout_ms"}
    return {**fields, "kind": "python", "exec": {"python": execution}}
