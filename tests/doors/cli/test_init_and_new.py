"""A project and its tools, made from nothing."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest
from shell import Glee, Ran

KINDS = ("command", "python", "http")


@pytest.fixture
def empty(tmp_path: Path) -> Path:
    folder = tmp_path / "empty folder"
    folder.mkdir()
    return folder


def _files(folder: Path) -> list[str]:
    return sorted(str(path.relative_to(folder)) for path in folder.rglob("*") if path.is_file())


def test_init_lays_a_project_here_whose_samples_lint_and_run(glee: Glee, empty: Path) -> None:
    made = glee("init", cwd=empty)

    assert made == (
        0,
        "made .glee with find_text, count_words, github_repo\nnext: glee run count_words text='to be or not to be'\n",
        "",
    )
    assert _files(empty) == [
        ".glee/.gitignore",
        ".glee/config.yml",
        ".glee/tools/count_words/count_words.py",
        ".glee/tools/count_words/tool.yml",
        ".glee/tools/find_text/find.sh",
        ".glee/tools/find_text/tool.yml",
        ".glee/tools/github_repo/tool.yml",
    ]
    assert glee("lint", cwd=empty).out == "3 tools, no problems\n"
    ran = glee("run", "count_words", "text=to be or not to be", "--json", cwd=empty)
    assert ran.json["output"] == {"words": 6, "most_frequent": ["to", "be", "or"]}
    tested = glee("test", "count_words", "find_text", cwd=empty)
    assert (tested.status, tested.out.splitlines()[-1]) == (0, "2 passed, 0 failed")


def test_init_makes_the_folders_it_is_given_and_quotes_what_to_type_next(glee: Glee, empty: Path) -> None:
    made = glee("init", "deep down/demo", cwd=empty)

    assert made.out.splitlines() == [
        "made deep down/demo/.glee with find_text, count_words, github_repo",
        "next: cd 'deep down/demo' && glee run count_words text='to be or not to be'",
    ]
    assert glee("list", "--root", str(empty / "deep down/demo")).status == 0


def test_init_inside_a_project_lays_a_project_of_its_own(glee: Glee) -> None:
    glee.project.add_command("outer", "true")

    assert glee("init", "inner").status == 0

    assert "outer" not in glee("list", cwd=glee.root / "inner").out


def test_init_leaves_a_project_that_is_there_as_it_is(glee: Glee) -> None:
    before = _files(glee.root)

    assert glee("init") == (2, "", "error: .glee already exists; `glee new NAME --kind KIND` adds a tool to it\n")
    assert _files(glee.root) == before


def test_init_where_no_folder_can_be_made_says_why(glee: Glee) -> None:
    glee.project.write("file", "")

    assert glee("init", "file/deep") == (1, "", "error: file/deep: Not a directory\n")


@pytest.mark.parametrize("kind", KINDS)
def test_a_new_tool_of_every_kind_lints_at_once(glee: Glee, kind: str) -> None:
    made = glee("new", "weather", "--kind", kind)

    assert (made.status, made.err) == (0, "")
    assert "made .glee/tools/weather/tool.yml\n" in made.out
    assert made.out.endswith("next: edit it, then glee lint weather && glee test weather\n")
    assert glee("lint", "weather") == (0, "1 tool, no problems\n", "")


def test_a_new_command_runs_at_once(glee: Glee) -> None:
    glee("new", "look", "--kind", "command")
    glee.project.write("notes.txt", "one\ntwo TODO\n")

    assert glee("run", "look", "text=TODO") == (0, "./notes.txt:2:two TODO\n", "")
    assert glee("run", "look", "text=NEVER").out == "nothing found\n"


def test_a_new_python_tool_runs_at_once(glee: Glee) -> None:
    glee("new", "count", "--kind", "python")

    assert glee("run", "count", "text=a a b", "top=1", "--json").json["output"] == {"words": 3, "most_frequent": ["a"]}


@pytest.mark.parametrize(
    "name", ["123", "1e3", "0x10", "no", "On", "null", "2026-01-01", "repo.scan", "a-b", "_x", "A" * 128]
)
def test_a_name_that_yaml_reads_as_something_else_is_still_a_name(glee: Glee, name: str) -> None:
    assert glee("new", name, "--kind", "command").status == 0

    assert glee("lint") == (0, "1 tool, no problems\n", "")
    assert glee("run", name, "text=x", "path=.glee/tools").status == 0


@pytest.fixture(scope="module")
def shared(make_glee: Callable[[], Glee]) -> Glee:
    return make_glee()


@pytest.mark.parametrize(
    "name",
    [
        "",
        ".",
        "..",
        "../x",
        "/tmp/x",
        "a/b",
        ".hidden",
        "-x",
        "a b",
        "a\tb",
        "a\nb",
        "é",
        "$x",
        "${x}",
        "'",
        "a" * 129,
        "a" * 5000,
    ],
    ids=lambda name: repr(name[:10]),
)
def test_a_name_that_cannot_be_a_folder_and_a_tool_is_refused(shared: Glee, name: str) -> None:
    ran = shared("new", "--kind", "command", "--", name)

    assert (ran.status, ran.out) == (2, "")
    assert "is no name that `glee new` gives; use letters, digits, _ . and -" in ran.err
    assert list(shared.project.tools.iterdir()) == []


def test_a_tool_that_is_there_is_never_overwritten(glee: Glee) -> None:
    glee("new", "weather", "--kind", "command")
    manifest = glee.project.tools / "weather" / "tool.yml"
    manifest.write_text("mine")

    again = glee("new", "weather", "--kind", "python")

    assert again.status == 2
    assert "weather already exists; choose another name, or remove it first" in again.err
    assert manifest.read_text() == "mine"


def test_a_new_tool_is_named_from_where_the_person_stands(glee: Glee) -> None:
    deep = glee.root / "src" / "deep"
    deep.mkdir(parents=True)

    made = glee("new", "look", "--kind", "command", cwd=deep)
    elsewhere: Ran = glee("new", "peek", "--kind", "command", "--root", str(glee.root), cwd=glee.base)

    assert "made ../../.glee/tools/look/tool.yml" in made.out
    assert "made project/.glee/tools/peek/tool.yml" in elsewhere.out
    assert os.access(glee.project.tools / "peek" / "find.sh", os.X_OK)


def test_a_draft_that_could_not_be_finished_is_not_left_behind(glee: Glee) -> None:
    (glee.project.tools / "weather").symlink_to("nowhere")

    assert glee("new", "weather", "--kind", "command").status == 1

    assert [path.name for path in glee.project.tools.iterdir()] == ["weather"]


def test_what_was_made_can_be_had_as_json(glee: Glee, empty: Path) -> None:
    assert glee("init", "--json", cwd=empty).json == {"made": _files(empty)}
    assert glee("new", "extra", "--kind", "python", "--json", cwd=empty).json == {
        "made": [".glee/tools/extra/extra.py", ".glee/tools/extra/tool.yml"]
    }


def test_an_init_that_fails_leaves_nothing(glee: Glee, empty: Path) -> None:
    ran = glee.sh(f"cd '{empty}' && ulimit -f 1 && \"$glee\" init")

    assert (ran.status, _files(empty), list(empty.iterdir())) == (1, [], [])
