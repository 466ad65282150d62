"""The fork server: a small process of one thread that knows no secret, and makes jails before they are needed.

    engine ◄── what can be held here, once, as JSON
    engine ──► "P key" and a file with the steps of a profile
    engine ──► "J key name" and the socket of one run: a jail of that name is made and waits at that socket
    engine ──► "D key": the profile is not needed any more

It runs in an interpreter with the standard library alone and an empty environment, and ends with its engine.
"""

from __future__ import annotations

import contextlib
import gc
import json
import os
import resource
import select
import signal
import socket
import sys
import time
from collections.abc import Callable, Sequence
from typing import Final

from glee.sandbox import jailed, kernel, landlock, namespaces, rights
from glee.sandbox.groups import Groups, find_groups
from glee.sandbox.offspring import count_threads
from glee.sandbox.plan import PLAN_BYTES, STRANGER, Step, decode_steps
from glee.sandbox.profile import Profile
from glee.sandbox.syscalls import machine

_PATIENCE: Final = 5.0
_ALLOW_ALL: Final = bytes.fromhex("060000000000ff7f")


class Server:
    def __init__(self, control: socket.socket, folder: str) -> None:
        self._control = control
        self._folder = folder
        self._plans: dict[str, list[Step] | str] = {}
        """As steps, or why they could not be read."""
        self._profiles: dict[str, Profile] = {}
        self._id_maps: dict[tuple[int, int], int] = {}
        self._layers: set[str] = set()
        self._faults: dict[str, str] = {}
        self._empty_network: int | None = None
        self._groups: Groups | None = None
        self._running: dict[int, str] = {}
        """Jails that have a group, by their process."""
        self._landlock = 0
        self._is_root = os.getuid() == 0
        self._identity = (STRANGER, STRANGER) if self._is_root else (os.getuid(), os.getgid())

    def prepare(self) -> None:
        """Tries each layer for real. Afterwards this process has mounts of its own, where it may have them."""
        self._try("seccomp", lambda: _in_child(_lay_filter))
        self._try("landlock", self._find_landlock)
        self._try("user", lambda: _in_child(self._enter_user))
        self._try("mount", lambda: _in_child(self._leave_the_machine))
        if "mount" in self._layers:
            self._leave_the_machine()
            self._try("ipc", lambda: _in_child(lambda: kernel.unshare(kernel.NEW_IPC)))
            self._try("net", self._make_network)
            self._try("pid", lambda: _in_child(lambda: None, kernel.NEW_PIDS))
            self._try("proc", lambda: _in_child(self._mount_proc, kernel.NEW_PIDS | kernel.NEW_MOUNTS))
        self._try("group", self._find_groups)
        gc.collect()
        gc.freeze()
        gc.disable()

    def _try(self, layer: str, attempt: Callable[[], None]) -> None:
        try:
            attempt()
            self._layers.add(layer)
        except OSError as error:
            self._faults[layer] = str(error)

    def _find_landlock(self) -> None:
        self._landlock = landlock.find_version()
        if not self._landlock:
            raise OSError("this kernel has no Landlock, or it is not enabled")
        _in_child(self._restrict_nothing)

    def _restrict_nothing(self) -> None:
        kernel.forbid_new_privileges()
        landlock.restrict(landlock.make_ruleset(self._landlock, ports=True))

    def _find_groups(self) -> None:
        groups = find_groups()
        try:
            _in_child(lambda: _join(groups.make("trial", 1 << 30, 100)))
        except OSError:
            groups.close()
            raise
        groups.remove("trial")
        self._groups = groups

    def _enter_user(self) -> None:
        if self._is_root:
            namespaces.become(*self._identity)
        namespaces.enter_user(*self._identity)

    def _leave_the_machine(self) -> None:
        if not self._is_root:
            namespaces.enter_user(*self._identity)
        kernel.unshare(kernel.NEW_MOUNTS)
        kernel.make_mounts_private()
        kernel.mount("glee", self._folder, "tmpfs", 6, "size=64m,mode=755")

    def _make_network(self) -> None:
        self._empty_network = namespaces.make_empty_network()

    def _mount_proc(self) -> None:
        kernel.mount("proc", self._folder, "proc", 14, "subset=pid")

    def greet(self) -> None:
        words = {
            "machine": machine() or "unknown",
            "layers": sorted(self._layers),
            "landlock": self._landlock,
            "uid": self._identity[0],
            "gid": self._identity[1],
            "running": 0 if "user" in self._layers else count_threads(self._identity[0]),
            "faults": self._faults,
        }
        self._control.send(json.dumps(words).encode())

    def serve(self) -> None:
        ended = jailed.hear_of_ends()
        watch = select.poll()
        watch.register(self._control, select.POLLIN)
        watch.register(ended, select.POLLIN)
        while True:
            ready = dict(watch.poll())
            if ended in ready:
                os.read(ended, 512)
                self._reap()
            if self._control.fileno() in ready and not self._obey():
                break
        self._end()

    def _obey(self) -> bool:
        """One request; False if the engine is gone."""
        data, files, _, _ = socket.recv_fds(self._control, 4096, 1)
        if not data:
            return False
        word, (key, *name) = data[:1], data[1:].decode().split()
        if word in (b"P", b"J") and not files:
            return True  # no descriptor was left for it; whoever waits sees its end of the line close
        if word == b"P":
            self._load(key, files[0])
        elif word == b"J":
            self._make_jail(key, name[0], socket.socket(fileno=files.pop()))
        elif word == b"D":
            self._forget(key)
        for file in files:
            os.close(file)
        return True

    def _reap(self) -> None:
        with contextlib.suppress(ChildProcessError):
            while pid := os.waitpid(-1, os.WNOHANG)[0]:
                name = self._running.pop(pid, None)
                if name is not None and self._groups is not None:
                    self._groups.remove(name)

    def _end(self) -> None:
        """The engine has let go of every jail, so all of them are ending."""
        if self._groups is None:
            return
        until = time.monotonic() + _PATIENCE
        while self._running and time.monotonic() < until:
            self._reap()
            time.sleep(0.005)
        self._groups.close()

    def _load(self, key: str, file: int) -> None:
        """What cannot be read is kept as the reason why."""
        self._forget(key)
        try:
            with open(file, "rb", closefd=False) as stream:
                self._plans[key] = list(decode_steps(stream.read(PLAN_BYTES + 1)))
        except (OSError, ValueError) as error:
            self._plans[key] = str(error)

    def _get_profile(self, key: str) -> Profile:
        """Made when it is first needed. What failed is tried again: the reason may be gone."""
        if key not in self._profiles:
            steps = self._plans.get(key, "its profile was not loaded")
            if isinstance(steps, str):
                raise ValueError(steps)
            if self._is_root and ("layer", "mount") not in steps:
                _in_child(lambda: self._check_reach(steps))
            folder = f"{self._folder}/{key}"
            self._profiles[key] = Profile(folder, steps, id_map=self._find_id_map, empty_network=self._empty_network)
        return self._profiles[key]

    def _check_reach(self, steps: Sequence[Step]) -> None:
        """Without mounts nothing can be shown to the run's identity as its own, so it must have the rights itself."""
        namespaces.become(*self._identity)
        for step in steps:
            if step[0] != "rule":
                continue
            writes = int(step[1]) == rights.WRITE
            if not os.access(step[2], os.R_OK | (os.W_OK if writes else 0)):
                raise OSError(
                    f"Glee is run by root, so the tool runs as user {self._identity[0]}, who may not "
                    f"{'write to' if writes else 'read'} {step[2]}; run Glee as an ordinary user, or open the path"
                )

    def _forget(self, key: str) -> None:
        self._plans.pop(key, None)
        profile = self._profiles.pop(key, None)
        if profile is not None:
            profile.remove()

    def _find_id_map(self, status: os.stat_result) -> int | None:
        """Run by root, what somebody owns is shown to the run's identity as its own."""
        owner = (status.st_uid, status.st_gid)
        if not self._is_root or owner == self._identity:
            return None
        if owner not in self._id_maps:
            self._id_maps[owner] = namespaces.make_id_map(owner, self._identity)
        return self._id_maps[owner]

    def _make_jail(self, key: str, name: str, line: socket.socket) -> None:
        group: list[int] = []
        try:
            profile = self._get_profile(key)
            if profile.group is not None and self._groups is not None:
                group = self._groups.make(name, *profile.group)
            pid = kernel.clone(profile.flags)
            if pid == 0:
                self._control.close()
                signal.signal(signal.SIGCHLD, signal.SIG_DFL)
                jailed.keep(profile, line, name, group)
            if group:
                self._running[pid] = name
        except (OSError, ValueError) as error:
            with contextlib.suppress(OSError):
                line.send(b"E" + str(error).encode("utf-8", "replace")[:1000])
        for file in group:
            os.close(file)
        line.close()


def _join(group: Sequence[int]) -> None:
    for file in group:
        os.write(file, b"0")


def _lay_filter() -> None:
    kernel.forbid_new_privileges()
    kernel.install_filter(_ALLOW_ALL)


def _in_child(attempt: Callable[[], None], flags: int = 0) -> None:
    """Tries something that cannot be undone."""
    report, tell = os.pipe()
    pid = kernel.clone(flags)
    if pid == 0:
        try:
            attempt()
            os.write(tell, b"+")
        except BaseException as error:
            os.write(tell, str(error).encode("utf-8", "replace")[:1000])
        os._exit(0)
    os.close(tell)
    said = os.read(report, 2000)
    os.close(report)
    with contextlib.suppress(ChildProcessError):
        os.waitpid(pid, 0)
    if said != b"+":
        raise OSError(said.decode("utf-8", "replace") or "it was killed")


def main() -> None:
    control = socket.socket(fileno=int(sys.argv[1]))
    os.set_inheritable(control.fileno(), False)
    signal.signal(signal.SIGINT, signal.SIG_IGN)
    most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
    resource.setrlimit(resource.RLIMIT_NOFILE, (most, most))
    server = Server(control, sys.argv[2])
    server.prepare()
    server.greet()
    server.serve()
