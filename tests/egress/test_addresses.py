"""Which addresses may be reached, and which names may lead there."""

from __future__ import annotations

import asyncio
import ipaddress
import socket
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from servers import PATIENCE

from glee.definitions.url import parse_url
from glee.egress.addresses import Resolver, Target, find_literal, is_public
from glee.errors import Blocked, NetworkFailed
from glee.testing import Project, manifest

PRIVATE = [
    "127.0.0.1",
    "127.255.255.254",
    "0.0.0.0",
    "10.1.2.3",
    "172.16.0.1",
    "192.168.1.1",
    "169.254.169.254",
    "100.64.0.1",
    "192.0.2.1",
    "198.18.0.1",
    "224.0.0.1",
    "240.0.0.1",
    "255.255.255.255",
    "::",
    "::1",
    "fe80::1",
    "fec0::1",
    "fc00::1",
    "fd12:3456::1",
    "ff02::1",
    "2001:db8::1",
    "::ffff:127.0.0.1",
    "::ffff:10.0.0.1",
    "::ffff:169.254.169.254",
    "::127.0.0.1",
    "2002:7f00:1::",
    "2002:a00:1::1",
    "2002:a9fe:a9fe::",
    "64:ff9b::7f00:1",
    "64:ff9b::a9fe:a9fe",
    "64:ff9b:1::1",
    "2001:0:4136:e378:8000:63bf:f5ff:fffe",
]
PUBLIC = [
    "8.8.8.8",
    "1.1.1.1",
    "2606:4700:4700::1111",
    "::ffff:8.8.8.8",
    "2002:808:808::1",
    "64:ff9b::808:808",
]


class Names:
    """Stands in for the system's resolver: each name with its addresses, any other unknown."""

    def __init__(self, **known: list[str]) -> None:
        self.known = {name.replace("_", "."): addresses for name, addresses in known.items()}
        self.asked: list[str] = []

    def __call__(self, host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        self.asked.append(host)
        if host not in self.known:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")
        return [
            (socket.AF_INET6 if ":" in address else socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port))
            for address in self.known[host]
        ]


def resolve(
    url: str,
    monkeypatch: pytest.MonkeyPatch,
    *,
    names: Names | None = None,
    mapped: dict[str, str] | None = None,
    literal_trusted: bool = False,
) -> Target:
    monkeypatch.setattr(socket, "getaddrinfo", names or Names())
    targets = asyncio.run(Resolver(mapped).resolve(parse_url(url), literal_trusted=literal_trusted))
    return targets[0]


@pytest.mark.parametrize("address", PRIVATE)
def test_an_address_that_is_not_for_everyone_is_not_public(address: str) -> None:
    assert not is_public(ipaddress.ip_address(address))


@pytest.mark.parametrize("address", PUBLIC)
def test_an_address_of_the_internet_is_public(address: str) -> None:
    assert is_public(ipaddress.ip_address(address))


@given(st.ip_addresses(v=4))
def test_an_ipv4_address_in_ipv6_clothing_is_judged_by_what_is_inside(inner: ipaddress.IPv4Address) -> None:
    number = int(inner)
    clothed = [
        ipaddress.IPv6Address((0xFFFF << 32) | number),
        ipaddress.IPv6Address((0x2002 << 112) | (number << 80)),
        ipaddress.IPv6Address((0x0064FF9B << 96) | number),
    ]

    assert [is_public(address) for address in clothed] == [is_public(inner)] * 3


@pytest.mark.parametrize("address", PRIVATE)
def test_a_name_that_leads_to_a_private_address_is_blocked(address: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Blocked) as caught:
        resolve("http://inside.example/", monkeypatch, names=Names(inside_example=[address]), literal_trusted=True)

    shown = str(ipaddress.ip_address(address))
    assert (caught.value.code, caught.value.details) == ("blocked", {"host": "inside.example", "address": shown})
    assert caught.value.message == (
        f"inside.example leads to the private address {shown}; if that is meant, use the address itself, "
        "or map the host under egress.resolve in your own config"
    )


def test_a_name_that_leads_to_a_public_address_is_let_through(monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(api_example=["93.184.216.34"])

    assert resolve("https://API.example/", monkeypatch, names=names) == Target("93.184.216.34", 443)
    assert names.asked == ["api.example"]


def test_an_unknown_name_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NetworkFailed) as caught:
        resolve("http://nowhere.example/", monkeypatch)

    assert (caught.value.message, caught.value.details) == (
        "the host nowhere.example cannot be found: Name or service not known; check its name and the network",
        {"host": "nowhere.example"},
    )


