"""New tools, laid whole or not at all: a manifest that lints and whatever it needs to run."""

from __future__ import annotations

import keyword
import os
import re
import shutil
import sys
import tempfile
from pathlib import Path
from typing import Final, Literal

from glee.errors import DefinitionError
from glee.schemas import load_schema

ScaffoldKind = Literal["http", "command", "python"]
_NOT_TEXT: Final = frozenset(("y", "n", "yes", "no", "on", "off", "true", "false", "null"))
_HERE: Final = Path(__file__).parent / "scaffolds"

CONFIG: Final = """\
# Settings of this project. Each line can only narrow what your own config
# (~/.config/glee/config.yml) and your organisation's (/etc/glee/config.yml) allow.

tools:
  deny: []          # names or patterns of tools that cannot be used here, such as "old_*"

limits:
  timeout_ms: 300000      # how long a tool may run if its manifest sets no time
  output_chars: 100000    # longer outputs are cut, and kept whole as an artifact
"""


def check_name(name: str) -> None:
    """A name that can be a folder, a word in a manifest, and a tool."""
    pattern = load_schema("tool")["properties"]["name"]["pattern"]
    plain = re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,127}", name)
    if not plain or not re.search(pattern, name):
        raise DefinitionError(
            f"{name[:60]!r} is no name that `glee new` gives; use letters, digits, _ . and -, at most 128 of them, "
            "and begin with a letter, a digit or _"
        )


def write_tool(tools: Path, name: str, kind: ScaffoldKind) -> Path:
    """Makes `tools/<name>/` from the scaffold of a kind, and returns the manifest's path."""
    check_name(name)
    folder = tools / name
    if folder.exists():
        raise DefinitionError(f"{folder} already exists; choose another name, or remove it first")
    tools.mkdir(parents=True, exist_ok=True)
    draft = make_draft(tools, name)
    try:
        for source in sorted(_HERE.glob(f"{kind}.*")):
            target = draft / source.name.removeprefix(f"{kind}.").replace("@MODULE@", _module(name))
            text = source.read_text().replace("name: @NAME@", f"name: {_quoted(name)}")
            text = text.replace("@NAME@", name).replace("@MODULE@", _module(name))
            target.write_text(text)
            if target.suffix == ".sh":
                target.chmod(0o755)
        draft.rename(folder)
    except OSError:
        shutil.rmtree(draft, ignore_errors=True)
        raise
    return folder / "tool.yml"


def make_draft(folder: Path, name: str) -> Path:
    """A folder that nobody else has, in which something is laid before it gets its name."""
    try:
        draft = Path(tempfile.mkdtemp(prefix=f".{name.lstrip('.')}.", suffix=".draft", dir=folder))
    except OSError as error:
        raise DefinitionError(f"nothing can be made in {folder}: {error.strerror}") from error
    draft.chmod(0o777 & ~_umask())
    return draft


def _umask() -> int:
    mask = os.umask(0o022)
    os.umask(mask)
    return mask


def _quoted(name: str) -> str:
    """For YAML, in which 123, 1e3, no and null are not text."""
    return name if re.match(r"[A-Za-z_]", name) and name.lower() not in _NOT_TEXT else f'"{name}"'


def _module(name: str) -> str:
    """A module's name that is not one of Python's own."""
    word = re.sub(r"\W", "_", name)
    taken = word in sys.stdlib_module_names or keyword.iskeyword(word) or not word.isidentifier()
    taken = taken or word.lower() in _NOT_TEXT
    return f"tool_{word}" if taken else word
