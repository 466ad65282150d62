"""Programs that take all they can get: contained, ended with their run, and the machine as it was."""

from __future__ import annotations

import time
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from typing import Any

import pytest

from glee.definitions.call import Call
from glee.engine import Engine
from glee.testing import Project, manifest

pytestmark = pytest.mark.usefixtures("each_launcher")
EAT = """
import os, sys
for _ in range(12):
    if os.fork() == 0:
        break
food = []
while True:
    food.append(bytearray(b"x" * (64 << 20)))
"""


def _add(project: Project, name: str, source: str, **command: Any) -> None:
    project.write(name, source, executable=True)
    project.add_tool(name, manifest(name, "command", {"entrypoint": f"./{name}", "timeout_ms": 20_000, **command}))


def _layers(engine: Engine) -> frozenset[str]:
    return frozenset(engine._parts.runners["command"]._cells.jails.abilities().layers)  # type: ignore[attr-defined]


def test_many_processes_together_get_no_more_memory_than_one_run_may_have(project: Project, engine: Engine) -> None:
    _add(project, "eat", f"#!/usr/bin/env python3\n{EAT}")
    if "group" not in _layers(engine):
        pytest.skip("no control group can be made here, so only each process is bounded")
    free = _available()

    result = engine.call_sync("eat")

    assert result.error is not None
    assert result.error.code in ("exit_code", "timeout")
    assert "isolation=full limits=group" in project.audit_lines[-1]
    assert _available() > free - (1 << 20)


def _available() -> int:
    lines = dict(line.split(":", 1) for line in Path("/proc/meminfo").read_text().splitlines())
    return int(lines["MemAvailable"].split()[0])


def test_one_process_gets_no_more_memory_than_it_may_have(project: Project, engine: Engine) -> None:
    _add(project, "eat", "#!/usr/bin/env python3\nx = bytearray(3 << 30)\n")

    error = engine.call_sync("eat").error

    assert error is not None
    assert "MemoryError" in error.details["stderr"]


@pytest.mark.parametrize("script", [":(){ :|:& };:", "while :; do sleep 1000 & done"])
def test_a_bomb_of_processes_ends_with_its_run(project: Project, engine: Engine, script: str) -> None:
    _add(project, "bomb", f"#!/bin/bash\n{script}\nwait\n", timeout_ms=1500)
    before = len(list(Path("/proc").iterdir()))

    engine.call_sync("bomb")
    project.add_command("after", "echo fine")

    assert engine.call_sync("after").output == "fine\n"
    assert len(list(Path("/proc").iterdir())) < before + 100


def test_no_more_processes_run_at_once_than_a_run_may_have(project: Project, engine: Engine) -> None:
    source = """#!/usr/bin/env python3
import os, time
count = 0
try:
    while count < 2000:
        if os.fork() == 0:
            time.sleep(1000)
        count += 1
except OSError:
    print(count)
"""
    _add(project, "count", source)

    assert int(engine.call_sync("count").output) <= 256


@pytest.mark.parametrize("place", ["/tmp/full", "$HOME/full", "out/full"])
def test_a_file_without_end_is_stopped(project: Project, engine: Engine, place: str) -> None:
    (project.root / "out").mkdir()
    project.add_command("fill", f"cat /dev/zero > {place}", permissions={"fs": {"write": ["out"]}})
    project.configure_person("sandbox: {limits: {file_mb: 20, tmp_mb: 10}}")

    with project.open() as bounded:
        error = bounded.call_sync("fill").error

    assert error is not None
    assert error.code == "exit_code"
    assert sum(path.stat().st_size for path in (project.root / "out").iterdir()) <= 20 << 20


def test_a_daemon_ends_with_its_call(project: Project, engine: Engine) -> None:
    (project.root / "out").mkdir()
    script = (
        "setsid sh -c 'trap \"\" HUP TERM INT; while :; do echo x >> out/beat; done' >/dev/null 2>&1 & echo started"
    )
    project.add_command("daemon", script, permissions={"fs": {"write": ["out"]}})

    assert engine.call_sync("daemon").output == "started\n"
    beat = project.root / "out" / "beat"
    size = beat.stat().st_size if beat.exists() else 0
    engine.call_sync("daemon")
    after = beat.stat().st_size if beat.exists() else 0
    assert (beat.stat().st_size if beat.exists() else 0) == after >= size


def test_groups_of_runs_that_are_over_are_gone(project: Project) -> None:
    project.add_command("hello", "echo hello")

    with project.open() as engine:
        for _ in range(10):
            engine.call_sync("hello")
        server = engine._parts.runners["command"]._cells.jails._launcher._server._process.pid  # type: ignore[attr-defined]

    assert [path for path in Path("/sys/fs/cgroup").glob(f"**/glee-{server}") if path.is_dir()] == []


def test_the_processes_of_one_run_do_not_count_against_another(project: Project, engine: Engine) -> None:
    _add(project, "many", "#!/bin/sh\nfor i in $(seq 60); do sleep 1000 & done\necho started\nsleep 1000\n")
    project.add_command("hello", "echo hello")
    if "user" not in _layers(engine):
        pytest.skip("no user namespaces here, so all runs of this user are counted together")

    with ThreadPoolExecutor(6) as pool:
        many = [pool.submit(engine.call_sync, Call(tool="many", deadline=time.time() + 6)) for _ in range(6)]
        outputs = [engine.call_sync("hello").output for _ in range(20)]
        codes = {future.result().error.code for future in many}  # type: ignore[union-attr]

    assert (outputs, codes) == (["hello\n"] * 20, {"timeout"})
