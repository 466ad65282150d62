"""The values of secrets never leave a call, whatever the tool does with them."""

from __future__ import annotations

import base64
import html
import json
import logging
import re
import tempfile
import textwrap
from collections.abc import Callable
from pathlib import Path
from typing import Any
from urllib.parse import quote, quote_plus

import pytest
from hypothesis import HealthCheck, assume, example, given, settings
from hypothesis import strategies as st

import glee
from glee.definitions.json_text import encode_json
from glee.secrets.redaction import MARK, NOTHING, Redactor
from glee.testing import Project, Watcher

TOKEN = {"secrets": {"TOKEN": {"type": "string"}}}

# Brackets are left out: the mark itself has them, and a value such as "]x[" could stand between two marks.
letters = st.characters(codec="utf-8", exclude_characters="[]\0", exclude_categories=("Cs",))
values = st.one_of(
    st.text(letters, min_size=6, max_size=40),
    st.text('"\\/%+ \n\t~é€𝄞\u2028', min_size=6, max_size=12),
    st.text("ABCabc012_-", min_size=6, max_size=40),
)

FORMS: dict[str, Callable[[str], str]] = {
    "plain": str,
    "JSON": lambda value: json.dumps(value)[1:-1],
    "JSON in UTF-8": lambda value: json.dumps(value, ensure_ascii=False)[1:-1],
    "JSON with escaped slashes": lambda value: json.dumps(value)[1:-1].replace("/", "\\/"),
    "percent": lambda value: quote(value, safe=""),
    "percent with slashes": quote,
    "percent in small letters": lambda value: re.sub("%..", lambda code: code[0].lower(), quote(value, safe="")),
    "form": quote_plus,
    "base64": lambda value: base64.b64encode(value.encode()).decode(),
    "base64 for URLs": lambda value: base64.urlsafe_b64encode(value.encode()).decode(),
    "base64 without padding": lambda value: base64.urlsafe_b64encode(value.encode()).decode().rstrip("="),
    "hex": lambda value: value.encode().hex(),
    "hex in capitals": lambda value: value.encode().hex().upper(),
    "Python": lambda value: repr(value)[1:-1],
    "JSON as Go writes it": lambda value: re.sub(
        "[&<>\u2028\u2029]", lambda found: f"\\u{ord(found[0]):04x}", json.dumps(value, ensure_ascii=False)[1:-1]
    ),
    "JSON in capitals": lambda value: re.sub(
        "\\\\u....", lambda code: "\\u" + code[0][2:].upper(), json.dumps(value)[1:-1]
    ),
    "HTML": lambda value: html.escape(value),
    "encodeURIComponent": lambda value: quote(value, safe="!'()*"),
    "with Windows line ends": lambda value: value.replace("\n", "\r\n"),
    "indented": lambda value: value.replace("\n", "\n    "),
    "JSON pointer": lambda value: value.replace("~", "~0").replace("/", "~1"),
}


@pytest.mark.parametrize("form", FORMS)
@pytest.mark.parametrize(
    "value",
    ["s3cr3t/V@lue", 'quo"ted\\back', "grüße aus é", "line\nbreak\ttab", "a+b c~d%e", "p&ss<w>ord/9!'x"],
)
def test_every_form_is_replaced_as_a_whole(value: str, form: str) -> None:
    assert Redactor([value]).text(f"before {FORMS[form](value)} after") == f"before {MARK} after"


@settings(deadline=None)
@given(values, st.text(max_size=8), st.text(max_size=8), st.sampled_from(sorted(FORMS)))
def test_no_form_of_a_value_is_left_in_a_text(value: str, before: str, after: str, form: str) -> None:
    written = FORMS[form](value)
    assume(written not in MARK)

    assert written not in Redactor([value]).text(f"{before}{written}{after}")


@settings(deadline=None)
@given(values, st.binary(max_size=7), st.binary(max_size=7))
def test_a_value_encoded_within_something_longer_cannot_be_read_back(value: str, before: bytes, after: bytes) -> None:
    """At most the few characters that it shares with its neighbours are left."""
    assume(len(value.encode()) >= 12)
    whole = base64.b64encode(before + value.encode() + after).decode()

    left = Redactor([value]).text(whole)

    assert MARK in left
    assert len(left.replace(MARK, "")) <= len(base64.b64encode(before)) + len(base64.b64encode(after)) + 8


@settings(deadline=None)
@given(values, st.binary(max_size=20), st.binary(max_size=20))
def test_a_value_is_taken_out_of_bytes(value: str, before: bytes, after: bytes) -> None:
    cleaned = Redactor([value]).data(before + value.encode() + after)

    assert value.encode() not in cleaned.replace(MARK.encode(), b"\xff\xfe")


