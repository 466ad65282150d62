"""A person's shell: the real program in a process of its own, behind pipes or on a pseudo-terminal."""

from __future__ import annotations

import contextlib
import fcntl
import json
import os
import pty
import select
import signal
import struct
import subprocess
import sys
import termios
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

from glee.testing import Project

PROGRAM = str(Path(sys.executable).with_name("glee"))
CTRL_C = "\x03"
CTRL_D = "\x04"
PATIENCE = 60.0
"""Seconds after which something that should have happened has not, on the slowest machine."""


class Ran(NamedTuple):
    status: int
    out: str
    err: str

    @property
    def json(self) -> Any:
        return json.loads(self.out)


class Glee:
    """`glee("run", "x")` runs the program in a project of its own, with folders of its own."""

    def __init__(self, base: Path) -> None:
        self.base = base
        self.project = Project(base)
        self.root = self.project.root
        self.environ = {**self.project.environ, "LANG": "C.UTF-8", "TERM": "xterm-256color"}

    def __call__(
        self,
        *args: str | bytes,
        cwd: Path | None = None,
        stdin: str | None = None,
        env: dict[str, str] | None = None,
    ) -> Ran:
        done = subprocess.run(
            [PROGRAM, *args],
            cwd=cwd or self.root,
            env={**self.environ, **(env or {})},
            input=(stdin or "").encode(),
            capture_output=True,
            timeout=PATIENCE,
            check=False,
        )
        return Ran(done.returncode, done.stdout.decode("utf-8", "replace"), done.stderr.decode("utf-8", "replace"))

    def sh(self, script: str, **env: str) -> Ran:
        """A shell script in the project, with the program as `$glee`."""
        done = subprocess.run(
            ["/bin/sh", "-c", script],
            cwd=self.root,
            env={**self.environ, "glee": PROGRAM, **env},
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            errors="replace",
            timeout=PATIENCE,
            check=False,
        )
        return Ran(done.returncode, done.stdout, done.stderr)

    def start(self, *args: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [PROGRAM, *args],
            cwd=self.root,
            env=self.environ,
            stdin=subprocess.DEVNULL,
            stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
        )

    def on_terminal(self, *args: str, columns: int = 80, piped: bool = False, **env: str) -> Terminal:
        return Terminal([PROGRAM, *args], self.root, {**self.environ, **env}, columns=columns, piped=piped)


class Terminal:
    """What a person sees and types. With `piped`, standard output goes elsewhere."""

    def __init__(self, argv: list[str], cwd: Path, env: dict[str, str], *, columns: int, piped: bool) -> None:
        self._screen, theirs = pty.openpty()
        fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 24, columns, 0, 0))
        self.process = subprocess.Popen(
            argv,
            cwd=cwd,
            env=env,
            stdin=theirs,
            stdout=subprocess.PIPE if piped else theirs,
            stderr=theirs,
            start_new_session=True,
            preexec_fn=lambda: fcntl.ioctl(0, termios.TIOCSCTTY, 0) and None,
        )
        os.close(theirs)
        self.seen = ""
        self._over = False

    def expect(self, text: str) -> None:
        """Reads until a text is on the screen."""
        deadline = time.monotonic() + PATIENCE
        while text not in self.seen:
            if not self._read(deadline - time.monotonic()):
                raise AssertionError(f"{text!r} never appeared in {self.seen!r}")

    def type(self, text: str) -> None:
        os.write(self._screen, text.encode())

    def end(self, key: str = "") -> int:
        """Presses a key, reads to the end, and returns the exit status.

        Ctrl-C is pressed again if nothing comes of it, as a person would: a signal that comes in the
        instant before input() waits is seen only when it returns.
        """
        deadline = time.monotonic() + PATIENCE
        self.type(key)
        while not self._over and time.monotonic() < deadline:
            if not self._read(2.0) and key == CTRL_C and not self._over:
                self.type(key)
        self.piped = self.process.stdout.read().decode() if self.process.stdout else ""
        status = self.process.wait(timeout=PATIENCE)
        self.close()
        return status

    def hang_up(self) -> None:
        """Closes the window."""
        os.close(self._screen)

    def _read(self, seconds: float) -> bool:
        ready, _, _ = select.select([self._screen], [], [], max(0.0, seconds))
        if not ready:
            return False
        try:
            data = os.read(self._screen, 65536)
        except OSError:  # EIO: the other side is closed
            self._over = True
            return False
        self.seen += data.decode("utf-8", "replace")
        return bool(data)

    def close(self) -> None:
        if self.process.stdout:
            self.process.stdout.close()
        with contextlib.suppress(OSError):
            os.close(self._screen)
        if self.process.poll() is None:
            self.process.send_signal(signal.SIGKILL)
            self.process.wait()


def wait_until(condition: Callable[[], Any]) -> None:
    """Looks again and again until something holds."""
    deadline = time.monotonic() + PATIENCE
    pause = select.poll()
    while not condition():
        assert time.monotonic() < deadline, "it never happened"
        pause.poll(10)


def inputs(*required: str, closed: bool = True, **properties: Any) -> dict[str, Any]:
    """The `inputs` of a manifest."""
    schema: dict[str, Any] = {"type": "object", "properties": properties, "required": list(required)}
    if closed:
        schema["additionalProperties"] = False
    return {"schema": schema}
