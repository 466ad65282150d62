"""Programs that could hold tools instead of the kernel's own layers: which are there, and whether they answer."""

from __future__ import annotations

import contextlib
import shutil
import subprocess
from typing import Final, Literal

State = Literal["missing", "silent", "answers", "found"]

_QUESTIONS: Final = {
    "docker": ("info", "--format", "{{.ServerVersion}}"),
    "podman": ("info", "--format", "{{.Version.Version}}"),
}
_PATIENCE: Final = 5.0


class Engines:
    """They are asked at once and take their time, so that others can work meanwhile."""

    def __init__(self, search_path: str) -> None:
        self._asked: dict[str, subprocess.Popen[bytes] | None] = {}
        self._nsjail = shutil.which("nsjail", path=search_path)
        for name, question in _QUESTIONS.items():
            program = shutil.which(name, path=search_path)
            self._asked[name] = _ask([program, *question]) if program else None

    def collect(self) -> dict[str, State]:
        states: dict[str, State] = {name: _hear(process) for name, process in self._asked.items()}
        return {**states, "nsjail": "found" if self._nsjail else "missing"}

    def close(self) -> None:
        """Whoever has not answered is not waited for."""
        for process in self._asked.values():
            if process is not None and process.poll() is None:
                process.kill()
                process.wait()


def _ask(argv: list[str]) -> subprocess.Popen[bytes] | None:
    with contextlib.suppress(OSError):
        quiet = subprocess.DEVNULL
        return subprocess.Popen(argv, stdin=quiet, stdout=quiet, stderr=quiet, start_new_session=True)
    return None


def _hear(process: subprocess.Popen[bytes] | None) -> State:
    if process is None:
        return "missing"
    try:
        return "answers" if process.wait(_PATIENCE) == 0 else "silent"
    except subprocess.TimeoutExpired:
        return "silent"
