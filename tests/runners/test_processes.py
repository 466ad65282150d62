"""However a run ends, every process it started is gone: each test looks for them all."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
import time
from collections.abc import Iterator

import pytest
from process_watch import (
    PATIENCE,
    count_descriptors,
    find_processes,
    find_zombies,
    new_mark,
    wait_gone,
    wait_there,
)
from tool_parts import bare, failure, success

from glee.engine import Engine
from glee.testing import READS, Project, manifest

SLEEPERS = {
    "itself": "exec sleep MARK",
    "a child": "sleep MARK",
    "children in the background": "sleep MARK & sleep MARK & wait",
    "grandchildren": """(sh -c 'sleep MARK & sleep MARK; :' & wait) & wait""",
    "a daemon": """
        setsid sh -c 'setsid sleep MARK <&- >&- 2>&- & exit' <&- >&- 2>&-
        sleep MARK
    """,
    "a daemon with an empty environment": """
        (env -i /usr/bin/setsid /bin/sh -c '/usr/bin/setsid /bin/sleep MARK <&- >&- 2>&- &' <&- >&- 2>&- &)
        sleep MARK
    """,
    "one that ignores signals": "trap '' TERM INT HUP QUIT; setsid sleep MARK & sleep MARK",
    "a storm of sessions": """
        i=0
        while [ $i -lt 40 ]; do setsid sleep MARK & i=$((i + 1)); done
        wait
    """,
    "a storm of forks": """
        branch() {
            if [ $1 -gt 0 ]; then branch $(($1 - 1)) & branch $(($1 - 1)) & fi
            setsid sleep MARK
        }
        branch 5
    """,
}
EVERYTHING = """
    (env -i /usr/bin/setsid /bin/sh -c '/usr/bin/setsid /bin/sleep MARK <&- >&- 2>&- &' <&- >&- 2>&- &)
    trap '' TERM INT HUP QUIT
    setsid sleep MARK &
    sleep MARK & sleep MARK
