"""Packages that pip really installed, into an environment of their own: as a wheel, and to be edited in place."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import sysconfig
import textwrap
import zipfile
from pathlib import Path
from typing import Any

import pytest
from sites import GREETER

import glee
from glee.testing import Project

METADATA = "Metadata-Version: 2.1\nName: {name}\nVersion: 1.0\n"
BACKEND = '''
    """Builds a wheel of what lies in src, or one that only points there."""
    import zipfile

    INFO = "{module}-1.0.dist-info"

    def build_editable(folder, settings=None, metadata=None):
        name = "{module}-1.0-py3-none-any.whl"
        with zipfile.ZipFile(f"{{folder}}/{{name}}", "w") as wheel:
            wheel.writestr("{module}.pth", "{source}")
            wheel.writestr(f"{{INFO}}/METADATA", {metadata!r})
            wheel.writestr(f"{{INFO}}/WHEEL", "Wheel-Version: 1.0\\nRoot-Is-Purelib: true\\nTag: py3-none-any\\n")
            wheel.writestr(f"{{INFO}}/entry_points.txt", {points!r})
            wheel.writestr(f"{{INFO}}/RECORD", "")
        return name

    def get_requires_for_build_editable(settings=None):
        return []
'''


class Environment:
    """A real virtual environment that sees Glee, its libraries, and what is installed into it."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        self.python = folder / "venv/bin/python"
        subprocess.run([sys.executable, "-m", "venv", "--without-pip", folder / "venv"], check=True)
        libraries = next((folder / "venv/lib").glob("python*/site-packages"))
        glee_home = Path(glee.__file__).parents[1]
        (libraries / "glee.pth").write_text(f"{sysconfig.get_path('purelib')}\n{glee_home}\n")

    def pip_install(self, *what: str | Path) -> None:
        options = ["--no-index", "--no-deps", "--no-build-isolation", "--disable-pip-version-check", "-q"]
        pip = [sys.executable, "-m", "pip", "--python", self.python, "install", *options, *what]
        subprocess.run(pip, check=True, env={**os.environ, "PIP_NO_CACHE_DIR": "1"})

    def glee(self, project: Project, *args: str) -> Any:
        done = subprocess.run(
            [self.python, "-c", "from glee.doors.cli import main; main()", *args, "--json"],
            cwd=project.root,
            env=project.environ,
            capture_output=True,
            text=True,
        )
        assert done.stdout, done.stderr
        return json.loads(done.stdout)


@pytest.fixture
def environment(tmp_path: Path) -> Environment:
    return Environment(tmp_path)


def make_wheel(folder: Path, module: str, files: dict[str, str], point: str) -> Path:
    path = folder / f"{module}-1.0-py3-none-any.whl"
    info = f"{module}-1.0.dist-info"
    with zipfile.ZipFile(path, "w") as wheel:
        for name, text in files.items():
            wheel.writestr(f"{module}/{name}", textwrap.dedent(text))
        wheel.writestr(f"{info}/METADATA", METADATA.format(name=module))
        wheel.writestr(f"{info}/WHEEL", "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n")
        wheel.writestr(f"{info}/entry_points.txt", f"[glee.tools]\n{point}\n")
        wheel.writestr(f"{info}/RECORD", "")
    return path


def make_source(folder: Path, module: str, files: dict[str, str], point: str) -> Path:
    """A project as its author has it, with what nobody else is to read beside the package."""
    source = folder / "work" / "src"
    (source / module).mkdir(parents=True)
    for name, text in files.items():
        (source / module / name).write_text(textwrap.dedent(text))
    (source / "private.py").write_text("KEY = 'private'")
    backend = BACKEND.format(
        module=module, source=source, metadata=METADATA.format(name=module), points=f"[glee.tools]\n{point}\n"
    )
    (folder / "work" / "backend.py").write_text(textwrap.dedent(backend))
    settings = "[build-system]\nrequires = []\nbuild-backend = 'backend'\nbackend-path = ['.']\n"
    (folder / "work" / "pyproject.toml").write_text(settings)
    return folder / "work"


def test_a_wheel_that_pip_installed_offers_its_tools(environment: Environment, project: Project) -> None:
    tools = f"from .words import WORD\n{textwrap.dedent(GREETER).replace('hello', '{WORD}')}"
    files = {"__init__.py": "", "words.py": "WORD = 'hello'", "tools.py": tools}
    wheel = make_wheel(environment.folder, "acme", files, "greet = acme.tools:greet")
    environment.pip_install(wheel)

    (listed,) = environment.glee(project, "list")
    result = environment.glee(project, "run", "greet", "name=world")

    assert (listed["name"], listed["kind"], listed["origin"], listed["broken"]) == (
        "greet",
        "python",
        "package acme",
        None,
    )
    assert (result["output"], result["warnings"]) == ("hello world", [])


def test_a_package_installed_to_be_edited_is_read_where_it_lies_and_nothing_beside_it(
    environment: Environment, project: Project
) -> None:
    source = f"{textwrap.dedent(GREETER)}\ntry:\n    import private\nexcept ImportError:\n    private = None\n"
    files = {"__init__.py": source.replace('"hello {name}"', '"hello {name}, {private}"')}
    environment.pip_install("-e", make_source(environment.folder, "acme", files, "greet = acme:greet"))

    first = environment.glee(project, "run", "greet", "name=world")
    module = environment.folder / "work/src/acme/__init__.py"
    module.write_text(module.read_text().replace("hello", "goodbye"))
    second = environment.glee(project, "run", "greet", "name=world")

    assert (first["output"], second["output"]) == ("hello world, None", "goodbye world, None")
