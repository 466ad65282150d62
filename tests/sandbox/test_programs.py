"""What a program needs to start, found without running it."""

from __future__ import annotations

import sys
from pathlib import Path

from glee.sandbox.programs import RUNTIME, find_links, find_needs


def test_a_program_of_the_system_needs_nothing_more() -> None:
    assert find_needs(Path("/bin/sh"), "/usr/bin:/bin") == set()


def test_a_script_needs_its_own_file_and_what_its_first_line_names(tmp_path: Path) -> None:
    inner = tmp_path / "bin" / "inner"
    inner.parent.mkdir()
    inner.write_text("#!/bin/sh\n")
    inner.chmod(0o755)
    script = tmp_path / "script"
    script.write_text("#!/usr/bin/env -S inner -x\n")

    assert find_needs(script, str(inner.parent)) == {script, inner}


def test_a_link_is_needed_with_what_it_leads_to(tmp_path: Path) -> None:
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "real").write_text("#!/bin/sh\n")
    (tmp_path / "link").symlink_to("a/real")

    assert find_needs(tmp_path / "link", "") == {tmp_path / "link", tmp_path / "a" / "real"}


def test_every_link_on_the_way_is_needed_where_it_really_lies(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    (tmp_path / "a" / "b" / "real").write_text("#!/bin/sh\n")
    (tmp_path / "folder").symlink_to(tmp_path / "a")
    (tmp_path / "a" / "first").symlink_to("../folder/second")
    (tmp_path / "a" / "second").symlink_to("b/real")

    assert find_needs(tmp_path / "folder" / "first", "") == {
        tmp_path / "folder",
        tmp_path / "a" / "first",
        tmp_path / "a" / "second",
        tmp_path / "a" / "b" / "real",
    }


def test_links_in_a_circle_end(tmp_path: Path) -> None:
    (tmp_path / "one").symlink_to("two")
    (tmp_path / "two").symlink_to("one")

    assert find_links(tmp_path / "one") == {tmp_path / "one", tmp_path / "two"}


def test_the_interpreter_of_a_virtual_environment_needs_it_and_the_one_below() -> None:
    needs = find_needs(Path(sys.executable), "")
    system = any(Path(sys.base_prefix).is_relative_to(folder) for folder in RUNTIME)

    assert Path(sys.prefix).resolve() in needs
    assert system or Path(sys.base_prefix).resolve() in needs


def test_a_script_that_names_itself_ends(tmp_path: Path) -> None:
    script = tmp_path / "loop"
    script.write_text(f"#!{script}\n")

    assert find_needs(script, "") == {script}
