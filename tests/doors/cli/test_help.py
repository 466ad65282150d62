"""What the program says of itself, and of what it was not asked in the right words."""

from __future__ import annotations

import pytest
from shell import Glee

from glee.doors.cli import COMMANDS
from glee.version import VERSION


@pytest.mark.parametrize("words", [("--help",), ("-h",), *((name, "--help") for name in COMMANDS)], ids=" ".join)
def test_every_help_says_how_it_is_used_and_gives_an_example(glee: Glee, words: tuple[str, ...]) -> None:
    ran = glee(*words)

    assert (ran.status, ran.err) == (0, "")
    assert ran.out.startswith("Usage: glee")
    assert "Example: glee " in ran.out or 'Example: eval "$(glee' in ran.out
    assert max(map(len, ran.out.splitlines())) <= 80


def test_the_help_names_every_command_with_its_line(glee: Glee) -> None:
    text = glee("--help").out

    assert all(f"  {name}" in text and line in text for name, line in COMMANDS.items())


def test_the_version_is_printed(glee: Glee) -> None:
    assert glee("--version") == (0, f"glee, version {VERSION}\n", "")


def test_without_a_command_the_help_goes_to_standard_error(glee: Glee) -> None:
    ran = glee()

    assert (ran.status, ran.out) == (2, "")
    assert "Commands:" in ran.err


@pytest.mark.parametrize(
    ("words", "parts"),
    [
        (["lst"], ["there is no command 'lst'; did you mean list?"]),
        (["zzzzz"], ["there is no command 'zzzzz'; `glee --help` lists them"]),
        ([""], ["there is no command ''; `glee --help` lists them"]),
        (["--hlep"], ["no such option", "--hlep", "--help"]),
        (["run", "x", "--jsn"], ["no such option", "--jsn", "--json"]),
        (["run"], ["missing argument", "NAME"]),
        (["show", "a", "b"], ["unexpected extra argument", "b"]),
        (["new", "x"], ["missing option", "--kind", "http, command, python"]),
        (["new", "x", "--kind", "java"], ["invalid value", "--kind", "java", "http", "command", "python"]),
        (["list", "--root", "nowhere"], ["invalid value", "--root", "nowhere"]),
        (["completion", "tcsh"], ["invalid value", "tcsh", "bash", "zsh", "fish"]),
    ],
)
def test_wrong_usage_is_explained_in_one_line_with_status_2(glee: Glee, words: list[str], parts: list[str]) -> None:
    ran = glee(*words)

    assert (ran.status, ran.out) == (2, "")
    first, *rest = ran.err.splitlines()
    assert first.startswith("error: ") and all(part in first for part in parts), first
    assert rest[0].startswith("Usage: glee") and rest[-1].endswith("--help` says more")


@pytest.mark.parametrize("words", [["list"], ["lint"], ["test"], ["show", "x"], ["run", "x"], ["artifact", "x"]])
def test_outside_a_project_every_command_says_how_to_make_one(glee: Glee, words: list[str]) -> None:
    ran = glee(*words, cwd=glee.base)

    assert (ran.status, ran.out) == (2, "")
    assert ran.err == f"error: no .glee folder in {glee.base} or above it; run `glee init` to make one\n"


def test_a_folder_that_was_removed_is_named_as_the_reason(glee: Glee) -> None:
    ran = glee.sh('mkdir gone && cd gone && rmdir ../gone && "$glee" list')

    assert ran == (2, "", "error: the folder you are in no longer exists; go to one that does\n")


def test_a_broken_config_is_a_reason_to_stop_with_its_place(glee: Glee) -> None:
    glee.project.configure("tools:\n  dney: []\n")

    ran = glee("list")

    assert (ran.status, ran.out) == (2, "")
    assert ran.err.startswith(f"error: {glee.root}/.glee/config.yml:2:3: ")
