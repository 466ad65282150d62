"""Tab completion, asked in the words in which shells ask for it."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Glee

from glee.doors.cli import COMMANDS


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    for name in ("find_text", "find_file", "repo.scan", "hidden"):
        made.project.add_command(name, "true")
    made.project.configure("tools:\n  deny: [hidden]\n")
    return made


def _complete(glee: Glee, words: str, cwd: Path | None = None) -> list[str]:
    env = {"_GLEE_COMPLETE": "bash_complete", "COMP_WORDS": words, "COMP_CWORD": str(len(words.split(" ")) - 1)}
    ran = glee(cwd=cwd, env=env)
    assert (ran.status, ran.err) == (0, "")
    return [line.removeprefix("plain,") for line in ran.out.split()]


@pytest.mark.parametrize(
    ("shell", "word"), [("bash", "complete -o"), ("zsh", "#compdef glee"), ("fish", "complete --no-files")]
)
def test_each_shell_gets_its_script(glee: Glee, shell: str, word: str) -> None:
    ran = glee("completion", shell)

    assert ran.status == 0
    assert word in ran.out and f"_GLEE_COMPLETE={shell}_complete" in ran.out


def test_the_script_for_bash_is_one_that_bash_accepts(glee: Glee) -> None:
    assert glee.sh('"$glee" completion bash | bash -n').status == 0


def test_commands_are_completed(glee: Glee) -> None:
    assert _complete(glee, "glee ") == list(COMMANDS)
    assert _complete(glee, "glee li") == ["list", "lint"]


@pytest.mark.parametrize("command", ["run", "show", "lint", "test"])
def test_the_names_of_tools_are_completed_and_denied_ones_are_not_told(glee: Glee, command: str) -> None:
    assert _complete(glee, f"glee {command} ") == ["find_file", "find_text", "repo.scan"]
    assert _complete(glee, f"glee {command} find_t") == ["find_text"]


def test_tools_of_another_root_are_completed_from_there(glee: Glee) -> None:
    assert _complete(glee, f"glee run --root {glee.root} find_", cwd=glee.base) == ["find_file", "find_text"]


def test_options_and_kinds_are_completed(glee: Glee) -> None:
    assert _complete(glee, "glee new x --kind ") == ["http", "command", "python"]
    assert _complete(glee, "glee run --id") == ["--idempotency-key"]


def test_outside_a_project_there_is_nothing_to_complete(glee: Glee) -> None:
    assert _complete(glee, "glee run ", cwd=glee.base) == []
