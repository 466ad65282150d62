"""The tools folder: each manifest read when it is wanted, listings from a cache that can only save time."""

from __future__ import annotations

import os
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Any

import msgspec
import pytest

from glee.catalog import manifests
from glee.catalog.manifests import ManifestSource
from glee.catalog.source import Found, Summary
from glee.testing import Project


@pytest.fixture
def cache(tmp_path: Path) -> Path:
    return tmp_path / "cache" / "manifests.msgpack"


@pytest.fixture
def source(project: Project, cache: Path) -> ManifestSource:
    return ManifestSource(project.tools, cache)


@pytest.fixture
def opened(project: Project, monkeypatch: pytest.MonkeyPatch) -> list[str]:
    """The tools whose manifests were opened for reading, in order."""
    names: list[str] = []
    path_open = Path.open

    def watched(self: Path, mode: str = "r", *args: Any, **kwargs: Any) -> IO[Any]:
        if mode == "rb" and self.is_relative_to(project.tools):
            names.append(self.parent.name)
        return path_open(self, mode, *args, **kwargs)

    monkeypatch.setattr(Path, "open", watched)
    return names


@pytest.fixture
def later(monkeypatch: pytest.MonkeyPatch) -> Callable[[], None]:
    """Lets an hour pass, so that files written until now count as settled."""

    def pass_time() -> None:
        now = time.time_ns() + 3_600_000_000_000
        monkeypatch.setattr(time, "time_ns", lambda: now)

    return pass_time


def names(source: ManifestSource) -> list[str]:
    return [summary.name for summary in source.summaries()]


def descriptions(source: ManifestSource) -> dict[str, str]:
    return {summary.name: summary.description for summary in source.summaries()}


def test_a_manifest_is_found_by_its_folder(project: Project, source: ManifestSource) -> None:
    path = project.add_command("greet", "echo hello")

    found = source.find("greet")

    assert found is not None and found.tool is not None
    assert (found.tool.name, found.tool.origin.location, found.problems) == ("greet", str(path), ())


@pytest.mark.parametrize("name", ["", ".", "..", "../tools/greet", "greet/", "/greet", "a\0b", "\ud800", "x" * 5000])
def test_a_name_that_is_no_folder_of_this_project_is_not_found(
    project: Project, source: ManifestSource, name: str
) -> None:
    project.add_command("greet", "echo hello")

    assert source.find(name) is None


def test_a_folder_without_a_manifest_is_not_a_tool(project: Project, source: ManifestSource) -> None:
    (project.tools / "empty").mkdir()
    (project.tools / "note.txt").write_text("not a tool")
    (project.tools / ".hidden").mkdir()
    (project.tools / ".hidden" / "tool.yml").write_text("name: .hidden")

    assert (names(source), source.names(), source.find("empty")) == ([], [], None)


def test_a_project_without_a_tools_folder_has_no_tools(tmp_path: Path) -> None:
    source = ManifestSource(tmp_path / "nowhere")

    assert (names(source), source.find("greet")) == ([], None)


def test_a_summary_says_what_a_listing_shows(project: Project, source: ManifestSource) -> None:
    path = project.add_command(
        "wipe", "true", group="fs", dangerous=True, approval={"required": True, "reason": "removes files"}
    )

    assert list(source.summaries()) == [
        Summary(
            name="wipe",
            description="The tool wipe",
            kind="command",
            group="fs",
            approval=True,
            dangerous=True,
            origin=f"project {path}",
        )
    ]


def test_a_broken_manifest_is_listed_with_its_reason_and_hides_no_other(
    project: Project, source: ManifestSource
) -> None:
    project.add_command("ape", "true")
    project.add_tool("bad", "name: bad\nkind: [")
    project.add_tool("other", "name: another\ndescription: x\nkind: command\n")
    project.write(".glee/tools/notutf8/tool.yml", b"name: \xff\xfe")
    (project.tools / "folder" / "tool.yml").mkdir(parents=True)
    project.add_command("zebra", "true")

    broken = {summary.name: summary.broken for summary in source.summaries()}

    assert list(broken) == ["ape", "bad", "folder", "notutf8", "other", "zebra"]
    assert [name for name, reason in broken.items() if reason is None] == ["ape", "zebra"]
    assert broken["folder"] == "line 1: cannot be read: it is not a file"
    assert all((broken[name] or "").startswith("line ") for name in ("bad", "notutf8", "other"))
    assert (broken["other"] or "").endswith(" more)")


