"""`glee learn` as a person uses it: a change to the manifest, applied only when asked for and when it works."""

from __future__ import annotations

import pytest
import yaml
from shell import Glee

from glee.testing import manifest

MANIFEST = """\
# Counts lines.
name: count
description: How many lines a file has
kind: command
inputs:
  schema:
    type: object
    required: [file]
    properties:
      file: {type: string}
exec:
  command:
    entrypoint: /usr/bin/wc
    args: [-l, "${file}"]
# What it may touch.
permissions:
  network: true    # it does not need it
  fs:
    read: [.]

# How it is used.
examples:
  - params: {file: data/poem.txt}
"""


@pytest.fixture
def counting(glee: Glee) -> Glee:
    glee.project.add_tool("count", MANIFEST)
    glee.project.write("data/poem.txt", "one\ntwo\n")
    return glee


def test_the_change_is_shown_and_nothing_is_written(counting: Glee) -> None:
    ran = counting("learn", "count")

    assert (ran.status, ran.err) == (0, "")
    changed = [line for line in ran.out.splitlines() if line.startswith(("+ ", "- ", "-  ", "+  "))]
    assert "-  network: true    # it does not need it" in changed
    assert "+  network: false" in changed
    assert "+    - data/poem.txt" in changed
    assert (counting.project.tools / "count" / "tool.yml").read_text() == MANIFEST


def test_with_write_it_is_applied_and_the_rest_stays(counting: Glee) -> None:
    ran = counting("learn", "count", "--write")

    text = (counting.project.tools / "count" / "tool.yml").read_text()
    assert ran.status == 0
    assert ran.out.endswith("written\n")
    assert yaml.safe_load(text)["permissions"] == {"network": False, "fs": {"read": ["data/poem.txt"]}}
    assert "# Counts lines." in text
    assert "# How it is used." in text
    assert counting("run", "count", "file=data/poem.txt").out == "2 data/poem.txt\n"
    assert counting("learn", "count").out == "the manifest grants exactly what is needed\n"


def test_one_call_can_be_given_instead_of_the_examples(counting: Glee) -> None:
    counting.project.write("other.txt", "")

    ran = counting("learn", "count", "file=other.txt", "--json")

    assert ran.json["permissions"] == {"network": False, "fs": {"read": ["other.txt"]}}
    assert (ran.json["ok"], ran.json["written"], ran.json["not_allowed"]) == (True, False, [])


def test_what_was_not_allowed_is_told_with_the_flag_that_would_allow_it(counting: Glee) -> None:
    ran = counting("learn", "count", "file=/etc/passwd", "--write")

    assert ran.status == 1
    assert "it tried to read /etc/passwd; to let it: --allow-read /etc/passwd" in ran.err
    assert "not written" in ran.err
    assert (counting.project.tools / "count" / "tool.yml").read_text() == MANIFEST
    assert counting("learn", "count", "file=/etc/passwd", "--allow-read", "/etc/passwd").status == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nothing"], "there is no tool 'nothing'"),
        (["count", "--allow-read", "gone"], "--allow-read: there is no gone; make it first"),
        (["count", "--allow-host", "http://x/"], "--allow-host: "),
    ],
)
def test_bad_input_is_told(counting: Glee, arguments: list[str], said: str) -> None:
    ran = counting("learn", *arguments)

    assert ran.status == 2
    assert said in ran.err


def test_a_tool_that_no_jail_holds_cannot_be_learnt(glee: Glee) -> None:
    http = {"url": "https://example.com/"}
    glee.project.add_tool("web", manifest("web", "http", http, permissions={"network": True}))

    ran = glee("learn", "web")

    assert ran.status == 2
    assert "web is of kind http; only programs and Python tools are held" in ran.err
