"""The four manifests of the specification, read from where it lies beside this repository."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

from glee.testing import Project

SEED = Path(__file__).parents[2] / "shared" / "seeds" / "000_0580fb301339dbb5.txt"
NAMES = ("web_search", "slack_notify", "repo_scan", "repo_stats")
_MANIFEST = re.compile(r"```yaml\n(# \.glee/tools/(\w+)/tool\.yml\n.*?)```", re.DOTALL)


def load_seed_manifests() -> dict[str, str]:
    """Name to manifest, unchanged; the test is skipped where the specification is not at hand."""
    if not SEED.is_file():
        pytest.skip("the specification with the four manifests is not beside this repository (../shared/seeds)")
    return {match[2]: match[1] for match in _MANIFEST.finditer(SEED.read_text())}


def lay_seed_project(project: Project) -> None:
    """The four tools, with the script, the module and the interpreter that they name."""
    for name, text in load_seed_manifests().items():
        project.add_tool(name, text)
    project.write("scripts/scan_todos.sh", "#!/bin/sh\necho Scan complete.\necho Matches found: 2\n", executable=True)
    project.write("tools/repo_stats.py", "def run(path):\n    return {'files': 120, 'loc': 15342}\n")
    interpreter = project.write(".venv/bin/python", '#!/bin/sh\nexec python3 "$@"\n', executable=True)
    assert interpreter.is_file()
