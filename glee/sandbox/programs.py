"""What a program needs to start: its file, its interpreter, the libraries that lie with it. Read, never run."""

from __future__ import annotations

import os
import shutil
import struct
from collections.abc import Iterator
from pathlib import Path
from typing import Final

RUNTIME: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib32", "/lib64", "/libx32", "/nix/store")
"""Folders of programs and libraries, which every run can read."""

_DEPTH: Final = 4
_HEAD: Final = 4096
_LIBRARIES: Final = 64
_STEPS: Final = 1000
"""Of a path and the links in it; the kernel gives up on a circle too."""


def find_needs(program: Path, search_path: str, depth: int = _DEPTH) -> set[Path]:
    """The files, folders and links outside the system's runtime that a program is started from."""
    if depth == 0 or not program.exists():
        return set()
    real = program.resolve()
    needs = set() if _is_runtime(real) else {real}
    needs |= find_links(program)
    if program.name.startswith("python"):
        needs |= _python_folders(program)
    head = _read_head(real)
    if head.startswith(b"#!"):
        for interpreter in _interpreters(head, search_path):
            needs |= find_needs(interpreter, search_path, depth - 1)
    elif head.startswith(b"\x7fELF") and not _is_runtime(real):
        needs |= {path for path in _libraries(real) if not _is_runtime(path) and _belongs(path, real)}
    return needs


def find_links(path: Path) -> set[Path]:
    """The links that lead from a path as it is spelled to the file it means, each where it really lies."""
    links: set[Path] = set()
    real, ahead = Path("/"), list(path.parts[:0:-1])
    for _ in range(_STEPS):
        if not ahead:
            break
        name = ahead.pop()
        here = real.parent if name == ".." else real / name
        if not here.is_symlink():
            real = here
            continue
        links.add(here)
        target = here.readlink()
        real = Path("/") if target.is_absolute() else real
        ahead += [part for part in reversed(target.parts) if part != "/"]
    return {link for link in links if not _is_runtime(link)}


def _is_runtime(path: Path) -> bool:
    return any(path.is_relative_to(folder) for folder in RUNTIME)


def _belongs(library: Path, program: Path) -> bool:
    """True for a library that lies with its program. A program can name any file as one, and would then be shown it."""
    places = [
        program.parent,
        *(folder for folder in program.parent.parent.glob("lib*") if program.parent.name == "bin"),
    ]
    real = library.resolve()
    head = _read_head(real)
    is_library = head[:4] == b"\x7fELF" and head[16:18] == b"\x03\x00"
    return is_library and any(real.is_relative_to(place) for place in places)


def _read_head(path: Path) -> bytes:
    try:
        with path.open("rb") as file:
            return file.read(_HEAD)
    except OSError:
        return b""


def _interpreters(head: bytes, search_path: str) -> Iterator[Path]:
    """Of a script's first line; of `env`, the program that it would find."""
    words = os.fsdecode(head[2:].split(b"\n", 1)[0]).split()
    if not words:
        return
    interpreter = Path(words[0])
    if interpreter.is_absolute() and os.access(interpreter, os.X_OK):  # else it is a file that a script would be shown
        yield interpreter
    if interpreter.name == "env":
        names = [word for word in words[1:] if not word.startswith("-") and "=" not in word]
        found = shutil.which(names[0], path=search_path) if names else None
        if found:
            yield Path(found)


def _python_folders(program: Path) -> set[Path]:
    """An interpreter's own library, and its virtual environment."""
    folders = set()
    environment = program.parent.resolve().parent
    settings = environment / "pyvenv.cfg"
    if settings.is_file() and any(environment.glob("lib/python3*")) and not (environment / ".glee").exists():
        folders.add(environment)
        for line in settings.read_text(errors="replace").splitlines():
            key, _, value = line.partition("=")
            base = Path(value.strip()).resolve().parent
            if key.strip() == "home" and _holds_python(base):  # the file may be anybody's, and name anything
                folders.add(base)
    real = program.resolve()
    if real.name.startswith("python") and _holds_python(real.parent.parent):
        folders.add(real.parent.parent)
    return {folder for folder in folders if not _is_runtime(folder) and len(folder.parts) > 2}


def _holds_python(folder: Path) -> bool:
    return any((folder / "bin").glob("python3*")) and any((folder / "lib").glob("python3*/os.py"))


def _libraries(program: Path) -> set[Path]:
    """Shared libraries that a program names and that lie where it says, apart from those of the system."""
    found: set[Path] = set()
    waiting = [program]
    while waiting and len(found) < _LIBRARIES:
        for path in _linked(waiting.pop()):
            if path not in found:
                found.add(path)
                waiting.append(path)
    return found


def _linked(file: Path) -> Iterator[Path]:
    try:
        names, folders = _read_dynamic(file.read_bytes())
    except (OSError, ValueError, IndexError, struct.error):
        return
    for folder in folders:
        place = Path(folder.replace("${ORIGIN}", "$ORIGIN").replace("$ORIGIN", str(file.parent)))
        for name in names:
            path = place / name
            if place.is_absolute() and path.is_file():
                yield place.resolve() / name
                yield path.resolve()


def _read_dynamic(data: bytes) -> tuple[list[str], list[str]]:
    """The names and folders of the libraries of a 64-bit little-endian ELF file."""
    if data[4:6] != b"\x02\x01":
        return [], []
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    segments = [struct.unpack_from("<IIQQQQQQ", data, start + size * index) for index in range(count)]
    loads = [(s[3], s[2], s[5]) for s in segments if s[0] == 1]
    dynamic = next((data[s[2] : s[2] + s[5]] for s in segments if s[0] == 2), b"")
    entries = [struct.unpack_from("<QQ", dynamic, at) for at in range(0, len(dynamic) - 15, 16)]
    table = next((value for tag, value in entries if tag == 5), None)
    if table is None:
        return [], []
    offset = next(place + table - address for address, place, length in loads if address <= table < address + length)

    def text(at: int) -> str:
        return os.fsdecode(data[offset + at : data.index(b"\0", offset + at)])

    names = [text(value) for tag, value in entries if tag == 1]
    folders = [folder for tag, value in entries if tag in (15, 29) for folder in text(value).split(":") if folder]
    return names, folders
