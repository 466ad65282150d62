"""What was tried, judged: pure, so that machines can be told of that are not at hand."""

from __future__ import annotations

from typing import Any

import pytest

from glee.config import Sandbox
from glee.doctor.report import Report, judge
from glee.doctor.trying import Outcome
from glee.sandbox.compile import Abilities
from glee.sandbox.facts import Facts
from glee.sandbox.remedies import LAYERS
from glee.sandbox.trials import EAT_TOGETHER, OUTLIVE, STAT, TRIALS

USUAL = Sandbox()
REDUCED = ("landlock", "seccomp")
MOUNT = next(trial for trial in TRIALS if trial.name == "mount")
READ = next(trial for trial in TRIALS if trial.name == "read a file outside")
FORK = next(trial for trial in TRIALS if trial.name == "more processes than the limit")


def report(
    *layers: str,
    open_in: dict[str, set[str]] | None = None,
    sandbox: Sandbox = USUAL,
    faults: dict[str, str] | None = None,
    tried: Any = None,
) -> Report:
    """Of a machine with these layers; `open_in` names the trials that succeed with a set of layers."""
    abilities = Abilities(
        machine="x86_64", layers=frozenset(layers), landlock=7, uid=1000, gid=1000, faults=faults or {}
    )
    if tried is None:
        sets = ("all", "namespaces", "landlock", "seccomp", "bare", "nothing")
        tried = {
            name: {trial.name: Outcome(trial.name not in (open_in or {}).get(name, ()), "") for trial in TRIALS}
            for name in sets
        }
    engines: Any = {"docker": "missing", "podman": "missing", "nsjail": "missing"}
    return judge(sandbox, Facts(), abilities, TRIALS, tried, engines)


def by(found: Report, name: str) -> tuple[str, ...]:
    return next(attempt.by for attempt in found.trials if attempt.name == name)


def test_a_machine_with_everything_is_well() -> None:
    found = report(*LAYERS)

    assert (found.ok, found.level, found.limits, found.hosts) == (True, "full", "group", True)
    assert (found.notes, found.remedies) == ((), ())
    assert found.verdict == f"{len(TRIALS)} attempts, and all that is promised was held"


def test_what_each_set_holds_alone_is_told_and_what_needs_no_layer_is_the_kernels() -> None:
    unheld = {READ.name}
    found = report(*LAYERS, open_in={"seccomp": unheld, "bare": unheld, "nothing": unheld})

    assert by(found, READ.name) == ("namespaces", "landlock")
    assert by(found, MOUNT.name) == ("kernel",)
    assert by(found, OUTLIVE.name) == ("process one",)


def test_what_the_user_namespace_of_every_jail_holds_is_not_put_to_the_credit_of_others() -> None:
    found = report(*LAYERS, open_in={"nothing": {READ.name}})

    assert by(found, READ.name) == ("namespaces",)


def test_for_root_a_jail_without_layers_shows_what_needs_none() -> None:
    outcomes = {trial.name: Outcome(True, "") for trial in TRIALS}
    opened = {**outcomes, READ.name: Outcome(False, "")}
    found = report(*LAYERS, tried={"all": outcomes, "landlock": outcomes, "bare": opened})

    assert (by(found, READ.name), by(found, MOUNT.name)) == (("landlock",), ("kernel",))


def test_what_is_held_only_with_a_group_is_the_groups() -> None:
    tried = {
        "all": {trial.name: Outcome(True, "") for trial in TRIALS},
        "namespaces": {FORK.name: Outcome(True, ""), EAT_TOGETHER.name: Outcome(False, "")},
    }
    found = report(*LAYERS, tried=tried)

    assert (by(found, FORK.name), by(found, EAT_TOGETHER.name)) == (("limits",), ("group",))


def test_one_attempt_that_is_not_held_spoils_it() -> None:
    found = report(*LAYERS, open_in={"all": {READ.name}})

    assert not found.ok
    assert found.verdict == "NOT HELD, though it was promised: read a file outside"
    assert "report this" in found.remedies[-1]


def test_in_the_reduced_level_what_is_known_is_noted_and_does_not_spoil_it() -> None:
    found = report(*REDUCED, open_in={"all": {STAT.name, EAT_TOGETHER.name}})

    assert (found.ok, found.level, found.limits, found.hosts) == (True, "reduced", "process", False)
    assert [attempt.name for attempt in found.trials if not attempt.promised] == [STAT.name, EAT_TOGETHER.name]
    assert "names, sizes and times" in found.notes[0]
    assert "several together" in found.notes[1]


def test_less_than_the_minimum_is_a_failure() -> None:
    found = report(*REDUCED, sandbox=Sandbox(minimum="full"))

    assert (found.ok, found.verdict[:23]) == (False, "sandbox.minimum is full")


@pytest.mark.parametrize("layers", [(), ("landlock",), ("seccomp",)])
def test_a_machine_that_holds_nothing_is_told_so(layers: tuple[str, ...]) -> None:
    found = report(*layers)

    assert (found.ok, found.level, found.limits, found.hosts) == (False, "none", None, False)
    assert "cannot hold" in found.verdict
    assert "install Docker or Podman" in found.remedies[-1]


def test_a_sandbox_that_is_off_is_a_failure_however_much_could_be_held() -> None:
    found = report(*LAYERS, sandbox=Sandbox(mode="off"))

    assert (found.ok, found.mode) == (False, "off")
    assert "sandbox.mode is off" in found.verdict
    assert "native" in found.remedies[0]


def test_if_nothing_could_be_tried_nothing_is_well() -> None:
    found = report(*LAYERS, tried={})

    assert (found.ok, found.trials) == (False, ())
    assert "nothing could be tried" in found.verdict


def test_a_missing_layer_has_the_kernels_reason() -> None:
    found = report(*REDUCED, faults={"user": "unshare: Operation not permitted", "mount": "unshare: no"})

    assert {name: layer.reason for name, layer in found.layers.items() if not layer.there} == {
        "user": "unshare: Operation not permitted",
        "mount": "unshare: no",
        "pid": "not tried: it needs mounts of its own",
        "proc": "not tried: it needs mounts of its own",
        "ipc": "not tried: it needs mounts of its own",
        "net": "not tried: it needs mounts of its own",
        "group": "left out",
    }
    assert found.layers["landlock"].version == 7
