"""Reading and linting manifests: every rule, with the line, the column, the field and the mend."""

from __future__ import annotations

import hashlib
import json
import os
from pathlib import Path
from typing import Any

import pytest
import yaml
from hypothesis import given
from hypothesis import strategies as st
from manifests import COMMAND, HTTP, PYTHON
from seed_manifests import NAMES, lay_seed_project, load_seed_manifests

from glee.definitions.permissions import Files, Hosts, Permissions, SecretNeed
from glee.definitions.problem import Problem
from glee.definitions.tool import (
    Approval,
    CommandExec,
    Example,
    HttpExec,
    Origin,
    Outputs,
    Projection,
    PythonExec,
    Response,
    Stdout,
)
from glee.formats.manifest import Reading, lint_manifest, parse_manifest, read_manifest
from glee.testing import Project

HOST_FORM = "write it as api.example.com, *.example.org or api.example.com:8443"
NOT_REACHED = "the secret TOKEN belongs to {}, which the tool may not reach"
ADD_HOST = 'add "{}" under permissions.network.hosts'
FILE = Path("/project/.glee/tools/demo/tool.yml")


def parse(text: str | bytes) -> Reading:
    data = text if isinstance(text, bytes) else text.encode()
    return parse_manifest(data, path=FILE, shown="tool.yml")


def change(manifest: str, old: str, new: str) -> str:
    assert manifest.count(old) == 1
    return manifest.replace(old, new)


def problem(line: int, column: int, field: str, rule: str, message: str, hint: str) -> Problem:
    return Problem(file="tool.yml", line=line, column=column, field=field, rule=rule, message=message, hint=hint)


@pytest.mark.parametrize("name", NAMES)
def test_the_manifests_of_the_specification_lint_clean(project: Project, name: str) -> None:
    lay_seed_project(project)

    assert lint_manifest(project.tools / name / "tool.yml", root=project.root, search_path="/usr/bin:/bin") == ()


def test_a_manifest_of_the_specification_becomes_a_tool_with_every_field_it_has() -> None:
    text = load_seed_manifests()["web_search"]
    source = yaml.safe_load(text)
    path = Path("/project/.glee/tools/web_search/tool.yml")

    tool = parse_manifest(text.encode(), path=path, shown="tool.yml").tool

    assert tool is not None
    assert (tool.name, tool.description, tool.kind, tool.version) == (
        "web_search",
        "Search the web for information using Brave Search API",
        "http",
        1,
    )
    assert tool.inputs == source["inputs"]["schema"]
    assert tool.outputs == Outputs(format="json", schema=source["outputs"]["schema"])
    assert tool.exec == HttpExec(
        url="https://api.search.brave.com/res/v1/web/search",
        method="GET",
        headers={"Accept": "application/json", "X-Subscription-Token": "${BRAVE_API_KEY}"},
        query={"q": "${query}", "count": "${count}", "freshness": "${freshness}"},
        response=Response(
            json_path="web.results",
            fields=tuple(Projection(name=name, path=name) for name in ("title", "url", "description")),
        ),
    )
    assert tool.permissions == Permissions(network=True, secrets={"BRAVE_API_KEY": SecretNeed()})
    assert tool.approval == Approval(required=True, reason="Accesses external API with secrets")
    assert tool.examples == tuple(Example(**example) for example in source["examples"])
    assert tool.origin == Origin(source="project", location=str(path), folder=str(path.parent))


@pytest.mark.parametrize("manifest", [HTTP, COMMAND, PYTHON], ids=["http", "command", "python"])
def test_a_sound_manifest_has_no_problems(manifest: str) -> None:
    assert parse(manifest).problems == ()


