"""What a machine lacks, and the one line that says how it would get it."""

from __future__ import annotations

import pytest

from glee.sandbox.compile import FULL, Abilities
from glee.sandbox.facts import Facts, read_facts
from glee.sandbox.remedies import LAYERS, advise_engine, explain_level, find_remedies, find_remedy

NAMESPACES = ("user", "mount", "pid", "ipc", "net")
UBUNTU = Facts(apparmor_restricts=True, interpreter="/usr/bin/python3.12")
DOCKER = Facts(container="Docker")


def abilities(*layers: str, landlock: int = 7) -> Abilities:
    return Abilities(machine="x86_64", layers=frozenset(layers), landlock=landlock, uid=1000, gid=1000)


@pytest.mark.parametrize("layer", NAMESPACES)
@pytest.mark.parametrize(
    ("facts", "parts"),
    [
        (Facts(user_namespaces=0), ["sysctl -w user.max_user_namespaces="]),
        (Facts(userns_clone=0), ["sysctl -w kernel.unprivileged_userns_clone=1"]),
        (
            UBUNTU,
            [
                "sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, or",
                'profile glee "/usr/bin/python3.12" flags=(unconfined) { userns, }',
                "> /etc/apparmor.d/glee && apparmor_parser -r",
            ],
        ),
        (DOCKER, ["a container of Docker", "--security-opt seccomp=unconfined,", "outside", "sandbox.mode: container"]),
        (Facts(container="Podman"), ["a container of Podman", "--security-opt seccomp=unconfined,"]),
        (Facts(container="a container"), ["Glee runs in a container: start that", "seccomp=unconfined"]),
        (
            Facts(container="Docker", profile="docker-default (enforce)"),
            ["--security-opt seccomp=unconfined --security-opt apparmor=unconfined,"],
        ),
        (Facts(container="Docker", apparmor_restricts=True), ["a container of Docker"]),
        (Facts(container="Docker", is_root=True), ["--user 1000 --security-opt seccomp=unconfined"]),
        (Facts(container="Docker", is_root=True, may_mount=True), ["with --security-opt seccomp=unconfined"]),
        (Facts(), ["CONFIG_USER_NS", "sandbox.mode: container"]),
        (Facts(system="Darwin"), ["this is Darwin", "sandbox.mode: container"]),
        (Facts(machine=None), ["x86_64 and aarch64", "sandbox.mode: container"]),
    ],
)
def test_missing_namespaces_have_a_remedy_for_each_reason(layer: str, facts: Facts, parts: list[str]) -> None:
    remedy = find_remedy(layer, facts)

    assert all(part in remedy for part in parts), remedy
    assert "\n" not in remedy


@pytest.mark.parametrize(
    ("layer", "facts", "part"),
    [
        ("landlock", Facts(kernel=(5, 10)), "since 5.13, and this is 5.10"),
        ("landlock", Facts(kernel=(6, 8), security_modules=("lockdown", "yama")), "lsm=landlock,lockdown,yama"),
        ("landlock", Facts(kernel=(6, 8), security_modules=("landlock",)), "CONFIG_SECURITY_LANDLOCK"),
        ("landlock", Facts(kernel=(6, 8)), "CONFIG_SECURITY_LANDLOCK"),
        ("landlock", Facts(system="Darwin"), "sandbox.mode: container"),
        ("seccomp", Facts(), "CONFIG_SECCOMP_FILTER"),
        ("group", Facts(has_systemd=True), "systemd-run --user --scope glee"),
        ("group", Facts(has_systemd=True, container="Docker"), "--pids-limit"),
        ("group", Facts(), "delegate a control group"),
        ("proc", DOCKER, "--security-opt seccomp=unconfined --security-opt systempaths=unconfined"),
        ("proc", Facts(container="Podman"), "--security-opt unmask=ALL"),
        ("proc", Facts(is_proc_masked=True), "mounted over parts of /proc"),
        ("proc", UBUNTU, "apparmor"),
    ],
)
def test_other_layers_have_theirs(layer: str, facts: Facts, part: str) -> None:
    assert part in find_remedy(layer, facts)


def test_what_is_there_needs_no_remedy() -> None:
    assert find_remedies(UBUNTU, abilities(*LAYERS)) == {}


def test_only_what_is_missing_has_one() -> None:
    assert list(find_remedies(UBUNTU, abilities("landlock", "seccomp", "group"))) == [
        "user", "mount", "pid", "proc", "ipc", "net",
    ]  # fmt: skip


@pytest.mark.parametrize("version", [1, 2])
def test_an_old_landlock_needs_a_newer_kernel_where_it_stands_alone(version: int) -> None:
    alone = find_remedies(Facts(), abilities("landlock", "seccomp", landlock=version))
    behind_mounts = find_remedies(Facts(), abilities(*LAYERS, landlock=version))

    assert f"version {version} here" in alone["landlock"] and "6.2" in alone["landlock"]
    assert behind_mounts == {}


@pytest.mark.parametrize(
    ("engines", "part"),
    [
        ({"docker": "silent", "podman": "answers"}, "podman answers"),
        ({"docker": "answers", "podman": "answers"}, "docker answers"),
        ({"docker": "silent", "podman": "missing"}, "docker is installed and does not answer"),
        ({"docker": "missing", "podman": "missing"}, "install Docker or Podman"),
    ],
)
def test_where_nothing_is_held_an_engine_would_help(engines: dict[str, str], part: str) -> None:
    assert part in advise_engine(engines)


@pytest.mark.parametrize(
    ("held", "parts"),
    [
        (abilities(*FULL), ["all that a manifest says is held", "network: {hosts: [...]} too"]),
        (abilities("landlock", "seccomp"), ["without ipc, mount, net, pid, user", "is refused", "would refuse"]),
        (abilities(*FULL - {"landlock"}), ["without landlock", "network: {hosts: [...]} is held"]),
        (abilities("seccomp"), ["none is run"]),
    ],
)
def test_a_level_is_told_by_what_it_means_for_tools(held: Abilities, parts: list[str]) -> None:
    assert all(part in explain_level(held) for part in parts)


def test_this_machine_says_what_it_is() -> None:
    facts = read_facts()

    assert facts.system == "Linux"
    assert facts.machine in ("x86_64", "aarch64")
    assert facts.kernel >= (4, 0)
    assert facts.interpreter.startswith("/")
    assert facts.is_root or not facts.may_mount
