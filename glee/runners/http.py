"""`kind: http`: one request that Glee makes itself, and what of its response becomes the output."""

from __future__ import annotations

import re
from collections.abc import Mapping
from typing import Any, Final
from urllib.parse import quote, unquote

from glee.definitions.json_text import decode_json, encode_json
from glee.definitions.placeholder import ABSENT, fill_value, parse_template, to_text
from glee.definitions.tool import HttpExec, Response, Tool
from glee.definitions.url import Url, parse_url
from glee.errors import HttpStatus, InvalidInput
from glee.runners import Outcome, Run
from glee.runners.arguments import with_secrets
from glee.runners.waiting import on_event_loop
from glee.secrets.redaction import Redactor

_BODY_SHOWN: Final = 2000
_CHARSET: Final = re.compile(
    r"utf-?(8|16|32)(-?[lb]e)?|(us-)?ascii|(iso[-_]8859[-_]|latin-?)\d{1,2}|(windows-|cp)125\d|koi8-[ru]|shift[-_]jis|"
    r"euc-(jp|kr)|iso-2022-jp|gb(k|2312|18030)|big5"
)
"""Character sets of the web; Python knows others that take minutes."""
_FORM: Final = "application/x-www-form-urlencoded"


class HttpRunner:
    """Loads the HTTP client with the first request."""

    def __init__(self, *, resolve: Mapping[str, str] | None = None, ca_file: str | None = None) -> None:
        self._options: dict[str, Any] = {"resolve": resolve, "ca_file": ca_file}
        self._client: Any = None

    def check(self, tool: Tool, arguments: dict[str, Any]) -> None:
        """With a stand-in for each secret: what is in them is not the caller's doing."""
        assert isinstance(tool.exec, HttpExec)
        _fill(tool.exec, with_secrets(tool, arguments, dict.fromkeys(tool.permissions.secrets, "x")))

    async def run(self, run: Run) -> Outcome:
        execution = run.tool.exec
        assert isinstance(execution, HttpExec)
        url, headers, body = _fill(execution, with_secrets(run.tool, run.arguments, run.secrets))
        await on_event_loop()
        reply = await self._get_client().request(
            execution.method,
            url,
            headers=list(headers.values()),
            body=body,
            timeout=run.timeout,
            max_bytes=run.output_bytes,
            literal_trusted=run.tool.origin.source == "project",
        )
        return _outcome(run, execution, url, reply)

    def _get_client(self) -> Any:
        if self._client is None:
            from glee.egress.client import HttpClient

            self._client = HttpClient(**self._options)
        return self._client

    async def close(self) -> None:
        if self._client is not None:
            await self._client.close()


def _fill(execution: HttpExec, values: Mapping[str, Any]) -> tuple[Url, dict[str, tuple[str, str]], bytes | None]:
    try:
        url = fill_url(execution, values)
        headers = fill_headers(execution.headers, values)
        return url, headers, fill_body(execution.body, headers, values)
    except UnicodeEncodeError as error:
        raise InvalidInput("an input holds half a character (a lone surrogate); give whole ones") from error


def fill_url(execution: HttpExec, values: Mapping[str, Any]) -> Url:
    """The URL of one call. Scheme, host and port are the manifest's, whatever the inputs hold."""
    template = parse_template(execution.url)
    filled = template.fill(values, encode=lambda text: quote(text, safe=""))
    if filled is ABSENT:
        missing = [name for name in template.names if values.get(name) is None]
        raise InvalidInput(f"the URL needs the input {', '.join(missing)}; give it a value")
    url = parse_url(str(filled))
    _check_segments(execution.url, url, values)
    pairs = [pair for name, value in execution.query.items() for pair in _pairs(name, value, values)]
    query = "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs)
    joined = "&".join(filter(None, (url.query, query)))
    return Url(scheme=url.scheme, host=url.host, port=url.port, path=url.path, query=joined)


def _check_segments(template: str, url: Url, values: Mapping[str, Any]) -> None:
    """An input that is empty or made of dots would climb to another resource."""
    before = parse_template(template).parts
    literal = "".join(part if isinstance(part, str) else "x" for part in before)
    wanted = parse_url(literal).path.split("/")
    for want, got in zip(wanted, url.path.split("/"), strict=True):
        if want != got and unquote(got) in ("", ".", ".."):
            names = [part.name for part in before if not isinstance(part, str)]
            short = [name for name in names if not to_text(values[name]).strip("./\\")] or names
            raise InvalidInput(
                f"the input {', '.join(short)} makes the path segment {got!r}, which leads elsewhere; change it"
            )


def _pairs(name: str, value: Any, values: Mapping[str, Any]) -> list[tuple[str, str]]:
    return _repeat(name, fill_value(value, values))


def _repeat(name: str, filled: Any) -> list[tuple[str, str]]:
    if filled is ABSENT or filled is None:
        return []
    items = filled if isinstance(filled, list) else [filled]
    return [(name, to_text(item)) for item in items]


