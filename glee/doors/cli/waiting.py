"""What a person sees while a call takes long: nothing for a second, then a spinner, on a terminal."""

from __future__ import annotations

import itertools
import sys
import threading
from typing import Final

from glee.definitions.event import Event, Finished, Progressed, Started
from glee.doors.cli.screen import draw_line, one_line

_AFTER: Final = 1.0
_FRAMES: Final = "⠋⠙⠹⠸⠼⠴⠦⠧⠇⠏"


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
            draw_line(f"{frame} {one_line(self._text)}")
            if self._over.wait(0.1):
                break
        draw_line("")


def _amount(event: Progressed) -> str:
    if event.done is None:
        return ""
    return f"{event.done:g}/{event.total:g}" if event.total else f"{event.done:g}"