RULES: list[tuple[str, str, str, list[tuple[int, int, str, str, str, str]]]] = [
    (
        HTTP,
        "name: demo",
        "name: other",
        [
            (
                1,
                7,
                "name",
                "name",
                "the name 'other' is not the name of its folder, 'demo'",
                "write name: demo, or rename the folder to other",
            )
        ],
    ),
    (
        HTTP,
        "kind: http",
        "kind: htp",
        [(3, 7, "kind", "enum", "'htp' is not one of http, command, python", "did you mean http?")],
    ),
    (
        HTTP,
        "kind: http",
        "kind: command",
        [
            (
                20,
                3,
                "exec.http",
                "exec",
                "exec.http does not match kind: command",
                "write kind: http, or replace the block by exec.command",
            )
        ],
    ),
    (
        HTTP,
        "  http:\n",
        "  command: {entrypoint: x}\n  http:\n",
        [(20, 3, "exec", "exec", "exec has 2 blocks: http, command", "keep exec.http and remove the others")],
    ),
    (
        COMMAND,
        COMMAND[COMMAND.index("exec:") : COMMAND.index("permissions:")],
        "exec: {}\n",
        [(9, 7, "exec", "exec", "exec has no block", "add exec.command")],
    ),
    (
        HTTP,
        "  reason: It costs money\n",
        "",
        [
            (
                32,
                3,
                "approval.reason",
                "reason",
                "approval is required without a reason",
                "add approval.reason: what should a person know before saying yes?",
            )
        ],
    ),
    (
        HTTP,
        "reason: It costs money",
        "reason: '  '",
        [
            (
                33,
                11,
                "approval.reason",
                "reason",
                "approval is required without a reason",
                "add approval.reason: what should a person know before saying yes?",
            )
        ],
    ),
    (
        HTTP,
        "count: ${count}",
        "count: ${cuont}",
        [
            (
                26,
                14,
                "exec.http.query.count",
                "placeholder",
                "${cuont} is neither an input nor a declared secret",
                "write ${count}",
            )
        ],
    ),
    (
        HTTP,
        "count: ${count}",
        "count: [a, 'b ${zzz}']",
        [
            (
                26,
                18,
                "exec.http.query.count[1]",
                "placeholder",
                "${zzz} is neither an input nor a declared secret",
                "add zzz to inputs.schema.properties or to permissions.secrets",
            )
        ],
    ),
    (
        HTTP,
        "count: ${count}",
        "count: ${count",
        [
            (
                26,
                14,
                "exec.http.query.count",
                "placeholder",
                "a placeholder is not closed",
                "write ${name}, or $${ for a literal ${",
            )
        ],
    ),
    (
        HTTP,
        "count: ${count}",
        "${count}: 1",
        [
            (
                26,
                7,
                "exec.http.query.${count}",
                "placeholder",
                "placeholders are not filled in keys",
                "write the key literally",
            )
        ],
    ),
    (
        COMMAND,
        "cwd: .",
        "cwd: ${path}",
        [
            (
                13,
                10,
                "exec.command.cwd",
                "placeholder",
                "placeholders are not filled in cwd",
                "write a literal value; a model must not choose it",
            )
        ],
    ),
    (
        HTTP,
        "X-Token: ${API_KEY}",
        "X-Token: $${API_KEY}",
        [
            (
                30,
                5,
                "permissions.secrets.API_KEY",
                "secret",
                "the secret API_KEY is not used",
                "put ${API_KEY} into a header, or remove it",
            )
        ],
    ),
    (
        HTTP,
        "    API_KEY:",
        "    id: {}\n    API_KEY:",
        [(30, 5, "permissions.secrets.id", "secret", "id is an input and a secret at once", "rename one of them")],
    ),
    (
        COMMAND,
        '"${path}"]',
        '"${path}", "a=${TOKEN}"]',
        [
            (
                12,
                31,
                "exec.command.args[2]",
                "secret",
                "the secret TOKEN stands in a command argument, which any local user can read",
                "remove it; the program finds it in its environment as TOKEN",
            )
        ],
    ),
    (
        PYTHON,
        'default: "."',
        "default: 5",
        [
            (
                8,
                37,
                "inputs.schema.properties.path.default",
                "default",
                'the default does not fit its own schema: 5 is not of type "string"',
                "change the default or the schema",
            )
        ],
    ),
    (
        HTTP,
        'params: {id: "1"}',
        "params: {id: 1}",
        [
            (
                36,
                18,
                "examples[0].params.id",
                "example",
                'the example does not fit inputs.schema: 1 is not of type "string"',
                "change the example or the schema",
            )
        ],
    ),
    (
        HTTP,
        '{"title": "...", ...}',
        '{"title": "abc"}',
        [
            (
                37,
                22,
                "examples[0].expected_output",
                "example",
                'the expected output does not fit outputs.schema: "abc" is shorter than 5 characters',
                "change the example or the schema",
            )
        ],
    ),
    (
        HTTP,
        '{"title": "...", ...}',
        "[1,",
        [
            (
                37,
                22,
                "examples[0].expected_output",
                "example",
                "the expected output is not JSON: Expecting value: line 2 column 1 (char 4)",
                "write JSON, or outputs.format: text",
            )
        ],
    ),
    (
        HTTP,
        "type: integer, default",
        "type: intger, default",
        [
            (
                11,
                21,
                "inputs.schema.properties.count.type",
                "schema",
                "not valid JSON Schema 2020-12: 'intger' is not a type",
                "did you mean integer?",
            )
        ],
    ),
    (
        HTTP,
        "minLength: 5",
        "minLength: x",
        [
            (
                18,
                40,
                "outputs.schema.properties.title.minLength",
                "schema",
                'not valid JSON Schema 2020-12: "x" is not of type "integer"',
                "mend the schema",
            )
        ],
    ),
    (
        HTTP,
        "      id: {type: string}",
        "      id: {$ref: '#/nowhere'}",
        [
            (
                6,
                5,
                "inputs.schema",
                "schema",
                "not valid JSON Schema 2020-12: Pointer '/nowhere' does not exist",
                "mend the schema",
            )
        ],
    ),
    (
        COMMAND,
        "    type: object\n",
        "    type: object\n    $schema: 5\n",
        [
            (
                7,
                14,
                "inputs.schema.$schema",
                "schema",
                "not valid JSON Schema 2020-12: 5 is not JSON Schema 2020-12",
                "mend the schema",
            )
        ],
    ),
    (
        HTTP,
        "network: true",
        "network: false",
        [
            (
                28,
                12,
                "permissions.network",
                "network",
                "kind: http needs the network, and network is false",
                "write network: true, or name the host under network.hosts",
            )
        ],
    ),
    (
        HTTP,
        "network: true",
        "network: {hosts: ['*.example.com:8443']}",
        [
            (
                28,
                20,
                "permissions.network.hosts",
                "network",
                "the URL's host api.example.com is not among the hosts",
                "add api.example.com",
            )
        ],
    ),
    (
        HTTP,
        "network: true",
        "network: {hosts: [api.example.com:80, 5, '127.1', 'a b.example', '*', api.example.com:443]}",
        [
            (
                28,
                41,
                "permissions.network.hosts[1]",
                "type",
                '5 is not of type "string"',
                "give `1` as string, not integer",
            ),
            (
                28,
                44,
                "permissions.network.hosts[2]",
                "host",
                "'127.1' permits no host: 127.1 is not an address in the form 192.0.2.1",
                HOST_FORM,
            ),
            (
                28,
                53,
                "permissions.network.hosts[3]",
                "host",
                "'a b.example' permits no host: 'a b.example' is not a host name",
                HOST_FORM,
            ),
            (28, 68, "permissions.network.hosts[4]", "host", "'*' permits no host: '*' is not a host name", HOST_FORM),
        ],
    ),
    (
        HTTP,
        "API_KEY: {type: string, required: true}",
        "API_KEY: {type: string, host: api.example.com}",
        [
            (
                30,
                29,
                "permissions.secrets.API_KEY.host",
                "host",
                "the secret API_KEY has a host, which is for kinds command and python",
                "remove it; ${API_KEY} goes to the URL's host alone",
            )
        ],
    ),
    *(
        (
            COMMAND,
            "network: false\n  secrets:\n    TOKEN: {type: string, required: false}",
            f"network: {network}\n  secrets:\n    TOKEN: {{host: '{host}'}}",
            [(18, 19, "permissions.secrets.TOKEN.host", "host", message, hint)],
        )
        for network, host, message, hint in (
            ("false", "a.example", NOT_REACHED.format("a.example"), ADD_HOST.format("a.example")),
            ("true", "a.example", NOT_REACHED.format("a.example"), ADD_HOST.format("a.example")),
            ("{hosts: []}", "a.example", NOT_REACHED.format("a.example"), ADD_HOST.format("a.example")),
            ("{hosts: ['a.example:80']}", "a.example", NOT_REACHED.format("a.example"), ADD_HOST.format("a.example")),
            (
                "{hosts: [a.example]}",
                "a.example:99",
                NOT_REACHED.format("a.example:99"),
                ADD_HOST.format("a.example:99"),
            ),
            (
                "{hosts: [a.example]}",
                "*.a.example",
                "'*.a.example' is not a host: '*.a.example' is not a host name",
                "write it as api.example.com or api.example.com:8443",
            ),
            (
                "{hosts: [a.example]}",
                "a.example:0",
                "'a.example:0' is not a host: '0' is not a port",
                "write it as api.example.com or api.example.com:8443",
            ),
        )
    ),
    *(
        (
            HTTP,
            "https://api.example.com/items/${id}",
            url,
            [
                (
                    22,
                    10,
                    "exec.http.url",
                    "url",
                    "a placeholder stands in the scheme, host or port",
                    "write scheme and host literally, as in https://api.example.com/items/${id}",
                )
            ],
        )
        for url in (
            "${id}",
            "${id}://api.example.com/",
            "https://${id}/x",
            "https://${id}.example.com/",
            "https://api.example.com:${id}/",
            "https://api.example.com${id}",
            "https://${id}@api.example.com/",
        )
    ),
    (
        HTTP,
        "https://api.example.com/items/${id}",
        "https://user@api.example.com/${id}",
        [
            (
                22,
                10,
                "exec.http.url",
                "url",
                "not a usable URL: a URL has no user or password; put credentials in a header",
                "write it as https://host/path",
            )
        ],
    ),
    (
        HTTP,
        "X-Token:",
        "Host: x\n      X-Token:",
        [(24, 7, "exec.http.headers.Host", "header", "the header Host is Glee's to set", "remove it")],
    ),
    (
        HTTP,
        "X-Token:",
        "x-token: x\n      X-Token:",
        [
            (
                25,
                7,
                "exec.http.headers.X-Token",
                "header",
                "the header X-Token already stands there as x-token",
                "keep one",
            )
        ],
    ),
    (
        HTTP,
        "X-Token: ${API_KEY}",
        'X-Token: "${API_KEY}\\r\\nX: 1"',
        [
            (
                24,
                16,
                "exec.http.headers.X-Token",
                "header",
                "the header X-Token holds a line break or control character",
                "write it on one line",
            )
        ],
    ),
    (
        HTTP,
        "name: demo\n",
        "",
        [(1, 1, "name", "required", "the field 'name' is missing", "add name:")],
    ),
    (
        PYTHON,
        "    function: run\n",
        "",
        [(11, 5, "exec.python.function", "required", "the field 'function' is missing", "add function:")],
    ),
    (
        COMMAND,
        "exit_codes_ok: [0]",
        "timeout_ms: 0",
        [
            (
                14,
                17,
                "exec.command.timeout_ms",
                "minimum",
                "0 is less than the minimum of 1",
                "keep `timeout_ms` within minimum 1",
            )
        ],
    ),
    (
        COMMAND,
        "name: demo\n",
        "name: demo\nname: demo\n",
        [(2, 1, "name", "duplicate", "the key 'name' already stands on line 1", "keep one of the two")],
    ),
    (
        COMMAND,
        "network: false",
        "network: no",
        [
            (
                16,
                12,
                "permissions.network",
                "boolean",
                "no is a boolean to some readers and text to others",
                'write false, or "no" in quotes',
            ),
            (
                16,
                12,
                "permissions.network",
                "type",
                '"no" is not of types "boolean", "object"',
                "give `network` as boolean or object, not string",
            ),
        ],
    ),
]


