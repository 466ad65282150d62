"""Settings into a wired engine."""

from __future__ import annotations

from pathlib import Path

import pytest

import glee
from glee import compose, config
from glee.catalog.packages import PackageSource
from glee.errors import DefinitionError, ProjectNotFound
from glee.testing import Project


@glee.tool
def add(a: int, b: int) -> int:
    """Add two numbers."""
    return a + b


def test_an_engine_is_opened_from_a_folder_below_the_root(project: Project) -> None:
    project.add_command("where", "pwd")
    below = project.root / "src" / "deep"
    below.mkdir(parents=True)

    with glee.open(below, environ=project.environ) as engine:
        assert engine.call_sync("where").output == f"{project.root}\n"


def test_an_engine_is_opened_for_the_working_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    project.add_command("greet", "echo hello")
    monkeypatch.chdir(project.root)

    with glee.open(environ=project.environ) as engine:
        assert engine.call_sync("greet").output == "hello\n"


def test_a_root_may_be_given_as_text(project: Project) -> None:
    project.add_command("greet", "echo hello")

    with glee.open(str(project.root), environ=project.environ) as engine:
        assert engine.call_sync("greet").ok


def test_a_program_s_own_tools_need_no_project(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")

    with glee.open(tools=[add], environ=project.environ) as engine:
        result = engine.call_sync("add", {"a": 1, "b": 2})
        names = [summary.name for summary in engine.list()]

    assert (result.output, names) == (3, ["add"])
    assert list((tmp_path / "bare").iterdir()) == []


@pytest.mark.parametrize("root", ["bare", "nowhere"])
def test_a_root_that_is_no_project_is_an_error(tmp_path: Path, project: Project, root: str) -> None:
    (tmp_path / "bare").mkdir()

    with pytest.raises(ProjectNotFound, match="run `glee init`"):
        glee.open(tmp_path / root, environ=project.environ)


def test_a_plain_function_is_not_a_tool(project: Project) -> None:
    with pytest.raises(DefinitionError, match=r"put @glee\.tool above"):
        project.open(tools=[print])


def test_definitions_may_be_given_as_well_as_functions(project: Project) -> None:
    with project.open(tools=[add.definition]) as engine:
        assert engine.call_sync("add", {"a": 1, "b": 2}).output == 3


def test_two_of_a_program_s_tools_with_one_name_do_not_open(project: Project) -> None:
    with pytest.raises(DefinitionError, match=r"^two tools are called add: "):
        project.open(tools=[add, add])


def test_secrets_come_from_the_process_s_own_environment_unless_one_is_given(
    project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    project.add_command("length", 'echo "${#TOKEN}"', permissions={"secrets": {"TOKEN": {"type": "string"}}})
    monkeypatch.setenv("TOKEN", "from the process")
    project.environ["TOKEN"] = "given"

    with glee.open(project.root) as engine:
        own = engine.call_sync("length").output
    with project.open() as engine:
        given = engine.call_sync("length").output

    assert (own, given) == ("16\n", "5\n")


def test_the_limits_of_the_config_hold_for_a_run(project: Project) -> None:
    project.configure("limits: {output_bytes: 1024}")
    project.add_command("much", "head -c 5000 /dev/zero")

    with project.open() as engine:
        result = engine.call_sync("much")

    assert result.error and (result.error.code, result.error.details) == ("too_large", {"limit": 1024})


def test_what_a_call_leaves_lies_in_the_log_and_in_the_state_alone(project: Project) -> None:
    project.add_command("many", "seq 1 100000")
    before = {path for path in project.root.rglob("*") if path.is_file()}

    with project.open() as engine:
        engine.call_sync(glee.Call(tool="many", idempotency_key="k"))

    left = {path for path in project.root.rglob("*") if path.is_file()} - before
    assert left == {project.root / ".glee" / "audit" / "tools.log"}


def test_a_runner_is_made_when_its_kind_is_first_called(project: Project) -> None:
    runners = compose.Runners(config.load_settings(project.root, environ=project.environ))

    assert dict(runners) == {}
    assert runners["command"] is runners["command"]
    assert list(runners) == ["command"]


@pytest.mark.parametrize("kind", ["http", "command", "python", "function"])
def test_there_is_a_runner_for_every_kind(project: Project, kind: str) -> None:
    runners = compose.Runners(config.load_settings(project.root, environ=project.environ))

    assert type(runners[kind]).__name__.lower() == f"{kind}runner"


def test_a_project_has_its_manifests_before_packages_and_a_bare_folder_only_packages(project: Project) -> None:
    within = compose.compose_catalog(config.load_settings(project.root, environ=project.environ))
    without = compose.compose_catalog(config.load_settings(None, environ=project.environ))

    assert [type(source).__name__ for source in within._sources] == ["ManifestSource", "PackageSource"]
    assert [type(source) for source in without._sources] == [PackageSource]


def test_ids_sort_by_time_and_never_repeat(monkeypatch: pytest.MonkeyPatch) -> None:
    many = [compose.new_id() for _ in range(1000)]
    times = iter([1_000_000_000_000_000_000, 1_000_000_000_001_000_000])
    monkeypatch.setattr(compose.time, "time_ns", lambda: next(times))

    assert (len(set(many)), {len(each) for each in many}) == (1000, {28})
    assert [each for each in many if set(each) - set("0123456789abcdef")] == []
    assert compose.new_id() < compose.new_id() < min(many)
