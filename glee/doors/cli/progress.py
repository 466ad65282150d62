"""What a person sees while many things are read: nothing for a second, then a bar, on a terminal."""

from __future__ import annotations

import sys
import time
from typing import Final

from glee.doors.cli.screen import draw_line

_AFTER: Final = 1.0


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
        draw_line(f"{self._label} [{'#' * filled}{'.' * (30 - filled)}] {done:,}/{total:,}")

    def close(self) -> None:
        if self._shown:
            draw_line("")
