"""What a run that was granted nothing tries, and a world around it that is worth reaching."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import socket
import sys
import tempfile
from collections.abc import Callable, Iterator
from pathlib import Path

from launchers import hold_with

from glee.definitions.result import Result
from glee.sandbox.syscalls import machine, numbers
from glee.testing import Project, manifest

READING = {
    "a file outside": "open(OUTSIDE + '/secret').read()",
    "a file outside by a relative path": "open(os.path.relpath(OUTSIDE, '.') + '/secret').read()",
    "the users": "open('/etc/passwd').read()",
    "their passwords": "open('/etc/shadow').read()",
    "home folders": "open('/home/' + os.listdir('/home')[0] + '/.profile').read()",
    "root's home": "open('/root/.profile').read()",
    "the project": "open(PROJECT + '/private').read()",
    "Glee's settings": "open(PROJECT + '/.glee/config.yml').read()",
    "a link to it": "(os.symlink(OUTSIDE + '/secret', TMP + '/s'), open(TMP + '/s').read())",
    "a hard link to it": "os.link(OUTSIDE + '/secret', TMP + '/h')",
    "through the root of a process": "open('/proc/self/root/etc/passwd').read()",
    "through the root of process one": "open('/proc/1/root/etc/passwd').read()",
    "the environment of process one": "open('/proc/1/environ').read()",
    "the memory of process one": "open('/proc/1/mem', 'rb').read(1)",
    "the files of process one": "os.listdir('/proc/1/fd')",
    "the environment of the host": "open(f'/proc/{HOST}/environ').read()",
    "what is known of it": "os.stat(OUTSIDE)",
    "the machine's settings": "open('/proc/sys/kernel/core_pattern').read()",
    "devices": "os.listdir('/sys')",
    "private keys": "os.listdir('/etc/ssl/private')[0]",
    "a file outside by openat2": "os.read(call('openat2', -100, OUTSIDE.encode() + b'/secret', bytes(24), 24), 9)",
    "a file outside by its parent's parent": "open('/proc/self/cwd/../../outside/secret').read()",
    "what the host has in its environment": "[n for n in os.environ if n not in USUAL] or refused()",
    "the host's time and again": "open('/proc/uptime').read()",
    "the memory of the machine": "open('/dev/mem', 'rb').read(1)",
    "the kernel's messages": "open('/dev/kmsg').read(1)",
    "other terminals": "os.open('/dev/tty', os.O_RDWR) and os.listdir('/dev/pts')[0]",
}
WRITING = {
    "a file outside": "open(OUTSIDE + '/new', 'w')",
    "the system": "open('/usr/new', 'w')",
    "the root": "open('/new', 'w')",
    "the project": "open(PROJECT + '/new', 'w')",
    "the tool itself": "open(os.path.join(PROJECT, '.glee/tools/attack/tool.yml'), 'a')",
    "its own module": "open(os.path.join(PROJECT, 'attack.py'), 'a')",
    "a file that makes others its owner": "os.chmod(open(TMP + '/s', 'w').name, 0o4755)",
    "one that is made so": "os.open(TMP + '/s2', os.O_CREAT | os.O_WRONLY, 0o6755)",
    "one that is made so without a name": "os.mknod(TMP + '/s3', 0o104755)",
    "a mode": "os.chmod(OUTSIDE + '/secret', 0o777)",
    "a time": "os.utime(OUTSIDE + '/secret')",
    "an attribute": "os.setxattr(OUTSIDE + '/secret', 'user.x', b'x')",
    "a length": "os.truncate(OUTSIDE + '/secret', 0)",
    "a device": "os.mknod(TMP + '/null', 0o20666, os.makedev(1, 3))",
    "a folder": "os.mkdir('/etc/new')",
    "a name": "os.rename('/usr/bin', '/usr/nib')",
}
NETWORK = {
    "the host's loopback": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "a datagram to it": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "IPv6": "socket.socket(socket.AF_INET6)",
    "a name": "socket.getaddrinfo('localhost', 80)[0][4] and socket.create_connection(('localhost', PORT), 2)",
    "a socket with a path": "socket.socket(socket.AF_UNIX).connect(OUTSIDE + '/socket')",
    "a socket without one": "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "the hypervisor": "socket.socket(socket.AF_VSOCK)",
    "a name server": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(bytes(12), ('127.0.0.53', 53))",
    "the machine's bus": "socket.socket(socket.AF_UNIX).connect('/run/dbus/system_bus_socket')",
    "a container engine": "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    "an agent for keys": "socket.socket(socket.AF_UNIX).connect(os.environ.get('SSH_AUTH_SOCK', '/run/agent'))",
    "Bluetooth": "socket.socket(31, socket.SOCK_RAW, 1)",
    "a socket with a path, by one of a pair": "socket.socketpair(1, 2)[0].sendto(b'x', OUTSIDE + '/datagrams')",
    "a server of its own": "socket.create_server(('127.0.0.1', 0))",
    "several paths": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
}
PROCESSES = {
    "a signal to the host": "os.kill(HOST, 0)",
    "a signal to process one": "(os.kill(1, 9), time.sleep(0.2), open('/proc/1/stat').read() and refused())",
    "its limits": "resource.prlimit(HOST, resource.RLIMIT_CORE)",
    "the limits of process one": "resource.prlimit(1, resource.RLIMIT_NOFILE, (9, 9))",
    "its priority": "os.setpriority(os.PRIO_PROCESS, HOST, 19)",
    "to be root": "os.setuid(0)",
    "to already be root": "os.getuid() and refused()",
    "other groups": "os.setgroups([0])",
    "descriptors of others": "[n for n in os.listdir('/proc/self/fd') if int(n) > 5] or refused()",
    "a setuid program": "os.stat('/usr/bin/su') and subprocess.run(['/usr/bin/su', '-c', 'id'], check=True)",
    "a core dump": "resource.setrlimit(resource.RLIMIT_CORE, (1 << 20, 1 << 20))",
    "to see other processes": "[n for n in os.listdir('/proc') if n.isdigit() and int(n) > 9] or refused()",
    "a signal through a file": "fcntl.fcntl(os.pipe()[0], fcntl.F_SETOWN, HOST)",
    "to be traced by others": "call('prctl', 0x59616d61, HOST, 0, 0, 0)",
    "its own memory as another's": "open(f'/proc/{HOST}/mem', 'r+b')",
    "to leave its limits": "resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))",
}
CALLS = {
    "mount": "call('mount', b'x', b'/tmp', b'tmpfs', 0, 0)",
    "umount2": "call('umount2', b'/tmp', 2)",
    "pivot_root": "call('pivot_root', b'/tmp', b'/tmp')",
    "chroot": "os.chroot('/tmp')",
    "unshare": "call('unshare', 0x10000000)",
    "a child for its parent": "call('clone', 0x8000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "clone into a namespace": "call('clone', 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "clone3": "call('clone3', 0, 0)",
    "setns": "call('setns', 0, 0)",
    "ptrace": "call('ptrace', 16, 1, 0, 0)",
    "process_vm_readv": "call('process_vm_readv', 1, 0, 0, 0, 0, 0)",
    "bpf": "call('bpf', 0, 0, 0)",
    "io_uring_setup": "call('io_uring_setup', 1, ctypes.create_string_buffer(200))",
    "keyctl": "call('keyctl', 0, -3, 0)",
    "add_key": "call('add_key', b'user', b'x', b'x', 1, -3)",
    "userfaultfd": "call('userfaultfd', 1)",
    "perf_event_open": "call('perf_event_open', ctypes.create_string_buffer(200), 0, -1, -1, 0)",
    "personality": "call('personality', 0x0040000)",
    "open_by_handle_at": "call('open_by_handle_at', 0, 0, 0)",
    "name_to_handle_at": "call('name_to_handle_at', -100, b'/', bytes(200), bytes(8), 0)",
    "kexec_load": "call('kexec_load', 0, 0, 0, 0)",
    "init_module": "call('init_module', 0, 0, b'')",
    "swapon": "call('swapon', b'/tmp/x', 0)",
    "reboot": "call('reboot', 0, 0, 0, 0)",
    "fanotify_init": "call('fanotify_init', 0, 0)",
    "open_tree": "call('open_tree', -100, b'/', 1)",
    "fsopen": "call('fsopen', b'tmpfs', 0)",
    "memfd_secret": "call('memfd_secret', 0)",
    "typing into a terminal": "fcntl.ioctl(0, 0x5412, b'x')",
    "a system call of 32 bits": "run_code(bytes.fromhex('b814000000cd80c3'))",
    "a system call of x32": "call_number(0x40000000 + 39)",
    "the clock": "call('clock_settime', 0, bytes(16))",
    "the name of the machine": "call('sethostname', b'x', 1)",
    "ports": "call('ioperm', 0, 8, 1)",
    "modify_ldt": "call('modify_ldt', 0, 0, 0)",
    "quotactl": "call('quotactl', 0, 0, 0, 0)",
    "acct": "call('acct', b'/tmp/x')",
    "pidfd_getfd": "call('pidfd_getfd', 0, 0, 0)",
    "kcmp": "call('kcmp', 1, 1, 0, 0, 0)",
    "move_pages": "call('move_pages', HOST, 0, 0, 0, 0, 0)",
    "process_madvise": "call('process_madvise', 0, 0, 0, 0, 0)",
    "message queues": "call('mq_open', b'x', 0o100, 0o600, 0)",
    "shared memory of System V": "call('shmget', 1234, 4096, 0o1600)",
}
ATTACKS = {
    f"{kind}: {name}": code
    for kind, attacks in {
        "reading": READING,
        "writing": WRITING,
        "network": NETWORK,
        "processes": PROCESSES,
        "calls": CALLS,
    }.items()
    for name, code in attacks.items()
}
PROGRAM = """#!{python} -I
import ctypes, fcntl, mmap, os, resource, socket, subprocess, sys, time

