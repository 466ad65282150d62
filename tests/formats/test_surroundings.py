"""What a manifest points to: found where it is, missed where it is not, and never run."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest
from manifests import COMMAND, PYTHON

from glee.definitions.tool import CommandExec, PythonExec
from glee.formats.manifest import lint_manifest
from glee.formats.surroundings import find_interpreter, find_program
from glee.testing import Project


def lint(project: Project, manifest: str, search_path: str = "") -> list[tuple[int, int, str, str, str, str]]:
    """Everything but the file, with the project's own path left out of the messages."""
    path = project.add_tool("demo", manifest)
    problems = lint_manifest(path, root=project.root, search_path=search_path)
    prefix = f"{project.root}/"
    return [(p.line, p.column, p.field, p.rule, p.message.replace(prefix, ""), p.hint) for p in problems]


@pytest.fixture
def whole(project: Project) -> Project:
    """A project in which both manifests find everything."""
    project.write("scripts/demo.sh", "#!/bin/sh\n", executable=True)
    project.write("tools/demo.py", "def run(path): ...\n")
    project.write(".venv/bin/python", "#!/bin/sh\n", executable=True)
    (project.root / ".venv/lib/python3.11/site-packages/installed").mkdir(parents=True)
    return project


@pytest.mark.parametrize("manifest", [COMMAND, PYTHON], ids=["command", "python"])
def test_nothing_is_missed_where_everything_is_there(whole: Project, manifest: str) -> None:
    assert lint(whole, manifest) == []


ENTRYPOINT = (11, 17, "exec.command.entrypoint", "entrypoint")


@pytest.mark.parametrize(
    ("entrypoint", "message", "hint"),
    [
        ("./scripts/gone.sh", "scripts/gone.sh does not exist", "create it, or correct the path"),
        ("./scripts/plain.sh", "scripts/plain.sh may not be executed", "run chmod +x ./scripts/plain.sh"),
        ("./scripts", "scripts is a folder", "name a program"),
        ("/no/such/program", "/no/such/program does not exist", "create it, or correct the path"),
        ("nosuch", "no program nosuch on PATH or in the project root", "install it, or write its path"),
        (f"./{'a' * 5000}", f"{'a' * 5000} does not exist", "create it, or correct the path"),
        ("a" * 5000, f"no program {'a' * 5000} on PATH or in the project root", "install it, or write its path"),
        ('"./a\\0b"', "a\0b does not exist", "create it, or correct the path"),
        ('"a\\0b"', "no program a\0b on PATH or in the project root", "install it, or write its path"),
    ],
    ids=lambda value: value[:30].replace("\0", "0"),
)
def test_an_entrypoint_that_cannot_be_executed_is_a_problem(
    whole: Project, entrypoint: str, message: str, hint: str
) -> None:
    whole.write("scripts/plain.sh", "#!/bin/sh\n")

    assert lint(whole, COMMAND.replace("./scripts/demo.sh", entrypoint)) == [(*ENTRYPOINT, message, hint)]


@pytest.mark.parametrize("entrypoint", ["demo", "/bin/sh", ".glee/demo.sh"])
def test_an_entrypoint_is_a_path_from_the_root_an_absolute_path_or_a_name(whole: Project, entrypoint: str) -> None:
    whole.write(".glee/demo.sh", "#!/bin/sh\n", executable=True)
    whole.write("bin/demo", "#!/bin/sh\n", executable=True)

    assert lint(whole, COMMAND.replace("./scripts/demo.sh", entrypoint), str(whole.root / "bin")) == []


def test_a_bare_name_is_looked_for_on_path_before_the_project(tmp_path: Path) -> None:
    for folder in ("root", "bin"):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / "git").write_text("")
        (tmp_path / folder / "git").chmod(0o755)
    execution = CommandExec(entrypoint="git")

    assert find_program(execution, tmp_path / "root", str(tmp_path / "bin")) == tmp_path / "bin" / "git"
    assert find_program(execution, tmp_path / "root", "") == tmp_path / "root" / "git"


