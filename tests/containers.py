"""A Docker of our own for the tests: its own socket, data and image, and gone when they are over."""

from __future__ import annotations

import contextlib
import os
import shutil
import signal
import subprocess
import sys
import sysconfig
import tarfile
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
from msgspec import Struct

IMAGE = "glee-test:1"
_APPLETS = ("sh", "cat", "dd", "echo", "id", "ls", "mkdir", "mv", "rm", "setsid", "sleep", "touch", "tr", "true")
_PACKAGES = ("collections", "encodings", "importlib", "json", "re")
_EXTENSIONS = ("_socket", "select", "_json", "_struct", "math", "array", "fcntl", "_posixsubprocess", "unicodedata")
_FLAGS = ("--bridge=none", "--iptables=false", "--ip6tables=false")


class Docker(Struct, frozen=True):
    host: str

    @property
    def environ(self) -> dict[str, str]:
        return {"DOCKER_HOST": self.host}

    def ask(self, *words: str, **options: object) -> str:
        done = subprocess.run(
            ["docker", "-H", self.host, *words],
            check=True,
            capture_output=True,
            text=True,
            **options,  # type: ignore[call-overload]
        )
        return str(done.stdout)

    def containers(self) -> list[str]:
        return self.ask("ps", "--all", "--format={{.Names}}").split()


@pytest.fixture(scope="session")
def docker() -> Iterator[Docker]:
    if os.getuid() != 0:
        pytest.skip("a Docker of its own can only be started by root")
    missing = [name for name in ("dockerd", "docker", "busybox") if shutil.which(name) is None]
    if missing:
        pytest.skip(f"{', '.join(missing)} not installed; `make setup` as root installs them on Debian")
    with tempfile.TemporaryDirectory(prefix="glee-docker-") as folder, _start(Path(folder)) as running:
        with tarfile.open(Path(folder) / "root.tar", "w") as archive:
            _fill(archive)
        running.ask("import", f"{folder}/root.tar", IMAGE)
        yield running


@contextlib.contextmanager
def _start(folder: Path) -> Iterator[Docker]:
    (folder / "daemon.json").write_text("{}")
    running = Docker(f"unix://{folder}/socket")
    words = ["dockerd", *_FLAGS, "-H", running.host, f"--config-file={folder}/daemon.json"]
    words += [f"--data-root={folder}/data", f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    try:
        while not (folder / "socket").exists() and daemon.poll() is None:
            time.sleep(0.02)
        if daemon.poll() is not None:
            pytest.skip(f"dockerd cannot start here: {(folder / 'log').read_text().splitlines()[-1]}")
        yield running
    finally:
        daemon.send_signal(signal.SIGTERM)
        daemon.wait(30)


def _fill(archive: tarfile.TarFile) -> None:
    """A root file system: busybox, and this interpreter with as much of its library as the tests need."""
    python = Path(sys._base_executable).resolve()  # type: ignore[attr-defined]
    library = Path(sysconfig.get_path("stdlib"))
    files = {"bin/busybox": Path(str(shutil.which("busybox"))), "usr/bin/python3": python}
    files |= {str(path).lstrip("/"): path.resolve() for path in _libraries(python)}
    modules = [*library.glob("*.py"), *(path for name in _PACKAGES for path in (library / name).rglob("*.py"))]
    modules += (path for name in _EXTENSIONS for path in library.glob(f"lib-dynload/{name}.*.so"))
    files |= {f"usr/lib/{library.name}/{path.relative_to(library)}": path for path in modules}
    for folder in sorted({parent for name in files for parent in Path(name).parents}):
        _add(archive, str(folder), tarfile.DIRTYPE)
    for name, path in files.items():
        archive.add(path, name)
    for name in _APPLETS:
        _add(archive, f"bin/{name}", tarfile.SYMTYPE, "busybox")


def _add(archive: tarfile.TarFile, name: str, kind: bytes, target: str = "") -> None:
    entry = tarfile.TarInfo(name)
    entry.type, entry.linkname, entry.mode = kind, target, 0o755
    archive.addfile(entry)


def _libraries(program: Path) -> list[Path]:
    words = subprocess.run(["ldd", program], check=True, capture_output=True, text=True).stdout.split()
    return [Path(word) for word in words if word.startswith("/")]
