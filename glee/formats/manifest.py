"""`tool.yml` into a Tool, or into the list of everything that is wrong with it."""

from __future__ import annotations

import errno
import functools
import hashlib
import itertools
import reprlib
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import msgspec
from msgspec import Struct

from glee.definitions.permissions import Permissions
from glee.definitions.problem import Problem
from glee.definitions.tool import (
    Approval,
    CommandExec,
    Example,
    Exec,
    Format,
    HttpExec,
    Origin,
    Outputs,
    PythonExec,
    Tool,
)
from glee.formats import yaml_text
from glee.formats.advice import advise
from glee.formats.checks import check_manifest
from glee.formats.finding import Finding
from glee.formats.host_checks import is_host
from glee.formats.surroundings import check_surroundings
from glee.schemas import load_schema
from glee.schemas.validator import Validator, nearest

MAX_FINDINGS = 200
"""More are not worth the time: whoever has so many mends these first."""
_EXECS: dict[str, type[Exec]] = {"http": HttpExec, "command": CommandExec, "python": PythonExec}


class Reading(Struct, frozen=True):
    """What came of reading one manifest: a tool, or problems."""

    tool: Tool | None
    problems: tuple[Problem, ...]


def read_manifest(path: Path, *, shown: str | None = None) -> Reading:
    """Reads a manifest from disk. A file that cannot be read is a problem too, never an exception."""
    reading, _ = _read(path, shown or str(path))
    return reading


def lint_manifest(path: Path, *, root: Path, search_path: str, shown: str | None = None) -> tuple[Problem, ...]:
    """Every problem of a manifest, those with what it points to included, and advice."""
    file = shown or str(path)
    reading, document = _read(path, file)
    if reading.tool is None or document is None:
        return reading.problems
    findings = (*check_surroundings(reading.tool, root, search_path), *advise(reading.tool, root))
    return tuple(_locate(finding, document, file) for finding in findings)


def _read(path: Path, file: str) -> tuple[Reading, yaml_text.Document | None]:
    try:
        if path.exists() and not path.is_file():
            raise OSError(errno.EINVAL, "it is not a file")
        with path.open("rb") as stream:
            data = stream.read(yaml_text.MAX_BYTES + 1)
    except OSError as error:
        problem = Problem(
            file=file,
            line=1,
            column=1,
            field="",
            rule="file",
            message=f"cannot be read: {error.strerror}",
            hint="check that it is a file and that you may read it",
        )
        return Reading(None, (problem,)), None
    document = yaml_text.parse_bytes(data)
    return _parse(data, document, path=path, shown=file), document


def parse_manifest(data: bytes, *, path: Path, shown: str) -> Reading:
    """The bytes of a manifest that stands, or will stand, at a path."""
    return _parse(data, yaml_text.parse_bytes(data), path=path, shown=shown)


def _parse(data: bytes, document: yaml_text.Document, *, path: Path, shown: str) -> Reading:
    problems = [
        Problem(
            file=shown,
            line=fault.place[0],
            column=fault.place[1],
            field=to_dotted(fault.path),
            rule=fault.rule,
            message=fault.message,
            hint=fault.hint,
        )
        for fault in document.faults
    ]
    if not any(fault.path == () for fault in document.faults):
        findings = itertools.islice(find_all(document.value, path.parent.name), MAX_FINDINGS)
        problems += [_locate(finding, document, shown) for finding in findings]
    if problems:
        return Reading(None, tuple(sorted(problems, key=lambda problem: (problem.line, problem.column))))
    return Reading(to_tool(document.value, path=path, digest=hashlib.sha256(data).hexdigest()), ())


def find_all(manifest: Any, folder: str) -> Iterator[Finding]:
    """Every finding about a manifest's content, by its schema and beyond it."""
    if not isinstance(manifest, Mapping):
        yield Finding((), "type", "a manifest is a mapping of fields", "begin with name: and description:")
        return
    for path, schema_path, error in _validator().errors(manifest):
        yield from _from_schema(path, schema_path, error)
    yield from check_manifest(manifest, folder)


