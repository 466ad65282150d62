"""Threads that can be left behind: a plain function cannot be stopped, only no longer waited for."""

from __future__ import annotations

import contextvars
import threading
from collections.abc import Callable
from queue import SimpleQueue
from typing import Any

from glee.runners.marks import IDLE
from glee.runners.waiting import running_loop


class Work:
    """One function call in another thread."""

    def __init__(self, function: Callable[[], Any]) -> None:
        self._context = contextvars.copy_context()
        self._function = function
        self._done = threading.Event()
        self._loop: Any = None
        self._future: Any = None
        self._value: Any = None
        self._error: BaseException | None = None

    def run(self) -> None:
        try:
            self._value = self._context.run(self._function)
        except BaseException as error:
            self._error = error
        self._done.set()
        loop = self._loop
        if loop is not None and not loop.is_closed():
            loop.call_soon_threadsafe(self._wake)

    def _wake(self) -> None:
        if not self._future.done():
            self._future.set_result(None)

    async def wait(self, seconds: float) -> bool:
        """True once it is done; False if the time passed first. Blocks where no event loop runs."""
        self._loop = running_loop()
        if self._loop is None:
            return self._done.wait(seconds)
        self._future = self._loop.create_future()
        if not self._done.is_set():
            timer = self._loop.call_later(seconds, self._wake)
            try:
                await self._future
            finally:
                timer.cancel()
        return self._done.is_set()

    def result(self) -> Any:
        if self._error is not None:
            raise self._error
        return self._value


class Workers:
    """Daemon threads, started when none is idle; one whose work nobody waits for goes on alone."""

    def __init__(self) -> None:
        self._queue: SimpleQueue[Work] = SimpleQueue()
        self._idle = 0
        self._lock = threading.Lock()

    def start(self, function: Callable[[], Any]) -> Work:
        work = Work(function)
        with self._lock:
            spare = self._idle > 0
            if spare:
                self._idle -= 1
        if not spare:
            threading.Thread(target=self._serve, name=IDLE, daemon=True).start()
        self._queue.put(work)
        return work

    def _serve(self) -> None:
        thread = threading.current_thread()
        while True:
            work = self._queue.get()
            thread.name = "glee-function"
            work.run()
            thread.name = IDLE
            with self._lock:
                self._idle += 1
