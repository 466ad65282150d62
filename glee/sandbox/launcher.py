"""The engine's side of the fork server: profiles it knows, jails that wait, and one run in one of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
import select
import shutil
import socket
import subprocess
import sys
import tempfile
import threading
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Final

import msgspec
from msgspec import Struct

from glee.errors import SandboxUnavailable
from glee.sandbox.compile import Abilities
from glee.sandbox.offspring import count_threads

SPARES: Final = 2
"""Jails that wait for each profile in use."""
_PROFILES: Final = 32
"""Profiles that a server keeps; the one not used for longest goes first."""
_VIEW: Final = Path("/dev/shm")
"""Where the server builds the views of jails, in mounts of its own: no grant can contain it, and so no view another."""
_PATIENCE: Final = 10.0
_INLINE: Final = 60_000
_START: Final = "import sys; sys.path.append(sys.argv.pop(1)); from glee.sandbox.server import main; main()"


class Spare(Struct, frozen=True):
    """A jail that is used once. Whoever holds the line owns it."""

    line: socket.socket
    name: str


class Launcher:
    """Starts the fork server when the first jail is needed, and another one if it died."""

    def __init__(self, folder: Path, *, layers: frozenset[str] | None = None) -> None:
        self._folder = folder
        self.private = _name_private(folder)
        """Where runs get folders of their own on a machine without mount namespaces."""
        self._wanted = layers
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def abilities(self) -> Abilities:
        with self._lock:
            return self._get_server().abilities

    def take(self, plan: bytes) -> Spare:
        """A jail of this profile: one that waits, or one that is being made."""
        with self._lock:
            try:
                return self._get_server().take(plan)
            except ConnectionError:  # it was killed this very moment, and nothing has run
                self._end_server()
                return self._get_server().take(plan)

    def refill(self, plan: bytes) -> None:
        """Has jails made for the next runs. It is no fault if that cannot be done now."""
        with self._lock, contextlib.suppress(OSError):
            if self._server is not None:
                self._server.refill(plan)

    def _get_server(self) -> _Server:
        if self._server is None or not self._server.is_alive():
            self._end_server()
            self._server = _Server(self._folder, self.private, self._wanted)
        return self._server

    def _end_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def close(self) -> None:
        with self._lock:
            self._end_server()


class _Server:
    def __init__(self, folder: Path, private: Path, layers: frozenset[str] | None) -> None:
        self._pid = os.getpid()
        self._private = private
        view = _VIEW if _VIEW.is_dir() else _make_folder(folder / "view")
        self._spares: dict[str, list[Spare]] = {}
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        package = Path(__file__).parents[2]
        argv = [sys.executable, "-I", "-S", "-X", "utf8", "-c", _START, str(package), str(theirs.fileno()), str(view)]
        try:
            self._process = subprocess.Popen(
                argv, env={}, pass_fds=(theirs.fileno(),), stdin=subprocess.DEVNULL, start_new_session=True
            )
        except OSError as error:
            self._control.close()
            raise SandboxUnavailable(f"the fork server cannot be started: {error.strerror}") from error
        finally:
            theirs.close()
        self.abilities = self._greet(layers)

    def _greet(self, layers: frozenset[str] | None) -> Abilities:
        self._control.settimeout(_PATIENCE)
        try:
            abilities = msgspec.json.decode(self._control.recv(65_536), type=Abilities)
        except (OSError, msgspec.DecodeError) as error:
            self.close()
            raise SandboxUnavailable("the fork server did not start; standard error says why") from error
        if layers is not None:
            running = abilities.running or count_threads(abilities.uid)
            abilities = msgspec.structs.replace(abilities, layers=abilities.layers & layers, running=running)
        if "mount" not in abilities.layers:
            _make_private(self._private, abilities)
        return abilities

    def is_alive(self) -> bool:
        """False in a process forked from the engine's: the server belongs to the one that started it."""
        return self._pid == os.getpid() and self._process.poll() is None

    def take(self, plan: bytes) -> Spare:
        key = self._load(plan)
        spares = self._spares[key]
        while spares:
            spare = spares.pop(0)
            if not _is_closed(spare.line):
                return spare
            spare.line.close()
        return self._make(key)

    def refill(self, plan: bytes) -> None:
        key = self._load(plan)
        while len(self._spares[key]) < SPARES:
            self._spares[key].append(self._make(key))

    def _load(self, plan: bytes) -> str:
        key = hashlib.blake2b(plan, digest_size=12).hexdigest()
        if key in self._spares:
            self._spares[key] = self._spares.pop(key)
            return key
        if len(self._spares) >= _PROFILES:
            self._forget(next(iter(self._spares)))
        file = os.memfd_create("plan", os.MFD_CLOEXEC)
        try:
            os.write(file, plan)
            os.lseek(file, 0, os.SEEK_SET)
            socket.send_fds(self._control, [b"P" + key.encode()], [file])
        finally:
            os.close(file)
        self._spares[key] = []
        return key

    def _forget(self, key: str) -> None:
        for spare in self._spares.pop(key):
            spare.line.close()
        self._control.send(b"D" + key.encode())

    def _make(self, key: str) -> Spare:
        name = os.urandom(8).hex()
        ours, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            socket.send_fds(self._control, [f"J{key} {name}".encode()], [theirs.fileno()])
        except BaseException:
            ours.close()
            raise
        finally:
            theirs.close()
        return Spare(ours, name)

    def close(self) -> None:
        for spares in self._spares.values():
            for spare in spares:
                spare.line.close()
        self._spares.clear()
        self._control.close()
        if self._pid == os.getpid():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
            if self._private.name.startswith(f"glee-{self._pid}-"):  # not that of the process this one was forked from
                shutil.rmtree(self._private, ignore_errors=True)


