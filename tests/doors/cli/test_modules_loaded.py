"""Only what is needed is imported: help and listings are asked for often, and must cost little."""

from __future__ import annotations

import subprocess
import sys

from shell import Glee, wait_until

_COUNT = """
import sys
sys.argv[0] = "glee"
from glee.doors.cli import main
try:
    main()
except SystemExit as done:
    assert not done.code, done.code
print("\\n" + " ".join(sys.modules), file=sys.stderr)
"""
_HEAVY = {"asyncio", "httpx", "jsonschema_rs", "yaml", "ssl", "http", "subprocess", "logging", "unittest"}


def _loaded_by(glee: Glee, *args: str) -> set[str]:
    done = subprocess.run(
        [sys.executable, "-c", _COUNT, *args],
        cwd=glee.root,
        env=glee.environ,
        capture_output=True,
        text=True,
        check=True,
    )
    return set(done.stderr.splitlines()[-1].split())


def _is_cached(glee: Glee, name: str) -> bool:
    """A manifest that was written a moment ago is not: it may change again within its timestamp."""
    files = (glee.base / "cache").rglob("manifests.msgpack")
    return any(name.encode() in file.read_bytes() for file in files)


def test_help_loads_click_and_the_door_and_no_other_room(glee: Glee) -> None:
    loaded = _loaded_by(glee, "--help")

    assert {name for name in loaded if name.startswith("glee")} == {
        "glee",
        "glee.doors",
        "glee.doors.cli",
        "glee.doors.cli.screen",
        "glee.version",
    }
    assert not loaded & (_HEAVY | {"msgspec", "json", "docstring_parser", "difflib", "hashlib", "socket"})
    assert len(loaded) < 150, sorted(loaded)


def test_a_listing_from_the_cache_reads_no_manifest_and_loads_nothing_that_runs_tools(glee: Glee) -> None:
    glee.project.add_command("hello", "echo hello")
    wait_until(lambda: glee("list").status == 0 and _is_cached(glee, "hello"))

    loaded = _loaded_by(glee, "list")

    assert loaded & (_HEAVY | {"difflib"}) == set()
    assert not {
        name for name in loaded if name.startswith(("glee.runners", "glee.engine", "glee.egress", "glee.formats"))
    }


def test_running_a_command_loads_no_event_loop_and_no_http(glee: Glee) -> None:
    glee.project.add_command("hello", "echo hello")

    loaded = _loaded_by(glee, "run", "hello")

    assert not loaded & {"asyncio", "httpx", "ssl", "logging", "unittest"}
