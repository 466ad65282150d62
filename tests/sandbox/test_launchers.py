"""The two launchers say the same words, and leave nothing behind, whatever they are told and whoever is killed."""

from __future__ import annotations

import gc
import os
import random
import resource
import select
import shutil
import signal
import socket
import tempfile
import threading
import time
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from launchers import LAUNCHERS, hold_with, is_native
from msgspec import structs

from glee.engine import Engine
from glee.errors import SandboxUnavailable
from glee.sandbox import launcher as launchers
from glee.sandbox.jails import Jail
from glee.sandbox.launcher import Launcher, Spare, send_request
from glee.sandbox.plan import PLAN_BYTES, decode_steps, encode_steps
from glee.testing import Project, manifest

PATIENCE = 20.0


class Held:
    """An engine held by one launcher, and the jail of its one tool, to be taken and talked to by hand."""

    def __init__(self, base: Path, *, native: bool, layers: frozenset[str] | None = None) -> None:
        self.project = Project(base)
        self.project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
        self.engine: Engine = self.project.open()
        self.jails = hold_with(self.engine, native=native, layers=layers)
        self.launcher: Launcher = self.jails._launcher
        result = self.engine.call_sync("true")
        assert result.ok, result
        self.jail: Jail = next(iter(self.jails._known.values())).jail
        self._null = os.open(os.devnull, os.O_RDWR)

    @property
    def server(self) -> Any:
        return self.launcher._server

    @property
    def files(self) -> list[int]:
        return [self._null] * 3

    def take(self) -> Spare:
        """A jail that waits and has said so."""
        spare = self.launcher.take(self.jail.plan)
        assert spare.is_ready or hear(spare.line) == b"R"
        return spare

    def ask(self, data: bytes, files: list[int]) -> list[bytes]:
        """What a jail says to a request, until it is gone."""
        spare = self.take()
        if files:
            socket.send_fds(spare.line, [data], files)
        else:
            spare.line.send(data)
        return hear_all(spare.line)

    def refuse(self, plan: bytes) -> bytes:
        """What it says of a plan that cannot be carried out; the next one can."""
        line = self.launcher.take(plan).line
        words = hear(line)
        line.close()
        assert hear(self.launcher.take(plan).line) == words
        self.server._forget(self.server._profiles.pop(plan))
        assert self.engine.call_sync("true").ok
        return words

    def close(self) -> None:
        self.engine.close()
        os.close(self._null)


def hear(line: socket.socket) -> bytes:
    line.settimeout(PATIENCE)
    try:
        return line.recv(4096)
    except ConnectionError:
        return b""


def hear_all(line: socket.socket) -> list[bytes]:
    words = []
    while word := hear(line):
        words.append(word)
    line.close()
    return words


def wait_until(condition: Any) -> None:
    end = time.monotonic() + PATIENCE
    while not condition():
        assert time.monotonic() < end
        time.sleep(0.005)


@pytest.fixture(scope="module")
def both(tmp_path_factory: pytest.TempPathFactory) -> Iterator[list[Held]]:
    held = [Held(tmp_path_factory.mktemp(name), native=is_native(name)) for name in LAUNCHERS]
    yield held
    for one in held:
        one.close()


@pytest.fixture(params=LAUNCHERS)
def held(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Held]:
    one = Held(tmp_path, native=is_native(request.param))
    yield one
    one.close()


def test_both_find_the_same_on_this_machine(both: list[Held]) -> None:
    python, c = (_describe(one) for one in both)

    assert c == python


def _describe(one: Held) -> dict[str, Any]:
    """Without what is its own: its number, and how much ran when it was asked."""
    found = structs.asdict(one.launcher.abilities())
    number = str(one.server._process.pid)
    return found | {
        "faults": {layer: why.replace(number, "PID") for layer, why in found["faults"].items()},
        "running": found["running"] > 0,
    }


