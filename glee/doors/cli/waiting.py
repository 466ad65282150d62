"""What a person sees while something takes long: nothing for a second, then a spinner or a bar, on a terminal."""

from __future__ import annotations

import itertools
import shutil
import sys
import threading
import time
from typing import Final

from glee.definitions.event import Event, Finished, Progressed, Started
from glee.doors.cli.screen import one_line, shorten

_AFTER: Final = 1.0
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"
_CLEAR: Final = "\r\x1b[K"


class Bar:
    """A progress callback that draws on standard error."""

    def __init__(self, label: str) -> None:
        self._label = label
        self._began = self._drawn = time.monotonic()
        self._shown = False

    def __call__(self, done: int, total: int) -> None:
        now = time.monotonic()
        if not sys.stderr.isatty() or now - self._began < _AFTER or now - self._drawn < 0.1:
            return
        self._drawn, self._shown = now, True
        filled = 30 * done // max(total, 1)
        _draw(f"{self._label} [{'#' * filled}{'.' * (30 - filled)}] {done:,}/{total:,}")

    def close(self) -> None:
        if self._shown:
            _draw("")


class Spinner:
    """Listens to calls: turns from a second after a start to its end, with what the tool says of itself."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._thread: threading.Thread | None = None
        self._text = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started) and sys.stderr.isatty():
            self._text = event.tool
            self._over.clear()
            self._thread = threading.Thread(target=self._turn, name="glee-spinner", daemon=True)
            self._thread.start()
        elif isinstance(event, Progressed):
            self._text = " ".join(filter(None, (event.tool, _amount(event), event.message)))
        elif isinstance(event, Finished) and self._thread:
            self._over.set()
            self._thread.join()  # so that it cannot clear a line of the result
            self._thread = None

    def _turn(self) -> None:
        if self._over.wait(_AFTER):
            return
        for frame in itertools.cycle(_FRAMES):
            _draw(f"{frame} {one_line(self._text)}")
            if self._over.wait(0.1):
                break
        _draw("")


def _draw(text: str) -> None:
    """In one line, however narrow the terminal is."""
    sys.stderr.write(_CLEAR + shorten(text, shutil.get_terminal_size().columns - 1))
    sys.stderr.flush()


def _amount(event: Progressed) -> str:
    if event.done is None:
        return ""
    return f"{event.done:g}/{event.total:g}" if event.total else f"{event.done:g}"
