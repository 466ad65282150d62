"""A template of one Python tool: its module is imported once, inside the jail, and each call is a fork of that.

    engine ──► {"path", "after", "module", "function", "numbers"} once
    engine ◄── "W" and the files that the import read          it can serve; or "N reason": it cannot
    engine ──► "G" and the streams of a call                   read by the fork that waits for it, never by the template
    engine ◄── "T"         the fork has taken the call
    engine ◄── "D status"  the call is over, and left nothing; the next fork waits
    engine ◄── "Z status"  the call is over and left something behind, so this template ends with it

The fork lays one more Landlock domain on itself, so that the call can neither signal nor look into the template.
Like `python_child`, it imports nothing of Glee and nothing newer than Python 3.8.
"""

import array
import atexit
import ctypes
import gc
import json
import os
import signal
import socket
import stat
import struct
import sys

IDLE = 300
"""Seconds after which a template that nobody calls ends."""
STREAMS = 4
KEPT = {"0", "1", "2", "3"}
"""Descriptors of the template: standard streams that lead nowhere, and the line to the engine."""
MOST_WATCHED = 50000
DUMPABLE = 4
SIGNALS = 2
"""Of what a Landlock domain can keep in: signals."""
MOST_FOUND = 1000
NOT_READ = os.O_WRONLY | os.O_RDWR | os.O_CREAT

AT_FIRST: "dict[str, dict[str, int]]" = {}
"""The jail's own folders before anything ran: in /tmp may be folders on the way to something that was granted."""


def main(control, child):
    line = socket.socket(fileno=control)
    request = json.loads(line.recv(65536).decode())
    AT_FIRST.update((folder, look(folder)) for folder in {os.environ["TMPDIR"], os.environ["HOME"]})
    watch = Watch()
    sys.path[:0] = request["path"]
    sys.path += request["after"]
    try:
        function = child.find(request["module"], request["function"], request["path"])
        watched = watch.end()
        reason = find_fault()
    except BaseException as error:
        reason = type(error).__name__ + ": " + str(error)
    if not reason and len(watched) > MOST_WATCHED:
        reason = "importing it read too many files to watch"
    if reason:
        line.send(b"N" + reason.encode("utf-8", "replace")[:1000])
        os._exit(0)
    for stream in (sys.stdout, sys.stderr):
        stream.flush()
    libc = ctypes.CDLL(None, use_errno=True)
    libc.prctl(DUMPABLE, 0, 0, 0, 0)
    gc.collect()
    gc.freeze()
    line.send(b"W" + watched)
    forks = Forks(line, function, child, libc, request["numbers"])
    forks.add()
    forks.add()  # while one call is served, the next need not wait for a fork
    while forks.serve_one():
        forks.add()
    os._exit(0)


class Watch:
    """Which files the import read: when one of them changes, the template is stale."""

    def __init__(self):
        self.files = {}
        self.on = True
        sys.addaudithook(self.hear)

    def hear(self, event, args):
        if self.on and event == "open" and isinstance(args[0], (str, bytes)) and not args[2] & NOT_READ:
            self.add(os.fsdecode(args[0]))

    def add(self, path):
        """Of what lies in a folder of packages, only the folder: installing something changes that."""
        path = os.path.abspath(path)
        at = path.find("/site-packages/")
        path = path if at < 0 else path[: at + len("/site-packages")]
        if path not in self.files and not path.startswith((sys.base_prefix + "/lib/", "/proc/", "/dev/")):
            self.files[path] = None
            try:
                status = os.stat(path)
                self.files[path] = [status.st_mtime_ns, status.st_size, status.st_ino]
            except OSError:
                pass

    def end(self):
        """The files as JSON. A module that came from a cache has its source watched as well."""
        for module in list(sys.modules.values()):
            file = getattr(module, "__file__", None)
            if isinstance(file, str):
                self.add(file)
        self.on = False
        return json.dumps(self.files).encode()


def find_fault():
    """Why forks of this process would not be independent of each other."""
    if len(os.listdir("/proc/self/task")) > 1:
        return "importing it started threads"
    with open("/proc/self/maps", errors="surrogateescape") as maps:
        if any(line.split()[1][1::2] == "ws" for line in maps):
            return "importing it made memory that would be shared"
    if not KEPT.issuperset(name for name in os.listdir("/proc/self/fd") if os.path.exists("/proc/self/fd/" + name)):
        return "importing it left files open"
    if not is_clean():
        return "importing it left files or processes"
    return None


