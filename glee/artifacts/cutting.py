"""Outputs cut to the limit: text with a notice, JSON as a smaller value that is still JSON."""

from __future__ import annotations

import unicodedata
from typing import Any

from glee.definitions.json_text import encode_json

_JOINER = "\u200d"
_ITEMS = 20
_STRING = 500


def cut_text(text: str, limit: int, handle: str | None) -> str:
    """The beginning, on a character boundary, and a notice that says how much is hidden and where it is."""
    end = limit
    while end > 0 and (_combines(text[end : end + 1]) or text[end - 1] == _JOINER):
        end -= 1
    hidden = len(text) - end
    notice = f"[output cut: {hidden:,} of {len(text):,} characters hidden; the whole {_where(handle)}]"
    return f"{text[:end]}\n{notice}"


def _where(handle: str | None) -> str:
    return f"is {handle}" if handle else "could not be kept"


def _combines(character: str) -> bool:
    """Joiners, marks and the second halves of pairs belong to the character before them."""
    return character == _JOINER or unicodedata.category(character)[0] == "M" or "\udc00" <= character <= "\udfff"


def preview_json(value: Any, characters: int, limit: int, handle: str | None) -> dict[str, Any]:
    """A valid JSON value that shows the beginning of a larger one and names the whole."""
    for items, string, depth in ((_ITEMS, _STRING, 6), (5, 100, 4), (2, 40, 2), (0, 0, 0)):
        preview = {
            "cut": True,
            "notice": f"{characters:,} characters are too many to return; the whole {_where(handle)}",
            "artifact": handle,
            "characters": characters,
            "preview": _shrink(value, items, string, depth),
        }
        if len(encode_json(preview)) <= limit:
            return preview
    return {"cut": True, "artifact": handle}


def _shrink(value: Any, items: int, string: int, depth: int) -> Any:
    if isinstance(value, str):
        return value if len(value) <= string else f"{value[:string]}… (+{len(value) - string:,} characters)"
    if isinstance(value, list):
        return _shrink_list(value, items, string, depth)
    if isinstance(value, dict):
        return _shrink_object(value, items, string, depth)
    return value


def _shrink_list(value: list[Any], items: int, string: int, depth: int) -> Any:
    if depth <= 0:
        return f"… ({len(value):,} items)"
    kept = [_shrink(item, items, string, depth - 1) for item in value[:items]]
    return [*kept, f"… (+{len(value) - items:,} items)"] if len(value) > items else kept


def _shrink_object(value: dict[str, Any], items: int, string: int, depth: int) -> Any:
    if depth <= 0:
        return f"… ({len(value):,} fields)"
    kept = {key: _shrink(item, items, string, depth - 1) for key, item in list(value.items())[:items]}
    return {**kept, "…": f"+{len(value) - items:,} fields"} if len(value) > items else kept
