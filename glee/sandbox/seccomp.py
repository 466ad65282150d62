"""Which system calls a run may make: an allowed set, and for a few of them which arguments.

What is not in the set is refused as forbidden; a number that nobody knew when this was written, as unknown.
A call in the machine's 32-bit form ends the process: its numbers mean other things.
"""

from __future__ import annotations

import errno
import socket
from collections.abc import Collection, Mapping
from typing import Final, Literal

from glee.sandbox.bpf import ALLOW, ARCHITECTURE, ASK, KILL, NUMBER, Program, argument, refuse, search
from glee.sandbox.syscalls import numbers

Net = Literal["none", "local", "open"]

_ARCHITECTURES: Final = {"x86_64": 0xC000_003E, "aarch64": 0xC000_00B7}
_X32: Final = 0x4000_0000
_NOT_CLONED: Final = 0x7E02_0080 | 0x8000
"""New namespaces; and children of one's parent, which would take them for its own."""
_TERMINAL_INPUT: Final = (0x5412, 0x541C)
"""TIOCSTI and TIOCLINUX, which type into the terminal of whoever started us."""
_SOCKET_TYPE: Final = 0xF

_ALLOWED_NAMES: Final = """
    read write open close stat fstat lstat poll lseek mmap mprotect munmap brk pread64 pwrite64 readv writev access
    pipe select mremap msync mincore madvise dup dup2 sendfile fcntl flock fsync fdatasync truncate ftruncate getdents
    getcwd chdir fchdir rename mkdir rmdir creat link unlink symlink readlink chmod fchmod chown fchown lchown umask
    statfs fstatfs readahead getdents64 fadvise64 openat mkdirat mknod mknodat fchownat futimesat newfstatat unlinkat
    renameat linkat symlinkat readlinkat fchmodat faccessat splice tee sync_file_range vmsplice utimensat fallocate
    dup3 pipe2 preadv pwritev renameat2 copy_file_range preadv2 pwritev2 statx close_range faccessat2
    fchmodat2 cachestat sync syncfs utime utimes ustat setxattr lsetxattr fsetxattr getxattr lgetxattr fgetxattr
    listxattr llistxattr flistxattr removexattr lremovexattr fremovexattr setxattrat getxattrat listxattrat
    removexattrat memfd_create inotify_init inotify_init1 inotify_add_watch inotify_rm_watch file_getattr rt_sigaction
    rt_sigprocmask rt_sigreturn rt_sigpending rt_sigtimedwait rt_sigqueueinfo rt_sigsuspend sigaltstack pause kill
    tkill tgkill rt_tgsigqueueinfo signalfd signalfd4 restart_syscall nanosleep getitimer alarm setitimer gettimeofday
    time times timer_create timer_settime timer_gettime timer_getoverrun timer_delete clock_gettime clock_getres
    clock_nanosleep timerfd_create timerfd_settime timerfd_gettime fork vfork execve execveat exit exit_group wait4
    waitid getpid getppid gettid getpgrp getpgid setpgid getsid setsid set_tid_address set_robust_list get_robust_list
    rseq arch_prctl prctl futex futex_waitv futex_wake futex_wait futex_requeue sched_yield sched_getparam
    sched_getscheduler sched_get_priority_max sched_get_priority_min sched_rr_get_interval sched_getaffinity
    sched_getattr sched_setaffinity sched_setscheduler sched_setparam sched_setattr getpriority setpriority ioprio_get
    ioprio_set getcpu membarrier pidfd_open pidfd_send_signal set_thread_area get_thread_area getuid geteuid getgid
    getegid getresuid getresgid getgroups setuid setgid setreuid setregid setresuid setresgid setgroups setfsuid
    setfsgid capget capset uname sysinfo getrlimit setrlimit getrusage getrandom seccomp landlock_create_ruleset
    landlock_add_rule landlock_restrict_self mlock mlock2 munlock mlockall munlockall pkey_mprotect pkey_alloc
    pkey_free mseal map_shadow_stack remap_file_pages mbind set_mempolicy get_mempolicy set_mempolicy_home_node
    epoll_create epoll_create1 epoll_ctl epoll_wait epoll_pwait epoll_pwait2 pselect6 ppoll eventfd eventfd2 io_setup
    io_destroy io_getevents io_submit io_cancel io_pgetevents connect accept accept4 sendto recvfrom sendmsg recvmsg
    sendmmsg recvmmsg shutdown bind listen getsockname getpeername setsockopt getsockopt
"""
ALLOWED: Final = frozenset(_ALLOWED_NAMES.split())
_JUDGED: Final = ("clone", "ioctl", "personality", "prlimit64", "socketpair", "socket")
Lack = Literal["files", "processes", "signals"]
"""What nothing else keeps a run from: files that are not its own, other processes, signals to them."""

