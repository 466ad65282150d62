"""`glee doctor` on this very machine, and on what looks like others: under a filter such as containers have."""

from __future__ import annotations

import contextlib
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path

import msgspec
import pytest
from shell import CTRL_C, PATIENCE, PROGRAM, Glee, Ran

from glee.config import load_settings
from glee.doctor.examination import examine
from glee.doctor.report import Report
from glee.sandbox.facts import Facts
from glee.sandbox.remedies import LAYERS

NAMESPACES = ("user", "mount", "pid", "proc", "ipc", "net")
STAT = "look at size and times of a file outside"
TOGETHER = "more memory, by several processes together"
LANDLOCK = 6
"""The version with which nothing but the known is open without namespaces."""
FILTERED = """
import errno, os, sys
from glee.sandbox import bpf, kernel
from glee.sandbox.syscalls import machine, numbers

program = bpf.Program()
program.load(bpf.NUMBER)
for name in sys.argv[1].split(","):
    program.if_equal(numbers(machine())[name], "forbidden")
program.answer(bpf.ALLOW)
program.label("forbidden")
program.answer(bpf.refuse(errno.EPERM))
kernel.forbid_new_privileges()
kernel.install_filter(program.assemble())
os.execv(sys.argv[2], sys.argv[2:])
"""


@pytest.fixture(scope="module")
def here(make_glee: object) -> Report:
    """What the program says of this machine, read strictly."""
    assert callable(make_glee)
    return read(make_glee()("doctor", "--json"))


def read(ran: Ran) -> Report:
    report = msgspec.convert(ran.json, Report)
    assert ran.status == (0 if report.ok else 1), ran.err
    return report


def without(*names: str) -> list[str]:
    return [word for name in names for word in ("--without", name)]


def run_filtered(glee: Glee, names: str, *args: str) -> Ran:
    """The program on a machine that refuses these system calls."""
    done = subprocess.run(
        [sys.executable, "-c", FILTERED, names, PROGRAM, "doctor", *args],
        cwd=glee.root,
        env=glee.environ,
        capture_output=True,
        text=True,
        timeout=PATIENCE,
        check=False,
    )
    return Ran(done.returncode, done.stdout, done.stderr)


def need(report: Report, *layers: str) -> None:
    missing = [name for name in layers if not report.layers[name].there]
    if missing:
        pytest.skip(f"this machine lacks {', '.join(missing)}")


def not_held(report: Report) -> set[str]:
    return {attempt.name for attempt in report.trials if not attempt.held}


def test_all_that_this_machine_promises_is_held_and_each_trial_is_told(here: Report) -> None:
    assert (here.ok, here.mode, here.minimum) == (True, "native", "reduced"), here.verdict
    assert list(here.layers) == list(LAYERS)
    assert len(here.trials) >= 34
    assert all(attempt.by for attempt in here.trials if attempt.held)
    assert set(here.engines) == {"docker", "podman", "nsjail"}


def test_the_table_shows_every_attempt_and_ends_with_a_verdict(glee: Glee, here: Report) -> None:
    ran = glee("doctor")

    lines = ran.out.splitlines()
    assert (ran.status, ran.err) == (0, "")
    assert f"level     {here.level}: {here.meaning}" in lines
    for attempt in here.trials:
        (line,) = [line for line in lines if attempt.name in line and "held" in line]
        assert line.endswith(f"  held  {', '.join(attempt.by)}" if attempt.held else "not promised here"), line
    assert f"ok: {len(here.trials)} attempts, and all that is promised was held" in lines


def test_it_works_where_there_is_no_project(glee: Glee) -> None:
    ran = glee("doctor", "--json", cwd=glee.base)

    assert read(ran).ok


def test_without_namespaces_the_level_is_reduced_and_what_is_known_to_be_open_is_no_failure(
    glee: Glee, here: Report
) -> None:
    need(here, "landlock", "seccomp")
    if (here.layers["landlock"].version or 0) < LANDLOCK:
        pytest.skip("this machine's Landlock is too old")

    report = read(glee("doctor", "--json", *without(*NAMESPACES, "group")))

    assert (report.ok, report.level, report.limits, report.hosts) == (True, "reduced", "process", False)
    assert not_held(report) == {STAT, TOGETHER}
    assert [layer.reason for layer in report.layers.values() if not layer.there] == ["left out"] * 7
    assert any("names, sizes and times" in note for note in report.notes)


def test_without_landlock_the_level_is_reduced_and_everything_is_held(glee: Glee, here: Report) -> None:
    need(here, *NAMESPACES, "seccomp")

    report = read(glee("doctor", "--json", "--without", "landlock"))

    assert (report.ok, report.level, report.hosts) == (True, "reduced", True)
    assert not_held(report) <= {TOGETHER}
    assert "Landlock" in report.layers["landlock"].remedy


