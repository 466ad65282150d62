"""Settings: the only reader of environment variables and config files."""

from __future__ import annotations

import hashlib
import os
import re
import stat
from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any, Final

import msgspec
from msgspec import UNSET, Meta, Struct, UnsetType, structs

from glee.definitions.permissions import Files
from glee.definitions.rules import NameRules
from glee.definitions.sandbox import SPELLINGS, Sandbox, SandboxPart, narrow_sandbox
from glee.errors import ConfigError, ProjectNotFound

MANAGED_FILE: Final = Path("/etc/glee/config.yml")
PROJECT_FOLDER: Final = ".glee"
MAX_BYTES: Final = 1_048_576

_ENGINE_NAMES: Final = (
    *("HOME", "PATH", "XDG_RUNTIME_DIR", "XDG_CONFIG_HOME", "XDG_DATA_HOME", "DBUS_SESSION_BUS_ADDRESS"),
    *("DOCKER_HOST", "DOCKER_CONTEXT", "DOCKER_CONFIG", "DOCKER_CERT_PATH", "DOCKER_TLS_VERIFY"),
    *("CONTAINER_HOST", "CONTAINERS_CONF", "CONTAINERS_STORAGE_CONF"),
)

_Word = Annotated[str, Meta(min_length=1)]


class Limits(Struct, frozen=True, kw_only=True):
    timeout_ms: int = 300_000
    output_chars: int = 100_000
    output_bytes: int = 32 * 1024 * 1024


