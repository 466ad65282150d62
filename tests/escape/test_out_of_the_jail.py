"""Attempts to do from inside a jail what the manifest does not grant. Each must fail, as root and as anybody else."""

from __future__ import annotations

import contextlib
import os
import socket
import threading
from collections.abc import Iterator
from pathlib import Path

import pytest

from glee.definitions.result import Result
from glee.testing import Project

READING = {
    "a file outside": "open(OUTSIDE + '/secret').read()",
    "a file outside by a relative path": "open(os.path.relpath(OUTSIDE, '.') + '/secret').read()",
    "the users": "open('/etc/passwd').read()",
    "their passwords": "open('/etc/shadow').read()",
    "home folders": "open('/home/' + os.listdir('/home')[0] + '/.profile').read()",
    "root's home": "open('/root/.profile').read()",
    "the project": "open(PROJECT + '/private').read()",
    "Glee's settings": "open(PROJECT + '/.glee/config.yml').read()",
    "a link to it": "(os.symlink(OUTSIDE + '/secret', '/tmp/s'), open('/tmp/s').read())",
    "a hard link to it": "os.link(OUTSIDE + '/secret', '/tmp/h')",
    "through the root of a process": "open('/proc/self/root/etc/passwd').read()",
    "through the root of process one": "open('/proc/1/root/etc/passwd').read()",
    "the environment of process one": "open('/proc/1/environ').read()",
    "the memory of process one": "open('/proc/1/mem', 'rb').read(1)",
    "the files of process one": "os.listdir('/proc/1/fd')",
    "the environment of the host": "open(f'/proc/{HOST}/environ').read()",
    "what is known of it": "os.stat(OUTSIDE)",
    "the machine's settings": "open('/proc/sys/kernel/core_pattern').read()",
    "devices": "os.listdir('/sys')",
    "private keys": "os.listdir('/etc/ssl/private')[0]",
}
WRITING = {
    "a file outside": "open(OUTSIDE + '/new', 'w')",
    "the system": "open('/usr/new', 'w')",
    "the root": "open('/new', 'w')",
    "the project": "open(PROJECT + '/new', 'w')",
    "the tool itself": "open(os.path.join(PROJECT, '.glee/tools/attack/tool.yml'), 'a')",
    "its own module": "open(os.path.join(PROJECT, 'tools/attack.py'), 'a')",
    "a mode": "os.chmod(OUTSIDE + '/secret', 0o777)",
    "a time": "os.utime(OUTSIDE + '/secret')",
    "an attribute": "os.setxattr(OUTSIDE + '/secret', 'user.x', b'x')",
    "a length": "os.truncate(OUTSIDE + '/secret', 0)",
    "a device": "os.mknod('/tmp/null', 0o20666, os.makedev(1, 3))",
    "a folder": "os.mkdir('/etc/new')",
    "a name": "os.rename('/usr/bin', '/usr/nib')",
}
NETWORK = {
    "the host's loopback": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "a datagram to it": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('127.0.0.1', PORT))",
    "IPv6": "socket.socket(socket.AF_INET6)",
    "a name": "socket.getaddrinfo('localhost', 80)[0][4] and socket.create_connection(('localhost', PORT), 2)",
    "a socket with a path": "socket.socket(socket.AF_UNIX).connect(OUTSIDE + '/socket')",
    "a socket without one": "socket.socket(socket.AF_UNIX).connect(ABSTRACT)",
    "netlink": "socket.socket(socket.AF_NETLINK, socket.SOCK_RAW)",
    "packets": "socket.socket(socket.AF_PACKET, socket.SOCK_RAW)",
    "raw": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "the hypervisor": "socket.socket(socket.AF_VSOCK)",
    "several paths": "socket.socket(socket.AF_INET, socket.SOCK_STREAM, 262)",
}
PROCESSES = {
    "a signal to the host": "os.kill(HOST, 0)",
    "a signal to process one": "(os.kill(1, 9), time.sleep(0.2), open('/proc/1/stat').read() and refused())",
    "its limits": "resource.prlimit(HOST, resource.RLIMIT_CORE)",
    "the limits of process one": "resource.prlimit(1, resource.RLIMIT_NOFILE, (9, 9))",
    "its priority": "os.setpriority(os.PRIO_PROCESS, HOST, 19)",
    "to be root": "os.setuid(0)",
    "to already be root": "os.getuid() and refused()",
    "other groups": "os.setgroups([0])",
    "descriptors of others": "[n for n in os.listdir('/proc/self/fd') if int(n) > 5] or refused()",
    "a setuid program": "os.stat('/usr/bin/su') and subprocess.run(['/usr/bin/su', '-c', 'id'], check=True)",
    "to leave its limits": "resource.setrlimit(resource.RLIMIT_NPROC, (10**6, 10**6))",
}
CALLS = {
    "mount": "call('mount', b'x', b'/tmp', b'tmpfs', 0, 0)",
    "umount2": "call('umount2', b'/tmp', 2)",
    "pivot_root": "call('pivot_root', b'/tmp', b'/tmp')",
    "chroot": "os.chroot('/tmp')",
    "unshare": "call('unshare', 0x10000000)",
    "clone into a namespace": "call('clone', 0x10000000 | 17, 0, 0, 0, 0) or os._exit(0)",
    "clone3": "call('clone3', 0, 0)",
    "setns": "call('setns', 0, 0)",
    "ptrace": "call('ptrace', 16, 1, 0, 0)",
    "process_vm_readv": "call('process_vm_readv', 1, 0, 0, 0, 0, 0)",
    "bpf": "call('bpf', 0, 0, 0)",
    "io_uring_setup": "call('io_uring_setup', 1, ctypes.create_string_buffer(200))",
    "keyctl": "call('keyctl', 0, -3, 0)",
    "add_key": "call('add_key', b'user', b'x', b'x', 1, -3)",
    "userfaultfd": "call('userfaultfd', 1)",
    "perf_event_open": "call('perf_event_open', ctypes.create_string_buffer(200), 0, -1, -1, 0)",
    "personality": "call('personality', 0x0040000)",
    "open_by_handle_at": "call('open_by_handle_at', 0, 0, 0)",
    "name_to_handle_at": "call('name_to_handle_at', -100, b'/', bytes(200), bytes(8), 0)",
    "kexec_load": "call('kexec_load', 0, 0, 0, 0)",
    "init_module": "call('init_module', 0, 0, b'')",
    "swapon": "call('swapon', b'/tmp/x', 0)",
    "reboot": "call('reboot', 0, 0, 0, 0)",
    "fanotify_init": "call('fanotify_init', 0, 0)",
    "open_tree": "call('open_tree', -100, b'/', 1)",
    "fsopen": "call('fsopen', b'tmpfs', 0)",
    "memfd_secret": "call('memfd_secret', 0)",
    "typing into a terminal": "fcntl.ioctl(0, 0x5412, b'x')",
    "shared memory of System V": "call('shmget', 1234, 4096, 0o1600)",
}
ATTACKS = {
    f"{kind}: {name}": code
    for kind, attacks in {
        "reading": READING,
        "writing": WRITING,
        "network": NETWORK,
        "processes": PROCESSES,
        "calls": CALLS,
    }.items()
    for name, code in attacks.items()
}
MODULE = """
import ctypes, fcntl, os, resource, socket, subprocess, time

NUMBERS = {numbers}
OUTSIDE, PROJECT, ABSTRACT = {outside!r}, {project!r}, {abstract!r}
PORT, HOST = {port}, {host}


def refused():
    raise PermissionError("it is not so")


def call(name, *arguments):
    libc = ctypes.CDLL(None, use_errno=True)
    libc.syscall.restype = ctypes.c_long
    values = [ctypes.c_long(value) if isinstance(value, int) else value for value in arguments]
    result = libc.syscall(ctypes.c_long(NUMBERS[name]), *values)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def run(code):
    try:
        return "escaped: " + repr(eval(code))
    except (OSError, ValueError, subprocess.CalledProcessError, IndexError) as error:
        return "held: " + type(error).__name__
"""


