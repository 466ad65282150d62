"""Attempts to make Glee say, run, keep or leave what it must not. Each must fail."""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from servers import Server

import glee
from glee.approval import Answer, Question
from glee.catalog.packages import PackageSource
from glee.definitions.call import Call, Caller
from glee.definitions.event import Event, Finished, Requested, Started
from glee.engine import Engine
from glee.errors import ConfigError
from glee.testing import WRITES, AnsweringPerson, Project, Watcher, manifest

TOKEN = {"secrets": {"TOKEN": {"type": "string"}}}
SECRET = "S3CR3T-VALUE-OF-SOME-LENGTH"
CHANGED = {"required": True, "reason": "It changed"}


@glee.tool
def show(value: Any = None) -> Any:
    """Show it."""
    return value


def find_processes(word: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if word.encode() in (entry / "cmdline").read_bytes():
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def wait_gone(word: str) -> None:
    until = time.monotonic() + 20
    while find_processes(word):
        assert time.monotonic() < until, "a process was left behind"
        time.sleep(0.01)


def test_an_interrupt_while_a_process_begins_leaves_nothing(project: Project, mode: str) -> None:
    word = f"7{random.getrandbits(40)}"
    project.add_command("nothing", "")
    project.add_tool("sleep", manifest("sleep", "command", {"entrypoint": "sleep", "args": [word], "timeout_ms": 5000}))

    def interrupt(*_: object) -> None:
        raise KeyboardInterrupt

    before = signal.signal(signal.SIGALRM, interrupt)
    try:
        with project.open() as engine:
            engine.find("sleep")
            engine.call_sync("nothing")  # Python loses an interrupt that arrives in the midst of an import
            for step in range(30):
                signal.setitimer(signal.ITIMER_REAL, 0.0002 + 0.004 * step / 30)
                try:
                    engine.call_sync("sleep")
                except KeyboardInterrupt:
                    pass
                signal.setitimer(signal.ITIMER_REAL, 0)
    finally:
        signal.setitimer(signal.ITIMER_REAL, 0)
        signal.signal(signal.SIGALRM, before)

    wait_gone(word)


COMET = """
import os, sys, time
line = os.open(sys.argv[1], os.O_WRONLY)
until = time.monotonic() + 5
if os.fork():
    time.sleep(5)
os.setsid()
for file in (0, 1, 2):
    os.close(file)
while time.monotonic() < until:
    if sys.argv[2] == "sessions" and os.getsid(0) != os.getpid():
        os.setsid()
    if os.fork():
        os._exit(0)
os.write(line, b"survived")
"""


@pytest.mark.parametrize("way", ["one session", "sessions"])
def test_what_forks_without_pause_does_not_outlive_its_time(project: Project, mode: str, way: str) -> None:
    """Each process lives for less time than a list of all takes. The pipe is at its end when the last one is gone."""
    line = project.root / "line"
    os.mkfifo(line)
    (project.root / "comet.py").write_text(COMET)
    execution = {"entrypoint": sys.executable, "args": ["comet.py", str(line), way], "timeout_ms": 500}
    project.add_tool("comet", manifest("comet", "command", execution, permissions=WRITES))
    reader = os.open(line, os.O_RDONLY | os.O_NONBLOCK)

    with project.open() as engine:
        result = engine.call_sync("comet")

    os.set_blocking(reader, True)
    assert os.read(reader, 100) == b""
    os.close(reader)
    assert result.error is not None
    assert result.error.code == "timeout"


@pytest.fixture
def busy_thread() -> Iterator[None]:
    """The host has a thread of its own, which leaves Glee little time right after a start."""
    stop = threading.Event()

    def compute() -> None:
        while not stop.is_set():
            sum(range(1000))

    thread = threading.Thread(target=compute)
    thread.start()
    yield
    stop.set()
    thread.join()


@pytest.mark.parametrize("end", ["sleep 30", ":"])
def test_a_daemon_without_an_environment_is_ended_where_the_host_has_threads(
    project: Project, mode: str, busy_thread: None, end: str
) -> None:
    word = f"6{random.getrandbits(40)}"
    script = f"env -i /usr/bin/setsid -f /bin/sleep {word} </dev/null >/dev/null 2>&1\n{end}"
    project.add_command("daemon", script, command={"timeout_ms": 400})

    with project.open() as engine:
        for _ in range(5):
            engine.call_sync("daemon")

    wait_gone(word)


def test_a_program_that_cannot_start_is_said_to_where_the_host_has_threads(
    project: Project, mode: str, busy_thread: None
) -> None:
    project.write("bad", "#!/nowhere\n", executable=True)
    project.add_tool("bad", manifest("bad", "command", {"entrypoint": "./bad"}))

    with project.open() as engine:
        error = engine.call_sync("bad").error

    assert error is not None
    assert error.code == "unavailable"


def test_a_seeded_program_draws_other_marks_and_keeps_its_own_numbers(project: Project) -> None:
    project.add_command("mark", "echo $GLEE_RUN")
    project.configure_person("sandbox: {mode: 'off'}")
    marks, numbers, state = [], [], random.getstate()
    with project.open() as engine:
        for _ in range(2):
            random.seed(42)
            marks.append(engine.call_sync("mark").output)
            numbers.append(random.random())
    random.setstate(state)

    assert (marks[0] != marks[1], numbers) == (True, [random.Random(42).random()] * 2)


def test_what_the_program_itself_starts_meanwhile_is_left_alone(project: Project, mode: str) -> None:
    word = f"8{random.getrandbits(40)}"
    project.add_command("quick", "true & sleep 0 &")
    stop = threading.Event()
    started = []

    def start_daemons() -> None:
        while not stop.is_set() and len(started) < 150:
            script = f"(sleep {word} >/dev/null 2>&1 &)"
            started.append(subprocess.run(["sh", "-c", script], start_new_session=True, check=True))

    thread = threading.Thread(target=start_daemons)
    thread.start()
    try:
        with project.open() as engine:
            while thread.is_alive():
                engine.call_sync("quick")
        assert len(find_processes(word)) == len(started)
    finally:
        stop.set()
        thread.join()
        for pid in find_processes(word):
            os.kill(pid, signal.SIGKILL)


@pytest.mark.parametrize("target", ["/dev/zero", "fifo"])
def test_a_config_that_is_no_file_is_an_error_at_once(project: Project, target: str) -> None:
    config = project.root / ".glee" / "config.yml"
    if target == "fifo":
        os.mkfifo(config)
    else:
        config.symlink_to(target)

    with pytest.raises(ConfigError, match="is not a file"):
        project.open()


def test_a_manifest_full_of_mistakes_is_read_in_bounded_time(project: Project) -> None:
    names = {f"input_number_{number}": {} for number in range(2000)}
    body = {f"key{number}": f"${{inputs_number_{number}}}" for number in range(2000)}
    fields = manifest("many", "http", {"url": "https://example.com/", "body": body})
    project.add_tool("many", {**fields, "inputs": {"schema": {"type": "object", "properties": names}}})

    with project.open() as engine:
        began = time.monotonic()
        result = engine.call_sync("many")

    assert (result.error and result.error.code, time.monotonic() - began < 30) == ("not_found", True)


@pytest.mark.parametrize("before", range(150, 215, 5))
def test_no_part_of_a_secret_stands_in_a_warning_about_the_output(project: Project, before: int) -> None:
    project.add_command(
        "leak", f"printf 'x%.0s' $(seq {before}); printf '%s' $TOKEN; printf 'y%.0s' $(seq 400)",
        permissions=TOKEN, outputs={"format": "text", "schema": {"type": "integer"}},
    )  # fmt: skip
    project.environ["TOKEN"] = SECRET

    with project.open() as engine:
        result = engine.call_sync("leak")

    assert result.warnings and SECRET[:6] not in repr(result)


def test_a_listener_changes_nothing_that_runs(project: Project) -> None:
    kept: dict[str, Any] = {}

    def change(event: Event) -> None:
        if isinstance(event, Requested):
            kept.update(arguments=event.call.arguments)
        if isinstance(event, Started):
            kept["arguments"]["value"].append("changed")

    with project.open(tools=[show]) as engine:
        engine.subscribe(change)
        result = engine.call_sync("show", {"value": ["as it was"]})

    assert result.output == ["as it was"]


def test_a_caller_who_changes_the_arguments_while_a_person_is_asked_changes_nothing(project: Project) -> None:
    given = {"value": ["harmless"]}

    class Slow(AnsweringPerson):
        async def ask(self, question: Any) -> Any:
            given["value"].append("evil")
            return await super().ask(question)

    tool = glee.tool(name="ask", approval="It matters")(lambda value: value)
    with project.open(tools=[tool], approver=Slow()) as engine:
        assert engine.call_sync(Call(tool="ask", arguments=given)).output == ["harmless"]


def test_arguments_nested_beyond_reason_are_recorded_all_the_same(project: Project) -> None:
    deep: Any = "x"
    for _ in range(600):
        deep = [deep]
    project.add_command("take", "true", inputs={"schema": {"type": "object"}}, permissions=TOKEN)
    project.environ["TOKEN"] = SECRET

    with project.open() as engine:
        engine.call_sync("take", {"value": deep})

    assert project.audit_lines and all(" name=take " in line for line in project.audit_lines)


def test_an_error_has_bounds(project: Project) -> None:
    @glee.tool
    def fail() -> None:
        """Fail."""
        raise ValueError("x" * 5_000_000)

    @glee.tool
    def take(numbers: list[int]) -> int:
        """Take."""
        return len(numbers)

    with project.open(tools=[fail, take]) as engine:
        sizes = [
            len(engine.call_sync("fail").to_json()),
            len(engine.call_sync("take", {"numbers": ["x"] * 100_000}).to_json()),
            len(engine.call_sync("take", {f"key{number}": 1 for number in range(20_000)}).to_json()),
        ]

    assert max(sizes) < 500_000


def test_one_session_gets_nothing_of_anothers_under_the_same_key(project: Project) -> None:
    outputs = []
    with project.open(tools=[show]) as engine:
        for session in ("a", "b"):
            caller = Caller(session=session)
            call = Call(tool="show", arguments={"value": 1}, caller=caller, idempotency_key="k")
            outputs.append(engine.call_sync(call).warnings)

    assert outputs == [(), ()]


def test_a_manifest_that_changed_runs_in_its_new_form_and_a_removed_one_not_at_all(project: Project) -> None:
    project.add_command("act", "echo old")
    with project.open() as engine:
        assert engine.call_sync("act").output == "old\n"
        project.add_command("act", "echo new", approval=CHANGED)
        changed = engine.call_sync("act")
        (project.tools / "act" / "tool.yml").unlink()
        removed = engine.call_sync("act")

    assert [result.error and result.error.code for result in (changed, removed)] == ["approval_required", "not_found"]


def test_an_unregistered_manifest_does_not_come_back(project: Project) -> None:
    project.add_command("act", "true")
    with project.open() as engine:
        engine.unregister("act")
        assert engine.call_sync("act").error is not None
        assert engine.list() == ()
        engine.reload()
        assert engine.call_sync("act").ok


def test_a_planted_cache_makes_no_package_load(project: Project, tmp_path: Path) -> None:
    cache = tmp_path / "packages.msgpack"
    stamp = [(entry, os.stat(entry).st_mtime_ns if os.path.exists(entry) else 0) for entry in sys.path]  # noqa: PTH110
    cache.write_bytes(msgspec.msgpack.encode([stamp, [["x", "os:abort", "evil"]]]))

    assert PackageSource(cache).find("x") is None


def test_a_literal_name_is_denied_whatever_its_brackets_would_match(project: Project) -> None:
    project.add_command("rm[all]", "touch ran", permissions=WRITES)
    project.configure('tools:\n  deny: ["rm[all]"]\n')

    with project.open() as engine:
        assert engine.call_sync("rm[all]").error is not None
    assert not (project.root / "ran").exists()


def test_a_log_whose_folder_is_a_link_is_not_written(project: Project, tmp_path: Path) -> None:
    elsewhere = tmp_path / "elsewhere"
    elsewhere.mkdir()
    (project.root / ".glee" / "audit").symlink_to(elsewhere)
    project.add_command("act", "touch ran", permissions=WRITES)

    with project.open() as engine:
        assert engine.call_sync("act").error is not None
    assert (list(elsewhere.iterdir()), (project.root / "ran").exists()) == ([], False)


LOOKS: dict[str, Callable[[Engine], object]] = {
    "a listing": lambda engine: engine.list(),
    "a call of an unknown tool": lambda engine: engine.call_sync("nothing"),
    "a search by API name": lambda engine: engine.find("nothing"),
}


@pytest.mark.parametrize("look", LOOKS)
def test_looking_around_does_not_make_a_changed_manifest_current(project: Project, look: str) -> None:
    project.add_command("act", "echo old")
    with project.open() as engine:
        engine.call_sync("act")
        project.add_command("act", "touch ran", permissions=WRITES, approval=CHANGED)
        LOOKS[look](engine)
        changed = engine.call_sync("act")

    assert (changed.error and changed.error.code, (project.root / "ran").exists()) == ("approval_required", False)


class Meddler(AnsweringPerson):
    """Says yes, and writes into what it was shown."""

    async def ask(self, question: Question) -> Answer:
        question.call.arguments["value"].append("evil")
        question.call.arguments["more"] = "evil"
        return await super().ask(question)


def test_an_approver_changes_nothing_that_runs_or_is_recorded(project: Project) -> None:
    tool = glee.tool(name="ask", approval="It matters")(lambda value: value)
    with project.open(tools=[tool], approver=Meddler()) as engine:
        result = engine.call_sync("ask", {"value": ["harmless"]})

    assert result.output == ["harmless"]
    assert [' params={"value":["harmless"]} ' in line for line in project.audit_lines] == [True, True]


def test_a_listener_changes_nothing_of_the_result_that_its_caller_gets(project: Project) -> None:
    def change(event: Event) -> None:
        if isinstance(event, Finished):
            event.result.output["rows"].append("changed")

    with project.open(tools=[show]) as engine:
        engine.subscribe(change)
        result = engine.call_sync("show", {"value": {"rows": ["as it was"]}})

    assert result.output == {"rows": ["as it was"]}


OPTIONAL = {"secrets": {"TOKEN": {"type": "string", "required": False}}}
OPEN = {"schema": {"type": "object", "properties": {}}}


def test_a_caller_cannot_fill_the_place_of_a_secret_of_a_python_tool(project: Project) -> None:
    args = {"token": "${TOKEN}"}
    source = "def run(**given):\n    return given\n"
    project.add_python("use", source, python={"args": args}, permissions=OPTIONAL, inputs=OPEN)

    with project.open() as engine:
        assert engine.call_sync("use", {"TOKEN": "forged"}).output == {}


def test_a_caller_cannot_fill_the_place_of_a_secret_of_an_http_tool(project: Project, server: Server) -> None:
    http = {"url": f"{server.url}/", "headers": {"Authorization": "Bearer ${TOKEN}"}, "query": {"key": "${TOKEN}"}}
    project.add_tool("use", manifest("use", "http", http, permissions={"network": True, **OPTIONAL}, inputs=OPEN))

    with project.open() as engine:
        assert engine.call_sync("use", {"TOKEN": "forged"}).ok

    assert (server.last.target, server.last.header("authorization")) == ("/", None)


CALLS_WITH_A_SECRET: dict[str, Callable[[], Call]] = {
    "nested beyond reason": lambda: Call(tool="send", arguments={"text": nested(SECRET, 600)}),
    "of a vocabulary": lambda: Call(tool="send", arguments={"text": SECRET}, vocabulary="other"),
}


def nested(value: Any, depth: int) -> Any:
    for _ in range(depth):
        value = [value]
    return value


@pytest.mark.parametrize("call", CALLS_WITH_A_SECRET)
def test_a_refused_call_tells_and_records_no_secret(project: Project, call: str) -> None:
    project.environ["TOKEN"] = SECRET
    project.add_command("send", "touch ran", permissions={**WRITES, **TOKEN})
    watcher = Watcher()

    with project.open() as engine:
        engine.subscribe(watcher)
        result = engine.call_sync(CALLS_WITH_A_SECRET[call]())

    (line,) = project.audit_lines
    assert (result.ok, " TOOL_REFUSED " in line) == (False, True)
    assert [said for said in (line, repr(result), repr(watcher.events)) if SECRET in said] == []