def test_a_machine_that_refuses_namespaces_is_told_why_and_what_would_help(glee: Glee, here: Report) -> None:
    """As Docker's own filter does."""
    need(here, "landlock", "seccomp")
    if (here.layers["landlock"].version or 0) < LANDLOCK:
        pytest.skip("this machine's Landlock is too old")

    report = read(run_filtered(glee, "unshare,setns,mount,keyctl", "--json"))

    assert (report.ok, report.level) == (True, "reduced")
    assert not_held(report) - {TOGETHER} == {STAT}
    assert report.layers["user"].reason == "unshare: Operation not permitted"
    assert report.layers["net"].reason == "not tried: it needs mounts of its own"
    assert "--security-opt seccomp=unconfined" in report.layers["user"].remedy
    assert report.remedies[0] == report.layers["user"].remedy


def test_a_machine_without_landlock_is_told_so(glee: Glee, here: Report) -> None:
    need(here, *NAMESPACES, "seccomp")

    ran = run_filtered(glee, "landlock_create_ruleset")

    assert ran.status == 0
    assert "missing: landlock: this kernel has no Landlock, or it is not enabled" in ran.out
    assert "\nmend: " in ran.out


def test_with_nothing_to_hold_them_the_attempts_are_shown_as_not_held(glee: Glee) -> None:
    ran = glee("doctor", *without(*LAYERS))

    assert ran.status == 1
    (line,) = [line for line in ran.out.splitlines() if "read a file outside" in line and "FAILED" not in line]
    assert line.endswith("NOT HELD")
    assert "\nFAILED: this machine cannot hold programs" in ran.out
    assert "level     none: " in ran.out


def test_less_than_the_config_asks_for_ends_with_status_1(glee: Glee, here: Report) -> None:
    need(here, *NAMESPACES, "landlock", "seccomp")
    glee.project.configure("sandbox: {minimum: full}\n")

    met, missed = glee("doctor"), glee("doctor", "--without", "net")

    assert (met.status, missed.status) == (0, 1)
    assert "FAILED: sandbox.minimum is full and this machine reaches reduced" in missed.out


def test_a_sandbox_that_is_off_is_said_loudly_and_still_tried(glee: Glee, here: Report) -> None:
    glee.project.configure_person("sandbox: {mode: 'off'}\n")

    ran = glee("doctor")

    assert ran.status == 1
    assert ran.err.startswith("warning: sandbox.mode is OFF")
    assert "mode      OFF" in ran.out and "FAILED: sandbox.mode is off" in ran.out
    assert ran.out.count("  held  ") == len(here.trials) - len(not_held(here))


def test_small_limits_in_the_config_do_not_keep_it_from_trying(glee: Glee) -> None:
    glee.project.configure("sandbox: {limits: {processes: 1, memory_mb: 16}}\n")

    assert read(glee("doctor", "--json")).ok


def test_on_another_system_nothing_is_tried_and_the_container_is_named(glee: Glee) -> None:
    settings = load_settings(glee.root, environ=glee.environ)

    report = examine(settings, facts=Facts(system="Darwin", machine=None))

    assert (report.ok, report.level, report.trials) == (False, "none", ())
    assert "not on Darwin" in report.layers["user"].reason
    assert all("sandbox.mode: container" in layer.remedy for layer in report.layers.values())


def test_a_fork_server_that_cannot_start_is_a_finding_and_not_a_fault(
    glee: Glee, monkeypatch: pytest.MonkeyPatch
) -> None:
    (glee.base / "state" / "glee").mkdir(parents=True)
    (glee.base / "state" / "glee" / "jails").write_text("in the way")
    monkeypatch.setattr("glee.sandbox.launcher._VIEW", Path("/nowhere"))

    report = examine(load_settings(glee.root, environ=glee.environ))

    assert (report.level, report.trials) == ("none", ())
    assert "which jails need, cannot be made" in report.layers["mount"].reason


def test_on_a_terminal_it_says_what_it_is_doing_and_leaves_no_trace_of_that(glee: Glee) -> None:
    terminal = glee.on_terminal("doctor")
    terminal.expect("trying every layer")
    terminal.expect("trying without any layer")

    assert terminal.end() == 0
    assert "ok" in terminal.seen.rpartition("\x1b[K")[2]


def test_when_interrupted_it_leaves_nothing(glee: Glee) -> None:
    before = worlds()
    terminal = glee.on_terminal("doctor")
    terminal.expect("alone")

    assert terminal.end(CTRL_C) == 130
    assert set(worlds()) <= set(before)


def worlds() -> list[Path]:
    """Of mine; others may be looking at this machine too."""
    return list(_find_worlds())


def _find_worlds() -> Iterator[Path]:
    for folder in Path("/tmp").glob("glee-doctor-*"):
        with contextlib.suppress(OSError):
            if folder.stat().st_uid in (os.getuid(), 64_999):
                yield folder
