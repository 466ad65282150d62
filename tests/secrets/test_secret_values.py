"""Secrets come from the environment by name: the declared ones, for one call, and nowhere else."""

from __future__ import annotations

import glee
from glee.definitions.permissions import Permissions, SecretNeed
from glee.definitions.result import Failure
from glee.secrets.environment import EnvironmentSecrets, Secrets
from glee.testing import WRITES, Project, Watcher

VALUE = "sk-0123456789abcdef"


def needs(**secrets: bool) -> dict[str, object]:
    return {"secrets": {name: {"type": "string", "required": required} for name, required in secrets.items()}}


def test_a_missing_secret_is_an_error_before_anything_runs(project: Project) -> None:
    project.add_command("send", "touch ran", permissions={**WRITES, **needs(TOKEN=True)})
    watcher = Watcher()

    with project.open() as engine:
        engine.subscribe(watcher)
        result = engine.call_sync("send")

    assert result.error == Failure(
        code="secret_missing",
        message="the secret TOKEN is not set; set the environment variable TOKEN and call again",
        details={"missing": ["TOKEN"]},
    )
    assert not (project.root / "ran").exists()
    assert watcher.names == ["Requested", "Decided", "Finished"]
    assert [line.split(" ")[1] for line in project.audit_lines] == ["TOOL_REFUSED"]


def test_an_empty_secret_is_a_missing_one(project: Project) -> None:
    project.add_command("send", "true", permissions=needs(TOKEN=True))
    project.environ["TOKEN"] = ""

    with project.open() as engine:
        result = engine.call_sync("send")

    assert result.error and result.error.code == "secret_missing"


def test_all_missing_secrets_are_named_at_once(project: Project) -> None:
    project.add_command("send", "true", permissions=needs(ONE=True, TWO=True, THREE=False, FOUR=True))
    project.environ["TWO"] = VALUE

    with project.open() as engine:
        result = engine.call_sync("send")

    assert result.error and result.error.details == {"missing": ["ONE", "FOUR"]}


def test_a_secret_that_is_not_required_may_be_missing(project: Project) -> None:
    project.add_command("send", 'echo "${TOKEN-none}"', permissions=needs(TOKEN=False))

    with project.open() as engine:
        assert engine.call_sync("send").output == "none\n"


def test_a_secret_that_is_not_required_reaches_the_tool_where_it_is_set(project: Project) -> None:
    project.add_command("send", 'echo "${#TOKEN}"', permissions=needs(TOKEN=False))
    project.environ["TOKEN"] = VALUE

    with project.open() as engine:
        assert engine.call_sync("send").output == f"{len(VALUE)}\n"


def test_only_declared_secrets_reach_a_command(project: Project) -> None:
    project.add_command("names", "env | sed 's/=.*//' | sort", permissions=needs(TOKEN=True))
    project.environ.update(TOKEN=VALUE, OTHER_TOKEN="another", AWS_SECRET_ACCESS_KEY="a third")

    with project.open() as engine:
        shown = str(engine.call_sync("names").output).split()

    assert sorted(set(shown) - {"PWD", "SHLVL", "_", "OLDPWD"}) == ["HOME", "LANG", "PATH", "TMPDIR", "TOKEN"]


def test_only_declared_secrets_reach_a_python_tool(project: Project) -> None:
    project.add_python(
        "names", "import os\n\ndef run():\n    return sorted(os.environ)\n", permissions=needs(TOKEN=True)
    )
    project.environ.update(TOKEN=VALUE, OTHER_TOKEN="another")

    with project.open() as engine:
        names = engine.call_sync("names").output

    assert ("TOKEN" in names, "OTHER_TOKEN" in names) == (True, False)


def test_only_declared_secrets_reach_a_function(project: Project) -> None:
    @glee.tool(permissions=needs(TOKEN=True))
    def names(context: glee.Context) -> dict[str, int]:
        """The names of secrets, and how long each is."""
        return {name: len(value) for name, value in context.environment.items()}

    project.environ.update(TOKEN=VALUE, OTHER_TOKEN="another")
    with project.open(tools=[names]) as engine:
        assert engine.call_sync("names").output == {"TOKEN": len(VALUE)}


def test_a_secret_is_read_anew_for_each_call(project: Project) -> None:
    project.add_command("length", 'echo "${#TOKEN}"', permissions=needs(TOKEN=True))
    outputs = []

    with project.open() as engine:
        for value in ("four", "seventy"):
            project.environ["TOKEN"] = value
            outputs.append(engine.call_sync("length").output)

    assert outputs == ["4\n", "7\n"]


def test_a_secret_whose_bytes_are_not_utf_8_is_handed_over_and_taken_out(project: Project) -> None:
    project.add_command("show", 'printf "%s|%s" "${#TOKEN}" "$TOKEN"', permissions=needs(TOKEN=True))
    project.environ["TOKEN"] = "abc\udcffdef"

    with project.open() as engine:
        result = engine.call_sync("show")

        assert (result.ok, result.output) == (True, "7|[secret]")
        assert [engine.read_artifact(artifact) for artifact in result.artifacts] == [b"7|[secret]"]


def test_secrets_print_their_names_alone() -> None:
    secrets = Secrets({"TOKEN": VALUE, "OTHER": VALUE})

    shown = [repr(secrets), str(secrets), f"{secrets}", f"{secrets!r}", repr([secrets])]

    assert shown == ["<Secrets TOKEN, OTHER>"] * 4 + ["[<Secrets TOKEN, OTHER>]"]
    assert repr(Secrets()) == "<Secrets none>"


def test_neither_an_engine_nor_its_parts_print_a_value(project: Project) -> None:
    project.add_command("send", "true", permissions=needs(TOKEN=True))
    project.environ["TOKEN"] = VALUE

    with project.open() as engine:
        engine.call_sync("send")
        parts = engine._parts
        redactor = parts.secrets.get_redactor(Permissions(secrets={"TOKEN": SecretNeed()}))
        shown = [repr(thing) for thing in (engine, parts, parts.secrets, redactor, engine.find("send"))]

    assert [text for text in shown if VALUE in text] == []
    assert (repr(parts.secrets), repr(redactor)) == ("<EnvironmentSecrets>", "<Redactor>")


def test_a_tool_without_secrets_gets_none() -> None:
    source = EnvironmentSecrets({"TOKEN": VALUE})

    assert source.get(Permissions()) == {}
    assert source.get_redactor(Permissions()).text(VALUE) == VALUE
