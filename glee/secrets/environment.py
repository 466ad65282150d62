"""Secrets read from the environment by name: only the declared ones, only for one call."""

from __future__ import annotations

from collections.abc import Mapping

from glee.definitions.permissions import Permissions
from glee.errors import SecretMissing
from glee.secrets.redaction import NOTHING, Redactor


class Secrets(dict[str, str]):
    """Names and values for one call. Prints its names alone."""

    def __repr__(self) -> str:
        return f"<Secrets {', '.join(self) or 'none'}>"

    __str__ = __repr__


NO_SECRETS = Secrets()


class EnvironmentSecrets:
    """The environment as a source of secrets."""

    def __init__(self, environ: Mapping[str, str]) -> None:
        self._environ = environ
        self._redactors: dict[frozenset[str], Redactor] = {}

    def get(self, permissions: Permissions) -> Secrets:
        """The declared secrets that exist; raises before anything runs if a required one does not."""
        if not permissions.secrets:
            return NO_SECRETS
        missing = [name for name, need in permissions.secrets.items() if need.required and not self._environ.get(name)]
        if missing:
            names = ", ".join(missing)
            raise SecretMissing(
                f"the secret {names} is not set; set the environment variable {names} and call again",
                details={"missing": missing},
            )
        return Secrets({name: self._environ[name] for name in permissions.secrets if self._environ.get(name)})

    def get_redactor(self, permissions: Permissions) -> Redactor:
        """What takes the values of the declared secrets out of everything a call says or writes."""
        if not permissions.secrets:
            return NOTHING
        values = frozenset(filter(None, (self._environ.get(name) for name in permissions.secrets)))
        redactor = self._redactors.get(values)
        if redactor is None:
            self._redactors.clear()
            redactor = self._redactors[values] = Redactor(values)
        return redactor

    def __repr__(self) -> str:
        return "<EnvironmentSecrets>"
