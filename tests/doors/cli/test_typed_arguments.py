"""Arguments as people type them: `key=value` read by the schema, JSON, a file, standard input."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from shell import Glee, inputs


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    """`echo` gives back what it got; `open_echo` takes further keys; `strict` needs three."""
    made = make_glee()
    echo = "def run(**given):\n    return given\n"
    typed = inputs(
        text={"type": "string"},
        integer={"type": "integer"},
        number={"type": "number"},
        flag={"type": "boolean"},
        other={"type": "boolean"},
        things={"type": "array"},
        thing={"type": "object"},
        nothing={"type": "null"},
        union={"type": ["integer", "string"]},
        either={"anyOf": [{"type": "boolean"}, {"type": "string"}]},
        level={"enum": ["1", "2"]},
        size={"enum": [1, 2]},
        fixed={"const": 7},
        referred={"$ref": "#/$defs/count"},
        anything={},
        always=True,
    )
    typed["schema"]["$defs"] = {"count": {"type": "integer"}}
    made.project.add_python("echo", echo, inputs=typed)
    made.project.add_python(
        "open_echo", echo, inputs={"schema": {"type": "object", "additionalProperties": {"type": "integer"}}}
    )
    made.project.add_python(
        "strict", echo, inputs=inputs("a", "b", "c", a={"type": "string"}, b={"type": "integer", "minimum": 3}, c={})
    )
    return made


def _echoed(glee: Glee, *args: str, stdin: str = "", tool: str = "echo") -> Any:
    ran = glee("run", tool, "--json", *args, stdin=stdin)
    assert ran.status == 0, ran
    return ran.json["output"]


def test_a_value_has_the_type_that_the_schema_gives_it(glee: Glee) -> None:
    typed = {
        "text=42": "42",
        "integer=42": 42,
        "number=4": 4,
        "flag=true": True,
        "other=False": False,
        'things=[1, "two"]': [1, "two"],
        'thing={"a": {"b": null}}': {"a": {"b": None}},
        "nothing=null": None,
        "union=42": 42,
        "either=true": True,
        "level=2": "2",
        "size=2": 2,
        "fixed=7": 7,
        "referred=5": 5,
        "anything=1": "1",
        "always=[1]": "[1]",
    }

    assert _echoed(glee, *typed) == {pair.partition("=")[0]: value for pair, value in typed.items()}


def test_a_value_that_is_not_of_the_other_type_stays_text(glee: Glee) -> None:
    assert _echoed(glee, "union=4x", "either=yes", "text=null", "anything=") == {
        "union": "4x",
        "either": "yes",
        "text": "null",
        "anything": "",
    }


def test_a_value_may_hold_anything_after_the_first_equals_sign(glee: Glee) -> None:
    text = 'a=b \'"$(x)" \n\t é 😀 --yes'

    assert _echoed(glee, f"text={text}", "number=-1.5e3", "integer=123456789012345678901234567890") == {
        "text": text,
        "number": -1500.0,
        "integer": 123456789012345678901234567890,
    }


def test_what_follows_colon_equals_is_json_whatever_the_schema_says(glee: Glee) -> None:
    assert _echoed(glee, 'anything:={"a": [1, true]}', 'text:="42"', "always:=1") == {
        "anything": {"a": [1, True]},
        "text": "42",
        "always": 1,
    }


def test_further_keys_are_read_by_the_schema_for_further_keys(glee: Glee) -> None:
    assert _echoed(glee, "x=1", "y=2", tool="open_echo") == {"x": 1, "y": 2}


def test_json_comes_from_the_command_line_a_file_or_standard_input(glee: Glee) -> None:
    params = '{"text": "é", "integer": 1}'
    glee.project.write("params.json", params)
    expected = {"text": "é", "integer": 1}

    assert _echoed(glee, "--params", params) == expected
    assert _echoed(glee, "--params", "@params.json") == expected
    assert _echoed(glee, "--params", "-", stdin=params) == expected


def test_a_pair_wins_over_params(glee: Glee) -> None:
    given = _echoed(glee, "--params", '{"text": "params", "integer": 1}', "text=last")

    assert given == {"text": "last", "integer": 1}


@pytest.mark.parametrize(
    ("args", "message"),
    [
        (["text=a", "text=b"], "'text' is given twice; a list is written text:='[1, 2]'"),
        (["--params", "things.json"], "--params is not JSON: "),
        (["text"], "'text' is not key=value; quote a value with spaces: key='two words'"),
        (["=x"], "'=x' is not key=value"),
        ([":=1"], "':=1' is not key=value"),
        (["text:={"], "text:= takes JSON, and '{' is none: "),
        (["text:=" + "[" * 9999], "is none: "),
        (["--params", "{"], "--params is not JSON: "),
        (["--params", ""], "--params is not JSON: "),
        (["--params", "[1]"], '--params must be a JSON object, as in \'{"key": "value"}\''),
        (["--params", "@nowhere"], "--params @nowhere: No such file or directory"),
        (["--params", "@."], "--params @.: Is a directory"),
        (["--params", "-"], "standard input is not JSON: "),
        (["text=a", "--timeout", "0"], "0 is not a number of seconds; give one above 0"),
        (["text=a", "--timeout", "nan"], "nan is not a number of seconds"),
        (["text=a", "--timeout", "soon"], "'soon' is not a valid float"),
        (["text=a", "--idempotency-key", " "], "it is empty, and every such call would count as the same one"),
    ],
)
def test_what_cannot_be_read_is_named_with_status_2(glee: Glee, args: list[str], message: str) -> None:
    ran = glee("run", "echo", *args)

    assert (ran.status, ran.out) == (2, "")
    assert message in ran.err.splitlines()[0]
    assert len(ran.err) < 1000


def test_bytes_that_are_not_text_are_refused(glee: Glee) -> None:
    ran = glee("run", "echo", b"text=\xff")

    assert (ran.status, ran.out) == (2, "")
    assert "is not UTF-8 text" in ran.err


def test_every_violation_is_printed_with_what_to_do(glee: Glee) -> None:
    ran = glee("run", "strict", "b=2")

    assert (ran.status, ran.out) == (2, "")
    assert len(ran.err.splitlines()) == 3
    for part in ('"a" is a required property', '"c" is a required property', "/b: 2 is less than the minimum of 3"):
        assert part in ran.err


def test_a_value_of_the_wrong_type_is_named_by_the_tools_own_schema(glee: Glee) -> None:
    ran = glee("run", "echo", "integer=many", "--json")

    assert ran.status == 2
    assert ran.json["error"]["code"] == "invalid_input"
    assert [violation["pointer"] for violation in ran.json["error"]["details"]["violations"]] == ["/integer"]


def test_a_misspelt_key_is_answered_by_the_one_path_and_recorded(glee: Glee) -> None:
    ran = glee("run", "echo", "txt=x", "--json")

    assert (ran.status, ran.json["error"]["code"]) == (2, "invalid_input")
    assert "remove `txt` or write `text`" in ran.json["error"]["message"]
    assert " TOOL_REFUSED name=echo " in glee.project.audit_lines[-1]


def test_a_file_given_without_its_sign_is_noticed(glee: Glee) -> None:
    glee.project.write("things.json", "{}")

    assert "write --params @things.json" in glee("run", "echo", "--params", "things.json").err
