"""Every problem at once, where it is, and how to mend it."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest
from shell import Glee

BROKEN = """\
name: broken
description: A tool with faults
kind: command
inptus: {}
exec:
  command:
    entrypoint: ./nowhere.sh
    timeout_ms: soon
"""


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    made.project.add_command("fine", "true")
    made.project.add_tool("broken", BROKEN)
    made.project.write(".glee/tools/latin/tool.yml", b"name: caf\xe9\n")
    return made


def test_every_problem_of_every_file_is_printed_with_place_and_remedy(glee: Glee) -> None:
    ran = glee("lint")

    assert (ran.status, ran.err) == (2, "")
    lines = ran.out.splitlines()
    where = [line.split(" ")[0] for line in lines[:-1] if not line.startswith("    ")]
    assert ".glee/tools/broken/tool.yml:4:1:" in where
    assert ".glee/tools/broken/tool.yml:8:17:" in where
    assert any(place.startswith(".glee/tools/latin/tool.yml:1:") for place in where)
    assert "    mend: did you mean inputs?" in lines
    assert sum(line.startswith("    mend: ") for line in lines) == len(where)
    assert lines[-1] == f"3 tools, {len(where)} problems"


def test_json_has_one_object_for_each_problem(glee: Glee) -> None:
    ran = glee("lint", "broken", "--json")

    assert ran.status == 2
    fields = ["file", "line", "column", "field", "rule", "message", "hint", "advice"]
    assert all(list(problem) == fields for problem in ran.json)
    unknown = next(problem for problem in ran.json if problem["rule"] == "unknown")
    assert unknown == {
        "file": ".glee/tools/broken/tool.yml",
        "line": 4,
        "column": 1,
        "field": "inptus",
        "rule": "unknown",
        "message": "the field 'inptus' is unknown",
        "hint": "did you mean inputs?",
        "advice": False,
    }


def test_files_are_named_from_where_the_person_stands(glee: Glee) -> None:
    below = glee.root / "src"
    below.mkdir(exist_ok=True)

    assert glee("lint", cwd=below).out.startswith("../.glee/tools/broken/tool.yml:")
    assert glee("lint", cwd=glee.root / ".glee" / "tools").out.startswith("broken/tool.yml:")
    assert glee("lint", "--root", str(below), cwd=glee.base).out.startswith("project/.glee/tools/broken/tool.yml:")


def test_one_tool_can_be_chosen_by_name(glee: Glee) -> None:
    assert glee("lint", "fine") == (0, "1 tool, no problems\n", "")
    assert glee("lint", "fine", "--json").json == []
    assert "latin" not in glee("lint", "broken").out


def test_a_name_that_is_not_there_is_answered_with_the_nearest(glee: Glee) -> None:
    assert glee("lint", "brokn") == (2, "", "error: there is no tool 'brokn'; did you mean broken?\n")


def test_a_program_that_is_not_there_is_a_problem(make_glee: Callable[[], Glee]) -> None:
    fresh = make_glee()
    fresh.project.add_command("lost", "true", command={"entrypoint": "./nowhere.sh"})

    ran = fresh("lint")

    assert ran.status == 2
    assert "exec.command.entrypoint:" in ran.out and "nowhere.sh does not exist" in ran.out
    assert ran.out.endswith("1 tool, 1 problem\n")


def test_what_lies_among_the_tools_and_is_none_is_reported(make_glee: Callable[[], Glee]) -> None:
    made = make_glee()
    made.project.write(".glee/tools/misspelt/tool.yaml", "name: misspelt\n")
    made.project.write(".glee/tools/empty/notes.txt", "")
    made.project.write(".glee/tools/loose.yml", "name: loose\n")

    ran = made("lint")

    assert ran.status == 2
    assert ran.out.splitlines() == [
        ".glee/tools/empty:1:1: the folder has no tool.yml",
        "    mend: write empty/tool.yml, or remove the folder",
        ".glee/tools/loose.yml:1:1: a tool is a folder, not a file",
        "    mend: move it to loose/tool.yml, or remove it",
        ".glee/tools/misspelt:1:1: the folder has no tool.yml",
        "    mend: rename tool.yaml to tool.yml",
        "0 tools, 3 problems",
    ]


def test_an_example_at_which_a_pattern_gives_up_is_one_problem_among_others(make_glee: Callable[[], Glee]) -> None:
    made = make_glee()
    schema = {"type": "object", "properties": {"word": {"type": "string", "pattern": "^(?!b)(a|a)*(?=c)$"}}}
    made.project.add_command("bad", "true", inputs={"schema": schema}, examples=[{"params": {"word": "a" * 60}}])
    made.project.add_command("lost", "true", command={"entrypoint": "./nowhere.sh"})

    ran = made("lint", "--json")

    assert (ran.status, [(problem["field"], problem["rule"]) for problem in ran.json]) == (
        2,
        [("examples[0].params.word", "example"), ("exec.command.entrypoint", "entrypoint")],
    )


@pytest.mark.parametrize(
    ("permissions", "rules"),
    [
        ({"network": True}, ["hosts"]),
        ({"network": {"hosts": ["one.example"]}}, []),
        ({"fs": {"read": ["/"]}}, ["root"]),
        ({"fs": {"read": ["scripts", "*.txt", "~/x"]}}, ["path", "path"]),
        ({}, []),
    ],
)
def test_advice_is_told_and_is_no_problem(
    make_glee: Callable[[], Glee], permissions: dict[str, Any], rules: list[str]
) -> None:
    glee = make_glee()
    glee.project.add_command("work", "true", permissions=permissions)

    ran, told = glee("lint"), glee("lint", "--json")

    assert (ran.status, told.status) == (0, 0)
    assert [(problem["rule"], problem["advice"]) for problem in told.json] == [(rule, True) for rule in rules]
    assert ran.out.endswith("1 tool, no problems\n")
    assert ran.out.count("advice:") == len(rules)
