"""The version, for every room that has to name it."""

VERSION = "0.1.0"