def is_clean(waiting=()):
    """True if nothing is left of a call: no process, and no file that the next one would find."""
    processes = {int(name) for name in os.listdir("/proc") if name.isdigit()}
    return processes == {1, os.getpid(), *waiting} and all(look(folder) == known for folder, known in AT_FIRST.items())


def look(folder):
    """What lies in a folder that is the jail's own: paths and modes. What is mounted there is somebody else's."""
    if os.lstat(folder).st_uid == os.getuid():
        os.utime(folder, (0, 0))  # which could carry a number from one call to the next
    found = {folder: (os.lstat(folder).st_mode, *os.listxattr(folder))}
    device = os.lstat(folder).st_dev
    waiting = [folder]
    while waiting and len(found) < MOST_FOUND:
        for entry in os.scandir(waiting.pop()):
            status = entry.stat(follow_symlinks=False)
            found[entry.path] = status.st_mode
            if stat.S_ISDIR(status.st_mode) and status.st_dev == device:
                waiting.append(entry.path)
    return found


class Forks:
    """Forks of this process that wait for a call, made before it comes. Each serves one, and its memory is its own."""

    def __init__(self, line, function, child, libc, numbers):
        self.line = line
        self.function = function
        self.child = child
        self.libc = libc
        self.numbers = numbers
        self.waiting = set()
        self.mask = signal.pthread_sigmask(signal.SIG_BLOCK, signal.valid_signals())

    def add(self):
        pid = os.fork()
        if pid == 0:
            try:
                signal.pthread_sigmask(signal.SIG_SETMASK, self.mask)
                os.setpgid(0, 0)
                separate(self.libc, self.numbers)
                streams = receive(self.line)
            except BaseException:
                self.line.shutdown(socket.SHUT_RDWR)  # so that the template ends too
                os._exit(1)
            run(self.line, streams, self.function, self.child)
        self.waiting.add(pid)

    def serve_one(self):
        """Waits for the end of one call. False if this template has served its last."""
        pid, how = os.waitpid(-1, 0)
        known = pid in self.waiting
        self.waiting.discard(pid)
        status = os.WEXITSTATUS(how) if os.WIFEXITED(how) else 128 + os.WTERMSIG(how)
        clean = known and is_clean(self.waiting)
        try:
            self.line.send((b"D%d" if clean else b"Z%d") % status)
        except OSError:
            return False
        return clean


def separate(libc, numbers):
    """A domain of its own: what is outside it, the template and process one, it cannot signal."""
    libc.prctl(DUMPABLE, 1, 0, 0, 0)
    value = struct.pack("=QQQ", 0, 0, SIGNALS)
    ruleset = libc.syscall(numbers["create"], value, len(value), 0)
    if ruleset < 0 or libc.syscall(numbers["restrict"], ruleset, 0) != 0:
        raise OSError(ctypes.get_errno(), "a domain of its own")
    os.close(ruleset)


def receive(line):
    """The streams of the call, however long it takes to come, up to a point."""
    line.settimeout(IDLE)
    data, extra, _, _ = line.recvmsg(16, socket.CMSG_SPACE(STREAMS * 4))
    files = array.array("i")
    for level, kind, content in extra:
        if level == socket.SOL_SOCKET and kind == socket.SCM_RIGHTS:
            files.frombytes(content)
    if data != b"G" or len(files) != STREAMS:
        raise EOFError
    line.send(b"T")
    return files


def run(line, streams, function, child):
    status = 1
    try:
        line.close()
        for number, file in enumerate(streams):
            os.dup2(file, number, inheritable=number < 3)
            os.close(file)
        child.answer(3, child.read_request(), lambda: function)
        finish()
        status = 0
    finally:
        os._exit(status)


def finish():
    """What an interpreter does when it ends."""
    if "threading" in sys.modules:
        sys.modules["threading"]._shutdown()
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        try:
            stream.flush()
        except Exception:  # noqa: S110 the function closed or replaced it
            pass