"""
WARNINGS = {
    "native": (),
    "off": ("the sandbox is off in your config, so nothing held this tool to its permissions",),
}


@pytest.fixture
def engine(project: Project, mode: str) -> Iterator[Engine]:
    """Every test is made twice: held by the kernel, and with the sandbox off."""
    with project.open() as opened:
        yield opened


@pytest.fixture(params=SLEEPERS)
def sleeper(request: pytest.FixtureRequest) -> str:
    return SLEEPERS[request.param]


def test_a_timeout_ends_every_process(project: Project, engine: Engine, mode: str, sleeper: str) -> None:
    mark = new_mark()
    project.add_command("sleep", sleeper.replace("MARK", mark), command={"timeout_ms": 300})

    result = engine.call_sync("sleep")

    assert bare(result) == failure(
        "sleep",
        "timeout",
        "the tool ran longer than 0.3 s and was ended; give it less to do, or raise timeout_ms",
        {"timeout_ms": 300},
        warnings=WARNINGS[mode],
    )
    wait_gone(mark)


def test_a_cancelled_caller_ends_every_process(project: Project, engine: Engine, sleeper: str) -> None:
    mark = new_mark()
    project.add_command("sleep", sleeper.replace("MARK", mark))
    count = 40 if "40" in sleeper else 30 if "branch" in sleeper else sleeper.count("MARK")

    async def call_and_cancel() -> None:
        task = asyncio.create_task(engine.call("sleep"))
        while len(find_processes(mark)) < count:
            await asyncio.sleep(0.005)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    asyncio.run(asyncio.wait_for(call_and_cancel(), PATIENCE))

    wait_gone(mark)
    assert " status=cancelled " in project.audit_lines[-1]


def test_a_deadline_of_the_caller_ends_every_process(project: Project, engine: Engine) -> None:
    from glee import Call

    mark = new_mark()
    project.add_command("sleep", EVERYTHING.replace("MARK", mark))

    result = engine.call_sync(Call(tool="sleep", deadline=time.time() + 0.4))

    assert result.error is not None
    assert result.error.code == "timeout"
    wait_gone(mark)


def test_a_tool_that_ends_leaves_no_process_in_its_group(project: Project, engine: Engine, mode: str) -> None:
    mark = new_mark()
    project.add_command("start", f"sleep {mark} & echo started")

    assert bare(engine.call_sync("start")) == success("start", "started\n", exit_code=0, warnings=WARNINGS[mode])
    wait_gone(mark)


@pytest.mark.parametrize("descriptors", ["", "</dev/null >/dev/null 2>&1", "<&- >&- 2>&-"])
def test_a_tool_that_ends_leaves_no_daemon(project: Project, engine: Engine, mode: str, descriptors: str) -> None:
    mark = new_mark()
    project.add_command(
        "start",
        f"""
        env -i /usr/bin/setsid /bin/sh -c 'sleep {mark} & exit' {descriptors}
        while ! grep -qs {mark} /proc/[0-9]*/cmdline; do :; done
        echo started
        """,
    )

    assert bare(engine.call_sync("start")) == success("start", "started\n", exit_code=0, warnings=WARNINGS[mode])
    wait_gone(mark)


def test_a_tool_that_fails_leaves_no_daemon(project: Project, engine: Engine) -> None:
    mark = new_mark()
    project.add_command("start", f"setsid sleep {mark} <&- >&- 2>&- & exit 1")

    assert engine.call_sync("start").exit_code == 1
    wait_gone(mark)


def test_a_tool_that_never_stops_talking_still_runs_out_of_time(project: Project, engine: Engine) -> None:
    mark = new_mark()
    project.add_command("talk", f"sleep {mark} & exec dd if=/dev/zero bs=1", command={"timeout_ms": 300})
    began = time.monotonic()

    result = engine.call_sync("talk")

    assert result.error is not None
    assert (result.error.code, time.monotonic() - began < 5) == ("timeout", True)
    wait_gone(mark)


@pytest.mark.parametrize("inner", ["native", "off"])
def test_glee_inside_a_tool_leaves_nothing_when_the_tool_runs_out_of_time(project: Project, inner: str) -> None:
    """Only without a sandbox: a tool that is held cannot write to the record, so Glee runs nothing in it."""
    mark = new_mark()
    main = f"HOME={project.root} {sys.executable} -c 'from glee.doors.cli import main; main()'"
    project.configure_person("sandbox: {mode: 'off'}")
    project.write(".config/glee/config.yml", f"sandbox: {{mode: '{inner}'}}")
    project.add_command("inner", f"setsid sleep {mark} & sleep {mark}")
    project.add_command("outer", f"{main} run inner", command={"timeout_ms": 60000})

    async def call_and_cancel() -> None:
        async with project.open() as engine:
            task = asyncio.create_task(engine.call("outer"))
            while len(find_processes(mark)) < 2:
                await asyncio.sleep(0.005)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(asyncio.wait_for(call_and_cancel(), PATIENCE))

    wait_gone(mark)


def test_a_process_that_another_thread_starts_at_the_same_moment_is_left_alone(
    project: Project, engine: Engine
) -> None:
    mark, stop = new_mark(), threading.Event()
    others: list[subprocess.Popen[bytes]] = []

    def start_others() -> None:
        while not stop.is_set() and len(others) < 200:
            others.append(subprocess.Popen(["sleep", mark]))

    project.add_command("hang", "setsid sleep 1000 & sleep 1000", command={"timeout_ms": 10})
    thread = threading.Thread(target=start_others)
    thread.start()
    try:
        assert [engine.call_sync("hang").ok for _ in range(15)] == [False] * 15
        stop.set()
        thread.join()
        assert {other.poll() for other in others} == {None}
    finally:
        stop.set()
        for other in others:
            other.kill()
            other.wait()


def test_processes_of_others_are_left_alone(project: Project, engine: Engine) -> None:
    mark = new_mark()
    with subprocess.Popen(["sleep", mark]) as other:
        project.add_command("sleep", f"sleep {new_mark()}", command={"timeout_ms": 100})

        assert engine.call_sync("sleep").ok is False

        assert (other.poll(), find_processes(mark)) == (None, [other.pid])
        other.kill()


def test_a_run_at_the_same_time_is_left_alone(project: Project, engine: Engine) -> None:
    go = project.root / "go"
    project.add_command("wait", "while [ ! -e go ]; do sleep 0.02; done; echo done", permissions=READS)
    mark = new_mark()
    project.add_command("sleep", f"setsid sleep {mark} & wait", command={"timeout_ms": 100})

    async def both() -> tuple[str | None, object]:
        waiting = asyncio.create_task(engine.call("wait"))
        ended = await engine.call("sleep")
        go.touch()
        return ended.error and ended.error.code, (await waiting).output

    assert asyncio.run(both()) == ("timeout", "done\n")
    wait_gone(mark)


def test_an_event_loop_is_not_held_up_by_a_running_program(project: Project, engine: Engine) -> None:
    go = project.root / "go"
    project.add_command("wait", "while [ ! -e go ]; do sleep 0.02; done; echo done", permissions=READS)

    async def many() -> list[object]:
        waiting = [asyncio.create_task(engine.call("wait")) for _ in range(5)]
        await asyncio.sleep(0)
        go.touch()
        return [(await task).output for task in waiting]

    assert asyncio.run(asyncio.wait_for(many(), PATIENCE)) == ["done\n"] * 5


def test_ctrl_c_in_the_terminal_ends_every_process(project: Project, mode: str) -> None:
    mark = new_mark()
    project.add_command("sleep", EVERYTHING.replace("MARK", mark))

    status, stderr = _end_glee(project, "sleep", mark, 4)

    assert (status, "Traceback" in stderr) == (130, False)
    wait_gone(mark)
    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_CALLED", "TOOL_EXECUTED"]
    assert " status=cancelled " in project.audit_lines[-1]


def test_ctrl_c_ends_a_python_tool_and_what_it_started(project: Project, mode: str) -> None:
    mark = new_mark()
    project.add_python(
        "sleep",
        f"""
        import subprocess

        def run():
            subprocess.Popen(["setsid", "sleep", "{mark}"])
            subprocess.run(["sleep", "{mark}"])
        """,
    )

    status, stderr = _end_glee(project, "sleep", mark, 2)

    assert (status, "Traceback" in stderr) == (130, False)
    wait_gone(mark)


def test_when_glee_itself_is_killed_the_sandbox_still_ends_every_process(project: Project) -> None:
    mark = new_mark()
    project.add_command("sleep", EVERYTHING.replace("MARK", mark))

    assert _end_glee(project, "sleep", mark, 4, signal.SIGKILL)[0] == -signal.SIGKILL
    wait_gone(mark)


def _end_glee(project: Project, tool: str, mark: str, count: int, number: int = signal.SIGINT) -> tuple[int, str]:
    """`glee run` as the foreground of a terminal has it, and then Ctrl-C or another signal."""
    main = "from glee.doors.cli import main; main()"
    with subprocess.Popen(
        [sys.executable, "-c", main, "run", tool],
        cwd=project.root,
        env=project.environ,
        stdin=subprocess.DEVNULL,
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
        start_new_session=True,
        text=True,
    ) as glee:
        try:
            wait_there(mark, count)
            os.killpg(glee.pid, number)
            _, stderr = glee.communicate(timeout=PATIENCE)
        finally:
            glee.kill()
    return glee.returncode, stderr


def test_many_runs_leave_no_zombie_and_no_descriptor(project: Project, engine: Engine) -> None:
    project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))
    engine.call_sync("true")
    before = count_descriptors()

    assert all(engine.call_sync("true").ok for _ in range(200))

    assert (count_descriptors(), find_zombies()) == (before, [])


def test_runs_that_fail_leave_no_zombie_and_no_descriptor(project: Project, mode: str) -> None:
    project.configure("limits: {output_bytes: 1024}")
    project.add_command("fail", "exit 1")
    project.add_command("flood", "yes")
    project.add_command("hang", "sleep 1000", command={"timeout_ms": 20})
    project.write("bad", "#!/no/such/interpreter\n", executable=True)
    project.add_tool("bad", manifest("bad", "command", {"entrypoint": "./bad"}))
    project.add_python("crash", "import os\ndef run():\n    os._exit(1)\n")
    project.add_python("gone", "def run():\n    pass\n", python={"cwd": "no-such-folder"})
    names = ("fail", "flood", "hang", "bad", "crash", "gone")
    with project.open() as engine:
        for name in names:
            engine.call_sync(name)
        before = count_descriptors()

        codes = [[engine.call_sync(name).error.code for name in names] for _ in range(5)]  # type: ignore[union-attr]

        assert codes == [["exit_code", "too_large", "timeout", "unavailable", "exit_code", "unavailable"]] * 5
        assert find_zombies() == []
        assert count_descriptors() <= before  # less if the template of a tool has turned out to be of no use


def test_awaited_runs_leave_no_descriptor(project: Project, engine: Engine) -> None:
    project.add_command("hang", "sleep 1000")
    project.add_tool("true", manifest("true", "command", {"entrypoint": "/bin/true"}))

    async def hang_up() -> None:
        task = asyncio.create_task(engine.call("hang"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)

    async def measure() -> tuple[int, int]:
        await engine.call("true")
        await hang_up()
        before = count_descriptors()
        results = await asyncio.gather(*(engine.call("true") for _ in range(20)))
        assert all(result.ok for result in results)
        for _ in range(5):
            await hang_up()
        return before, count_descriptors()

    before, after = asyncio.run(measure())
    assert (after, find_zombies()) == (before, [])
