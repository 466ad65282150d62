"""A tool: what it is called, what it takes, what it gives, how it is run and what it may touch."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Literal

from msgspec import UNSET, Struct, field

from glee.definitions.permissions import Permissions

Kind = Literal["http", "command", "python", "function"]
Format = Literal["json", "text"]
Schema = dict[str, Any]

GROUPS = (
    "fs", "runtime", "web", "browser", "memory", "system", "automation", "messaging", "introspection",
    "sessions", "gmail", "gcal", "gdocs", "gdrive", "gtasks", "cron", "minio", "k8s",
)  # fmt: skip


class Outputs(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The declared form of a tool's output. A mismatch is a warning, never a lost result."""

    format: Format = "text"
    schema: Schema | bool | None = None


class Approval(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Whether a person must say yes to each call, and why."""

    required: bool = False
    reason: str = ""


class Example(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A call that shows how the tool is used; `glee test` runs it."""

    description: str = ""
    params: dict[str, Any] = {}
    expected_output: Any = UNSET


class Projection(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One field of the shaped response: read at `path`, returned as `name`."""

    name: str
    path: str


class Response(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What of an HTTP response becomes the output."""

    json_path: str | None = None
    fields: tuple[Projection, ...] = ()


class HttpExec(Struct, frozen=True, kw_only=True, tag="http", forbid_unknown_fields=True):
    """One HTTP request that Glee makes itself."""

    url: str
    method: str = "GET"
    headers: dict[str, Any] = {}
    query: dict[str, Any] = {}
    body: Any = None
    response: Response = Response()
    timeout_ms: int | None = None


class Stdout(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """How a command's standard output is read."""

    format: Format = "text"


class CommandExec(Struct, frozen=True, kw_only=True, tag="command", forbid_unknown_fields=True):
    """A program and its arguments; never a shell."""

    entrypoint: str
    args: tuple[Any, ...] = ()
    cwd: str = "."
    stdout: Stdout | None = None
    exit_codes_ok: tuple[int, ...] = (0,)
    timeout_ms: int | None = None


class PythonExec(Struct, frozen=True, kw_only=True, tag="python", rename={"returns": "return"}):
    """A function of a module, run by an interpreter of its own."""

    module: str
    function: str
    args: tuple[Any, ...] | dict[str, Any] = ()
    venv: str | None = None
    cwd: str = "."
    returns: Format | None = None
    timeout_ms: int | None = None


class PackageSite(Struct, frozen=True, kw_only=True):
    """Where the code of an installed package lies, and how an interpreter of its own finds it."""

    own: tuple[str, ...]
    """The files and folders of the package itself."""
    shared: tuple[str, ...] = ()
    """What it is run with: Glee, and the folders of installed packages."""
    before: tuple[str, ...] = ()
    after: tuple[str, ...] = ()
    """Folders to search before and after those of the standard library."""


class PackageExec(PythonExec, frozen=True, kw_only=True, tag="package"):
    """A function that an installed package offers, run as any Python tool, by the interpreter that runs Glee."""

    target: str
    """What the entry point leads to: `module:attribute`."""
    site: PackageSite


class FunctionExec(Struct, frozen=True, kw_only=True, tag="function"):
    """A function of this very process, as `@glee.tool` made it."""

    function: Callable[..., Any]
    target: str
    asynchronous: bool = False
    context_parameter: str | None = None
    integers: tuple[str, ...] = ()
    """Parameters whose numbers must be `int`, where JSON lets 2.0 be a whole number too."""
    converters: dict[str, Any] = {}
    """Parameters whose annotation is not a plain JSON type, and the type to convert to."""
    blocking: bool | None = None
    """True: always in a thread. False: always in place. None: in place once it has proved quick."""
    timeout_ms: int | None = None


Exec = HttpExec | CommandExec | PythonExec | PackageExec | FunctionExec


class Origin(Struct, frozen=True, kw_only=True):
    """Where a definition came from. Origin and name together are a tool's stable identity."""

    source: str
    """`project`, `package` or `program`."""
    location: str
    """A manifest's path, a package's name, or a function's module and name."""
    folder: str | None = None
    """The tool's own folder, where it has one."""
    trusted: bool = False
    """True for a package that the person's own config lets run in Glee's process, with all its rights."""

    def __str__(self) -> str:
        return f"{self.source} {self.location}"


class Tool(Struct, frozen=True, kw_only=True, eq=False):
    """A definition, complete and checked. Equality is identity, so that compiled parts can be kept by tool."""

    name: str
    description: str
    kind: Kind
    inputs: Schema
    exec: Exec
    origin: Origin
    version: int | str = 1
    outputs: Outputs = Outputs()
    permissions: Permissions = Permissions()
    limits: dict[str, int] = {}
    """How much of the machine a run needs, by the names of `Bounds`; a config may give it less, never more."""
    approval: Approval = Approval()
    examples: tuple[Example, ...] = ()
    group: str | None = None
    dangerous: bool = False
    idempotent: bool = False
    digest: str = field(default="")
    """SHA-256 of the definition as it was read; what an approval is bound to."""

    @property
    def identity(self) -> str:
        return f"{self.origin.source}:{self.name}"

    def __repr__(self) -> str:
        return f"<Tool {self.name} ({self.kind}) from {self.origin}>"
