"""JSON Schema 2020-12: compile once, check fast, and say what is wrong in words a model can act on.

References are never fetched: a schema that points outside itself is a broken schema.
"""

from __future__ import annotations

import difflib
import itertools
import json
from collections.abc import Mapping, Sequence
from typing import Any, Final

import jsonschema_rs
from msgspec import Struct

from glee.errors import DefinitionError

Path = tuple[str | int, ...]
_TYPES = ("string", "integer", "number", "boolean", "array", "object", "null")

SETTINGS: Final[dict[str, Any]] = {"offline": True, "validate_formats": False}
"""Nothing is fetched, and `format` is an annotation, as 2020-12 has it unless a schema asks for more."""
_WORDS: Final = 10
_SHOWN: Final = 400
"""Characters of a message; the library quotes the whole value."""


class Violation(Struct, frozen=True, kw_only=True):
    """One rule broken at one place."""

    pointer: str
    """A JSON pointer into the value: `/items/0/name`."""
    rule: str
    message: str
    hint: str


class SchemaFault(Struct, frozen=True):
    """A schema that is not valid 2020-12: where, and why."""

    path: Path
    message: str
    hint: str = ""


class Validator:
    """A compiled schema."""

    __slots__ = ("_compiled", "is_valid", "schema")

    def __init__(self, schema: dict[str, Any] | bool) -> None:
        try:
            self._compiled = jsonschema_rs.Draft202012Validator(schema, **SETTINGS)
        except (jsonschema_rs.ValidationError, ValueError) as error:
            raise DefinitionError(f"not a valid JSON Schema: {_first_line(error)}") from error
        self.schema = schema
        self.is_valid = self._compiled.is_valid

    def violations(self, value: Any, most: int | None = None) -> list[Violation]:
        """Every violation in document order, or the first of them."""
        return [_explain(error, self.schema) for error in itertools.islice(self._compiled.iter_errors(value), most)]

    def explain(self, error: Any) -> Violation:
        """The library's error in our words."""
        return _explain(error, self.schema)

    def errors(self, value: Any) -> list[tuple[Path, Path, Any]]:
        """Path into the value, path into the schema, and the library's error: for the linter."""
        return [
            (tuple(error.instance_path), tuple(error.schema_path), error) for error in self._compiled.iter_errors(value)
        ]


def find_schema_fault(schema: Any) -> SchemaFault | None:
    """None for a valid 2020-12 schema that refers to nothing outside itself."""
    if not isinstance(schema, dict | bool):
        return SchemaFault((), f"a schema is a mapping, not {_kind(schema)}")
    declared = schema.get("$schema") if isinstance(schema, dict) else None
    if declared is not None and str(declared).rstrip("#") != "https://json-schema.org/draft/2020-12/schema":
        return SchemaFault(("$schema",), f"{declared} is not JSON Schema 2020-12")
    try:
        jsonschema_rs.Draft202012Validator(schema, **SETTINGS)
    except jsonschema_rs.ValidationError as error:
        return _explain_schema(error)
    except ValueError as error:
        return SchemaFault((), _first_line(error))
    return None


def _explain_schema(error: Any) -> SchemaFault:
    path = tuple(error.instance_path)
    if path and "type" in path[-2:] and isinstance(error.instance, str):
        near = nearest(error.instance, _TYPES)
        hint = f"did you mean {near}?" if near else f"use one of {', '.join(_TYPES)}"
        return SchemaFault(path, f"{error.instance!r} is not a type", hint)
    return SchemaFault(path, _first_line(error))


def to_pointer(path: Sequence[str | int]) -> str:
    """A JSON pointer (RFC 6901)."""
    return "".join("/" + str(part).replace("~", "~0").replace("/", "~1") for part in path)


def nearest(word: str, known: Sequence[str]) -> str | None:
    """The known word that was most likely meant."""
    if len(word) > 100 or len(known) > 200:
        return None  # guessing takes time that grows with both
    lowered = {name.lower(): name for name in known}
    found = difflib.get_close_matches(word.lower(), lowered, n=1, cutoff=0.6)
    return lowered[found[0]] if found else None


def _first_line(error: Exception) -> str:
    line = str(error).strip().splitlines()[0]
    return line if len(line) <= _SHOWN else f"{line[: _SHOWN // 2]} … {line[-_SHOWN // 2 :]}"


def _kind(value: Any) -> str:
    names = {
        dict: "object",
        list: "array",
        str: "string",
        bool: "boolean",
        type(None): "null",
        float: "number",
    }
    return names.get(type(value), "integer" if isinstance(value, int) else type(value).__name__)


def _explain(error: Any, schema: Any) -> Violation:
    path = tuple(error.instance_path)
    rule = error.schema_path[-1] if error.schema_path else "schema"
    kind = error.kind
    return Violation(
        pointer=to_pointer(path),
        rule=str(kind.name if hasattr(kind, "name") else rule),
        message=_first_line(error),
        hint=_hint(kind, error, schema, path),
    )


def _hint(kind: Any, error: Any, schema: Any, path: Path) -> str:
    """What to do about it, for the rules that callers break most."""
    name = getattr(kind, "name", "")
    where = f"`{path[-1]}`" if path else "the input"
    if name == "required":
        return f"add `{kind.property}`" + (f" to {where}" if path else "")
    if name in ("additionalProperties", "unevaluatedProperties"):
        return _hint_unexpected(kind.unexpected, error, schema)
    if name == "type":
        return f"give {where} as {_listing(_wanted_types(schema, error))}, not {_kind(error.instance)}"
    if name == "enum":
        return f"use one of: {', '.join(map(_show, kind.options))}"
    if name == "const":
        return f"use exactly {_show(getattr(kind, 'expected_value', kind.value))}"
    if name == "pattern" and hasattr(kind, "pattern"):
        return f"give {where} in the form {kind.pattern}"
    if name in ("anyOf", "oneOf"):
        return (
            f"make {where} fit exactly one of the forms it may have"
            if name == "oneOf"
            else (f"make {where} fit one of the forms it may have")
        )
    if name == "falseSchema":
        return f"remove {where}; nothing is allowed here"
    limit = getattr(kind, "limit", None)
    if limit is not None:
        return f"keep {where} within {name} {limit}"
    return f"change {where} so that it satisfies `{name}`"


def _hint_unexpected(unexpected: Sequence[str], error: Any, schema: Any) -> str:
    known = list(_descend(schema, error.schema_path[:-1]).get("properties", {}))
    parts = []
    for word in unexpected[:_WORDS]:
        near = nearest(word, known)
        parts.append(f"remove `{word}`" + (f" or write `{near}`" if near else ""))
    if len(unexpected) > _WORDS:
        parts.append(f"and {len(unexpected) - _WORDS} more")
    if known:
        parts.append(f"known: {', '.join(known[:20])}")
    return "; ".join(parts)


def _wanted_types(schema: Any, error: Any) -> list[str]:
    wanted = _descend(schema, error.schema_path[:-1]).get("type", [])
    return [wanted] if isinstance(wanted, str) else list(wanted)


def _descend(schema: Any, path: Sequence[str | int]) -> Mapping[str, Any]:
    """The subschema at a path; an empty mapping where a `$ref` leads elsewhere."""
    for part in path:
        try:
            schema = schema[part]
        except (KeyError, IndexError, TypeError):
            return {}
    return schema if isinstance(schema, Mapping) else {}


def _listing(words: Sequence[str]) -> str:
    return " or ".join(words) or "the declared type"


def _show(value: Any) -> str:
    return json.dumps(value, ensure_ascii=False)
