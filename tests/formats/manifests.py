"""Three small manifests that lint clean, for tests that break them one line at a time."""

from __future__ import annotations

HTTP = """\
name: demo
description: Look a thing up
kind: http
inputs:
  schema:
    type: object
    additionalProperties: false
    required: [id]
    properties:
      id: {type: string}
      count: {type: integer, default: 10}
outputs:
  format: json
  schema:
    type: object
    required: [title]
    properties:
      title: {type: string, minLength: 5}
exec:
  http:
    method: GET
    url: https://api.example.com/items/${id}
    headers:
      X-Token: ${API_KEY}
    query:
      count: ${count}
permissions:
  network: true
  secrets:
    API_KEY: {type: string, required: true}
approval:
  required: true
  reason: It costs money
examples:
  - description: One thing
    params: {id: "1"}
    expected_output: |
      {"title": "...", ...}
"""

COMMAND = """\
name: demo
description: Scan a folder
kind: command
inputs:
  schema:
    type: object
    properties:
      path: {type: string, default: "."}
exec:
  command:
    entrypoint: ./scripts/demo.sh
    args: ["--in", "${path}"]
    cwd: .
    exit_codes_ok: [0]
permissions:
  network: false
  secrets:
    TOKEN: {type: string, required: false}
"""

PYTHON = """\
name: demo
description: Count things
kind: python
inputs:
  schema:
    type: object
    properties:
      path: {type: string, default: "."}
exec:
  python:
    module: tools.demo
    function: run
    args: ["${path}"]
    venv: .venv
    cwd: .
"""