class Egress(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    resolve: dict[str, str] = {}
    ca_file: str | None = None


class _Tools(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    allow: tuple[_Word, ...] | UnsetType = UNSET
    deny: tuple[_Word, ...] = ()


class _Limits(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    timeout_ms: Annotated[int, Meta(ge=1, le=86_400_000)] | UnsetType = UNSET
    output_chars: Annotated[int, Meta(ge=200)] | UnsetType = UNSET
    output_bytes: Annotated[int, Meta(ge=1024)] | UnsetType = UNSET

    def said(self) -> dict[str, int]:
        return {name: value for name, value in structs.asdict(self).items() if value is not UNSET}


class _Ceiling(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    network: bool = False
    fs: Files = Files()
    secrets: tuple[str, ...] = ()


class _Security(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    max_permissions: _Ceiling = _Ceiling()


class _File(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One config file, as `config.schema.json` publishes it."""

    tools: _Tools = _Tools()
    limits: _Limits = _Limits()
    egress: Egress = Egress()
    security: _Security = _Security()
    sandbox: SandboxPart = SandboxPart()


class Settings(Struct, frozen=True, kw_only=True):
    """Everything a wired engine depends on, apart from the values of secrets."""

    root: Path
    """The project root, the folder that holds `.glee/`; the working folder where there is no project."""
    has_project: bool
    state: Path
    """Approvals, claims, artifacts: outside every path a tool can be given."""
    cache: Path
    limits: Limits = Limits()
    limits_said: frozenset[str] = frozenset()
    """The limits that some file spoke of."""
    rules: tuple[NameRules, ...] = ()
    egress: Egress = Egress()
    sandbox: Sandbox = Sandbox()
    person: Path = Path("/nonexistent/glee/config.yml")
    """The person's own config file, whether or not it is there."""
    search_path: str = os.defpath
    """PATH for bare program names: absolute entries of Glee's own."""
    locale: dict[str, str] = {}
    """What a program needs to speak the person's language and time."""
    engine_environ: dict[str, str] = {}
    """What a container engine's client needs to find its engine."""

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
    home = _home(environ)
    base = root or Path.cwd().resolve()
    project = _project_id(base)
    settings = Settings(
        root=base,
        has_project=root is not None,
        state=_xdg(environ, "XDG_STATE_HOME", home / ".local/state") / "glee" / project,
        cache=_xdg(environ, "XDG_CACHE_HOME", home / ".cache") / "glee" / project,
        search_path=_absolute_entries(environ.get("PATH", os.defpath)),
        locale={name: environ[name] for name in ("LANG", "LC_ALL", "LC_CTYPE", "TZ") if environ.get(name)},
        engine_environ={name: environ[name] for name in _ENGINE_NAMES if environ.get(name)},
    )
    person = _xdg(environ, "XDG_CONFIG_HOME", home / ".config") / "glee" / "config.yml"
    settings = structs.replace(settings, person=person)
    settings = _narrow(settings, MANAGED_FILE, may_widen=True)
    settings = _narrow(settings, person, may_widen=True)
    if root is not None:
        settings = _narrow(settings, root / PROJECT_FOLDER / "config.yml", may_widen=False)
    return settings


def _home(environ: Mapping[str, str]) -> Path:
    try:
        return Path(environ.get("HOME") or "~").expanduser()
    except RuntimeError as error:
        raise ConfigError("this user has no home folder; set HOME to a folder that Glee may write to") from error


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
    part = _read(file)
    if part is None or part == _File():
        return settings
    egress = part.egress
    if egress != Egress() and not may_widen:
        raise ConfigError(
            f"{file}: egress belongs in your own config, not in a project's; move it to ~/.config/glee/config.yml"
        )
    _check_addresses(file, egress)
    if egress.ca_file is not None:
        egress = structs.replace(egress, ca_file=str(_find_file(file, "egress.ca_file", egress.ca_file)))
    allow = None if isinstance(part.tools.allow, UnsetType) else part.tools.allow
    limits = part.limits.said()
    return structs.replace(
        settings,
        rules=(*settings.rules, NameRules(source=str(file), allow=allow, deny=part.tools.deny)),
        limits=_limit(settings, limits, may_raise=may_widen),
        limits_said=settings.limits_said | limits.keys(),
        sandbox=narrow_sandbox(settings.sandbox, part.sandbox, source=str(file), may_widen=may_widen),
        egress=Egress(
            resolve={**egress.resolve, **settings.egress.resolve},
            ca_file=settings.egress.ca_file or egress.ca_file,
        ),
    )


def _limit(settings: Settings, wanted: Mapping[str, int], *, may_raise: bool) -> Limits:
    """The first file of a person or an organisation to speak of a limit sets it; later ones can only lower it."""
    limits = {
        name: value if may_raise and name not in settings.limits_said else min(getattr(settings.limits, name), value)
        for name, value in wanted.items()
    }
    return structs.replace(settings.limits, **limits)


def _find_file(config: Path, field: str, name: str) -> Path:
    """A file that a config names, from the config's own folder."""
    path = config.parent / name
    if not path.is_file():
        raise ConfigError(f"{config}: {field}: there is no file {path}; correct the path")
    return path


def _check_addresses(file: Path, egress: Egress) -> None:
    if not egress.resolve:
        return
    from glee.definitions.url import parse_address  # most configs name no address

    for host, address in egress.resolve.items():
        try:
            parse_address(address)
        except ValueError as error:
            raise ConfigError(f"{file}: egress.resolve: {host}: {error}; write it as 127.0.0.1:8443") from error


def _read(file: Path) -> _File | None:
    """What a config file says; None if there is none. A broken one is an error: rules must not vanish."""
    try:
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise ConfigError(f"{file} is not a file; remove it, or write a config there")
        with file.open("rb") as stream:
            raw = stream.read(MAX_BYTES + 1)
    except (FileNotFoundError, NotADirectoryError):
        if file.is_symlink():
            raise ConfigError(f"{file} is a link that leads nowhere; mend it, or remove it") from None
        return None
    except OSError as error:
        raise ConfigError(f"{file}: cannot be read: {error.strerror}; mend its permissions") from error
    from glee.formats import yaml_text  # PyYAML is not needed where there is no config

    document = yaml_text.parse_bytes(raw)
    if document.value is None and [fault.rule for fault in document.faults] in ([], ["empty"]):
        return None
    if document.faults:
        fault = document.faults[0]
        line, column = fault.place
        raise ConfigError(f"{file}:{line}:{column}: {fault.message}; {fault.hint}")
    try:
        return msgspec.convert(_spell(document.value, file), _File)
    except msgspec.ValidationError as error:
        raise ConfigError(_explain(file, document, error)) from error


def _spell(value: Any, file: Path) -> Any:
    """One name for each setting of the sandbox."""
    sandbox = value.get("sandbox") if isinstance(value, dict) else None
    if not isinstance(sandbox, dict):
        return value
    for other, ours in SPELLINGS.items():
        if other in sandbox and ours in sandbox:
            raise ConfigError(f"{file}: sandbox.{other} and sandbox.{ours} are the same; remove one")
    return {**value, "sandbox": {SPELLINGS.get(key, key): part for key, part in sandbox.items()}}


def _explain(file: Path, document: Any, error: Exception) -> str:
    """The published schema says it better, and is only loaded when something is wrong."""
    from glee.schemas import load_schema
    from glee.schemas.validator import Validator

    validator = Validator(load_schema("config"))
    faults = validator.errors(document.value)
    if not faults:
        return f"{file}: {error}"
    path, _, fault = faults[0]
    violation = validator.explain(fault)
    unexpected = getattr(fault.kind, "unexpected", ())
    line, column = document.find_place((*path, *unexpected[:1]), key=bool(unexpected))
    where = ".".join(map(str, path))
    return f"{file}:{line}:{column}: {where + ': ' if where else ''}{violation.message}; {violation.hint}"
