"""The filter's verdicts, by running its program as the kernel would."""

from __future__ import annotations

import errno
import socket
import struct

import pytest

from glee.sandbox.bpf import ALLOW, KILL, refuse
from glee.sandbox.seccomp import ALLOWED, Lack, Net, compile_filter
from glee.sandbox.syscalls import numbers

MACHINES = {"x86_64": 0xC000003E, "aarch64": 0xC00000B7}
FORBIDDEN = refuse(errno.EPERM)
UNKNOWN = refuse(errno.ENOSYS)
NO_FAMILY = refuse(errno.EAFNOSUPPORT)


def judge(program: bytes, architecture: int, number: int, *arguments: int) -> int:
    """What the filter answers. Loads are of the kernel's description of a call; all jumps lead forward."""
    padded = (*arguments, *(0,) * (6 - len(arguments)))
    call = struct.pack("<IIQ6Q", number, architecture, 0, *padded)
    at, value = 0, 0
    while True:
        code, then, otherwise, operand = struct.unpack_from("<HBBI", program, 8 * at)
        at += 1
        if code == 0x20:
            (value,) = struct.unpack_from("<I", call, operand)
        elif code == 0x54:
            value &= operand
        elif code == 0x06:
            return int(operand)
        elif code == 0x05:
            at += operand
        else:
            holds = {0x15: value == operand, 0x35: value >= operand, 0x45: bool(value & operand)}[code]
            at += then if holds else otherwise


@pytest.mark.parametrize("net", ["none", "open"])
@pytest.mark.parametrize("machine", MACHINES)
def test_every_system_call_gets_the_verdict_of_its_name(machine: str, net: Net) -> None:
    program, table = compile_filter(machine, net), numbers(machine)
    judged = {"clone", "ioctl", "personality", "prlimit64", "socketpair", "socket", "clone3", "openat2"}

    verdicts = {name: judge(program, MACHINES[machine], number) for name, number in table.items() if name not in judged}

    assert {name for name, verdict in verdicts.items() if verdict == ALLOW} == ALLOWED & verdicts.keys()
    assert {verdict for name, verdict in verdicts.items() if name not in ALLOWED} == {FORBIDDEN}


@pytest.mark.parametrize("machine", MACHINES)
def test_a_number_that_nobody_knows_is_unknown(machine: str) -> None:
    program = compile_filter(machine, "none")

    assert {judge(program, MACHINES[machine], number) for number in (470, 500, 4000)} == {UNKNOWN}
    assert judge(program, MACHINES[machine], numbers(machine)["clone3"]) == UNKNOWN


def test_the_other_forms_of_a_machine_end_the_process() -> None:
    program = compile_filter("x86_64", "open")

    assert judge(program, 0x40000003, 1) == KILL  # 32-bit
    assert judge(program, MACHINES["x86_64"], 0x40000000 | 1) == KILL  # x32
    assert judge(compile_filter("aarch64", "open"), 0x40000028, 1) == KILL


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("name", "arguments", "verdict"),
    [
        ("clone", [17], ALLOW),
        ("clone", [17 | 0x10000000], FORBIDDEN),
        ("clone", [0x80], FORBIDDEN),
        ("ioctl", [0, 0x5401], ALLOW),
        ("ioctl", [0, 0x5412], FORBIDDEN),
        ("ioctl", [0, 0x5412 | 1 << 32], FORBIDDEN),
        ("ioctl", [0, 0x541C], FORBIDDEN),
        ("personality", [0], ALLOW),
        ("personality", [0xFFFFFFFF], ALLOW),
        ("personality", [0x40000], FORBIDDEN),
        ("prlimit64", [0], ALLOW),
        ("prlimit64", [1], FORBIDDEN),
        ("socketpair", [socket.AF_UNIX, socket.SOCK_STREAM], ALLOW),
        ("socketpair", [socket.AF_UNIX, socket.SOCK_SEQPACKET | socket.SOCK_CLOEXEC], ALLOW),
        ("socketpair", [socket.AF_UNIX, socket.SOCK_DGRAM], FORBIDDEN),
        ("clone", [0x8000 | 17], FORBIDDEN),
        ("fchmodat", [0, 0, 0o755], ALLOW),
        ("fchmodat", [0, 0, 0o4755], FORBIDDEN),
        ("fchmod", [0, 0o2755], FORBIDDEN),
        ("openat", [0, 0, 0, 0o4755], ALLOW),
        ("openat", [0, 0, 0o100, 0o4755], FORBIDDEN),
        ("openat", [0, 0, 0o20200000, 0o4755], FORBIDDEN),
        ("mknodat", [0, 0, 0o104755], FORBIDDEN),
        ("socketpair", [socket.AF_INET], NO_FAMILY),
    ],
)
def test_arguments_are_judged(machine: str, name: str, arguments: list[int], verdict: int) -> None:
    assert judge(compile_filter(machine, "none"), MACHINES[machine], numbers(machine)[name], *arguments) == verdict


