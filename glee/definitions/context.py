"""What a running function may know of its call: the parameter annotated `glee.Context`."""

from __future__ import annotations

import threading
from collections.abc import Callable, Mapping
from pathlib import Path

from glee.definitions.call import Caller

ProgressSink = Callable[[float | None, float | None, str], None]


class Context:
    """Handed to a function that asks for it; never part of its schema."""

    __slots__ = (
        "_cancelled",
        "_progress",
        "call_id",
        "caller",
        "environment",
        "sandbox",
        "session",
        "workdir",
    )

    def __init__(
        self,
        *,
        call_id: str,
        caller: Caller,
        workdir: Path,
        environment: Mapping[str, str],
        sandbox: str,
        progress: ProgressSink,
        cancelled: threading.Event,
    ) -> None:
        self.call_id = call_id
        self.caller = caller
        self.session = caller.session
        self.workdir = workdir
        self.environment = environment
        """The declared secrets, by name, and nothing else."""
        self.sandbox = sandbox
        """In words: what holds this run."""
        self._progress = progress
        self._cancelled = cancelled

    @property
    def cancelled(self) -> bool:
        """True once nobody waits for the result: the caller went away or the time is up."""
        return self._cancelled.is_set()

    def wait_cancelled(self, seconds: float) -> bool:
        """Pauses, and returns at once with True when the call is cancelled meanwhile."""
        return self._cancelled.wait(seconds)

    def progress(self, done: float | None = None, total: float | None = None, message: str = "") -> None:
        """Tells whoever listens how far the work is."""
        self._progress(done, total, message)

    def __repr__(self) -> str:
        return f"<Context of call {self.call_id}>"
