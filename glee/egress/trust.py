"""Which certificates are believed: the public authorities, and one that the person adds."""

from __future__ import annotations

import ssl

from glee.errors import ConfigError


def make_context(ca_file: str | None) -> ssl.SSLContext:
    """For the client's side of TLS. The environment does not count."""
    import httpx

    context = httpx.create_ssl_context(trust_env=False)
    if ca_file:
        try:
            context.load_verify_locations(ca_file)
        except (OSError, ssl.SSLError) as error:
            raise ConfigError(f"egress.ca_file {ca_file} cannot be read: {error}") from error
    return context
