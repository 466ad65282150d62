"""Inside a jail: process one, which keeps it, and the run, which locks itself in and waits for its program.

    engine ──► a request and its standard streams             (the run reads it, and becomes the program)
    engine ◄── "L" and a socket: where the run can knock whose network ends at named hosts
    engine ◄── "N" and a descriptor: where the calls of a recorded run are told
    engine ◄── "R"          everything holds; from here on a program may run
    engine ◄── "E reason"   it could not be set up, so nothing ran
    engine ◄── "F number"   the program could not be started, with the system's number of the error
    engine ◄── "X status"   it ended, and so did all that it started

The socket is also the lifeline: when the engine lets go of its end, or dies, process one ends everything.
"""

from __future__ import annotations

import contextlib
import errno
import fcntl
import os
import resource
import select
import signal
import socket
import time
from collections.abc import Iterable, Sequence
from typing import Final, NoReturn

from glee.sandbox import kernel, landlock, namespaces
from glee.sandbox.leftovers import remove_tree
from glee.sandbox.offspring import end_offspring
from glee.sandbox.profile import Profile

REQUEST_BYTES: Final = 60_000
"""A request over this comes in a file."""
MOST_BYTES: Final = 8 * 1024 * 1024
"""Over this the kernel would not start a program."""
_FILES: Final = {resource.RLIMIT_NOFILE}
_STREAMS: Final = (3, 4)
"""How many a request brings: the standard ones, and perhaps a channel."""
_SOCKET: Final = 4
"""The descriptor of the socket in the run: after the three standard streams and the channel."""


def keep(profile: Profile, line: socket.socket, name: str, group: Sequence[int] = ()) -> NoReturn:
    """Process one. It carries out the set-up, starts the run, and ends with it."""
    own = f"{profile.private}/{name}" if profile.private is not None else None
    try:
        if os.getpid() != 1:
            kernel.adopt_orphans()
        if profile.net is not None:
            kernel.call("setns", profile.net, kernel.NEW_NET)
        if profile.door is not None:
            with namespaces.open_door(profile.door) as door:
                socket.send_fds(line, [b"L"], [door.fileno()])
        if profile.view is not None:
            profile.view.enter()
        if own is not None:
            _make_folders(profile, own)
        alarm = hear_of_ends()
        run = os.fork()
        if run == 0:
            _run(profile, line, own, group)
        _settle(profile)
    except BaseException as error:
        _give_up(line, error)
    _wait(line, run, alarm, own, profile.proc)


def _make_folders(profile: Profile, own: str) -> None:
    """Where there are no mounts: a folder for this run alone, with its /tmp and HOME."""
    for folder in (own, f"{own}/tmp", f"{own}/home"):
        os.mkdir(folder, 0o700)
        if profile.becomes is not None:
            os.chown(folder, *profile.becomes)


def hear_of_ends() -> int:
    """A descriptor that can be read whenever a process has ended; made before there is one."""
    alarm, wake = os.pipe()
    os.set_blocking(wake, False)
    signal.set_wakeup_fd(wake, warn_on_full_buffer=False)
    signal.signal(signal.SIGCHLD, lambda *_: None)
    return alarm


def _settle(profile: Profile) -> None:
    """Nothing that the run does to this process may gain it anything."""
    if profile.becomes is not None:
        namespaces.become(*profile.becomes)
    kernel.drop_capabilities()
    kernel.set_dumpable(False)


def _wait(line: socket.socket, run: int, alarm: int, own: str | None, proc: int) -> NoReturn:
    """Reaps whatever ends; stops when the run has, or when nobody holds the other end of the line."""
    status = 128 + signal.SIGKILL
    watch = select.poll()
    watch.register(line, select.POLLRDHUP)
    watch.register(alarm, select.POLLIN)
    over = False
    while not over:
        events = dict(watch.poll())
        if line.fileno() in events:
            break
        os.read(alarm, 512)
        over, status = _reap(run, status)
    status = _end_all(run, status, proc)
    if own is not None:
        remove_tree(own)
    with contextlib.suppress(OSError):
        line.send(b"X%d" % status)
    os._exit(0)


def _end_all(run: int, status: int, proc: int) -> int:
    """Ends every process of the jail but this one, and returns the run's status.

    Again and again: a run that still has another identity, in the midst of being set up, cannot be killed yet.
    """
    while True:
        if os.getpid() == 1:
            with contextlib.suppress(ProcessLookupError, PermissionError):
                os.kill(-1, signal.SIGKILL)
        else:  # the same call would end all that the user runs
            end_offspring(proc)
        try:
            ended, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return status
        if ended == run:
            status = _status(how)
        elif ended == 0:
            time.sleep(0.0005)


def _reap(run: int, status: int) -> tuple[bool, int]:
    while True:
        try:
            ended, how = os.waitpid(-1, os.WNOHANG)
        except ChildProcessError:
            return True, status
        if ended == 0:
            return False, status
        if ended == run:
            return True, _status(how)


