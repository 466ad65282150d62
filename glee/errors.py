"""Every error Glee raises.

    GleeError
    ├── CallError                  why one call has no output; becomes the `error` of its result
    │   ├── NotFound               not_found
    │   ├── InvalidInput           invalid_input
    │   ├── Denied                 denied
    │   ├── ApprovalRequired       approval_required
    │   ├── Rejected               rejected
    │   ├── SecretMissing          secret_missing
    │   ├── SandboxUnavailable     sandbox_unavailable
    │   ├── Blocked                blocked
    │   ├── TimedOut               timeout
    │   ├── Cancelled              cancelled
    │   ├── ExitCode               exit_code
    │   ├── ToolException          exception
    │   ├── HttpStatus             http_status
    │   ├── NetworkFailed          network
    │   ├── TooLarge               too_large
    │   ├── Unavailable            unavailable
    │   └── Internal               internal
    ├── DefinitionError            a definition that cannot be used: manifest, function, duplicate name
    ├── ConfigError                a config file that cannot be used
    └── ProjectNotFound            no `.glee/` folder here or above

`str(error)` is safe to show to a model; `.detail` is for the operator alone; `.details` is the
structured part of the result that a caller may act on.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar


class GleeError(Exception):
    """Base of all errors."""

    code: ClassVar[str] = "internal"

    def __init__(self, message: str, *, detail: str = "", details: Mapping[str, Any] | None = None) -> None:
        message = message if isinstance(message, str) else str(message)  # a function may raise ours with anything
        super().__init__(message)
        self.message = message
        self.detail = detail
        self.details: dict[str, Any] = dict(details or {})
        self.warnings: tuple[str, ...] = ()
        """What else the caller should know."""


class CallError(GleeError):
    """Why one call has no output."""


class NotFound(CallError):
    code = "not_found"


class InvalidInput(CallError):
    code = "invalid_input"


class Denied(CallError):
    code = "denied"


class ApprovalRequired(CallError):
    code = "approval_required"


class Rejected(CallError):
    code = "rejected"


class SecretMissing(CallError):
    code = "secret_missing"


class SandboxUnavailable(CallError):
    code = "sandbox_unavailable"


class Blocked(CallError):
    code = "blocked"


class TimedOut(CallError):
    code = "timeout"


class Cancelled(CallError):
    code = "cancelled"


class ExitCode(CallError):
    code = "exit_code"


class ToolException(CallError):
    code = "exception"


class HttpStatus(CallError):
    code = "http_status"


class NetworkFailed(CallError):
    code = "network"


class TooLarge(CallError):
    code = "too_large"


class Unavailable(CallError):
    code = "unavailable"


class Internal(CallError):
    code = "internal"


class DefinitionError(GleeError):
    """A definition that cannot be used."""

    code = "invalid_input"


class ConfigError(GleeError):
    """A config file that cannot be used."""

    code = "invalid_input"


class ProjectNotFound(GleeError):
    """No `.glee/` folder in the folder given, nor above it."""

    code = "not_found"


def all_codes() -> frozenset[str]:
    """The codes a result may carry, read off the tree above."""
    return frozenset(kind.code for kind in CallError.__subclasses__())