@pytest.mark.parametrize("manifest", [COMMAND, PYTHON], ids=["command", "python"])
@pytest.mark.parametrize("cwd", ["gone", "a" * 5000, '"a\\0"', "/no/such/folder", "scripts/demo.sh"])
def test_a_folder_to_run_in_that_is_not_there_is_a_problem(whole: Project, manifest: str, cwd: str) -> None:
    found = lint(whole, manifest.replace("cwd: .", f"cwd: {cwd}"))

    assert [(rule, hint) for _, _, _, rule, _, hint in found if rule == "cwd"] == [
        ("cwd", "create it, or correct the path")
    ]


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        (
            "venv: .venv",
            "venv: env",
            (14, 11, "exec.python.venv", "venv", "there is no interpreter in env", "make it: python3 -m venv env"),
        ),
        (
            "module: tools.demo",
            "module: tools.gone",
            (
                11,
                13,
                "exec.python.module",
                "module",
                "there is no module tools.gone in .glee/tools/demo",
                "create it, or correct the name",
            ),
        ),
        (
            "function: run",
            "function: ran",
            (
                12,
                15,
                "exec.python.function",
                "function",
                "tools/demo.py has no function ran",
                "define it, or correct the name",
            ),
        ),
    ],
)
def test_what_a_python_tool_names_and_is_not_there_is_a_problem(
    whole: Project, old: str, new: str, expected: tuple[int, int, str, str, str, str]
) -> None:
    found = lint(whole, PYTHON.replace(old, new))

    assert [(*item[:4], item[4].replace(f"{whole.root} or ", ""), item[5]) for item in found] == [expected]


@pytest.mark.parametrize("venv", ["a" * 5000, '"a\\0"', "/no/such/venv"])
def test_no_name_of_a_venv_is_more_than_a_problem(whole: Project, venv: str) -> None:
    assert [item[3] for item in lint(whole, PYTHON.replace("venv: .venv", f"venv: {venv}"))] == ["venv"]


@pytest.mark.parametrize("venv", ["    venv: .venv\n", ""])
@pytest.mark.parametrize("module", ["json", "sys", "math", "os.path"])
def test_the_standard_library_is_there_in_every_interpreter(whole: Project, module: str, venv: str) -> None:
    text = PYTHON.replace("tools.demo", module).replace("    venv: .venv\n", venv)

    assert lint(whole, text) == []


def test_a_package_of_the_venv_is_found(whole: Project) -> None:
    assert lint(whole, PYTHON.replace("tools.demo", "installed.part")) == []


def test_a_module_may_lie_in_the_tools_own_folder(whole: Project) -> None:
    whole.write(".glee/tools/demo/own.py", "def run(path): ...\n")

    assert lint(whole, PYTHON.replace("tools.demo", "own")) == []


@pytest.mark.parametrize(
    ("source", "known"),
    [
        ("def run(): ...", True),
        ("async def run(): ...", True),
        ("class run: ...", True),
        ("run = print", True),
        ("run: object = print", True),
        ("run, other = print, print", True),
        ("from elsewhere import run", True),
        ("import elsewhere as run", True),
        ("from elsewhere import *", True),
        ("def __getattr__(name): ...", True),
        ("if True:\n    def run(): ...", True),
        ("try:\n    from a import run\nexcept ImportError:\n    run = None", True),
        ("def ran(): ...", False),
        ("'run'", False),
        ("import run.other as other", False),
        ("-" * 200_000 + "1", True),
    ],
    ids=lambda value: repr(value)[:30],
)
def test_a_function_is_missed_only_where_it_surely_is_not(whole: Project, source: str | bytes, known: bool) -> None:
    whole.write("tools/demo.py", source)

    assert [item[3] for item in lint(whole, PYTHON)] == ([] if known else ["function"])


def test_the_code_that_is_looked_at_is_never_run(whole: Project) -> None:
    whole.write("tools/demo.py", "open('ran', 'w')\nraise SystemExit\ndef run(path): ...\n")

    assert lint(whole, PYTHON) == []
    assert not (whole.root / "ran").exists()


def test_without_a_venv_the_interpreter_is_the_one_that_runs_glee(tmp_path: Path) -> None:
    assert find_interpreter(PythonExec(module="m", function="f"), tmp_path) == Path(sys.executable)
    assert find_interpreter(PythonExec(module="m", function="f", venv=".venv"), tmp_path) is None


@pytest.mark.parametrize("source", ["def run(: broken", "(" * 1000, b"\xff\xfe not text"])
def test_a_module_that_is_not_python_is_reported(whole: Project, source: str | bytes) -> None:
    whole.write("tools/demo.py", source)

    assert [item[3] for item in lint(whole, PYTHON)] == ["module"]
