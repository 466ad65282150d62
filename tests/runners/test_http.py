"""`kind: http` against a real server: what goes over the wire, and what comes back of it."""

from __future__ import annotations

import asyncio
import gzip
import json
import socket
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import unquote

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from process_watch import count_descriptors
from servers import PATIENCE, Server
from tool_parts import NOBODY_BOTHERED, RAN, add_http, bare, call_with_key, failure, needs, success, takes

from glee.definitions.result import Artifact
from glee.definitions.tool import HttpExec
from glee.engine import Engine
from glee.errors import InvalidInput
from glee.runners.http import fill_headers, fill_url
from glee.testing import Project

NOT_TEXT = "the response is not text; what could not be shown is replaced by \ufffd"


# What is sent


@pytest.mark.parametrize("method", ["GET", "HEAD", "POST", "PUT", "PATCH", "DELETE", "OPTIONS"])
def test_every_method_of_the_schema_is_sent(project: Project, engine: Engine, server: Server, method: str) -> None:
    add_http(project, "ask", f"{server.url}/things", http={"method": method})

    result = engine.call_sync("ask")

    assert bare(result) == success("ask", None if method == "HEAD" else {})
    assert [(request.method, request.target) for request in server.requests] == [(method, "/things")]


def test_headers_are_filled_and_one_without_its_input_is_left_out(
    project: Project, engine: Engine, server: Server
) -> None:
    headers = {"X-Text": "v-${text}", "X-Number": "${number}", "X-Yes": True, "X-Absent": "a ${absent} b"}
    add_http(
        project, "ask", f"{server.url}/", http={"headers": headers},
        inputs=takes(text="string", number="number", absent="string"),
    )  # fmt: skip

    engine.call_sync("ask", {"text": "é\t1", "number": 2.0})

    sent = {name: values for name, values in server.last.headers.items() if name.startswith("x-")}
    assert sent == {"x-text": ["v-é\t1".encode().decode("latin-1")], "x-number": ["2"], "x-yes": ["true"]}


def test_glee_sends_its_own_few_headers_and_nothing_else(project: Project, engine: Engine, server: Server) -> None:
    from glee.version import VERSION

    add_http(project, "ask", f"{server.url}/")

    engine.call_sync("ask")

    assert server.last.headers == {
        "host": [f"127.0.0.1:{server.port}"],
        "user-agent": [f"glee/{VERSION}"],
        "accept-encoding": ["gzip, deflate"],
    }


