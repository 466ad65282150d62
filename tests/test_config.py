"""Settings from files in their order, each of which may only narrow what stands above it."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from glee import config
from glee.config import Egress, Limits, Settings
from glee.definitions.rules import NameRules
from glee.errors import ConfigError, ProjectNotFound
from glee.testing import Project


@pytest.fixture
def managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """Where the file of an organisation stands; not there until it is written."""
    file = tmp_path / "etc" / "config.yml"
    file.parent.mkdir()
    monkeypatch.setattr(config, "MANAGED_FILE", file)
    return file


@pytest.fixture
def load(project: Project, managed: Path) -> Callable[[], Settings]:
    return lambda: config.load_settings(project.root, environ=project.environ)


def own(project: Project) -> Path:
    return project.root / ".glee" / "config.yml"


def test_without_any_file_the_published_defaults_hold(load: Callable[[], Settings]) -> None:
    settings = load()

    assert settings.limits == Limits(timeout_ms=300_000, output_chars=100_000, output_bytes=33_554_432)
    assert (settings.rules, settings.egress) == ((), Egress())


def test_the_managed_file_is_where_it_is_published() -> None:
    assert Path("/etc/glee/config.yml") == config.MANAGED_FILE


def test_files_are_read_from_the_strongest_to_the_weakest(
    project: Project, managed: Path, load: Callable[[], Settings]
) -> None:
    managed.write_text("tools: {deny: [a]}")
    project.configure_person("tools: {allow: [b]}")
    project.configure("tools: {allow: [], deny: [c, d]}")

    assert load().rules == (
        NameRules(source=str(managed), deny=("a",)),
        NameRules(source=str(project.person_config), allow=("b",)),
        NameRules(source=str(own(project)), allow=(), deny=("c", "d")),
    )


def test_limits_are_only_lowered(project: Project, managed: Path, load: Callable[[], Settings]) -> None:
    managed.write_text("limits: {timeout_ms: 1000, output_chars: 900}")
    project.configure_person("limits: {timeout_ms: 2000, output_chars: 800}")
    project.configure("limits: {timeout_ms: 500, output_chars: 100000, output_bytes: 2048}")

    assert load().limits == Limits(timeout_ms=500, output_chars=800, output_bytes=2048)


def test_a_project_cannot_raise_a_limit(project: Project, load: Callable[[], Settings]) -> None:
    project.configure("limits: {timeout_ms: 86400000, output_chars: 9999999, output_bytes: 999999999}")

    assert load().limits == Limits()


def test_the_way_out_is_the_person_s_and_the_organisation_s_to_change(
    project: Project, managed: Path, load: Callable[[], Settings]
) -> None:
    managed.with_name("ca.pem").touch()
    managed.write_text("egress: {resolve: {a.test: 127.0.0.1}, ca_file: ca.pem}")
    project.configure_person("egress: {resolve: {a.test: 127.0.0.2, b.test: '127.0.0.3:8443'}, ca_file: own.pem}")
    project.person_config.with_name("own.pem").touch()

    resolve = {"a.test": "127.0.0.1", "b.test": "127.0.0.3:8443"}
    assert load().egress == Egress(resolve=resolve, ca_file=str(managed.with_name("ca.pem")))


def test_a_ca_file_that_is_not_there_is_an_error_at_once(project: Project, load: Callable[[], Settings]) -> None:
    project.configure_person("egress: {ca_file: missing.pem}")

    with pytest.raises(ConfigError, match=r"egress.ca_file: there is no file .*/glee/missing.pem; correct the path"):
        load()


def test_a_config_that_is_a_link_to_nowhere_is_an_error(project: Project, load: Callable[[], Settings]) -> None:
    own(project).symlink_to("nowhere")

    with pytest.raises(ConfigError, match="is a link that leads nowhere; mend it, or remove it"):
        load()


def test_a_project_may_not_change_the_way_out(project: Project, load: Callable[[], Settings]) -> None:
    project.configure("egress: {resolve: {bank.test: 127.0.0.1}}")

    with pytest.raises(ConfigError) as raised:
        load()

    assert str(raised.value) == (
        f"{own(project)}: egress belongs in your own config, not in a project's; move it to ~/.config/glee/config.yml"
    )


@pytest.mark.parametrize("text", ["", "\n\n", "# nothing but a comment\n", "---\n", "{}", "null"])
def test_an_empty_file_says_nothing(project: Project, load: Callable[[], Settings], text: str) -> None:
    project.configure(text)

    assert load().rules == ()


def test_the_published_ceiling_for_tools_made_by_an_ai_is_accepted(
    project: Project, load: Callable[[], Settings]
) -> None:
    project.configure(
        """
        security:
          max_permissions:
            network: true
            fs:
              read: ["."]           # Only project directory
              write: [".glee/"]     # Only .glee directory
            secrets: []             # No secrets for AI-created tools
        """
    )

    assert load().limits == Limits()


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("tools: ]", "1:"),
        ("tools:\n  deny: [a]\n  deny: [b]\n", "3:"),
        ("tools:\n\tdeny: [a]\n", "2:"),
        ("- a\n- b\n", "1:"),
        ("just words", "1:"),
        ("tools:\n  deny: greet\n", "2:"),
        ("tools:\n  deny: [a, 7]\n", "2:"),
        ("limits:\n  timeout_ms: -1\n", "2:"),
        ("limits:\n  output_chars: many\n", "2:"),
        ("tools: &a [*a]\n", "1:"),
    ],
)
def test_a_broken_file_is_an_error_that_says_where(
    project: Project, load: Callable[[], Settings], text: str, place: str
) -> None:
    own(project).write_text(text)

    with pytest.raises(ConfigError) as raised:
        load()

    assert str(raised.value).startswith(f"{own(project)}:{place}")
    assert ": " in str(raised.value) and "; " in str(raised.value)


def test_a_file_that_is_not_utf_8_is_an_error(project: Project, load: Callable[[], Settings]) -> None:
    own(project).write_bytes(b"tools: {}\nx: \xff\xfe\n")

    with pytest.raises(ConfigError) as raised:
        load()

    assert str(raised.value).startswith(f"{own(project)}:2:")


def test_an_unknown_key_is_an_error_at_its_own_line_that_says_what_was_meant(
    project: Project, load: Callable[[], Settings]
) -> None:
    project.configure("tools: {}\n\nlimts:\n  timeout_ms: 1\n")

    with pytest.raises(ConfigError) as raised:
        load()

    message = str(raised.value)
    assert message.startswith(f"{own(project)}:3:1: ")
    assert message.endswith("remove `limts` or write `limits`; known: tools, limits, egress, sandbox, security")


def test_an_unknown_key_deep_inside_is_found_too(project: Project, load: Callable[[], Settings]) -> None:
    project.configure("tools:\n  deny: []\n  permit: [a]\n")

    with pytest.raises(ConfigError) as raised:
        load()

    message = str(raised.value)
    assert message.startswith(f"{own(project)}:3:3: tools: ")
    assert message.endswith("remove `permit`; known: allow, deny")


@pytest.mark.parametrize("which", ["managed", "person", "project"])
def test_rules_never_vanish_with_a_file_that_cannot_be_used(
    project: Project, managed: Path, load: Callable[[], Settings], which: str
) -> None:
    file = {"managed": managed, "person": project.person_config, "project": own(project)}[which]
    file.parent.mkdir(parents=True, exist_ok=True)
    file.mkdir()

    with pytest.raises(ConfigError) as raised:
        load()

    assert str(raised.value) == f"{file} is not a file; remove it, or write a config there"


def test_an_engine_does_not_open_with_a_broken_config(project: Project) -> None:
    project.configure("tools: {deny: greet}")

    with pytest.raises(ConfigError):
        project.open()


# Where things lie.


def test_state_and_cache_lie_outside_the_project_and_are_its_own(
    project: Project, load: Callable[[], Settings], tmp_path: Path
) -> None:
    settings = load()
    (tmp_path / "other" / "project").mkdir(parents=True)
    other = config.load_settings(tmp_path / "other" / "project", environ=project.environ)

    assert settings.state.parent == tmp_path / "state" / "glee"
    assert settings.cache.parent == tmp_path / "cache" / "glee"
    assert settings.state.name == settings.cache.name
    assert settings.state.name.startswith("project-")
    assert settings.state != other.state


def test_without_xdg_folders_the_usual_ones_are_used(tmp_path: Path) -> None:
    settings = config.load_settings(tmp_path, environ={"HOME": "/home/ann"})

    assert (settings.state.parent, settings.cache.parent) == (
        Path("/home/ann/.local/state/glee"),
        Path("/home/ann/.cache/glee"),
    )


@pytest.mark.parametrize("value", ["relative/path", "./here", "", "~/state"])
def test_a_relative_xdg_folder_is_ignored(tmp_path: Path, value: str) -> None:
    environ = dict.fromkeys(("XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), value)

    settings = config.load_settings(tmp_path, environ={"HOME": "/home/ann", **environ})

    assert (settings.state.parent, settings.cache.parent) == (
        Path("/home/ann/.local/state/glee"),
        Path("/home/ann/.cache/glee"),
    )


def test_a_relative_config_folder_is_not_read(
    project: Project, load: Callable[[], Settings], monkeypatch: pytest.MonkeyPatch
) -> None:
    project.write("config/glee/config.yml", "tools: {deny: [a]}")
    monkeypatch.chdir(project.root)
    project.environ["XDG_CONFIG_HOME"] = "config"

    assert load().rules == ()


def test_a_project_is_found_from_any_folder_below_it(project: Project) -> None:
    deep = project.root / "src" / "deep"
    deep.mkdir(parents=True)

    assert [config.find_root(start) for start in (project.root, deep, project.tools)] == [project.root] * 3
    assert config.get_root(deep) == project.root


def test_the_nearest_project_is_the_one(project: Project) -> None:
    inner = project.root / "packages" / "inner"
    (inner / ".glee").mkdir(parents=True)

    assert config.find_root(inner) == inner


def test_a_project_is_found_through_a_link(project: Project, tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to(project.root)

    assert config.find_root(tmp_path / "link") == project.root


def test_a_project_is_found_from_the_working_folder(project: Project, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(project.tools)

    assert config.find_root() == project.root


def test_a_file_named_as_the_folder_makes_no_project(tmp_path: Path) -> None:
    (tmp_path / "bare").mkdir()
    (tmp_path / "bare" / ".glee").write_text("")

    with pytest.raises(ProjectNotFound) as raised:
        config.get_root(tmp_path / "bare")

    assert str(raised.value) == (f"no .glee folder in {tmp_path / 'bare'} or above it; run `glee init` to make one")


def test_without_a_project_no_project_file_is_read(
    tmp_path: Path, project: Project, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "bare").mkdir()
    monkeypatch.chdir(tmp_path / "bare")

    settings = config.load_settings(None, environ=project.environ)

    assert (settings.root, settings.has_project) == (tmp_path / "bare", False)
    assert settings.audit_file == settings.state / "audit" / "tools.log"


def test_only_absolute_entries_of_the_path_are_searched(project: Project, load: Callable[[], Settings]) -> None:
    project.environ["PATH"] = ".:/usr/bin::bin:/bin:~/bin"
    some = load().search_path
    project.environ["PATH"] = ".:bin"

    assert (some, load().search_path) == ("/usr/bin:/bin", os.defpath)


def test_only_language_and_time_are_taken_along(project: Project, load: Callable[[], Settings]) -> None:
    project.environ.update(LANG="de_AT.UTF-8", TZ="Europe/Vienna", LC_ALL="", TOKEN="secret", LD_PRELOAD="/x.so")

    settings = load()

    assert settings.locale == {"LANG": "de_AT.UTF-8", "TZ": "Europe/Vienna"}
    assert "secret" not in repr(settings)


def test_the_person_trusts_packages_by_any_spelling_of_their_names(
    project: Project, load: Callable[[], Settings]
) -> None:
    assert load().sandbox.trust == frozenset()

    project.configure_person("sandbox: {trust: [Acme_Greeter, other.one]}")

    assert load().sandbox.trust == {"acme-greeter", "other-one"}


@pytest.mark.parametrize(
    ("organisation", "person", "trusted"),
    [
        ("trust: [acme, beta]", "trust: [beta, gamma]", {"beta"}),
        ("trust: []", "trust: [acme]", set()),
        ("trust: [acme]", "minimum: full", {"acme"}),
        ("mode: native", "trust: [acme]", set()),
        ("mode: native, trust: [acme]", "trust: [acme, beta]", {"acme"}),
        ("minimum: full", "mode: native, trust: [acme]", {"acme"}),
    ],
)
def test_a_person_cannot_trust_what_the_organisation_does_not(
    project: Project, managed: Path, load: Callable[[], Settings], organisation: str, person: str, trusted: set[str]
) -> None:
    managed.write_text(f"sandbox: {{{organisation}}}")
    project.configure_person(f"sandbox: {{{person}}}")

    assert load().sandbox.trust == trusted


@pytest.mark.parametrize("name", ["'*'", "acme*", "''", "-acme", "acme/x", "7"])
def test_only_the_name_of_a_package_can_be_trusted(project: Project, load: Callable[[], Settings], name: str) -> None:
    project.configure_person(f"sandbox: {{trust: [{name}]}}")

    with pytest.raises(ConfigError, match=r"sandbox\.trust\.0: "):
        load()


def test_a_project_cannot_trust_a_package(project: Project, load: Callable[[], Settings]) -> None:
    project.configure("sandbox: {trust: [acme]}")

    with pytest.raises(ConfigError) as raised:
        load()

    assert str(raised.value) == (f"{own(project)}: only your own config can trust a package: ~/.config/glee/config.yml")
