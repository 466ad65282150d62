"""New tools, laid whole or not at all."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any

import pytest

from glee.errors import DefinitionError
from glee.formats.expectation import matches, parse_expected
from glee.formats.manifest import lint_manifest, read_manifest
from glee.formats.scaffold import write_tool
from glee.formats.yaml_text import parse_text
from glee.testing import Project

KINDS: list[Any] = ["http", "command", "python"]
FILES = {"http": ["tool.yml"], "command": ["find.sh", "tool.yml"], "python": ["fresh.py", "tool.yml"]}


def lint(project: Project, path: Path) -> tuple[Any, ...]:
    return lint_manifest(path, root=project.root, search_path=project.environ["PATH"])


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_tool_lints_at_once_and_leaves_no_draft(project: Project, kind: Any) -> None:
    path = write_tool(project.tools, "fresh", kind)

    assert path == project.tools / "fresh" / "tool.yml"
    assert lint(project, path) == ()
    assert sorted(os.listdir(project.tools)) == ["fresh"]  # noqa: PTH208
    assert sorted(file.name for file in path.parent.iterdir()) == FILES[kind]


@pytest.mark.parametrize("kind", ["command", "python"])
def test_a_new_tool_runs_at_once_and_its_examples_come_true(project: Project, kind: Any) -> None:
    project.configure("tools: {deny: []}\n")
    tool = read_manifest(write_tool(project.tools, "fresh", kind)).tool
    assert tool is not None and tool.examples

    with project.open() as engine:
        for example in tool.examples:
            result = engine.call_sync("fresh", example.params)
            if tool.outputs.format == "json":
                assert matches(parse_expected(example.expected_output), result.output)
            else:
                assert result.output.strip() == example.expected_output.strip()
            assert (result.ok, result.warnings) == (True, ())


@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize(
    "name",
    ["no", "On", "YES", "null", "true", "False", "123", "012", "1.5", "1e5", "0x1F", "0o7", "_", "a.b-c", "2024-01-02"],
)
def test_a_name_that_yaml_would_take_for_something_else_is_kept(project: Project, kind: Any, name: str) -> None:
    path = write_tool(project.tools, name, kind)

    assert lint(project, path) == ()
    assert parse_text(path.read_text()).value["name"] == name


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        ".x",
        "-x",
        "a/b",
        "../x",
        "/x",
        "a b",
        "a\nb",
        "a\n",
        "x" * 129,
        "ü",
        "a:b",
        "a\\b",
        "~",
        "@NAME@",
        "a\0",
    ],
)
def test_a_name_that_is_no_folder_and_no_word_is_refused_and_nothing_is_written(project: Project, name: str) -> None:
    with pytest.raises(DefinitionError, match="is no name that `glee new` gives; use letters, digits"):
        write_tool(project.tools, name, "command")

    assert list(project.tools.iterdir()) == []


def test_a_tool_that_is_there_is_never_written_over(project: Project) -> None:
    path = project.add_command("mine", "true")
    before = path.read_bytes()

    with pytest.raises(DefinitionError, match="already exists; choose another name, or remove it first"):
        write_tool(project.tools, "mine", "http")

    assert (path.read_bytes(), os.listdir(path.parent)) == (before, ["tool.yml"])  # noqa: PTH208


def test_what_somebody_keeps_beside_it_is_left_alone(project: Project) -> None:
    project.write(".glee/tools/.fresh.draft/half", "")

    assert lint(project, write_tool(project.tools, "fresh", "python")) == ()
    assert sorted(folder.name for folder in project.tools.iterdir()) == [".fresh.draft", "fresh"]
    assert (project.tools / ".fresh.draft" / "half").exists()
