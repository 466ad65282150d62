"""What this machine says of itself, where it may explain why a layer is missing."""

from __future__ import annotations

import os
import sys
from pathlib import Path
from typing import Final, Literal

from msgspec import Struct

from glee.sandbox.syscalls import machine

_SYS_ADMIN: Final = 21
Container = Literal["Docker", "Podman", "a container"]


class Facts(Struct, frozen=True, kw_only=True):
    system: str = "Linux"
    kernel: tuple[int, ...] = ()
    """The first numbers of its version."""
    machine: str | None = "x86_64"
    """None if its system calls are not known."""
    interpreter: str = "/usr/bin/python3"
    """The file that Glee itself is run by, which is what AppArmor goes by."""
    is_root: bool = False
    may_mount: bool = False
    """Without a user namespace; root in a container usually may not."""
    container: Container | None = None
    """What Glee itself runs in."""
    profile: str = ""
    """Of AppArmor, that Glee is confined by."""
    user_namespaces: int | None = None
    """How many there may be."""
    userns_clone: int | None = None
    """Debian's own switch, 0 if ordinary users may not make any."""
    apparmor_restricts: bool = False
    """Ubuntu's: a user namespace has no rights unless a profile gives them."""
    security_modules: tuple[str, ...] | None = None
    """None if the kernel does not say."""
    is_proc_masked: bool = False
    has_systemd: bool = False


def read_facts() -> Facts:
    system = os.uname()
    return Facts(
        system=system.sysname,
        kernel=_version(system.release),
        machine=machine(),
        interpreter=os.path.realpath(sys.executable),
        is_root=os.getuid() == 0,
        may_mount=_has_capability(_SYS_ADMIN),
        container=_find_container(),
        profile=_find_profile(),
        user_namespaces=_number("/proc/sys/user/max_user_namespaces"),
        userns_clone=_number("/proc/sys/kernel/unprivileged_userns_clone"),
        apparmor_restricts=_number("/proc/sys/kernel/apparmor_restrict_unprivileged_userns") == 1,
        security_modules=_find_modules(),
        is_proc_masked=any(" /proc/" in line for line in _text("/proc/self/mountinfo").splitlines()),
        has_systemd=os.path.isdir("/run/systemd/system"),
    )


def _version(release: str) -> tuple[int, ...]:
    """Of `6.8.0-31-generic`: 6 and 8."""
    numbers = []
    for word in release.split(".")[:2]:
        digits = word[: len(word) - len(word.lstrip("0123456789"))]
        numbers.append(int(digits or 0))
    return tuple(numbers)


def _find_container() -> Container | None:
    """A filter that somebody laid on Glee is a sign of one that leaves no other."""
    if os.path.exists("/run/.containerenv"):
        return "Podman"
    if os.path.exists("/.dockerenv"):
        return "Docker"
    return "a container" if "Seccomp:\t2" in _text("/proc/self/status") else None


def _has_capability(number: int) -> bool:
    words = dict(line.split(":\t", 1) for line in _text("/proc/self/status").splitlines() if ":\t" in line)
    return bool(int(words.get("CapEff", "0"), 16) >> number & 1)


def _find_profile() -> str:
    """`docker-default (enforce)`; nothing where there is no AppArmor or no profile."""
    name = _text("/proc/self/attr/apparmor/current").strip("\0\n ")
    return "" if name == "unconfined" else name


def _find_modules() -> tuple[str, ...] | None:
    text = _text("/sys/kernel/security/lsm").strip()
    return tuple(text.split(",")) if text else None


def _number(path: str) -> int | None:
    text = _text(path).strip()
    return int(text) if text.isdecimal() else None


def _text(path: str) -> str:
    try:
        return Path(path).read_text(errors="replace")
    except OSError:
        return ""
