"""The public JSON Schema suite, through the settings that Glee itself compiles with."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import jsonschema_rs
import pytest

from glee.schemas.validator import SETTINGS

CASES = Path(__file__).parents[3] / "shared" / "cases" / "jsonschema"

Failure = tuple[str, str, str]


def run_suite(settings: dict[str, Any]) -> tuple[int, list[Failure]]:
    """How many tests passed, and which did not: file, group and test."""
    if not CASES.is_dir():
        pytest.skip("the public JSON Schema suite is not beside this repository (../shared/cases/jsonschema)")
    files = json.loads((CASES / "draft2020-12_required.json").read_bytes())["files"]
    remotes = json.loads((CASES / "remotes.json").read_bytes())["remotes"]
    registry = jsonschema_rs.Registry(list(remotes.items()), draft=jsonschema_rs.Draft202012)
    passed, failed = 0, []
    for file, groups in files.items():
        for group in groups:
            compiled = jsonschema_rs.Draft202012Validator(group["schema"], registry=registry, **settings)
            for test in group["tests"]:
                if compiled.is_valid(test["data"]) is test["valid"]:
                    passed += 1
                else:
                    failed.append((file, group["description"], test["description"]))
    return passed, failed


def test_every_required_test_passes() -> None:
    assert run_suite(SETTINGS) == (1299, [])
