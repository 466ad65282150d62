"""Allow and deny by name: deny wins, files only narrow, and a denied tool stays unknown."""

from __future__ import annotations

from collections.abc import Callable
from fnmatch import fnmatchcase
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

import glee
from glee import config
from glee.catalog.source import Summary
from glee.definitions.call import Call, Caller
from glee.definitions.decision import Allow, Ask, Deny, Rule
from glee.definitions.result import Failure
from glee.definitions.rules import NameRules
from glee.policy.names import NamePolicy
from glee.testing import WRITES, Project, Watcher

NOBODY = Caller()


def sees(policy: NamePolicy, name: str) -> bool:
    return isinstance(policy.visible(Summary(name=name), NOBODY), Allow)


@pytest.fixture
def configure_managed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Callable[[str], Path]:
    """Writes the file of an organisation."""

    def write(text: str) -> Path:
        file = tmp_path / "etc" / "config.yml"
        file.parent.mkdir()
        file.write_text(text)
        monkeypatch.setattr(config, "MANAGED_FILE", file)
        return file

    return write


def test_without_rules_every_tool_is_visible() -> None:
    assert NamePolicy().visible(Summary(name="greet"), NOBODY) == Allow()


def test_a_denied_name_is_denied_by_the_rule_and_file_that_say_so() -> None:
    policy = NamePolicy([NameRules(source="/etc/a.yml", deny=("x", "repo_*"))])

    assert policy.visible(Summary(name="repo_scan"), NOBODY) == Deny(
        reason="the tool repo_scan is denied by tools.deny: repo_* in /etc/a.yml",
        rule=Rule(text="tools.deny: repo_*", source="/etc/a.yml"),
    )


def test_a_name_outside_an_allow_list_is_denied_by_the_file_that_has_it() -> None:
    policy = NamePolicy([NameRules(source="/etc/a.yml", allow=("web_*",))])

    assert sees(policy, "web_search")
    assert policy.visible(Summary(name="repo_scan"), NOBODY) == Deny(
        reason="the tool repo_scan is not among tools.allow in /etc/a.yml",
        rule=Rule(text="tools.allow", source="/etc/a.yml"),
    )


def test_deny_wins_over_allow_in_the_same_file() -> None:
    policy = NamePolicy([NameRules(source="a", allow=("repo_*",), deny=("repo_wipe",))])

    assert (sees(policy, "repo_scan"), sees(policy, "repo_wipe")) == (True, False)


def test_an_empty_allow_list_allows_nothing_and_a_missing_one_everything() -> None:
    assert not sees(NamePolicy([NameRules(source="a", allow=())]), "greet")
    assert sees(NamePolicy([NameRules(source="a", allow=None)]), "greet")


def test_patterns_tell_capitals_apart_and_match_the_whole_name() -> None:
    policy = NamePolicy([NameRules(source="a", deny=("greet",))])

    assert [sees(policy, name) for name in ("greet", "Greet", "greet2", "a.greet")] == [False, True, True, True]


def test_a_manifest_s_own_wish_for_approval_is_asked_of_a_person() -> None:
    @glee.tool(approval="sends mail")
    def send() -> None:
        """Send."""

    @glee.tool
    def look() -> None:
        """Look."""

    asked = NamePolicy().decide(send.definition, {}, Call(tool="send"))

    assert asked == Ask(reason="sends mail", rule=Rule(text="approval", source=send.definition.origin.location))
    assert NamePolicy().decide(look.definition, {}, Call(tool="look")) == Allow()


names = st.text(alphabet="abc._", min_size=1, max_size=4)
patterns = st.lists(st.text(alphabet="abc._*?", min_size=1, max_size=4), max_size=3).map(tuple)
files = st.builds(NameRules, source=st.just("file"), allow=st.none() | patterns, deny=patterns)


@settings(deadline=None)
@given(st.lists(files, max_size=3), names)
def test_a_tool_is_visible_only_if_no_file_denies_it_and_every_file_with_a_list_allows_it(
    rules: list[NameRules], name: str
) -> None:
    def matches(patterns: tuple[str, ...]) -> bool:
        return any(fnmatchcase(name, pattern) for pattern in patterns)

    wanted = not any(matches(file.deny) for file in rules) and all(
        matches(file.allow) for file in rules if file.allow is not None
    )

    assert sees(NamePolicy(rules), name) is wanted


