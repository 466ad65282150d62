"""Grants that nobody wrote: a program, a link or a folder that leads Glee to show more than the manifest names."""

from __future__ import annotations

import struct
from pathlib import Path

import pytest

from glee.engine import Engine
from glee.testing import Project, manifest


def _forge(program: bytes, folder: str, name: str) -> bytes:
    """A program with a dynamic section added that names any file as a library."""
    strings = b"\0" + folder.encode() + b"\0" + name.encode() + b"\0"
    at = len(program) + (-len(program)) % 4096
    base = 0x7000_0000
    entries = [(1, 2 + len(folder)), (29, 1), (5, base), (10, len(strings)), (0, 0)]
    dynamic = b"".join(struct.pack("<QQ", *entry) for entry in entries)
    data = bytearray(program.ljust(at, b"\0") + strings.ljust(256, b"\0") + dynamic)
    (start,) = struct.unpack_from("<Q", data, 32)
    size, count = struct.unpack_from("<HH", data, 54)
    headers = [bytearray(data[start + size * n : start + size * (n + 1)]) for n in range(count)]
    headers += [
        bytearray(struct.pack("<IIQQQQQQ", 1, 4, at, base, base, 256 + len(dynamic), 256 + len(dynamic), 4096)),
        bytearray(struct.pack("<IIQQQQQQ", 2, 4, at + 256, base + 256, base + 256, len(dynamic), len(dynamic), 8)),
    ]
    struct.pack_into("<Q", data, 32, len(data))
    struct.pack_into("<H", data, 56, len(headers))
    return bytes(data) + b"".join(bytes(header) for header in headers)


@pytest.mark.parametrize("named", ["secret", "library"])
def test_a_program_cannot_name_a_file_as_its_library_to_be_shown_it(
    project: Project, engine: Engine, tmp_path: Path, named: str
) -> None:
    from glee.sandbox.programs import find_needs

    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("a secret")
    (outside / "library").write_bytes(Path("/bin/true").read_bytes())
    program = project.write("bin/run", _forge(Path("/bin/true").read_bytes(), str(outside), named), executable=True)

    assert {path for path in find_needs(program, "/usr/bin") if path.is_relative_to(outside)} == set()


@pytest.mark.parametrize("named", ["OUTSIDE/secret", "secret"])
def test_a_script_cannot_name_a_file_as_its_interpreter_to_be_shown_it(
    project: Project, tmp_path: Path, named: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    from glee.sandbox.programs import find_needs

    monkeypatch.chdir(tmp_path)
    (tmp_path / "secret").write_text("a secret")
    named = named.replace("OUTSIDE", str(tmp_path))
    program = project.write("run", f"#!{named}\n", executable=True)

    assert tmp_path / "secret" not in find_needs(program, "/usr/bin")


def test_a_settings_file_of_an_environment_does_not_show_the_project(project: Project, engine: Engine) -> None:
    project.write("pyvenv.cfg", "")
    project.write("private", "of the project")
    (project.root / "lib" / "python3.11").mkdir(parents=True)
    project.write("bin/python3", "#!/bin/sh\ncat private\n", executable=True)
    project.add_tool("work", manifest("work", "command", {"entrypoint": "./bin/python3"}))

    assert engine.call_sync("work").output is None


def test_a_tool_cannot_widen_its_grant_by_planting_a_link(project: Project, engine: Engine) -> None:
    project.write("private", "of the project")
    (project.root / "out").mkdir()
    script = "cat out/settings/private; ln -s .. out/settings"
    project.add_command("work", script, permissions={"fs": {"read": ["out/settings"], "write": ["out"]}})

    engine.call_sync("work")
    error = engine.call_sync("work").error

    assert error is not None
    assert error.code == "sandbox_unavailable"
    assert "out/settings is a link" in error.message


def test_what_glee_keeps_to_itself_is_not_shown_even_if_it_comes_later(project: Project) -> None:
    base = project.root.parent
    project.add_command("work", f"cat {project.person_config}", permissions={"fs": {"read": [str(base)]}})

    with project.open() as engine:
        engine.call_sync("work")
        project.configure_person("limits: {timeout_ms: 5000} # a secret")
        outputs = [engine.call_sync("work").output for _ in range(2)]

    assert outputs == [None, None]


def test_a_grant_that_holds_glees_own_state_stays_as_large_as_it_is(project: Project) -> None:
    base = project.root.parent
    for number in range(14):
        grants = {"fs": {"read": [str(base)]}}
        project.write(f"data/{number}", "")
        project.add_command(f"t{number}", f"cat data/{number}; wc -l < /proc/self/mounts", permissions=grants)

    with project.open() as engine:
        counts = [int(engine.call_sync(f"t{number}").output) for number in range(14)]

    assert max(counts) < min(counts) + 5


def test_many_tools_with_many_grants_do_not_exhaust_the_server(project: Project) -> None:
    for number in range(20):
        for entry in range(20):
            project.write(f"data/{number}/{entry}/x", "x")
        grants = {"fs": {"read": [f"data/{number}/{entry}" for entry in range(20)]}}
        project.add_command(f"t{number}", f"cat data/{number}/19/x", permissions=grants)

    with project.open() as engine:
        outputs = [engine.call_sync(f"t{number}").output for number in (*range(20), 0)]

    assert outputs == ["x"] * 21
