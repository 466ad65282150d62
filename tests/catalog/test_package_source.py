"""Tools of installed packages, found through real entry points of real, tiny packages."""

from __future__ import annotations

import importlib
import sys
import textwrap
from collections.abc import Iterator
from pathlib import Path

import pytest

from glee.catalog.packages import EntryPoint, PackageSource
from glee.errors import NotFound
from glee.testing import Project


class Site:
    """A folder on the path into which packages are installed, as pip lays them."""

    def __init__(self, folder: Path) -> None:
        self.folder = folder
        folder.mkdir()

    def install(self, package: str, source: str, **points: str) -> None:
        module = package.replace("-", "_")
        (self.folder / f"{module}.py").write_text(textwrap.dedent(source))
        info = self.folder / f"{module}-1.0.dist-info"
        info.mkdir()
        (info / "METADATA").write_text(f"Metadata-Version: 2.1\nName: {package}\nVersion: 1.0\n")
        lines = "".join(f"{name} = {value}\n" for name, value in points.items())
        (info / "entry_points.txt").write_text(f"[glee.tools]\n{lines}")


@pytest.fixture
def site(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Site]:
    before = set(sys.modules)
    site = Site(tmp_path / "site")
    monkeypatch.syspath_prepend(str(site.folder))
    yield site
    for name in set(sys.modules) - before:
        if getattr(sys.modules[name], "__file__", None) and str(site.folder) in str(sys.modules[name].__file__):
            del sys.modules[name]
    importlib.invalidate_caches()


GREETER = """
    import glee

    @glee.tool
    def greet(name: str) -> str:
        '''Greet somebody.'''
        return f"hello {name}"
"""


