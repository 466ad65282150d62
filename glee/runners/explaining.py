"""Why a held run failed, where that can be told: what was refused, and which line in the manifest would allow it.

The kernel tells no one what it refused, so for files this reads what the program itself said of it.
"""

from __future__ import annotations

import os
import re
import signal
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final

from msgspec import structs

from glee.definitions.isolation import Isolation
from glee.definitions.tool import Tool
from glee.errors import Blocked, CallError
from glee.runners import Run

if TYPE_CHECKING:
    from glee.egress.proxy import Attempt

_REFUSED: Final = re.compile(
    "permission denied|no such file|directory nonexistent|read-only file system|operation not permitted",
    re.IGNORECASE,
)
_WRITING: Final = re.compile(
    "cannot (create|touch|remove|move|make|rename)|can't create|couldn't open temporary|read-only file system|"
    "directory nonexistent|unable to create",
    re.IGNORECASE,
)
_QUOTED: Final = re.compile(r"['\"‘“`]([^'\"’”`\n]+)['\"’”`]")
_NO_NETWORK: Final = re.compile(
    "name resolution|could not resolve|network is unreachable|address family not supported|no address associated|"
    "EAI_AGAIN|EAFNOSUPPORT|ENETUNREACH",
    re.IGNORECASE,
)
_ALWAYS: Final = ("/usr", "/bin", "/sbin", "/lib", "/lib64", "/dev", "/proc", "/tmp", "/run")  # noqa: S108
_OF_STATUS: Final = {
    128 + signal.SIGKILL: "it may have used more memory than limits.memory_mb gives it",
    128 + signal.SIGSYS: "it made a system call that no tool may make",
    128 + signal.SIGXFSZ: "a file grew larger than limits.file_mb lets it",
    128 + signal.SIGXCPU: "it used more processor time than limits.cpu_seconds gives it",
}
_OF_WORDS: Final = {
    "memoryerror": "it used more memory than limits.memory_mb gives it",
    "cannot allocate memory": "it used more memory than limits.memory_mb gives it",
    "no space left on device": "the disk, /tmp or HOME is full; limits.tmp_mb says how much the last two hold",
    "file too large": "a file grew larger than limits.file_mb lets it",
    "cannot fork": "it started more processes than limits.processes lets it",
    "too many open files": "it opened more files than limits.open_files lets it",
}


def explain(error: CallError, run: Run, held: Isolation, cwd: Path, refused: Sequence[Attempt]) -> CallError:
    """The error, as it is or as `blocked` where the proxy knows what was tried, with what would help."""
    tool = run.tool
    if refused:
        first = refused[0]
        blocked = Blocked(
            f"{tool.name} was refused {_name(first)}: {first.reason}; then it failed: {error.message}",
            detail=error.detail,
            details={**error.details, "refused": [structs.asdict(attempt) for attempt in refused]},
        )
        blocked.warnings = error.warnings
        return blocked
    hint = find_hint(error, tool, run.root, cwd) if held.level in ("full", "reduced") else None
    if hint is not None:
        error.message = f"{error.message} ({hint})"
        error.details["hint"] = hint
    return error


def warn_of(refused: Iterable[Attempt]) -> tuple[str, ...]:
    """For a run that went on without what it was refused."""
    return tuple(f"the tool was refused {_name(attempt)}: {attempt.reason}" for attempt in refused)


def _name(attempt: Attempt) -> str:
    from glee.definitions.hosts import to_authority  # most calls are refused nothing

    return to_authority(attempt.host, attempt.port) if attempt.host else "a request"


def find_hint(error: CallError, tool: Tool, root: Path, cwd: Path) -> str | None:
    text = str(error.details.get("stderr", "")) or f"{error.details.get('type', '')}: {error.message}"
    for line in reversed(text.splitlines()):
        if _NO_NETWORK.search(line) and tool.permissions.network is not True:
            return _of_network(tool)
        hint = _of_path(line, tool, root, cwd) if _REFUSED.search(line) else None
        hint = hint or next((said for words, said in _OF_WORDS.items() if words in line.lower()), None)
        if hint is not None:
            return hint
    return _OF_STATUS.get(error.details.get("exit_code", 0))


def _of_network(tool: Tool) -> str:
    if tool.permissions.network:
        return "the tool reaches its hosts through a proxy alone, which http_proxy and https_proxy name"
    return "the tool has no network, nor local sockets; name the hosts it needs under permissions.network.hosts"


def _of_path(line: str, tool: Tool, root: Path, cwd: Path) -> str | None:
    files = tool.permissions.fs
    writing = _WRITING.search(line) is not None
    granted = [os.path.normpath(root / path) for path in (files.write if writing else (*files.read, *files.write))]
    named = _find_named(line)
    path = Path(os.path.normpath(cwd / named)) if named else root
    always = () if path.is_relative_to(root) else _ALWAYS
    if path == root or any(path.is_relative_to(folder) for folder in (*always, *granted)):
        return None
    shown = path.relative_to(root) if path.is_relative_to(root) else path
    if writing:
        return f"the tool may not write to {shown}; it, or its folder, can be granted under permissions.fs.write"
    return f"the tool may not read {shown}, if it is there; it can be granted under permissions.fs.read"


def _find_named(line: str) -> str | None:
    """What a refusal is about: what stands right before it, or in quotes anywhere in the line."""
    refusal = _REFUSED.search(line)
    assert refusal is not None
    quoted = _QUOTED.findall(line)
    if quoted:
        return str(quoted[-1])
    before = line[: refusal.start()].rstrip(" :[(").rpartition(": ")[2]
    words = before.split()
    return words[-1] if words and not words[-1].isdigit() else None
