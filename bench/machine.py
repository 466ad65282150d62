"""Where the figures were taken: without it they mean little."""

from __future__ import annotations

import os
import platform
import tempfile
from pathlib import Path


def describe_machine() -> dict[str, str | int | float]:
    return {
        "cpu": _cpu(),
        "cores": len(os.sched_getaffinity(0)),
        "kernel": f"{platform.system()} {platform.release()}",
        "python": platform.python_version(),
        "temporary files": _file_system(Path(tempfile.gettempdir())),
        "load": round(os.getloadavg()[0], 2),
    }


def to_lines(machine: dict[str, str | int | float]) -> list[str]:
    cores = machine["cores"]
    lines = [
        f"{machine['cpu']}, {cores} core{'' if cores == 1 else 's'}, {machine['kernel']}, "
        f"Python {machine['python']}, temporary files on {machine['temporary files']}, load {machine['load']}"
    ]
    if float(machine["load"]) > float(cores) / 2:
        lines.append("The machine is busy with other work: compare the ratios, not the absolute figures.")
    return lines


def _cpu() -> str:
    try:
        lines = Path("/proc/cpuinfo").read_text().splitlines()
    except OSError:
        return platform.processor() or platform.machine()
    named = (line.partition(":")[2].strip() for line in lines if line.startswith("model name"))
    return next(named, platform.machine())


def _file_system(path: Path) -> str:
    """The kind of file system that holds a path: a record written to memory is not one written to disk."""
    try:
        mounts = [line.split() for line in Path("/proc/mounts").read_text().splitlines()]
    except OSError:
        return "an unknown file system"
    holding = [mount for mount in mounts if path.resolve().is_relative_to(mount[1])]
    return max(holding, key=lambda mount: len(mount[1]))[2] if holding else "an unknown file system"
