"""What a tool may touch. Policy judges these values and the sandbox holds them."""

from __future__ import annotations

from typing import Literal

from msgspec import Struct


class Hosts(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A network that ends at these hosts: `api.example.com`, `*.example.org:443`."""

    hosts: tuple[str, ...]


class Files(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Paths from the project root, or absolute. An empty tuple means none."""

    read: tuple[str, ...] = ()
    write: tuple[str, ...] = ()


class SecretNeed(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A secret that a tool asks for by the name of its environment variable."""

    type: Literal["string"] = "string"
    required: bool = True
    description: str = ""
    host: str | None = None
    """The host it belongs to: the tool holds a placeholder, and the value is put into requests to this host alone."""


class Permissions(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Least privilege by default: no network, no files, no secrets."""

    network: bool | Hosts = False
    fs: Files = Files()
    secrets: dict[str, SecretNeed] = {}
