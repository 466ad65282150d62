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

from glee.formats.yaml_scalars import AMBIGUOUS, resolve_plain

MAX_BYTES: Final = 1_048_576
MAX_VALUES: Final = 50_000
MAX_DEPTH: Final = 100

Path = tuple[str | int, ...]
Place = tuple[int, int]

_LOADER: Any = getattr(yaml, "CSafeLoader", yaml.SafeLoader)
"""libyaml's, where PyYAML was built with it."""
_UNUSUAL = AMBIGUOUS | {"<<"}
_STRING_TAG = "tag:yaml.org,2002:str"
_DISPUTED = re.compile("[\x85\u2028\u2029]")
"""Line breaks to some readers, characters to others."""
_PAIR = re.compile(r"\\\\|\\u([dD][89abAB][0-9a-fA-F]{2})\\u([dD][c-fC-F][0-9a-fA-F]{2})")


class Fault(Struct, frozen=True):
    """What is wrong with the text itself."""

    path: Path
    place: Place
    rule: str
    message: str
    hint: str


class Document(Struct, frozen=True):
    """What was read, where each value and key stands, and what was wrong."""

    value: Any
    marks: dict[Path, Any]
    """The parser's marks of values, by path."""
    key_marks: dict[Path, Any]
    """And of mapping keys."""
    faults: tuple[Fault, ...]

    def find_place(self, path: Path, *, key: bool = False) -> Place:
        """The nearest place known for a path (1-based): its key or value, or those of what holds it."""
        for end in range(len(path), -1, -1):
            part = path[:end]
            mark = (self.key_marks.get(part) if key else None) or self.marks.get(part)
            if mark is not None:
                return (mark.line + 1, mark.column + 1)
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
    disputed = _DISPUTED.search(text)
    if disputed:
        fault = _bad_character(text[: disputed.start()], disputed[0])
        return Document(None, {}, {}, (fault,))
    try:
        reader.read(_join_pairs(text) if text[:1] == "{" else text)
    except yaml.MarkedYAMLError as error:
        reader.faults.append(_translate(error, text))
    except yaml.reader.ReaderError as error:
        before = text.encode()[: error.position].decode(errors="ignore")
        reader.faults.append(_bad_character(before, error.character))
    except UnicodeEncodeError as error:
        reader.faults.append(_bad_character(text[: error.start], ord(text[error.start])))
    except _Stop:
        pass
    return Document(reader.root, reader.marks, reader.key_marks, tuple(reader.faults))


def _join_pairs(text: str) -> str:
    """JSON writes characters beyond the basic plane as two escapes, which libyaml does not take."""

    def join(match: re.Match[str]) -> str:
        high, low = match[1], match[2]
        return chr(0x10000 + ((int(high, 16) & 0x3FF) << 10) + (int(low, 16) & 0x3FF)) if high else match[0]

    return _PAIR.sub(join, text)


def _broken(place: Place, rule: str, message: str, hint: str) -> Document:
    return Document(None, {}, {}, (Fault((), place, rule, message, hint),))


def _bad_character(before: str, character: int | str) -> Fault:
    code = character if isinstance(character, int) else ord(character)
    place = (before.count("\n") + 1, len(before) - before.rfind("\n"))
    message = f"the character U+{code:04X} is not allowed in YAML"
    return Fault((), place, "character", message, "remove it, or write it as an escape in double quotes")


