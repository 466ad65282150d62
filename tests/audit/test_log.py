"""The record: a line before a run and a line after it, whole whatever the arguments hold and whoever else writes."""

from __future__ import annotations

import asyncio
import hashlib
import itertools
import json
import re
import stat
import subprocess
import sys
import tempfile
import textwrap
import threading
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

import glee
from glee.audit.log import MAX_PARAMS, AuditLog, Entry
from glee.definitions.call import Call, Caller
from glee.definitions.event import Started
from glee.definitions.result import Failure
from glee.testing import WRITES, Project

NOON = 1_736_434_810.75
"""2025-01-09T15:00:10 UTC, and three quarters of a second."""
INPUTS = {"schema": {"type": "object", "properties": {"n": {"type": "integer"}}}}
LINE = re.compile(r"\[\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\] TOOL_(CALLED|EXECUTED|REFUSED) name=.* call=[0-9a-f]{28}")


@glee.tool(name="weather")
def weather(location: Any = None) -> str:
    """The weather somewhere."""
    return "sunny"


@pytest.fixture
def log(project: Project) -> Path:
    return project.root / ".glee" / "audit" / "tools.log"


@pytest.fixture
def ticking(log: Path) -> Iterator[AuditLog]:
    """A log on which every line is a second later than the one before."""
    seconds = itertools.count(NOON)
    audit = AuditLog(log, clock=lambda: next(seconds))
    yield audit
    audit.close()


def test_a_call_is_recorded_before_the_run_and_after_it_in_the_published_form(project: Project, log: Path) -> None:
    with project.open(tools=[weather], audit=AuditLog(log, clock=lambda: NOON)) as engine:
        result = engine.call_sync("weather", {"location": "NYC"})

    assert project.audit_lines == [
        f'[2025-01-09T15:00:10] TOOL_CALLED name=weather params={{"location":"NYC"}} door=python call={result.call_id}',
        '[2025-01-09T15:00:10] TOOL_EXECUTED name=weather params={"location":"NYC"} status=success door=python '
        f"call={result.call_id}",
    ]


def test_the_caller_is_recorded_as_far_as_it_is_known(project: Project, log: Path) -> None:
    caller = Caller(agent="claude", provider="anthropic", skill="two words", session="s/1", door="mcp")

    with project.open(tools=[weather], audit=AuditLog(log, clock=lambda: NOON)) as engine:
        result = engine.call_sync(Call(tool="weather", caller=caller))

    assert project.audit_lines[-1] == (
        '[2025-01-09T15:00:10] TOOL_EXECUTED name=weather params={"location":null} status=success door=mcp '
        f'agent=claude provider=anthropic skill="two words" session=s/1 call={result.call_id}'
    )


def test_the_line_before_the_run_is_there_when_the_tool_runs(project: Project) -> None:
    seen: list[str] = []

    @glee.tool
    def look() -> None:
        """Look at the record."""
        seen.extend(project.audit_lines)

    with project.open(tools=[look]) as engine:
        result = engine.call_sync("look")

    (line,) = seen
    assert line.split(" ")[1:] == ["TOOL_CALLED", "name=look", "params={}", "door=python", f"call={result.call_id}"]


def test_the_line_before_the_run_is_there_before_anybody_hears_of_the_start(project: Project) -> None:
    seen: list[list[str]] = []

    with project.open(tools=[weather]) as engine:
        engine.subscribe(lambda event: seen.append(project.audit_lines) if isinstance(event, Started) else None)
        engine.call_sync("weather")

    assert [[line.split(" ")[1] for line in lines] for lines in seen] == [["TOOL_CALLED"]]


def test_a_failed_run_is_recorded_with_its_code(project: Project) -> None:
    project.add_command("fail", "exit 3")

    with project.open() as engine:
        engine.call_sync("fail")

    called, executed = project.audit_lines
    assert (
        " TOOL_CALLED name=fail " in called,
        " TOOL_EXECUTED name=fail params={} status=exit_code " in executed,
    ) == (
        True,
        True,
    )


@pytest.mark.parametrize(
    ("tool", "arguments", "status"),
    [("nothing", {}, "not_found"), ("strict", {"n": "x"}, "invalid_input"), ("hidden", {}, "denied")],
)
def test_a_call_that_never_ran_is_one_line_that_says_so(
    project: Project, tool: str, arguments: dict[str, Any], status: str
) -> None:
    project.add_command("strict", "true", inputs=INPUTS)
    project.add_command("hidden", "true")
    project.configure("tools: {deny: [hidden]}")

    with project.open() as engine:
        result = engine.call_sync(tool, arguments)

    (line,) = project.audit_lines
    params = json.dumps(arguments, separators=(",", ":"))
    assert line.partition("] ")[2] == (
        f"TOOL_REFUSED name={tool} params={params} status={status} door=python call={result.call_id}"
    )


