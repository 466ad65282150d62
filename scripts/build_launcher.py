"""Compiles the launcher in C next to the package's modules; with --strict, only sees whether it compiles cleanly.

Where there is no compiler nothing is built, and Glee uses the launcher in Python.
"""

from __future__ import annotations

import os
import shlex
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

SOURCE: Final = "glee/sandbox/launcher.c"
FLAGS: Final = ("-std=c11", "-O2", "-Wall", "-Wextra", "-Wshadow", "-D_FORTIFY_SOURCE=2", "-fstack-protector-strong")
LINKED: Final = (("-static-pie", "-fPIE"), ("-pie", "-fPIE"), ())
"""Without shared libraries first: there is less to copy at each fork."""
HARDENED: Final = ("-s", "-Wl,-z,relro,-z,now,-z,noexecstack")


def find_compiler() -> list[str]:
    """Empty where there is none, and on a system that the launcher is not written for."""
    compiler = shlex.split(os.environ.get("CC", "cc"))
    return compiler if sys.platform.startswith("linux") and shutil.which(compiler[0]) else []


def compile_launcher(into: Path, *more: str) -> str | None:
    """What the compiler said if it could not be built; None if it was."""
    compiler = find_compiler()
    if not compiler:
        return "there is no C compiler"
    into.parent.mkdir(parents=True, exist_ok=True)
    made = into.with_name(f".{into.name}-{os.getpid()}")
    said = ""
    for linked in LINKED:
        argv = [*compiler, *FLAGS, *more, *linked, "-o", str(made), SOURCE, *HARDENED]
        done = subprocess.run(argv, capture_output=True, check=False, text=True)
        if done.returncode == 0:
            made.replace(into)  # at once: the one that is there may be running
            return None
        said = said or done.stderr
    return said


def main() -> int:
    if not find_compiler():
        print("there is no C compiler, so Glee uses the launcher in Python")
        return 0
    if "--strict" not in sys.argv:
        said = compile_launcher(Path(SOURCE).with_suffix(""))
        print(f"the launcher was not built, so Glee uses the one in Python:\n{said}" if said else "", end="")
        return 0
    with tempfile.TemporaryDirectory() as folder:
        said = compile_launcher(Path(folder, "launcher"), "-Werror")
    print(said or "", end="", file=sys.stderr)
    return 1 if said else 0


if __name__ == "__main__":
    sys.exit(main())
