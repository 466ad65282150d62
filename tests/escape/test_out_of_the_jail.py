"""Attempts to do from inside a jail what the manifest does not grant. Each must fail, as root and as anybody else."""

from __future__ import annotations

import os
import sys
from pathlib import Path

import pytest

import glee
from glee.testing import Project

pytestmark = pytest.mark.usefixtures("each_launcher")


def _native(project: Project) -> None:
    project.configure_person("sandbox: {mode: native}")


def test_what_is_granted_can_be_done_and_nothing_around_it(project: Project) -> None:
    _native(project)
    project.write("in/data", "read me")
    project.write("out/old", "")
    script = "cat in/data; echo new > out/new; echo x > in/other; rm out/old; ls"
    project.add_command("work", script, permissions={"fs": {"read": ["in"], "write": ["out"]}})

    with project.open() as engine:
        result = engine.call_sync("work")

    assert result.error is None, result
    assert result.output == "read mein\nout\nscripts\n"
    files = sorted(str(path.relative_to(project.root)) for path in project.root.rglob("*") if "out" in path.parts)
    assert files == ["out", "out/new"]
    assert (project.root / "out" / "new").stat().st_uid == os.getuid()


def test_settings_record_and_tools_stay_as_they_are_where_everything_is_granted(project: Project) -> None:
    _native(project)
    project.configure("# as it was")
    script = """
        echo x > .glee/config.yml; mv .glee .other; rm -rf .glee/tools; echo x >> .glee/audit/tools.log
        mkdir -p .glee/tools/new; echo mine > mine
    """
    project.add_command("work", script, permissions={"fs": {"write": ["."]}})

    with project.open() as engine:
        engine.call_sync("work")

    assert (project.root / ".glee" / "config.yml").read_text() == "# as it was"
    assert [path.name for path in project.tools.iterdir()] == ["work"]
    assert all(line.startswith("[") for line in project.audit_lines)
    assert (project.root / "mine").read_text() == "mine\n"


def test_settings_that_are_not_there_cannot_be_made(project: Project) -> None:
    _native(project)
    base = project.root.parent
    script = f"echo x > .glee/config.yml; mkdir -p {base}/cache/glee/x; echo x > {base}/config/glee/config.yml"
    project.add_command("work", script, permissions={"fs": {"write": [str(base)]}})

    with project.open() as engine:
        engine.call_sync("work")

    assert (project.root / ".glee" / "config.yml").read_text() == ""
    assert project.person_config.read_text() == "sandbox: {mode: native}"
    assert not (base / "cache" / "glee" / "x").exists()


def test_a_package_that_is_a_link_out_of_the_project_is_not_shown(project: Project, tmp_path: Path) -> None:
    _native(project)
    (tmp_path / "elsewhere").mkdir()
    (tmp_path / "elsewhere" / "mod.py").write_text("def run():\n    return 'read'\n")
    (project.root / "pack").symlink_to(tmp_path / "elsewhere")
    from glee.testing import manifest

    project.add_tool("work", manifest("work", "python", {"module": "pack.mod", "function": "run"}))

    with project.open() as engine:
        assert engine.call_sync("work").output is None


def test_a_virtual_environment_cannot_name_any_folder_as_its_base(project: Project, tmp_path: Path) -> None:
    _native(project)
    (tmp_path / "keys" / "bin").mkdir(parents=True)
    (tmp_path / "keys" / "secret").write_text("a secret")
    project.write(".venv/pyvenv.cfg", f"home = {tmp_path / 'keys' / 'bin'}\n")
    (project.root / ".venv" / "bin").mkdir()
    (project.root / ".venv" / "bin" / "python").symlink_to("/bin/cat")
    from glee.testing import manifest

    execution = {"entrypoint": ".venv/bin/python", "args": [str(tmp_path / "keys" / "secret")]}
    project.add_tool("work", manifest("work", "command", execution))

    with project.open() as engine:
        assert engine.call_sync("work").output is None


@pytest.mark.parametrize("grant", ["data", "scripts/../data", "ROOT/data"])
def test_a_grant_that_is_a_link_out_of_the_project_is_refused(project: Project, tmp_path: Path, grant: str) -> None:
    _native(project)
    (project.root / "data").symlink_to(tmp_path)
    grant = grant.replace("ROOT", str(project.root))
    project.add_command("work", "ls data", permissions={"fs": {"read": [grant]}})

    with project.open() as engine:
        error = engine.call_sync("work").error

    assert error is not None
    assert error.code == "sandbox_unavailable"


