"""Runs in real containers, of a Docker of the tests' own. What was not granted must fail, and nothing may stay."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import socket
import subprocess
import sys
import textwrap
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from containers import IMAGE, Docker

from glee.definitions.result import Result
from glee.testing import Project, manifest

PERSON = f"sandbox: {{mode: docker, image: '{IMAGE}', maxMemoryMb: 64, maxCpuPercent: 100}}"
ATTACKS = {
    "a file outside": "open(OUTSIDE + '/secret').read()",
    "the project": "open(PROJECT + '/private').read()",
    "Glee's settings": "open(PROJECT + '/.glee/config.yml').read()",
    "the machine's users": "open('/etc/passwd').read()",
    "process one's memory map as another": "open('/proc/1/root/etc/shadow').read()",
    "a new file outside": "open(OUTSIDE + '/new', 'w')",
    "a new file in the root": "open('/new', 'w')",
    "the image": "open('/usr/new', 'w')",
    "its own module": "open(PROJECT + '/tools/attack.py', 'a')",
    "a device": "os.mknod('/tmp/null', 0o20666, os.makedev(1, 3))",
    "the host's loopback": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "another interface": "[name for _, name in socket.if_nameindex() if name != 'lo'][0]",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "a socket without a path": "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
    "the host's processes": "os.kill(HOST, 0)",
    "to be root": "os.setuid(0)",
    "to already be root": "1 // (os.getuid() == 0)",
    "capabilities": "1 // int([l for l in open('/proc/self/status') if l.startswith('CapEff')][0].split()[1], 16)",
    "new privileges": "1 // (1 - int([l for l in open('/proc/self/status') if l.startswith('NoNewPrivs')][0][-2]))",
    "a signal to process one": "(os.kill(1, 9), time.sleep(0.1), 1 // 0)",
    "the engine's socket": "socket.socket(socket.AF_UNIX).connect('/var/run/docker.sock')",
    "descriptors of others": "[n for n in os.listdir('/proc/self/fd') if int(n) > 5][0]",
}
MODULE = """
import os, socket, time

OUTSIDE, PROJECT, ABSTRACT = {outside!r}, {project!r}, {abstract!r}
PORT, HOST = {port}, {host}


def run(attacks):
    return {{name: attempt(code) for name, code in attacks.items()}}


def attempt(code):
    try:
        return "escaped: " + repr(eval(code))
    except (OSError, IndexError, ZeroDivisionError) as error:
        return "held: " + type(error).__name__