@pytest.fixture(scope="module")
def prison(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Project]:
    """A project whose tool may do nothing, and a world around it that is worth reaching."""
    base = tmp_path_factory.mktemp("prison")
    outside = base / "outside"
    outside.mkdir()
    (outside / "secret").write_text("a secret of the host")
    project = Project(base / "held")
    project.configure_person("sandbox: {mode: native}")
    project.configure("")
    project.write("private", "of the project")
    with contextlib.ExitStack() as open_sockets:
        server = open_sockets.enter_context(socket.create_server(("127.0.0.1", 0)))
        for address in (str(outside / "socket"), f"\0glee-{os.getpid()}"):
            listener = open_sockets.enter_context(socket.socket(socket.AF_UNIX))
            listener.bind(address)
            listener.listen()
        numbers = _numbers()
        source = MODULE.format(
            numbers=numbers,
            outside=str(outside),
            project=str(project.root),
            abstract=f"\0glee-{os.getpid()}",
            port=server.getsockname()[1],
            host=os.getpid(),
        )
        schema = {"type": "object", "properties": {"code": {"type": "string"}}}
        project.add_python("attack", source, inputs={"schema": schema})
        yield project


def _numbers() -> dict[str, int]:
    from glee.sandbox.syscalls import machine, numbers

    return numbers(machine() or "x86_64")