GARBAGE = {
    "nothing": b"",
    "no end": b"garbage without an end",
    "an unknown word": b"nonsense\0/\0",
    "an endless word": b"x" * 100_000 + b"\0",
    "a word too few": b"folder\0",
    "two words too few": b"bind\0r\0",
    "zeros": b"\0" * 1000,
    "noise": bytes(byte % 127 for byte in random.Random(1).randbytes(20_000)),
    "too much of it": b"folder\0/x\0" * (PLAN_BYTES // 10),
    "a great many steps": b"stamp\0x\0" * 500_000,
}
"""None of them names a user, so that the last cannot be carried out either."""


@pytest.mark.parametrize("name", GARBAGE)
def test_a_plan_that_no_engine_writes_is_refused_in_the_same_words(both: list[Held], name: str) -> None:
    python, c = (one.refuse(GARBAGE[name]) for one in both)

    assert python.startswith(b"E")
    assert c == python


SPOILT = {
    "a path that is gone": ("rule", "4", "/gone/long/ago"),
    "a link": ("rule", "4", "/proc/self"),
    "a source that is gone": ("bind", "r", "/gone/long/ago", "/usr"),
    "a place that is gone": ("bind", "r", "/usr", "/gone/long/ago"),
    "a way to bind that nobody knows": ("bind", "x", "/usr", "/usr"),
    "a user who is nobody": ("user", "root", "0"),
    "a filter that is none": ("filter", "zz"),
    "a filter that is too short": ("filter", "0600"),
    "rights that are none": ("rule", "all", "/usr"),
    "a port that is none": ("door", "any"),
    "a version that is none": ("version", "new"),
    "a limit that is none": ("limit", "7", "none"),
    "a group without a limit": ("group", "", ""),
}


@pytest.mark.parametrize("name", SPOILT)
def test_one_step_that_cannot_be_carried_out_refuses_the_whole_plan(both: list[Held], name: str) -> None:
    python, c = (
        one.refuse(encode_steps([*decode_steps(one.jail.plan), SPOILT[name]])).replace(
            str(one.project.root).encode(), b""
        )
        for one in both
    )

    assert python.startswith(b"E")
    assert c == python


@pytest.mark.parametrize("word", ["user", "ports", "net", "version", "filter"])
def test_a_step_that_is_missing_does_not_leave_a_layer_out(both: list[Held], word: str) -> None:
    words = {one.refuse(encode_steps(step for step in decode_steps(one.jail.plan) if step[0] != word)) for one in both}

    assert words == {b"Ethe plan cannot be read"}


def test_more_paths_than_a_process_can_open_leave_it_able_to_open_others(both: list[Held]) -> None:
    words = []
    for one in both:
        before = _count_files(one)
        resource.prlimit(one.server._process.pid, resource.RLIMIT_NOFILE, (500, resource.getrlimit(7)[1]))
        words.append(one.refuse(encode_steps([*decode_steps(one.jail.plan), *([("rule", "4", "/usr")] * 5000)])))
        wait_until(lambda one=one, before=before: _count_files(one) <= before)

    assert words == [b"E[Errno 24] Too many open files: '/usr'"] * 2


def test_a_plan_that_could_not_be_carried_out_is_tried_again(both: list[Held], tmp_path: Path) -> None:
    later = tmp_path / "later"
    words = []
    for one in both:
        plan = encode_steps([*decode_steps(one.jail.plan), ("bind", "r", str(later), "/usr")])
        words.append(hear(one.launcher.take(plan).line))
        later.mkdir()
        words.append(hear(one.launcher.take(plan).line))
        later.rmdir()

    missing = f"E[Errno 2] No such file or directory: '{later}'".encode()
    assert words == [missing, b"R"] * 2


@pytest.mark.skipif(os.getuid() != 0, reason="only root shows what is another's as the run's own")
def test_a_file_system_that_cannot_be_shown_as_anothers_can_only_be_read(both: list[Held]) -> None:
    plans = [
        [encode_steps([*decode_steps(one.jail.plan), ("bind", mode, "/sys/kernel", "/usr")]) for mode in "rw"]
        for one in both
    ]
    words = [[hear(one.launcher.take(plan).line) for plan in own] for one, own in zip(both, plans, strict=True)]

    assert words[0][0] == b"R"
    assert b"the file system of /sys/kernel cannot be shown to the tool as its own" in words[0][1]
    assert words[0] == words[1]


def test_a_jail_without_a_line_is_not_made_and_the_next_is(held: Held) -> None:
    held.server._control.send(b"J0123456789ab name")
    held.server._control.send(b"P0123456789ab")

    assert held.engine.call_sync("true").ok
    assert held.server._process.poll() is None


def test_a_run_has_the_same_limits_and_files_under_both(both: list[Held]) -> None:
    script = "ulimit -Sa; ulimit -Ha; ls /proc/self/fd; cat /proc/self/status; umask; readlink /dev/shm"
    outputs = [_run(one, script) for one in both]

    cpu = [line.split()[-1] for line in outputs[0].splitlines() if line.startswith(("cpu time", "time("))]
    assert int(cpu[1]) == int(cpu[0]) + 1
    assert outputs[0] == outputs[1]


def test_a_limit_that_the_machine_sets_itself_is_no_hindrance(held: Held) -> None:
    resource.prlimit(held.server._process.pid, resource.RLIMIT_CPU, (50, 50))
    others = (step for step in decode_steps(held.jail.plan) if step[:2] != ("limit", str(resource.RLIMIT_CPU)))
    plan = encode_steps([*others, ("limit", str(resource.RLIMIT_CPU), "50")])

    assert hear(held.launcher.take(plan).line) == b"R"


CHANGING = ("Name", "Vm", "Rss", "Hugetlb", "voluntary", "nonvoluntary", "Cpus_", "Mems_", "State", "Seccomp_")


def _run(one: Held, script: str) -> str:
    """What a shell says, but for the lines that are never twice the same."""
    spare = one.take()
    read, write = os.pipe()
    if os.getuid() == 0:
        os.fchown(write, *one.jail.identity)
    argv = ["/bin/sh", "-c", script]
    send_request(spare.line, argv, cwd="/", env={"PATH": "/bin:/usr/bin"}, files=[one.files[0], write, write])
    os.close(write)
    assert hear_all(spare.line) == [b"X0"]
    with open(read) as stream:
        return "".join(line for line in stream if not line.startswith(CHANGING))


def _count_files(one: Held) -> int:
    return len(list(Path(f"/proc/{one.server._process.pid}/fd").iterdir()))


REQUESTS = {
    "of no bytes": (b"", 3, [b"X125"]),
    "of one": (b"x", 3, [b"Ethe request cannot be read", b"X125"]),
    "without arguments": (b"/bin/true\0/\0000", 3, [b"Ethe request cannot be read", b"X125"]),
    "with fewer arguments than it says": (b"/bin/true\0/\0003\0true", 3, [b"Ethe request cannot be read", b"X125"]),
    "with a count that is none": (b"/bin/true\0/\0many\0true", 3, [b"Ethe request cannot be read", b"X125"]),
    "with a count that is huge": (b"/bin/true\0/\0" + b"9" * 40 + b"\0t", 3, [b"Ethe request cannot be read", b"X125"]),
    "with a variable that is none": (b"/bin/true\0/\0001\0true\0VAR", 3, [b"Ethe request cannot be read", b"X125"]),
    "in a file that is not there": (b"M", 0, [b"Ethe request cannot be read", b"X125"]),
    "with no streams": (b"/bin/true\0/\0001\0true", 0, [b"Ea request brings three streams, or four", b"X125"]),
    "with two streams": (b"/bin/true\0/\0001\0true", 2, [b"Ea request brings three streams, or four", b"X125"]),
    "with five streams": (b"/bin/true\0/\0001\0true", 5, [b"Ea request brings three streams, or four", b"X125"]),
    "longer than a message": (b"/bin/true\0/\0001\0" + b"x" * 70_000, 3, [b"Ethe request cannot be read", b"X125"]),
    "for a program that is gone": (b"/gone\0/\0001\0true", 3, [b"F2", b"X127"]),
    "for a folder that is gone": (b"/bin/true\0/gone\0001\0true", 3, [b"F2", b"X127"]),
    "for no program": (b"/tmp\0/\0001\0true", 3, [b"F13", b"X127"]),
    "with an empty argument": (b"/bin/true\0/\0002\0true\0", 3, [b"X0"]),
    "with four streams": (b"/bin/true\0/\0001\0true", 4, [b"X0"]),
    "that fails": (b"/bin/false\0/\0001\0false", 3, [b"X1"]),
}


@pytest.mark.parametrize("name", REQUESTS)
def test_a_request(both: list[Held], name: str) -> None:
    data, streams, expected = REQUESTS[name]

    assert [one.ask(data, (one.files * 2)[:streams]) for one in both] == [expected, expected]


@pytest.mark.parametrize(
    ("size", "parts", "expected"), [(1 << 20, 16, b"X0"), (1 << 20, 1, b"F7"), (20 << 20, 200, b"F7")]
)
def test_a_large_request(both: list[Held], size: int, parts: int, expected: bytes) -> None:
    heard = []
    for one in both:
        spare = one.take()
        argv = ["/bin/true", *["x" * (size // parts)] * parts]
        send_request(spare.line, argv, cwd="/", env={}, files=one.files)
        heard.append(hear_all(spare.line)[0])

    assert heard == [expected, expected]


def test_arguments_and_variables_arrive_as_they_were_sent(both: list[Held]) -> None:
    outputs = []
    for one in both:
        spare = one.take()
        read, write = os.pipe()
        argv = ["/bin/sh", "-c", 'printf "%s|" "$0" "$@" "$VAR" "$EMPTY"; env | wc -l', "", "a b", "ü\udcff", "=", "\n"]
        send_request(spare.line, argv, cwd="/", env={"VAR": "a=b", "EMPTY": ""}, files=[one.files[0], write, write])
        os.close(write)
        assert hear_all(spare.line) == [b"X0"]
        outputs.append(os.read(read, 4096))
        os.close(read)

    assert outputs[0].startswith("|a b|ü\udcff|=|\n|a=b||".encode("utf-8", "surrogateescape"))
    assert outputs[0] == outputs[1]


def _start(held: Held, *argv: str) -> Spare:
    spare = held.take()
    send_request(spare.line, argv, cwd="/", env={}, files=held.files)
    return spare


def _keepers(held: Held) -> list[int]:
    pid = held.server._process.pid
    return [int(word) for word in Path(f"/proc/{pid}/task/{pid}/children").read_text().split()]


def _find(mark: str) -> list[int]:
    found = []
    for entry in Path("/proc").iterdir():
        if entry.name.isdigit():
            try:
                if mark.encode() in (entry / "cmdline").read_bytes().split(b"\0"):
                    found.append(int(entry.name))
            except OSError:
                continue
    return found


def _new_mark() -> str:
    return str(random.randrange(10**8, 10**9))


def test_a_line_that_is_closed_at_any_moment_ends_its_jail(held: Held) -> None:
    for _ in range(20):
        held.launcher.take(held.jail.plan).line.close()
        held.take().line.close()
        spare = held.launcher.take(held.jail.plan)
        send_request(spare.line, ["/bin/sleep", "1000"], cwd="/", env={}, files=held.files)
        spare.line.close()

    held.server._forget(held.server._profiles.pop(held.jail.plan))
    wait_until(lambda: not _keepers(held))


def test_a_keeper_that_is_killed_takes_its_run_along(held: Held) -> None:
    mark = _new_mark()
    before = set(_keepers(held))
    spare = held.take()
    wait_until(lambda: set(_keepers(held)) - before or before)
    send_request(spare.line, ["/bin/sleep", mark], cwd="/", env={}, files=held.files)
    wait_until(lambda: _find(mark))
    parent = int(Path(f"/proc/{_find(mark)[0]}/stat").read_text().rpartition(")")[2].split()[1])

    os.kill(parent, signal.SIGKILL)

    assert hear_all(spare.line) == []
    wait_until(lambda: not _find(mark))
    assert held.engine.call_sync("true").ok


def test_a_server_that_is_killed_leaves_its_runs_to_their_engine(held: Held) -> None:
    mark = _new_mark()
    running, waiting = _start(held, "/bin/sleep", mark), held.take()
    wait_until(lambda: _find(mark))

    held.server._process.kill()
    held.server._process.wait()
    send_request(waiting.line, ["/bin/false"], cwd="/", env={}, files=held.files)

    assert hear_all(waiting.line) == [b"X1"]
    running.line.close()
    wait_until(lambda: not _find(mark))
    assert held.engine.call_sync("true").ok


def test_a_server_that_is_killed_again_and_again_while_others_call(held: Held) -> None:
    done = threading.Event()

    def kill() -> None:
        while not done.wait(0.05):
            server = held.server
            if server is not None:
                server._process.kill()

    killer = threading.Thread(target=kill)
    killer.start()
    with ThreadPoolExecutor(4) as pool:
        results = list(pool.map(lambda _: held.engine.call_sync("true"), range(60)))
    done.set()
    killer.join()

    refused = {result.error.code for result in results if result.error is not None}
    assert refused <= {"sandbox_unavailable"}
    assert held.engine.call_sync("true").ok or held.engine.call_sync("true").ok


def _count_all(held: Held) -> tuple[int, ...]:
    """Processes, descriptors there and here, groups and mounts."""
    pid = held.server._process.pid
    groups = sum(len(names) for folder, names, _ in os.walk("/sys/fs/cgroup") if folder.endswith(f"glee-{pid}"))
    mounts = len(Path(f"/proc/{pid}/mounts").read_text().splitlines())
    return len(_keepers(held)), _count_files(held), len(list(Path("/proc/self/fd").iterdir())), groups, mounts


def test_a_thousand_calls_leave_nothing(held: Held) -> None:
    held.engine.call_sync("true")
    wait_until(lambda: _count_all(held)[0] == launchers.SPARES)
    gc.collect()
    before = (launchers.SPARES, *_count_all(held)[1:])

    assert all(held.engine.call_sync("true").ok for _ in range(1000))

    wait_until(lambda: all(now <= was for now, was in zip(_count_all(held), before, strict=True)))


def test_what_no_engine_says_ends_the_server_and_the_next_call_starts_another(held: Held) -> None:
    first = held.server._process
    held.server._forget(held.server._profiles.pop(held.jail.plan))
    held.server._control.send(b"")
    first.wait(PATIENCE)

    assert held.engine.call_sync("true").ok
    assert held.server._process.pid != first.pid


@pytest.fixture
def open_folder() -> Iterator[Path]:
    """Which anybody can enter: run by root and without mounts, a run has only the rights of a stranger."""
    base = Path(tempfile.mkdtemp(prefix="launchers-"))
    base.chmod(0o755)
    yield base
    shutil.rmtree(base)


@pytest.mark.parametrize(
    "missing", ["user", "mount pid proc net ipc", "pid proc", "proc", "net", "ipc", "group", "landlock"]
)
@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_run_works_and_ends_whichever_layer_is_missing(open_folder: Path, name: str, missing: str) -> None:
    native, mark = is_native(name), _new_mark()
    with Project(open_folder / "abilities").open() as engine:
        layers = hold_with(engine, native=native).abilities().layers
    held = Held(open_folder, native=native, layers=layers - set(missing.split()))
    spare = held.take()
    script = f"setsid sleep {mark} & (sleep {mark} &) ; exit 3"
    send_request(spare.line, ["/bin/sh", "-c", script], cwd="/", env={"PATH": "/bin"}, files=held.files)

    assert hear_all(spare.line) == [b"X3"]
    assert _find(mark) == []
    held.close()


@pytest.mark.parametrize("name", LAUNCHERS)
def test_a_folder_of_one_run_goes_with_it_however_deep_it_is(open_folder: Path, name: str) -> None:
    held = Held(open_folder, native=is_native(name), layers=frozenset({"landlock", "seccomp"}))
    spare = held.take()
    own = held.launcher.private / spare.name
    nest = "cd tmp; i=0; while [ $i -lt 1500 ]; do mkdir d .glee-0; echo > f; cd d; i=$((i+1)); done; exit 5"
    send_request(spare.line, ["/bin/sh", "-c", nest], cwd=str(own), env={"PATH": "/bin"}, files=held.files)

    assert hear_all(spare.line) == [b"X5"]
    assert not own.exists()
    held.close()


def test_the_engines_umask_is_the_runs_and_not_that_of_the_view(held: Held) -> None:
    before = os.umask(0o077)
    try:
        held.project.add_command(
            "mask", "umask; ls /usr > /dev/null && cat in/data", permissions={"fs": {"read": ["in"]}}
        )
        held.project.write("in/data", "read")
        (held.project.root / "in").chmod(0o755)
        held.server._process.kill()
        held.server._process.wait()
        result = held.engine.call_sync("mask")
    finally:
        os.umask(before)

    assert result.output == "0077\nread", result


BROKEN = {
    "cannot be run": ("#!/gone/long/ago\n", 0o755),
    "may not be run": ("#!/bin/sh\n", 0o644),
    "ends at once": ("#!/bin/sh\nexit 1\n", 0o755),
    "says something else": ("#!/bin/sh\necho hello >&$1\n", 0o755),
}


@pytest.mark.parametrize("name", BROKEN)
def test_a_program_that_does_not_start_is_replaced_by_the_one_in_python(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, name: str
) -> None:
    text, mode = BROKEN[name]
    program = tmp_path / "launcher"
    program.write_text(text)
    program.chmod(mode)
    monkeypatch.setattr(launchers, "NATIVE", program)
    project = Project(tmp_path)
    project.add_command("hello", "echo hello")

    with project.open() as engine:
        assert engine.call_sync("hello").output == "hello\n"

    sure = Launcher(tmp_path / "sure", native=True)
    with pytest.raises(SandboxUnavailable):
        sure.abilities()


def test_a_program_that_ran_before_is_not_replaced_later(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_native("c")
    launcher = Launcher(tmp_path)
    launcher.abilities()
    server = launcher._server
    assert server is not None
    monkeypatch.setattr(launchers, "NATIVE", Path("/gone"))
    server._process.kill()
    server._process.wait()

    with pytest.raises(SandboxUnavailable):
        launcher.abilities()
    launcher.close()


def test_nobody_is_kept_waiting_by_a_server_that_makes_jails(held: Held) -> None:
    """Many at once, more than wait: each is made when it is asked for."""
    spares = [held.launcher.take(held.jail.plan) for _ in range(20)]
    for spare in spares:
        send_request(spare.line, ["/bin/true"], cwd="/", env={}, files=held.files)
    watch = select.poll()
    for spare in spares:
        watch.register(spare.line, select.POLLIN)

    assert [hear_all(spare.line)[-1] for spare in spares] == [b"X0"] * 20
