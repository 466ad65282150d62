"""Streams that are closed, full, read in part, or in another encoding."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest
from shell import Glee


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    for number in range(30):
        made.project.add_command(f"tool_{number:02}", "true", description="é – 工具")
    made.project.add_command("accents", "printf 'é 工具 😀\\n'")
    made.project.add_command("long", "yes 0123456789 | head -c 3000000")
    made.project.add_command("asks", "true", approval={"required": True, "reason": "why"})
    return made


@pytest.mark.parametrize(
    "script",
    [
        '"$glee" list | head -1',
        '"$glee" list --json | head -1',
        '"$glee" lint --json | true',
        '"$glee" --help | true',
        '"$glee" run long | head -c 5',
        '"$glee" nonsense 2>&1 | true',
        '"$glee" nonsense 2>&1 >/dev/null | true',
    ],
)
def test_a_reader_that_goes_away_is_no_error(glee: Glee, script: str) -> None:
    ran = glee.sh(script)

    assert (ran.status, ran.err) == (0, "")


def test_a_reader_of_an_artifact_may_go_away_too(glee: Glee) -> None:
    handle = json.loads(glee("run", "long", "--json").out)["artifacts"][0]["handle"]

    assert glee.sh(f'"$glee" artifact {handle} | head -c 4') == (0, "0123", "")


@pytest.mark.parametrize("closed", ["<&-", ">&-", "2>&-", "<&- >&- 2>&-"])
@pytest.mark.parametrize(
    ("command", "status"), [("list", 0), ("run accents --json", 0), ("run nothing", 2), ("lint", 0), ("artifact x", 2)]
)
def test_closed_streams_change_nothing_but_who_reads(glee: Glee, command: str, status: int, closed: str) -> None:
    ran = glee.sh(f'"$glee" {command} {closed}')

    assert ran.status == status
    assert "Traceback" not in ran.out + ran.err


def test_with_no_standard_input_there_is_nobody_to_ask(glee: Glee) -> None:
    ran = glee.sh('"$glee" run asks <&-')

    assert ran.status == 3


def test_a_full_disk_is_an_error_in_one_line(glee: Glee) -> None:
    ran = glee.sh('"$glee" list > /dev/full')

    assert ran == (1, "", "error: No space left on device\n")


@pytest.mark.parametrize(
    "env",
    [
        {"LC_ALL": "C"},
        {"LC_ALL": "POSIX", "PYTHONCOERCECLOCALE": "0", "PYTHONUTF8": "0"},
        {"PYTHONIOENCODING": "ascii"},
        {"PYTHONIOENCODING": "latin-1"},
        {"PYTHONIOENCODING": "utf-8:strict"},
    ],
    ids=lambda env: " ".join(env.values()),
)
@pytest.mark.parametrize("command", ["list", "run accents", "run accents --json", "artifact é"])
def test_an_encoding_that_lacks_a_character_is_no_reason_to_fail(glee: Glee, command: str, env: dict[str, str]) -> None:
    ran = glee(*command.split(), env=env)

    assert ran.status == (2 if command.startswith("artifact") else 0)
    assert "Traceback" not in ran.err


@pytest.mark.parametrize("encoding", ["utf-8", "latin-1", "ascii"])
def test_json_is_json_in_every_encoding(glee: Glee, encoding: str) -> None:
    ran = glee.sh('"$glee" list --json', PYTHONIOENCODING=encoding)

    assert json.loads(ran.out)[-1]["name"] == "tool_29"


def test_a_folder_whose_name_is_not_utf8_can_hold_a_project(glee: Glee) -> None:
    ran = glee("init", b"caf\xe9", cwd=glee.base, env={"PYTHONIOENCODING": "utf-8:strict"})

    assert (ran.status, ran.err) == (0, "")
    assert glee("list", "--root", b"caf\xe9", cwd=glee.base).status == 0
    assert glee("run", "count_words", "text=x", "--root", b"caf\xe9", cwd=glee.base).status == 0
    assert glee("lint", "--json", "--root", b"caf\xe9", cwd=glee.base).json == []
    shown = glee("show", "count_words", "--json", "--root", b"caf\xe9", cwd=glee.base)
    assert shown.json["name"] == "count_words"
