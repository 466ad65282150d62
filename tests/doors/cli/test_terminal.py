"""A person at a terminal: asked for what is missing, asked before what needs a yes, shown that it takes time."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from process_watch import new_mark, wait_gone, wait_there
from shell import CTRL_C, CTRL_D, Glee, inputs, wait_until

from glee.testing import READS

COLOUR = "\x1b[31m"
FRAME = "⠋"
CLEAR = "\r\x1b[K"
SLEEP = new_mark()


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    add = made.project
    add.add_python(
        "echo",
        "def run(**given):\n    return given\n",
        inputs=inputs(
            "text",
            "count",
            text={"type": "string", "description": "What to\x1b[31m say"},
            count={"type": "integer"},
            optional={"type": "string"},
        ),
    )
    add.add_command(
        "asks",
        'echo "did $1"',
        command={"args": ["${text}"]},
        inputs=inputs("text", text={"type": "string"}),
        approval={"required": True, "reason": "it \x1b]0;cannot\x07 be undone"},
        examples=[{"params": {"text": "it"}, "expected_output": "did it"}],
    )
    add.add_command("slow", f"sleep {SLEEP} & sleep {SLEEP}")
    until_told = "while [ ! -e told ]; do sleep 0.05; done; echo over"
    add.add_command("until_told", until_told, permissions=READS, examples=[{"params": {}}])
    add.add_command(
        "waits",
        'while [ ! -e "$1" ]; do sleep 0.05; done',
        command={"args": ["${file}"]},
        inputs=inputs("file", file={"type": "string"}),
        permissions=READS,
        examples=[{"params": {"file": "scripts"}}, {"params": {"file": "told"}}],
    )
    add.add_command("colourful", "printf '\\033[31mred\\033[0m \\033]0;title\\007\\302\\233 tab\\there\\r\\n'")
    add.add_command("warns", "echo 1", outputs={"format": "text", "schema": {"type": "object"}})
    add.add_tool("broken", "name: broken\n")
    return made


def test_a_missing_input_is_asked_for_and_read_by_the_schema(glee: Glee) -> None:
    terminal = glee.on_terminal("run", "echo", piped=True)
    terminal.expect("text (What to")
    terminal.type("hello there\n")
    terminal.expect("count: ")
    terminal.type("3\n")

    assert terminal.end() == 0
    assert terminal.piped == '{\n  "text": "hello there",\n  "count": 3\n}\n'
    assert COLOUR not in terminal.seen


def test_an_input_that_was_given_is_not_asked_for(glee: Glee) -> None:
    terminal = glee.on_terminal("run", "echo", "text=x", "count=1")

    assert terminal.end() == 0
    assert "text" not in terminal.seen.partition("{")[0]


@pytest.mark.parametrize("key", [CTRL_C, CTRL_D])
def test_a_person_who_will_not_say_ends_the_call(glee: Glee, key: str) -> None:
    terminal = glee.on_terminal("run", "echo")
    terminal.expect("text (")

    assert terminal.end(key) == 130
    assert "cancelled" in terminal.seen
    assert "Traceback" not in terminal.seen


def _answer(glee: Glee, answer: str, *options: str) -> tuple[int, str]:
    terminal = glee.on_terminal("run", "asks", "text=a\x1b[2J\u202eb\u009b", *options)
    terminal.expect("Allow this one call of asks?")
    return terminal.end(answer), terminal.seen


def test_an_approval_is_asked_with_its_reason_and_arguments(glee: Glee) -> None:
    status, seen = _answer(glee, "y\n")

    assert status == 0
    assert "asks asks for your approval." in seen.replace("\x1b[1m", "").replace("\x1b[0m", "")
    assert "reason:    it \ufffd]0;cannot\ufffd be undone" in seen
    assert '"text": "a\\u001b[2J\ufffdb\ufffd"' in seen
    assert seen.rstrip().splitlines()[-1].startswith("did a")


def test_what_is_asked_about_cannot_command_the_terminal(glee: Glee) -> None:
    _, seen = _answer(glee, "y\n")

    for command in ("\x1b[2J", "\x1b]0;", "\x07", "\u202e", "\u009b"):
        assert command not in seen


@pytest.mark.parametrize("answer", ["n\n", "\n", CTRL_D])
def test_whoever_does_not_say_yes_has_said_no(glee: Glee, answer: str) -> None:
    status, seen = _answer(glee, answer)

    assert status == 3
    assert "did a" not in seen
    assert "Traceback" not in seen
    assert "status=rejected" in glee.project.audit_lines[-1]


def test_ctrl_c_at_the_question_cancels_the_call(glee: Glee) -> None:
    status, seen = _answer(glee, CTRL_C)

    assert status == 130
    assert "Traceback" not in seen
    assert "status=cancelled" in glee.project.audit_lines[-1]


def test_an_example_that_needs_approval_asks_for_it(glee: Glee) -> None:
    terminal = glee.on_terminal("test", "asks")
    terminal.expect("Allow this one call of asks?")
    terminal.type("y\n")

    assert terminal.end() == 0
    assert "1 passed, 0 failed" in terminal.seen


def test_a_run_over_a_second_turns_a_spinner_and_clears_it(glee: Glee) -> None:
    told = glee.root / "told"
    told.unlink(missing_ok=True)
    terminal = glee.on_terminal("run", "until_told")
    terminal.expect(f"{FRAME} until_told")
    told.touch()

    assert terminal.end() == 0
    assert terminal.seen.endswith(f"{CLEAR}over\r\n")


def test_a_spinner_fits_into_a_narrow_terminal(glee: Glee) -> None:
    told = glee.root / "told"
    told.unlink(missing_ok=True)
    terminal = glee.on_terminal("run", "until_told", columns=10)
    terminal.expect(f"{CLEAR}{FRAME} until_…")
    told.touch()

    assert terminal.end() == 0


def test_an_example_after_a_quick_one_has_its_spinner_too(glee: Glee) -> None:
    told = glee.root / "told"
    told.unlink(missing_ok=True)
    terminal = glee.on_terminal("test", "waits")
    terminal.expect("example 1")
    before = len(terminal.seen)
    terminal.expect(f"{CLEAR}⠙ waits")
    told.touch()

    assert terminal.end() == 0
    assert FRAME in terminal.seen[before:]
    assert "2 passed, 0 failed" in terminal.seen


def test_a_run_within_a_second_shows_no_spinner_and_a_pipe_never_does(glee: Glee) -> None:
    (glee.root / "told").touch()
    terminal = glee.on_terminal("run", "until_told", "--json", piped=True)

    assert terminal.end() == 0
    assert terminal.seen == "" or json.loads(terminal.piped)["duration_ms"] >= 1000
    assert glee("run", "until_told") == (0, "over\n", "")


def test_ctrl_c_ends_the_run_and_all_it_started(glee: Glee) -> None:
    terminal = glee.on_terminal("run", "slow")
    wait_there(SLEEP, 2)

    assert terminal.end(CTRL_C) == 130
    assert "the call was cancelled" in terminal.seen
    assert "Traceback" not in terminal.seen
    wait_gone(SLEEP)


def test_a_terminal_that_is_closed_ends_the_run_and_all_it_started(glee: Glee) -> None:
    terminal = glee.on_terminal("run", "slow")
    wait_there(SLEEP, 2)

    terminal.hang_up()

    wait_gone(SLEEP)
    wait_until(lambda: terminal.process.poll() is not None)


def _seen(glee: Glee, *args: str, **env: str) -> str:
    terminal = glee.on_terminal(*args, **env)
    terminal.end()
    return terminal.seen


@pytest.mark.parametrize("args", [["list"], ["run", "nothing"], ["run", "warns"], ["lint"], ["test", "until_told"]])
def test_colour_is_for_terminals_that_want_it(glee: Glee, args: list[str]) -> None:
    (glee.root / "told").touch()

    assert "\x1b[" in _seen(glee, *args)
    assert "\x1b[" not in _seen(glee, *args, NO_COLOR="1")
    assert "\x1b[" not in _seen(glee, *args, TERM="dumb")
    piped = glee(*args)
    assert "\x1b[" not in piped.out + piped.err


def test_an_empty_no_color_is_no_wish(glee: Glee) -> None:
    assert COLOUR in _seen(glee, "list", NO_COLOR="")


def test_a_tools_output_cannot_command_the_terminal(glee: Glee) -> None:
    assert _seen(glee, "run", "colourful") == "\ufffd[31mred\ufffd[0m \ufffd]0;title\ufffd\ufffd tab\there\r\n"


def test_a_tools_output_goes_into_a_pipe_as_it_is(glee: Glee) -> None:
    assert glee("run", "colourful").out == "\x1b[31mred\x1b[0m \x1b]0;title\x07\u009b tab\there\r\n"


def test_an_error_cannot_command_the_terminal(glee: Glee) -> None:
    assert "\x1b]0;" not in _seen(glee, "run", "a\x1b]0;title\x07") + _seen(glee, "show", "a\x1b]0;title\x07")


def test_a_listing_fits_into_the_terminal(glee: Glee) -> None:
    glee.project.add_command("wordy", "true", description="many words " * 50)
    terminal = glee.on_terminal("list", columns=60)

    assert terminal.end() == 0
    line = next(line for line in terminal.seen.splitlines() if line.startswith("wordy"))
    assert len(line) <= 60 and line.endswith("…")


def test_a_question_nobody_answers_ends_with_the_calls_time(glee: Glee) -> None:
    terminal = glee.on_terminal("run", "asks", "text=x", "--timeout", "0.3")

    assert terminal.end() == 124
    assert "nobody answered before the time was up; nothing was run" in terminal.seen
    assert "TOOL_REFUSED" in glee.project.audit_lines[-1]
