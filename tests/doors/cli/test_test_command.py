"""The examples in the definitions, run as tests."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from shell import Glee, inputs

WORDS = inputs(say={"type": "string"})


def _example(expected: Any = None, say: str = "hello", **fields: Any) -> dict[str, Any]:
    wanted = {} if expected is None else {"expected_output": expected}
    return {"params": {"say": say}, **wanted, **fields}


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    add = made.project.add_command
    say = {"args": ["${say}"]}
    json = {**say, "stdout": {"format": "json"}}
    add(
        "text",
        'printf "\\n  %s  \\n\\n" "$1"',
        command=say,
        inputs=WORDS,
        examples=[_example("hello\n", description="Trimmed"), _example()],
    )
    add(
        "wild",
        'echo \'{"name": "x", "stars": 5, "tags": [1, 2, 3], "more": null}\'',
        command=json,
        inputs=WORDS,
        outputs={"format": "json"},
        examples=[
            _example('{"name": "...", "stars": 5, "tags": [1, ...], ...}', description="Any rest"),
            _example('{"more": null, "tags": [1, 2, 3], "stars": 5.0, "name": "x"}', description="Any order"),
        ],
    )
    add(
        "differs",
        'echo \'{"a": 1, "b": 2}\'',
        command=json,
        inputs=WORDS,
        outputs={"format": "json"},
        examples=[_example('{"a": 1, "b": 3}', description="Off by one")],
    )
    add("fails", "exit 4", command=say, inputs=WORDS, examples=[_example("x")])
    add(
        "asks",
        'echo "$1"',
        command=say,
        inputs=WORDS,
        approval={"required": True, "reason": "why not"},
        examples=[_example("hello")],
    )
    add("none", "true")
    return made


def test_examples_that_hold_pass(glee: Glee) -> None:
    ran = glee("test", "text", "wild", "none")

    assert (ran.status, ran.err) == (0, "")
    assert [line.rpartition(" (")[0] for line in ran.out.splitlines()] == [
        "pass text: Trimmed",
        "pass text: example 2",
        "pass wild: Any rest",
        "pass wild: Any order",
        "",
    ]
    assert ran.out.endswith("\n4 passed, 0 failed\n")


def test_a_difference_is_shown_as_a_diff(glee: Glee) -> None:
    ran = glee("test", "differs")

    assert (ran.status, ran.err) == (1, "")
    assert [line.strip() for line in ran.out.splitlines()[1:]] == [
        "the output differs",
        "--- expected",
        "+++ actual",
        "@@ -1,4 +1,4 @@",
        "{",
        '"a": 1,',
        '-  "b": 3',
        '+  "b": 2',
        "}",
        "0 passed, 1 failed",
    ]


def test_an_approval_is_answered_by_yes_and_by_nobody_else(glee: Glee) -> None:
    assert glee("test", "asks", "--yes").status == 0
    ran = glee("test", "asks")
    assert (ran.status, ran.out.splitlines()[1].split(":")[0].strip()) == (1, "approval_required")


def test_json_has_a_verdict_for_each_example_of_every_tool(glee: Glee) -> None:
    ran = glee("test", "--json", "--yes")

    assert ran.status == 1
    assert [(verdict["tool"], verdict["ok"]) for verdict in ran.json] == [
        ("asks", True),
        ("differs", False),
        ("fails", False),
        ("text", True),
        ("text", True),
        ("wild", True),
        ("wild", True),
    ]
    assert list(ran.json[1]) == ["tool", "example", "ok", "message", "diff", "warnings", "duration_ms"]
    assert ran.json[2]["message"].startswith("exit_code: ")


def test_an_unknown_name_is_an_error_before_anything_runs(glee: Glee) -> None:
    assert glee("test", "text", "wlid") == (2, "", "error: there is no tool 'wlid'; did you mean wild?\n")


def test_a_broken_definition_hides_no_other_and_the_status_is_2(make_glee: Callable[[], Glee]) -> None:
    fresh = make_glee()
    fresh.project.add_command("good", "echo hello", inputs=WORDS, examples=[_example("hello")])
    fresh.project.add_tool("bad", "name: bad\n")

    ran = fresh("test")

    assert ran.status == 2
    assert ran.out.startswith("pass good: example 1") and ran.out.endswith("1 passed, 0 failed, 1 broken\n")
    assert ran.err.startswith("error: bad: the definition is broken: line 1: ")
    assert [(verdict["tool"], verdict["ok"]) for verdict in fresh("test", "--json").json] == [
        ("good", True),
        ("bad", False),
    ]
    assert fresh("test", "bad").status == 2
    assert fresh("test", "good").status == 0


def test_null_can_be_expected(make_glee: Callable[[], Glee]) -> None:
    glee = make_glee()
    for name, output in (("null", "null"), ("five", "5")):
        glee.project.add_command(
            name,
            f"echo {output}",
            command={"stdout": {"format": "json"}},
            outputs={"format": "json"},
            examples=[{"params": {}, "expected_output": None}],
        )

    assert (glee("test", "null").status, glee("test", "five").status) == (0, 1)
