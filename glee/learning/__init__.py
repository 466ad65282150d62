"""The least that a tool needs, found by running it."""
