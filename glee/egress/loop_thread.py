"""A thread with an event loop of its own, for work that outlives every call and belongs to no caller's loop."""

from __future__ import annotations

import asyncio
import os
import threading
from collections.abc import Callable, Coroutine
from concurrent.futures import CancelledError, Future
from typing import Any, Final

_PATIENCE: Final = 10.0


class LoopThread:
    def __init__(self, name: str) -> None:
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._closed = False
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def soon(self, function: Callable[[], object]) -> None:
        """Has a function called in the thread."""
        self._loop.call_soon_threadsafe(function)

    def wait_for(self, function: Callable[[], Coroutine[Any, Any, None]]) -> None:
        """Runs a coroutine to its end. Does nothing once closed, or in a process forked from this one."""
        future = self._schedule(function)
        if future is not None:
            try:
                future.result(_PATIENCE)
            except CancelledError:
                pass  # the thread came to its end, and everything in it

    def _schedule(self, function: Callable[[], Coroutine[Any, Any, None]]) -> Future[None] | None:
        if self._pid != os.getpid():
            return None
        with self._lock:
            return None if self._closed else asyncio.run_coroutine_threadsafe(function(), self._loop)

    def close(self) -> None:
        if self._pid != os.getpid():
            return
        with self._lock:
            if not self._closed:
                self._closed = True
                self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(_PATIENCE)

    def _run(self) -> None:
        try:
            self._loop.run_forever()
            while tasks := asyncio.all_tasks(self._loop):
                for task in tasks:
                    task.cancel()
                self._loop.run_until_complete(asyncio.gather(*tasks, return_exceptions=True))
        finally:
            self._loop.close()