def _translate(error: yaml.MarkedYAMLError, text: str) -> Fault:
    mark = error.problem_mark or error.context_mark
    line, column = (mark.line + 1, mark.column + 1) if mark else (1, 1)
    lines = text.splitlines()
    at = lines[line - 1] if line <= len(lines) else ""
    if "\t" in at[: len(at) - len(at.lstrip())] or (at[column - 1 : column] == "\t"):
        return Fault((), (line, column), "tab", "a tab cannot indent YAML", "use spaces")
    message = (error.problem or "not YAML").replace("did not find expected", "expected")
    hint = "check indentation, quotes and brackets near this line"
    if "mapping values are not allowed" in message:
        message, hint = "a colon and a space begin a new field here", "put the whole text in quotes"
    elif "${" in at and re.search(r"[\[{,]\s*\$\{", at):
        hint = 'put the placeholder in quotes: ["${name}"]'
    return Fault((), (line, column), "syntax", message, hint)


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
        self.marks: dict[Path, Any] = {}
        self.key_marks: dict[Path, Any] = {}
        self.faults: list[Fault] = []
        self.stack: list[_Frame] = []
        self.anchors: dict[str, tuple[Any, int, int]] = {}
        """Value, how many values it holds, and how deep it goes."""
        self.values = 0
        self.documents = 0

    def read(self, text: str) -> None:
        parser = _LOADER(text)
        next_event, stack = parser.get_event, self.stack
        while True:
            event = next_event()
            kind = type(event)
            if kind is yaml.ScalarEvent:
                if stack and stack[-1].key is None and type(stack[-1].value) is dict:
                    self.take_key(event)
                else:
                    self.scalar(event)
            elif kind is yaml.MappingEndEvent or kind is yaml.SequenceEndEvent:
                self.close()
            elif kind is yaml.MappingStartEvent:
                self.open({}, event)
            elif kind is yaml.SequenceStartEvent:
                self.open([], event)
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
        path = self.next_path()
        self.marks[path] = event.start_mark
        value = self.resolve(event, path)
        if event.anchor:
            self.anchors[event.anchor] = (value, 1, 0)
        self.put(value)

    def expects_key(self) -> bool:
        top = self.stack[-1]
        return type(top.value) is dict and top.key is None

    def take_key(self, event: Any) -> None:
        top = self.stack[-1]
        key = event.value
        path = (*top.path, key)
        if event.tag and event.tag not in ("!", _STRING_TAG):
            self.fault(path, _place(event), "tag", f"the tag {event.tag} is not allowed", "remove the tag")
        if key in _UNUSUAL and event.implicit[0]:
            self.doubt_key(event, path)
        if key in top.value:
            first = self.key_marks[path].line + 1
            message = f"the key {key!r} already stands on line {first}"
            self.fault(path, _place(event), "duplicate", message, "keep one of the two")
        else:
            self.key_marks[path] = event.start_mark
        top.key = key

    def doubt_key(self, event: Any, path: Path) -> None:
        if event.value == "<<":
            self.stop(event, "merge", "merge keys (<<) are not part of YAML 1.2", "repeat the fields instead")
        message = f"the key {event.value} is true or false to some readers"
        self.fault(path, _place(event), "boolean", message, f'write "{event.value}" in quotes')

    def resolve(self, event: Any, path: Path) -> Any:
        text: str = event.value
        if event.tag and event.tag not in ("!", _STRING_TAG):
            self.fault(path, _place(event), "tag", f"the tag {event.tag} is not allowed", "remove the tag")
            return text
        if not event.implicit[0] or event.tag:
            return text
        value, doubt = resolve_plain(text)
        if doubt is not None:
            self.fault(path, _place(event), *doubt)
        return value

    def open(self, value: dict[str, Any] | list[Any], event: Any) -> None:
        if self.stack and self.expects_key():
            self.stop(event, "key", "a list or mapping cannot be a key", "use a plain word as the key")
        self.check_depth(len(self.stack) + 1, event)
        path = self.next_path()
        self.marks[path] = event.start_mark
        if event.tag and event.tag not in ("!", "tag:yaml.org,2002:map", "tag:yaml.org,2002:seq"):
            self.fault(path, _place(event), "tag", f"the tag {event.tag} is not allowed", "remove the tag")
        self.stack.append(_Frame(value, path, event.anchor))

    def close(self) -> None:
        frame = self.stack.pop()
        if frame.anchor:
            self.anchors[frame.anchor] = (frame.value, *_measure(frame.value))
        self.put(frame.value)

    def alias(self, event: Any) -> None:
        if event.anchor not in self.anchors:
            self.stop(
                event,
                "alias",
                f"*{event.anchor} refers to itself or to nothing before it",
                f"define &{event.anchor} above",
            )
        value, size, depth = self.anchors[event.anchor]
        self.values += size
        self.check_size(event)
        self.check_depth(len(self.stack) + depth, event)
        if self.stack and self.expects_key():
            self.stop(event, "key", "an alias cannot be a key", "write the key out")
        self.marks[self.next_path()] = event.start_mark
        self.put(value)

    def next_path(self) -> Path:
        if not self.stack:
            return ()
        top = self.stack[-1]
        return (*top.path, top.key if type(top.value) is dict else len(top.value))  # type: ignore[arg-type]

    def put(self, value: Any) -> None:
        self.values += 1
        if self.values > MAX_VALUES:
            self.check_size(None)
        if not self.stack:
            self.root = value
            return
        top = self.stack[-1]
        holder = top.value
        if type(holder) is dict:
            holder.setdefault(top.key, value)  # type: ignore[arg-type]
            top.key = None
        else:
            holder.append(value)  # type: ignore[union-attr]

    def check_size(self, event: Any) -> None:
        if self.values > MAX_VALUES:
            self.stop(
                event,
                "size",
                f"more than {MAX_VALUES:,} values once its anchors are expanded",
                "write less, or fewer aliases",
            )

    def check_depth(self, depth: int, event: Any) -> None:
        if depth > MAX_DEPTH:
            self.stop(event, "depth", f"more than {MAX_DEPTH} levels deep", "flatten the definition")

    def fault(self, path: Path, place: Place, rule: str, message: str, hint: str) -> None:
        self.faults.append(Fault(path, place, rule, message, hint))

    def stop(self, event: Any, rule: str, message: str, hint: str) -> None:
        self.fault((), _place(event) if event else (1, 1), rule, message, hint)
        raise _Stop


def _place(event: Any) -> Place:
    return (event.start_mark.line + 1, event.start_mark.column + 1)


def _measure(value: Any) -> tuple[int, int]:
    """How many values it holds, itself included, and how deep its lists and mappings go."""
    total, deepest, todo = 0, 0, [(value, 0)]
    while todo and total <= MAX_VALUES:
        item, above = todo.pop()
        total += 1
        if isinstance(item, dict | list):
            deepest = max(deepest, above + 1)
            todo.extend((child, above + 1) for child in (item.values() if isinstance(item, dict) else item))
    return total, deepest
