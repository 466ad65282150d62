"""The steps of a plan, made ready for many runs: the view is built, the paths of the rules are open."""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Final

from glee.sandbox import kernel, landlock
from glee.sandbox.plan import Step
from glee.sandbox.rights import WRITE
from glee.sandbox.view import IdMap, View


class Profile:
    def __init__(self, folder: str, steps: Sequence[Step], *, id_map: IdMap, empty_network: int | None) -> None:
        """Raises OSError or ValueError, and has let go of everything by then."""
        self.view: View | None = None
        self._rules: list[tuple[int, int]] = []
        self.proc = os.open("/proc", os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC)
        """The machine's, which a jail may not be able to mount for itself."""
        try:
            self._read(steps)
            if "mount" in self._layers:
                self.view = View(folder, steps, id_map)
            for step in steps:
                if step[0] == "rule" and self._version:
                    self._rules.append((int(step[1]), _open(step[2])))
        except BaseException as error:
            self.remove()
            if isinstance(error, OSError):
                raise
            raise ValueError("the plan cannot be read") from error
        self.net = empty_network if self._is_cut_off else None

    def _read(self, steps: Sequence[Step]) -> None:
        words = {step[0]: step[1:] for step in steps}
        self._layers = layers = {step[1] for step in steps if step[0] == "layer"}
        uid, gid = map(int, words["user"])
        self.flags = sum(flag for name, flag in _NAMESPACES.items() if name in layers)
        self.becomes = (uid, gid) if os.getuid() == 0 else None
        self.own_user = "user" in layers
        self.door = int(words["door"][0]) if "door" in words else None
        if self.door is not None:
            self.flags |= kernel.NEW_NET
        self._is_cut_off = "net" in layers and words["net"] == ("none",)
        self.limits = {int(step[1]): int(step[2]) for step in steps if step[0] == "limit"}
        self.group = (int(words["group"][0]), int(words["group"][1])) if "group" in words else None
        self.filter = _read_filter(words["filter"][0]) if "seccomp" in layers else b""
        self.record = _read_filter(words["record"][0]) if "record" in words else b""
        self.private = words["private"][0] if "private" in words else None
        self._version = int(words["version"][0]) if "landlock" in layers else 0
        self._forbids_ports = words["ports"] == ("yes",)
        self._inside = [(int(step[1]), step[2]) for step in steps if step[0] == "inside"]
        self.ruleset = self._make_ruleset if self._version else None

    def _make_ruleset(self, own: str | None) -> int:
        """For each run anew: some of its folders are its own."""
        ruleset = landlock.make_ruleset(self._version, ports=self._forbids_ports)
        for rights, file in self._rules:
            landlock.add_path(ruleset, self._version, file, rights)
        for rights, path in self._inside:
            landlock.add_path(ruleset, self._version, _open(path), rights)
        if own is not None:
            landlock.add_path(ruleset, self._version, _open(own), WRITE)
        if self.door is not None:
            landlock.add_port(ruleset, self._version, self.door)
        return ruleset

    def remove(self) -> None:
        for file in (self.proc, *(file for _, file in self._rules)):
            os.close(file)
        if self.view is not None:
            self.view.remove()


_FILTER_BYTES: Final = 8 * 4096
_NAMESPACES: Final = {"mount": kernel.NEW_MOUNTS, "pid": kernel.NEW_PIDS, "ipc": kernel.NEW_IPC}


def _read_filter(text: str) -> bytes:
    """Instructions of eight bytes each, and no more than the kernel takes."""
    program = bytes.fromhex(text)
    if len(program) % 8 or not 0 < len(program) <= _FILTER_BYTES:
        raise ValueError(text)
    return program


def _open(path: str) -> int:
    return kernel.open_path(path)
