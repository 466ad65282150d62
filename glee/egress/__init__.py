"""The way out: which addresses may be reached, the one HTTP client, and the proxy for jailed tools."""
