"""Whole commands, timed from outside, in folders of their own so that nobody's config or cache is touched."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Final

from bench.measure import ContestantFailed

GLEE: Final = Path(sys.executable).with_name("glee")
SETTLE: Final = 2.5
"""Seconds after which Glee takes a manifest's timestamp for settled, and caches it."""
_PATIENCE: Final = 120.0
"""Seconds a command may take."""


def own_environment(base: Path) -> dict[str, str]:
    """The person's environment with every folder of theirs moved below `base`."""
    homes = {f"XDG_{name}_HOME": str(base / name.lower()) for name in ("CONFIG", "STATE", "CACHE", "DATA")}
    return {**os.environ, **homes, "HOME": str(base), "LLM_USER_PATH": str(base / "llm"), "NO_COLOR": "1"}


def time_command(command: Sequence[str | Path], *, env: dict[str, str], cwd: Path) -> float:
    """Milliseconds to its end; one that fails says so instead."""
    began = time.perf_counter()
    try:
        done = subprocess.run(
            command, env=env, cwd=cwd, stdin=subprocess.DEVNULL, capture_output=True, timeout=_PATIENCE
        )
    except (OSError, subprocess.TimeoutExpired) as error:
        raise ContestantFailed(str(error)) from error
    took = (time.perf_counter() - began) * 1000
    if done.returncode != 0:
        said = (done.stderr or done.stdout).decode("utf-8", "replace").strip().splitlines()
        raise ContestantFailed(f"ended with exit code {done.returncode}{': ' + said[-1] if said else ''}")
    return took


def command_turn(command: Sequence[str | Path], *, env: dict[str, str], cwd: Path) -> Callable[[], list[float]]:
    return lambda: [time_command(command, env=env, cwd=cwd)]