@pytest.mark.parametrize(("manifest", "old", "new", "expected"), RULES, ids=lambda value: str(value)[:30])
def test_each_rule_gives_place_field_message_and_mend(
    manifest: str, old: str, new: str, expected: list[tuple[int, int, str, str, str, str]]
) -> None:
    assert parse(change(manifest, old, new)) == Reading(None, tuple(problem(*item) for item in expected))


@pytest.mark.parametrize(
    ("manifest", "old", "new"),
    [
        (HTTP, "count: ${count}", "count: $${anything}"),
        (HTTP, "network: true", "network: {hosts: ['*.example.com', x.org:80]}"),
        (HTTP, "network: true", "network: {hosts: ['api.example.com:443', '[::1]:8080', 127.0.0.1]}"),
        (
            COMMAND,
            "network: false\n  secrets:\n    TOKEN: {type: string, required: false}",
            "network: {hosts: ['*.example.org', 'a.example:8443']}\n  secrets:\n"
            "    TOKEN: {host: API.example.org}\n    OTHER: {host: 'a.example:8443'}",
        ),
        (HTTP, "  network: true\n", ""),
        (HTTP, "items/${id}", "items?of=${id}"),
        (HTTP, '{"title": "...", ...}', '{"title": "...", "more": 1}'),
        (HTTP, '{"title": "...", ...}', "{...}"),
        (HTTP, '    expected_output: |\n      {"title": "...", ...}\n', "    expected_output: {title: a title}\n"),
        (HTTP, "required: true\n  reason: It costs money", "required: false"),
        (COMMAND, "[0]", "[0.0, 1]"),
        (COMMAND, "exit_codes_ok: [0]", "timeout_ms: 30000.0"),
        (COMMAND, "    TOKEN: {type: string, required: false}\n", "    UNUSED: {}\n"),
        (COMMAND, 'args: ["--in", "${path}"]', "args: [1, true, 2.5]"),
        (PYTHON, 'args: ["${path}"]', "args: {where: ['${path}', 5]}"),
        (PYTHON, "    cwd: .\n", "    return: text\nexamples:\n  - params: {}\n    expected_output: just text\n"),
        (PYTHON, "kind: python\n", "kind: python\nversion: 1.0\ngroup: net\ndangerous: true\nidempotent: true\n"),
        (PYTHON, "name: demo\n", "$schema: https://example.com/tool.schema.json\nname: demo\n"),
    ],
    ids=lambda value: str(value)[-30:],
)
def test_what_is_allowed_is_not_complained_about(manifest: str, old: str, new: str) -> None:
    assert parse(change(manifest, old, new)).problems == ()


