"""A small world outside of every grant, worth reaching: if somebody gets there, nothing held them."""

from __future__ import annotations

import contextlib
import os
import shutil
import socket
import subprocess
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

from msgspec import Struct

_PLACES: Final = ("/tmp", "/var/tmp")  # noqa: S108
"""Where anybody can go, so that no other folder on the way holds what a layer should."""
MARK: Final = "glee-doctor-"


class World(Struct, frozen=True, kw_only=True):
    mark: str
    """Nobody else's: it is on the command line of whoever tries."""
    names: dict[str, Any]
    """What is there, as the trials call it."""
    terminal: int
    """A terminal's end that programs read from."""


@contextlib.contextmanager
def build_world(owner: tuple[int, int], state: Path) -> Iterator[World]:
    """All of it belongs to whom runs run as, so that ordinary permissions do not stand in for a layer."""
    folder = Path(tempfile.mkdtemp(prefix=MARK, dir=_find_place()))
    with contextlib.ExitStack() as opened:
        opened.callback(shutil.rmtree, folder, ignore_errors=True)
        canary = folder / "canary"
        canary.write_text("of the world outside\n")
        listeners = _listen(folder, opened)
        for path in (canary, folder / "socket", folder):
            os.chown(path, *owner)
        screen, terminal = os.openpty()
        opened.callback(os.close, screen)
        opened.callback(os.close, terminal)
        with contextlib.suppress(OSError):  # so that there is something to see
            state.mkdir(parents=True, exist_ok=True, mode=0o700)
        host = _start_process(owner, opened)
        names = {"CANARY": str(canary), "FOLDER": str(folder), "STATE": str(state), "HOST": host, **listeners}
        yield World(mark=folder.name, names=names, terminal=terminal)


def _find_place() -> str | None:
    return next((place for place in _PLACES if os.access(place, os.W_OK | os.X_OK)), None)


def _listen(folder: Path, opened: contextlib.ExitStack) -> dict[str, Any]:
    paths = {"SOCKET": str(folder / "socket"), "ABSTRACT": f"\0{folder.name}"}
    for address in paths.values():
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
    stream = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
    datagrams = opened.enter_context(socket.socket(socket.AF_INET, socket.SOCK_DGRAM))
    datagrams.bind(("127.0.0.1", 0))
    return {**paths, "TCP": stream.getsockname()[1], "UDP": datagrams.getsockname()[1]}


def _start_process(owner: tuple[int, int], opened: contextlib.ExitStack) -> int:
    """A process that only waits; it ends when we let go of what it reads from."""
    uid, gid = owner if os.getuid() == 0 else (None, None)
    process = subprocess.Popen(
        ["/bin/sh", "-c", "read _"],
        stdin=subprocess.PIPE,
        env={"NAME": "of the world outside"},
        cwd="/",
        user=uid,
        group=gid,
        extra_groups=None if uid is None else [],
    )
    opened.enter_context(process)
    return process.pid


def find_marked(mark: str) -> list[int]:
    """Processes that were told this mark when they were started, and whatever was forked from them."""
    found = []
    for name in filter(str.isdecimal, os.listdir("/proc")):  # noqa: PTH208
        with contextlib.suppress(OSError):
            if mark.encode() in Path("/proc", name, "cmdline").read_bytes():
                found.append(int(name))
    return found
