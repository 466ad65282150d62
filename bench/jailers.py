"""Other ways to hold one program: looked for, installed where that can be done, and asked to run `/bin/true`."""

from __future__ import annotations

import os
import shutil
import subprocess
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Final

from bench.peers import ROOT
from bench.progress import tell

_FOLDER: Final = ROOT / ".bench" / "jailers"
_PATIENCE: Final = 300.0
_TRUE: Final = "/bin/true"
_VIEW: Final = (
    "--ro-bind", "/usr", "/usr", "--symlink", "usr/bin", "/bin", "--symlink", "usr/lib", "/lib", "--symlink",
    "usr/lib64", "/lib64", "--proc", "/proc", "--dev", "/dev", "--tmpfs", "/tmp",
)  # fmt: skip


@dataclass(frozen=True, kw_only=True, slots=True)
class Jailer:
    name: str
    program: str
    argv: tuple[str, ...]
    packages: tuple[str, ...] = ()
    """Of Debian, installed where this is run by root."""
    npm: str | None = None

    def find(self) -> Path | None:
        found = shutil.which(self.program) or shutil.which(self.program, path=str(_FOLDER / "node_modules" / ".bin"))
        return Path(found) if found else None


JAILERS: Final = (
    Jailer(
        name="bubblewrap",
        program="bwrap",
        argv=("--unshare-all", "--new-session", "--die-with-parent", "--cap-drop", "ALL", *_VIEW, _TRUE),
        packages=("bubblewrap",),
    ),
    Jailer(
        name="firejail",
        program="firejail",
        argv=("--quiet", "--noprofile", "--net=none", "--private", "--caps.drop=all", "--seccomp", _TRUE),
        packages=("firejail",),
    ),
    Jailer(name="codex sandbox", program="codex", argv=("sandbox", _TRUE), npm="@openai/codex@0.166.0"),
    Jailer(
        name="sandbox-runtime",
        program="srt",
        argv=(_TRUE,),
        packages=("bubblewrap", "socat", "ripgrep"),
        npm="@anthropic-ai/sandbox-runtime@0.0.78",
    ),
)


def set_up_jailers(*, install: bool) -> dict[str, Callable[[], None] | str]:
    """For each a function that runs `/bin/true` in it once, or why there is none."""
    return {jailer.name: _set_up(jailer, install=install) for jailer in JAILERS}


def _set_up(jailer: Jailer, *, install: bool) -> Callable[[], None] | str:
    if install:
        _install(jailer)
    program = jailer.find()
    if program is None:
        return f"{jailer.program} is not installed"
    command = [str(program), *jailer.argv]
    home = _FOLDER / "home"
    home.mkdir(parents=True, exist_ok=True)
    env = {"PATH": os.environ.get("PATH", os.defpath), "HOME": str(home)}

    def run() -> None:
        subprocess.run(command, capture_output=True, check=True, env=env, cwd=home, timeout=60)

    try:
        run()
    except subprocess.CalledProcessError as error:
        said = error.stderr.decode("utf-8", "replace").strip().splitlines() or ["no reason"]
        return f"it does not run here: {said[-1][:150]}"
    except (OSError, subprocess.TimeoutExpired) as error:
        return f"it does not run here: {error}"
    return run


def _install(jailer: Jailer) -> None:
    """What cannot be installed is said in its row."""
    missing = [package for package in jailer.packages if not Path("/var/lib/dpkg/info", f"{package}.list").exists()]
    if missing and os.getuid() == 0 and shutil.which("apt-get"):
        tell(f"installing {' '.join(missing)} ...")
        _run("apt-get", "install", "--yes", "--quiet", *missing)
    if jailer.npm and jailer.find() is None and shutil.which("npm"):
        tell(f"installing {jailer.npm} into .bench, once ...")
        _FOLDER.mkdir(parents=True, exist_ok=True)
        _run("npm", "install", "--prefix", str(_FOLDER), "--no-fund", "--no-audit", "--silent", jailer.npm)


def _run(*command: str) -> None:
    try:
        subprocess.run(command, capture_output=True, timeout=_PATIENCE)
    except (OSError, subprocess.TimeoutExpired) as error:
        tell(f"{command[0]}: {error}")
