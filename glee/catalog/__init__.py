"""Names to tools. It finds; it never runs."""
