"""Ends that are not Ctrl-C and mean the same: `kill`, `timeout`, and a terminal that was closed."""

from __future__ import annotations

import signal


def end_as_by_ctrl_c() -> None:
    """A run that is ended by a signal cleans up after itself. What was told to survive one still does."""
    for number in (signal.SIGTERM, signal.SIGHUP):
        if signal.getsignal(number) is signal.SIG_DFL:
            signal.signal(number, signal.default_int_handler)
