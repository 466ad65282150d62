"""What there is, for whom it is there."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shell import Glee


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    made.project.add_command("zebra", "true", description="The  last\n  one", group="fs")
    made.project.add_command("apple", "true", group="web", dangerous=True)
    made.project.add_command("Mango", "true", approval={"required": True, "reason": "because"})
    made.project.add_command("secret_door", "true")
    made.project.add_tool("broken", "name: broken\nkind: comand\n")
    made.project.add_tool("torn", "name: [\n")
    made.project.configure("tools:\n  deny: ['secret_*']\n")
    return made


def test_tools_are_listed_in_the_order_of_their_names(glee: Glee) -> None:
    ran = glee("list")

    assert (ran.status, ran.err) == (0, "")
    assert [line.split()[0] for line in ran.out.splitlines()] == ["Mango", "apple", "broken", "torn", "zebra"]
    assert ran.out.splitlines()[-1] == "zebra   command   The last one"


def test_a_broken_definition_is_listed_with_its_reason_and_hides_no_other(glee: Glee) -> None:
    line = glee("list").out.splitlines()[2]

    assert line.startswith("broken  broken    line 1: ")
    assert "the field 'description' is missing (and 3 more)" in line


def test_json_has_every_field_of_every_tool(glee: Glee) -> None:
    listed = {tool["name"]: tool for tool in glee("list", "--json").json}

    assert list(listed) == ["Mango", "apple", "broken", "torn", "zebra"]
    assert listed["apple"] == {
        "name": "apple",
        "description": "The tool apple",
        "kind": "command",
        "group": "web",
        "approval": False,
        "dangerous": True,
        "origin": f"project {glee.project.tools}/apple/tool.yml",
        "trusted": False,
        "broken": None,
    }
    assert listed["Mango"]["approval"] is True
    assert listed["broken"]["broken"].startswith("line 1:")


def test_a_group_can_be_chosen(glee: Glee) -> None:
    assert [tool["name"] for tool in glee("list", "--group", "fs", "--json").json] == ["zebra"]
    assert glee("list", "--group", "net").out == glee("list", "--group", "web").out != ""
    assert glee("list", "--group", "cron") == (0, "no tools of the group cron; `glee list` shows them all\n", "")


def test_a_denied_tool_is_not_listed(glee: Glee) -> None:
    assert "secret_door" not in glee("list").out + glee("list", "--json").out


def test_the_project_is_found_from_any_folder_below_it_and_by_its_root(glee: Glee) -> None:
    deep = glee.root / "a" / "b"
    deep.mkdir(parents=True, exist_ok=True)
    here = glee("list")

    assert glee("list", cwd=deep) == here
    assert glee("list", "--root", str(glee.root), cwd=glee.base) == here
    assert glee("list", "--root", "b", cwd=deep.parent) == here


def test_an_empty_project_says_how_to_begin(make_glee: Callable[[], Glee]) -> None:
    fresh = make_glee()

    assert fresh("list") == (0, "no tools; `glee new NAME --kind command` makes one\n", "")
    assert fresh("list", "--json").json == []
    assert fresh("lint") == (0, "0 tools, no problems\n", "")
    assert fresh("test") == (0, "0 passed, 0 failed\n", "")


def test_a_folder_with_an_odd_name_cannot_command_the_terminal(make_glee: Callable[[], Glee]) -> None:
    fresh = make_glee()
    fresh.project.add_tool("a\x1b]0;title\x07\nb", "name: x")

    terminal = fresh.on_terminal("list")

    assert terminal.end() == 0
    assert "\x1b]0;" not in terminal.seen
    assert len(terminal.seen.splitlines()) == 1