@pytest.mark.parametrize(
    ("manifest", "old", "new", "field", "meant"),
    [
        (HTTP, "description: Look", "describtion: Look", "describtion", "description"),
        (
            HTTP,
            "  schema:\n    type: object\n    additional",
            "  shema: {}\n  schema:\n    type: object\n    additional",
            "inputs.shema",
            "schema",
        ),
        (HTTP, "  format: json", "  formats: json", "outputs.formats", "format"),
        (HTTP, "  http:\n", "  htpp: {}\n  http:\n", "exec.htpp", "http"),
        (HTTP, "    method: GET", "    methods: GET", "exec.http.methods", "method"),
        (HTTP, "    query:", "    response: {json-path: x}\n    query:", "exec.http.response.json-path", "json_path"),
        (
            HTTP,
            "    query:",
            "    response: {fields: [{name: x, path: x, nmae: y}]}\n    query:",
            "exec.http.response.fields[0].nmae",
            "name",
        ),
        (COMMAND, "    cwd: .", "    cmd: .", "exec.command.cmd", "cwd"),
        (COMMAND, "    cwd: .", "    stdout: {fromat: text}", "exec.command.stdout.fromat", "format"),
        (PYTHON, "    venv: .venv", "    vevn: .venv", "exec.python.vevn", "venv"),
        (HTTP, "  network: true", "  netwrk: true", "permissions.netwrk", "network"),
        (HTTP, "network: true", "network: {hosts: [api.example.com], host: x}", "permissions.network.host", "hosts"),
        (HTTP, "network: true", "network: true\n  fs: {raed: []}", "permissions.fs.raed", "read"),
        (HTTP, "required: true}", "requierd: true}", "permissions.secrets.API_KEY.requierd", "required"),
        (HTTP, "  reason: It", "  resaon: x\n  reason: It", "approval.resaon", "reason"),
        (HTTP, "  - description: One", "  - descripton: One", "examples[0].descripton", "description"),
    ],
    ids=lambda value: str(value)[:20],
)
def test_an_unknown_field_is_an_error_with_what_was_meant_at_every_level(
    manifest: str, old: str, new: str, field: str, meant: str
) -> None:
    found = {p.field: p.hint for p in parse(change(manifest, old, new)).problems if p.rule == "unknown"}

    assert found == {field: f"did you mean {meant}?"}


