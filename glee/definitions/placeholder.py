"""`${name}` in a manifest: found when it is read, filled when it is run.

A value that is exactly one placeholder keeps the input's JSON type; inside a longer string the input
becomes text; `$${` is a literal `${`. An input that was not given makes the whole value ABSENT, and
the key or argument that holds it is dropped.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping
from typing import Any, Final

from msgspec import Struct

from glee.definitions.json_text import encode_json

_TOKEN = re.compile(r"\$\$\{|\$\{([^${}]*)\}")


class _Absent:
    def __repr__(self) -> str:
        return "ABSENT"

    def __bool__(self) -> bool:
        return False


ABSENT: Final = _Absent()
Encoder = Callable[[str], str]


class Name(Struct, frozen=True):
    """One placeholder."""

    name: str


class Template(Struct, frozen=True):
    """A string cut into literals and names."""

    parts: tuple[str | Name, ...]

    @property
    def names(self) -> tuple[str, ...]:
        return tuple(part.name for part in self.parts if isinstance(part, Name))

    @property
    def only_name(self) -> str | None:
        """The name, if the whole string is one placeholder."""
        if len(self.parts) == 1 and isinstance(self.parts[0], Name):
            return self.parts[0].name
        return None

    def fill(self, values: Mapping[str, Any], encode: Encoder | None = None) -> str | _Absent:
        """The text, each value made text and then encoded; ABSENT if one of them was not given."""
        pieces: list[str] = []
        for part in self.parts:
            if isinstance(part, str):
                pieces.append(part)
                continue
            value = values.get(part.name, ABSENT)
            if value is ABSENT or value is None:
                return ABSENT
            text = to_text(value)
            pieces.append(encode(text) if encode else text)
        return "".join(pieces)


def parse_template(text: str) -> Template:
    """Cuts a string at its placeholders."""
    parts: list[str | Name] = []
    literal = ""
    end = 0
    for match in _TOKEN.finditer(text):
        literal += text[end : match.start()]
        end = match.end()
        if match[1] is None:
            literal += "${"
            continue
        if literal:
            parts.append(literal)
            literal = ""
        parts.append(Name(match[1]))
    literal += text[end:]
    if literal or not parts:
        parts.append(literal)
    return Template(tuple(parts))


def has_unclosed(text: str) -> bool:
    """True for a `${` that no `}` closes."""
    return "${" in _TOKEN.sub(" ", text)


def to_text(value: Any) -> str:
    """A JSON value as people write it in a query or an argument."""
    if isinstance(value, str):
        return value
    if value is True:
        return "true"
    if value is False:
        return "false"
    if isinstance(value, float) and value.is_integer() and abs(value) < 1e15:
        return str(int(value))
    return encode_json(value).decode()


def fill_value(value: Any, values: Mapping[str, Any]) -> Any:
    """Fills a JSON value through and through, dropping keys and items whose input was not given."""
    if isinstance(value, str):
        return _fill_string(value, values)
    if isinstance(value, Mapping):
        filled = ((key, fill_value(item, values)) for key, item in value.items())
        return {key: item for key, item in filled if item is not ABSENT}
    if isinstance(value, list | tuple):
        return [item for item in (fill_value(item, values) for item in value) if item is not ABSENT]
    return value


def _fill_string(text: str, values: Mapping[str, Any]) -> Any:
    if "${" not in text:
        return text
    template = parse_template(text)
    name = template.only_name
    if name is not None:
        return values.get(name, ABSENT)
    return template.fill(values)


def find_templates(value: Any, path: tuple[str | int, ...] = ()) -> Iterator[tuple[tuple[str | int, ...], str]]:
    """Every string that holds a `${`, with the path to it."""
    if isinstance(value, str):
        if "${" in value:
            yield path, value
    elif isinstance(value, Mapping):
        for key, item in value.items():
            yield from find_templates(item, (*path, key))
    elif isinstance(value, list | tuple):
        for index, item in enumerate(value):
            yield from find_templates(item, (*path, index))