def test_a_header_of_the_manifest_replaces_glees_own(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/", http={"headers": {"User-Agent": "mine", "Accept-Encoding": "identity"}})

    engine.call_sync("ask")

    assert (server.last.headers["user-agent"], server.last.headers["accept-encoding"]) == (["mine"], ["identity"])


def test_blanks_around_a_header_value_do_not_spoil_the_request(
    project: Project, engine: Engine, server: Server
) -> None:
    add_http(project, "ask", f"{server.url}/", http={"headers": {"X-A": "${a}"}}, inputs=takes(a="string"))

    assert engine.call_sync("ask", {"a": " padded\t "}).ok
    assert server.last.header("x-a") == "padded"


@pytest.mark.parametrize("value", ["a\r\nX-Evil: 1", "a\nb", "a\rb", "a\x00b", "\x7f", "a\x0bb"])
def test_a_header_value_with_a_line_break_is_refused_before_any_connection(
    project: Project, engine: Engine, server: Server, value: str
) -> None:
    add_http(project, "ask", f"{server.url}/", http={"headers": {"X-A": "b ${a}"}}, inputs=takes(a="string"))

    result = engine.call_sync("ask", {"a": value})

    assert bare(result) == failure(
        "ask",
        "invalid_input",
        "the value for the header X-A holds a line break or control character; remove it",
    )
    assert server.connections == 0


@pytest.mark.parametrize(
    ("url", "http", "wrong"),
    [
        ("/", {"headers": {"X-A": "${a}"}}, "a\r\nX-Evil: 1"),
        ("/${a}/x", {}, ".."),
        ("/${a}", {}, "\ud800"),
        ("/", {"method": "POST", "body": "${a}"}, "\ud800"),
    ],
)
def test_a_value_that_no_request_could_hold_bothers_nobody_and_leaves_the_key_free(
    project: Project, server: Server, url: str, http: dict[str, Any], wrong: str
) -> None:
    asks = {"required": True, "reason": "It matters"}
    add_http(project, "ask", f"{server.url}{url}", http=http, inputs=takes(a="string"), approval=asks)

    assert (call_with_key(project, "ask", {"a": wrong}), server.connections) == (NOBODY_BOTHERED, 0)
    assert (call_with_key(project, "ask", {"a": "fine"}), server.connections) == (RAN, 1)


def test_query_values_are_text_lists_repeat_and_absent_ones_are_dropped(
    project: Project, engine: Engine, server: Server
) -> None:
    query = {
        "q": "${q}", "n": "${n}", "flag": "${flag}", "tag": "${tags}", "literal": "a b", "fixed": [1, "${q}"],
        "none": "${none}", "part": "x-${none}", "null": "${null}", "price": "${price}", "odd&=": "$${q}",
    }  # fmt: skip
    inputs = takes(
        q="string", n="integer", flag="boolean", tags="array", none="string", price="number", null=["null", "string"]
    )
    inputs["schema"]["properties"]["null"] = {"type": ["string", "null"]}
    add_http(project, "ask", f"{server.url}/s?fixed=1", http={"query": query}, inputs=inputs)

    engine.call_sync("ask", {"q": "a&b=c #+é", "n": 3, "flag": False, "tags": ["x", "y z"], "price": 1.5, "null": None})

    assert server.last.target == (
        "/s?fixed=1&q=a%26b%3Dc%20%23%2B%C3%A9&n=3&flag=false&tag=x&tag=y%20z&literal=a%20b"
        "&fixed=1&fixed=a%26b%3Dc%20%23%2B%C3%A9&price=1.5&odd%26%3D=%24%7Bq%7D"
    )


def test_a_json_body_keeps_types_and_drops_keys_whose_input_was_not_given(
    project: Project, engine: Engine, server: Server
) -> None:
    body = {
        "text": "${text}", "count": "${count}", "said": "count: ${count}",
        "deep": {"on": "${on}", "none": "${none}", "list": ["${none}", "${count}"]},
        "whole": "${tree}", "half": "x ${none}", "literal": "$${text}", "null": None,
    }  # fmt: skip
    add_http(
        project, "send", f"{server.url}/", http={"method": "POST", "body": body},
        inputs=takes(text="string", count="integer", on="boolean", none="string", tree="object"),
    )  # fmt: skip

    engine.call_sync("send", {"text": "${count} \u2028é", "count": 7, "on": True, "tree": {"a": [1.5, None]}})

    assert server.last.header("content-type") == "application/json"
    assert json.loads(server.last.body) == {
        "text": "${count} \u2028é",
        "count": 7,
        "deep": {"on": True, "list": [7]},
        "whole": {"a": [1.5, None]},
        "said": "count: 7",
        "literal": "${text}",
        "null": None,
    }


def test_a_body_that_is_one_placeholder_is_sent_as_the_json_it_is(
    project: Project, engine: Engine, server: Server
) -> None:
    add_http(project, "send", f"{server.url}/", http={"method": "PUT", "body": "${all}"}, inputs=takes(all="array"))

    engine.call_sync("send", {"all": [1, {"a": "b"}]})

    assert (server.last.header("content-type"), server.last.body) == ("application/json", b'[1,{"a":"b"}]')


def test_a_body_whose_only_input_was_not_given_is_no_body(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "send", f"{server.url}/", http={"method": "POST", "body": "${all}"}, inputs=takes(all="array"))

    engine.call_sync("send")

    assert (server.last.header("content-type"), server.last.body) == (None, b"")


def test_a_form_body_is_encoded_and_its_values_are_not_filled_twice(
    project: Project, engine: Engine, server: Server
) -> None:
    form = {"Content-Type": "application/x-www-form-urlencoded; charset=utf-8"}
    body = {"a": "${a}", "list": "${list}", "none": "${none}", "n": 1, "yes": True}
    add_http(
        project, "send", f"{server.url}/", http={"method": "POST", "headers": form, "body": body},
        inputs=takes(a="string", list="array", none="string"),
    )  # fmt: skip

    engine.call_sync("send", {"a": "${none} $${x} &=é", "list": ["${a}", 2]})

    assert server.last.header("content-type") == form["Content-Type"]
    assert server.last.body == (b"a=%24%7Bnone%7D%20%24%24%7Bx%7D%20%26%3D%C3%A9&list=%24%7Ba%7D&list=2&n=1&yes=true")


@pytest.mark.parametrize(
    ("headers", "body", "sent_type", "sent"),
    [
        ({}, "hello ${a}", "text/plain; charset=utf-8", "hello é".encode()),
        ({"content-type": "text/csv"}, "a,${a}", "text/csv", "a,é".encode()),
        ({"Content-Type": "application/json"}, '{"q": "fixed"}', "application/json", b'{"q": "fixed"}'),
        ({"Content-Type": "application/json"}, "${a}", "application/json", '"é"'.encode()),
        ({}, "${a}", "text/plain; charset=utf-8", "é".encode()),
        ({}, 12, "application/json", b"12"),
    ],
)
def test_a_raw_body_is_sent_as_it_is(
    project: Project,
    engine: Engine,
    server: Server,
    headers: dict[str, str],
    body: Any,
    sent_type: str,
    sent: bytes,
) -> None:
    add_http(
        project, "send", f"{server.url}/", http={"method": "POST", "headers": headers, "body": body},
        inputs=takes(a="string"),
    )  # fmt: skip

    engine.call_sync("send", {"a": "é"})

    assert (server.last.header("content-type"), server.last.body) == (sent_type, sent)


@pytest.mark.parametrize(
    ("value", "target"),
    [
        ("a/b", "/v1/a%2Fb/end"),
        ("a?b=c", "/v1/a%3Fb%3Dc/end"),
        ("a#b", "/v1/a%23b/end"),
        ("@other.example:80", "/v1/%40other.example%3A80/end"),
        ("50%2F", "/v1/50%252F/end"),
        ("../../admin", "/v1/..%2F..%2Fadmin/end"),
        ("..\\admin", "/v1/..%5Cadmin/end"),
        ("a\r\nHost: evil", "/v1/a%0D%0AHost%3A%20evil/end"),
        ("naïve ☃", "/v1/na%C3%AFve%20%E2%98%83/end"),
        ("//other.example", "/v1/%2F%2Fother.example/end"),
        ("http://other.example/", "/v1/http%3A%2F%2Fother.example%2F/end"),
        ("%2e%2e", "/v1/%252e%252e/end"),
        ("...", "/v1/.../end"),
        (12, "/v1/12/end"),
    ],
)
def test_a_value_in_the_path_stays_one_segment_of_it(
    project: Project, engine: Engine, server: Server, value: Any, target: str
) -> None:
    add_http(project, "ask", f"{server.url}/v1/${{id}}/end", inputs=takes(id={}))

    assert engine.call_sync("ask", {"id": value}).ok
    assert (server.last.target, server.last.header("host")) == (target, f"127.0.0.1:{server.port}")


@pytest.mark.parametrize("value", ["", ".", ".."])
def test_a_value_that_would_climb_out_of_the_path_is_refused(
    project: Project, engine: Engine, server: Server, value: str
) -> None:
    add_http(project, "ask", f"{server.url}/v1/${{id}}/end", inputs=takes(id="string"))

    result = engine.call_sync("ask", {"id": value})

    assert bare(result) == failure(
        "ask",
        "invalid_input",
        f"the input id makes the path segment {value!r}, which leads elsewhere; change it",
    )
    assert server.connections == 0


def test_a_literal_dot_and_a_dot_of_the_input_do_not_climb_together(server: Server) -> None:
    execution = HttpExec(url=f"{server.url}/files/.${{end}}/x")

    with pytest.raises(InvalidInput, match=r"path segment '\.\.'"):
        fill_url(execution, {"end": "."})


def test_an_input_of_the_path_that_was_not_given_is_refused(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/v1/${{id}}", inputs=takes(id="string"))

    assert bare(engine.call_sync("ask")) == failure(
        "ask", "invalid_input", "the URL needs the input id; give it a value"
    )
    assert server.connections == 0


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_no_value_at_all_changes_scheme_host_or_port(value: str) -> None:
    execution = HttpExec(url="https://api.example.com:8443/a/${x}/b?c=${x}", query={"d": "${x}"})
    try:
        url = fill_url(execution, {"x": value})
    except InvalidInput:
        assert value in ("", ".", "..")
        return

    before, segment, after = url.path.split("/")[1:]
    assert (url.scheme, url.host, url.port, before, unquote(segment), after) == (
        "https", "api.example.com", 8443, "a", value, "b",
    )  # fmt: skip
    assert [(part.split("=")[0], unquote(part.split("=")[1])) for part in url.query.split("&")] == [
        ("c", value),
        ("d", value),
    ]
    assert url.target.isascii() and url.target.isprintable() and " " not in url.target


@given(st.text())
def test_no_value_at_all_brings_a_line_break_into_a_header(value: str) -> None:
    try:
        filled = fill_headers({"X-A": "${x}"}, {"x": value})
    except InvalidInput:
        return

    assert not set(filled["x-a"][1]) & set("\r\n\0")


@settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=30, deadline=None)
@given(value=st.recursive(
    st.none() | st.booleans() | st.integers(-(2**53), 2**53) | st.text(st.characters(exclude_categories=["Cs"])),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text("ab$ {}", max_size=3), inner, max_size=3),
    max_leaves=8,
))  # fmt: skip
def test_any_json_value_arrives_as_it_was_given(server: Server, project: Project, engine: Engine, value: Any) -> None:
    add_http(
        project, "send", f"{server.url}/", http={"method": "POST", "body": {"v": "${v}"}}, inputs=takes(v={}),
    )  # fmt: skip

    assert engine.call_sync("send", {"v": value}).ok
    assert json.loads(server.last.body) == {"v": value}