"""


@pytest.fixture
def held(project: Project, docker: Docker) -> Iterator[Project]:
    """A project whose tools run in containers; none of them may be left at the end."""
    project.environ |= docker.environ
    project.configure_person(PERSON)
    yield project
    assert docker.containers() == []


@pytest.fixture
def call(held: Project) -> Iterator[Callable[..., Result]]:
    with held.open() as engine:
        yield lambda name, **inputs: engine.call_sync(name, inputs)


def error_of(result: Result) -> tuple[str, str]:
    assert result.error is not None, result
    return result.error.code, result.error.message


def own(path: Path) -> None:
    """To somebody who is not root, since containers never run as root."""
    for each in (path, *path.rglob("*")):
        os.chown(each, 1234, 1234)


def wait_until(condition: Callable[[], Any]) -> None:
    deadline = time.monotonic() + 20
    while not condition():
        assert time.monotonic() < deadline
        time.sleep(0.02)


def test_what_was_not_granted_cannot_be_done(held: Project, call: Callable[..., Result], tmp_path: Path) -> None:
    outside = tmp_path / "outside"
    outside.mkdir()
    (outside / "secret").write_text("a secret of the host")
    held.write("private", "of the project")
    held.configure("")
    abstract = f"\0glee-{os.getpid()}"
    with socket.create_server(("127.0.0.1", 0)) as server, socket.socket(socket.AF_UNIX) as listener:
        listener.bind(abstract)
        listener.listen()
        source = MODULE.format(
            outside=str(outside),
            project=str(held.root),
            abstract=abstract,
            port=server.getsockname()[1],
            host=os.getpid(),
        )
        held.add_python("attack", source, inputs={"schema": {"type": "object"}})
        result = call("attack", attacks=ATTACKS)

    assert result.error is None, result
    assert {name: said for name, said in result.output.items() if not said.startswith("held: ")} == {}
    assert [path.name for path in outside.iterdir()] == ["secret"]


def test_what_is_granted_can_be_done_and_belongs_to_whom_it_was_given(
    held: Project, call: Callable[..., Result]
) -> None:
    held.write("in/data", "read me")
    held.write("out/old", "")
    own(held.root / "out")
    script = "cat in/data; echo new > out/new; echo x > in/other; rm out/old; ls"
    held.add_command("work", script, permissions={"fs": {"read": ["in"], "write": ["out"]}})

    result = call("work")

    assert result.output == "read mein\nout\nscripts\n"
    assert [path.name for path in (held.root / "out").iterdir()] == ["new"]
    assert (held.root / "out" / "new").stat().st_uid == 1234
    assert sorted(path.name for path in (held.root / "in").iterdir()) == ["data"]


def test_what_belongs_to_root_is_not_written_by_a_silent_root(held: Project, call: Callable[..., Result]) -> None:
    held.write("out/old", "")
    held.add_command("work", "touch out/new", permissions={"fs": {"write": ["out"]}})

    code, message = error_of(call("work"))

    assert code == "sandbox_unavailable"
    assert "belongs to root, and a container is never run as root" in message


def test_settings_record_and_tools_stay_as_they_are_where_everything_is_granted(
    held: Project, call: Callable[..., Result]
) -> None:
    held.configure("# as it was")
    script = """
        echo x > .glee/config.yml; mv .glee .other; rm -rf .glee/tools; echo x >> .glee/audit/tools.log
        mkdir -p .glee/tools/new; ls ../state/glee ../config/glee; echo x > ../config/glee/config.yml; echo mine > mine
    """
    base = held.root.parent
    held.add_command("work", script, permissions={"fs": {"write": [str(base)]}})
    own(base)

    result = call("work")

    assert result.output == "../config/glee:\n\n../state/glee:\n", result
    assert (held.root / ".glee" / "config.yml").read_text() == "# as it was"
    assert held.person_config.read_text() == PERSON
    assert [path.name for path in held.tools.iterdir()] == ["work"]
    assert all(line.startswith("[") for line in held.audit_lines)
    assert (held.root / "mine").read_text() == "mine\n"


def test_printing_does_not_disturb_the_result_of_a_function(held: Project, call: Callable[..., Result]) -> None:
    source = """
        import os, subprocess, sys

        def run(text):
            print('{"value": "forged"}', flush=True)
            sys.stderr.write("noise")
            subprocess.run(["echo", "from a child"])
            return {"size": len(text), "python": sys.executable}
    """
    held.add_python("speak", textwrap.dedent(source), inputs={"schema": {"type": "object"}})

    assert call("speak", text="x" * 3_000_000).output == {"size": 3_000_000, "python": "/usr/bin/python3"}


@pytest.mark.parametrize("code", [7, 125, 127, 255])
def test_exit_codes_are_the_programs_own(held: Project, call: Callable[..., Result], code: int) -> None:
    held.add_command("end", f"echo out; echo err >&2; exit {code}", command={"exit_codes_ok": [code]})

    result = call("end")

    assert (result.exit_code, result.output) == (code, "out\n")


def test_a_bare_name_is_a_program_of_the_image(held: Project, call: Callable[..., Result]) -> None:
    held.add_tool("who", manifest("who", "command", {"entrypoint": "id", "args": ["-u"]}))
    held.add_tool("none", manifest("none", "command", {"entrypoint": "git"}))

    assert call("who").output == "64999\n"
    assert error_of(call("none")) == (
        "unavailable",
        f"the program git is not in the image {IMAGE}; add it, or correct the manifest",
    )


def test_a_virtual_environment_is_used_if_its_interpreter_is_in_the_image(
    held: Project, call: Callable[..., Result]
) -> None:
    name = f"python{sys.version_info.major}.{sys.version_info.minor}"
    held.write(".venv/pyvenv.cfg", "home = /usr/bin\ninclude-system-site-packages = false\n")
    held.write(f".venv/lib/{name}/site-packages/special.py", "VALUE = 42")
    (held.root / ".venv" / "bin").mkdir()
    interpreter = held.root / ".venv" / "bin" / "python"
    interpreter.symlink_to("/usr/bin/python3")
    source = "def run():\n    import special\n    return special.VALUE\n"
    held.add_python("use", source, python={"venv": ".venv"})

    assert call("use").output == 42
    interpreter.unlink()
    interpreter.symlink_to("/opt/python/bin/python3")
    assert error_of(call("use")) == (
        "unavailable",
        f"the program {interpreter}, which leads to /opt/python/bin/python3, is not in the image {IMAGE}; "
        "add it, or correct the manifest",
    )


def test_a_bomb_of_memory_ends_with_its_run(held: Project, call: Callable[..., Result]) -> None:
    held.add_python("bomb", "def run():\n    return len(bytearray(b'x' * (1 << 30)))\n")

    assert error_of(call("bomb"))[0] == "exit_code"


def test_a_bomb_of_processes_ends_with_its_run(held: Project, call: Callable[..., Result]) -> None:
    held.add_command("bomb", "b() { b | b & }; b; while :; do sleep 1000 & done", command={"timeout_ms": 2500})

    assert error_of(call("bomb"))[0] in ("timeout", "exit_code")


def test_what_detached_itself_is_gone_after_the_call(held: Project, call: Callable[..., Result]) -> None:
    held.add_command("leave", "setsid sleep 54321 >/dev/null 2>&1 & setsid sleep 54321 & echo left")

    assert call("leave").output == "left\n"
    assert "54321" not in _process_list()


@pytest.mark.parametrize(
    "script", ["sleep 54322", "kill -9 -1; sleep 54322", "trap '' TERM USR1; kill -STOP 1; sleep 54322"]
)
def test_a_run_past_its_time_leaves_no_container(held: Project, call: Callable[..., Result], script: str) -> None:
    held.add_command("slow", f"setsid sleep 54322 & {script}", command={"timeout_ms": 1500})

    assert error_of(call("slow"))[0] in ("timeout", "exit_code")
    assert "54322" not in _process_list()


def test_a_cancelled_call_leaves_no_container(held: Project, docker: Docker) -> None:
    held.add_command("slow", "sleep 54323")

    async def cancel() -> None:
        with held.open() as engine:
            task = asyncio.ensure_future(engine.call("slow"))
            while not docker.containers():
                await asyncio.sleep(0.02)
            task.cancel()
            await asyncio.gather(task, return_exceptions=True)

    asyncio.run(cancel())

    assert docker.containers() == []


MAIN = """
import json, sys
from pathlib import Path
from glee.compose import open_engine

