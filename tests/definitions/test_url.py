"""URLs: what is checked is what is connected to, so whatever could be read two ways is refused."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.definitions.url import Url, parse_url


@pytest.mark.parametrize(
    ("text", "url"),
    [
        ("https://api.example.com", Url(scheme="https", host="api.example.com", port=443)),
        ("http://API.Example.com/", Url(scheme="http", host="api.example.com", port=80)),
        ("http://h:8080/a/b", Url(scheme="http", host="h", port=8080, path="/a/b")),
        ("http://h?q=1", Url(scheme="http", host="h", port=80, query="q=1")),
        ("http://h/a?q=1&r=?", Url(scheme="http", host="h", port=80, path="/a", query="q=1&r=?")),
        ("http://127.0.0.1:1/", Url(scheme="http", host="127.0.0.1", port=1)),
        ("http://[::1]:65535/", Url(scheme="http", host="::1", port=65535)),
        ("http://[0:0:0:0:0:0:0:1]/", Url(scheme="http", host="::1", port=80)),
        ("http://[::1:127.0.0.1]/", Url(scheme="http", host="::1:7f00:1", port=80)),
        ("http://h/ü", Url(scheme="http", host="h", port=80, path="/%C3%BC")),
        ("http://h/%2e%2E", Url(scheme="http", host="h", port=80, path="/%2e%2E")),
        ("http://h/?q=ü&x=[1]", Url(scheme="http", host="h", port=80, query="q=%C3%BC&x=%5B1%5D")),
        ("http://h/a@b:80/", Url(scheme="http", host="h", port=80, path="/a@b:80/")),
        ("http://xn--mnchen-3ya.de/", Url(scheme="http", host="xn--mnchen-3ya.de", port=80)),
    ],
)
def test_a_plain_url_is_taken_apart(text: str, url: Url) -> None:
    assert parse_url(text) == url


@pytest.mark.parametrize(
    ("text", "reason"),
    [
        ("", "a URL begins with https:// or http://"),
        ("example.com/x", "a URL begins with https:// or http://"),
        ("//example.com", "a URL begins with https:// or http://"),
        ("http:/example.com", "a URL begins with https:// or http://"),
        ("ftp://h/", "the scheme 'ftp' is not http or https"),
        ("file:///etc/passwd", "the scheme 'file' is not http or https"),
        ("HTTPS://h/", "the scheme 'HTTPS' is not http or https"),
        ("javascript://h/", "the scheme 'javascript' is not http or https"),
        ("http://user@h/", "a URL has no user or password; put credentials in a header"),
        ("http://user:pass@h/", "a URL has no user or password; put credentials in a header"),
        ("http://good.com:80@evil.com/", "a URL has no user or password; put credentials in a header"),
        ("http://good.com#@evil.com/", "a URL that is requested has no fragment (#…)"),
        ("http://h/#part", "a URL that is requested has no fragment (#…)"),
        ("http://good.com\\@evil.com/", "a URL has no backslash"),
        ("http:\\\\h\\", "a URL has no backslash"),
        ("http://h/a b", "a URL has no spaces or control characters"),
        (" http://h/", "a URL has no spaces or control characters"),
        ("http://h/\t", "a URL has no spaces or control characters"),
        ("http://h\n.evil.com/", "a URL has no spaces or control characters"),
        ("http://h/\r\nX: 1", "a URL has no spaces or control characters"),
        ("http://h/\0", "a URL has no spaces or control characters"),
        ("http://h/\x7f", "a URL has no spaces or control characters"),
        ("http://", "nothing is not a host and port"),
        ("http:///path", "nothing is not a host and port"),
        ("http://?q=1", "nothing is not a host and port"),
        ("http://:80/", ":80 is not a host and port"),
        ("http://h:/", "h: is not a host and port"),
        ("http://h:0/", "port 0 does not exist"),
        ("http://h:65536/", "port 65536 does not exist"),
        ("http://h:99999/", "port 99999 does not exist"),
        ("http://h:999999/", "h:999999 is not a host and port"),
        ("http://h:-1/", "h:-1 is not a host and port"),
        ("http://h:8o/", "h:8o is not a host and port"),
        ("http://h:80:80/", "h:80:80 is not a host and port"),
        ("http://2130706433/", "2130706433 is not an address in the form 192.0.2.1"),
        ("http://127.1/", "127.1 is not an address in the form 192.0.2.1"),
        ("http://0x7f.1/", "0x7f.1 is not an address in the form 192.0.2.1"),
        ("http://0x7f000001/", "0x7f000001 is not an address in the form 192.0.2.1"),
        ("http://1.2.3.0X4/", "1.2.3.0X4 is not an address in the form 192.0.2.1"),
        ("http://0177.0.0.1/", "0177.0.0.1 is not an address in the form 192.0.2.1"),
        ("http://256.0.0.1/", "256.0.0.1 is not an address in the form 192.0.2.1"),
        ("http://1.2.3.4.5/", "1.2.3.4.5 is not an address in the form 192.0.2.1"),
        ("http://evil.com.1/", "evil.com.1 is not an address in the form 192.0.2.1"),
        ("http://h./", "h. is not a host and port"),
        ("http://127.0.0.1./", "127.0.0.1. is not a host and port"),
        ("http://-h/", "-h is not a host and port"),
        ("http://.h/", ".h is not a host and port"),
        ("http://a..b/", "a..b is not a host name"),
        (f"http://{'a' * 64}.com/", f"{'a' * 64}.com is not a host name"),
        (f"http://{'a.' * 130}com/", f"{'a.' * 130}com is not a host name"),
        ("http://münchen.de/", "münchen.de is not a host and port"),
        ("http://ｅvil.com/", "ｅvil.com is not a host and port"),
        ("http://127。0。0。1/", "127。0。0。1 is not a host and port"),
        ("http://①②⑦.0.0.1/", "①②⑦.0.0.1 is not a host and port"),
        ("http://h%2eevil.com/", "h%2eevil.com is not a host and port"),
        ("http://[::1/", "[::1 is not a host and port"),
        ("http://[fe80::1%25eth0]/", "[fe80::1%25eth0] is not a host and port"),
        ("http://[v1.x]/", "[v1.x] is not a host and port"),
        ("http://[::1]evil.com/", "[::1]evil.com is not a host and port"),
        ("http://::1/", "::1 is not a host and port"),
    ],
)
def test_a_url_that_could_be_read_two_ways_is_refused(text: str, reason: str) -> None:
    with pytest.raises(ValueError) as refused:  # noqa: PT011
        parse_url(text)

    assert str(refused.value) == reason


@pytest.mark.parametrize("host", ["[:::]", "[1::2::3]", "[12345::]", "[::1.2.3]", "[::256.0.0.1]", "[.]"])
def test_a_broken_ipv6_address_is_refused(host: str) -> None:
    with pytest.raises(ValueError, match=r"."):
        parse_url(f"http://{host}/")


@pytest.mark.parametrize(
    ("url", "text"),
    [
        (Url(scheme="https", host="h", port=443), "https://h/"),
        (Url(scheme="https", host="h", port=80), "https://h:80/"),
        (Url(scheme="http", host="::1", port=80), "http://[::1]/"),
        (Url(scheme="http", host="::1", port=8080, path="/a", query="b=c"), "http://[::1]:8080/a?b=c"),
    ],
)
def test_a_url_is_written_with_brackets_and_without_the_usual_port(url: Url, text: str) -> None:
    assert str(url) == text


@given(st.text())
def test_any_text_is_a_url_or_a_value_error(text: str) -> None:
    try:
        url = parse_url(text)
    except ValueError as error:
        assert str(error)  # noqa: PT017
    else:
        assert parse_url(str(url)) == url


@given(st.text(), st.text())
def test_whatever_stands_in_path_and_query_the_host_stays(path: str, query: str) -> None:
    try:
        url = parse_url(f"https://api.example.com:8443/{path}?{query}")
    except ValueError:
        return

    assert (url.scheme, url.host, url.port) == ("https", "api.example.com", 8443)
    assert str(url).isascii()
    assert parse_url(str(url)) == url