@pytest.mark.parametrize(
    ("arguments", "open_verdict"),
    [
        ([socket.AF_INET, socket.SOCK_STREAM], ALLOW),
        ([socket.AF_INET6, socket.SOCK_DGRAM | socket.SOCK_CLOEXEC], ALLOW),
        ([socket.AF_INET, socket.SOCK_RAW], FORBIDDEN),
        ([socket.AF_INET, socket.SOCK_STREAM, 262], FORBIDDEN),
        ([socket.AF_NETLINK, socket.SOCK_RAW, 0], ALLOW),
        ([socket.AF_NETLINK, socket.SOCK_RAW, 9], FORBIDDEN),
        ([socket.AF_UNIX, socket.SOCK_STREAM], NO_FAMILY),
        ([40, socket.SOCK_STREAM], NO_FAMILY),
        ([17, socket.SOCK_RAW], NO_FAMILY),
    ],
)
def test_sockets_are_judged_by_family_and_type(arguments: list[int], open_verdict: int) -> None:
    number = numbers("x86_64")["socket"]

    assert judge(compile_filter("x86_64", "open"), MACHINES["x86_64"], number, *arguments) == open_verdict
    assert judge(compile_filter("x86_64", "none"), MACHINES["x86_64"], number, *arguments) == NO_FAMILY


@pytest.mark.parametrize("machine", MACHINES)
@pytest.mark.parametrize(
    ("lack", "name", "arguments", "verdict"),
    [
        *(("files", name, [], FORBIDDEN) for name in ("fchmodat", "fchmod", "fchownat", "utimensat", "setxattr")),
        *(("processes", name, [0, 0], ALLOW) for name in ("setpriority", "sched_setaffinity")),
        *(("processes", name, [7, 7], FORBIDDEN) for name in ("setpriority", "sched_setaffinity", "ioprio_set")),
        ("signals", "kill", [0, 15], ALLOW),
        ("signals", "kill", [7, 15], FORBIDDEN),
        ("signals", "kill", [0xFFFF_FFFF, 15], FORBIDDEN),
        ("signals", "tgkill", [7, 7, 15], FORBIDDEN),
        ("processes", "fcntl", [3, 8, 7], FORBIDDEN),
        ("processes", "fcntl", [3, 2, 1], ALLOW),
        ("processes", "ioctl", [3, 0x8901, 7], FORBIDDEN),
    ],
)
def test_what_no_other_layer_holds_the_filter_refuses(
    machine: str, lack: Lack, name: str, arguments: list[int], verdict: int
) -> None:
    number = numbers(machine)[name]

    assert judge(compile_filter(machine, "none", lacks={lack}), MACHINES[machine], number, *arguments) == verdict
    assert judge(compile_filter(machine, "none"), MACHINES[machine], number, *arguments) == ALLOW