@settings(deadline=None)
@given(st.recursive(st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False) | st.text(), st.lists))
def test_what_holds_no_secret_is_left_as_it_is(value: Any) -> None:
    assert NOTHING.value(value) == value
    assert Redactor(["\x07never there\x07"]).value(value) == value


def test_keys_items_and_numbers_are_cleaned_through_and_through() -> None:
    redactor = Redactor(["12345678", "s3cr3t!"])
    value = {
        "s3cr3t!": ["s3cr3t!", {"deep": ("12345678", 12345678, 12345678.0, -12345678, 9912345678)}],
        "kept": [1234567, True, None, 1.5, "s3cr3t"],
    }

    assert redactor.value(value) == {
        MARK: [MARK, {"deep": [MARK] * 5}],
        "kept": [1234567, True, None, 1.5, "s3cr3t"],
    }


def test_keys_that_come_to_look_the_same_are_both_kept() -> None:
    redactor = Redactor(["first-s3cr3t", "second-s3cr3t"])

    assert redactor.value({"first-s3cr3t": 1, f"{MARK} 2": 2, "second-s3cr3t": [3]}) == {
        MARK: 1,
        f"{MARK} 2": 2,
        f"{MARK} 3": [3],
    }


def test_a_number_is_recognised_as_json_and_as_python_write_it() -> None:
    assert Redactor(["1e16"]).value(1e16) == MARK
    assert Redactor(["1e+16"]).value(1e16) == MARK


def test_values_that_json_does_not_know_are_cleaned_as_they_will_be_shown() -> None:
    redactor = Redactor(["s3cr3t!"])

    assert redactor.value({7: Path("/home/s3cr3t!"), "bytes": b"s3cr3t!"}) == {"7": f"/home/{MARK}", "bytes": MARK}


def test_the_longer_of_two_values_is_replaced_as_a_whole() -> None:
    assert Redactor(["token", "token-and-more"]).text("token-and-more token") == f"{MARK} {MARK}"


def test_a_value_with_the_letters_of_a_pattern_is_taken_literally() -> None:
    redactor = Redactor([".*"])

    assert (redactor.text("anything"), redactor.text("a.*b")) == ("anything", f"a{MARK}b")


# From end to end: everything that leaves a call is searched for the value.


def everything_of(project: Project, tools: list[Any], logged: list[str]) -> str:
    """One call of each tool, and all that came of it."""
    watcher = Watcher()
    shown: list[str] = []
    with project.open(tools=tools) as engine:
        engine.subscribe(watcher)
        for tool in tools:
            result = engine.call_sync(tool.definition.name, {"given": project.environ["TOKEN"]})
            shown += [result.to_json().decode(), repr(result), str(result.output)]
            shown += [engine.read_artifact(artifact).decode() for artifact in result.artifacts]
    shown += [repr(event) for event in watcher.events]
    shown += [encode_json(event).decode() for event in watcher.events]
    return "\n".join([*shown, *project.audit_lines, *logged])


def make_tools() -> list[Any]:
    """Tools that do with a secret what they should not."""

    @glee.tool(permissions=TOKEN)
    def echo(given: str, context: glee.Context) -> Any:
        """Returns it in every form, as a value, as a key, deep inside."""
        value = context.environment["TOKEN"]
        forms = [form(value) for form in FORMS.values()]
        return {"forms": forms, value: value, "deep": [[{f"x{value}y": [value]}]], "said": f"<{given}>"}

    @glee.tool(permissions=TOKEN)
    def fail(given: str, context: glee.Context) -> None:
        """Raises it."""
        raise KeyError(context.environment["TOKEN"])

    @glee.tool(permissions=TOKEN)
    def misfit(given: str, context: glee.Context) -> list[int]:
        """Returns it where numbers were declared."""
        return [context.environment["TOKEN"], {context.environment["TOKEN"]: 1}]  # type: ignore[list-item]

    @glee.tool(permissions=TOKEN)
    def tell(given: str, context: glee.Context) -> str:
        """Tells it as progress."""
        context.progress(1, 2, f"now using {context.environment['TOKEN']}")
        return "done"

    @glee.tool(permissions=TOKEN)
    def refuse(given: int) -> str:
        """Wants a number, so that the value stands in a violation."""
        return "never"

    return [echo, fail, misfit, tell, refuse]


class Collected(logging.Handler):
    def __init__(self) -> None:
        super().__init__()
        self.lines: list[str] = []

    def emit(self, record: logging.LogRecord) -> None:
        self.lines.append(f"{record.getMessage()} {record.exc_info}")