def test_an_example_at_which_a_pattern_gives_up_hides_no_other(project: Project, source: ManifestSource) -> None:
    word = {"type": "string", "pattern": "^(?!b)(a|a)*(?=c)$"}
    schema = {"type": "object", "properties": {"word": word}}
    project.add_command("bad", "true", inputs={"schema": schema}, examples=[{"params": {"word": "a" * 60}}])
    project.add_command("zebra", "true")

    assert [(summary.name, summary.broken) for summary in source.summaries()] == [
        (
            "bad",
            "line 24: examples[0].params.word: the example does not fit inputs.schema: "
            "Error executing regex: Max limit for backtracking count exceeded",
        ),
        ("zebra", None),
    ]


def test_a_broken_manifest_is_found_with_its_problems(project: Project, source: ManifestSource) -> None:
    project.add_tool("bad", "name: bad\n")

    found = source.find("bad")

    assert isinstance(found, Found) and found.tool is None
    assert {problem.rule for problem in found.problems} == {"required"}


def test_a_folder_whose_name_is_not_text_hides_no_other(
    project: Project, source: ManifestSource, later: Callable[[], None], opened: list[str]
) -> None:
    project.add_command("greet", "true")
    project.write(os.fsdecode(b".glee/tools/odd\xff/tool.yml"), "name: odd")
    later()

    listed = [(summary.name, summary.broken) for summary in source.summaries()]
    opened.clear()

    assert listed == [("greet", None), ("odd\\xff", "its folder's name is not UTF-8")]
    assert [(summary.name, summary.broken) for summary in source.summaries()] == listed
    assert opened == []


def test_a_listing_of_unchanged_manifests_reads_none_of_them(
    project: Project, source: ManifestSource, later: Callable[[], None], opened: list[str]
) -> None:
    for name in ("a", "b", "c"):
        project.add_command(name, "true")
    later()
    cold = list(source.summaries())
    assert opened == ["a", "b", "c"]
    opened.clear()

    assert list(source.summaries()) == cold
    assert opened == []


def test_progress_is_told_of_manifests_that_are_read_and_not_of_cached_ones(
    project: Project, source: ManifestSource, later: Callable[[], None]
) -> None:
    for name in ("a", "b", "c"):
        project.add_command(name, "true")
    later()
    cold: list[tuple[int, int]] = []
    warm: list[tuple[int, int]] = []

    list(source.summaries(lambda done, total: cold.append((done, total))))
    list(source.summaries(lambda done, total: warm.append((done, total))))

    assert (cold, warm) == ([(1, 3), (2, 3), (3, 3)], [])


def test_only_a_changed_manifest_is_read_again(
    project: Project, source: ManifestSource, later: Callable[[], None], opened: list[str]
) -> None:
    for name in ("a", "b", "c"):
        project.add_command(name, "true")
    later()
    list(source.summaries())
    project.add_command("b", "true", description="Another text")
    opened.clear()

    assert descriptions(source) == {"a": "The tool a", "b": "Another text", "c": "The tool c"}
    assert opened == ["b"]


def test_an_edit_that_keeps_size_and_time_is_seen(
    project: Project, source: ManifestSource, later: Callable[[], None]
) -> None:
    path = project.add_command("a", "true", description="before")
    before = path.stat()
    later()
    list(source.summaries())

    project.add_command("a", "true", description="after!")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))

    assert path.stat().st_size == before.st_size
    assert descriptions(source) == {"a": "after!"}


def test_edits_within_the_same_second_are_seen(project: Project, source: ManifestSource, cache: Path) -> None:
    """A fresh file may change again under the same timestamp, so it is not kept at all."""
    project.add_command("a", "true", description="before")
    list(source.summaries())

    assert msgspec.msgpack.decode(cache.read_bytes())[2] == {}
    project.add_command("a", "true", description="after!")
    assert descriptions(source) == {"a": "after!"}


def test_a_replaced_file_is_read_again(
    project: Project, source: ManifestSource, later: Callable[[], None], tmp_path: Path
) -> None:
    path = project.add_command("a", "true", description="before")
    times = path.stat().st_atime_ns, path.stat().st_mtime_ns
    later()
    list(source.summaries())

    other = tmp_path / "other.yml"
    other.write_text(path.read_text().replace("before", "after!"))
    os.utime(other, ns=times)
    other.replace(path)

    assert descriptions(source) == {"a": "after!"}


def test_a_removed_manifest_is_no_longer_listed(
    project: Project, source: ManifestSource, later: Callable[[], None]
) -> None:
    project.add_command("a", "true")
    gone = project.add_command("b", "true")
    later()
    list(source.summaries())

    gone.unlink()

    assert (names(source), names(source)) == (["a"], ["a"])


def test_a_renamed_folder_is_read_under_its_new_name(
    project: Project, source: ManifestSource, later: Callable[[], None]
) -> None:
    project.add_command("a", "true")
    later()
    list(source.summaries())

    (project.tools / "a").rename(project.tools / "b")

    (summary,) = source.summaries()
    assert (summary.name, "a" in (summary.broken or "")) == ("b", True)


