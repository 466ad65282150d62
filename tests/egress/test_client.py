"""The one HTTP client, through the engine as a user has it: TLS, mapped hosts and separate connections."""

from __future__ import annotations

import logging
import socket
from pathlib import Path
from typing import Any

import pytest
from servers import Authority, Server

from glee.engine import Engine
from glee.testing import Project, manifest


def add_http(project: Project, name: str, url: str) -> None:
    project.add_tool(name, manifest(name, "http", {"url": url}, permissions={"network": True}))


def map_hosts(project: Project, server: Server, *hosts: str, ca_file: Path | None = None) -> None:
    """The person's config: these hosts stand at this server."""
    lines = ["egress:", "  resolve:", *(f"    {host}: {server.address}" for host in hosts)]
    if ca_file:
        lines.append(f"  ca_file: {ca_file}")
    project.configure_person("\n".join(lines))


def failed_with(engine: Engine, tool: str) -> tuple[str, dict[str, Any]]:
    error = engine.call_sync(tool).error
    assert error is not None
    return error.code, error.details


def test_a_mapped_https_host_is_reached_under_its_own_name(
    project: Project, secure_server: Server, authority: Authority
) -> None:
    map_hosts(project, secure_server, "one.example", ca_file=authority.file)
    add_http(project, "ask", "https://one.example/path?q=1")

    with project.open() as engine:
        assert engine.call_sync("ask").output == {}

    assert (secure_server.last.target, secure_server.last.header("host")) == ("/path?q=1", "one.example")


def test_a_certificate_that_nobody_vouches_for_is_a_network_error(project: Project, secure_server: Server) -> None:
    map_hosts(project, secure_server, "one.example")
    add_http(project, "ask", "https://one.example/")

    with project.open() as engine:
        result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details) == ("network", {"host": "one.example", "status": None})
    assert "CERTIFICATE_VERIFY_FAILED" in result.error.message
    assert secure_server.requests == []


def test_a_certificate_for_another_name_is_a_network_error(
    project: Project, secure_server: Server, authority: Authority
) -> None:
    map_hosts(project, secure_server, "three.example", ca_file=authority.file)
    add_http(project, "ask", "https://three.example/")

    with project.open() as engine:
        assert failed_with(engine, "ask") == ("network", {"host": "three.example", "status": None})

    assert secure_server.requests == []


def test_a_certificate_for_an_address_is_checked_too(
    project: Project, secure_server: Server, authority: Authority
) -> None:
    map_hosts(project, secure_server, "one.example", ca_file=authority.file)
    add_http(project, "ask", f"{secure_server.url}/")

    with project.open() as engine:
        assert engine.call_sync("ask").ok


