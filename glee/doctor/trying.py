"""One set of layers put to the test: a jail made as for any tool, and a prisoner in it who tries everything."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import sys
from collections.abc import Iterable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

from glee.config import Settings
from glee.definitions.tool import CommandExec, Origin, Tool
from glee.doctor.world import World, find_marked
from glee.errors import CallError, SandboxUnavailable
from glee.runners.jailed import JailedProcess
from glee.runners.plain import PlainProcess
from glee.runners.processes import run_process
from glee.sandbox import prisoner
from glee.sandbox.jails import Jails
from glee.sandbox.syscalls import numbers
from glee.sandbox.trials import Trial
from glee.secrets.redaction import Redactor

_PATIENCE: Final = 60.0
_OUTPUT_BYTES: Final = 1 << 20
_MB: Final = 1 << 20
_SYSTEM_PYTHON: Final = "/usr/bin/python3"
PRISONER: Final = Tool(
    name="doctor",
    description="Tries to get out",
    kind="command",
    inputs={},
    exec=CommandExec(entrypoint=sys.executable),
    origin=Origin(source="program", location="glee.doctor"),
    limits={"memory_mb": 96, "processes": 20, "file_mb": 8},
)
"""A tool with no permission, and with limits that are quickly reached."""


class Outcome(Struct, frozen=True):
    held: bool
    answer: str
    """Of the system; empty if it let the trial succeed."""


def try_all(
    jails: Jails, trials: Sequence[Trial], world: World, settings: Settings, *, plain: bool = False
) -> dict[str, Outcome]:
    """By the name of the trial. Raises SandboxUnavailable if no jail could be made, so that nothing was tried.

    With `plain` they are tried outside of any jail, by an ordinary process of this user.
    """
    words = json.dumps({**_describe(jails, trials, world, settings), "mark": world.mark})
    fault: CallError = SandboxUnavailable("there is no Python that a jail could run")
    for program in _find_programs():
        try:
            output = _run(None if plain else jails, program, words, world, settings.search_path)
        except CallError as error:
            fault = error
            continue
        finally:
            left = _end_marked(world.mark)
        said = _read(output)
        if said:
            return {trial.name: _judge(trial, said.get(number), left) for number, trial in enumerate(trials)}
        fault = SandboxUnavailable(f"{program} said nothing in its jail")
    raise SandboxUnavailable(fault.message) from fault


def _find_programs() -> Iterable[Path]:
    """Root's own interpreter may lie where the run, who is not root, cannot go; then the system's has to do."""
    yield Path(sys.executable)
    if Path(_SYSTEM_PYTHON).exists() and os.getuid() == 0:
        yield Path(_SYSTEM_PYTHON)


def _describe(jails: Jails, trials: Sequence[Trial], world: World, settings: Settings) -> dict[str, Any]:
    abilities = jails.abilities()
    bounds = settings.sandbox.limits.narrow(PRISONER.limits)
    others = 0 if abilities.layers & {"user", "group"} else 2 * abilities.running
    limits = {
        "MEMORY": bounds.memory_mb * _MB,
        "FILE": bounds.file_mb * _MB,
        "PROCESSES": bounds.processes + others,
    }
    return {
        "codes": [trial.code for trial in trials],
        "world": {**world.names, **limits},
        "numbers": numbers(abilities.machine),
    }


def _run(jails: Jails | None, program: Path, words: str, world: World, search_path: str) -> bytes:
    root = Path("/")
    process = PlainProcess() if jails is None else JailedProcess(jails.get(PRISONER, program, cwd=root))
    finished = asyncio.run(
        run_process(
            process,
            [str(program), "-I", "-S", "-c", Path(prisoner.__file__).read_text(), words],
            cwd=root,
            env={
                "PATH": search_path,
                "LANG": "C.UTF-8",
                **({"TMPDIR": world.names["FOLDER"]} if jails is None else {}),
            },
            timeout=_PATIENCE,
            output_bytes=_OUTPUT_BYTES,
            redactor=Redactor(()),
            stdin=world.terminal,
        )
    )
    return finished.stdout


def _end_marked(mark: str) -> bool:
    """True if something of the run was left."""
    left = find_marked(mark)
    for pid in left:
        with suppress(ProcessLookupError):
            os.kill(pid, signal.SIGKILL)
    return bool(left)


def _read(output: bytes) -> dict[int, Outcome]:
    """A trial that began and was never heard of again took the whole run with it."""
    said: dict[int, Outcome] = {}
    for line in output.splitlines():
        with suppress(ValueError):
            number, *outcome = json.loads(line)
            said[number] = Outcome(*outcome) if outcome else Outcome(True, "the run was ended")
    return said


def _judge(trial: Trial, outcome: Outcome | None, left: bool) -> Outcome:
    if outcome is None:
        return Outcome(False, "it was not tried")
    if trial.is_judged_after:
        return Outcome(not left, "" if left else "it was ended with the run")
    return outcome
