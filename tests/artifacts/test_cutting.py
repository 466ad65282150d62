"""Outputs over the limit: text cut with a notice, JSON made smaller and still JSON."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glee
from glee.artifacts.cutting import cut_text, preview_json
from glee.definitions.json_text import encode_json
from glee.definitions.result import Artifact
from glee.testing import Project

HANDLE = "artifact:" + "0" * 28 + ".json"
NOTICE = re.compile(
    r"\n\[output cut: ([\d,]+) of ([\d,]+) characters hidden; the whole is (artifact:[0-9a-f]+\.txt)\]\Z"
)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | st.text(),
    lambda inner: st.lists(inner) | st.dictionaries(st.text(), inner),
    max_leaves=40,
)


@glee.tool
def repeat(text: str, times: int) -> str:
    """The text, many times."""
    return text * times


@glee.tool
def items(count: int, text: str = "x") -> list[dict[str, Any]]:
    """A list of many things."""
    return [{"number": number, "text": text} for number in range(count)]


def test_a_text_is_cut_with_a_notice_of_how_much_is_hidden_and_where_the_whole_is() -> None:
    assert cut_text("abcdefgh", 3, "artifact:00.txt") == (
        "abc\n[output cut: 5 of 8 characters hidden; the whole is artifact:00.txt]"
    )


@pytest.mark.parametrize(
    ("text", "shown"),
    [
        ("abe\u0301x", "ab"),  # an accent is not parted from its letter
        ("ab\U0001f468\u200d\U0001f469x", "ab"),  # nor a joined picture
        ("abक\u093fx", "ab"),  # nor a vowel sign
        ("ab\u2764\ufe0fx", "ab"),  # nor the mark that chooses a form
        ("ab\U0001d11e\U0001d11e", "ab\U0001d11e"),
    ],
)
def test_a_text_is_cut_between_characters_as_people_see_them(text: str, shown: str) -> None:
    assert cut_text(text, 3, "artifact:00.txt").partition("\n")[0] == shown


@settings(deadline=None)
@given(st.text(min_size=1), st.data())
def test_what_is_shown_and_what_is_hidden_make_the_whole(text: str, data: st.DataObject) -> None:
    limit = data.draw(st.integers(0, len(text) - 1))

    cut = cut_text(text, limit, "artifact:00.txt")

    notice = NOTICE.search(cut)
    assert notice is not None
    shown = cut[: notice.start()]
    hidden, total = (int(number.replace(",", "")) for number in notice.groups()[:2])
    assert (text.startswith(shown), len(shown) + hidden, total) == (True, len(text), len(text))
    assert len(shown) <= limit


@settings(deadline=None)
@given(json_values, st.integers(200, 3000))
def test_a_preview_is_valid_json_within_the_limit_that_names_the_artifact(value: Any, limit: int) -> None:
    preview = preview_json(value, 123_456, limit, HANDLE)

    encoded = encode_json(preview)
    assert len(encoded) <= limit
    assert json.loads(encoded) == preview
    assert (preview["cut"], preview["artifact"]) == (True, HANDLE)


def test_a_preview_shows_the_beginning_and_counts_the_rest() -> None:
    value = {"rows": [{"id": number} for number in range(1000)], "text": "x" * 10_000, "n": 7}

    assert preview_json(value, 30_000, 5_000, HANDLE) == {
        "cut": True,
        "notice": f"30,000 characters are too many to return; the whole is {HANDLE}",
        "artifact": HANDLE,
        "characters": 30_000,
        "preview": {
            "rows": [*({"id": number} for number in range(20)), "… (+980 items)"],
            "text": "x" * 500 + "… (+9,500 characters)",
            "n": 7,
        },
    }


def test_a_preview_of_long_keys_and_deep_nesting_still_fits() -> None:
    deep: Any = "x" * 1000
    for _ in range(50):
        deep = {"k" * 300: [deep]}

    assert len(encode_json(preview_json(deep, 99_999, 400, HANDLE))) <= 400


def test_a_text_at_the_limit_is_returned_whole(project: Project) -> None:
    with project.open(tools=[repeat]) as engine:
        result = engine.call_sync("repeat", {"text": "é", "times": 100_000})

    assert (result.output, result.artifacts) == ("é" * 100_000, ())


def test_a_text_over_the_limit_is_cut_and_can_be_read_whole_by_its_handle(project: Project) -> None:
    with project.open(tools=[repeat]) as engine:
        result = engine.call_sync("repeat", {"text": "é", "times": 100_001})
        whole = engine.read_artifact(result.artifacts[0])

    handle = f"artifact:{result.call_id}.txt"
    assert result.output == ("é" * 100_000 + f"\n[output cut: 1 of 100,001 characters hidden; the whole is {handle}]")
    assert result.artifacts == (Artifact(handle=handle, media_type="text/plain; charset=utf-8", size=200_002),)
    assert whole.decode() == "é" * 100_001


def test_json_over_the_limit_is_never_sliced(project: Project) -> None:
    with project.open(tools=[items]) as engine:
        result = engine.call_sync("items", {"count": 10_000})
        whole = json.loads(engine.read_artifact(result.artifacts[0].handle))

    handle = f"artifact:{result.call_id}.json"
    assert whole == [{"number": number, "text": "x"} for number in range(10_000)]
    assert (result.ok, result.output["cut"], result.output["artifact"]) == (True, True, handle)
    assert result.output["preview"] == [*whole[:20], "… (+9,980 items)"]
    assert len(encode_json(result.output)) <= 100_000
    assert [(artifact.handle, artifact.media_type) for artifact in result.artifacts] == [(handle, "application/json")]


def test_a_lower_limit_is_kept(project: Project) -> None:
    project.configure("limits: {output_chars: 200}")

    with project.open(tools=[items, repeat]) as engine:
        listed = engine.call_sync("items", {"count": 100})
        text = engine.call_sync("repeat", {"text": "x", "times": 201})

    assert len(encode_json(listed.output)) <= 200
    assert str(text.output).startswith("x" * 200 + "\n[output cut: 1 of 201 ")


def test_the_output_of_a_command_is_cut_the_same_way(project: Project) -> None:
    project.configure("limits: {output_chars: 1000}")
    project.add_command("many", "seq 1 1000")

    with project.open() as engine:
        result = engine.call_sync("many")
        whole = engine.read_artifact(result.artifacts[0])

    assert whole.decode().splitlines() == [str(number) for number in range(1, 1001)]
    assert (result.exit_code, str(result.output)[:1000]) == (0, whole.decode()[:1000])


def test_bytes_that_are_no_text_are_kept_as_they_came(project: Project) -> None:
    project.add_command("binary", r"printf '\377\376ok'")

    with project.open() as engine:
        result = engine.call_sync("binary")
        whole = engine.read_artifact(result.artifacts[0])

    handle = f"artifact:{result.call_id}.bin"
    assert (result.output, whole) == ("\ufffd\ufffdok", b"\xff\xfeok")
    assert result.artifacts == (Artifact(handle=handle, media_type="application/octet-stream", size=4),)
    assert result.warnings[-1] == f"the bytes as they came are {handle}"
