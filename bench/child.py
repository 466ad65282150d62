"""The parent's end of a contestant: an interpreter started once, asked for a round at a time."""

from __future__ import annotations

import json
import os
import select
import subprocess
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, Final

from bench.measure import ContestantFailed
from bench.peers import ROOT

_PATIENCE: Final = 60.0
"""Seconds a contestant may take to start, or for one round."""


class Child:
    """Speaks lines: `run N` is answered with a JSON list of N times in microseconds."""

    def __init__(self, python: Path, module: str, way: str, *options: str) -> None:
        self._errors = tempfile.TemporaryFile()  # noqa: SIM115
        self._rest = b""
        self._process = subprocess.Popen(
            [python, "-m", "bench.contestants", module, way, *options],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
            stderr=self._errors,
            cwd=ROOT,
            env={**os.environ, "PYTHONWARNINGS": "ignore"},
        )

    def wait_ready(self) -> None:
        """Returns once it has warmed up."""
        self._read()

    def run(self, calls: int) -> Sequence[float]:
        assert self._process.stdin
        try:
            self._process.stdin.write(f"run {calls}\n".encode())
            self._process.stdin.flush()
        except BrokenPipeError:
            raise self._failure("ended") from None
        times: list[float] = self._read()
        return times

    def _read(self) -> Any:
        assert self._process.stdout
        until = time.monotonic() + _PATIENCE
        while b"\n" not in self._rest:
            ready, _, _ = select.select([self._process.stdout], [], [], max(until - time.monotonic(), 0))
            if not ready:
                raise self._failure(f"gave no answer within {_PATIENCE:.0f} s")
            data = os.read(self._process.stdout.fileno(), 1 << 20)
            if not data:
                raise self._failure("ended")
            self._rest += data
        line, _, self._rest = self._rest.partition(b"\n")
        return json.loads(line)

    def _failure(self, what: str) -> ContestantFailed:
        self._errors.seek(0)
        said = self._errors.read().decode("utf-8", "replace").strip().splitlines()
        return ContestantFailed(f"{what}: {said[-1]}" if said else what)

    def close(self) -> None:
        """The end of its input is a contestant's sign to tidy up and go."""
        assert self._process.stdin and self._process.stdout
        try:
            self._process.stdin.close()
            self._process.wait(timeout=10)
        except (BrokenPipeError, subprocess.TimeoutExpired):
            self._process.kill()
            self._process.wait()
        self._process.stdout.close()
        self._errors.close()