def test_defaults_that_were_filled_in_are_recorded(project: Project) -> None:
    schema = {"type": "object", "properties": {"path": {"type": "string", "default": "."}}}
    project.add_command("scan", "true", inputs={"schema": schema})

    with project.open() as engine:
        engine.call_sync("scan")

    assert [' params={"path":"."} ' in line for line in project.audit_lines] == [True, True]


def test_a_tool_that_changes_its_arguments_does_not_change_the_record(project: Project) -> None:
    @glee.tool
    def take(items: list[int]) -> int:
        """Take the last one away."""
        return items.pop()

    with project.open(tools=[take]) as engine:
        engine.call_sync("take", {"items": [1, 2]})

    assert [' params={"items":[1,2]} ' in line for line in project.audit_lines] == [True, True]


nasty = "\n\r\v\f\x1c\x1d\x1e\x85\u2028\u2029\0\x1b[31m\t \"\\='[]{}"
texts = st.text() | st.text(nasty)
json_values = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False) | texts,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(texts, inner, max_size=3),
    max_leaves=8,
)


@settings(deadline=None, max_examples=60, suppress_health_check=[HealthCheck.too_slow])
@example("a tool", nasty, nasty)
@example("weather", {"x\ny": ["\u2028", "\0", "\x1b[2J"]}, "\n[2025-01-09T15:00:10] TOOL_EXECUTED name=forged call=1")
@given(texts, json_values, texts)
def test_an_event_is_one_line_whatever_it_holds(name: str, location: Any, session: str) -> None:
    with tempfile.TemporaryDirectory() as base:
        project = Project(Path(base))
        with project.open(tools=[weather]) as engine:
            for tool in ("weather", name):
                engine.call_sync(Call(tool=tool, arguments={"location": location}, caller=Caller(session=session)))
        text = (project.root / ".glee" / "audit" / "tools.log").read_bytes().decode()

    lines = text.splitlines()
    assert (text.count("\n"), len(lines)) == (len(lines), 4 if name == "weather" else 3)
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    assert [control for control in "\0\x1b\r\x85\u2028\u2029" if control in text] == []
    params = [json.JSONDecoder().raw_decode(line.partition(" params=")[2])[0] for line in lines[:2]]
    assert params == [{"location": location}] * 2


def test_a_name_that_is_no_plain_word_is_quoted(project: Project) -> None:
    with project.open() as engine:
        for name in ("two words", "a\nb", 'say "hi"', "", "x=y"):
            engine.call_sync(name)

    shown = [line.partition(" name=")[2].partition(" params=")[0] for line in project.audit_lines]
    assert shown == ['"two words"', '"a\\nb"', '"say \\"hi\\""', '""', '"x=y"']


def test_arguments_too_large_for_a_line_are_recorded_by_their_digest(project: Project) -> None:
    text = "x" * MAX_PARAMS
    whole = json.dumps({"location": text}, separators=(",", ":")).encode()

    with project.open(tools=[weather]) as engine:
        engine.call_sync("weather", {"location": text})

    assert [json.JSONDecoder().raw_decode(line.partition(" params=")[2])[0] for line in project.audit_lines] == [
        {"sha256": hashlib.sha256(whole).hexdigest(), "bytes": len(whole), "cut": True}
    ] * 2


def test_the_log_is_its_owner_s_alone(project: Project, log: Path) -> None:
    with project.open(tools=[weather]) as engine:
        engine.call_sync("weather")

    assert [stat.S_IMODE(path.stat().st_mode) for path in (log, log.parent)] == [0o600, 0o700]