def test_an_unknown_field_like_no_other_is_told_what_is_known() -> None:
    (found,) = parse(change(HTTP, "approval:\n", "approval:\n  zzz: 1\n")).problems

    assert (found.line, found.column, found.hint) == (32, 3, "remove it; known here: required, reason")


def test_every_problem_is_reported_at_once_in_the_order_of_lines() -> None:
    text = """\
name: other
descripton: x
kind: http
inputs:
  schema: {type: object, properties: {a: {type: integer, default: x}}}
exec:
  http:
    url: https://${a}/
    headers: {Host: x}
    query: {q: '${b}', r: no}
permissions:
  network: false
  secrets: {KEY: {}}
approval: {required: true}
examples:
  - params: {a: y}
"""

    assert [(p.line, p.field, p.rule) for p in parse(text).problems] == [
        (1, "description", "required"),
        (1, "name", "name"),
        (2, "descripton", "unknown"),
        (5, "inputs.schema.properties.a.default", "default"),
        (8, "exec.http.url", "url"),
        (9, "exec.http.headers.Host", "header"),
        (10, "exec.http.query.q", "placeholder"),
        (10, "exec.http.query.r", "boolean"),
        (12, "permissions.network", "network"),
        (13, "permissions.secrets.KEY", "secret"),
        (14, "approval.reason", "reason"),
        (16, "examples[0].params.a", "example"),
    ]