NUMBERS = {numbers}
OUTSIDE, PROJECT, ABSTRACT = {outside!r}, {project!r}, {abstract!r}
PORT, HOST = {port}, {host}
TMP = os.environ["TMPDIR"]
USUAL = "PATH LANG LC_ALL LC_CTYPE TZ HOME TMPDIR PWD SHLVL _".split()


def run_code(code):
    # for x86_64, in memory of its own
    if os.uname().machine != "x86_64":
        refused()
    memory = mmap.mmap(-1, mmap.PAGESIZE, prot=mmap.PROT_READ | mmap.PROT_WRITE | mmap.PROT_EXEC)
    memory.write(code)
    return ctypes.CFUNCTYPE(ctypes.c_int)(ctypes.addressof(ctypes.c_char.from_buffer(memory)))()


def refused():
    raise PermissionError("it is not so")


def call(name, *arguments):
    if name not in NUMBERS:  # of another machine
        refused()
    return call_number(NUMBERS[name], *arguments)


def call_number(number, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = libc.syscall(ctypes.c_long(number), *values)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


try:
    print("escaped:", repr(eval(sys.argv[1])))
except (OSError, ValueError, subprocess.CalledProcessError, IndexError) as error:
    print("held:", type(error).__name__)
"""


Attack = Callable[[str], Result]


@contextlib.contextmanager
def prison(layers: frozenset[str] | None, *, native: bool | None = None, leaks: bool = False) -> Iterator[Attack]:
    """A project whose tool may do nothing but run the code it is given, held by these layers and no others.

    Nothing outside may have changed afterwards, unless it `leaks`.

    In a folder that anybody can enter: run by root and without mounts, a run has only the rights of a stranger.
    """
    base = Path(tempfile.mkdtemp(prefix="prison-"))
    base.chmod(0o755)
    try:
        with contextlib.ExitStack() as opened:
            project = _build(base, opened)
            engine = opened.enter_context(project.open())
            hold_with(engine, layers=layers, native=native)
            yield lambda code: engine.call_sync("attack", {"code": code})
            if not leaks:
                _check_outside(base / "outside")
    finally:
        shutil.rmtree(base)


def _build(base: Path, opened: contextlib.ExitStack) -> Project:
    outside = base / "outside"
    outside.mkdir()
    (outside / "secret").write_text("a secret of the host")
    project = Project(base / "held")
    project.configure("")
    project.write("private", "of the project")
    server = opened.enter_context(socket.create_server(("127.0.0.1", 0)))
    for address in (str(outside / "socket"), f"\0{base.name}"):
        listener = opened.enter_context(socket.socket(socket.AF_UNIX))
        listener.bind(address)
        listener.listen()
    datagrams = opened.enter_context(socket.socket(socket.AF_UNIX, socket.SOCK_DGRAM))
    datagrams.bind(str(outside / "datagrams"))
    (outside / "datagrams").chmod(0o777)
    program = PROGRAM.format(
        python=_find_python(),
        numbers=numbers(machine() or "x86_64"),
        outside=str(outside),
        project=str(project.root),
        abstract=f"\0{base.name}",
        port=server.getsockname()[1],
        host=os.getpid(),
    )
    project.write("attack.py", program, executable=True)
    schema = {"type": "object", "properties": {"code": {"type": "string"}}}
    execution = {"entrypoint": "./attack.py", "args": ["${code}"]}
    project.add_tool("attack", manifest("attack", "command", execution, inputs={"schema": schema}))
    return project


def _find_python() -> str:
    """The system's, where it is there: root's own may lie in a home that nobody else can enter."""
    return "/usr/bin/python3" if Path("/usr/bin/python3").exists() else sys.executable


def is_held(result: Result) -> bool:
    """It said so itself, or the kernel ended it."""
    if result.error is not None:
        return result.error.details.get("exit_code") == 128 + signal.SIGSYS
    return str(result.output).startswith("held: ")


def _check_outside(outside: Path) -> None:
    assert (outside / "secret").read_text() == "a secret of the host"
    assert sorted(path.name for path in outside.iterdir()) == ["datagrams", "secret", "socket"]
    assert (outside / "secret").stat().st_mode & 0o777 == 0o644