# What comes back


@pytest.mark.parametrize(
    ("response", "output", "warnings"),
    [
        ({}, {"web": {"results": [{"t": "A", "u": {"v": 1}}, {"t": "B"}]}, "n": 0}, ()),
        ({"json_path": "web.results"}, [{"t": "A", "u": {"v": 1}}, {"t": "B"}], ()),
        ({"json_path": "web.results.1"}, {"t": "B"}, ()),
        ({"json_path": "web.results.1.t"}, "B", ()),
        ({"json_path": "n"}, 0, ()),
        ({"json_path": "web.results.2"}, None, ("the response has nothing at json_path web.results.2",)),
        ({"json_path": "web.nothing.t"}, None, ("the response has nothing at json_path web.nothing.t",)),
        ({"json_path": "web.results.t"}, None, ("the response has nothing at json_path web.results.t",)),
        ({"json_path": "n.0"}, None, ("the response has nothing at json_path n.0",)),
        ({"json_path": "web.results.²"}, None, ("the response has nothing at json_path web.results.²",)),
        ({"fields": [{"name": "x", "path": "web.results.²"}]}, {"x": None}, ()),
        (
            {"json_path": "web.results", "fields": [{"name": "title", "path": "t"}, {"name": "v", "path": "u.v"}]},
            [{"title": "A", "v": 1}, {"title": "B", "v": None}],
            (),
        ),
        (
            {"fields": [{"name": "first", "path": "web.results.0.t"}, {"name": "n", "path": "n"}]},
            {"first": "A", "n": 0},
            (),
        ),
        ({"json_path": "n", "fields": [{"name": "x", "path": "y"}]}, {"x": None}, ()),
    ],
)
def test_the_response_is_shaped_by_path_and_fields(
    project: Project,
    engine: Engine,
    server: Server,
    response: dict[str, Any],
    output: Any,
    warnings: tuple[str, ...],
) -> None:
    server.answer("/", {"web": {"results": [{"t": "A", "u": {"v": 1}}, {"t": "B"}]}, "n": 0})
    add_http(project, "ask", f"{server.url}/", http={"response": response})

    assert bare(engine.call_sync("ask")) == success("ask", output, warnings=warnings)