def test_a_package_provides_a_tool(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    with project.open() as engine:
        listed = [(summary.name, summary.origin, summary.broken) for summary in engine.list()]
        result = engine.call_sync("greet", {"name": "world"})

    assert (listed, result.output) == ([("greet", "package acme-greeter", None)], "hello world")


def test_a_package_provides_a_list_a_function_that_returns_one_and_a_function_that_returns_a_tool(
    site: Site, project: Project
) -> None:
    source = """
        import glee

        @glee.tool
        def one() -> int:
            '''One.'''
            return 1

        @glee.tool
        def two() -> int:
            '''Two.'''
            return 2

        class Home:
            @staticmethod
            def make():
                return [two]

        tools = [one]

        def three():
            @glee.tool(name="three")
            def make() -> int:
                '''Three.'''
                return 3
            return make
    """
    site.install("acme-numbers", source, a="acme_numbers:tools", b="acme_numbers:Home.make", c="acme_numbers:three")

    with project.open() as engine:
        assert [engine.call_sync(summary.name).output for summary in engine.list()] == [1, 3, 2]


@pytest.mark.parametrize(
    ("source", "value", "reason"),
    [
        ("raise RuntimeError('out of order')", "acme_broken:tool", "RuntimeError: out of order"),
        ("raise SystemExit('I leave')", "acme_broken:tool", "SystemExit: I leave"),
        ("def", "acme_broken:tool", "SyntaxError: invalid syntax (acme_broken.py, line 1)"),
        ("", "acme_broken:tool", "AttributeError: module 'acme_broken' has no attribute 'tool'"),
        ("", "acme_missing:tool", "ModuleNotFoundError: No module named 'acme_missing'"),
        ("tool = [1]", "acme_broken:tool", "TypeError: 1 was not made by @glee.tool"),
        ("tool = 7", "acme_broken:tool", "TypeError: 7 was not made by @glee.tool"),
        ("def tool(): raise OSError('no disk')", "acme_broken:tool", "OSError: no disk"),
    ],
)
def test_a_broken_package_is_listed_with_its_reason_and_hides_no_other(
    site: Site, project: Project, source: str, value: str, reason: str
) -> None:
    site.install("acme-broken", source, bad=value)
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.add_command("mine", "true")

    with project.open() as engine:
        listed = {summary.name: (summary.origin, summary.broken) for summary in engine.list()}
        called = engine.call_sync("greet", {"name": "world"})
        broken = engine.call_sync("bad")

    assert listed["bad"] == ("package acme-broken", f"the entry point {value} cannot be loaded: {reason}")
    assert [name for name, (_, problem) in listed.items() if problem is None] == ["greet", "mine"]
    assert called.output == "hello world"
    assert broken.error is not None
    assert (broken.error.code, reason in broken.error.message) == (NotFound.code, True)


def test_of_two_packages_with_one_name_both_are_listed_and_the_first_by_name_is_used(
    site: Site, project: Project
) -> None:
    site.install("zeta-greeter", GREETER.replace("hello", "zeta"), greet="zeta_greeter:greet")
    site.install("acme-greeter", GREETER.replace("hello", "acme"), greet="acme_greeter:greet")

    with project.open() as engine:
        listed = [(summary.name, summary.origin, summary.broken) for summary in engine.list()]
        result = engine.call_sync("greet", {"name": "world"})

    reason = "two tools are called greet: package acme-greeter is used, not package zeta-greeter; rename one"
    assert listed == [("greet", "package acme-greeter", None), ("greet", "package zeta-greeter", reason)]
    assert result.output == "acme world"


def test_a_project_s_own_tool_wins_over_a_package_s(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    path = project.add_command("greet", "echo project")

    with project.open() as engine:
        listed = [(summary.origin, summary.broken) for summary in engine.list()]
        result = engine.call_sync("greet")

    reason = f"two tools are called greet: project {path} is used, not package acme-greeter; rename one"
    assert (result.output, listed) == ("project\n", [(f"project {path}", None), ("package acme-greeter", reason)])


def test_the_unused_tool_of_a_denied_name_is_not_listed_either(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.add_command("greet", "echo project")
    project.configure("tools: {deny: [greet]}")

    with project.open() as engine:
        assert engine.list() == ()


def test_what_is_installed_is_looked_for_once_and_again_when_the_path_changes(site: Site, tmp_path: Path) -> None:
    cache = tmp_path / "packages.msgpack"
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    assert [summary.name for summary in PackageSource(cache).summaries()] == ["greet"]

    info = site.folder / "acme_greeter-1.0.dist-info" / "entry_points.txt"
    info.write_text(info.read_text().replace("greet =", "other ="))  # unseen: the folder on the path is unchanged
    assert PackageSource(cache).find("greet") is not None

    site.install("acme-late", GREETER.replace("def greet", "def late"), late="acme_late:late")
    importlib.invalidate_caches()
    assert [summary.name for summary in PackageSource(cache).summaries()] == ["greet", "late"]


@pytest.mark.parametrize("content", [b"", b"nonsense", b"\x92\x90\x91\x01"])
def test_a_corrupt_cache_of_packages_is_read_over(site: Site, tmp_path: Path, content: bytes) -> None:
    cache = tmp_path / "packages.msgpack"
    cache.write_bytes(content)
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")

    assert [summary.name for summary in PackageSource(cache).summaries()] == ["greet"]


def test_no_package_is_imported_where_a_project_has_the_tool(site: Site, project: Project) -> None:
    site.install("acme-greeter", GREETER, greet="acme_greeter:greet")
    project.add_command("mine", "echo mine")

    with project.open() as engine:
        assert engine.call_sync("mine").output == "mine\n"

    assert "acme_greeter" not in sys.modules


def test_a_package_is_imported_once() -> None:
    looked: list[int] = []

    def points() -> list[EntryPoint]:
        looked.append(1)
        return []

    source = PackageSource(points=points)
    for _ in range(3):
        assert (source.find("greet"), list(source.summaries())) == (None, [])

    assert looked == [1]


def test_what_a_package_prints_while_it_loads_is_no_part_of_the_output(
    site: Site, project: Project, capsys: pytest.CaptureFixture[str]
) -> None:
    site.install("acme-loud", f"print('loaded')\n{textwrap.dedent(GREETER)}", greet="acme_loud:greet")

    with project.open() as engine:
        assert engine.call_sync("greet", {"name": "you"}).output == "hello you"

    assert capsys.readouterr() == ("", "loaded\n")
