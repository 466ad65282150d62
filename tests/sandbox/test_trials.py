"""The trials themselves: each succeeds where nothing stands in its way, or it would prove nothing by failing."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path

import pytest

from glee.config import Settings, load_settings
from glee.doctor import trying
from glee.doctor.trying import Outcome, try_all
from glee.doctor.world import World, build_world, find_marked
from glee.holding import compose_jails
from glee.sandbox import prisoner
from glee.sandbox.syscalls import machine, numbers
from glee.sandbox.trials import EAT_TOGETHER, OUTLIVE, STAT, TRIALS, Trial, find_trials
from glee.testing import Project

HERE = machine() or "x86_64"
MAY_BE_REFUSED = {
    "open a socket to the hypervisor (vsock)", "open a raw socket", "trace a process outside (ptrace)",
    "make a user namespace (unshare)", "io_uring", "bpf", "userfaultfd", "keyctl", "perf_event_open",
    "type into a terminal (TIOCSTI)", "enter by the 32-bit door",
}  # fmt: skip
"""What some kernels refuse to everybody, or to all but root."""


@pytest.fixture
def settings(project: Project) -> Settings:
    return load_settings(project.root, environ=project.environ)


@pytest.fixture
def world(settings: Settings) -> Iterator[World]:
    settings.state.parent.mkdir(parents=True)
    with build_world((os.getuid(), os.getgid()), settings.state.parent) as built:
        yield built


def test_every_trial_succeeds_where_nothing_holds_it(world: World, tmp_path: Path) -> None:
    trials = [trial for trial in find_trials(HERE) if trial.name != "mount"]  # root's would stay
    bounds = {"MEMORY": 32 << 20, "FILE": 1 << 20, "PROCESSES": 5}
    words = {
        "codes": [trial.code for trial in trials],
        "world": {**world.names, **bounds},
        "numbers": numbers(HERE),
        "mark": world.mark,
    }

    done = subprocess.run(
        [sys.executable, "-I", "-S", "-c", Path(prisoner.__file__).read_text(), json.dumps(words)],
        stdin=world.terminal,
        stdout=subprocess.PIPE,
        env={"TMPDIR": str(tmp_path)},
        check=True,
    )

    said = trying._read(done.stdout)
    held = {trials[number].name for number, outcome in said.items() if outcome.held}
    broken = [outcome.answer for outcome in said.values() if "could not be tried" in outcome.answer]
    assert (len(said), broken) == (len(trials), [])
    assert held <= MAY_BE_REFUSED
    assert trying._end_marked(world.mark), "the daemon should have outlived its call"


def try_in_jail(settings: Settings, layers: frozenset[str] | None, trials: list[Trial]) -> dict[str, Outcome]:
    jails = compose_jails(settings, layers=layers, minimum="none")
    try:
        found = jails.abilities()
        with build_world((found.uid, found.gid), settings.state.parent) as world:
            outcomes = try_all(jails, trials, world, settings)
            assert find_marked(world.mark) == []
            return outcomes
    finally:
        jails.close()


def test_with_every_layer_all_of_them_are_held(settings: Settings) -> None:
    trials = find_trials(HERE)

    outcomes = try_in_jail(settings, None, trials)

    jails = compose_jails(settings)
    layers = jails.abilities().layers
    jails.close()
    assert {trial.name for trial in trials if not outcomes[trial.name].held} == {
        trial.name for trial in trials if not trial.needs <= layers
    }


def test_without_any_layer_the_world_outside_is_reached_and_yet_nothing_is_left(settings: Settings) -> None:
    outcomes = try_in_jail(settings, frozenset(), find_trials(HERE))

    reached = {name for name, outcome in outcomes.items() if not outcome.held}
    assert {trial.name for trial in TRIALS if trial.kind == "files"} - reached <= {
        "list Glee's own state",  # of root's
        "read it through the root of a process outside",  # from the user namespace of the fork server
    }
    assert {"connect to the machine's loopback", "signal a process outside", STAT.name, EAT_TOGETHER.name} <= reached
    assert outcomes[OUTLIVE.name] == Outcome(True, "it was ended with the run")


def test_a_trial_that_took_the_run_with_it_was_held_and_one_after_it_was_not_tried(settings: Settings) -> None:
    fatal = "(os.kill(os.getppid(), 9), os.read(os.pipe()[0], 1))"  # then waits for its own end
    trials = [Trial("end it all", "limits", fatal), Trial("next", "limits", "None")]

    assert try_in_jail(settings, None, trials) == {
        "end it all": Outcome(True, "the run was ended"),
        "next": Outcome(False, "it was not tried"),
    }


def test_a_trial_that_is_wrong_itself_does_not_pass_for_held(settings: Settings) -> None:
    outcomes = try_in_jail(settings, None, [Trial("a mistake", "files", "opne('/x')")])

    assert not outcomes["a mistake"].held
    assert "NameError" in outcomes["a mistake"].answer


def test_names_are_unique_and_every_kind_is_there() -> None:
    assert len({trial.name for trial in TRIALS}) == len(TRIALS)
    assert 25 <= len(TRIALS) <= 40
    assert {trial.kind for trial in TRIALS} == {"files", "network", "processes", "system calls", "limits"}


def test_the_32_bit_door_is_tried_only_where_there_is_one() -> None:
    assert {trial.name for trial in find_trials("x86_64")} - {trial.name for trial in find_trials("aarch64")} == {
        "enter by the 32-bit door"
    }


def test_the_world_outside_goes_as_it_came(tmp_path: Path) -> None:
    with build_world((os.getuid(), os.getgid()), tmp_path) as world:
        folder, host = Path(world.names["FOLDER"]), Path("/proc", str(world.names["HOST"]))
        assert folder.parent in (Path("/tmp"), Path("/var/tmp"), Path(tempfile.gettempdir()))
        assert (folder.is_dir(), host.exists()) == (True, True)

    assert (folder.exists(), host.exists()) == (False, False)