def test_a_name_without_any_address_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(NetworkFailed, match=r"^the host empty.example has no address$"):
        resolve("http://empty.example/", monkeypatch, names=Names(empty_example=[]))


def test_a_name_that_no_resolver_takes_is_a_network_error(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object, **__: object) -> list[Any]:
        raise UnicodeError("label too long")

    monkeypatch.setattr(socket, "getaddrinfo", refuse)
    with pytest.raises(NetworkFailed, match="cannot be found: label too long;"):
        asyncio.run(Resolver().resolve(parse_url("http://long.example/"), literal_trusted=False))


@pytest.mark.parametrize(
    ("url", "target"),
    [
        ("http://127.0.0.1:8000/", Target("127.0.0.1", 8000)),
        ("http://[::1]:8000/", Target("::1", 8000)),
        ("https://192.168.1.10/", Target("192.168.1.10", 443)),
    ],
)
def test_a_private_literal_that_a_person_wrote_is_allowed(
    url: str, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    assert resolve(url, monkeypatch, literal_trusted=True) == target


@pytest.mark.parametrize("host", ["127.0.0.1", "[::1]", "192.168.1.10", "[::ffff:127.0.0.1]", "[64:ff9b::7f00:1]"])
def test_a_private_literal_that_no_person_wrote_is_blocked(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Blocked, match=r"is a private address; only a person's own manifest may name one$"):
        resolve(f"http://{host}/", monkeypatch)


@pytest.mark.parametrize("host", ["localhost", "app.localhost"])
def test_localhost_is_a_literal_too(host: str, monkeypatch: pytest.MonkeyPatch) -> None:
    names = Names(localhost=["127.0.0.1"], app_localhost=["127.0.0.1"])

    assert resolve(f"http://{host}:81/", monkeypatch, names=names, literal_trusted=True) == Target("127.0.0.1", 81)
    with pytest.raises(Blocked):
        resolve(f"http://{host}:81/", monkeypatch, names=names)


@pytest.mark.parametrize(
    ("mapped", "url", "target"),
    [
        ({"api.example": "127.0.0.1"}, "https://api.example/", Target("127.0.0.1", 443)),
        ({"api.example": "127.0.0.1:8443"}, "https://api.example/", Target("127.0.0.1", 8443)),
        ({"API.Example": "10.0.0.1:1"}, "https://api.EXAMPLE:99/", Target("10.0.0.1", 1)),
        ({"api.example": "::1"}, "http://api.example:82/", Target("::1", 82)),
        ({"api.example": "[::1]:83"}, "http://api.example/", Target("::1", 83)),
        ({"api.example": "[::1]"}, "http://api.example/", Target("::1", 80)),
        (
            {"api.example:8080": "127.0.0.1:1", "api.example": "127.0.0.1:2"},
            "http://api.example:8080/",
            Target("127.0.0.1", 1),
        ),
        (
            {"api.example:8080": "127.0.0.1:1", "api.example": "127.0.0.1:2"},
            "http://api.example/",
            Target("127.0.0.1", 2),
        ),
    ],
)
def test_a_mapped_host_leads_where_the_person_says(
    mapped: dict[str, str], url: str, target: Target, monkeypatch: pytest.MonkeyPatch
) -> None:
    names = Names()

    assert resolve(url, monkeypatch, names=names, mapped=mapped) == target
    assert names.asked == []


def test_only_an_address_is_a_literal() -> None:
    assert [find_literal(host) for host in ("127.0.0.1", "::1", "localhost", "127.1", "a.b")] == [
        ipaddress.ip_address("127.0.0.1"),
        ipaddress.ip_address("::1"),
        None,
        None,
        None,
    ]


def test_one_private_address_among_public_ones_refuses_them_all(monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(Blocked):
        resolve("http://mixed.example/", monkeypatch, names=Names(mixed_example=["93.184.216.34", "10.0.0.1"]))


def test_a_resolver_that_hangs_does_not_hold_up_the_end_of_the_program(project: Project) -> None:
    http = {"url": "http://slow.example/", "timeout_ms": 100}
    project.add_tool("ask", manifest("ask", "http", http, permissions={"network": True}))
    program = project.write(
        "program.py",
        """
        import socket, threading
        import glee

        socket.getaddrinfo = lambda *_, **__: threading.Event().wait(60)
        with glee.open() as engine:
            print(engine.call_sync("ask").error.code)
        """,
    )

    done = subprocess.run(
        [sys.executable, str(program)],
        cwd=project.root,
        env=project.environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )

    assert (done.returncode, done.stdout, done.stderr) == (0, "timeout\n", "")
