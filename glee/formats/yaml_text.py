"""YAML as Glee reads it: the JSON part of YAML 1.2, with the place of every value, and no surprises.

One pass over libyaml's events and an explicit stack: nesting costs no recursion, an alias cannot
explode, and what other readers would take differently (`no`, `012`, a repeated key) is a fault with a
line number instead of a guess.
"""

from __future__ import annotations

import re
from typing import Any, Final

import yaml
from msgspec import Struct

MAX_BYTES: Final = 1_048_576
MAX_VALUES: Final = 50_000
MAX_DEPTH: Final = 100

Path = tuple[str | int, ...]
Place = tuple[int, int]

_AMBIGUOUS = {word for w in ("yes", "no", "on", "off") for word in (w, w.title(), w.upper())}
_NULLS = {"", "~", "null", "Null", "NULL"}
_BOOLEANS = {"true": True, "True": True, "TRUE": True, "false": False, "False": False, "FALSE": False}
_INTEGER = re.compile(r"[-+]?(0|[1-9][0-9]*)")
_OLD_OCTAL = re.compile(r"[-+]?0[0-9_]+")
_BASED = re.compile(r"0x[0-9a-fA-F]+|0o[0-7]+")
_FLOAT = re.compile(r"[-+]?(\.[0-9]+|[0-9]+(\.[0-9]*)?)([eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(inf|Inf|INF)|\.(nan|NaN|NAN)")
_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML was built with it."""
_STRING_TAG = "tag:yaml.org,2002:str"


class Fault(Struct, frozen=True):
    """What is wrong with the text itself."""

    path: Path
    place: Place
    rule: str
    message: str
    hint: str


class Document(Struct, frozen=True):
    """What was read, where each value stands (1-based line and column), and what was wrong."""

    value: Any
    places: dict[Path, Place]
    """Of values."""
    keys: dict[Path, Place]
    """Of mapping keys."""
    faults: tuple[Fault, ...]

    def find_place(self, path: Path, *, key: bool = False) -> Place:
        """The nearest place known for a path: its key or value, or those of what holds it."""
        for end in range(len(path), -1, -1):
            part = path[:end]
            if key and part in self.keys:
                return self.keys[part]
            if part in self.places:
                return self.places[part]
        return (1, 1)


def parse_bytes(data: bytes) -> Document:
    """Reads a file's bytes. Never raises: what is wrong is in `faults`."""
    if len(data) > MAX_BYTES:
        return _broken(
            (1, 1),
            "size",
            f"the file has more than {MAX_BYTES:,} bytes",
            "keep manifests small; put data in files beside them",
        )
    try:
        text = data.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        column = error.start - data.rfind(b"\n", 0, error.start)
        return _broken(
            (line, column), "encoding", f"byte 0x{data[error.start]:02x} is not UTF-8", "save the file as UTF-8"
        )
    return parse_text(text)


def parse_text(text: str) -> Document:
    """Reads a text. Never raises: what is wrong is in `faults`."""
    reader = _Reader()
    try:
        reader.read(text)
    except yaml.MarkedYAMLError as error:
        reader.faults.append(_translate(error, text))
    except yaml.reader.ReaderError as error:
        line = text.count("\n", 0, error.position) + 1
        reader.faults.append(
            Fault(
                (),
                (line, 1),
                "character",
                f"character {error.character!r} is not allowed in YAML",
                "remove it, or write it as an escape in double quotes",
            )
        )
    except _Stop:
        pass
    return Document(reader.root, reader.places, reader.keys, tuple(reader.faults))


def _broken(place: Place, rule: str, message: str, hint: str) -> Document:
    return Document(None, {}, {}, (Fault((), place, rule, message, hint),))


def _translate(error: yaml.MarkedYAMLError, text: str) -> Fault:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines()
    at = lines[line - 1] if line <= len(lines) else ""
    if "\t" in at[: len(at) - len(at.lstrip())] or (at[column - 1 : column] == "\t"):
        return Fault((), (line, column), "tab", "a tab cannot indent YAML", "use spaces")
    message = (error.problem or "not YAML").replace("did not find expected", "expected")
    return Fault((), (line, column), "syntax", message, "check indentation, quotes and brackets near this line")


class _Stop(Exception):
    """Reading cannot go on; the fault is already noted."""


class _Frame:
    __slots__ = ("anchor", "key", "path", "value")

    def __init__(self, value: dict[str, Any] | list[Any], path: Path, anchor: str | None) -> None:
        self.value = value
        self.path = path
        self.anchor = anchor
        self.key: str | None = None


