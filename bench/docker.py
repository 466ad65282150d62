"""A Docker of the bench's own, with an image of busybox alone, that is gone when the bench is over."""

from __future__ import annotations

import io
import os
import shutil
import signal
import subprocess
import tarfile
import tempfile
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from bench.measure import ContestantFailed

IMAGE: Final = "glee-bench:1"
_APPLETS: Final = ("sh", "dd", "mkdir", "true", "cat", "sleep")
_FLAGS: Final = ("--bridge=none", "--iptables=false", "--ip6tables=false")
_PATIENCE: Final = 30.0


@contextmanager
def own_docker() -> Iterator[str]:
    """The address of its socket."""
    missing = [name for name in ("dockerd", "docker", "busybox") if shutil.which(name) is None]
    if os.getuid() != 0 or missing:
        reason = f"{', '.join(missing)} not installed" if missing else "only root can start one"
        raise ContestantFailed(f"no Docker of its own: {reason}")
    with tempfile.TemporaryDirectory(prefix="glee-docker-") as name:
        folder = Path(name)
        host = f"unix://{folder}/socket"
        daemon = _start(folder, host)
        try:
            subprocess.run(
                ["docker", "-H", host, "import", "-", IMAGE], input=_image(), check=True, capture_output=True
            )
            yield host
        finally:
            daemon.send_signal(signal.SIGTERM)
            daemon.wait(_PATIENCE)


def _start(folder: Path, host: str) -> subprocess.Popen[bytes]:
    (folder / "daemon.json").write_text("{}")
    words = ["dockerd", *_FLAGS, "-H", host, f"--config-file={folder}/daemon.json", f"--data-root={folder}/data"]
    words += [f"--exec-root={folder}/exec", f"--pidfile={folder}/pid"]
    with (folder / "log").open("wb") as log:
        daemon = subprocess.Popen(words, stdout=log, stderr=log, start_new_session=True)
    until = time.monotonic() + _PATIENCE
    while not (folder / "socket").exists() and daemon.poll() is None and time.monotonic() < until:
        time.sleep(0.02)
    if daemon.poll() is not None:
        raise ContestantFailed(f"dockerd cannot start: {(folder / 'log').read_text().splitlines()[-1][:150]}")
    return daemon


def _image() -> bytes:
    data = io.BytesIO()
    with tarfile.open(fileobj=data, mode="w") as archive:
        archive.add(str(shutil.which("busybox")), "bin/busybox")
        for name in _APPLETS:
            entry = tarfile.TarInfo(f"bin/{name}")
            entry.type, entry.linkname, entry.mode = tarfile.SYMTYPE, "busybox", 0o755
            archive.addfile(entry)
    return data.getvalue()
