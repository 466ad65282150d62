"""The bench is a program too: one cheap section of it, run as a person would run it."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).resolve().parent.parent.parent


def _run(*options: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-m", "bench", "--quick", "--no-peers", *options]
    return subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=120)


def test_a_section_prints_its_table_and_writes_its_figures(tmp_path: Path) -> None:
    figures = tmp_path / "figures.json"

    done = _run("--only", "process", "--json", str(figures))

    assert done.returncode == 0, done.stderr
    assert "A program as a tool" in done.stdout
    rows = json.loads(figures.read_text())["tables"]["process"]["rows"]
    assert [row["name"] for row in rows] == [
        "subprocess.run of /bin/true",
        "command tool /bin/true",
        "command tool /bin/true, awaited",
        "subprocess.run of python -c pass",
        "Python tool that does nothing",
    ]
    assert all(row["figure"]["low"] <= row["figure"]["median"] <= row["figure"]["high"] for row in rows)


def test_a_section_that_does_not_exist_is_named() -> None:
    done = _run("--only", "process,speed")

    assert done.returncode == 2
    assert "there is no section speed" in done.stderr
