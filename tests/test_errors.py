"""The error tree: every published code once, and every door knows them all."""

from __future__ import annotations

import re
from collections import Counter

import pytest

from glee import errors
from glee.doors.cli.failures import EXIT_STATUS
from glee.errors import CallError, GleeError, InvalidInput

PUBLISHED = [
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
]


def test_every_published_code_belongs_to_exactly_one_error_of_a_call() -> None:
    assert Counter(kind.code for kind in CallError.__subclasses__()) == Counter(PUBLISHED)
    assert errors.all_codes() == frozenset(PUBLISHED)


def test_the_tree_in_the_docstring_is_the_tree() -> None:
    drawn = dict(re.findall(r"│   [├└]── (\w+) +(\w+)", errors.__doc__ or ""))

    assert drawn == {kind.__name__: kind.code for kind in CallError.__subclasses__()}
    others = re.findall(r"^    [├└]── (\w+) ", errors.__doc__ or "", re.MULTILINE)
    assert others == [kind.__name__ for kind in GleeError.__subclasses__()]


def test_the_terminal_has_an_exit_status_for_every_code() -> None:
    special = {
        "not_found": 2,
        "invalid_input": 2,
        "denied": 3,
        "approval_required": 3,
        "rejected": 3,
        "timeout": 124,
        "cancelled": 130,
    }

    assert dict.fromkeys(PUBLISHED, 1) | special == EXIT_STATUS


@pytest.mark.parametrize("kind", GleeError.__subclasses__())
def test_an_error_outside_a_call_has_a_published_code_too(kind: type[GleeError]) -> None:
    assert kind.code in PUBLISHED


def test_an_error_says_one_thing_to_a_model_and_another_to_the_operator() -> None:
    error = InvalidInput("count is too large; give at most 5", detail="a long traceback", details={"max": 5})

    assert (str(error), error.message, error.detail, error.details, error.warnings) == (
        "count is too large; give at most 5",
        "count is too large; give at most 5",
        "a long traceback",
        {"max": 5},
        (),
    )


def test_details_are_the_error_s_own() -> None:
    given = {"max": 5}
    error = InvalidInput("no", details=given)
    error.details["more"] = 1

    assert (given, InvalidInput("no").details) == ({"max": 5}, {})
