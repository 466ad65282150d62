"""YAML as Glee reads it: every trap is a fault with its place, and nothing raises, hangs or explodes."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
import yaml
from hypothesis import example, given
from hypothesis import strategies as st

from glee.formats.yaml_text import MAX_BYTES, Document, Fault, parse_bytes, parse_text


def faults(text: str | bytes) -> list[tuple[str, tuple[int, int]]]:
    """Rule and place of each fault."""
    document = parse_bytes(text) if isinstance(text, bytes) else parse_text(text)
    return [(fault.rule, fault.place) for fault in document.faults]


@pytest.mark.parametrize(
    ("text", "value"),
    [
        ("a: 1", {"a": 1}),
        ("a: [1, -2, +3, 0, 0x1F, 0o17]", {"a": [1, -2, 3, 0, 31, 15]}),
        ("[1.5, .5, 1., 1e3, -1.5E-3]", [1.5, 0.5, 1.0, 1000.0, -0.0015]),
        ("[true, True, FALSE, null, ~, '']", [True, True, False, None, None, ""]),
        ("a:", {"a": None}),
        ("['yes', \"no\", 'on', \"0123\", '1', '~']", ["yes", "no", "on", "0123", "1", "~"]),
        ("[y, n, Y, N, nope, None]", ["y", "n", "Y", "N", "nope", "None"]),
        (
            "[1_000, 12:30, 2024-01-02, 1.2.3, -, 0b11, +.5.]",
            ["1_000", "12:30", "2024-01-02", "1.2.3", "-", "0b11", "+.5."],
        ),
        ("a: |\n  one\n  two\n", {"a": "one\ntwo\n"}),
        ("a: >-\n  one\n  two\n", {"a": "one two"}),
        ("1: a\nnull: b\ntrue: c\n", {"1": "a", "null": "b", "true": "c"}),
        ("a:\tb", {"a": "b"}),
        ("a: b # note", {"a": "b"}),
        ("%YAML 1.2\n---\na: 1\n...\n", {"a": 1}),
        ("!!str 5", "5"),
        ("! 5", "5"),
        ("a: &x [1, {b: 2}]\nc: *x\n", {"a": [1, {"b": 2}], "c": [1, {"b": 2}]}),
        ("a: '2020'\nb: \"\\u00fc\\n\"", {"a": "2020", "b": "ü\n"}),
        (
            "description: 1. First do this, " + "and that, " * 60,
            {"description": ("1. First do this, " + "and that, " * 60).strip()},
        ),
    ],
    ids=lambda value: str(value)[:30],
)
def test_the_json_part_of_yaml_is_read(text: str, value: Any) -> None:
    document = parse_text(text)

    assert (document.value, document.faults) == (value, ())


@pytest.mark.parametrize(
    ("text", "fault"),
    [
        (
            "a: 1\nb: 2\na: 3\n",
            Fault(("a",), (3, 1), "duplicate", "the key 'a' already stands on line 1", "keep one of the two"),
        ),
        (
            "x:\n  '1': a\n  1: b\n",
            Fault(("x", "1"), (3, 3), "duplicate", "the key '1' already stands on line 2", "keep one of the two"),
        ),
        (
            "a: {b: 1, b: 2}",
            Fault(("a", "b"), (1, 11), "duplicate", "the key 'b' already stands on line 1", "keep one of the two"),
        ),
        (
            "a:\n  network: no\n",
            Fault(
                ("a", "network"),
                (2, 12),
                "boolean",
                "no is a boolean to some readers and text to others",
                'write false, or "no" in quotes',
            ),
        ),
        (
            "- Yes",
            Fault(
                (0,),
                (1, 3),
                "boolean",
                "Yes is a boolean to some readers and text to others",
                'write true, or "Yes" in quotes',
            ),
        ),
        (
            "on: 1",
            Fault(("on",), (1, 1), "boolean", "the key on is true or false to some readers", 'write "on" in quotes'),
        ),
        (
            "mode: 0644",
            Fault(
                ("mode",),
                (1, 7),
                "octal",
                "0644 is octal to some readers and decimal to others",
                'write "0644" in quotes, or the number without the leading zero',
            ),
        ),
        (
            "a: .inf",
            Fault(("a",), (1, 4), "number", ".inf cannot be written in JSON", "use a finite number, or quotes"),
        ),
        (
            "a:\n\tb: 1\n",
            Fault((), (2, 1), "tab", "a tab cannot indent YAML", "use spaces"),
        ),
        (
            "a: !python/object:os.system x",
            Fault(("a",), (1, 4), "tag", "the tag !python/object:os.system is not allowed", "remove the tag"),
        ),
        (
            "base: &b {x: 1}\nc:\n  <<: *b\n",
            Fault((), (3, 3), "merge", "merge keys (<<) are not part of YAML 1.2", "repeat the fields instead"),
        ),
        (
            "a: &x [*x]",
            Fault((), (1, 8), "alias", "*x refers to itself or to nothing before it", "define &x above"),
        ),
        ("a: *x", Fault((), (1, 4), "alias", "*x refers to itself or to nothing before it", "define &x above")),
        (
            "a: 1\n---\nb: 2\n",
            Fault((), (2, 1), "documents", "a second document begins here", "keep one document to a file"),
        ),
        ("", Fault((), (1, 1), "empty", "the file is empty", "write a definition, or remove the file")),
        ("{[a]: 1}", Fault((), (1, 2), "key", "a list or mapping cannot be a key", "use a plain word as the key")),
        ("a: &x b\n*x : 1\n", Fault((), (2, 1), "key", "an alias cannot be a key", "write the key out")),
        (
            "a: [1\nb: 2",
            Fault((), (2, 2), "syntax", "expected ',' or ']'", "check indentation, quotes and brackets near this line"),
        ),
        (
            "ü: 1\nü: é\0",
            Fault(
                (),
                (2, 5),
                "character",
                "the character U+0000 is not allowed in YAML",
                "remove it, or write it as an escape in double quotes",
            ),
        ),
        (
            "a: \ud800",
            Fault(
                (),
                (1, 4),
                "character",
                "the character U+D800 is not allowed in YAML",
                "remove it, or write it as an escape in double quotes",
            ),
        ),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_each_trap_is_one_fault_with_its_place_and_its_mend(text: str, fault: Fault) -> None:
    assert parse_text(text).faults == (fault,)


@pytest.mark.parametrize("word", ["yes", "Yes", "YES", "no", "No", "NO", "on", "On", "ON", "off", "Off", "OFF"])
def test_every_spelling_of_yes_and_no_is_a_fault_as_value_and_as_key(word: str) -> None:
    assert faults(f"{word}: {word}") == [("boolean", (1, 1)), ("boolean", (1, len(word) + 3))]


@pytest.mark.parametrize(
    ("number", "rule"),
    [
        ("012", "octal"),
        ("-07", "octal"),
        ("00", "octal"),
        ("0_1", "octal"),
        ("089", "octal"),
        (".inf", "number"),
        ("-.INF", "number"),
        ("+.Inf", "number"),
        (".nan", "number"),
        (".NaN", "number"),
        ("1e999", "number"),
        ("-1e999", "number"),
        ("9" * 401, "number"),
        ("0x" + "f" * 5000, "number"),
    ],
    ids=lambda value: value[:10],
)
def test_a_number_that_json_or_readers_disagree_on_is_a_fault(number: str, rule: str) -> None:
    assert faults(f"a: {number}") == [(rule, (1, 4))]


@pytest.mark.parametrize("tag", ["!!int '5'", "!!python/name:os.system x", "!x [a]", "!!set {a: }", "!!binary aGk="])
def test_no_tag_makes_anything_but_text_lists_and_mappings(tag: str) -> None:
    assert faults(f"a: {tag}") == [("tag", (1, 4))]


@pytest.mark.parametrize("text", ["", " ", "\n\n", "# only a comment\n", "\ufeff"])
def test_a_file_with_nothing_in_it_is_empty(text: str) -> None:
    assert faults(text) == [("empty", (1, 1))]


def test_faults_come_all_at_once_and_reading_goes_on() -> None:
    document = parse_text("a: no\nb: 012\na: 1\nc: !x y\n")

    assert [(fault.path, fault.rule) for fault in document.faults] == [
        (("a",), "boolean"),
        (("b",), "octal"),
        (("a",), "duplicate"),
        (("c",), "tag"),
    ]
    assert document.value == {"a": "no", "b": "012", "c": "y"}


@pytest.mark.parametrize(
    ("data", "expected"),
    [
        ("a: ü".encode("latin-1"), [("encoding", (1, 4))]),
        ("a: 1\nb: ü".encode("latin-1"), [("encoding", (2, 4))]),
        ("a: 1".encode("utf-16"), [("encoding", (1, 1))]),
        ("a: 1".encode("utf-16-le"), [("character", (1, 2))]),
        ("a: 1".encode("utf-32"), [("encoding", (1, 1))]),
        (b"a: \xed\xa0\x80", [("encoding", (1, 4))]),
        (b"\x1f\x8b\x08\x00", [("encoding", (1, 2))]),
        (b"a: \x1b[31m", [("character", (1, 4))]),
        (b"a: \x7f", [("character", (1, 4))]),
        (b"a" * (MAX_BYTES + 1), [("size", (1, 1))]),
        (b"\xef\xbb\xbfa: 1", []),
        ("a: ü".encode(), []),
        (b"a: 1\r\nb: 2\r\n", []),
    ],
    ids=lambda value: repr(value)[:24],
)
def test_bytes_that_are_not_plain_utf8_are_a_fault(data: bytes, expected: list[Any]) -> None:
    assert faults(data) == expected


def test_a_byte_order_mark_is_not_part_of_the_first_key() -> None:
    assert parse_bytes(b"\xef\xbb\xbfa: 1").value == {"a": 1}


@pytest.mark.parametrize(
    ("piece", "rules"),
    [
        ("[", ["depth"]),
        ("{", ["key"]),
        ("- ", ["depth"]),
        ("? ", ["key"]),
        ("{a: ", ["depth"]),
        ("[[],", ["depth"]),
        ("&a ", ["syntax"]),
        ("*a ", ["alias"]),
        ("- a\n", ["size"]),
        ("--- \n", ["documents"]),
        ("# a\n", ["empty"]),
        ("\t", ["tab"]),
        (" ", ["empty"]),
        (",", ["syntax"]),
        ("a", []),
        ("''", []),
    ],
)
def test_a_megabyte_of_anything_is_read_or_refused(piece: str, rules: list[str]) -> None:
    text = piece * (MAX_BYTES // len(piece))

    assert [fault.rule for fault in parse_bytes(text.encode()).faults] == rules


def test_anchors_that_would_explode_are_stopped() -> None:
    lines = ["a0: &a0 [x, x, x, x, x, x, x, x, x, x]"]
    lines += [f"a{n}: &a{n} [{', '.join([f'*a{n - 1}'] * 10)}]" for n in range(1, 10)]

    assert [fault.rule for fault in parse_text("\n".join(lines)).faults] == ["size"]


def test_anchors_cannot_build_a_depth_that_brackets_may_not() -> None:
    lines = ["- &a0 " + "[" * 60 + "]" * 60] + [f"- &a{n} " + "[" * 60 + f"*a{n - 1}" + "]" * 60 for n in range(1, 5)]

    assert faults("\n".join(lines)) == [("depth", (2, 67))]


def test_a_hundred_levels_are_enough_and_one_more_is_too_many() -> None:
    assert faults("[" * 100 + "]" * 100) == []
    assert faults("[" * 101 + "]" * 101) == [("depth", (1, 101))]


def test_every_value_and_key_has_its_place() -> None:
    document = parse_text("a: 1\nb:\n  - x\n  - {c: y}\n")

    assert {path: document.find_place(path) for path in document.marks} == {
        (): (1, 1),
        ("a",): (1, 4),
        ("b",): (3, 3),
        ("b", 0): (3, 5),
        ("b", 1): (4, 5),
        ("b", 1, "c"): (4, 9),
    }
    keys = {path: document.find_place(path, key=True) for path in document.key_marks}
    assert keys == {("a",): (1, 1), ("b",): (2, 1), ("b", 1, "c"): (4, 6)}


@pytest.mark.parametrize(
    ("path", "key", "place"),
    [
        (("b", 1, "c"), False, (4, 9)),
        (("b", 1, "c"), True, (4, 6)),
        (("b", 1, "missing"), True, (4, 5)),
        (("b", 7, "x"), False, (3, 3)),
        (("b",), True, (2, 1)),
        (("nowhere",), False, (1, 1)),
    ],
)
def test_the_nearest_known_place_is_found(path: tuple[Any, ...], key: bool, place: tuple[int, int]) -> None:
    assert parse_text("a: 1\nb:\n  - x\n  - {c: y}\n").find_place(path, key=key) == place


MARKS = [
    "b: ",
    "- ",
    "[",
    "]",
    "{",
    "}",
    ",",
    "? ",
    ": ",
    "\n",
    "  ",
    "\t",
    "'",
    '"',
    "|\n",
    "#",
    "\\",
    "&x ",
    "*x",
    "!t ",
]
WORDS = ["a", "no", "012", "1.5", ".nan", "<<: ", "---\n", "...\n", "%YAML 1.1\n", "\x00", "\x85", "\u2028", "ü", "😀"]
yaml_like = st.lists(st.sampled_from(MARKS) | st.sampled_from(WORDS), max_size=25).map("".join)


@given(st.text() | yaml_like)
@example("\ud800")
@example("a: \U0001f600\0")
def test_no_text_ever_raises(text: str) -> None:
    document = parse_text(text)

    assert isinstance(document, Document)
    assert all(fault.place >= (1, 1) and fault.message and fault.hint for fault in document.faults)


@given(st.binary())
def test_no_bytes_ever_raise(data: bytes) -> None:
    assert isinstance(parse_bytes(data), Document)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(st.text(), inner, max_size=4),
    max_leaves=15,
)


@given(json_values.filter(lambda value: value is not None))
def test_json_is_read_as_json_reads_it(value: Any) -> None:
    text = json.dumps(value, ensure_ascii=False).replace("\x7f", "\\x7f")
    document = parse_text(text)

    if document.faults:  # what JSON admits unescaped and YAML does not
        assert {fault.rule for fault in document.faults} <= {"character", "syntax"}
    else:
        assert document.value == value


_EXPONENT = re.compile(r"[-+]?(\.\d+|\d+(\.\d*)?)[eE][-+]?\d+")
# Text such as 0E0 is left out: the writer here is of YAML 1.1 and does not quote it, where 1.2 and JSON see a number.
printable = st.characters(min_codepoint=32, max_codepoint=126)
plain_text = st.text(printable).filter(lambda text: not _EXPONENT.fullmatch(text))
plain_values = st.recursive(
    st.none() | st.booleans() | st.integers(-(10**9), 10**9) | st.decimals(-999, 999, places=2).map(float) | plain_text,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(plain_text, inner, max_size=4),
    max_leaves=15,
)


@given(plain_values, st.sampled_from([None, 2]))
def test_plain_json_is_read_as_every_other_yaml_reader_does(value: Any, indent: int | None) -> None:
    text = json.dumps(value, indent=indent)
    document = parse_text(text)

    assert (document.value, document.faults) == (yaml.safe_load(text), ())


@given(plain_values)
def test_what_a_yaml_writer_writes_is_read_back_or_refused_with_a_reason(value: Any) -> None:
    text = yaml.safe_dump(value, default_flow_style=False)
    document = parse_text(text)

    if document.faults:
        assert {fault.rule for fault in document.faults} <= {"key", "boolean", "octal"}
    else:
        assert document.value == value


def test_json_with_escaped_pairs_is_read_as_json() -> None:
    value = {"smile": "\U0001f600", "backslash": "\\ud83d\\ude00"}

    document = parse_text(json.dumps(value))

    assert (document.value, document.faults) == (value, ())