def test_without_a_project_the_log_is_part_of_the_state(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")
    with glee.open(tools=[weather], environ=project.environ) as engine:
        engine.call_sync("weather")

    (log,) = Path(project.environ["XDG_STATE_HOME"]).glob("glee/*/audit/tools.log")
    assert len(log.read_text().splitlines()) == 2


# What cannot be recorded does not run.


def refuses(project: Project, log: Path, why: str) -> None:
    project.add_command("mark", "touch ran", permissions=WRITES)
    with project.open() as engine:
        result = engine.call_sync("mark")

    assert result.error is not None
    message = f"the audit log {log} cannot be written ({why}), so nothing runs; free disk space or mend its permissions"
    assert (result.error.code, result.error.message, result.warnings) == ("internal", message, (message,))
    assert not (project.root / "ran").exists()


def test_a_log_whose_folder_cannot_be_made_stops_the_call(project: Project, log: Path) -> None:
    project.write(".glee/audit", "a file in its place")

    refuses(project, log, "File exists")


def test_a_folder_in_the_place_of_the_log_stops_the_call(project: Project, log: Path) -> None:
    log.mkdir(parents=True)

    refuses(project, log, "Is a directory")


def test_a_link_in_the_place_of_the_log_is_not_followed(project: Project, log: Path, tmp_path: Path) -> None:
    victim = tmp_path / "victim"
    victim.write_text("untouched")
    log.parent.mkdir()
    log.symlink_to(victim)

    refuses(project, log, "Too many levels of symbolic links")
    assert victim.read_text() == "untouched"


def test_a_dangling_link_in_the_place_of_the_log_is_not_followed(project: Project, log: Path, tmp_path: Path) -> None:
    log.parent.mkdir()
    log.symlink_to(tmp_path / "made")

    refuses(project, log, "Too many levels of symbolic links")
    assert not (tmp_path / "made").exists()


def test_a_run_whose_end_cannot_be_recorded_keeps_its_output_and_says_so(
    project: Project, log: Path, ticking: AuditLog
) -> None:
    @glee.tool
    def spoil() -> str:
        """Puts a folder in the place of the log."""
        log.unlink()
        log.mkdir()
        return "done"

    with project.open(tools=[spoil], audit=ticking) as engine:
        result = engine.call_sync("spoil")

    assert (result.output, result.warnings) == (
        "done",
        (f"it ran, but the record does not say how it ended: [Errno 21] Is a directory: '{log}'",),
    )


def test_a_refusal_that_cannot_be_recorded_is_still_a_refusal(project: Project, log: Path) -> None:
    log.mkdir(parents=True)

    with project.open() as engine:
        result = engine.call_sync("nothing")

    assert (result.error and result.error.code, len(result.warnings)) == ("not_found", 1)


# The file may be rotated or removed under a running engine.


def test_a_renamed_log_is_left_and_a_new_one_begun(project: Project, log: Path, ticking: AuditLog) -> None:
    with project.open(tools=[weather], audit=ticking) as engine:
        engine.call_sync("weather", {"location": "before"})
        log.rename(log.with_suffix(".1"))
        engine.call_sync("weather", {"location": "after"})

    assert ["before" in line for line in log.with_suffix(".1").read_text().splitlines()] == [True, True]
    assert ["after" in line for line in project.audit_lines] == [True, True]


def test_a_removed_log_is_begun_anew(project: Project, log: Path, ticking: AuditLog) -> None:
    with project.open(tools=[weather], audit=ticking) as engine:
        engine.call_sync("weather", {"location": "before"})
        log.unlink()
        log.parent.rmdir()
        engine.call_sync("weather", {"location": "after"})

    assert ["after" in line for line in project.audit_lines] == [True, True]


def test_a_log_that_was_emptied_in_place_goes_on_from_its_beginning(project: Project, log: Path) -> None:
    with project.open(tools=[weather]) as engine:
        engine.call_sync("weather", {"location": "before"})
        log.write_bytes(b"")
        engine.call_sync("weather", {"location": "after"})

    assert b"\0" not in log.read_bytes()
    assert ["after" in line for line in project.audit_lines] == [True, True]


def test_a_new_engine_appends_to_an_old_log(project: Project) -> None:
    for location in ("first", "second"):
        with project.open(tools=[weather]) as engine:
            engine.call_sync("weather", {"location": location})

    assert ["first" in line for line in project.audit_lines] == [True, True, False, False]


# Other processes.


def run_python(script: str, *arguments: str) -> subprocess.Popen[str]:
    program = [sys.executable, "-c", textwrap.dedent(script), *arguments]
    return subprocess.Popen(program, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)


def finish(process: subprocess.Popen[str]) -> str:
    output, errors = process.communicate()
    assert (process.returncode, errors) == (0, "")
    return output


def test_many_processes_append_whole_lines_at_once(project: Project, tmp_path: Path) -> None:
    script = """
        import sys, glee

        @glee.tool(blocking=False)
        def note(who: str, number: int, text: str) -> None:
            '''Note.'''

        root, base, who = sys.argv[1:]
        environ = {"HOME": base, "XDG_STATE_HOME": base, "XDG_CACHE_HOME": base, "XDG_CONFIG_HOME": base}
        with glee.open(root, tools=[note], environ=environ) as engine:
            print("ready", flush=True)
            sys.stdin.readline()
            for number in range(100):
                engine.call_sync("note", {"who": who, "number": number, "text": who * (number * 60)})
    """
    program = [sys.executable, "-c", textwrap.dedent(script), str(project.root), str(tmp_path / "own")]
    writers = [
        subprocess.Popen([*program, who], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        for who in "abcdefgh"
    ]
    for writer in writers:
        assert writer.stdout is not None and writer.stdout.readline() == "ready\n"
    for writer in writers:
        assert writer.stdin is not None
        writer.stdin.write("go\n")
        writer.stdin.flush()
    for writer in writers:
        writer.communicate()
    assert [writer.returncode for writer in writers] == [0] * 8

    lines = project.audit_lines
    assert len(lines) == 8 * 200
    assert [line for line in lines if not LINE.fullmatch(line)] == []
    noted = [json.JSONDecoder().raw_decode(line.partition(" params=")[2])[0] for line in lines]
    assert {(params["who"], params["number"]) for params in noted} == set(itertools.product("abcdefgh", range(100)))
    for who in "abcdefgh":
        own = [params["number"] for params in noted if params["who"] == who]
        assert own == [number for number in range(100) for _ in ("called", "executed")]
    assert all(params["text"] == params["who"] * (params["number"] * 60) for params in noted)


def test_a_line_that_a_full_disk_cut_short_is_taken_back_and_nothing_runs(project: Project, tmp_path: Path) -> None:
    script = """
        import json, os, resource, sys, glee

        ran = []

        @glee.tool
        def note(text: str) -> str:
            '''Note.'''
            ran.append(text)
            return text

        root, base = sys.argv[1:]
        environ = {"HOME": base, "XDG_STATE_HOME": base, "XDG_CACHE_HOME": base, "XDG_CONFIG_HOME": base}
        log = os.path.join(root, ".glee", "audit", "tools.log")
        with glee.open(root, tools=[note], environ=environ) as engine:
            engine.call_sync("note", {"text": "first"})
            _, hard = resource.getrlimit(resource.RLIMIT_FSIZE)
            resource.setrlimit(resource.RLIMIT_FSIZE, (os.path.getsize(log) + 40, hard))
            full = engine.call_sync("note", {"text": "second"})
            resource.setrlimit(resource.RLIMIT_FSIZE, (hard, hard))
            engine.call_sync("note", {"text": "third"})
        print(json.dumps([ran, full.error.code, full.error.message, list(full.warnings)]))
    """
    output = finish(run_python(script, str(project.root), str(tmp_path / "own")))

    ran, code, message, warnings = json.loads(output)
    assert (ran, code, warnings) == (["first", "third"], "internal", [message])
    assert "cannot be written (no space left for the line), so nothing runs; free disk space" in message
    assert [line for line in project.audit_lines if not LINE.fullmatch(line)] == []
    assert [("first" in line, "third" in line) for line in project.audit_lines] == [(True, False)] * 2 + [
        (False, True)
    ] * 2


HOLD = """
    import fcntl, select, sys

    with open(sys.argv[1], "a") as file:
        fcntl.flock(file, fcntl.LOCK_EX)
        print("held", flush=True)
        select.select([sys.stdin], [], [], 20)
"""


@pytest.mark.parametrize("awaited", [True, False])
def test_a_log_that_another_process_holds_stops_the_call_and_holds_it_up_no_longer_than_it_must(
    project: Project, log: Path, awaited: bool
) -> None:
    project.add_command("mark", "touch ran", permissions=WRITES)
    log.parent.mkdir()
    holder = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(HOLD), str(log)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
    )
    assert holder.stdout is not None and holder.stdout.readline() == "held\n"

    with project.open() as engine:
        began = time.monotonic()
        result = asyncio.run(engine.call("mark")) if awaited else engine.call_sync("mark")
        took = time.monotonic() - began
        holder.communicate("let go")
        after = engine.call_sync("mark")

    message = (
        f"the audit log {log} cannot be written (another process holds it locked), so nothing runs; "
        "free disk space or mend its permissions"
    )
    assert (result.error, result.warnings) == (Failure(code="internal", message=message), (message,))
    assert (took < 5, after.ok, [line.split(" ")[1] for line in project.audit_lines]) == (
        True,
        True,
        ["TOOL_CALLED", "TOOL_EXECUTED"],
    )


def test_a_log_that_is_closed_while_others_write_loses_no_line(log: Path) -> None:
    audit, over = AuditLog(log), threading.Event()
    failed: list[BaseException] = []

    def write(who: int) -> None:
        try:
            for number in range(500):
                audit.write("TOOL_CALLED", Entry(f"{who}-{number}", {}, Caller(), "0" * 28))
        except BaseException as error:
            failed.append(error)

    def close() -> None:
        while not over.is_set():
            audit.close()

    writers = [threading.Thread(target=write, args=(who,)) for who in range(4)]
    closer = threading.Thread(target=close)
    for thread in (closer, *writers):
        thread.start()
    for thread in writers:
        thread.join()
    over.set()
    closer.join()
    audit.close()

    lines = log.read_text().splitlines()
    assert (failed, [line for line in lines if not LINE.fullmatch(line)]) == ([], [])
    assert len(lines) == 4 * 500
