"""The least permissions a tool needs: found by running it, never with more than the person allowed."""

from __future__ import annotations

from typing import Any

import pytest
from servers import Server, server

from glee.approval import Always
from glee.config import load_settings
from glee.definitions.permissions import Files, Hosts, Permissions
from glee.learning.grants import Allowed, Grants
from glee.learning.learner import Learner, Learnt
from glee.testing import Project

__all__ = ["server"]

pytestmark = pytest.mark.usefixtures("each_launcher")


def learn(project: Project, name: str, arguments: dict[str, Any] | None = None, **allowed: tuple[str, ...]) -> Learnt:
    settings = load_settings(project.root, environ=project.environ)
    with project.open() as engine:
        tool = engine.find(name)
        assert tool is not None
    spelled = {field: tuple(str(project.root / path) for path in paths) for field, paths in allowed.items()}
    spelled["hosts"] = allowed.get("hosts", ())
    learner = Learner(settings, tool, Allowed(**{"read": (str(project.root),), **spelled}), approver=Always())
    return learner.learn([arguments or {}])


def test_what_is_read_and_written_is_found(project: Project) -> None:
    project.write("data/in.txt", "hello")
    project.write("data/other.txt", "not read")
    (project.root / "out").mkdir()
    project.add_command("work", "cat data/in.txt > out/copy.txt")

    learnt = learn(project, "work", write=("out",))

    assert learnt.ok, learnt
    assert learnt.permissions == Permissions(fs=Files(read=("data/in.txt",), write=("out",)))
    assert (project.root / "out" / "copy.txt").read_text() == "hello"


def test_a_manifest_that_grants_too_much_is_narrowed(project: Project) -> None:
    project.write("data/in.txt", "hello")
    project.add_python(
        "work",
        "def run():\n    return open('data/in.txt').read()\n",
        permissions={"network": True, "fs": {"read": ["."], "write": ["."]}},
    )

    assert learn(project, "work").permissions == Permissions(fs=Files(read=("data/in.txt",)))


def test_what_was_tried_and_is_not_needed_is_left_out(project: Project) -> None:
    project.write("config.json", "{}")
    project.write("data.txt", "x")
    project.add_command("work", "cat config.json >/dev/null 2>&1; cat data.txt")

    assert learn(project, "work").permissions == Permissions(fs=Files(read=("data.txt",)))


def test_many_files_of_one_folder_become_the_folder(project: Project) -> None:
    for number in range(6):
        project.write(f"src/{number}.txt", "x")
    project.add_command("work", "cat src/0.txt src/1.txt src/2.txt src/3.txt src/4.txt src/5.txt")

    assert learn(project, "work").permissions == Permissions(fs=Files(read=("src",)))


def test_what_only_changes_the_answer_is_needed_too(project: Project) -> None:
    project.write("src/one.txt", "1")
    source = "from pathlib import Path\n\n\ndef run():\n    return [p.name for p in Path('src').glob('*.txt')]\n"
    project.add_python("work", source)

    learnt = learn(project, "work")

    assert learnt.permissions == Permissions(fs=Files(read=("src",)))
    assert learnt.results[0].output == ["one.txt"]


def test_what_is_only_looked_at_is_needed_too(project: Project) -> None:
    project.write("flag", "")
    project.add_command("work", "test -f flag && echo there")

    assert learn(project, "work").permissions == Permissions(fs=Files(read=("flag",)))


def test_no_more_is_granted_than_was_allowed_while_it_is_watched(project: Project) -> None:
    for name in ("a", "b", "c", "d", "secret"):
        project.write(f"data/{name}", name)
    project.add_command("work", "cat data/a data/b data/c data/d; cat data/secret 2>/dev/null; true")

    learnt = learn(project, "work", read=("data/a", "data/b", "data/c", "data/d"))

    assert learnt.results[0].output == "abcd"
    assert learnt.permissions == Permissions(fs=Files(read=("data/a", "data/b", "data/c", "data/d")))


def test_nothing_that_was_not_allowed_is_done_and_it_is_said(project: Project) -> None:
    project.add_command("work", "cat /etc/passwd; echo x > made; exit 1")

    learnt = learn(project, "work")

    assert not learnt.ok
    assert not (project.root / "made").exists()
    assert set(learnt.not_allowed) == {
        "it tried to read /etc/passwd; to let it: --allow-read /etc/passwd",
        "it tried to write to .; to let it: --allow-write .",
    }
    assert "root:" not in str(learnt)


FETCH = (
    "import urllib.request\n\n\ndef run():\n    return urllib.request.urlopen('http://one.example/').read().decode()\n"
)


def test_hosts_are_found_where_they_are_allowed(project: Project, server: Server) -> None:
    project.configure_person(f"egress: {{resolve: {{one.example: '{server.address}'}}}}")
    project.add_python("work", FETCH)

    learnt = learn(project, "work", hosts=("*.example", "one.example"))

    assert learnt.ok, learnt
    assert learnt.permissions == Permissions(network=Hosts(hosts=("one.example",)))


def test_a_host_that_was_not_allowed_is_not_asked(project: Project, server: Server) -> None:
    project.configure_person(f"egress: {{resolve: {{one.example: '{server.address}'}}}}")
    project.add_python("work", FETCH)

    learnt = learn(project, "work")

    assert (learnt.ok, server.requests) == (False, [])
    assert "it tried to reach one.example:80; to let it: --allow-host one.example:80" in learnt.not_allowed


@pytest.mark.parametrize(
    ("read", "gathered"),
    [
        ({"/p/a/1", "/p/a/2"}, {"/p/a/1", "/p/a/2"}),
        ({"/p/a/1", "/p/a/2", "/p/a/3", "/p/a/4", "/p/b"}, {"/p/a", "/p/b"}),
        ({"/p/a", "/p/a/1"}, {"/p/a"}),
        ({"/1", "/2", "/3", "/4"}, {"/1", "/2", "/3", "/4"}),
        ({"/w/1", "/p/a"}, {"/p/a"}),
    ],
)
def test_grants_are_gathered(read: set[str], gathered: set[str]) -> None:
    grants = Grants(read=frozenset(read), write=frozenset({"/w"}))

    assert grants.gather(("/p", "/")) == Grants(read=frozenset(gathered), write=frozenset({"/w"}))