@settings(deadline=None, max_examples=30, suppress_health_check=[HealthCheck.too_slow])
@example('quo"ted\\back/slash')
@example("line\nbreak\u2028é")
@example("12345678")
@example("a~b/c%d e")
@given(values)
def test_a_value_never_appears_in_anything_that_leaves_a_call(value: str) -> None:
    handler = Collected()
    logging.getLogger("glee").addHandler(handler)
    try:
        with tempfile.TemporaryDirectory() as first, tempfile.TemporaryDirectory() as second:
            project, innocent = Project(Path(first)), Project(Path(second))
            project.environ["TOKEN"], innocent.environ["TOKEN"] = value, "\x07nothing\x07"
            usual = everything_of(innocent, make_tools(), handler.lines)
            handler.lines.clear()
            said = everything_of(project, make_tools(), handler.lines)
    finally:
        logging.getLogger("glee").removeHandler(handler)
    forms = {form(value) for form in FORMS.values()}

    assert [form for form in forms if form in said and form not in usual] == []


def test_a_value_is_not_split_by_the_cut(project: Project) -> None:
    """It is taken out before the output is cut, so no part of it stands at the edge."""
    value = "S3CR3T-" + "0123456789" * 3
    project.environ["TOKEN"] = value
    project.configure("limits: {output_chars: 200}")

    @glee.tool(permissions=TOKEN)
    def spill(start: int, context: glee.Context) -> str:
        """Writes the secret across the limit."""
        return "x" * start + context.environment["TOKEN"] + "y" * 400

    with project.open(tools=[spill]) as engine:
        for start in range(150, 205, 5):
            result = engine.call_sync("spill", {"start": start})
            kept = engine.read_artifact(result.artifacts[0]).decode()
            assert "S3CR" not in f"{result.output}{kept}"
            assert kept == "x" * start + MARK + "y" * 400


def test_a_value_on_standard_error_and_in_the_operator_s_log_is_taken_out(
    project: Project, caplog: pytest.LogCaptureFixture
) -> None:
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    project.add_command("cry", 'echo "token: $TOKEN" >&2; echo "out $TOKEN"; exit 3', permissions=TOKEN)
    project.add_python(
        "fall", "import os\n\ndef run():\n    raise ValueError(os.environ['TOKEN'])\n", permissions=TOKEN
    )

    with project.open() as engine:
        cry, fall = engine.call_sync("cry"), engine.call_sync("fall")

    assert cry.error is not None and fall.error is not None
    assert cry.error.details == {"exit_code": 3, "stderr": f"token: {MARK}", "stdout": f"out {MARK}\n"}
    assert fall.error.details == {"type": "ValueError", "message": MARK}
    assert (MARK in caplog.text, "S3CR3T" in caplog.text) == (True, False)


def test_a_secret_is_taken_out_although_the_call_did_not_run(project: Project) -> None:
    """The arguments of a refused call are recorded too."""
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    project.add_command("send", "true", permissions=TOKEN, approval={"required": True, "reason": "Sends"})

    with project.open() as engine:
        engine.call_sync("send", {"text": "use S3CR3T-VALUE"})

    (line,) = project.audit_lines
    assert f'params={{"text":"use {MARK}"}} status=approval_required' in line


def test_a_result_kept_for_an_idempotency_key_holds_no_secret(project: Project) -> None:
    project.environ["TOKEN"] = "S3CR3T-VALUE"
    project.add_command("show", 'echo "$TOKEN"', permissions=TOKEN)

    with project.open() as engine:
        engine.call_sync(glee.Call(tool="show", idempotency_key="once"))

    state = Path(project.environ["XDG_STATE_HOME"])
    files = [file for file in state.rglob("*") if file.is_file()]
    assert files
    assert [file for file in files if b"S3CR3T" in file.read_bytes()] == []


PEM = "-----BEGIN PRIVATE KEY-----\nMIGHAgEAMBMGByqGSM49\nAwEHBG0wawIBAQQg+/x=\n-----END PRIVATE KEY-----\n"


@pytest.mark.parametrize(
    "lay_out",
    [
        lambda key: key.replace("\n", "\r\n"),
        lambda key: textwrap.indent(key, "    "),
        lambda key: textwrap.indent(key, "\t").replace("\n", "\r\n"),
    ],
    ids=["with Windows line ends", "indented", "both"],
)
def test_a_key_of_several_lines_is_taken_out_however_its_lines_end_and_begin(
    project: Project, lay_out: Callable[[str], str]
) -> None:
    project.environ["TOKEN"] = PEM

    @glee.tool(permissions=TOKEN)
    def leak(context: glee.Context) -> str:
        """Show it as a file would hold it."""
        return lay_out(context.environment["TOKEN"])

    with project.open(tools=[leak]) as engine:
        result = engine.call_sync("leak")

    assert str(result.output).strip() == MARK
