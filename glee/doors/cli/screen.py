"""What is written to the person's streams: whole and unchanged into a pipe, harmless on a terminal."""

from __future__ import annotations

import contextlib
import os
import re
import sys
from typing import Any, Final

import click

_COMMANDING = re.compile(
    "[\x00-\x08\x0b-\x1f\x7f-\x9f\u00ad\u061c\u180e\u200b-\u200f\u2028-\u202e\u2060-\u2069\ufeff\ud800-\udfff\U000e0000-\U000e007f]"
)
_CLEAR: Final = "\r\x1b[K"
_USUAL_WIDTH: Final = 80


def prepare_streams() -> None:
    """A closed stream becomes one that swallows all, and text that an encoding lacks is written as an escape."""
    for name, mode in (("stdin", "r"), ("stdout", "w"), ("stderr", "w")):
        if getattr(sys, name) is None:
            setattr(sys, name, open(os.devnull, mode))  # noqa: SIM115
    for stream in (sys.stdout, sys.stderr):
        stream.reconfigure(errors="backslashreplace")  # type: ignore[union-attr]


def settle_streams() -> bool:
    """Writes what is still held back. False if that is not possible; then nothing is tried again at exit."""
    whole = True
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except OSError:
            whole = False
            os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
    return whole


def colour() -> bool | None:
    """False where colour is not wanted; None where it depends on whether the stream is a terminal.

    Read here and not in `config`, which `glee --help` is too quick to load.
    """
    return False if os.environ.get("NO_COLOR") or os.environ.get("TERM") == "dumb" else None


def is_terminal() -> bool:
    """True where a person can be asked: they read standard error and type into standard input."""
    return sys.stdin.isatty() and sys.stderr.isatty()


def printable(text: str) -> str:
    """Without what could move the cursor, recolour the screen or turn the reading direction."""
    return _COMMANDING.sub("\ufffd", text.replace("\r\n", "\n"))


def one_line(text: str) -> str:
    return printable(" ".join(text.split()))


def shorten(text: str, width: int) -> str:
    return text if len(text) <= width else text[: width - 1] + "…"


def width() -> int:
    """Columns of the terminal. `shutil` tells the same, and takes longer to load than a listing to print."""
    given = os.environ.get("COLUMNS", "")
    if given.isdecimal() and int(given) > 0:
        return int(given)
    for stream in (sys.stdout, sys.stderr):
        with contextlib.suppress(OSError, ValueError):
            return os.get_terminal_size(stream.fileno()).columns or _USUAL_WIDTH
    return _USUAL_WIDTH


def draw_line(text: str) -> None:
    """Over the last line of the terminal, in one line however narrow it is."""
    sys.stderr.write(_CLEAR + shorten(text, width() - 1))
    sys.stderr.flush()


def print_output(text: str, *, err: bool = False) -> None:
    """What a tool wrote. A pipe gets every byte of it."""
    stream = sys.stderr if err else sys.stdout
    text = printable(text) if stream.isatty() else text
    click.echo(text, nl=not text.endswith("\n"), err=err, color=True)


def print_json(value: Any) -> None:
    import json

    from glee.definitions.json_text import encode_json

    print_output(json.dumps(json.loads(encode_json(value)), indent=2, ensure_ascii=False))


def tell_operator(text: str) -> None:
    """The person at the terminal runs Glee themselves, so tracebacks are for them."""
    print_output(text, err=True)
