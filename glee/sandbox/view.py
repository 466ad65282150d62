"""The private root of a jail: an empty file system that holds what was granted and nothing else."""

from __future__ import annotations

import contextlib
import errno
import os
from collections.abc import Callable, Iterator, Sequence
from typing import Final

from glee.sandbox import kernel
from glee.sandbox.plan import Step

_ATTRIBUTES: Final = {
    "s": kernel.READ_ONLY | kernel.NO_SETUID | kernel.NO_DEVICES,
    "r": kernel.READ_ONLY | kernel.NO_SETUID | kernel.NO_DEVICES,
    "w": kernel.NO_SETUID | kernel.NO_DEVICES,
    "d": kernel.NO_SETUID | kernel.NO_EXEC,
}
_NO_SETUID_NO_DEVICES: Final = kernel.NO_SETUID | kernel.NO_DEVICES
"""The same bits for `mount` as for attributes."""

IdMap = Callable[[os.stat_result], int | None]
"""The user namespace through which the owner of a file is seen as the run's own identity, where one is needed."""


class View:
    """Built once for each profile, in the launcher's own mount namespace; entered by each run in one of its own.

    What lies below a folder that each run has for itself is built beside the root, and put there by each run.
    """

    def __init__(self, folder: str, steps: Sequence[Step], id_map: IdMap) -> None:
        self._root = folder
        self._beside = f"{folder}.late"
        self._late = [step for step in steps if step[0] == "late"]
        self._each = [step for step in steps if step[0] in ("fresh", "processes")]
        self._folders = [step[1] for step in steps if step[0] == "folder"]
        self._links = [step[1:] for step in steps if step[0] == "link"]
        try:
            with _usual_modes():
                self._build(steps, id_map)
        except BaseException:
            self.remove()
            raise

    def _build(self, steps: Sequence[Step], id_map: IdMap) -> None:
        self._make_file_system(self._root)
        if self._late:
            self._make_file_system(self._beside)
        for step in steps:
            self._prepare(step)
        for step in steps:
            if step[0] in ("bind", "mask"):
                self._fill(step, id_map)
        kernel.set_mount_at(self._root, kernel.READ_ONLY | kernel.NO_SETUID | kernel.NO_DEVICES)

    def _make_file_system(self, folder: str) -> None:
        os.makedirs(folder)
        kernel.mount("glee", folder, "tmpfs", _NO_SETUID_NO_DEVICES, "size=4m,mode=755")

    def _prepare(self, step: Step) -> None:
        """Places to mount on are made in our own file system only, never in a folder of the machine."""
        if step[0] == "folder":
            if not self._is_each(step[1]):
                os.makedirs(self._base(step[1]) + step[1], exist_ok=True)
        elif step[0] == "file":
            _touch(self._base(step[1]) + step[1])
        elif step[0] == "link":
            if not self._is_each(step[2]):
                os.makedirs(os.path.dirname(self._root + step[2]), exist_ok=True)
                os.symlink(step[1], self._root + step[2])
        elif step[0] in ("fresh", "processes"):
            os.makedirs(self._root + step[-1], exist_ok=True)

    def _is_each(self, path: str) -> bool:
        """True for a folder or link that each run makes for itself, below a folder that only it has."""
        own = [step[-1] for step in self._each]
        return self._base(path) == self._root and any(path.startswith(f"{folder}/") for folder in own)

    def _base(self, path: str) -> str:
        late = any(path == top or path.startswith(f"{top}/") for _, _, top in self._late)
        return self._beside if late else self._root

    def _fill(self, step: Step, id_map: IdMap) -> None:
        path = step[-1]
        with contextlib.ExitStack() as opened:
            base = os.open(self._base(path), os.O_PATH | os.O_CLOEXEC)
            opened.callback(os.close, base)
            target = kernel.open_path(path.lstrip("/"), base)
            opened.callback(os.close, target)
            if step[0] == "mask":
                kernel.mount(
                    "glee", f"/proc/self/fd/{target}", "tmpfs", _NO_SETUID_NO_DEVICES | kernel.READ_ONLY, "size=4k"
                )
                return
            origin = kernel.open_path(step[2])
            opened.callback(os.close, origin)
            tree = kernel.clone_mount(origin)
            opened.callback(os.close, tree)
            ids = None if step[1] in "sd" else id_map(os.fstat(origin))
            self._set(tree, step, ids)
            kernel.attach_mount(tree, target)

    def _set(self, tree: int, step: Step, ids: int | None) -> None:
        """Some file systems cannot be shown as another's; for reading, what anybody may read is then enough."""
        try:
            kernel.set_mount(tree, _ATTRIBUTES[step[1]], ids=ids)
        except OSError as error:
            if ids is None or error.errno != errno.EINVAL:
                raise
            if step[1] == "w":
                raise OSError(
                    f"Glee is run by root, and the file system of {step[2]} cannot be shown to the tool as its own; "
                    "run Glee as an ordinary user, or take the path out of permissions.fs.write"
                ) from error
            kernel.set_mount(tree, _ATTRIBUTES[step[1]])

    def enter(self) -> None:
        """In a new mount namespace: what each run has for itself, then this is the root and nothing else is there."""
        for step in self._each:
            if step[0] == "fresh":
                options = f"size={step[1]},{step[2]}"
                kernel.mount("glee", self._root + step[3], "tmpfs", _NO_SETUID_NO_DEVICES, options)
            else:
                flags = _NO_SETUID_NO_DEVICES | kernel.NO_EXEC
                kernel.mount("proc", self._root + step[1], "proc", flags, "subset=pid")
        with _usual_modes():
            for path in filter(self._is_each, self._folders):
                self._make_folders(path)
            for target, path in self._links:
                if self._is_each(path):
                    self._make_folders(os.path.dirname(path))
                    os.symlink(target, self._root + path)
            for _, kind, path in self._late:
                self._attach(kind, path)
        kernel.change_root(self._root)

    def _attach(self, kind: str, path: str) -> None:
        target = self._root + path
        self._make_folders(path if kind == "folder" else os.path.dirname(path))
        if kind == "file":
            _touch(target)
        tree = kernel.clone_mount(kernel.open_path(self._beside + path))
        kernel.attach_mount(tree, kernel.open_path(target))

    def _make_folders(self, path: str) -> None:
        """On the way to something that was granted; nothing can be written to them."""
        made = self._root
        for name in filter(None, path.split("/")):
            made = f"{made}/{name}"
            with contextlib.suppress(FileExistsError):
                os.mkdir(made, 0o555)

    def remove(self) -> None:
        for folder in (self._root, self._beside) if self._late else (self._root,):
            with contextlib.suppress(OSError):
                kernel.unmount(folder)
            with contextlib.suppress(OSError):
                os.rmdir(folder)


@contextlib.contextmanager
def _usual_modes() -> Iterator[None]:
    """What is made here can be entered by the run, whatever the engine's umask is."""
    before = os.umask(0o022)
    try:
        yield
    finally:
        os.umask(before)


def _touch(path: str) -> None:
    os.makedirs(os.path.dirname(path), exist_ok=True)
    os.close(os.open(path, os.O_CREAT | os.O_WRONLY | os.O_CLOEXEC, 0o644))
