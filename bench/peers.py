"""Peers, installed on first use into environments of their own, so that nothing of theirs is near Glee's."""

from __future__ import annotations

import re
import shutil
import subprocess
import sys
import venv
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.progress import tell

ROOT: Final = Path(__file__).resolve().parent.parent
_FOLDER: Final = ROOT / ".bench"
_PINS: Final = Path(__file__).with_name("peers.txt")
_PATIENCE: Final = 300.0
"""Seconds an installation may take."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Peer:
    name: str
    version: str
    bin: Path
    problem: str | None = None
    """Why it is not there."""

    @property
    def python(self) -> Path:
        return self.bin / "python"

    def __str__(self) -> str:
        return f"{self.name} {self.version}"


def set_up_peers(names: set[str]) -> dict[str, Peer]:
    """The peers of these names, each installed if it was not; one that cannot be says why."""
    wanted = [pin for pin in _PINS.read_text().splitlines() if pin and not pin.startswith("#")]
    return {name: _set_up(name, version) for name, _, version in map(_split, wanted) if name in names}


def _split(pin: str) -> tuple[str, str, str]:
    return pin.strip().partition("==")


def _set_up(name: str, version: str) -> Peer:
    folder = _FOLDER / name
    stamp, text = folder / ".ready", f"{version} on Python {sys.version_info[0]}.{sys.version_info[1]}"
    problem = None
    if not stamp.exists() or stamp.read_text() != text:
        tell(f"installing {name} {version} into .bench/{name}, once ...")
        problem = _install(folder, f"{name}=={version}")
        if problem is None:
            stamp.write_text(text)
        else:
            tell(f"{name}: {problem}")
    return Peer(name=name, version=version, bin=folder / "bin", problem=problem)


def _install(folder: Path, pin: str) -> str | None:
    shutil.rmtree(folder, ignore_errors=True)
    try:
        venv.create(folder, with_pip=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "--quiet", "--disable-pip-version-check"]
        done = subprocess.run([*pip, pin], capture_output=True, text=True, timeout=_PATIENCE)
    except subprocess.TimeoutExpired:
        return f"not installed within {_PATIENCE:.0f} s"
    except (OSError, subprocess.CalledProcessError) as error:
        return f"no environment could be made: {error}"
    return None if done.returncode == 0 else f"not installed: {_last_error(done.stderr)}"


def _last_error(stderr: str) -> str:
    errors = [line for line in stderr.splitlines() if line.startswith("ERROR:")] or stderr.splitlines() or ["no reason"]
    return re.sub(r"\s+\(from versions:.*", "", errors[-1].removeprefix("ERROR:").strip())[:200]