def fill_headers(headers: Mapping[str, Any], values: Mapping[str, Any]) -> dict[str, tuple[str, str]]:
    """Lower-case name to name and value. A value with a line break or control character is refused."""
    filled: dict[str, tuple[str, str]] = {}
    for name, value in headers.items():
        text = fill_value(value, values)
        if text is ABSENT or text is None:
            continue
        text = to_text(text).strip(" \t")
        if any((ord(character) < 0x20 and character != "\t") or ord(character) == 0x7F for character in text):
            raise InvalidInput(f"the value for the header {name} holds a line break or control character; remove it")
        text.encode()  # here, where half a character can still be refused
        filled[name.lower()] = (name, text)
    return filled


def fill_body(body: Any, headers: dict[str, tuple[str, str]], values: Mapping[str, Any]) -> bytes | None:
    """The body's bytes; sets Content-Type where the manifest does not."""
    filled = fill_value(body, values)
    if filled is None or filled is ABSENT:
        return None
    declared = headers.get("content-type", ("", ""))[1].split(";")[0].strip().lower()
    if declared == _FORM and isinstance(filled, dict):
        pairs = [pair for name, value in filled.items() for pair in _repeat(name, value)]
        return "&".join(f"{quote(name, safe='')}={quote(text, safe='')}" for name, text in pairs).encode()
    if isinstance(filled, str) and not declared.endswith("json"):
        headers.setdefault("content-type", ("Content-Type", "text/plain; charset=utf-8"))
        return filled.encode()
    if isinstance(filled, str) and isinstance(body, str) and parse_template(body).only_name is None:
        return filled.encode()
    headers.setdefault("content-type", ("Content-Type", "application/json"))
    return encode_json(filled)


def _outcome(run: Run, execution: HttpExec, url: Url, reply: Any) -> Outcome:
    if not 200 <= reply.status < 300:
        raise _status_error(url, reply, run.redactor)
    text, warnings = _decode(reply)
    raw = reply.body if warnings else None
    if run.tool.outputs.format == "text" and not _shapes(execution.response):
        return Outcome(output=text, warnings=warnings, raw=raw)
    if not reply.body:
        return Outcome(output=None)
    try:
        value = decode_json(text.removeprefix("\ufeff"))
    except ValueError as error:
        warning = f"the response was declared to be JSON and is not: {error}"
        return Outcome(output=text, warnings=(*warnings, warning), raw=raw)
    value, more = shape_response(value, execution.response)
    return Outcome(output=value, warnings=(*warnings, *more))


def _shapes(response: Response) -> bool:
    return response.json_path is not None or bool(response.fields)


def _decode(reply: Any) -> tuple[str, tuple[str, ...]]:
    charset = "utf-8"
    for parameter in reply.headers.get("content-type", "").split(";")[1:]:
        name, _, value = parameter.strip().partition("=")
        if name.lower() == "charset":
            charset = value.strip("\"' ").lower() or charset
    try:
        if not _CHARSET.fullmatch(charset):
            raise LookupError
        return reply.body.decode(charset), ()
    except (LookupError, ValueError):
        warning = "the response is not text; what could not be shown is replaced by \ufffd"
        return reply.body.decode("utf-8", "replace"), (warning,)


def _status_error(url: Url, reply: Any, redactor: Redactor) -> HttpStatus:
    body = redactor.text(_decode(reply)[0])  # before the cut, which could halve a secret
    details: dict[str, Any] = {"status": reply.status, "body": body[:_BODY_SHOWN]}
    if len(body) > _BODY_SHOWN:
        details["body_hidden"] = len(body) - _BODY_SHOWN
    hint = ""
    if 300 <= reply.status < 400 and "location" in reply.headers:
        details["location"] = reply.headers["location"]
        hint = "; redirects are not followed: put the new address into the manifest"
    message = f"{url.authority} answered {reply.status} {reply.reason}".rstrip()
    return HttpStatus(message + hint, details=details)


def shape_response(value: Any, response: Response) -> tuple[Any, tuple[str, ...]]:
    """`json_path`, then `fields`, of an object or of each item of a list."""
    if response.json_path is not None:
        value = follow(value, response.json_path)
        if value is ABSENT:
            return None, (f"the response has nothing at json_path {response.json_path}",)
    if not response.fields:
        return value, ()
    if isinstance(value, list):
        return [_project(item, response) for item in value], ()
    return _project(value, response), ()


def _project(item: Any, response: Response) -> dict[str, Any]:
    found = {field.name: follow(item, field.path) for field in response.fields}
    return {name: None if value is ABSENT else value for name, value in found.items()}


def follow(value: Any, path: str) -> Any:
    """What stands at a dotted path, numbers indexing lists; ABSENT if nothing does."""
    for part in path.split("."):
        if isinstance(value, dict) and part in value:
            value = value[part]
        elif isinstance(value, list) and re.fullmatch("[0-9]{1,9}", part) and int(part) < len(value):
            value = value[int(part)]
        else:
            return ABSENT
    return value
