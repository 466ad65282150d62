"""A call and its JSON form, which other processes rely on."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.definitions.call import Call, Caller, Trace
from glee.errors import InvalidInput

FULL = Call(
    tool="repo_scan",
    arguments={"path": ".", "depth": 2, "deep": {"list": [1, None, "ü"]}},
    caller=Caller(agent="claude", provider="anthropic", skill="review", session="s1", door="mcp"),
    context={"url": "https://example.com/", "selection": "text"},
    vocabulary="openai",
    idempotency_key="once",
    deadline=1_700_000_000.5,
    autonomy="ask",
    trace=Trace(traceparent="00-a-b-01", tracestate="x=y"),
)


def test_the_field_names_are_final() -> None:
    assert msgspec.json.decode(FULL.to_json()) == {
        "tool": "repo_scan",
        "arguments": {"path": ".", "depth": 2, "deep": {"list": [1, None, "ü"]}},
        "caller": {
            "agent": "claude",
            "provider": "anthropic",
            "skill": "review",
            "session": "s1",
            "door": "mcp",
        },
        "context": {"url": "https://example.com/", "selection": "text"},
        "vocabulary": "openai",
        "idempotency_key": "once",
        "deadline": 1_700_000_000.5,
        "autonomy": "ask",
        "trace": {"traceparent": "00-a-b-01", "tracestate": "x=y"},
    }


def test_a_call_comes_back_from_its_json_whole() -> None:
    assert Call.from_json(FULL.to_json()) == FULL


def test_what_has_its_usual_value_is_not_written() -> None:
    assert Call(tool="x").to_json() == b'{"tool":"x"}'


def test_half_a_character_is_written_as_an_escape() -> None:
    call = Call(tool="x", arguments={"\ud800": ["\udfff"]}, caller=Caller(agent="\ud800"))

    assert json.loads(call.to_json()) == {
        "tool": "x",
        "arguments": {"\ud800": ["\udfff"]},
        "caller": {"agent": "\ud800"},
    }


def test_a_name_alone_is_a_call() -> None:
    call = Call.from_json('{"tool": "x"}')

    assert call == Call(tool="x")
    assert (call.arguments, call.caller.door, call.trace) == ({}, "python", Trace())


def test_calls_never_share_their_arguments() -> None:
    first, second = Call(tool="x"), Call(tool="x")
    first.arguments["a"] = 1

    assert second.arguments == {}


@pytest.mark.parametrize(
    "text",
    [
        '{"tool": "x", "argumens": {}}',
        '{"tool": "x", "caller": {"agnet": "claude"}}',
        '{"tool": "x", "trace": {"parent": "1"}}',
    ],
)
def test_an_unknown_field_is_refused_at_every_level(text: str) -> None:
    with pytest.raises(InvalidInput, match="unknown field"):
        Call.from_json(text)


@pytest.mark.parametrize(
    "data",
    [
        "",
        "null",
        "[]",
        "{}",
        '"x"',
        '{"tool": 5}',
        '{"tool": "x", "arguments": []}',
        '{"tool": "x", "arguments": null}',
        '{"tool": "x", "deadline": "soon"}',
        '{"tool": "x"',
        '{"tool": "x"} {}',
        '{"tool": "\ud800"}',
        b'{"tool": "\xff"}',
        b'{"tool": "x", "arguments": {"a": ' + b"[" * 100_000,
        b'{"tool": "x", "arguments": {"a": ' + b"[" * 100_000 + b"]" * 100_000 + b"}}",
    ],
    ids=lambda data: repr(data[:40]),
)
def test_what_is_not_a_call_is_invalid_input_that_says_what_a_call_needs(data: Any) -> None:
    with pytest.raises(InvalidInput, match=r'not a call: .*; it needs at least {"tool": "NAME"}'):
        Call.from_json(data)


json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(), inner, max_size=3),
    max_leaves=8,
)


@given(st.text(), st.dictionaries(st.text(), json_values), st.none() | st.text(), st.none() | st.floats(0, 1e12))
def test_any_call_comes_back_from_its_json(
    tool: str, arguments: dict[str, Any], agent: str | None, deadline: float | None
) -> None:
    call = Call(tool=tool, arguments=arguments, caller=Caller(agent=agent), deadline=deadline)

    assert Call.from_json(call.to_json()) == call


@given(st.binary() | st.text())
def test_any_bytes_are_a_call_or_invalid_input(data: Any) -> None:
    try:
        Call.from_json(data)
    except InvalidInput as error:
        assert error.code == "invalid_input"  # noqa: PT017