with open_engine(Path(sys.argv[1]), environ=json.loads(sys.argv[2])) as engine:
    engine.call_sync("slow")
"""


@pytest.mark.parametrize("whom", ["Glee alone", "its clients too"])
def test_a_killed_glee_leaves_no_container(held: Project, docker: Docker, whom: str) -> None:
    held.add_command("slow", "trap '' TERM HUP INT; setsid sleep 54324 & sleep 54324")
    main = subprocess.Popen([sys.executable, "-c", MAIN, held.root, json.dumps(held.environ)])
    wait_until(lambda: "sleep 54324" in _process_list())
    children = Path(f"/proc/{main.pid}/task/{main.pid}/children").read_text().split()

    main.kill()
    if whom != "Glee alone":
        for child in children:
            os.killpg(int(child), signal.SIGKILL)
    main.wait()

    assert len(children) == 2
    wait_until(lambda: docker.containers() == [] and "sleep 54324" not in _process_list())


def test_a_tool_that_holds_the_lifeline_does_not_outlive_a_killed_glee(held: Project, docker: Docker) -> None:
    held.add_command("slow", "exec 9>/proc/1/fd/0; sleep 54326")
    main = subprocess.Popen([sys.executable, "-c", MAIN, held.root, json.dumps(held.environ)])
    wait_until(lambda: "sleep 54326" in _process_list())

    main.kill()
    main.wait()

    wait_until(lambda: docker.containers() == [] and "sleep 54326" not in _process_list())


def test_a_killed_client_is_an_error_and_leaves_no_container(held: Project, docker: Docker) -> None:
    held.add_command("slow", "sleep 54325")

    async def kill() -> Result:
        with held.open() as engine:
            task = asyncio.ensure_future(engine.call("slow"))
            while "sleep 54325" not in _process_list():
                await asyncio.sleep(0.02)
            (client,) = [line.split()[0] for line in _process_list().splitlines() if "run --rm" in line]
            os.kill(int(client), signal.SIGKILL)
            return await task

    code, message = error_of(asyncio.run(kill()))

    assert (code, "may have done part of its work" in message) == ("sandbox_unavailable", True)
    assert docker.containers() == []


def test_what_a_dead_glee_left_is_swept(held: Project, docker: Docker, call: Callable[..., Result]) -> None:
    space = os.stat("/proc/self/ns/pid").st_ino
    orphan = f"glee-{space}-{2**22 + 1}-1-abc"
    for name, label in ((orphan, "glee"), ("glee-1-1-1-abc", "glee"), ("another", "other")):
        docker.ask("create", f"--name={name}", f"--label={label}", "--network=none", IMAGE, "true")
    held.add_command("hello", "echo hello")

    assert call("hello").output == "hello\n"
    assert sorted(docker.containers()) == ["another", "glee-1-1-1-abc"]
    docker.ask("rm", "another", "glee-1-1-1-abc")


def test_a_secret_reaches_the_program_and_nobody_else(held: Project, docker: Docker) -> None:
    secret = "it's\na secret, $(really)"
    held.environ["TOKEN"] = secret
    held.add_command(
        "use",
        'printf %s "$TOKEN" | tr a-z b-za; sleep 1.5',
        permissions={"secrets": {"TOKEN": {}}},
    )
    seen = []

    async def look() -> Result:
        with held.open() as engine:
            task = asyncio.ensure_future(engine.call("use"))
            while not (names := docker.containers()):
                await asyncio.sleep(0.02)
            await asyncio.sleep(0.5)
            seen.append(docker.ask("inspect", *names))
            seen.append(_process_list())
            seen.extend(_environments())
            return await task

    result = asyncio.run(look())

    assert result.output == "ju't\nb tfdsfu, $(sfbmmz)", result
    assert len(seen) == 3
    assert not any("a secret, $(really)" in text for text in seen)


def _process_list() -> str:
    return subprocess.run(["ps", "-eo", "pid,args"], check=True, capture_output=True, text=True).stdout


def _environments() -> list[str]:
    """Of the engine's clients: what `ps e` would show of them."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            if "run" in (folder / "cmdline").read_text().split("\0")[:2]:
                found.append((folder / "environ").read_text())
        except (OSError, UnicodeDecodeError):
            continue
    return found


