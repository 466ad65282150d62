"""What holds programs and Python tools, as settings have it, and how one config file narrows what stands above it."""

from __future__ import annotations

import re
from typing import Annotated, Final, Literal

from msgspec import UNSET, Meta, Struct, UnsetType, structs

from glee.definitions.bounds import Bounds
from glee.errors import ConfigError

Mode = Literal["native", "container", "nsjail", "off"]
Minimum = Literal["full", "reduced"]
ContainerEngine = Literal["docker", "podman"]
SPELLINGS: Final = {
    "bindMounts": "bind_mounts",
    "networkAccess": "network_access",
    "maxMemoryMb": "max_memory_mb",
    "maxCpuPercent": "max_cpu_percent",
}
"""The same settings, as other systems write them."""
_PERSONS: Final = ("engine", "image", "bind_mounts")


class Bind(Struct, frozen=True, kw_only=True):
    """A folder or file of the machine that every container sees."""

    source: str
    target: str
    writable: bool


class Sandbox(Struct, frozen=True, kw_only=True):
    mode: Mode = "native"
    minimum: Minimum = "reduced"
    limits: Bounds = Bounds()
    engine: ContainerEngine | None = None
    image: str | None = None
    bind_mounts: tuple[Bind, ...] = ()
    network_access: bool = True
    trust: frozenset[str] = frozenset()
    """Packages whose code runs in Glee's own process, by their normalised names."""
    said: frozenset[str] = frozenset()
    """What some file of an organisation or a person spoke of."""


class LimitsPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    memory_mb: Annotated[int, Meta(ge=16)] | UnsetType = UNSET
    processes: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    open_files: Annotated[int, Meta(ge=16)] | UnsetType = UNSET
    file_mb: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    cpu_seconds: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    cpu_percent: Annotated[int, Meta(ge=1)] | UnsetType = UNSET
    tmp_mb: Annotated[int, Meta(ge=1)] | UnsetType = UNSET


class SandboxPart(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What one config file says of it."""

    mode: Literal["native", "container", "docker", "nsjail", "off"] | UnsetType = UNSET
    minimum: Minimum | UnsetType = UNSET
    limits: LimitsPart = LimitsPart()
    engine: ContainerEngine | UnsetType = UNSET
    image: Annotated[str, Meta(pattern=r"^[A-Za-z0-9][A-Za-z0-9_./:@-]*$")] | UnsetType = UNSET
    bind_mounts: tuple[str, ...] | UnsetType = UNSET
    network_access: bool | UnsetType = UNSET
    trust: tuple[Annotated[str, Meta(pattern=r"^[A-Za-z0-9]([A-Za-z0-9._-]*[A-Za-z0-9])?$")], ...] | UnsetType = UNSET
    max_memory_mb: Annotated[int, Meta(ge=16)] | UnsetType = UNSET
    max_cpu_percent: Annotated[int, Meta(ge=1)] | UnsetType = UNSET

    def said(self) -> frozenset[str]:
        own = (name for name, value in structs.asdict(self).items() if value is not UNSET and name != "limits")
        return frozenset((*own, *self.bounds()))

    def bounds(self) -> dict[str, int]:
        """Limits, by either of their names."""
        said = {name: value for name, value in structs.asdict(self.limits).items() if value is not UNSET}
        for name, value in (("memory_mb", self.max_memory_mb), ("cpu_percent", self.max_cpu_percent)):
            if not isinstance(value, UnsetType):
                said[name] = min(value, said.get(name, value))
        return said


def narrow_sandbox(above: Sandbox, part: SandboxPart, *, source: str, may_widen: bool) -> Sandbox:
    """The first file of an organisation or a person to speak of a setting sets it; later ones can only narrow it."""
    if not may_widen:
        _check_project(part, source)
    free = part.said() - above.said if may_widen else frozenset()
    changes: dict[str, object] = {}
    mode = _mode(part)
    if mode is not None and ("mode" in free or above.mode == "off"):
        changes["mode"] = mode
    for name in ("engine", "image"):
        if name in free:
            changes[name] = getattr(part, name)
    if "bind_mounts" in free and not isinstance(part.bind_mounts, UnsetType):
        changes["bind_mounts"] = tuple(parse_bind(text, source) for text in part.bind_mounts)
    if not isinstance(part.network_access, UnsetType):
        changes["network_access"] = above.network_access and part.network_access
    if not isinstance(part.trust, UnsetType):
        names = frozenset(map(normalise_package, part.trust))
        is_held = "mode" in above.said and above.mode != "off"  # whoever asked for the sandbox meant all of it
        changes["trust"] = names if "trust" in free and not is_held else names & above.trust
    if part.minimum == "full":
        changes["minimum"] = "full"
    bounds = part.bounds()
    raised = structs.replace(above.limits, **{name: value for name, value in bounds.items() if name in free})
    changes["limits"] = raised.narrow(bounds)
    said = above.said | part.said() if may_widen else above.said
    return structs.replace(above, **changes, said=said)


def normalise_package(name: str) -> str:
    """As names of packages are compared (PEP 503)."""
    return re.sub(r"[-_.]+", "-", name).lower()


def parse_bind(text: str, source: str) -> Bind:
    """`host`, `host:container` or `host:container:rw`; for reading unless it says otherwise."""
    host, *rest = text.split(":")
    target = rest[0] if rest else host
    way = rest[1] if len(rest) > 1 else "ro"
    if len(rest) > 2 or way not in ("ro", "rw") or not (host.startswith("/") and target.startswith("/")):
        raise ConfigError(
            f"{source}: sandbox.bind_mounts: {text} is not understood; write /on/this/machine:/in/the/container:ro"
        )
    return Bind(source=host, target=target, writable=way == "rw")


def _mode(part: SandboxPart) -> Mode | None:
    if isinstance(part.mode, UnsetType):
        return None
    return "container" if part.mode == "docker" else part.mode


def _check_project(part: SandboxPart, source: str) -> None:
    if part.mode == "off":
        raise ConfigError(f"{source}: only your own config can turn the sandbox off: ~/.config/glee/config.yml")
    if part.mode not in (UNSET, "native"):
        raise ConfigError(
            f"{source}: only your own config can choose sandbox.mode: {part.mode}; "
            "move it to ~/.config/glee/config.yml, or write native here"
        )
    if "trust" in part.said():
        raise ConfigError(f"{source}: only your own config can trust a package: ~/.config/glee/config.yml")
    for name in _PERSONS:
        if name in part.said():
            raise ConfigError(
                f"{source}: sandbox.{name} belongs in your own config, not in a project's; "
                "move it to ~/.config/glee/config.yml"
            )