@settings(deadline=None)
@given(st.lists(files, max_size=3), files, names)
def test_another_file_can_only_narrow(rules: list[NameRules], more: NameRules, name: str) -> None:
    if sees(NamePolicy([*rules, more]), name):
        assert sees(NamePolicy(rules), name)


def test_each_file_narrows_what_stands_above_it(project: Project, configure_managed: Callable[[str], Path]) -> None:
    for name in ("repo_scan", "repo_wipe", "web_search", "mail_send"):
        project.add_command(name, "true")
    managed = configure_managed("tools: {deny: [repo_wipe]}")
    project.configure_person("tools: {allow: ['repo_*', 'web_*']}")
    project.configure("tools: {allow: ['*'], deny: ['web_*']}")

    with project.open() as engine:
        listed = [summary.name for summary in engine.list()]
        errors = [engine.call_sync(name).error for name in ("repo_wipe", "mail_send", "web_search", "repo_scan")]

    def denied(message: str, rule: str) -> Failure:
        return Failure(code="denied", message=message, details={"rule": rule})

    own = project.root / ".glee" / "config.yml"
    assert listed == ["repo_scan"]
    assert errors == [
        denied(
            f"the tool repo_wipe is denied by tools.deny: repo_wipe in {managed}",
            f"tools.deny: repo_wipe in {managed}",
        ),
        denied(
            f"the tool mail_send is not among tools.allow in {project.person_config}",
            f"tools.allow in {project.person_config}",
        ),
        denied(f"the tool web_search is denied by tools.deny: web_* in {own}", f"tools.deny: web_* in {own}"),
        None,
    ]


def test_a_project_cannot_allow_again_what_an_organisation_denies(
    project: Project, configure_managed: Callable[[str], Path]
) -> None:
    configure_managed("tools: {deny: ['*']}")
    project.configure("tools: {allow: [greet]}")
    project.add_command("greet", "touch ran", permissions=WRITES)

    with project.open() as engine:
        result = engine.call_sync("greet")

    assert (result.error and result.error.code, (project.root / "ran").exists()) == ("denied", False)


def test_the_schema_of_a_denied_tool_is_not_looked_at(project: Project) -> None:
    """Neither is its input judged, nor does a fault in its schema show."""
    schema = {"type": "object", "required": ["secret_field"], "properties": {"secret_field": {"type": "string"}}}
    project.add_command("greet", "true", inputs={"schema": schema})
    project.configure("tools: {deny: [greet]}")
    watcher = Watcher()

    with project.open() as engine:
        engine.subscribe(watcher)
        result = engine.call_sync("greet", {"wrong": 1})

    assert result.error is not None
    assert (result.error.code, "secret_field" in str(result)) == ("denied", False)
    assert watcher.names == ["Requested", "Decided", "Finished"]


def test_a_broken_definition_of_a_denied_tool_is_denied_without_its_problems(project: Project) -> None:
    project.add_tool("greet", "name: greet\nsecret_field: 1\n")
    project.configure("tools: {deny: [greet]}")

    with project.open() as engine:
        result = engine.call_sync("greet")
        listed = engine.list()

    assert result.error is not None
    assert (result.error.code, "secret_field" in str(result), listed) == ("denied", False, ())


def test_a_denied_tool_is_never_suggested(project: Project) -> None:
    for name in ("repo_scan", "repo_scam", "repo_scat"):
        project.add_command(name, "true")
    project.configure("tools: {deny: [repo_scam]}")

    with project.open() as engine:
        result = engine.call_sync("repo_sca")

    assert result.error == Failure(
        code="not_found",
        message="there is no tool repo_sca; did you mean repo_scat or repo_scan?",
        details={"nearest": ["repo_scat", "repo_scan"]},
    )


def test_a_denied_tool_is_not_found_by_either_of_its_names(project: Project) -> None:
    @glee.tool(name="web.search")
    def search() -> None:
        """Search."""

    project.configure("tools: {deny: ['web.*']}")
    with project.open(tools=[search]) as engine:
        found = engine.find("web.search"), engine.find("web_search"), engine.list()

    assert found == (None, None, ())


def test_the_rule_is_recorded_as_a_refusal(project: Project) -> None:
    project.add_command("greet", "true")
    project.configure("tools: {deny: [greet]}")

    with project.open() as engine:
        engine.call_sync("greet")

    (line,) = project.audit_lines
    assert " TOOL_REFUSED name=greet params={} status=denied " in line
