"""What `glee doctor` tries to do from inside a jail that was granted nothing: a list of small expressions.

Their names are of `prisoner`, the program that evaluates each in a process of its own: the world outside in
capitals, and a few verbs. Nothing here harms the machine even where no layer stops it.
"""

from __future__ import annotations

from typing import Final, Literal

from msgspec import Struct

Kind = Literal["files", "network", "processes", "system calls", "limits"]


class Trial(Struct, frozen=True):
    name: str
    kind: Kind
    code: str
    needs: frozenset[str] = frozenset()
    """The layers without which nobody promises that this is held."""
    machine: str | None = None
    """The one machine that this makes sense on."""
    is_judged_after: bool = False
    """Whether it succeeded is seen from outside, when the run is over."""


def _list(kind: Kind, codes: dict[str, str]) -> tuple[Trial, ...]:
    return tuple(Trial(name, kind, code) for name, code in codes.items())


STAT: Final = Trial("look at size and times of a file outside", "files", "os.stat(CANARY)", needs=frozenset({"mount"}))
OUTLIVE: Final = Trial("outlive its call", "processes", "leave_a_daemon()", is_judged_after=True)
ENTER_32_BIT: Final = Trial("enter by the 32-bit door", "system calls", "enter_32_bit()", machine="x86_64")
EAT_TOGETHER: Final = Trial(
    "more memory, by several processes together", "limits", "eat_together(MEMORY)", needs=frozenset({"group"})
)

TRIALS: Final = (
    *_list(
        "files",
        {
            "read a file outside": "open(CANARY).read()",
            "read it by a relative path": "open('../' * 40 + CANARY[1:]).read()",
            "read it through a link": "(os.symlink(CANARY, TMP + '/link'), open(TMP + '/link').read())",
            "read it through the root of a process outside": "open(f'/proc/{host()}/root' + CANARY).read()",
        },
    ),
    STAT,
    *_list(
        "files",
        {
            "change the mode of a file outside": "os.chmod(CANARY, 0o600)",
            "write to a file outside": "open(CANARY, 'r+').write('')",
            "make a file outside": "open(FOLDER + '/made', 'w')",
            "list Glee's own state": "os.listdir(STATE)",
        },
    ),
    *_list(
        "network",
        {
            "connect to the machine's loopback": "socket.create_connection(('127.0.0.1', TCP), 2)",
            "send it a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', UDP))",
            "connect to a Unix socket by its path": "socket.socket(socket.AF_UNIX).connect(SOCKET)",
            "connect to a Unix socket without a path": "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
            "make datagram sockets, which reach others": "socket.socketpair(socket.AF_UNIX, socket.SOCK_DGRAM)",
            "open a socket to the hypervisor (vsock)": "socket.socket(socket.AF_VSOCK)",
            "open a socket to the kernel (netlink)": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
            "open a raw socket": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
        },
    ),
    *_list(
        "processes",
        {
            "signal a process outside": "os.kill(host(), 0)",
            "trace a process outside (ptrace)": "call('ptrace', 0x4206, host(), 0, 0)",
            "read the environment of a process outside": "open(f'/proc/{host()}/environ').read()",
            "ask for the limits of a process outside": "resource.prlimit(host(), resource.RLIMIT_CORE)",
            "set the priority of a process outside": "os.setpriority(0, host(), os.getpriority(0, host()))",
        },
    ),
    OUTLIVE,
    *_list(
        "system calls",
        {
            "make a user namespace (unshare)": "call('unshare', 0x10000000)",
            "mount": "call('mount', b'glee', TMP.encode(), b'tmpfs', 0, 0)",
            "io_uring": "call('io_uring_setup', 1, ctypes.create_string_buffer(200))",
            "bpf": "call('bpf', 0, pack('=IIII56x', 2, 4, 4, 1), 72)",
            "userfaultfd": "call('userfaultfd', 1)",
            "keyctl": "call('keyctl', 0, -3, 0)",
            "perf_event_open": "call('perf_event_open', pack('=IIQQQQQ16x', 1, 64, 0, 0, 0, 0, 0x60), 0, -1, -1, 0)",
            "type into a terminal (TIOCSTI)": "type_into_terminal()",
        },
    ),
    ENTER_32_BIT,
    *_list(
        "limits",
        {
            "a file over the limit": "open(TMP + '/large', 'w').truncate(FILE + 1)",
            "more processes than the limit": "fork_often(PROCESSES)",
            "more memory than the limit": "bytearray(MEMORY)",
        },
    ),
    EAT_TOGETHER,  # the last: where it is held, all of the run may be ended
)


def find_trials(machine: str) -> list[Trial]:
    return [trial for trial in TRIALS if trial.machine in (None, machine)]