@pytest.fixture(scope="module")
def attack(prison: Project) -> Iterator[object]:
    with prison.open() as engine:
        yield lambda code: engine.call_sync("attack", {"code": code})


def _is_held(result: Result) -> bool:
    """Held, or not run at all where the machine cannot hold it; never anything else."""
    if result.error is not None:
        return result.error.code in ("sandbox_unavailable", "exit_code")
    return str(result.output).startswith("held: ")


@pytest.mark.parametrize("name", ATTACKS)
def test_what_was_not_granted_cannot_be_done(attack, name: str) -> None:  # type: ignore[no-untyped-def]
    result = attack(ATTACKS[name])

    assert _is_held(result), result


def test_what_is_outside_is_as_it_was(prison: Project) -> None:
    outside = prison.root.parents[1] / "outside"

    assert (outside / "secret").read_text() == "a secret of the host"
    assert sorted(path.name for path in outside.iterdir()) == ["secret", "socket"]
    assert (outside / "secret").stat().st_mode & 0o777 == 0o644


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


@pytest.mark.parametrize("script", [":(){ :|:& };:", "while :; do sleep 1000 & done"])
def test_a_bomb_of_processes_ends_with_its_run(project: Project, script: str) -> None:
    _native(project)
    project.write("bomb", f"#!/bin/bash\n{script}\nwait\n", executable=True)
    from glee.testing import manifest

    project.add_tool("bomb", manifest("bomb", "command", {"entrypoint": "./bomb", "timeout_ms": 1500}))
    before = threading.active_count()

    with project.open() as engine:
        engine.call_sync("bomb")
        project.add_command("after", "echo fine")
        assert engine.call_sync("after").output == "fine\n"

    assert threading.active_count() == before


def test_a_file_without_end_is_stopped(project: Project) -> None:
    _native(project)
    project.add_command("fill", "cat /dev/zero > /tmp/full")

    with project.open() as engine:
        error = engine.call_sync("fill").error

    assert error is not None
    assert error.code == "exit_code"


def test_when_the_fork_server_is_killed_the_next_call_works(project: Project) -> None:
    _native(project)
    project.add_command("hello", "echo hello")

    with project.open() as engine:
        assert engine.call_sync("hello").output == "hello\n"
        server = engine._parts.runners._jails._launcher._server  # type: ignore[attr-defined]
        server._process.kill()
        server._process.wait()
        assert engine.call_sync("hello").output == "hello\n"


def test_a_network_of_named_hosts_is_refused_until_it_can_be_held(project: Project) -> None:
    _native(project)
    project.add_command("call", "true", permissions={"network": {"hosts": ["api.example.com"]}})

    with project.open() as engine:
        error = engine.call_sync("call").error

    assert error is not None
    assert error.code == "sandbox_unavailable"


def test_a_project_cannot_turn_the_sandbox_off(project: Project) -> None:
    from glee.errors import ConfigError

    project.configure("sandbox: {mode: 'off'}")

    with pytest.raises(ConfigError, match="only your own config can turn the sandbox off"):
        project.open()
