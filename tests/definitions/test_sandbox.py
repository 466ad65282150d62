"""Settings of the sandbox, from three files: who may choose, and that weaker ones can only narrow."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

import pytest

from glee import config
from glee.definitions.sandbox import Bind, Sandbox
from glee.errors import ConfigError
from glee.testing import Project


@pytest.fixture
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    file = tmp_path / "managed.yml"
    monkeypatch.setattr(config, "MANAGED_FILE", file)
    return file


@pytest.fixture
def load(project: Project, managed: Path) -> Callable[[], Sandbox]:
    return lambda: config.load_settings(project.root, environ=project.environ).sandbox


CAMEL = """
sandbox:
  mode: docker
  image: python:3.13-slim
  bindMounts: ["/data", "/src:/dst", "/out:/out:rw"]
  networkAccess: false
  maxMemoryMb: 512
  maxCpuPercent: 50
"""
SNAKE = """
sandbox:
  mode: container
  image: python:3.13-slim
  bind_mounts: ["/data:/data:ro", "/src:/dst:ro", "/out:/out:rw"]
  network_access: false
  max_memory_mb: 512
  max_cpu_percent: 50
"""


@pytest.mark.parametrize("text", [CAMEL, SNAKE])
def test_a_person_chooses_containers_in_either_spelling(
    project: Project, load: Callable[[], Sandbox], text: str
) -> None:
    project.configure_person(text)

    sandbox = load()

    assert (sandbox.mode, sandbox.engine, sandbox.image) == ("container", None, "python:3.13-slim")
    assert sandbox.bind_mounts == (
        Bind(source="/data", target="/data", writable=False),
        Bind(source="/src", target="/dst", writable=False),
        Bind(source="/out", target="/out", writable=True),
    )
    assert (sandbox.network_access, sandbox.limits.memory_mb, sandbox.limits.cpu_percent) == (False, 512, 50)


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: docker", "only your own config can choose sandbox.mode: docker"),
        ("mode: container", "only your own config can choose sandbox.mode: container"),
        ("mode: nsjail", "only your own config can choose sandbox.mode: nsjail"),
        ("mode: 'off'", "only your own config can turn the sandbox off"),
        ("image: x", "sandbox.image belongs in your own config"),
        ("engine: podman", "sandbox.engine belongs in your own config"),
        ("bindMounts: ['/etc:/etc']", "sandbox.bind_mounts belongs in your own config"),
    ],
)
def test_what_would_widen_is_refused_in_a_project(
    project: Project, load: Callable[[], Sandbox], text: str, message: str
) -> None:
    project.configure(f"sandbox: {{{text}}}")

    with pytest.raises(ConfigError, match=message):
        load()


def test_a_project_can_lower_limits_and_never_raise_them(project: Project, load: Callable[[], Sandbox]) -> None:
    project.configure_person("sandbox: {mode: container, max_memory_mb: 4096, max_cpu_percent: 100}")

    project.configure("sandbox: {max_memory_mb: 8192, max_cpu_percent: 200, network_access: true}")
    sandbox = load()
    assert (sandbox.limits.memory_mb, sandbox.limits.cpu_percent, sandbox.network_access) == (4096, 100, True)

    project.configure("sandbox: {max_memory_mb: 100, max_cpu_percent: 10, network_access: false}")
    sandbox = load()
    assert (sandbox.limits.memory_mb, sandbox.limits.cpu_percent, sandbox.network_access) == (100, 10, False)


def test_a_project_alone_cannot_raise_what_nobody_spoke_of(project: Project, load: Callable[[], Sandbox]) -> None:
    project.configure("sandbox: {mode: native, max_memory_mb: 100000, max_cpu_percent: 10}")

    sandbox = load()

    assert (sandbox.mode, sandbox.limits.memory_mb, sandbox.limits.cpu_percent) == ("native", 2048, 10)


def test_a_project_that_asks_for_native_does_not_undo_a_persons_containers(
    project: Project, load: Callable[[], Sandbox]
) -> None:
    project.configure_person("sandbox: {mode: container, image: x}")
    project.configure("sandbox: {mode: native}")

    assert load().mode == "container"


def test_the_organisation_speaks_first(project: Project, managed: Path, load: Callable[[], Sandbox]) -> None:
    managed.write_text("sandbox: {mode: container, image: ours, networkAccess: false, bindMounts: []}")
    project.configure_person(
        "sandbox: {mode: 'off', image: mine, engine: podman, networkAccess: true, bindMounts: ['/:/all']}"
    )

    sandbox = load()

    assert (sandbox.mode, sandbox.image, sandbox.engine) == ("container", "ours", "podman")
    assert (sandbox.network_access, sandbox.bind_mounts) == (False, ())


@pytest.mark.parametrize("text", ["relative", "/a:b", "/a:/b:rx", "/a:/b:ro:more", ":/b"])
def test_a_mount_that_is_not_understood_is_an_error(project: Project, load: Callable[[], Sandbox], text: str) -> None:
    project.configure_person(f"sandbox: {{bind_mounts: ['{text}']}}")

    with pytest.raises(ConfigError, match="write /on/this/machine:/in/the/container:ro"):
        load()


@pytest.mark.parametrize(
    "text", ["image: '-v'", "image: 'a b'", "max_memory_mb: 1", "maxCpuPercent: 0", "mode: lxc", "bindmounts: []"]
)
def test_what_the_published_schema_refuses_is_refused(project: Project, load: Callable[[], Sandbox], text: str) -> None:
    project.configure_person(f"sandbox:\n  {text}\n")

    with pytest.raises(ConfigError) as raised:
        load()

    assert str(raised.value).startswith(f"{project.person_config}:2:")


def test_both_spellings_of_one_setting_are_one_too_many(project: Project, load: Callable[[], Sandbox]) -> None:
    project.configure_person("sandbox: {maxMemoryMb: 64, max_memory_mb: 64}")

    with pytest.raises(ConfigError, match=r"sandbox\.maxMemoryMb and sandbox\.max_memory_mb are the same"):
        load()


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("mode: container", "no image is named"),
        ("mode: container, image: x, engine: podman", "there is no podman on PATH"),
        ("mode: nsjail", "there is no nsjail on PATH"),
        ("mode: native, max_cpu_percent: 10", "sandbox.limits.cpu_percent is not held by sandbox.mode: native"),
    ],
)
def test_what_cannot_be_held_is_said_and_nothing_runs(project: Project, text: str, message: str) -> None:
    project.configure_person(f"sandbox: {{{text}}}")
    project.environ["PATH"] = "/nonexistent"
    project.add_command("mark", "touch ran")

    with project.open() as engine:
        error = engine.call_sync("mark").error

    assert error is not None
    assert (error.code, message in error.message) == ("sandbox_unavailable", True), error
    assert not (project.root / "ran").exists()