class _Reader:
    def __init__(self) -> None:
        self.root: Any = None
        self.places: dict[Path, Place] = {}
        self.keys: dict[Path, Place] = {}
        self.faults: list[Fault] = []
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int]] = {}
        self.values = 0
        self.documents = 0

    def read(self, text: str) -> None:
        parser = _LOADER(text)
        while True:
            event = parser.get_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                self.scalar(event)
            elif kind is yaml.MappingStartEvent:
                self.open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self.open([], event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close()
            elif kind is yaml.AliasEvent:
                self.alias(event)
            elif kind is yaml.DocumentStartEvent:
                self.document(event)
            elif kind is yaml.StreamEndEvent:
                break
        if self.documents == 0:
            self.fault((), (1, 1), "empty", "the file is empty", "write a definition, or remove the file")

    def document(self, event: Any) -> None:
        self.documents += 1
        if self.documents > 1:
            self.stop(event, "documents", "a second document begins here", "keep one document to a file")

    def scalar(self, event: Any) -> None:
        place = (event.start_mark.line + 1, event.start_mark.column + 1)
        if self.stack and self.expects_key():
            self.take_key(event, place)
            return
        path = self.next_path()
        self.places[path] = place
        value = self.resolve(event, path, place)
        if event.anchor:
            self.anchors[event.anchor] = (value, 1)
        self.put(value)

    def expects_key(self) -> bool:
        top = self.stack[-1]
        return type(top.value) is dict and top.key is None

    def take_key(self, event: Any, place: Place) -> None:
        top = self.stack[-1]
        key = event.value
        path = (*top.path, key)
        if key == "<<" and event.implicit[0]:
            self.stop(event, "merge", "merge keys (<<) are not part of YAML 1.2", "repeat the fields instead")
        if event.implicit[0] and key in _AMBIGUOUS:
            self.fault(
                path, place, "boolean", f"the key {key} is true or false to some readers", f'write "{key}" in quotes'
            )
        if key in top.value:
            first = self.keys[path][0]
            self.fault(
                path, place, "duplicate", f"the key {key!r} already stands on line {first}", "keep one of the two"
            )
        else:
            self.keys[path] = place
        top.key = key

    def resolve(self, event: Any, path: Path, place: Place) -> Any:
        text: str = event.value
        if event.tag and event.tag not in ("!", _STRING_TAG):
            self.fault(path, place, "tag", f"the tag {event.tag} is not allowed", "remove the tag")
            return text
        if not event.implicit[0] or event.tag:
            return text
        if text in _NULLS:
            return None
        if text in _BOOLEANS:
            return _BOOLEANS[text]
        first = text[0]
        if first.isdigit() or first in "+-.":
            return self.resolve_number(text, path, place)
        if text in _AMBIGUOUS:
            self.fault(
                path,
                place,
                "boolean",
                f"{text} is a boolean to some readers and text to others",
                f'write {"true" if text.lower() in ("yes", "on") else "false"}, or "{text}" in quotes',
            )
        return text

    def resolve_number(self, text: str, path: Path, place: Place) -> Any:
        if _INTEGER.fullmatch(text):
            return int(text) if len(text) < 400 else text
        if _OLD_OCTAL.fullmatch(text):
            self.fault(
                path,
                place,
                "octal",
                f"{text} is octal to some readers and decimal to others",
                f'write "{text}" in quotes, or the number without the leading zero',
            )
            return text
        if _BASED.fullmatch(text):
            return int(text, 0)
        if _FLOAT.fullmatch(text):
            number = float(text)
            if number not in (float("inf"), float("-inf")):
                return number
        if _NOT_FINITE.fullmatch(text) or _FLOAT.fullmatch(text):
            self.fault(path, place, "number", f"{text} cannot be written in JSON", "use a finite number, or quotes")
        return text

    def open(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        if self.stack and self.expects_key():
            self.stop(event, "key", "a list or mapping cannot be a key", "use a plain word as the key")
        if len(self.stack) >= MAX_DEPTH:
            self.stop(event, "depth", f"more than {MAX_DEPTH} levels deep", "flatten the definition")
        path = self.next_path()
        self.places[path] = (event.start_mark.line + 1, event.start_mark.column + 1)
        if event.tag and event.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.fault(path, self.places[path], "tag", f"the tag {event.tag} is not allowed", "remove the tag")
        self.stack.append(_Frame(value, path, event.anchor))

    def close(self) -> None:
        frame = self.stack.pop()
        if frame.anchor:
            self.anchors[frame.anchor] = (frame.value, _count(frame.value))
        self.put(frame.value)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            self.stop(
                event,
                "alias",
                f"*{event.anchor} refers to itself or to nothing before it",
                f"define &{event.anchor} above",
            )
        value, size = self.anchors[event.anchor]
        self.values += size
        self.check_size(event)
        if self.stack and self.expects_key():
            self.stop(event, "key", "an alias cannot be a key", "write the key out")
        self.places[self.next_path()] = (event.start_mark.line + 1, event.start_mark.column + 1)
        self.put(value)

    def next_path(self) -> Path:
        if not self.stack:
            return ()
        top = self.stack[-1]
        return (*top.path, top.key if type(top.value) is dict else len(top.value))  # type: ignore[arg-type]

    def put(self, value: Any) -> None:
        self.values += 1
        self.check_size(None)
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        if isinstance(top.value, dict):
            top.value.setdefault(top.key, value)  # type: ignore[arg-type]
            top.key = None
        else:
            top.value.append(value)

    def check_size(self, event: Any) -> None:
        if self.values > MAX_VALUES:
            self.stop(
                event,
                "size",
                f"more than {MAX_VALUES:,} values once its anchors are expanded",
                "write less, or fewer aliases",
            )

    def fault(self, path: Path, place: Place, rule: str, message: str, hint: str) -> None:
        self.faults.append(Fault(path, place, rule, message, hint))

    def stop(self, event: Any, rule: str, message: str, hint: str) -> None:
        place = (event.start_mark.line + 1, event.start_mark.column + 1) if event else (1, 1)
        self.fault((), place, rule, message, hint)
        raise _Stop


def _count(value: Any) -> int:
    total, todo = 0, [value]
    while todo and total <= MAX_VALUES:
        item = todo.pop()
        total += 1
        if isinstance(item, dict):
            todo.extend(item.values())
        elif isinstance(item, list):
            todo.extend(item)
    return total
