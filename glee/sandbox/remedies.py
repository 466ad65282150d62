"""What to install or set so that a layer that is missing would be there: one line for each."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import Final

from glee.sandbox.compile import FULL, Abilities
from glee.sandbox.facts import Facts

LAYERS: Final = ("user", "mount", "pid", "proc", "ipc", "net", "landlock", "seccomp", "group")
_NAMESPACES: Final = frozenset({"user", "mount", "pid", "ipc", "net"})
_LANDLOCK_SINCE: Final = (5, 13)
_FILES_SINCE: Final = 3
"""The version of Landlock that can hold files without the mount namespace."""
_IN_A_CONTAINER: Final = "set sandbox.mode: container in your own config, with Docker or Podman"


def find_remedies(facts: Facts, abilities: Abilities) -> dict[str, str]:
    """For each layer that is missing, or too old, what would help."""
    missing = [layer for layer in LAYERS if layer not in abilities.layers]
    remedies = {layer: find_remedy(layer, facts) for layer in missing}
    if _is_too_old(abilities):
        remedies["landlock"] = (
            f"Landlock has version {abilities.landlock} here; to hold files without namespaces it needs version "
            f"{_FILES_SINCE}, which Linux has since 6.2"
        )
    return remedies


def _is_too_old(abilities: Abilities) -> bool:
    return {"landlock"} <= abilities.layers and "mount" not in abilities.layers and abilities.landlock < _FILES_SINCE


def find_remedy(layer: str, facts: Facts) -> str:
    if facts.system != "Linux":
        return f"the layers are Linux's, and this is {facts.system}: {_IN_A_CONTAINER}"
    if facts.machine is None:
        return f"only x86_64 and aarch64 of 64 bits can be held: {_IN_A_CONTAINER}"
    if layer in _NAMESPACES:
        return _for_namespaces(facts)
    return {"proc": _for_proc, "landlock": _for_landlock, "seccomp": _for_seccomp, "group": _for_group}[layer](facts)


def _for_namespaces(facts: Facts) -> str:
    if facts.user_namespaces == 0:
        return "allow user namespaces: sysctl -w user.max_user_namespaces=15000"
    if facts.container is not None:
        return f"{_start_with(facts, *_unconfined(facts))}, run Glee outside of it, or {_IN_A_CONTAINER}"
    if facts.userns_clone == 0:
        return "let ordinary users make user namespaces: sysctl -w kernel.unprivileged_userns_clone=1"
    if facts.apparmor_restricts:
        return (
            "AppArmor takes the rights from user namespaces: sysctl -w kernel.apparmor_restrict_unprivileged_userns=0, "
            f"or for Glee's interpreter alone: echo '{_write_profile(facts.interpreter)}' > /etc/apparmor.d/glee && "
            "apparmor_parser -r /etc/apparmor.d/glee"
        )
    return f"the kernel must let this user make namespaces (CONFIG_USER_NS and its siblings), or {_IN_A_CONTAINER}"


def _unconfined(facts: Facts) -> tuple[str, ...]:
    """AppArmor's profile for containers forbids mounts."""
    return ("seccomp=unconfined", *(("apparmor=unconfined",) if facts.profile else ()))


def _start_with(facts: Facts, *options: str) -> str:
    """Root of a container may not mount there, while an ordinary user can in a namespace of their own."""
    words = [f"--security-opt {option}" for option in options]
    if facts.is_root and not facts.may_mount:
        words.insert(0, "--user 1000")
    place = "a container" if facts.container == "a container" else f"a container of {facts.container}"
    return f"Glee runs in {place}: start that with {' '.join(words)}"


def _write_profile(interpreter: str) -> str:
    return f'abi <abi/4.0>, profile glee "{interpreter}" flags=(unconfined) {{ userns, }}'


def _for_proc(facts: Facts) -> str:
    without = "jails have no /proc until then"
    if facts.container is not None:
        unmasked = "unmask=ALL" if facts.container == "Podman" else "systempaths=unconfined"
        return f"{_start_with(facts, *_unconfined(facts), unmasked)}; {without}"
    if facts.is_proc_masked:
        return f"something is mounted over parts of /proc (findmnt -R /proc); unmount it, or {without}"
    return _for_namespaces(facts)


def _for_landlock(facts: Facts) -> str:
    if facts.kernel < _LANDLOCK_SINCE:
        return f"Landlock is in Linux since 5.13, and this is {'.'.join(map(str, facts.kernel))}: use a newer kernel"
    modules = facts.security_modules
    if modules is not None and "landlock" not in modules:
        return f"start the kernel with lsm=landlock,{','.join(modules)} on its command line"
    return "use a kernel that has Landlock (CONFIG_SECURITY_LANDLOCK), with landlock first in lsm= on its command line"


def _for_seccomp(facts: Facts) -> str:
    return f"use a kernel with system call filters (CONFIG_SECCOMP_FILTER), or {_IN_A_CONTAINER}"


def _for_group(facts: Facts) -> str:
    if facts.container is not None:
        return "bound the container as a whole, as with --memory 4g --pids-limit 1000; each process is bounded by Glee"
    if facts.has_systemd:
        return "start Glee so that it has a control group of its own: systemd-run --user --scope glee ..."
    return "delegate a control group with memory and pids to this user; until then each process is bounded alone"


def advise_engine(engines: Mapping[str, str]) -> str:
    """For a machine that cannot hold anything itself."""
    for name in ("docker", "podman"):
        if engines.get(name) == "answers":
            return f"{name} answers: set sandbox.mode: container in your own config"
    for name in ("docker", "podman"):
        if engines.get(name) == "silent":
            return f"{name} is installed and does not answer: start it, or let this user use it"
    return "install Docker or Podman, and set sandbox.mode: container in your own config"


def explain_level(abilities: Abilities) -> str:
    """What the level means for tools."""
    if abilities.level == "full":
        return "all that a manifest says is held, network: {hosts: [...]} too; sandbox.minimum: full is met"
    hosts = "is held" if can_hold_hosts(abilities.layers) else "is refused"
    if abilities.level == "reduced":
        missing = ", ".join(sorted(FULL - abilities.layers))
        return (
            f"files and network are held without {missing}; network: {{hosts: [...]}} {hosts}; "
            "sandbox.minimum: full would refuse every program"
        )
    return "programs and Python tools cannot be held, so none is run"


def can_hold_hosts(layers: Collection[str]) -> bool:
    return {"mount", "net"} <= set(layers)


LIMITS: Final[Mapping[str, str]] = {
    "group": "a control group bounds memory and processes of a whole run",
    "process": "each process is bounded alone: a run of many processes gets the sum",
}