def test_an_answer_that_is_not_json_is_returned_as_text_with_a_warning(
    project: Project, engine: Engine, server: Server
) -> None:
    server.answer("/", "<h1>sorry</h1>", headers={"Content-Type": "text/html"})
    add_http(project, "ask", f"{server.url}/", http={"response": {"json_path": "a"}})

    result = engine.call_sync("ask")

    assert (result.ok, result.output, len(result.warnings)) == (True, "<h1>sorry</h1>", 1)
    assert result.warnings[0].startswith("the response was declared to be JSON and is not: ")


def test_a_text_tool_gets_the_body_as_it_came(project: Project, engine: Engine, server: Server) -> None:
    server.answer("/", '{"not": "parsed"} ')
    add_http(project, "ask", f"{server.url}/", outputs={"format": "text"})

    assert bare(engine.call_sync("ask")) == success("ask", '{"not": "parsed"} ')


def test_an_empty_204_is_null(project: Project, engine: Engine, server: Server) -> None:
    server.answer("/", b"", status=204)
    add_http(project, "ask", f"{server.url}/", http={"method": "DELETE"})

    assert bare(engine.call_sync("ask")) == success("ask", None)


@pytest.mark.parametrize(
    ("content_type", "data", "output"),
    [
        ("application/json; charset=ISO-8859-1", '{"a": "é"}'.encode("latin-1"), {"a": "é"}),
        ('application/json; Charset="utf-16"', '{"a": "é"}'.encode("utf-16"), {"a": "é"}),
        ("application/json", '{"a": "é"}'.encode(), {"a": "é"}),
        ("application/json; charset=", '{"a": "é"}'.encode(), {"a": "é"}),
        ("application/json", b"\xef\xbb\xbf" + '{"a": "é"}'.encode(), {"a": "é"}),
    ],
)
def test_the_charset_of_the_response_counts(
    project: Project, engine: Engine, server: Server, content_type: str, data: bytes, output: Any
) -> None:
    server.answer("/", data, headers={"Content-Type": content_type})
    add_http(project, "ask", f"{server.url}/")

    assert bare(engine.call_sync("ask")) == success("ask", output)