def test_a_certificate_file_of_the_environment_does_not_count(
    project: Project, secure_server: Server, authority: Authority, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", str(authority.file))
    map_hosts(project, secure_server, "one.example")
    add_http(project, "ask", "https://one.example/")

    with project.open() as engine:
        assert failed_with(engine, "ask")[0] == "network"


def test_a_ca_file_that_cannot_be_read_is_named(project: Project, secure_server: Server, tmp_path: Path) -> None:
    (tmp_path / "empty.pem").touch()
    map_hosts(project, secure_server, "one.example", ca_file=tmp_path / "empty.pem")
    add_http(project, "ask", "https://one.example/")

    with project.open() as engine:
        result = engine.call_sync("ask")

    assert result.error is not None
    assert result.error.code == "internal"
    assert result.error.message.startswith(f"egress.ca_file {tmp_path / 'empty.pem'} cannot be read: ")


def test_plain_http_where_tls_was_expected_is_a_network_error(project: Project, server: Server) -> None:
    map_hosts(project, server, "one.example")
    add_http(project, "ask", "https://one.example/")

    with project.open() as engine:
        assert failed_with(engine, "ask") == ("network", {"host": "one.example", "status": None})


def test_a_connection_for_one_host_never_carries_a_request_for_another(
    project: Project, secure_server: Server, authority: Authority
) -> None:
    map_hosts(project, secure_server, "one.example", "two.example", ca_file=authority.file)
    add_http(project, "one", "https://one.example/")
    add_http(project, "two", "https://two.example/")

    with project.open() as engine:
        for tool in ("one", "two", "one", "two", "two"):
            assert engine.call_sync(tool).ok

    assert secure_server.connections == 2
    assert [request.header("host") for request in secure_server.requests] == [
        "one.example",
        "two.example",
        "one.example",
        "two.example",
        "two.example",
    ]


def test_a_connection_for_one_host_is_not_reused_over_plain_http_either(project: Project, server: Server) -> None:
    map_hosts(project, server, "one.example", "two.example")
    add_http(project, "one", "http://one.example/")
    add_http(project, "two", "http://two.example/")

    with project.open() as engine:
        for tool in ("one", "two", "one", "two"):
            assert engine.call_sync(tool).ok

    assert server.connections == 2


def test_a_connection_lasts_as_long_as_the_engine(project: Project, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/")

    with project.open() as engine:
        assert engine.call_sync("ask").ok
        assert server.closed == 0

    server.wait_closed(1)


def test_a_program_that_logs_everything_logs_nothing_of_a_request(
    project: Project, server: Server, caplog: pytest.LogCaptureFixture
) -> None:
    """The libraries below would log addresses and headers, and a secret may stand in any of them."""
    server.answer("/", {}, headers={"X-Echo": "S3CR3T-VALUE"})
    add_http(project, "ask", f"{server.url}/")

    with caplog.at_level(logging.DEBUG), project.open() as engine:
        assert engine.call_sync("ask").ok

    assert [record for record in caplog.records if record.name.startswith(("httpx", "httpcore"))] == []
    assert ("S3CR3T" in caplog.text, server.address in caplog.text) == (False, False)


def test_the_mapping_is_refused_in_a_projects_own_config(project: Project, server: Server) -> None:
    from glee.errors import ConfigError

    project.configure(f"egress: {{resolve: {{one.example: '{server.address}'}}}}")

    with pytest.raises(ConfigError, match="egress belongs in your own config"):
        project.open()


def test_a_loopback_address_in_a_projects_manifest_is_allowed(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/")

    assert engine.call_sync("ask").output == {}


def test_localhost_in_a_projects_manifest_is_allowed(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"http://localhost:{server.port}/")

    assert engine.call_sync("ask").output == {}
    assert server.last.header("host") == f"localhost:{server.port}"


def test_a_name_that_leads_inside_never_gets_a_connection(
    project: Project, engine: Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def lead_inside(host: str, port: int, *_: object, **__: object) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", port))]

    monkeypatch.setattr(socket, "getaddrinfo", lead_inside)
    add_http(project, "ask", f"http://rebound.example:{server.port}/")

    assert failed_with(engine, "ask") == ("blocked", {"host": "rebound.example", "address": "127.0.0.1"})
    assert server.connections == 0


def test_an_unknown_host_is_a_network_error(project: Project, engine: Engine, monkeypatch: pytest.MonkeyPatch) -> None:
    def know_nothing(*_: object, **__: object) -> list[Any]:
        raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

    monkeypatch.setattr(socket, "getaddrinfo", know_nothing)
    add_http(project, "ask", "https://nowhere.example/")

    assert failed_with(engine, "ask") == ("network", {"host": "nowhere.example"})


def test_a_tool_that_no_person_wrote_may_not_name_a_private_address(
    project: Project, engine: Engine, server: Server
) -> None:
    from msgspec import structs

    from glee.definitions.tool import Origin

    add_http(project, "mine", f"{server.url}/")
    mine = engine.find("mine")
    assert mine is not None
    engine.register(structs.replace(mine, name="theirs", origin=Origin(source="package", location="theirs")))

    assert failed_with(engine, "theirs")[0] == "blocked"
    assert engine.call_sync("mine").ok
    assert len(server.requests) == 1
