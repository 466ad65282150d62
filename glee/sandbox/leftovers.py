"""What a run left in the folder that was its own: removed as far as it can be, however deep it is nested."""

from __future__ import annotations

import contextlib
import errno
import itertools
import os
from collections.abc import Iterator


def remove_tree(top: str) -> None:
    """Folders that are not empty come to the top, so that no level takes any stack or descriptor of its own."""
    names = (f"{top}/.glee-{number}" for number in itertools.count())
    has_changed = True
    while has_changed:
        has_changed = False
        for outer in _list(top):
            if _remove(outer):
                has_changed = True
                continue
            for inner in _list(outer):
                has_changed |= _remove(inner) or _move(inner, names)
    with contextlib.suppress(OSError):
        os.rmdir(top)


def _list(folder: str) -> list[str]:
    try:
        return [f"{folder}/{name}" for name in os.listdir(folder)]
    except OSError:
        return []


def _remove(path: str) -> bool:
    """False for a folder that is not empty; it is one's own, and open from here on."""
    for remove in (os.unlink, os.rmdir):
        with contextlib.suppress(OSError):
            remove(path)
            return True
    with contextlib.suppress(OSError):
        os.chmod(path, 0o700)
    return False


def _move(path: str, names: Iterator[str]) -> bool:
    """To the first name that is free."""
    for name in names:
        try:
            os.rename(path, name)
        except OSError as error:
            if error.errno not in (errno.EEXIST, errno.ENOTEMPTY, errno.ENOTDIR):
                return False
        else:
            return True
    return False
