"""The engine's side of the fork server: profiles it knows, jails that wait, and one run in one of them."""

from __future__ import annotations

import contextlib
import hashlib
import os
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
from glee.sandbox.leftovers import remove_tree
from glee.sandbox.offspring import count_threads

SPARES: Final = 2
"""Jails that wait for each profile in use."""
_PROFILES: Final = 32
"""Profiles that a server keeps; the one not used for longest goes first."""
_VIEW: Final = Path("/dev/shm")
"""Where the server builds the views of jails, in mounts of its own: no grant can contain it, and so no view another."""
_PATIENCE: Final = 10.0
_INLINE: Final = 60_000
NATIVE: Final = Path(__file__).with_name("launcher")
"""Where the fork server is as a small program, if it could be built."""
_START: Final = "import sys; sys.path.append(sys.argv.pop(1)); from glee.sandbox.server import main; main()"
_PYTHON: Final = (sys.executable, "-I", "-S", "-X", "utf8", "-c", _START, str(Path(__file__).parents[2]))


class Spare(Struct, frozen=True):
    """A jail that is used once. Whoever holds the line owns it."""

    line: socket.socket
    name: str
    is_ready: bool = False
    """True if it has said so, and that was heard."""


class _Profile(Struct, frozen=True):
    key: str
    spares: list[Spare]


class Launcher:
    """Starts the fork server when the first jail is needed, and another one if it died."""

    def __init__(self, folder: Path, *, layers: frozenset[str] | None = None, native: bool | None = None) -> None:
        """The server is the program if that was built and runs; with `native` it is the one or the other for sure."""
        self._folder = folder
        self._native = native
        self.private = _name_private(folder)
        """Where runs get folders of their own on a machine without mount namespaces."""
        self._wanted = layers
        self._pid = os.getpid()
        self._lock = threading.Lock()
        self._server: _Server | None = None

    def _notice_fork(self) -> None:
        """A lock that another thread held when this process was forked would stay locked."""
        if self._pid != os.getpid():
            self._pid, self._lock = os.getpid(), threading.Lock()

    def abilities(self) -> Abilities:
        self._notice_fork()
        with self._lock:
            return self._get_server().abilities

    def take(self, plan: bytes) -> Spare:
        """A jail of this profile: one that waits, or one that is being made."""
        self._notice_fork()
        with self._lock:
            try:
                return self._get_server().take(plan)
            except ConnectionError:  # it was killed this very moment, and nothing has run
                self._end_server()
                return self._get_server().take(plan)

    def refill(self, plan: bytes) -> None:
        """Has jails made for the next runs. It is no fault if that cannot be done now."""
        self._notice_fork()
        with self._lock, contextlib.suppress(OSError):
            if self._server is not None:
                self._server.refill(plan)

    def _get_server(self) -> _Server:
        if self._server is None or not self._server.is_alive():
            self._end_server()
            self._server = self._start()
        return self._server

    def _start(self) -> _Server:
        """Whichever of the two starts first stays the one for good."""
        if self._native or (self._native is None and find_program() is not None):
            try:
                server = _Server((str(NATIVE),), self._folder, self.private, self._wanted)
            except SandboxUnavailable:
                if self._native:
                    raise
            else:
                self._native = True
                return server
        server = _Server(_PYTHON, self._folder, self.private, self._wanted)
        self._native = False
        return server

    def _end_server(self) -> None:
        server, self._server = self._server, None
        if server is not None:
            server.close()

    def close(self) -> None:
        self._notice_fork()
        with self._lock:
            self._end_server()


class _Server:
    def __init__(self, program: Sequence[str], folder: Path, private: Path, layers: frozenset[str] | None) -> None:
        self._pid = os.getpid()
        self._private = private
        view = _VIEW if _VIEW.is_dir() else _make_folder(folder / "view")
        self._profiles: dict[bytes, _Profile] = {}
        """By their plans, of which Python computes the hash only once."""
        self._control, theirs = socket.socketpair(socket.AF_UNIX, socket.SOCK_SEQPACKET)
        try:
            self._process = subprocess.Popen(
                [*program, str(theirs.fileno()), str(view)],
                env={},
                pass_fds=(theirs.fileno(),),
                stdin=subprocess.DEVNULL,
                start_new_session=True,
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
            self._process.kill()
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
        profile = self._load(plan)
        while profile.spares:
            spare = profile.spares.pop(0)
            news = _look(spare.line)
            if news == b"R":
                spare.line.recv(1)
                spare, news = Spare(spare.line, spare.name, True), _look(spare.line)
            if news in (None, b"L", b"N"):
                return spare
            spare.line.close()
        return self._make(profile.key)

    def refill(self, plan: bytes) -> None:
        profile = self._load(plan)
        while len(profile.spares) < SPARES:
            profile.spares.append(self._make(profile.key))

    def _load(self, plan: bytes) -> _Profile:
        if plan in self._profiles:
            profile = self._profiles[plan] = self._profiles.pop(plan)
            return profile
        if len(self._profiles) >= _PROFILES:
            self._forget(self._profiles.pop(next(iter(self._profiles))))
        key = hashlib.blake2b(plan, digest_size=12).hexdigest()
        file = os.memfd_create("plan", os.MFD_CLOEXEC)
        try:
            os.write(file, plan)
            os.lseek(file, 0, os.SEEK_SET)
            socket.send_fds(self._control, [b"P" + key.encode()], [file])
        finally:
            os.close(file)
        profile = self._profiles[plan] = _Profile(key, [])
        return profile

    def _forget(self, profile: _Profile) -> None:
        for spare in profile.spares:
            spare.line.close()
        self._control.send(b"D" + profile.key.encode())

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
        for profile in self._profiles.values():
            for spare in profile.spares:
                spare.line.close()
        self._profiles.clear()
        self._control.close()
        if self._pid == os.getpid():
            with contextlib.suppress(subprocess.TimeoutExpired):
                self._process.wait(_PATIENCE)
            if self._private.name.startswith(f"glee-{self._pid}-"):  # not that of the process this one was forked from
                remove_tree(str(self._private))


def find_program() -> Path | None:
    """The fork server in C, where it was built."""
    return NATIVE if NATIVE.exists() else None


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
                remove_tree(str(old))
    _make_folder(private)
    if abilities.uid != os.getuid():
        private.chmod(0o1733)  # its runs may make and remove what is theirs, and see no other's


def _look(line: socket.socket) -> bytes | None:
    """What a jail says next, left there to be heard; None if it is there and silent, nothing if it is gone."""
    try:
        return line.recv(1, socket.MSG_PEEK | socket.MSG_DONTWAIT)
    except BlockingIOError:
        return None
    except OSError:
        return b""


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
