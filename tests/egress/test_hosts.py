"""The grammar of hosts, and which rule permits which."""

from __future__ import annotations

import ipaddress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.definitions.hosts import is_address, parse_authority, parse_host, to_authority
from glee.egress.hosts import HostRule, find_rule, parse_hosts

LABEL = st.from_regex(r"[a-z0-9]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True)
NAME = st.builds(
    lambda labels, last: ".".join([*labels, last]),
    st.lists(LABEL, max_size=3),
    st.from_regex(r"[a-z]([a-z0-9-]{0,20}[a-z0-9])?", fullmatch=True),
)
PORT = st.integers(1, 65535)


@pytest.mark.parametrize(
    ("text", "rule"),
    [
        ("api.example.com", HostRule("api.example.com")),
        ("API.Example.COM:8443", HostRule("api.example.com", ports=(8443,))),
        ("*.example.org:443", HostRule("example.org", below=True, ports=(443,))),
        ("*.example.org", HostRule("example.org", below=True, ports=(80, 443))),
        ("localhost:8080", HostRule("localhost", ports=(8080,))),
        ("127.0.0.1:5000", HostRule("127.0.0.1", ports=(5000,))),
        ("[::1]", HostRule("::1")),
        ("[0:0::1]:8080", HostRule("::1", ports=(8080,))),
        ("xn--bcher-kva.example", HostRule("xn--bcher-kva.example")),
        (f"{'a' * 63}.example", HostRule(f"{'a' * 63}.example")),
        ("0xample.org", HostRule("0xample.org")),
    ],
)
def test_a_line_of_the_manifest_becomes_a_rule(text: str, rule: HostRule) -> None:
    assert parse_hosts([text]) == (rule,)


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("", "the host is missing"),
        ("*", "'*' is not a host name"),
        ("*.", "the host is missing"),
        ("*example.com", "'*example.com' is not a host name"),
        ("a.*.example.com", "'a.*.example.com' is not a host name"),
        ("example.com.", "'example.com.' ends with a dot"),
        (".example.com", "'.example.com' is not a host name"),
        ("a..example.com", "'a..example.com' is not a host name"),
        ("-a.example.com", "'-a.example.com' is not a host name"),
        ("a_b.example.com", "'a_b.example.com' is not a host name"),
        ("a b.example.com", "'a b.example.com' is not a host name"),
        ("a\0.example.com", "'a\\x00.example.com' is not a host name"),
        ("example.com/path", "'example.com/path' is not a host name"),
        ("me@example.com", "'me@example.com' holds a user or password"),
        ("bücher.example", "'b\\xfccher.example' is not in ASCII; international names begin with xn--"),
        ("\u212aelvin.example", "'\\u212aelvin.example' is not in ASCII; international names begin with xn--"),
        ("https://example.com", "'//example.com' is not a port"),
        ("example.com:", "'' is not a port"),
        ("example.com:0", "'0' is not a port"),
        ("example.com:080", "'080' is not a port"),
        ("example.com:65536", "'65536' is not a port"),
        ("example.com:http", "'http' is not a port"),
        ("example.com:4\u00b2", "'4\\xb2' is not a port"),
        ("::1", "':' is not a host and port; an IPv6 address stands in brackets"),
        ("[::1", "'[:' is not an address in the form [2001:db8::1]"),
        ("[fe80::1%eth0]", "'[fe80::1%eth0]' is not an address in the form [2001:db8::1]"),
        ("[127.0.0.1]", "'[127.0.0.1]' is not an address in the form [2001:db8::1]"),
        ("127.1", "127.1 is not an address in the form 192.0.2.1"),
        ("0x7f.1", "0x7f.1 is not an address in the form 192.0.2.1"),
        ("0x7f000001", "0x7f000001 is not an address in the form 192.0.2.1"),
        ("2130706433", "2130706433 is not an address in the form 192.0.2.1"),
        ("0177.0.0.1", "0177.0.0.1 is not an address in the form 192.0.2.1"),
        ("*.127.0.0.1", "there are no names below the address 127.0.0.1"),
        ("*.[::1]", "there are no names below the address ::1"),
        (f"{'a' * 64}.example", f"'{'a' * 64}.example' is not a host name"),
        (f"{'a.' * 127}com", f"'{'a.' * 127}com' is not a host name"),
    ],
)
def test_a_line_that_permits_nothing_is_explained(text: str, why: str) -> None:
    with pytest.raises(ValueError) as caught:  # noqa: PT011 the whole text is compared
        parse_hosts([text])

    form = "write it as api.example.com, *.example.org or api.example.com:8443"
    assert str(caught.value) == f"{text!a} permits no host: {why}; {form}"


