"""Every code block in README and docs is executed, in order, in a folder of its own for each page.

`bash` and `python` blocks are run, blocks with `title=FILE` are written to that file, `yaml`, `toml` and
`json` are parsed, `sh` holds the make targets of a clone, which are only looked at, and `text` is output.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from containers import IMAGE, Docker

from glee.formats import yaml_text

ROOT = Path(__file__).parents[2]
IN_CONTAINERS = {"run-tools-in-containers.md": "python:3.13-slim"}
"""Pages that need a Docker, and the image they name."""
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_FENCE = re.compile(r"^```(\w+)([^\n]*)\n(.*?)^```$", re.M | re.S)
_LINK = re.compile(r"\]\((?!https?://)([^)#]+)(?:#[^)]*)?\)")


class Block(NamedTuple):
    kind: str
    title: str | None
    executable: bool
    text: str


def blocks_of(page: Path) -> list[Block]:
    found = []
    for kind, info, text in _FENCE.findall(page.read_text()):
        title = re.search(r"title=(\S+)", info)
        found.append(Block(kind, title[1] if title else None, "executable" in info, text))
    return found


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_block_of_a_page_works(page: Path, tmp_path: Path, request: pytest.FixtureRequest) -> None:
    folder = tmp_path / "page"
    folder.mkdir()
    bin_folder = str(Path(sys.executable).parent)
    environment = {
        **{name: value for name, value in os.environ.items() if not name.startswith("XDG_")},
        "PATH": f"{bin_folder}:{os.environ['PATH']}",
        "HOME": str(tmp_path / "home"),
        "PYTHONPATH": str(folder),
    }
    if page.name in IN_CONTAINERS:
        docker: Docker = request.getfixturevalue("docker")
        docker.ask("tag", IMAGE, IN_CONTAINERS[page.name])
        environment |= docker.environ
    stands = folder
    for block in blocks_of(page):
        stands = execute(block, folder, stands, environment)


def execute(block: Block, folder: Path, stands: Path, environment: dict[str, str]) -> Path:
    """Returns where the reader stands afterwards."""
    if block.title:
        file = folder / block.title
        file.parent.mkdir(parents=True, exist_ok=True)
        file.write_text(block.text)
        if block.executable:
            file.chmod(0o755)
    elif block.kind in ("bash", "python"):
        command = ["bash", "-euo", "pipefail", "-c"] if block.kind == "bash" else [sys.executable, "-c"]
        note = folder.with_name("stands")
        text = f"{block.text}\npwd > {note}" if block.kind == "bash" else block.text
        done = subprocess.run([*command, text], cwd=stands, env=environment, capture_output=True, text=True)
        assert done.returncode == 0, f"{block.text}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stdout
        if block.kind == "bash":
            return Path(note.read_text().strip())
    elif block.kind == "sh":
        check_make(block.text)
    elif block.kind == "yaml":
        assert yaml_text.parse_text(block.text).faults == ()
    elif block.kind == "toml":
        tomllib.loads(block.text)
    elif block.kind == "json":
        json.loads(block.text)
    else:
        assert block.kind == "text", f"a block of kind {block.kind} would not be executed"
    return stands


def check_make(text: str) -> None:
    for line in text.splitlines():
        words = shlex.split(line, comments=True)
        assert words[0] == "make"
        done = subprocess.run(["make", "-n", *words[1:]], cwd=ROOT, capture_output=True, text=True)
        assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("page", PAGES, ids=lambda page: str(page.relative_to(ROOT)))
def test_every_link_of_a_page_leads_somewhere(page: Path) -> None:
    broken = [link for link in _LINK.findall(page.read_text()) if not (page.parent / link).exists()]

    assert broken == []


def test_the_reference_is_what_the_program_says() -> None:
    done = subprocess.run(
        [sys.executable, ROOT / "scripts" / "reference.py", "--check"], capture_output=True, text=True
    )

    assert (done.returncode, done.stderr) == (0, "")


def test_the_tour_of_make_run_works() -> None:
    done = subprocess.run([sys.executable, ROOT / "examples" / "tour.py"], capture_output=True, text=True)

    assert done.returncode == 0, done.stderr
    assert "3 passed, 0 failed" in done.stdout
