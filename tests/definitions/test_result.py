"""A result's keys are the contract every door keeps."""

from __future__ import annotations

import json

from glee.definitions.result import Artifact, Failure, Result
from glee.errors import CallError, all_codes

KEYS = ["ok", "tool", "call_id", "output", "error", "warnings", "artifacts", "exit_code", "duration_ms"]


def test_a_result_writes_every_key_of_the_contract_in_order() -> None:
    assert list(json.loads(Result(ok=True, tool="x", call_id="1").to_json()).items()) == [
        ("ok", True),
        ("tool", "x"),
        ("call_id", "1"),
        ("output", None),
        ("error", None),
        ("warnings", []),
        ("artifacts", []),
        ("exit_code", None),
        ("duration_ms", 0.0),
    ]


def test_a_failure_has_code_message_and_details() -> None:
    failure = Failure(code="http_status", message="answered 404", details={"status": 404})
    result = Result(ok=False, tool="x", call_id="1", error=failure)

    assert json.loads(result.to_json())["error"] == {
        "code": "http_status",
        "message": "answered 404",
        "details": {"status": 404},
    }


def test_a_result_comes_back_from_its_json_whole() -> None:
    result = Result(
        ok=False,
        tool="x",
        call_id="1",
        output={"a": [1, "ü", 2**70]},
        error=Failure(code="exit_code", message="m", details={"stderr": ""}),
        warnings=("w",),
        artifacts=(Artifact(handle="h", media_type="text/plain", size=3),),
        exit_code=2,
        duration_ms=1.5,
    )

    assert Result.from_json(result.to_json()) == result
    assert list(json.loads(result.to_json())) == KEYS


def test_a_lone_surrogate_in_the_output_does_not_cost_the_result() -> None:
    result = Result(ok=True, tool="x", call_id="1", output=["\ud800", float("nan")])

    assert list(json.loads(result.to_json())) == KEYS
    assert json.loads(result.to_json())["output"] == ["\ud800", None]


def test_the_error_codes_are_those_of_the_contract() -> None:
    assert all_codes() == {
        "not_found",
        "invalid_input",
        "denied",
        "approval_required",
        "rejected",
        "secret_missing",
        "sandbox_unavailable",
        "blocked",
        "timeout",
        "cancelled",
        "exit_code",
        "exception",
        "http_status",
        "network",
        "too_large",
        "unavailable",
        "internal",
    }
    assert len(CallError.__subclasses__()) == len(all_codes())
