"""Tiny real packages, laid where Python finds them, as pip lays them."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

GREETER = """
    import glee

    @glee.tool
    def greet(name: str) -> str:
        '''Greet somebody.'''
        return f"hello {name}"
"""


class Site:
    """A folder on the path into which packages are installed."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def install(self, package: str, source: str, **points: str) -> None:
        module = package.replace("-", "_")
        self.write(package, source)
        info = self.folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {value}\n" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[glee.tools]\n{lines}")
        importlib.invalidate_caches()

    def write(self, package: str, source: str) -> None:
        (self.folder / f"{package.replace('-', '_')}.py").write_text(textwrap.dedent(source))


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    """Such a folder; what was imported from it is forgotten afterwards."""
    before = set(sys.modules)
    site = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(site.folder))
    yield site
    for name in set(sys.modules) - before:
        if str(site.folder) in str(getattr(sys.modules[name], "__file__", "")):
            del sys.modules[name]
    importlib.invalidate_caches()
