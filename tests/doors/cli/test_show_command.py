"""One tool in full."""

from __future__ import annotations

from collections.abc import Callable

import pytest
from shell import Glee, inputs


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    made.project.add_command(
        "repo.scan",
        'echo "$1"',
        description="Scan a repository",
        version=3,
        group="fs",
        command={"args": ["${path}"]},
        inputs=inputs(
            "path",
            path={"type": "string", "description": "Where to\nlook"},
            deep={"type": "boolean", "default": True},
            level={"enum": ["low", "high"]},
            limit={"type": ["integer", "null"]},
        ),
        permissions={
            "network": {"hosts": ["a.example"]},
            "fs": {"read": ["src"]},
            "secrets": {"TOKEN": {"type": "string"}},
        },
        approval={"required": True, "reason": "it is slow"},
        examples=[{"params": {"path": "my files", "deep": False}}],
    )
    made.project.add_tool("broken", "name: broken\nkind: command\ndescripton: x\n")
    made.project.add_tool("hidden_broken", "name: [")
    made.project.add_command("hidden_tool", "true")
    made.project.configure("tools:\n  deny: ['hidden_*']\n")
    return made


def test_a_person_reads_what_it_takes_and_what_it_may_touch(glee: Glee) -> None:
    ran = glee("show", "repo.scan")

    assert (ran.status, ran.err) == (0, "")
    assert ran.out == (
        "repo.scan  command, version 3\n"
        "Scan a repository\n"
        "\n"
        "inputs\n"
        "  path         string   required       Where to look\n"
        "  deep         boolean  default true\n"
        '  level        string   optional       one of "low", "high"\n'
        "  limit        integer|null optional\n"
        "\n"
        "output       text\n"
        "group        fs\n"
        "network      a.example\n"
        "files        read src, write nothing\n"
        "secrets      TOKEN\n"
        "approval     needed: it is slow\n"
        f"from         {glee.project.tools}/repo.scan/tool.yml\n"
        "\n"
        "examples\n"
        "  glee run repo.scan 'path=my files' deep=false\n"
    )


def test_json_holds_the_whole_definition(glee: Glee) -> None:
    shown = glee("show", "repo.scan", "--json").json

    assert list(shown) == [
        "name", "description", "kind", "version", "group", "dangerous", "idempotent", "inputs", "outputs", "exec",
        "permissions", "approval", "examples", "origin", "digest",
    ]  # fmt: skip
    assert shown["exec"]["command"]["entrypoint"] == "./scripts/repo.scan.sh"
    assert shown["inputs"]["schema"]["required"] == ["path"]
    assert len(shown["digest"]) == 64


def test_the_name_a_provider_accepts_is_accepted_too(glee: Glee) -> None:
    assert glee("show", "repo_scan") == glee("show", "repo.scan")


def test_a_broken_definition_shows_every_problem(glee: Glee) -> None:
    ran = glee("show", "broken")

    assert (ran.status, ran.out) == (2, "")
    assert "did you mean description?" in ran.err
    assert "the field 'inputs' is missing" in ran.err
    assert "the field 'exec' is missing" in ran.err


def test_an_unknown_name_is_answered_with_the_nearest(glee: Glee) -> None:
    assert glee("show", "repo.scam") == (2, "", "error: there is no tool 'repo.scam'; did you mean repo.scan?\n")
    assert glee("show", "qqq") == (2, "", "error: there is no tool 'qqq'; run `glee list` to see what there is\n")


@pytest.mark.parametrize("name", ["hidden_tool", "hidden_broken", "hidden_nothing"])
def test_a_denied_name_is_denied_whatever_stands_behind_it(glee: Glee, name: str) -> None:
    ran = glee("show", name)

    assert (ran.status, ran.out) == (3, "")
    assert f"the tool {name} is denied by tools.deny: hidden_*" in ran.err


def test_a_denied_name_is_never_suggested(glee: Glee) -> None:
    for command in ("show", "run", "test"):
        assert "hidden" not in glee(command, "hiden_tool").err.replace("hiden_tool", "")