def to_tool(manifest: Mapping[str, Any], *, path: Path, digest: str) -> Tool:
    """A checked manifest as a value."""
    kind, version = manifest["kind"], manifest.get("version", 1)
    # The schema has checked every type; strict=False only lets 30000.0 be the whole number it is.
    execution: Any = msgspec.convert(manifest["exec"][kind], _EXECS[kind], strict=False)
    outputs = dict(manifest.get("outputs") or {})
    outputs.setdefault("format", _default_format(execution))
    group = manifest.get("group")
    return Tool(
        name=manifest["name"],
        description=manifest["description"],
        kind=kind,
        version=int(version) if isinstance(version, float) else version,
        inputs=manifest["inputs"]["schema"],
        outputs=msgspec.convert(outputs, Outputs),
        exec=execution,
        permissions=msgspec.convert(manifest.get("permissions") or {}, Permissions),
        limits=msgspec.convert(manifest.get("limits") or {}, dict[str, int], strict=False),
        approval=msgspec.convert(manifest.get("approval") or {}, Approval),
        examples=msgspec.convert(manifest.get("examples") or [], tuple[Example, ...]),
        group="web" if group == "net" else group,
        dangerous=manifest.get("dangerous", False),
        idempotent=manifest.get("idempotent", False),
        origin=Origin(source="project", location=str(path), folder=str(path.parent)),
        digest=digest,
    )


def _default_format(execution: Exec) -> Format:
    if isinstance(execution, CommandExec):
        return execution.stdout.format if execution.stdout else "text"
    if isinstance(execution, PythonExec):
        return execution.returns or "json"
    return "json"


@functools.cache
def _validator() -> Validator:
    return Validator(load_schema("tool"))


def _from_schema(path: yaml_text.Path, schema_path: yaml_text.Path, error: Any) -> Iterator[Finding]:
    kind = error.kind
    name = getattr(kind, "name", "schema")
    if name == "additionalProperties":
        known = _known_fields(schema_path)
        for word in kind.unexpected:
            near = nearest(word, known)
            hint = f"did you mean {near}?" if near else f"remove it; known here: {', '.join(known)}"
            yield Finding((*path, word), "unknown", f"the field {word!r} is unknown", hint, key=True)
    elif name == "required":
        yield Finding(
            (*path, kind.property), "required", f"the field {kind.property!r} is missing", f"add {kind.property}:"
        )
    elif name == "enum":
        near = nearest(str(error.instance), [str(option) for option in kind.options])
        options = ", ".join(map(str, kind.options))
        yield Finding(
            path,
            "enum",
            f"{reprlib.repr(error.instance)} is not one of {options}",
            f"did you mean {near}?" if near else "use one of these",
        )
    elif name == "pattern" and path == ("name",):
        yield Finding(
            path,
            "name",
            f"{reprlib.repr(error.instance)} cannot name a folder and a tool",
            "use letters, digits, _ . and -, and begin with a letter or digit",
        )
    elif name == "pattern" and is_host(path):
        return  # the checks beyond the schema say what is wrong with it
    else:
        violation = _validator().explain(error)
        yield Finding(path, violation.rule, violation.message, violation.hint)


def _known_fields(schema_path: yaml_text.Path) -> list[str]:
    schema: Any = load_schema("tool")
    for part in schema_path[:-1]:
        schema = schema[part] if part != "$ref" else schema
        if isinstance(schema, Mapping) and "$ref" in schema:
            schema = load_schema("tool")["$defs"][schema["$ref"].rsplit("/", 1)[-1]]
    return [name for name in schema.get("properties", {}) if not name.startswith("$")]


def _locate(finding: Finding, document: yaml_text.Document, shown: str) -> Problem:
    line, column = document.find_place(finding.path, key=finding.key)
    return Problem(
        file=shown,
        line=line,
        column=column,
        field=to_dotted(finding.path),
        rule=finding.rule,
        message=finding.message,
        hint=finding.hint,
        advice=finding.advice,
    )


def to_dotted(path: yaml_text.Path) -> str:
    text = ""
    for part in path:
        text += f"[{part}]" if isinstance(part, int) else f".{part}" if text else part
    return text