@pytest.mark.parametrize("folder", ['a,b" c:ä', "$(b)\\n' x=y,readonly"])
def test_odd_paths_are_mounted_as_they_are(docker: Docker, tmp_path: Path, folder: str) -> None:
    project = Project(tmp_path / folder)
    project.environ |= docker.environ
    project.configure_person(PERSON)
    project.write("in,to/data", "found")
    project.add_command("look", "cat in,to/data; touch in,to/new", permissions={"fs": {"read": ["in,to"]}})

    with project.open() as engine:
        result = engine.call_sync("look")

    assert result.error is not None and result.error.details["stdout"] == "found", result
    assert not (project.root / "in,to" / "new").exists()


def test_a_path_that_an_engine_would_misread_is_refused(held: Project, call: Callable[..., Result]) -> None:
    held.write("in\nto/data", "found")
    held.add_command("look", "true", permissions={"fs": {"read": ["in\nto"]}})

    code, message = error_of(call("look"))

    assert (code, "cannot be given the path" in message) == ("sandbox_unavailable", True)


def test_a_persons_mounts_are_there_for_reading_or_for_writing(docker: Docker, project: Project) -> None:
    shared, drop = project.root.parent / "shared", project.root.parent / "drop"
    for folder in (shared, drop):
        folder.mkdir()
    (shared / "data").write_text("shared")
    own(drop)
    project.environ |= docker.environ
    mounts = f"bindMounts: ['{shared}:/shared', '{drop}:/drop:rw']"
    project.configure_person(PERSON.replace("}", f", {mounts}}}"))
    project.add_command("work", "cat /shared/data; echo x > /drop/new; touch /shared/new 2>&1")

    with project.open() as engine:
        result = engine.call_sync("work")

    assert result.error is not None and result.error.details["stdout"].startswith("shared"), result
    assert [path.name for path in drop.iterdir()] == ["new"]
    assert [path.name for path in shared.iterdir()] == ["data"]


def test_an_image_that_is_not_there_is_said_and_not_fetched(held: Project) -> None:
    held.configure_person(PERSON.replace(IMAGE, "nobody/has:this"))
    held.add_command("hello", "echo hello")

    with held.open() as engine:
        assert error_of(engine.call_sync("hello")) == (
            "sandbox_unavailable",
            "the image nobody/has:this is not on this machine, and Glee fetches none; "
            "run `docker pull nobody/has:this`",
        )


def test_an_image_without_a_shell_is_said(held: Project, docker: Docker, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    subprocess.run(["tar", "-C", tmp_path / "empty", "-cf", tmp_path / "empty.tar", "."], check=True)
    docker.ask("import", str(tmp_path / "empty.tar"), "empty:1")
    held.configure_person(PERSON.replace(IMAGE, "empty:1"))
    held.add_command("hello", "echo hello")

    with held.open() as engine:
        code, message = error_of(engine.call_sync("hello"))

    assert (code, "the image empty:1 needs /bin/sh and dd" in message) == ("sandbox_unavailable", True)


def test_an_engine_that_does_not_answer_is_said(held: Project) -> None:
    held.environ["DOCKER_HOST"] = "unix:///nonexistent/socket"
    held.add_command("hello", "echo hello")

    with held.open() as engine:
        code, message = error_of(engine.call_sync("hello"))

    assert (code, "docker does not answer" in message) == ("sandbox_unavailable", True)


def test_a_network_of_named_hosts_is_refused_unless_there_is_none(held: Project) -> None:
    held.add_command("look", "echo looked", permissions={"network": {"hosts": ["api.example.com"]}})
    with held.open() as engine:
        code, message = error_of(engine.call_sync("look"))
    assert (code, "use sandbox.mode: native" in message) == ("sandbox_unavailable", True)

    held.configure("sandbox: {networkAccess: false}")
    with held.open() as engine:
        assert engine.call_sync("look").output == "looked\n"
