"""A function's definition as a package tells it from its jail, and what is made of it."""

from __future__ import annotations

import dataclasses
import json
from typing import Literal

from msgspec import structs

import glee
from glee.definitions.tool import Origin, PackageExec, PackageSite, Tool
from glee.formats.described import MODULE, find_faults, find_name, to_package_tool, to_probe
from glee.formats.entry_point import to_manifest

SITE = PackageSite(own=("/lib/acme.py",))


@dataclasses.dataclass
class Place:
    city: str


@glee.tool(
    name="all.of_it",
    version="2.0",
    group="web",
    permissions={
        "network": {"hosts": ["api.example.com"]},
        "fs": {"read": ["data"]},
        "secrets": {"TOKEN": {"type": "string", "required": False, "description": "From the site."}},
    },
    approval="It speaks to the outside.",
    examples=[{"description": "Rome", "params": {"place": {"city": "Rome"}}, "expected_output": {"city": "Rome"}}],
    dangerous=True,
    idempotent=True,
    timeout_ms=1000,
)
def everything(place: Place, unit: Literal["m", "ft"] = "m", *, context: glee.Context) -> dict[str, str]:
    """Tell all.

    Args:
        place: Where.
    """
    return {"city": place.city}


@glee.tool
def least() -> None:
    """Do nothing."""


def carry(tool: Tool) -> Tool:
    """Told as JSON, read back."""
    told = json.loads(json.dumps(to_manifest(tool)))
    assert find_faults(told) == []
    return to_package_tool(told, package="acme", target="acme:tools", site=SITE)


def test_a_definition_that_was_carried_is_the_same_but_for_how_it_is_run() -> None:
    for tool in (everything.definition, least.definition):
        carried = carry(tool)
        execution = PackageExec(
            module=MODULE,
            function=f"acme:tools#{tool.name}",
            returns="json",
            timeout_ms=tool.exec.timeout_ms,
            target="acme:tools",
            site=SITE,
        )
        expected = structs.replace(
            tool,
            kind="python",
            exec=execution,
            origin=Origin(source="package", location="acme"),
            digest=carried.digest,
        )
        assert structs.asdict(carried) == structs.asdict(expected)


def test_the_digest_changes_with_whatever_a_person_would_be_asked_about() -> None:
    told = to_manifest(everything.definition)
    digests = {
        to_package_tool(said, package=package, target="acme:tools", site=SITE).digest
        for said in (told, {**told, "permissions": {"network": True}}, {**told, "description": "Other."})
        for package in ("acme", "acme-two")
    }

    assert len(digests) == 6


def test_a_probe_may_touch_nothing() -> None:
    probe = to_probe("all", package="acme", target="acme:tools", site=SITE)

    assert probe.permissions == type(probe.permissions)()
    assert isinstance(probe.exec, PackageExec)
    assert (probe.exec.function, probe.exec.args) == ("describe", ("acme:tools",))


def test_a_broken_definition_is_listed_under_its_name_if_it_has_one() -> None:
    assert [find_name(told) for told in ({"name": "a.b"}, {"name": "../a"}, {"name": 7}, {}, 7)] == [
        "a.b",
        None,
        None,
        None,
        None,
    ]