def test_two_runs_of_one_tool_see_nothing_of_each_other(project: Project) -> None:
    _native(project)
    script = "find /tmp $HOME -name left; pgrep -c sleep; touch /tmp/left $HOME/left; sleep 1000 >/dev/null 2>&1 & echo"
    project.add_command("leave", script)

    with project.open() as engine:
        outputs = [engine.call_sync("leave").output for _ in range(3)]

    assert outputs == ["0\n\n"] * 3


def test_when_the_fork_server_is_killed_the_next_call_works(project: Project) -> None:
    _native(project)
    project.add_command("hello", "echo hello")

    with project.open() as engine:
        assert engine.call_sync("hello").output == "hello\n"
        server = engine._parts.runners._cells._jails._launcher._server  # type: ignore[attr-defined]
        server._process.kill()
        server._process.wait()
        assert engine.call_sync("hello").output == "hello\n"


def test_a_project_cannot_turn_the_sandbox_off(project: Project) -> None:
    from glee.errors import ConfigError

    project.configure("sandbox: {mode: 'off'}")

    with pytest.raises(ConfigError, match="only your own config can turn the sandbox off"):
        project.open()


def test_glee_and_its_interpreter_cannot_be_written_whatever_was_granted(project: Project) -> None:
    package, environment = Path(glee.__file__).parent, Path(sys.prefix)
    mark = f"written-{os.getpid()}"
    script = f"touch {package}/{mark}; touch {environment}/{mark}; touch {package.parent}/{mark} && echo beside"
    project.add_command("work", script, permissions={"fs": {"write": [str(package.parent), str(environment.parent)]}})

    try:
        with project.open() as engine:
            output = engine.call_sync("work").output
        written = [folder for folder in (package, environment) if (folder / mark).exists()]
    finally:
        for folder in (package, environment, package.parent):
            (folder / mark).unlink(missing_ok=True)

    assert (output, written) == ("beside\n", [])


def test_a_grant_that_is_a_link_is_there_as_a_link(project: Project) -> None:
    project.write("data/real/x", "through a link")
    (project.root / "link.txt").symlink_to("data/real/x")
    (project.root / "folder").symlink_to("data/real")
    project.add_command("work", "cat link.txt folder/x", permissions={"fs": {"read": ["link.txt", "folder", "data"]}})

    with project.open() as engine:
        assert engine.call_sync("work").output == "through a link" * 2


def test_standard_streams_can_be_opened_by_name(project: Project) -> None:
    project.add_command("work", "echo one > /dev/stdout; echo two | tee /dev/stderr; cat /dev/stdin </dev/null")

    with project.open() as engine:
        result = engine.call_sync("work")

    assert (result.output, result.error) == ("one\ntwo\n", None)


@pytest.mark.parametrize("path", ["/proc", "/proc/cpuinfo", "/dev/mem"])
def test_what_is_the_kernels_cannot_be_granted(project: Project, path: str) -> None:
    project.add_command("work", "true", permissions={"fs": {"read": [path]}})

    with project.open() as engine:
        error = engine.call_sync("work").error

    assert error is not None
    assert error.code == "sandbox_unavailable"
    assert f"{path} cannot be granted" in error.message


def test_the_whole_machine_can_be_granted_for_reading(project: Project) -> None:
    project.add_command(
        "work", "cat /etc/hostname && ! cat /etc/new && ! touch /etc/new", permissions={"fs": {"read": ["/"]}}
    )

    with project.open() as engine:
        result = engine.call_sync("work")

    assert result.output == Path("/etc/hostname").read_text(), result


def test_more_time_of_the_processor_than_the_limit_is_told_as_that(project: Project) -> None:
    project.add_command("work", "while :; do :; done", limits={"cpu_seconds": 1})

    with project.open() as engine:
        error = engine.call_sync("work").error

    assert error is not None
    assert "limits.cpu_seconds" in error.details["hint"]


def test_few_open_files_are_enough_to_start(project: Project) -> None:
    project.add_command("work", "echo started", limits={"open_files": 16})

    with project.open() as engine:
        assert engine.call_sync("work").output == "started\n"