_METADATA_NAMES: Final = """
    chmod fchmod fchmodat fchmodat2 chown fchown lchown fchownat utime utimes futimesat utimensat setxattr lsetxattr
    fsetxattr setxattrat removexattr lremovexattr fremovexattr removexattrat inotify_init inotify_init1
    inotify_add_watch
"""
_METADATA: Final = frozenset(_METADATA_NAMES.split())
"""What changes or watches a file that one may only read, or not even that, and Landlock does not stop."""
_SIGNAL_NAMES: Final = """
    kill tkill tgkill rt_sigqueueinfo rt_tgsigqueueinfo pidfd_send_signal pidfd_open
"""
_SIGNALS: Final = frozenset(_SIGNAL_NAMES.split())
_OF_ONESELF: Final = {
    "setpriority": {0: 0, 1: 0},
    "ioprio_set": {0: 1, 1: 0},
    "sched_setaffinity": {0: 0},
    "sched_setscheduler": {0: 0},
    "sched_setparam": {0: 0},
    "sched_setattr": {0: 0},
}
"""Scheduling, with what arguments must be for it to be one's own."""
_MODES: Final = {"chmod": 1, "fchmod": 1, "fchmodat": 2, "fchmodat2": 2, "mknod": 1, "mknodat": 2, "creat": 1}
"""Which argument is a mode."""
_MAKING: Final = {"open": (1, 2), "openat": (2, 3)}
"""Where flags and mode are; the mode counts only if the flags say that something is made."""
_MAKES: Final = 0o100 | 0o20000000
_SETUID: Final = 0o6000
RECORDED: Final = (
    "open", "openat", "openat2", "creat", "execve", "execveat", "mkdir", "mkdirat", "rmdir", "unlink", "unlinkat",
    "rename", "renameat", "renameat2", "link", "linkat", "symlink", "symlinkat", "truncate", "mknod", "mknodat",
    "chmod", "fchmodat", "connect", "stat", "lstat", "newfstatat", "statx", "access", "faccessat", "faccessat2",
    "readlink", "readlinkat", "chdir",
)  # fmt: skip
_OWNERS: Final = {"fcntl": (8, 10, 15), "ioctl": (0x8901, 0x8902)}
"""Requests that have the kernel send a signal to somebody: F_SETOWN, F_SETSIG, F_SETOWN_EX, FIOSETOWN, SIOCSPGRP."""


def compile_filter(machine: str, net: Net, *, lacks: Collection[Lack] = ()) -> bytes:
    """The filter for a machine. Where `lacks` says that no other layer holds something, it must refuse more."""
    table = numbers(machine)
    allowed = ALLOWED - (_METADATA if "files" in lacks else frozenset())
    allowed -= _SIGNALS if "signals" in lacks else frozenset()
    judged = {*_JUDGED, *(name for name in (*_MODES, *_MAKING) if name in table and name in allowed)}
    judged |= {*((*_OF_ONESELF, *_OWNERS) if "processes" in lacks else ())}
    judged |= {"kill"} if "signals" in lacks else set()
    program = Program()
    _check_machine(program, machine)
    labels = dict.fromkeys(table.values(), "forbidden")
    labels |= {table[name]: "allowed" for name in allowed if name in table}
    labels |= {table[name]: name for name in judged}
    for name in ("clone3", "openat2"):  # their arguments lie in memory where no filter sees them; others do as well
        labels[table[name]] = "unknown"
    search(program, labels, "unknown")
    _judge_clone(program)
    _judge_requests(program, "ioctl", (*_TERMINAL_INPUT, *(_OWNERS["ioctl"] if "processes" in lacks else ())))
    if "signals" in lacks:
        _judge_own(program, "kill", {0: 0})
    if "processes" in lacks:
        _judge_requests(program, "fcntl", _OWNERS["fcntl"])
        for name, arguments in _OF_ONESELF.items():
            _judge_own(program, name, arguments)
    _judge_personality(program)
    _judge_own(program, "prlimit64", {0: 0})
    for name in sorted(judged & _MODES.keys()):
        _judge_mode(program, name, _MODES[name])
    for name in sorted(judged & _MAKING.keys()):
        _judge_mode(program, name, _MAKING[name][1], flags=_MAKING[name][0])
    _judge_sockets(program, net)
    for name, verdict in (("allowed", ALLOW), ("forbidden", refuse(errno.EPERM)), ("unknown", refuse(errno.ENOSYS))):
        program.label(name)
        program.answer(verdict)
    return program.assemble()


