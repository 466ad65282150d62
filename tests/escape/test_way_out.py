"""A network that ends at named hosts: what gets through, what does not, and a secret the tool never holds."""

from __future__ import annotations

from typing import Any

import pytest
from servers import Authority, Server

from glee.definitions.result import Result
from glee.testing import Project

pytestmark = pytest.mark.usefixtures("each_launcher")
MODULE = """
import json, os, socket, ssl, subprocess, urllib.error, urllib.request


def get(url, **headers):
    request = urllib.request.Request(url, headers=headers)
    return urllib.request.urlopen(request, timeout=10).read().decode()


def run(code):
    try:
        return "escaped: " + str(eval(code))
    except (OSError, ValueError) as error:
        return "held: " + type(error).__name__
"""
ATTACKS = {
    "another host": "get('http://two.example/')",
    "another host by CONNECT": "get('https://two.example/')",
    "a name above": "get('http://example/')",
    "a port that was not named": "get('http://one.example:8080/')",
    "the host's loopback": "socket.create_connection(('127.0.0.1', PORT), 2)",
    "the host's loopback through the proxy": "get('http://127.0.0.1:PORT/')",
    "the host's loopback by another spelling": "get('http://2130706433:PORT/')",
    "the metadata service": "get('http://169.254.169.254/latest/meta-data/')",
    "another port inside": "socket.create_connection(('127.0.0.1', 22), 2)",
    "a datagram": "socket.socket(socket.AF_INET, socket.SOCK_DGRAM).sendto(b'x', ('1.1.1.1', 53))",
    "a lookup of its own": "socket.create_connection((socket.getaddrinfo('one.example', 80)[0][4][0], 80), 2)",
    "a socket with a path": "socket.socket(socket.AF_UNIX)",
    "raw packets": "socket.socket(socket.AF_INET, socket.SOCK_RAW, 1)",
    "the hypervisor": "socket.socket(socket.AF_VSOCK)",
    "to listen where the door is": "socket.create_server(('127.0.0.1', 3128))",
    "to listen at all": "socket.create_server(('0.0.0.0', 0))",
    "a name that leads inside": "get('http://inside.example/')",
}


def _add(project: Project, server: Server, hosts: list[str], **fields: Any) -> None:
    project.configure_person(
        f"egress: {{resolve: {{one.example: '{server.address}', two.example: '{server.address}', "
        f"*below.example: '{server.address}'}}}}".replace("*", "a.")
    )
    schema = {"type": "object", "properties": {"code": {"type": "string"}}}
    project.add_python("work", MODULE, inputs={"schema": schema}, permissions={"network": {"hosts": hosts}, **fields})


def _call(project: Project, code: str) -> Result:
    with project.open() as engine:
        return engine.call_sync("work", {"code": code})


def test_the_named_hosts_answer(project: Project, server: Server) -> None:
    server.answer("/x", body=b"hello")
    _add(project, server, ["one.example", "*.below.example"])

    with project.open() as engine:
        outputs = [
            engine.call_sync("work", {"code": f"get('http://{host}/x')"}).output
            for host in ("one.example", "a.below.example", "one.example")
        ]

    assert outputs == ["escaped: hello"] * 3


@pytest.mark.parametrize("name", ATTACKS)
def test_nothing_else_can_be_reached(
    project: Project, server: Server, name: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    _add(project, server, ["one.example", "inside.example"])
    monkeypatch.setattr("socket.getaddrinfo", lambda *_, **__: [(2, 1, 6, "", ("127.0.0.1", 80))])

    result = _call(project, ATTACKS[name].replace("PORT", str(server.port)))

    assert str(result.output).startswith("held: "), result
    assert server.requests == []


def test_what_was_refused_is_told_with_the_line_that_would_allow_it(project: Project, server: Server) -> None:
    _add(project, server, ["one.example"])

    result = _call(project, "get('http://two.example/')")

    assert len(result.warnings) == 1
    assert "two.example" in result.warnings[0]
    assert "permissions.network.hosts" in result.warnings[0]


def test_a_tool_that_fails_over_what_was_refused_is_blocked(project: Project, server: Server) -> None:
    _add(project, server, ["one.example"])
    source = "import urllib.request\n\n\ndef run():\n    urllib.request.urlopen('http://two.example/')\n"
    project.write("tools/work.py", source)

    with project.open() as engine:
        error = engine.call_sync("work").error

    assert error is not None
    assert (error.code, error.details["refused"][0]["host"]) == ("blocked", "two.example")


@pytest.mark.parametrize("code", ["get('http://one.example/')", "socket.socket()"])
def test_an_empty_list_is_no_network(project: Project, server: Server, code: str) -> None:
    _add(project, server, [])

    assert str(_call(project, code).output).startswith("held: ")


@pytest.fixture
def secret(project: Project, secure_server: Server, authority: Authority) -> Project:
    project.environ["KEY"] = "opensesame1"
    project.configure_person(
        f"egress: {{resolve: {{one.example: '{secure_server.address}', two.example: '{secure_server.address}'}}, "
        f"ca_file: '{authority.file}'}}"
    )
    schema = {"type": "object", "properties": {"code": {"type": "string"}}}
    permissions = {
        "network": {"hosts": ["one.example", "two.example"]},
        "secrets": {"KEY": {"required": True, "host": "one.example"}},
    }
    project.add_python("work", MODULE, inputs={"schema": schema}, permissions=permissions)
    return project


def test_the_secret_reaches_its_host_and_the_tool_never_holds_it(secret: Project, secure_server: Server) -> None:
    code = "get(os.environ['GLEE_URL_KEY'] + '/v1', Authorization='Bearer ' + os.environ['KEY']) + os.environ['KEY']"

    result = _call(secret, code)

    assert secure_server.last.headers["authorization"] == ["Bearer opensesame1"]
    assert "opensesame1" not in str(result)
    assert "glee-key-" in str(result.output)


def test_the_secret_is_put_into_no_request_to_another_host(secret: Project, secure_server: Server) -> None:
    code = "get('http://127.0.0.1:3128/to/two.example/', Authorization=os.environ['KEY'])"

    _call(secret, code)

    assert secure_server.last.headers["authorization"][0].startswith("glee-key-")


def test_the_secret_is_nowhere_in_the_jail(secret: Project) -> None:
    places = "'/proc/self/environ', '/proc/1', '/tmp'"
    code = f"subprocess.run(['grep', '-rl', 'opensesame1', {places}], capture_output=True).stdout"

    assert _call(secret, code).output == "escaped: b''"


def test_without_a_sandbox_a_secret_that_must_not_be_seen_is_not_given(secret: Project) -> None:
    secret.configure_person("sandbox: {mode: 'off'}")

    error = _call(secret, "os.environ['KEY']").error

    assert error is not None
    assert error.code == "sandbox_unavailable"