def test_two_folders_that_swap_names_are_both_read_again(
    project: Project, source: ManifestSource, later: Callable[[], None]
) -> None:
    project.add_command("a", "true")
    project.add_command("b", "true")
    later()
    list(source.summaries())

    (project.tools / "a").rename(project.tools / "c")
    (project.tools / "b").rename(project.tools / "a")
    (project.tools / "c").rename(project.tools / "b")

    assert [(summary.name, summary.broken is None) for summary in source.summaries()] == [("a", False), ("b", False)]


def test_a_mended_manifest_is_no_longer_broken(
    project: Project, source: ManifestSource, later: Callable[[], None]
) -> None:
    project.add_tool("a", "name: a\n")
    later()
    (broken,) = source.summaries()
    project.add_command("a", "true")

    (mended,) = source.summaries()

    assert (broken.broken is None, mended.broken) == (False, None)


def test_a_cache_of_another_version_is_not_used(
    project: Project,
    source: ManifestSource,
    later: Callable[[], None],
    opened: list[str],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    project.add_command("a", "true")
    later()
    list(source.summaries())
    opened.clear()
    monkeypatch.setattr(manifests, "VERSION", "999")

    list(source.summaries())

    assert opened == ["a"]


def test_a_cache_of_another_folder_is_not_used(
    project: Project, cache: Path, later: Callable[[], None], tmp_path: Path
) -> None:
    project.add_command("a", "true")
    later()
    list(ManifestSource(project.tools, cache).summaries())

    assert names(ManifestSource(tmp_path / "elsewhere", cache)) == []


@pytest.mark.parametrize(
    "content",
    [b"", b"\xc1", b"not msgpack", msgspec.msgpack.encode({"a": 1}), msgspec.msgpack.encode(["1", "2", {"a": 3}])],
)
def test_a_corrupt_cache_is_read_over(
    project: Project, source: ManifestSource, cache: Path, later: Callable[[], None], opened: list[str], content: bytes
) -> None:
    project.add_command("a", "true")
    later()
    cache.parent.mkdir(parents=True)
    cache.write_bytes(content)

    assert names(source) == ["a"]
    opened.clear()
    assert (names(source), opened) == (["a"], [])


def test_a_cut_cache_is_read_over(
    project: Project, source: ManifestSource, cache: Path, later: Callable[[], None]
) -> None:
    project.add_command("a", "true")
    later()
    list(source.summaries())
    whole = cache.read_bytes()

    for length in range(len(whole)):
        cache.write_bytes(whole[:length])
        assert names(source) == ["a"]


def test_a_cache_that_cannot_be_written_is_no_reason_to_fail(project: Project, tmp_path: Path) -> None:
    project.add_command("a", "true")
    (tmp_path / "file").write_text("in the way")
    source = ManifestSource(project.tools, tmp_path / "file" / "manifests.msgpack")

    assert (names(source), names(source)) == (["a"], ["a"])


def test_writing_the_cache_leaves_no_draft_behind(
    project: Project, source: ManifestSource, cache: Path, later: Callable[[], None]
) -> None:
    project.add_command("a", "true")
    later()
    list(source.summaries())

    assert list(cache.parent.iterdir()) == [cache]


def test_a_forged_cache_changes_a_listing_at_most_and_never_a_run(
    project: Project, later: Callable[[], None], tmp_path: Path
) -> None:
    """Even a cache whose stamps agree with the disk cannot make an old form run."""
    project.add_command("a", "echo old")
    later()
    with project.open() as engine:
        engine.list()
    (cache,) = (tmp_path / "cache").glob("glee/*/manifests.msgpack")
    project.add_command("a", "echo new", description="New")
    status = (project.tools / "a" / "tool.yml").stat()
    held = msgspec.msgpack.decode(cache.read_bytes())
    held[2]["a"][0] = [status.st_mtime_ns, status.st_ctime_ns, status.st_size, status.st_ino]
    cache.write_bytes(msgspec.msgpack.encode(held))

    with project.open() as engine:
        listed = [summary.description for summary in engine.list()]
        tool = engine.find("a")
        result = engine.call_sync("a")

    assert (listed, tool and tool.description, result.output) == (["The tool a"], "New", "new\n")


def test_a_call_reads_its_own_manifest_and_no_other(project: Project, opened: list[str]) -> None:
    text = project.add_command("greet", "echo hello").read_text()
    for number in range(300):
        project.add_tool(f"tool_{number}", text.replace('"greet"', f'"tool_{number}"'))

    with project.open() as engine:
        outputs = [engine.call_sync(name).output for name in ("greet", "tool_7", "greet")]

    assert (outputs, opened) == (["hello\n"] * 3, ["greet", "tool_7"])
