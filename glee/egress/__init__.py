"""The way out: which addresses may be reached, and the one HTTP client."""
