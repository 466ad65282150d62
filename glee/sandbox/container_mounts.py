"""What of the machine a run sees, where and how: one list for every mechanism that mounts by path."""

from __future__ import annotations

import itertools
import os
import re
from collections.abc import Iterable, Iterator
from typing import Final, Literal

from msgspec import Struct

from glee.errors import SandboxUnavailable
from glee.sandbox.spec import Spec, is_below

Mode = Literal["r", "w", "mask"]

_IMAGES_OWN: Final = frozenset(
    ("/", "/bin", "/boot", "/dev", "/etc", "/lib", "/lib32", "/lib64", "/libx32", "/proc", "/run", "/sbin", "/sys")
) | {"/usr", "/usr/bin", "/usr/lib", "/usr/lib64", "/usr/local", "/usr/sbin", "/var", "/var/run"}
_KERNELS_OWN: Final = ("/proc/", "/sys/", "/dev/")


class Mount(Struct, frozen=True, kw_only=True):
    """One folder or file of the machine; a mask is an empty folder in the place of one."""

    source: str
    target: str
    mode: Mode


def arrange_mounts(spec: Spec, binds: Iterable[Mount], mount_points: Iterable[str]) -> tuple[Mount, ...]:
    """From the outermost in. `mount_points` are those of the machine: what is read-only must be so all the way down."""
    mounts: dict[str, Mount] = {}
    grants = [*_grants(spec), *binds]
    for mount in grants:
        _check(mount)
        mounts[mount.target] = mount
    for mount in (*_links(spec, grants), *_below(grants, mount_points), *_ways(spec, grants)):
        mounts.setdefault(mount.target, mount)
    for mount in (*_guards(spec, grants), *_masks(spec, grants)):
        mounts[mount.target] = mount
    return tuple(sorted(mounts.values(), key=lambda mount: (mount.target.count("/"), mount.target)))


def parse_mount_points(text: str) -> list[str]:
    """Of `/proc/self/mountinfo`, where odd characters are written in octal."""
    points = (line.split(" ")[4] for line in text.splitlines())
    return [re.sub(r"\\([0-7]{3})", lambda found: chr(int(found[1], 8)), point) for point in points]


def _grants(spec: Spec) -> Iterator[Mount]:
    """A grant inside another of the same kind adds nothing."""
    modes: dict[str, Mode] = dict.fromkeys(spec.read, "r")
    modes |= dict.fromkeys(spec.write, "w")
    for path, mode in modes.items():
        outer = max((other for other in modes if other != path and is_below(path, other)), key=len, default=None)
        if outer is None or modes[outer] != mode:
            yield Mount(source=path, target=path, mode=mode)


def _check(mount: Mount) -> None:
    for path in {mount.source, mount.target}:
        if path in _IMAGES_OWN or path.startswith(_KERNELS_OWN):
            raise SandboxUnavailable(
                f"{path} cannot be shown in a container, which has its own; name the folder in it that is needed, "
                "or use sandbox.mode: native"
            )
    if not os.path.isdir(mount.source) and not os.path.isfile(mount.source):
        raise SandboxUnavailable(f"{mount.source} is neither a folder nor a file; take it out of what is granted")


def _links(spec: Spec, grants: Iterable[Mount]) -> Iterator[Mount]:
    """There are no links of ours in an image: what they lead to stands in their place, if it is granted."""
    for path in spec.links:
        real = os.path.realpath(path)
        covered = [mount for mount in grants if is_below(real, mount.source)]
        if covered and not any(is_below(path, mount.source) for mount in grants):
            yield Mount(source=real, target=path, mode="r")


def _below(grants: Iterable[Mount], mount_points: Iterable[str]) -> Iterator[Mount]:
    """Older engines leave other file systems inside a read-only folder writable."""
    for point in mount_points:
        covering = [mount for mount in grants if is_below(point, mount.source)]
        innermost = max(covering, key=lambda mount: len(mount.source), default=None)
        if innermost is not None and innermost.mode == "r" and innermost.source != point:
            yield Mount(source=point, target=_move(point, innermost), mode="r")


def _ways(spec: Spec, grants: Iterable[Mount]) -> Iterator[Mount]:
    """The folders on the way to what is guarded, inside what is writable: a mount cannot be renamed."""
    for mount, path in itertools.product(grants, (*spec.guarded, *spec.hidden)):
        between = os.path.dirname(path)
        while mount.mode == "w" and is_below(between, mount.source) and between != mount.source:
            yield Mount(source=between, target=_move(between, mount), mode="w")
            between = os.path.dirname(between)


def _guards(spec: Spec, grants: Iterable[Mount]) -> Iterator[Mount]:
    for mount, path in itertools.product(grants, spec.guarded):
        if mount.mode == "w" and is_below(path, mount.source):
            yield Mount(source=path, target=_move(path, mount), mode="r")


def _masks(spec: Spec, grants: Iterable[Mount]) -> Iterator[Mount]:
    for mount, path in itertools.product(grants, spec.hidden):
        if is_below(path, mount.source):
            yield Mount(source=path, target=_move(path, mount), mode="mask")


def _move(path: str, mount: Mount) -> str:
    return os.path.normpath(f"{mount.target}/{os.path.relpath(path, mount.source)}")