@pytest.mark.parametrize(
    "schema",
    [
        '"a b": {type: integer, default: x}',
        '"a#b": {type: integer, default: x}',
        '"a%b": {type: integer, default: x}',
        '"a/b~c": {type: integer, default: x}',
        '"ü\\"": {type: integer, default: x}',
        '"": {type: integer, default: x}',
        "a: {$ref: '#/$defs/n', default: x}",
        "a: {$ref: '#n', default: x}",
        "a: {type: object, properties: {b: {type: integer, default: x}}}",
        "a: {type: array, items: {type: integer}, default: [1, x]}",
        "a: {type: array, items: {type: integer, default: x}}",
        "a: {type: array, items: {properties: {b: {type: integer, default: x}}}}",
        "a: {allOf: [true, {properties: {b: {type: integer, default: x}}}]}",
        "a: {allOf: [{$ref: '#/$defs/n', default: x}]}",
        "a: {$defs: {m: {properties: {b: {type: integer, default: x}}}}, $ref: '#/properties/a/$defs/m'}",
        "a: {definitions: {m: {type: integer, default: x}}}",
    ],
)
@pytest.mark.parametrize("extra", ["", "$id: 'https://example.com/s', ", "$id: 'urn:x#', "])
def test_a_default_is_held_to_its_schema_whatever_it_is_called_and_refers_to(schema: str, extra: str) -> None:
    whole = f"{{{extra}type: object, $defs: {{n: {{$anchor: n, type: integer}}}}, properties: {{{schema}}}}}"
    manifest = (
        COMMAND[: COMMAND.index("inputs:")] + f"inputs:\n  schema: {whole}\nexec: {{command: {{entrypoint: x}}}}\n"
    )

    assert [(p.line, p.rule) for p in parse(manifest).problems] == [(5, "default")]


@pytest.mark.parametrize(
    ("expected", "schema", "rules"),
    [
        ('"..."', "{type: string, minLength: 9, pattern: ^x}", []),
        ('"..."', "{type: integer}", ["example"]),
        ('{"a": "..."}', "{properties: {a: {type: integer}}}", ["example"]),
        ('{"a": 1, ...}', "{required: [b]}", []),
        ('{"a": 1}', "{required: [b]}", ["example"]),
        ("[1, ...]", "{minItems: 3}", []),
        ("[1]", "{minItems: 3}", ["example"]),
        ('["...", "..."]', "{uniqueItems: true}", []),
        ("[1, 1]", "{uniqueItems: true}", ["example"]),
        ('{"a": "..."}', "{anyOf: [{properties: {a: {const: x}}}, false]}", []),
        ('{"a": "y"}', "{anyOf: [{properties: {a: {const: x}}}, false]}", ["example"]),
        ("[5, ...]", "{items: {type: string}}", ["example"]),
        ("5", "false", ["example"]),
        ("[" * 50_000, "{}", ["example"]),
        (" " * 200_000 + "x", "{}", ["example"]),
        ('"' + '\\"' * 100_000, "{}", ["example"]),
        ("[...]," * 50_000, "{}", ["example"]),
    ],
    ids=lambda value: str(value)[:24],
)
def test_an_expected_output_is_held_to_the_schema_as_far_as_it_is_spelled_out(
    expected: str, schema: str, rules: list[str]
) -> None:
    quoted = expected.replace("'", "''")
    manifest = (
        COMMAND
        + f"outputs: {{format: json, schema: {schema}}}\nexamples:\n- params: {{}}\n  expected_output: '{quoted}'\n"
    )

    assert [p.rule for p in parse(manifest).problems] == rules


@pytest.mark.parametrize(
    ("manifest", "execution"),
    [
        (
            "exec: {http: {url: 'https://h/', method: POST, body: {a: [1]}, timeout_ms: 5.0}}",
            HttpExec(url="https://h/", method="POST", body={"a": [1]}, timeout_ms=5),
        ),
        (
            "exec: {command: {entrypoint: a, args: [b, 1], cwd: c, stdout: {format: json}, exit_codes_ok: [0, 1]}}",
            CommandExec(entrypoint="a", args=("b", 1), cwd="c", stdout=Stdout(format="json"), exit_codes_ok=(0, 1)),
        ),
        (
            "exec: {python: {module: a.b, function: c, args: {d: 1}, venv: v, cwd: w, return: text, timeout_ms: 1}}",
            PythonExec(module="a.b", function="c", args={"d": 1}, venv="v", cwd="w", returns="text", timeout_ms=1),
        ),
    ],
    ids=["http", "command", "python"],
)
def test_every_field_of_an_exec_block_reaches_the_tool(manifest: str, execution: Any) -> None:
    kind = manifest.split("{")[1].split(":")[0]
    head = f"name: demo\ndescription: d\nkind: {kind}\ninputs: {{schema: {{type: object}}}}\n"

    tool = parse(head + manifest).tool

    assert tool is not None
    assert tool.exec == execution


