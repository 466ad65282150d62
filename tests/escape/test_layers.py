"""Every attack against every combination of layers, and what each layer holds alone, so that none is missing unseen.

With each launcher where all layers are there and where there are fewest; otherwise with the one that Glee would use.
"""

from __future__ import annotations

import os
from collections.abc import Iterator

import pytest
from attacks import ATTACKS, Attack, is_held, prison
from launchers import LAUNCHERS, is_native

from glee.holding import compose_jails
from glee.sandbox.compile import Abilities
from glee.testing import Project

NAMESPACES = frozenset({"user", "mount", "pid", "proc", "net", "ipc"})
COMBINATIONS = {
    "every layer": NAMESPACES | {"landlock", "seccomp"},
    "no Landlock": NAMESPACES | {"seccomp"},
    "no /proc": NAMESPACES - {"proc"} | {"landlock", "seccomp"},
    "no namespaces": frozenset({"landlock", "seccomp"}),
    "no namespaces but the user's": frozenset({"landlock", "seccomp", "user"}),
}
WITH_EACH = ("every layer", "no namespaces")
HELD = [
    (combination, launcher)
    for combination in COMBINATIONS
    for launcher in (LAUNCHERS if combination in WITH_EACH else (None,))
]
OPEN = {
    "no namespaces": {"reading: what is known of it"},
    "no namespaces but the user's": {"reading: what is known of it"},
}
"""The name, size and times of a file outside: the filter sees no path, and Landlock does not judge this."""


@pytest.fixture(scope="module")
def abilities(tmp_path_factory: pytest.TempPathFactory) -> Abilities:
    with Project(tmp_path_factory.mktemp("abilities")).open() as engine:
        jails = compose_jails(engine._parts.runners._settings)  # type: ignore[attr-defined]
        found = jails.abilities()
        jails.close()
    return found


@pytest.fixture(scope="module", params=HELD, ids=lambda pair: " in ".join(filter(None, pair)))
def held(request: pytest.FixtureRequest, abilities: Abilities) -> Iterator[tuple[str, Attack]]:
    combination, launcher = request.param
    native = is_native(launcher) if launcher else None
    layers = COMBINATIONS[combination]
    if not layers <= abilities.layers:
        pytest.skip(f"this machine lacks {', '.join(sorted(layers - abilities.layers))}")
    with prison(layers, native=native) as attack:
        assert attack("'this is how it looks if nothing stops it'").output.startswith("escaped")
        yield combination, attack


@pytest.mark.parametrize("name", ATTACKS)
def test_what_was_not_granted_cannot_be_done(held: tuple[str, Attack], name: str) -> None:
    combination, attack = held

    result = attack(ATTACKS[name])

    assert is_held(result) == (name not in OPEN.get(combination, ())), result


DANGEROUS = {"calls: reboot", "calls: swapon", "calls: kexec_load", "calls: init_module"}
"""Not tried where only the identity of the run would stop them."""
FAMILIES = {"network: IPv6", "network: netlink", "network: the hypervisor", "network: several paths"}
CALLS = {
    f"calls: {name}"
    for name in (
        "unshare", "clone into a namespace", "process_vm_readv", "io_uring_setup", "keyctl", "add_key", "userfaultfd",
        "personality", "memfd_secret", "a system call of 32 bits", "modify_ldt", "shared memory of System V",
    )
}  # fmt: skip
FILES = {
    f"reading: {name}"
    for name in (
        "a file outside", "a file outside by a relative path", "the users", "the project", "Glee's settings",
        "a link to it", "through the root of a process", "what is known of it", "the machine's settings", "devices",
        "a file outside by its parent's parent", "the host's time and again",
    )
}  # fmt: skip
FILTERED = {
    "writing: a file that makes others its owner",
    "writing: one that is made so",
    "writing: one that is made so without a name",
    "calls: a child for its parent",
}
ALONE = {
    "landlock": (
        frozenset({"landlock"}),
        FAMILIES
        | CALLS
        | FILTERED
        | {"network: a socket with a path, by one of a pair"}
        | {"reading: what is known of it", "network: a datagram to it", "network: a name server"}
        | {"processes: a signal through a file"},
    ),
    "the filter": (frozenset({"seccomp"}), FILES | {"processes: to see other processes"}),
    "namespaces": (
        NAMESPACES,
        FAMILIES
        | CALLS
        | FILTERED
        | {"processes: the limits of process one", "network: a server of its own", "calls: message queues"},
    ),
}
"""Layers, and what they leave open when they stand alone; some of it depends on who runs this and where."""
OF_ONESELF = {
    "landlock": {
        "network: a socket with a path", "processes: its limits", "processes: its priority", "writing: a time",
        "writing: an attribute",
    },
    "the filter": {
        "writing: a file outside", "writing: a length", "writing: its own module", "writing: the project",
        "writing: the tool itself",
    },
}  # fmt: skip
"""What is open too where the run is the very user to whom all of it belongs: not run by root."""
SOMETIMES = {
    "reading: home folders",
    "reading: root's home",
    "reading: their passwords",
    "reading: a hard link to it",
    "reading: private keys",
    "writing: a mode",
    "calls: perf_event_open",
    "calls: modify_ldt",
    "calls: a system call of 32 bits",
    "network: a name server",
    "calls: io_uring_setup",
    "calls: userfaultfd",
    "calls: memfd_secret",
    "calls: shared memory of System V",
    "network: the hypervisor",
    "network: several paths",
}


@pytest.mark.parametrize("layer", ALONE)
def test_each_layer_holds_alone_what_it_is_there_for(layer: str, abilities: Abilities) -> None:
    layers, expected = ALONE[layer]
    if not layers <= abilities.layers:
        pytest.skip(f"this machine lacks {', '.join(sorted(layers - abilities.layers))}")

    expected = expected | (OF_ONESELF.get(layer, set()) if os.getuid() else set())
    with prison(layers, leaks=True) as attack:
        names = ATTACKS.keys() - (set() if "seccomp" in layers else DANGEROUS)
        opened = {name for name in names if not is_held(attack(ATTACKS[name]))}

    assert opened - SOMETIMES == expected - SOMETIMES