@pytest.mark.parametrize(
    ("line", "host", "port", "permitted"),
    [
        ("api.example.com", "api.example.com", 443, True),
        ("api.example.com", "API.EXAMPLE.com", 80, True),
        ("api.example.com", "api.example.com", 8443, False),
        ("api.example.com:8443", "api.example.com", 8443, True),
        ("api.example.com:8443", "api.example.com", 443, False),
        ("api.example.com", "x.api.example.com", 443, False),
        ("api.example.com", "api.example.com.evil.org", 443, False),
        ("api.example.com", "api.example.com.", 443, False),
        ("*.example.org", "a.example.org", 443, True),
        ("*.example.org", "a.b.example.org", 443, True),
        ("*.example.org", "example.org", 443, False),
        ("*.example.org", "evilexample.org", 443, False),
        ("*.example.org", ".example.org", 443, False),
        ("*.example.org", "evil.com\0.example.org", 443, False),
        ("*.example.org", "evil.com/.example.org", 443, False),
        ("*.example.org", "u@a.example.org", 443, False),
        ("127.0.0.1", "127.0.0.1", 80, True),
        ("127.0.0.1", "127.1", 80, False),
        ("127.0.0.1", "::ffff:127.0.0.1", 80, False),
        ("[::1]", "::1", 80, True),
        ("[::1]", "[::1]", 80, True),
        ("[::1]", "0:0:0::1", 80, True),
        ("[::1]", "127.0.0.1", 80, False),
    ],
)
def test_a_rule_permits_exactly_what_it_says(line: str, host: str, port: int, permitted: bool) -> None:
    rules = parse_hosts([line])

    assert find_rule(rules, host, port) == (rules[0] if permitted else None)


def test_without_rules_nothing_is_permitted() -> None:
    assert find_rule((), "example.com", 443) is None


def test_the_rule_that_names_a_host_comes_before_one_that_covers_it() -> None:
    rules = parse_hosts(["*.localhost", "app.localhost"])

    assert find_rule(rules, "app.localhost", 80) == rules[1]


@given(NAME, PORT)
def test_a_name_permits_itself_in_any_case_at_its_port_alone(name: str, port: int) -> None:
    rules = parse_hosts([f"{name}:{port}"])

    assert find_rule(rules, name.upper(), port) == rules[0]
    assert find_rule(rules, name, port % 65535 + 1) is None


@given(LABEL, NAME)
def test_a_star_permits_what_is_below_and_nothing_else(label: str, name: str) -> None:
    rules = parse_hosts([f"*.{name}"])

    assert find_rule(rules, f"{label}.{name}", 443) == rules[0]
    assert find_rule(rules, name, 443) is None
    assert find_rule(rules, f"{label}{name}", 443) is None


@given(st.ip_addresses(), PORT)
def test_an_address_is_read_and_written_alike(
    address: ipaddress.IPv4Address | ipaddress.IPv6Address, port: int
) -> None:
    text = to_authority(str(address), port)

    assert parse_authority(text) == (str(address), port)
    assert to_authority(*parse_authority(text)) == text
    assert is_address(str(address))


@given(st.text(max_size=60) | st.from_regex(r"[a-zA-Z0-9.\-x:\[\]@]{1,60}", fullmatch=True))
def test_what_is_taken_for_a_host_holds_nothing_but_its_letters(text: str) -> None:
    try:
        host = parse_host(text)
    except ValueError:
        return

    assert set(host) <= set("abcdefghijklmnopqrstuvwxyz0123456789.-:")
    assert parse_host(to_authority(host)) == host
    if not is_address(host):
        assert host == text.lower()
        assert not host.rsplit(".", 1)[-1].isdigit()
