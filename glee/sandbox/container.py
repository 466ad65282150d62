"""A description into the command line of a container engine. Pure: it looks at nothing and starts nothing."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Iterator, Mapping
from typing import Final, Literal

from msgspec import Struct

from glee.definitions.bounds import Bounds
from glee.errors import SandboxUnavailable
from glee.sandbox.container_mounts import Mount
from glee.sandbox.process_one import PRIVATE, SCRIPT
from glee.sandbox.spec import Spec

EngineName = Literal["docker", "podman", "nsjail"]
LABEL: Final = "glee"
_TMP: Final = "/tmp"
_MB: Final = 1024 * 1024
_PROCESSES: Final = "nproc=4096:4096"
"""Of a user, not of a run: Podman would otherwise ask for more than it may have."""
_EMPTY: Final[Mapping[str, tuple[str, ...]]] = {"docker": (), "podman": ("notmpcopyup",)}
"""Podman fills a file system in memory with what it covers, unless told not to."""
_NEEDS_QUOTES: Final = ',"'


class Engine(Struct, frozen=True, kw_only=True):
    """The program that holds runs, and the environment it is given."""

    name: EngineName
    program: str
    env: Mapping[str, str] = {}
    is_rootless: bool = False
    """Podman of an ordinary user, who would be root inside unless told otherwise."""
    cpus: int = 1
    """More than there are is an error."""


class Container(Struct, frozen=True, kw_only=True):
    """One container that does not exist yet. Its command line lacks the three words that process one is told."""

    engine: Engine
    image: str
    name: str
    argv: tuple[str, ...]


def compile_run(
    spec: Spec, mounts: Iterable[Mount], *, engine: Engine, image: str, user: str, name: str
) -> tuple[str, ...]:
    """Everything but the three words that process one is told; they come last."""
    mounts = list(mounts)
    words = [engine.program, "run", "--rm", "--interactive", "--pull=never", f"--name={name}", f"--label={LABEL}"]
    words += ["--read-only", "--cap-drop=ALL", "--security-opt=no-new-privileges", "--log-driver=none"]
    words += ["--no-healthcheck", "--hostname=glee", f"--user={user}", f"--workdir={_plain(spec.cwd)}"]
    words += _own_words(engine)
    words += ["--network=none"] if spec.network == "none" else []
    words += _limits(spec.bounds, engine)
    words += _fresh(spec.bounds, engine.name, {mount.target for mount in mounts})
    words += [f"--mount={_mount(mount, engine.name)}" for mount in mounts]
    return (*words, "--entrypoint=/bin/sh", image, "-c", SCRIPT, "glee")


def _own_words(engine: Engine) -> list[str]:
    if engine.name != "podman":
        return []
    words = ["--read-only-tmpfs=false", "--http-proxy=false", "--image-volume=ignore", f"--ulimit={_PROCESSES}"]
    return [*words, "--userns=keep-id"] if engine.is_rootless else words


def _limits(bounds: Bounds, engine: Engine) -> Iterator[str]:
    yield f"--memory={bounds.memory_mb}m"
    yield f"--memory-swap={bounds.memory_mb}m"
    yield f"--pids-limit={bounds.processes}"
    if bounds.cpu_percent is not None:
        yield f"--cpus={min(bounds.cpu_percent / 100, engine.cpus):g}"
    for limit, value in (
        ("nofile", bounds.open_files),
        ("fsize", bounds.file_mb * _MB),
        ("cpu", bounds.cpu_seconds),
        ("core", 0),
    ):
        yield f"--ulimit={limit}={value}:{value}"


def _fresh(bounds: Bounds, engine: EngineName, taken: set[str]) -> Iterator[str]:
    """Programs may be run from them, as they may in a jail of the kernel's."""
    options = ["rw", "exec", "nosuid", "nodev", f"size={bounds.tmp_mb * _MB}", "mode=1777", *_EMPTY[engine]]
    for path in (_TMP, PRIVATE):
        if path not in taken:
            yield f"--tmpfs={path}:{','.join(options)}"


def _mount(mount: Mount, engine: EngineName) -> str:
    if mount.mode == "mask":
        return _join(["type=tmpfs", f"target={_plain(mount.target)}", "tmpfs-size=4096", "ro", *_EMPTY[engine]], engine)
    fields = ["type=bind", f"source={_plain(mount.source)}", f"target={_plain(mount.target)}"]
    return _join([*fields, "readonly"] if mount.mode == "r" else fields, engine)


def _join(fields: list[str], engine: EngineName) -> str:
    """Docker reads a line of comma-separated values; older Podman cuts at every comma."""
    if not any(mark in field for field in fields for mark in _NEEDS_QUOTES):
        return ",".join(fields)
    if engine == "podman":
        raise SandboxUnavailable(
            f"podman cannot mount a path with a comma or a quotation mark ({fields[1]}); rename it, or use docker"
        )
    line = io.StringIO()
    csv.writer(line, lineterminator="").writerow(fields)
    return line.getvalue()


def _plain(path: str) -> str:
    """What an engine's command line would alter on the way is refused rather than misread."""
    is_text = path.isprintable() and path == path.strip()
    if not is_text or not path.startswith("/"):
        raise SandboxUnavailable(
            f"a container engine cannot be given the path {path!r}; rename it, or use sandbox.mode: native"
        )
    return path