def _name_private(folder: Path) -> Path:
    """Run by root, a run is nobody and cannot enter root's home, so it is given a place in the machine's /tmp."""
    base = Path(tempfile.gettempdir()) if os.getuid() == 0 else folder
    return base / f"glee-{os.getpid()}-{os.urandom(8).hex()}"


def _make_folder(folder: Path) -> Path:
    try:
        folder.mkdir(parents=True, exist_ok=True, mode=0o700)
    except OSError as error:
        raise SandboxUnavailable(
            f"the folder {folder}, which jails need, cannot be made: {error.strerror}; mend what is in its way, "
            "or set XDG_STATE_HOME to a folder that Glee may write to"
        ) from error
    return folder


def _make_private(private: Path, abilities: Abilities) -> None:
    """What an engine that was killed left there goes first."""
    for old in private.parent.glob("glee-*-*"):
        pid = old.name.split("-")[1]
        with contextlib.suppress(FileNotFoundError):  # another engine was quicker
            if old.lstat().st_uid == os.getuid() and pid.isdigit() and not Path("/proc", pid).exists():
                shutil.rmtree(old, ignore_errors=True)
    _make_folder(private)
    if abilities.uid != os.getuid():
        private.chmod(0o1733)  # its runs may make and remove what is theirs, and see no other's


def _is_closed(line: socket.socket) -> bool:
    """True if the jail at the other end is gone: its server was killed, or the jail itself."""
    watch = select.poll()
    watch.register(line, select.POLLRDHUP)
    return bool(watch.poll(0))


def send_request(
    line: socket.socket, argv: Sequence[str], *, cwd: str, env: Mapping[str, str], files: Sequence[int]
) -> None:
    """What the jail is to run, and its standard streams."""
    words = [argv[0], cwd, str(len(argv)), *argv, *(f"{name}={value}" for name, value in env.items())]
    if any("\0" in word for word in words):
        raise ValueError("embedded null byte")
    data = "\0".join(words).encode("utf-8", "surrogateescape")
    if len(data) <= _INLINE:
        socket.send_fds(line, [data], list(files))
        return
    request = os.memfd_create("request", os.MFD_CLOEXEC)
    try:
        with open(request, "wb", closefd=False) as stream:
            stream.write(data)
        socket.send_fds(line, [b"M"], [*files, request])
    finally:
        os.close(request)