@pytest.mark.parametrize("charset", ["no-such-charset", "undefined", "base64"])
def test_a_charset_that_makes_no_sense_is_a_warning(
    project: Project, engine: Engine, server: Server, charset: str
) -> None:
    data = b"." * 100 + b"[1, 2]"
    server.answer("/", data, headers={"Content-Type": f"text/plain; charset={charset}"})
    add_http(project, "ask", f"{server.url}/", outputs={"format": "text"})

    result = engine.call_sync("ask")

    handle = f"artifact:{result.call_id}.bin"
    assert bare(result) == success(
        "ask",
        data.decode(),
        warnings=(NOT_TEXT, f"the bytes as they came are {handle}"),
        artifacts=(Artifact(handle=handle, media_type="application/octet-stream", size=len(data)),),
    )


def test_a_binary_answer_is_kept_whole_as_an_artifact(project: Project, engine: Engine, server: Server) -> None:
    data = b"\x89PNG\r\n\x1a\n\xff\xfe" + bytes(range(256))
    server.answer("/", data, headers={"Content-Type": "image/png"})
    add_http(project, "ask", f"{server.url}/", outputs={"format": "text"})

    result = engine.call_sync("ask")

    handle = f"artifact:{result.call_id}.bin"
    assert bare(result) == success(
        "ask",
        data.decode("utf-8", "replace"),
        warnings=(NOT_TEXT, f"the bytes as they came are {handle}"),
        artifacts=(Artifact(handle=handle, media_type="application/octet-stream", size=len(data)),),
    )
    assert engine.read_artifact(handle) == data


@pytest.mark.parametrize("status", [400, 401, 404, 422, 429, 500, 503])
def test_a_status_error_carries_the_status_and_the_body(
    project: Project, engine: Engine, server: Server, status: int
) -> None:
    server.answer("/", {"why": "because"}, status=status)
    add_http(project, "ask", f"{server.url}/")

    result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details) == (
        "http_status",
        {"status": status, "body": '{"why": "because"}'},
    )
    assert result.error.message.startswith(f"127.0.0.1:{server.port} answered {status} ")


def test_a_long_error_body_is_cut_and_says_how_much_is_hidden(project: Project, engine: Engine, server: Server) -> None:
    server.answer("/", "é" * 5000, status=500)
    add_http(project, "ask", f"{server.url}/")

    result = engine.call_sync("ask")

    assert bare(result) == failure(
        "ask",
        "http_status",
        f"127.0.0.1:{server.port} answered 500 Internal Server Error",
        {"status": 500, "body": "é" * 2000, "body_hidden": 3000},
    )


@pytest.mark.parametrize("status", [301, 302, 303, 307, 308])
def test_a_redirect_is_not_followed_and_the_error_says_where_it_leads(
    project: Project, engine: Engine, server: Server, status: int
) -> None:
    server.answer("/", b"", status=status, headers={"Location": f"{server.url}/elsewhere"})
    add_http(project, "ask", f"{server.url}/")

    result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details) == (
        "http_status",
        {"status": status, "body": "", "location": f"{server.url}/elsewhere"},
    )
    assert result.error.message.endswith("; redirects are not followed: put the new address into the manifest")
    assert [request.target for request in server.requests] == ["/"]


# When no answer comes


def test_a_refused_connection_is_a_network_error(project: Project, engine: Engine) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = taken.getsockname()[1]
    add_http(project, "ask", f"http://127.0.0.1:{port}/")

    result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details) == ("network", {"host": f"127.0.0.1:{port}", "status": None})


def test_a_server_that_hangs_up_is_a_network_error(project: Project, engine: Engine, server: Server) -> None:
    def hang_up(handler: BaseHTTPRequestHandler) -> None:
        handler.close_connection = True

    server.answer_with("/", hang_up)
    add_http(project, "ask", f"{server.url}/")

    result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details) == (
        "network",
        {"host": f"127.0.0.1:{server.port}", "status": None},
    )