def test_the_other_fields_reach_the_tool() -> None:
    tool = parse(
        COMMAND.replace(
            "network: false", "network: {hosts: ['*.example.org:443']}\n  fs: {read: [a], write: [/b]}"
        ).replace("required: false}", "required: false, host: api.example.org}")
        + 'version: "1.2"\ngroup: net\ndangerous: true\nidempotent: true\n'
    ).tool

    assert tool is not None
    assert tool.permissions == Permissions(
        network=Hosts(hosts=("*.example.org:443",)),
        fs=Files(read=("a",), write=("/b",)),
        secrets={"TOKEN": SecretNeed(required=False, host="api.example.org")},
    )
    assert (tool.version, tool.group, tool.dangerous, tool.idempotent) == ("1.2", "web", True, True)


@pytest.mark.parametrize(
    ("fields", "form"),
    [
        ("kind: command\nexec: {command: {entrypoint: x}}", "text"),
        ("kind: command\nexec: {command: {entrypoint: x, stdout: {format: json}}}", "json"),
        ("kind: command\noutputs: {format: text}\nexec: {command: {entrypoint: x, stdout: {format: json}}}", "text"),
        ("kind: python\nexec: {python: {module: x, function: y}}", "json"),
        ("kind: python\nexec: {python: {module: x, function: y, return: text}}", "text"),
        ("kind: http\nexec: {http: {url: 'https://h/'}}", "json"),
        ("kind: http\noutputs: {format: text}\nexec: {http: {url: 'https://h/'}}", "text"),
    ],
)
def test_the_output_format_follows_from_the_kind_where_nothing_says_otherwise(fields: str, form: str) -> None:
    tool = parse(f"name: demo\ndescription: d\ninputs: {{schema: {{type: object}}}}\n{fields}\n").tool

    assert tool is not None
    assert tool.outputs == Outputs(format=form)  # type: ignore[arg-type]


@pytest.mark.parametrize(
    ("name", "sound"),
    [
        ("web_search", True),
        ("Repo.Scan-2", True),
        ("größe", True),
        ("two words", True),
        (".hidden", False),
        ("-dash", False),
        ("a/b", False),
        ("a\\b", False),
        ("", False),
        ("x" * 129, False),
        ("a\nb", False),
        ("a\x9bb", False),
        ("a\u202eb", False),
        ("a\u200bb", False),
    ],
)
def test_a_name_can_be_a_folder_and_shows_what_it_is(name: str, sound: bool) -> None:
    text = change(COMMAND, "name: demo", f"name: {json.dumps(name)}")
    reading = parse_manifest(text.encode(), path=Path("/tools") / (name or "x") / "tool.yml", shown="tool.yml")

    assert (reading.tool is not None) is sound


@pytest.mark.parametrize(
    ("data", "rule"),
    [
        (b"", "empty"),
        (b"\xff\xfe", "encoding"),
        (b"- a\n- b\n", "type"),
        (b"just words", "type"),
        (b"--- \n", "type"),
        (b"a: [", "syntax"),
        (b"x" * 1_048_577, "size"),
        (b"[" * 1_000_000, "depth"),
    ],
    ids=lambda value: str(value)[:16],
)
def test_a_file_that_is_no_manifest_is_one_problem(data: bytes, rule: str) -> None:
    assert [p.rule for p in parse(data).problems] == [rule]


def test_a_body_nested_by_anchors_is_a_problem_and_not_a_crash() -> None:
    layers = [f"- &a{n} " + "[" * 90 + (f"*a{n - 1}" if n else "x") + "]" * 90 for n in range(30)]
    text = HTTP.replace("    query:", "    body:\n" + "".join(f"      {line}\n" for line in layers) + "    query:")

    assert [p.rule for p in parse(text).problems] == ["depth"]


def test_a_value_of_a_megabyte_does_not_make_a_message_of_a_megabyte() -> None:
    text = change(change(HTTP, "method: GET", f"method: {'G' * 100_000}"), "network: true", f"network: {'x' * 100_000}")

    assert all(len(str(found)) < 1000 for found in parse(text).problems)
    assert len(parse(text).problems) == 2


def test_thousands_of_defaults_that_share_a_reference_are_checked_in_one_go() -> None:
    many = "".join(f"      p{n}: {{$ref: '#/$defs/n', default: {n}}}\n" for n in range(3_000))
    text = change(COMMAND, "    properties:\n", f"    $defs: {{n: {{maximum: 2998}}}}\n    properties:\n{many}")

    assert [p.field for p in parse(text).problems] == ["inputs.schema.properties.p2999.default"]


