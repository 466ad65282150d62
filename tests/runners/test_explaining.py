"""Why a held run failed, told with the line in the manifest that would help."""

from __future__ import annotations

from typing import Any

import pytest

from glee.engine import Engine
from glee.testing import Project


@pytest.mark.parametrize(
    ("script", "fields", "hint"),
    [
        ("cat /etc/passwd", {}, "read /etc/passwd, if it is there; it can be granted under permissions.fs.read"),
        ("cat data/x", {}, "the tool may not read data/x, if it is there; it can be granted under permissions.fs.read"),
        ("echo x > data/new", {}, "permissions.fs.write"),
        ("echo x > data/new", {"permissions": {"fs": {"read": ["data"]}}}, "permissions.fs.write"),
        ("mkdir new", {}, "the tool may not write to new"),
        ("cat x.txt", {}, "the tool may not read x.txt"),
        (". ./lib.sh", {}, "the tool may not read lib.sh"),
        ("echo \"sed: couldn't open temporary file ./sedAbC: Permission denied\" >&2; exit 4", {}, "fs.write"),
        ("echo 'Error: getaddrinfo EAI_AGAIN one.example' >&2; exit 1", {}, "permissions.network.hosts"),
        ("cat data/none", {"permissions": {"fs": {"read": ["data"]}}}, None),
        ("cat /usr/none", {}, None),
        ("exit 3", {}, None),
        ("head -c 2000000 /dev/zero > /tmp/x", {"limits": {"file_mb": 1}}, "limits.file_mb"),
        ("kill -SYS $$", {}, "a system call that no tool may make"),
        ("kill -KILL $$", {}, "limits.memory_mb"),
        ("curl http://one.example/", {}, "permissions.network.hosts"),
    ],
)  # fmt: skip
def test_a_failure_comes_with_what_would_help(
    project: Project, engine: Engine, script: str, fields: dict[str, Any], hint: str | None
) -> None:
    project.write("data/x", "x")
    if script.startswith("curl"):
        script = 'echo "curl: (6) Could not resolve host: one.example" >&2; exit 6'
    project.add_command("work", script, **fields)

    error = engine.call_sync("work").error

    assert error is not None
    if hint is None:
        assert "hint" not in error.details
    else:
        assert hint in error.details["hint"]
        assert error.details["hint"] in error.message


def test_an_exception_of_a_python_tool_comes_with_it_too(project: Project, engine: Engine) -> None:
    project.add_python("work", "def run():\n    return open('/etc/passwd').read()\n")

    error = engine.call_sync("work").error

    assert error is not None
    assert (error.code, error.details["type"]) == ("exception", "FileNotFoundError")
    assert "permissions.fs.read" in error.details["hint"]