@pytest.mark.parametrize("encoding", ["gzip", "deflate"])
def test_a_body_that_is_not_what_its_encoding_says_is_a_network_error(
    project: Project, engine: Engine, server: Server, encoding: str
) -> None:
    server.answer("/", b"plainly not compressed", headers={"Content-Encoding": encoding})
    add_http(project, "ask", f"{server.url}/")

    result = engine.call_sync("ask")

    assert result.error is not None
    assert result.error.code == "network"


def test_a_compressed_body_that_was_cut_off_is_a_network_error(
    project: Project, engine: Engine, server: Server
) -> None:
    server.answer("/", gzip.compress(b"[1, 2, 3]" * 1000)[:-20], headers={"Content-Encoding": "gzip"})
    add_http(project, "ask", f"{server.url}/")

    assert bare(engine.call_sync("ask")) == failure(
        "ask",
        "network",
        f"the response of {server.address} cannot be read: the body is not gzip: it ends too early",
        {"host": server.address, "status": 200},
    )


def test_an_answer_that_breaks_off_is_a_network_error(project: Project, engine: Engine, server: Server) -> None:
    def break_off(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100\r\n\r\n[1,")
        handler.close_connection = True

    server.answer_with("/", break_off)
    add_http(project, "ask", f"{server.url}/")

    result = engine.call_sync("ask")

    assert result.error is not None
    assert result.error.code == "network"


def test_a_server_that_does_not_answer_in_time_is_a_timeout(project: Project, engine: Engine, server: Server) -> None:
    hanging = server.hang("/")
    add_http(project, "ask", f"{server.url}/", http={"timeout_ms": 150})

    result = engine.call_sync("ask")

    host = f"127.0.0.1:{server.port}"
    assert bare(result) == failure(
        "ask",
        "timeout",
        f"no answer from {host} within 0.15 s; try again, or raise timeout_ms",
        {"host": host, "timeout_ms": 150},
    )
    assert hanging.left.wait(PATIENCE)


def test_a_body_that_trickles_in_forever_is_a_timeout(project: Project, engine: Engine, server: Server) -> None:
    from contextlib import suppress

    def trickle(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 100000000\r\n\r\n")
        handler.connection.settimeout(0.01)
        with suppress(OSError):
            while True:
                handler.wfile.write(b"[")
                with suppress(TimeoutError):
                    if not handler.connection.recv(1):
                        break
        handler.close_connection = True

    server.answer_with("/", trickle)
    add_http(project, "ask", f"{server.url}/", http={"timeout_ms": 200})

    result = engine.call_sync("ask")

    assert result.error is not None
    assert result.error.code == "timeout"


def test_a_body_over_the_limit_is_too_large(project: Project, server: Server) -> None:
    project.configure("limits: {output_bytes: 2048}")
    server.answer("/exact", "x" * 2048)
    server.answer("/over", "x" * 2049)
    for name in ("exact", "over"):
        add_http(project, name, f"{server.url}/{name}", outputs={"format": "text"})

    with project.open() as engine:
        assert bare(engine.call_sync("exact")) == success("exact", "x" * 2048)
        assert bare(engine.call_sync("over")) == failure(
            "over",
            "too_large",
            f"the response of 127.0.0.1:{server.port} has more than 2,048 bytes; ask for less, "
            "or raise limits.output_bytes in your config",
            {"limit": 2048, "status": 200},
        )


@pytest.mark.parametrize("layers", [1, 2])
def test_a_body_that_grows_when_it_is_unpacked_is_too_large(project: Project, server: Server, layers: int) -> None:
    project.configure("limits: {output_bytes: 100000}")
    data = bytes(30_000_000)
    for _ in range(layers):
        data = gzip.compress(data)
    server.answer("/", data, headers={"Content-Encoding": ", ".join(["gzip"] * layers)})
    add_http(project, "ask", f"{server.url}/")

    with project.open() as engine:
        result = engine.call_sync("ask")

    assert result.error is not None
    assert (result.error.code, result.error.details) == ("too_large", {"limit": 100_000, "status": 200})


def test_a_compressed_body_is_unpacked(project: Project, engine: Engine, server: Server) -> None:
    server.answer("/", {"a": "é" * 1000}, compress=True)
    add_http(project, "ask", f"{server.url}/")

    assert bare(engine.call_sync("ask")) == success("ask", {"a": "é" * 1000})


def test_a_body_compressed_in_several_parts_is_unpacked_whole(project: Project, engine: Engine, server: Server) -> None:
    server.answer("/", gzip.compress(b'{"a": ') + gzip.compress(b"1}"), headers={"Content-Encoding": "gzip"})
    add_http(project, "ask", f"{server.url}/")

    assert bare(engine.call_sync("ask")) == success("ask", {"a": 1})


async def _call_and_cancel(engine: Engine, server: Server) -> None:
    hanging = server.hang("/")
    task = asyncio.create_task(engine.call("ask"))
    assert await asyncio.to_thread(hanging.entered.wait, PATIENCE)
    task.cancel()
    with pytest.raises(asyncio.CancelledError):
        await task
    assert await asyncio.to_thread(hanging.left.wait, PATIENCE)
    server.answer("/", {"again": True})
    assert (await engine.call("ask")).output == {"again": True}
    await engine.aclose()


def test_a_cancelled_call_hangs_up_and_the_next_one_works(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/")

    asyncio.run(_call_and_cancel(engine, server))

    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_CALLED", "TOOL_EXECUTED"] * 2
    assert " status=cancelled " in project.audit_lines[1]


# Connections


def test_synchronous_calls_share_one_connection(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/")

    assert [engine.call_sync("ask").ok for _ in range(5)] == [True] * 5

    assert (len(server.requests), server.connections) == (5, 1)


def test_awaited_calls_share_one_connection(project: Project, engine: Engine, server: Server) -> None:
    add_http(project, "ask", f"{server.url}/")

    async def several() -> list[bool]:
        async with engine:
            return [(await engine.call("ask")).ok for _ in range(5)]

    assert asyncio.run(several()) == [True] * 5
    assert (len(server.requests), server.connections) == (5, 1)


def test_a_status_error_does_not_cost_the_connection(project: Project, engine: Engine, server: Server) -> None:
    server.answer("/", "no", status=500)
    add_http(project, "ask", f"{server.url}/")

    assert [engine.call_sync("ask").ok for _ in range(3)] == [False] * 3
    assert server.connections == 1


def test_calls_at_once_do_not_wait_for_each_other(project: Project, engine: Engine, server: Server) -> None:
    import threading

    together = threading.Barrier(10, timeout=PATIENCE)

    def meet(handler: BaseHTTPRequestHandler) -> None:
        together.wait()
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")

    server.answer_with("/", meet)
    add_http(project, "ask", f"{server.url}/")

    async def all_at_once() -> list[Any]:
        async with engine:
            return [result.output for result in await asyncio.gather(*(engine.call("ask") for _ in range(10)))]

    assert asyncio.run(all_at_once()) == [1] * 10


def test_a_connection_the_server_closed_meanwhile_is_opened_anew(
    project: Project, engine: Engine, server: Server
) -> None:
    def once(handler: BaseHTTPRequestHandler) -> None:
        handler.wfile.write(b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\n\r\n1")
        handler.close_connection = True

    server.answer_with("/", once)
    add_http(project, "ask", f"{server.url}/")

    for expected in (1, 2, 3):
        assert engine.call_sync("ask").output == 1
        assert server.connections == expected
        server.wait_closed(expected)


@pytest.mark.filterwarnings("ignore::ResourceWarning")  # a loop that ends leaves its connections to the collector
def test_event_loops_that_come_and_go_leave_no_descriptors(project: Project, server: Server) -> None:
    import gc

    add_http(project, "ask", f"{server.url}/")
    with project.open() as engine:

        async def call() -> bool:
            return (await engine.call("ask")).ok

        assert asyncio.run(call())
        gc.collect()
        before = count_descriptors()
        for _ in range(10):
            assert asyncio.run(call())
        gc.collect()
        server.wait_closed(10)
        assert count_descriptors() == before


def test_proxies_in_the_environment_do_not_count(
    project: Project, engine: Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        nowhere = f"http://127.0.0.1:{taken.getsockname()[1]}"
    for name in ("HTTP_PROXY", "HTTPS_PROXY", "ALL_PROXY", "http_proxy", "https_proxy", "all_proxy"):
        monkeypatch.setenv(name, nowhere)
        project.environ[name] = nowhere
    add_http(project, "ask", f"{server.url}/")

    assert bare(engine.call_sync("ask")) == success("ask", {})


# Secrets


SECRET = "sk-live-4711-abcdef"


def test_a_secret_in_a_header_reaches_the_server(project: Project, engine: Engine, server: Server) -> None:
    project.environ["API_KEY"] = SECRET
    add_http(
        project, "ask", f"{server.url}/", http={"headers": {"Authorization": "Bearer ${API_KEY}"}},
        permissions=needs("API_KEY"),
    )  # fmt: skip

    assert engine.call_sync("ask").ok
    assert server.last.header("authorization") == f"Bearer {SECRET}"
    assert SECRET not in "".join(project.audit_lines)


def test_a_secret_that_the_server_echoes_is_taken_out_of_output_keys_and_warnings(
    project: Project, engine: Engine, server: Server
) -> None:
    project.environ["API_KEY"] = SECRET
    server.answer("/", {"you": f"sent {SECRET}", SECRET: [SECRET, {"deep": SECRET}]})
    add_http(
        project, "ask", f"{server.url}/", http={"headers": {"X-Key": "${API_KEY}"}}, permissions=needs("API_KEY"),
        outputs={"format": "json", "schema": {"properties": {"you": {"const": "me"}}}},
    )  # fmt: skip

    result = engine.call_sync("ask")

    assert (result.ok, result.output) == (
        True,
        {"you": "sent [secret]", "[secret]": ["[secret]", {"deep": "[secret]"}]},
    )
    assert len(result.warnings) == 1
    assert SECRET not in repr(result)


def test_a_secret_in_an_error_body_or_a_redirect_is_taken_out(project: Project, engine: Engine, server: Server) -> None:
    project.environ["API_KEY"] = SECRET
    server.answer("/", f"bad key {SECRET}", status=302, headers={"Location": f"/login?key={SECRET}"})
    add_http(project, "ask", f"{server.url}/", http={"headers": {"X-Key": "${API_KEY}"}}, permissions=needs("API_KEY"))

    result = engine.call_sync("ask")

    assert result.error is not None
    assert result.error.details == {"status": 302, "body": "bad key [secret]", "location": "/login?key=[secret]"}


def test_a_secret_that_lies_across_the_cut_of_an_error_body_does_not_show_its_beginning(
    project: Project, engine: Engine, server: Server
) -> None:
    project.environ["API_KEY"] = SECRET
    server.answer("/", "x" * 1990 + SECRET + "y" * 100, status=500)
    add_http(project, "ask", f"{server.url}/", http={"headers": {"X-Key": "${API_KEY}"}}, permissions=needs("API_KEY"))

    result = engine.call_sync("ask")

    assert result.error is not None
    assert result.error.details == {"status": 500, "body": "x" * 1990 + "[secret]yy", "body_hidden": 98}


def test_a_secret_in_a_binary_answer_is_taken_out_of_the_artifact(
    project: Project, engine: Engine, server: Server
) -> None:
    project.environ["API_KEY"] = SECRET
    server.answer("/", b"\xff" + SECRET.encode() + b"\xfe")
    add_http(
        project, "ask", f"{server.url}/", http={"headers": {"X-Key": "${API_KEY}"}}, permissions=needs("API_KEY"),
        outputs={"format": "text"},
    )  # fmt: skip

    result = engine.call_sync("ask")

    assert result.output == "\ufffd[secret]\ufffd"
    assert engine.read_artifact(result.artifacts[0]) == b"\xff[secret]\xfe"


def test_a_secret_that_no_header_can_hold_is_not_shown(project: Project, engine: Engine, server: Server) -> None:
    project.environ["API_KEY"] = f"{SECRET}\nX: y"
    add_http(project, "ask", f"{server.url}/", http={"headers": {"X-Key": "${API_KEY}"}}, permissions=needs("API_KEY"))

    result = engine.call_sync("ask")

    assert bare(result) == failure(
        "ask",
        "invalid_input",
        "the value for the header X-Key holds a line break or control character; remove it",
    )
    assert server.connections == 0


def test_the_next_address_is_tried_where_nobody_listens(
    project: Project, engine: Engine, server: Server, monkeypatch: pytest.MonkeyPatch
) -> None:
    def look_up(host: str, port: int, *_: Any, **__: Any) -> list[Any]:
        return [(socket.AF_INET, socket.SOCK_STREAM, 6, "", (address, port)) for address in ("127.0.0.2", "127.0.0.1")]

    monkeypatch.setattr(socket, "getaddrinfo", look_up)
    add_http(project, "ask", f"http://localhost:{server.port}/")

    assert bare(engine.call_sync("ask")) == success("ask", {})


@pytest.mark.parametrize("http", [{"headers": {"X-Text": "${text}"}}, {"query": {"q": "${text}"}}, {"body": "${text}"}])
def test_half_a_character_is_bad_input(project: Project, engine: Engine, server: Server, http: dict[str, Any]) -> None:
    add_http(project, "ask", f"{server.url}/", http={"method": "POST", **http}, inputs=takes(text={}))

    result = engine.call_sync("ask", {"text": "\ud800"})

    assert (result.error and result.error.code, server.requests) == ("invalid_input", [])