def test_the_digest_is_that_of_the_bytes() -> None:
    tool, other = parse(COMMAND).tool, parse(COMMAND + "# a note\n").tool

    assert tool is not None and other is not None
    assert tool.digest == hashlib.sha256(COMMAND.encode()).hexdigest() != other.digest


@pytest.mark.parametrize("make", ["folder", "pipe", "dangling link", "nothing"])
def test_what_cannot_be_read_as_a_file_is_a_problem_and_nothing_waits(tmp_path: Path, make: str) -> None:
    path = tmp_path / "tool.yml"
    if make == "folder":
        path.mkdir()
    elif make == "pipe":
        os.mkfifo(path)
    elif make == "dangling link":
        path.symlink_to(tmp_path / "gone")

    reading = read_manifest(path, shown="tool.yml")
    linted = lint_manifest(path, root=tmp_path, search_path="", shown="tool.yml")

    assert reading.tool is None
    assert [(p.rule, p.line, p.column) for p in reading.problems] == [("file", 1, 1)]
    assert linted == reading.problems


def test_a_problem_reads_as_file_line_column_field_message_and_mend() -> None:
    (found,) = parse(change(HTTP, "network: true", "network: false")).problems

    assert str(found) == (
        "tool.yml:28:12: permissions.network: kind: http needs the network, and network is false; "
        "write network: true, or name the host under network.hosts"
    )


words = st.sampled_from(
    ["name", "kind", "http", "exec", "inputs", "schema", "object", "type", "properties", "default", "url", "${x}", "${"]
)
values = st.recursive(
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats(allow_nan=False, allow_infinity=False)
    | words
    | st.text(max_size=5),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(words | st.text(max_size=5), inner, max_size=4),
    max_leaves=12,
)
FIELDS = [
    "name",
    "description",
    "kind",
    "version",
    "group",
    "inputs",
    "outputs",
    "exec",
    "permissions",
    "approval",
    "examples",
]


@given(st.dictionaries(st.sampled_from(FIELDS), values))
def test_no_manifest_of_any_shape_ever_raises(fields: dict[str, Any]) -> None:
    sound = yaml.safe_load(HTTP)
    text = yaml.safe_dump({**sound, **fields}, allow_unicode=True)

    reading = parse(text)

    assert (reading.tool is None) is bool(reading.problems)


@given(
    st.sampled_from([("exec", "http"), ("inputs", "schema"), ("outputs",), ("permissions",), ("examples", 0)]),
    values,
    words,
)
def test_no_value_in_any_place_ever_raises(path: tuple[Any, ...], value: Any, word: str) -> None:
    manifest = yaml.safe_load(HTTP)
    place = manifest
    for part in path:
        place = place[part]
    place[word] = value

    assert isinstance(parse(yaml.safe_dump(manifest, allow_unicode=True)), Reading)


@given(st.integers(0, len(HTTP)), st.integers(0, 20), st.text(max_size=8))
def test_no_slip_of_the_pen_ever_raises(at: int, length: int, typed: str) -> None:
    reading = parse((HTTP[:at] + typed + HTTP[at + length :]).encode(errors="replace"))

    assert (reading.tool is None) is bool(reading.problems)


def test_a_required_input_that_is_no_property_is_reported() -> None:
    reading = parse(change(HTTP, "required: [id]", "required: [idd]"))

    assert reading.problems[0] == Problem(
        file="tool.yml",
        line=8,
        column=16,
        field="inputs.schema.required[0]",
        rule="required",
        message="'idd' is not a property",
        hint="did you mean id?",
    )


@pytest.mark.parametrize("path", ["$.data", "rows[0]", "data..rows", ".data", "data.", "data.*"])
def test_a_path_that_is_not_dotted_is_reported(path: str) -> None:
    reading = parse(change(HTTP, "url:", f"response: {{json_path: '{path}'}}\n    url:"))

    assert [problem.rule for problem in reading.problems] == ["path"]


@pytest.mark.parametrize("kind", ["application/json", "application/x-www-form-urlencoded"])
def test_a_text_body_that_an_input_could_extend_is_reported(kind: str) -> None:
    block = f"body: 'a=${{id}}'\n    headers: {{Content-Type: {kind}}}\n    url:"
    manifest = change(HTTP, "    url:", "    " + block)

    assert "body" in [problem.rule for problem in parse(manifest).problems]
