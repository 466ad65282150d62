"""A description into the command line of nsjail, for machines that have it: their own programs, without an image."""

from __future__ import annotations

import os
import shutil
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Final

from msgspec import structs

from glee.definitions.bounds import Bounds
from glee.definitions.permissions import Hosts
from glee.definitions.tool import Tool
from glee.errors import SandboxUnavailable
from glee.sandbox.container import Container, Engine
from glee.sandbox.container_mounts import Mount, arrange_mounts
from glee.sandbox.containers import find_user
from glee.sandbox.process_one import PRIVATE, SCRIPT
from glee.sandbox.programs import RUNTIME, find_needs
from glee.sandbox.spec import Place, Spec, describe

_SYSTEM: Final = (
    *("/etc/ld.so.cache", "/etc/ld.so.conf", "/etc/ld.so.conf.d", "/etc/alternatives", "/etc/localtime"),
    *("/etc/ssl/certs", "/etc/ssl/openssl.cnf", "/etc/ca-certificates", "/etc/pki/tls/certs"),
)
_FOR_NETWORK: Final = ("/etc/resolv.conf", "/etc/hosts", "/etc/nsswitch.conf", "/etc/services")
_DEVICES: Final = ("/dev/null", "/dev/zero", "/dev/full", "/dev/random", "/dev/urandom")
_MB: Final = 1024 * 1024


def compile_nsjail(
    spec: Spec, mounts: Iterable[Mount], *, program: str, system: Mapping[str, str], user: str, search_path: str
) -> tuple[str, ...]:
    """`system` maps what every run sees to nothing, or to where a link leads."""
    uid, _, gid = user.partition(":")
    words = [program, "--mode=o", "--quiet", "--time_limit=0", "--hostname=glee", f"--env=PATH={search_path}"]
    words += [f"--user={uid}:{uid}:1", f"--group={gid}:{gid}:1", f"--cwd={_plain(spec.cwd)}"]
    words += ["--iface_no_lo"] if spec.network == "none" else ["--disable_clone_newnet"]
    words += _limits(spec.bounds)
    for path, target in system.items():
        words.append(f"--symlink={target}:{path}" if target else f"--bindmount_ro={path}")
    words += [f"--bindmount={path}" for path in _DEVICES]
    for path in ("/tmp", PRIVATE):
        words.append(f"--mount=none:{path}:tmpfs:size={spec.bounds.tmp_mb * _MB},mode=1777")
    words += [_mount(mount) for mount in mounts]
    memory = f"ulimit -d {spec.bounds.memory_mb * 1024} || exit 125\n"  # nsjail itself knows only the address space
    return (*words, "--", "/bin/sh", "-c", memory + SCRIPT, "glee")


def _limits(bounds: Bounds) -> Iterator[str]:
    """Processor time in percent takes control groups that nsjail may write to, and fails without them."""
    yield from ("--rlimit_as=inf", f"--rlimit_nofile={bounds.open_files}", f"--rlimit_fsize={bounds.file_mb}")
    yield from ("--rlimit_core=0", f"--rlimit_cpu={bounds.cpu_seconds}", f"--rlimit_nproc={bounds.processes}")
    if bounds.cpu_percent is not None:
        yield from ("--detect_cgroupv2", f"--cgroup_cpu_ms_per_sec={bounds.cpu_percent * 10}")


def _mount(mount: Mount) -> str:
    if mount.mode == "mask":
        return f"--mount=none:{_plain(mount.target)}:tmpfs:size=4096,mode=0"
    kind = "bindmount" if mount.mode == "w" else "bindmount_ro"
    return f"--{kind}={_plain(mount.source)}:{_plain(mount.target)}"


def _plain(path: str) -> str:
    """It cuts at every colon."""
    if ":" in path or not path.startswith("/") or not path.isprintable():
        raise SandboxUnavailable(f"nsjail cannot be given the path {path!r}; rename it, or use sandbox.mode: native")
    return path


class Nsjails:
    def __init__(self, place: Place, bounds: Bounds, *, network: bool, search_path: str) -> None:
        self._place = place
        self._bounds = bounds
        self._network = network
        self._search_path = search_path

    def get(self, tool: Tool, program: Path, *, cwd: Path, needs: Iterable[Path] = ()) -> Container:
        found = shutil.which("nsjail", path=self._search_path)
        if found is None:
            raise SandboxUnavailable("there is no nsjail on PATH; install it, or use sandbox.mode: native")
        permissions = tool.permissions
        if not self._network:
            permissions = structs.replace(permissions, network=False)
        if isinstance(permissions.network, Hosts) and permissions.network.hosts:
            raise SandboxUnavailable(
                f"{tool.name} was not run: nsjail cannot hold a network to named hosts; use sandbox.mode: native"
            )
        own = [Path(tool.origin.folder).resolve()] if tool.origin.folder else []
        needs = find_needs(program, self._search_path).union(own, needs)
        spec = describe(permissions, self._place, cwd=cwd, needs=needs, bounds=self._bounds.narrow(tool.limits))
        argv = compile_nsjail(
            spec,
            arrange_mounts(spec, (), ()),
            program=found,
            system=dict(_find_system(spec)),
            user=find_user(spec.write),
            search_path=self._search_path,
        )
        return Container(engine=Engine(name="nsjail", program=found), image="", name="", argv=argv)


def _find_system(spec: Spec) -> Iterator[tuple[str, str]]:
    for path in (*RUNTIME, *_SYSTEM, *(_FOR_NETWORK if spec.network != "none" else ())):
        if os.path.islink(path) and os.path.realpath(path).startswith("/usr/"):
            yield path, os.readlink(path)
        elif os.path.exists(path):
            yield path, ""
