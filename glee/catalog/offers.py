"""What a package said of its tools, which is anybody's word, as definitions that have been checked."""

from __future__ import annotations

from typing import Any, Final

from glee.catalog.entry_points import EntryPoint
from glee.catalog.package_cache import Offer
from glee.catalog.source import Summary
from glee.definitions.json_text import encode_json
from glee.definitions.problem import Problem
from glee.errors import CallError, SandboxUnavailable, TimedOut, TooLarge

_SHOWN: Final = 500
_MOST_TOOLS: Final = 200
_MEND: Final = "mend or uninstall the package"
_IMPORT: Final = f"{_MEND}: it is imported where there is no network, and no file but its own"


def read_offers(point: EntryPoint, said: Any) -> list[Offer]:
    if not isinstance(said, list) or len(said) > _MOST_TOOLS:
        return [broken(point, f"the entry point {point.value} does not give a list of at most {_MOST_TOOLS} tools")]
    offers: dict[str, Offer] = {}
    for told in said:
        offer = _read_offer(point, told)
        offers.setdefault(offer.summary.name, offer)
    return list(offers.values())


def _read_offer(point: EntryPoint, told: Any) -> Offer:
    from glee.formats.described import find_faults, find_name, to_field

    try:
        faults = find_faults(told)
    except (RecursionError, ValueError) as error:
        return broken(point, f"a definition cannot be read: {error}", name=find_name(told))
    if faults:
        field = to_field(faults[0])
        reason = f"{field + ': ' if field else ''}{faults[0].message}"
        return broken(point, reason, faults[0].hint, name=find_name(told))
    summary = Summary(
        name=told["name"],
        description=told["description"],
        kind="python",
        group="web" if told.get("group") == "net" else told.get("group"),
        approval=(told.get("approval") or {}).get("required", False),
        dangerous=told.get("dangerous", False),
        origin=f"package {point.package}",
    )
    return Offer(summary, encode_json(told))


def explain(point: EntryPoint, error: CallError) -> Offer:
    """Why a package could not be asked, and what to do."""
    if isinstance(error, SandboxUnavailable):
        hint = f"uninstall it, or trust it in your own config: sandbox: {{trust: [{point.package}]}}"
        return broken(point, f"it was not loaded, because it could not be held: {error.message}", hint)
    reason = error.message
    if isinstance(error, TimedOut):
        reason = f"importing it took longer than {error.details['timeout_ms'] / 1000:g} s"
    elif isinstance(error, TooLarge):
        reason = f"importing it wrote more than {error.details['limit']:,} bytes"
    elif "type" in error.details:
        reason = f"{error.details['type']}: {error.details['message']}"
    return broken(point, f"the entry point {point.value} cannot be loaded: {reason}", _IMPORT)


def broken(point: EntryPoint, reason: str, hint: str = _MEND, *, name: str | None = None) -> Offer:
    reason = reason if len(reason) <= _SHOWN else f"{reason[:_SHOWN]}…"
    problem = Problem(file=point.package, line=1, column=1, field=point.name, rule="package", message=reason, hint=hint)
    return Offer(Summary(name=name or point.name, origin=f"package {point.package}", broken=reason), problem=problem)