def _status(how: int) -> int:
    code = os.waitstatus_to_exitcode(how)
    return code if code >= 0 else 128 - code


def _run(profile: Profile, line: socket.socket, own: str | None, group: Sequence[int]) -> NoReturn:
    """Locks itself in, then waits for the request and becomes the program."""
    try:
        for file in group:
            os.write(file, b"0")
        lock(profile, own)
        if profile.record:
            listener = kernel.install_filter(profile.record, kernel.TELL)
            socket.send_fds(line, [b"N"], [listener])
        line = _move(line)
        _limit(profile, _FILES)  # not before: the server's own files would count
        line.send(b"R")
        program, cwd, argv, env = _receive(line)
    except BaseException as error:
        _give_up(line, error)
    try:
        os.chdir(cwd)
        os.execve(program, argv, env)
    except (OSError, ValueError) as error:
        line.send(b"F%d" % (getattr(error, "errno", None) or 0))
    os._exit(127)


def _move(line: socket.socket) -> socket.socket:
    """To its place, from wherever it is: the server may have been given few descriptors. Nothing else stays open."""
    apart = fcntl.fcntl(line.detach(), fcntl.F_DUPFD_CLOEXEC, _SOCKET + 1)
    os.dup2(apart, _SOCKET, inheritable=False)
    kernel.close_from(_SOCKET + 1)
    with contextlib.suppress(OSError):
        os.close(_SOCKET - 1)
    return socket.socket(fileno=_SOCKET)


def lock(profile: Profile, own: str | None = None) -> None:
    """Every layer that the process lays on itself, from the outermost in. None of them can be taken off."""
    signal.set_wakeup_fd(-1)
    os.setsid()
    for number in (signal.SIGPIPE, signal.SIGXFSZ, signal.SIGINT, signal.SIGCHLD):
        signal.signal(number, signal.SIG_DFL)
    if profile.becomes is not None:
        namespaces.become(*profile.becomes)
    if profile.own_user:
        namespaces.enter_user(os.getuid(), os.getgid(), profile.proc)
    _limit(profile, profile.limits.keys() - _FILES)  # not before: the new namespace would have all runs share them
    if not profile.flags & kernel.NEW_PIDS:
        kernel.set_parent_death(signal.SIGKILL)
    kernel.forbid_new_privileges()
    if profile.ruleset is not None:
        landlock.restrict(profile.ruleset(own))
    kernel.drop_capabilities()
    if profile.filter:
        kernel.install_filter(profile.filter)


def _limit(profile: Profile, limits: Iterable[int]) -> None:
    """A process that has used up its time is told before it is killed."""
    for limit in limits:
        value = profile.limits.get(limit)
        if value is not None:
            most = resource.getrlimit(limit)[1]
            more = limit == resource.RLIMIT_CPU and (most == resource.RLIM_INFINITY or value < most)
            resource.setrlimit(limit, (value, value + more))


def _receive(line: socket.socket) -> tuple[str, str, list[str], dict[str, str]]:
    data, files, flags, _ = socket.recv_fds(line, REQUEST_BYTES + 1, _STREAMS[-1] + 1)
    if not data:
        os._exit(125)  # nobody will ask any more
    if flags & socket.MSG_TRUNC or (data == b"M" and not files):
        raise ValueError("the request cannot be read")
    if data == b"M":
        if os.fstat(files[-1]).st_size > MOST_BYTES:
            line.send(b"F%d" % errno.E2BIG)
            os._exit(127)
        data = _read_all(files.pop())
    if len(files) not in _STREAMS:
        raise ValueError("a request brings three streams, or four")
    for number, file in enumerate(files):
        os.dup2(file, number, inheritable=True)
    for file in files:
        if file >= len(files):  # one that already had the number of a stream is that stream now
            os.close(file)
    return _split(data)


def _split(data: bytes) -> tuple[str, str, list[str], dict[str, str]]:
    """PROGRAM, CWD, COUNT, as many arguments, then variables, with a zero byte between each two."""
    words = data.decode("utf-8", "surrogateescape").split("\0")
    count = int(words[2]) if len(words) > 3 and words[2].isdecimal() else 0
    argv, variables = words[3 : 3 + count], words[3 + count :]
    if not 0 < count <= len(words) - 3 or not all("=" in variable for variable in variables):
        raise ValueError("the request cannot be read")
    return words[0], words[1], argv, dict(variable.split("=", 1) for variable in variables)


def _read_all(file: int) -> bytes:
    parts = []
    os.lseek(file, 0, os.SEEK_SET)
    while part := os.read(file, 1 << 20):
        parts.append(part)
    os.close(file)
    return b"".join(parts)


def _give_up(line: socket.socket, error: BaseException) -> NoReturn:
    with contextlib.suppress(OSError):
        line.send(b"E" + str(error).encode("utf-8", "replace")[:1000])
    os._exit(125)
