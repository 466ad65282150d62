"""What a person sees while something takes long: nothing for a second, then a spinner or a bar, on a terminal."""

from __future__ import annotations

import itertools
import sys
import threading
import time
from typing import Final

from glee.definitions.event import Event, Finished, Progressed, Started

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
        sys.stderr.write(f"{_CLEAR}{self._label} [{'#' * filled}{'.' * (30 - filled)}] {done:,}/{total:,}")
        sys.stderr.flush()

    def close(self) -> None:
        if self._shown:
            sys.stderr.write(_CLEAR)
            sys.stderr.flush()


class Spinner:
    """Listens to a call: turns from a second after its start to its end, with what the tool says of itself."""

    def __init__(self) -> None:
        self._over = threading.Event()
        self._text = ""

    def __call__(self, event: Event) -> None:
        if isinstance(event, Started) and sys.stderr.isatty():
            self._text = event.tool
            threading.Thread(target=self._turn, daemon=True).start()
        elif isinstance(event, Progressed):
            self._text = " ".join(filter(None, (event.tool, _amount(event), event.message)))
        elif isinstance(event, Finished):
            self._over.set()

    def _turn(self) -> None:
        if self._over.wait(_AFTER):
            return
        for frame in itertools.cycle(_FRAMES):
            sys.stderr.write(f"{_CLEAR}{frame} {self._text[:100]}")
            sys.stderr.flush()
            if self._over.wait(0.1):
                break
        sys.stderr.write(_CLEAR)
        sys.stderr.flush()


def _amount(event: Progressed) -> str:
    if event.done is None:
        return ""
    return f"{event.done:g}/{event.total:g}" if event.total else f"{event.done:g}"