def compile_recording(machine: str) -> bytes:
    """A filter that only tells of calls that name a file, a program or an address. It decides nothing."""
    table = numbers(machine)
    program = Program()
    _check_machine(program, machine)
    search(program, {table[name]: "told" for name in RECORDED if name in table}, "allowed")
    for name, verdict in (("allowed", ALLOW), ("told", ASK)):
        program.label(name)
        program.answer(verdict)
    return program.assemble()


def _check_machine(program: Program, machine: str) -> None:
    program.load(ARCHITECTURE)
    program.if_equal(_ARCHITECTURES[machine], "right")
    program.answer(KILL)
    program.label("right")
    program.load(NUMBER)
    if machine == "x86_64":
        program.if_at_least(_X32, None, "sixty-four")
        program.answer(KILL)
        program.label("sixty-four")


def _judge_clone(program: Program) -> None:
    program.label("clone")
    program.load(argument(0))
    program.if_any_bit(_NOT_CLONED, "no clone")
    program.answer(ALLOW)
    program.label("no clone")
    program.answer(refuse(errno.EPERM))


def _judge_requests(program: Program, name: str, forbidden: Collection[int]) -> None:
    """The low half alone: the kernel looks at no more, so a high bit must not hide a forbidden one."""
    program.label(name)
    program.load(argument(1))
    for request in forbidden:
        program.if_equal(request, f"no {name}")
    program.answer(ALLOW)
    program.label(f"no {name}")
    program.answer(refuse(errno.EPERM))


def _judge_personality(program: Program) -> None:
    """It may be asked for, and set to the usual one."""
    program.label("personality")
    program.load(argument(0))
    program.if_equal(0, "personality allowed")
    program.if_equal(0xFFFF_FFFF, "personality allowed")
    program.answer(refuse(errno.EPERM))
    program.label("personality allowed")
    program.answer(ALLOW)


def _judge_own(program: Program, name: str, values: Mapping[int, int]) -> None:
    """Of the caller alone: that of others, Glee's own process in the jail among them, is not its business."""
    program.label(name)
    for number, value in values.items():
        program.load(argument(number))
        program.if_equal(value, None, f"no {name}")
    program.answer(ALLOW)
    program.label(f"no {name}")
    program.answer(refuse(errno.EPERM))


def _judge_mode(program: Program, name: str, mode: int, flags: int | None = None) -> None:
    """No file that makes whoever runs it its owner: outside the jail it would."""
    program.label(name)
    if flags is not None:
        program.load(argument(flags))
        program.if_any_bit(_MAKES, None, f"any {name}")
    program.load(argument(mode))
    program.if_any_bit(_SETUID, f"no {name}")
    program.label(f"any {name}")
    program.answer(ALLOW)
    program.label(f"no {name}")
    program.answer(refuse(errno.EPERM))


def _judge_sockets(program: Program, net: Net) -> None:
    """Pairs are for talking to oneself. A Unix socket leads out of most namespaces, so there is none.

    One of a pair of datagram sockets could be turned to any other, so pairs are connected ones.
    """
    program.label("socketpair")
    program.load(argument(0))
    program.if_equal(socket.AF_UNIX, "pair")
    program.answer(refuse(errno.EAFNOSUPPORT))
    program.label("pair")
    program.load(argument(1))
    program.mask(_SOCKET_TYPE)
    program.if_equal(socket.SOCK_STREAM, "connected pair")
    program.if_equal(socket.SOCK_SEQPACKET, "connected pair")
    program.answer(refuse(errno.EPERM))
    program.label("connected pair")
    program.answer(ALLOW)
    program.label("socket")
    program.load(argument(0))
    families: Collection[int] = () if net == "none" else (socket.AF_INET, socket.AF_INET6)
    for family in families:
        program.if_equal(family, "stream or datagram")
    if net != "none":
        program.if_equal(socket.AF_NETLINK, "routes")
    program.answer(refuse(errno.EAFNOSUPPORT))
    program.label("stream or datagram")
    program.load(argument(1))
    program.mask(_SOCKET_TYPE)
    program.if_at_least(socket.SOCK_RAW, "no socket")
    program.load(argument(2))
    program.if_at_least(256, "no socket")  # MPTCP is 262
    program.answer(ALLOW)
    program.label("routes")
    program.load(argument(2))
    program.if_equal(0, "route socket")
    program.label("no socket")
    program.answer(refuse(errno.EPERM))
    program.label("route socket")
    program.answer(ALLOW)
