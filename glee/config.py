"""Settings: the only reader of environment variables and config files."""

from __future__ import annotations

import hashlib
import os
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from msgspec import Struct, structs

from glee.definitions.rules import NameRules
from glee.errors import ConfigError, ProjectNotFound

MANAGED_FILE: Final = Path("/etc/glee/config.yml")
PROJECT_FOLDER: Final = ".glee"


class Limits(Struct, frozen=True, kw_only=True):
    timeout_ms: int = 300_000
    output_chars: int = 100_000
    output_bytes: int = 32 * 1024 * 1024


class Egress(Struct, frozen=True, kw_only=True):
    resolve: dict[str, str] = {}
    ca_file: str | None = None


class Settings(Struct, frozen=True, kw_only=True):
    """Everything a wired engine depends on, apart from the values of secrets."""

    root: Path
    """The project root, the folder that holds `.glee/`; the working folder where there is no project."""
    has_project: bool
    state: Path
    """Approvals, claims, artifacts: outside every path a tool can be given."""
    cache: Path
    limits: Limits = Limits()
    rules: tuple[NameRules, ...] = ()
    egress: Egress = Egress()
    search_path: str = os.defpath
    """PATH for bare program names: absolute entries of Glee's own."""
    locale: dict[str, str] = {}
    """What a program needs to speak the person's language and time."""

    @property
    def folder(self) -> Path:
        return self.root / PROJECT_FOLDER

    @property
    def audit_file(self) -> Path:
        base = self.folder if self.has_project else self.state
        return base / "audit" / "tools.log"


def read_environment() -> Mapping[str, str]:
    """The live environment, from which secrets are read by name."""
    return os.environ


def find_root(start: Path | None = None) -> Path | None:
    """The nearest folder, from `start` upwards, that holds `.glee/`."""
    start = (start or Path.cwd()).resolve()
    for folder in (start, *start.parents):
        if (folder / PROJECT_FOLDER).is_dir():
            return folder
    return None


def get_root(start: Path | None = None) -> Path:
    root = find_root(start)
    if root is None:
        raise ProjectNotFound(
            f"no .glee folder in {(start or Path.cwd()).resolve()} or above it; run `glee init` to make one"
        )
    return root


def load_settings(root: Path | None = None, *, environ: Mapping[str, str] | None = None) -> Settings:
    """Settings for a project root; without one, for the working folder and no project."""
    environ = os.environ if environ is None else environ
    home = Path(environ.get("HOME") or "~").expanduser()
    base = root or Path.cwd().resolve()
    project = _project_id(base)
    settings = Settings(
        root=base,
        has_project=root is not None,
        state=_xdg(environ, "XDG_STATE_HOME", home / ".local/state") / "glee" / project,
        cache=_xdg(environ, "XDG_CACHE_HOME", home / ".cache") / "glee" / project,
        search_path=_absolute_entries(environ.get("PATH", os.defpath)),
        locale={name: environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ") if environ.get(name)},
    )
    person = _xdg(environ, "XDG_CONFIG_HOME", home / ".config") / "glee" / "config.yml"
    settings = _narrow(settings, MANAGED_FILE, may_widen=True)
    settings = _narrow(settings, person, may_widen=True)
    if root is not None:
        settings = _narrow(settings, root / PROJECT_FOLDER / "config.yml", may_widen=False)
    return settings


def _xdg(environ: Mapping[str, str], name: str, default: Path) -> Path:
    """The specification says that a relative path is to be ignored."""
    value = environ.get(name, "")
    return Path(value) if value.startswith("/") else default


def _project_id(root: Path) -> str:
    slug = re.sub(r"[^A-Za-z0-9._-]+", "-", root.name).strip("-.") or "root"
    return f"{slug[:40]}-{hashlib.sha256(bytes(root)).hexdigest()[:12]}"


def _absolute_entries(path: str) -> str:
    """A relative entry would let whoever writes to the working folder choose the program."""
    return ":".join(entry for entry in path.split(":") if entry.startswith("/")) or os.defpath


def _narrow(settings: Settings, file: Path, *, may_widen: bool) -> Settings:
    data = _read(file)
    if not data:
        return settings
    tools = data.get("tools") or {}
    egress = data.get("egress") or {}
    if egress and not may_widen:
        raise ConfigError(
            f"{file}: egress belongs in your own config, not in a project's; move it to ~/.config/glee/config.yml"
        )
    allow = tools.get("allow")
    rules = NameRules(
        source=str(file), allow=None if allow is None else tuple(allow), deny=tuple(tools.get("deny") or ())
    )
    return structs.replace(
        settings,
        rules=(*settings.rules, rules),
        limits=_lower(settings.limits, data.get("limits") or {}),
        egress=Egress(
            resolve={**(egress.get("resolve") or {}), **settings.egress.resolve},
            ca_file=settings.egress.ca_file or egress.get("ca_file"),
        ),
    )


def _lower(limits: Limits, wanted: Mapping[str, int]) -> Limits:
    return structs.replace(limits, **{name: min(getattr(limits, name), value) for name, value in wanted.items()})


def _read(file: Path) -> dict[str, Any]:
    """A config file as a mapping; empty if there is none. A broken one is an error: rules must not vanish."""
    try:
        raw = file.read_bytes()
    except (FileNotFoundError, NotADirectoryError):
        return {}
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}; mend its permissions") from error
    from glee.formats import yaml_text  # PyYAML is not needed where there is no config

    document = yaml_text.parse_bytes(raw)
    if document.value is None and [fault.rule for fault in document.faults] in ([], ["empty"]):
        return {}
    if document.faults:
        fault = document.faults[0]
        line, column = fault.place
        raise ConfigError(f"{file}:{line}:{column}: {fault.message}; {fault.hint}")
    from glee.schemas import load_schema
    from glee.schemas.validator import Validator

    validator = Validator(load_schema("config"))
    if not validator.is_valid(document.value):
        path, _, fault_found = validator.errors(document.value)[0]
        violation = validator.explain(fault_found)
        line, column = document.find_place(path)
        where = ".".join(map(str, path))
        raise ConfigError(
            f"{file}:{line}:{column}: {where + ': ' if where else ''}{violation.message}; {violation.hint}"
        )
    return document.value  # type: ignore[no-any-return]
