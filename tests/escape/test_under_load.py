"""Many runs, many at once, and parts of Glee killed in between: nothing is left, and the next call works."""

from __future__ import annotations

import gc
import os
import random
import signal
import socket
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest
from process_watch import count_descriptors, find_processes, new_mark, wait_for, wait_gone

from glee.engine import Engine
from glee.sandbox.launcher import SPARES
from glee.testing import Project, manifest

IN_A_ROW = 10_000
AT_ONCE = 200


def _server(engine: Engine) -> Any:
    return engine._parts.runners._cells.jails._launcher._server  # type: ignore[attr-defined]


def _left(engine: Engine) -> dict[str, int]:
    """What there is of each thing that a run could leave behind."""
    server = _server(engine)._process.pid
    children = Path(f"/proc/{server}/task/{server}/children").read_text().split()
    found = os.walk("/sys/fs/cgroup")  # which passes over what is gone meanwhile
    groups = [name for folder, names, _ in found if folder.endswith(f"/glee-{server}") for name in names]
    return {
        "descriptors": count_descriptors(),
        "descriptors of the server": len(list(Path(f"/proc/{server}/fd").iterdir())),
        "jails": len(children),
        "mounts": len(Path(f"/proc/{server}/mounts").read_text().splitlines()),
        "groups": len(set(groups)),
    }


def _memory(pid: int) -> int:
    """Kilobytes that are this process's alone."""
    lines = Path(f"/proc/{pid}/smaps_rollup").read_text().splitlines()
    return sum(int(line.split()[1]) for line in lines if line.startswith("Private_"))


def test_ten_thousand_calls_in_a_row_leave_nothing(project: Project, engine: Engine) -> None:
    project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
    assert all(engine.call_sync("true").ok for _ in range(200))
    wait_for(lambda: _left(engine)["jails"] == SPARES)
    gc.collect()
    before, memory = _left(engine), (_memory(os.getpid()), _memory(_server(engine)._process.pid))

    assert all(engine.call_sync("true").ok for _ in range(IN_A_ROW))

    assert wait_for(lambda: _left(engine)["jails"] == SPARES and _left(engine)["groups"] <= before["groups"])
    gc.collect()
    assert _left(engine) == before
    grown = (_memory(os.getpid()) - memory[0], _memory(_server(engine)._process.pid) - memory[1])
    assert all(kilobytes < 20_000 for kilobytes in grown), grown


def test_two_hundred_calls_at_once_leave_nothing(project: Project, engine: Engine) -> None:
    project.add_command("hello", "echo $1", command={"args": ["${n}"]}, inputs=_takes_n())
    assert engine.call_sync("hello", {"n": "0"}).ok
    wait_for(lambda: _left(engine)["jails"] == SPARES)
    before = _left(engine)

    with ThreadPoolExecutor(AT_ONCE) as pool:
        outputs = list(pool.map(lambda n: engine.call_sync("hello", {"n": str(n)}).output, range(AT_ONCE)))

    assert outputs == [f"{n}\n" for n in range(AT_ONCE)]
    assert wait_for(lambda: _left(engine) == before), (_left(engine), before)


def _takes_n() -> dict[str, Any]:
    return {"schema": {"type": "object", "properties": {"n": {"type": "string"}}}}


def test_many_tools_with_jails_of_their_own_are_bounded(project: Project, engine: Engine) -> None:
    for number in range(80):
        project.write(f"data/{number}/x", "")
        grants = {"fs": {"read": [f"data/{number}"]}}
        project.add_tool(
            f"t{number}", manifest(f"t{number}", "command", {"entrypoint": "/bin/true"}, permissions=grants)
        )

    assert all(engine.call_sync(f"t{number}").ok for number in range(80))

    assert wait_for(lambda: _left(engine)["jails"] <= 32 * SPARES), _left(engine)
    assert engine.call_sync("t0").ok


@pytest.mark.parametrize("seed", range(5))
def test_the_fork_server_can_be_killed_at_any_moment(project: Project, engine: Engine, seed: int) -> None:
    mark = new_mark()
    project.add_command("work", f"sleep 0.0{mark[-3:]}; echo {mark}")
    chance = random.Random(seed)
    assert engine.call_sync("work").ok

    with ThreadPoolExecutor(4) as pool:
        for _ in range(5):
            calls = [pool.submit(engine.call_sync, "work") for _ in range(4)]
            pid = _server(engine)._process.pid
            for _ in range(chance.randrange(20_000)):
                pass
            os.kill(pid, signal.SIGKILL)
            codes = {call.result().error.code for call in calls if call.result().error}  # type: ignore[union-attr]
            assert codes <= {"sandbox_unavailable"}, codes

    assert wait_for(lambda: engine.call_sync("work").ok)
    wait_gone(mark)


PROGRAM = """
import sys, threading
from pathlib import Path
from glee.compose import open_engine

engine = open_engine(Path(sys.argv[1]))
engine.call_sync("quick")
print("ready", flush=True)
for _ in range(4):
    threading.Thread(target=engine.call_sync, args=("slow",), daemon=True).start()
while True:
    engine.call_sync("quick")
"""


@pytest.mark.parametrize("milliseconds", [0, 3, 20, 60, 150])
def test_when_glee_is_killed_nothing_stays(project: Project, milliseconds: int) -> None:
    mark = new_mark()
    project.add_command("slow", f"(trap '' TERM HUP; setsid sleep {mark}) & sleep {mark}")
    project.add_command("quick", f"true {mark}")
    process = subprocess.Popen(
        [sys.executable, "-c", textwrap.dedent(PROGRAM), str(project.root)],
        env={**os.environ, **project.environ},
        stdout=subprocess.PIPE,
        start_new_session=True,
    )
    assert process.stdout is not None
    process.stdout.readline()
    pids = _descendants(process.pid)
    mounts = _count_mounts()

    subprocess.run([sys.executable, "-c", f"import time; time.sleep({milliseconds / 1000})"], check=True)
    pids |= _descendants(process.pid)
    process.kill()
    process.wait()
    process.stdout.close()

    wait_gone(mark)
    assert wait_for(lambda: not any(Path(f"/proc/{pid}").exists() for pid in pids))
    assert _count_mounts() <= mounts
    assert find_processes(mark) == []


def _descendants(pid: int) -> set[int]:
    found: set[int] = set()
    waiting = [pid]
    while waiting:
        for thread in Path(f"/proc/{waiting.pop()}/task").glob("*/children"):
            try:
                children = list(map(int, thread.read_text().split()))
            except OSError:
                continue
            found.update(children)
            waiting += children
    return found


def _count_mounts() -> int:
    return len(Path("/proc/self/mounts").read_text().splitlines())


def test_an_owner_can_hand_a_run_on_to_another_process(project: Project, engine: Engine, tmp_path: Path) -> None:
    """Whoever holds the line owns the run: it ends when the last owner lets go."""
    project.add_command("hello", "echo hello")
    engine.call_sync("hello")
    jails = engine._parts.runners._cells.jails  # type: ignore[attr-defined]
    tool = engine.find("hello")
    assert tool is not None
    mark = new_mark()
    jail = jails.get(tool, Path("/bin/sleep"), cwd=project.root)
    spare = jail.take()
    null = os.open(os.devnull, os.O_RDWR)
    jail.send(spare, ["/bin/sleep", mark], env={}, files=[null, null, null])
    os.close(null)
    assert wait_for(lambda: find_processes(mark))

    ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
    source = (
        "import socket, sys; line = socket.socket(fileno=int(sys.argv[1])); held = socket.recv_fds(line, 9, 1); "
        "line.send(b'has it'); line.recv(9)"
    )
    other = subprocess.Popen([sys.executable, "-c", source, str(theirs.fileno())], pass_fds=[theirs.fileno()])
    theirs.close()
    socket.send_fds(ours, [b"take it"], [spare.line.fileno()])
    assert ours.recv(9) == b"has it"
    spare.line.close()
    still = find_processes(mark)
    ours.close()
    other.wait()

    assert still
    wait_gone(mark)


def test_a_process_forked_from_glees_has_a_server_of_its_own(project: Project, engine: Engine) -> None:
    """Whatever lock another thread held at that moment."""
    project.add_command("hello", "echo hello")
    engine.call_sync("hello")
    launcher = engine._parts.runners._cells.jails._launcher  # type: ignore[attr-defined]

    with launcher._lock:
        pid = os.fork()
        if pid == 0:
            os._exit(0 if engine.call_sync("hello").output == "hello\n" else 1)

    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert engine.call_sync("hello").output == "hello\n"
