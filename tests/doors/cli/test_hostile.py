"""Whatever is typed, and whatever lies in the project: a sentence and a status, never a traceback."""

from __future__ import annotations

import os
from collections.abc import Callable

import pytest
from shell import Glee, inputs

DEEP = "[" * 20_000


@pytest.fixture(scope="module")
def glee(make_glee: Callable[[], Glee]) -> Glee:
    made = make_glee()
    project = made.project
    project.add_python(
        "echo", "def run(**given):\n    return given\n", inputs=inputs(closed=False, x={}, n={"type": "integer"})
    )
    project.add_command("say", 'printf "%s" "$1"', command={"args": ["${x}"]}, inputs=inputs("x", x={"type": "string"}))
    project.write("deep.json", DEEP)
    project.write("binary.json", b"\x00\xff\xfe")
    os.mkfifo(made.root / "fifo")
    (project.tools / "loop").symlink_to("loop")
    (project.tools / "folder" / "tool.yml").mkdir(parents=True)
    (project.tools / "file").write_text("")
    project.add_tool("empty", "")
    project.add_tool("deep", f"a: {DEEP}")
    project.add_tool("tabs", "name: tabs\n\tkind: x\n")
    project.add_tool("twice", "name: twice\nname: twice\n")
    project.add_tool("anchors", "a: &a [x, x]\nb: &b [*a, *a]\nc: [*b, *b]\n")
    project.add_tool("list", "- a\n- b\n")
    project.add_tool("number", "42\n")
    project.add_tool("python_tag", "name: !!python/object/apply:os.system ['touch owned']\n")
    project.write(".glee/tools/bytes/tool.yml", bytes(range(256)))
    project.write(".glee/tools/\x1b[31m/tool.yml", "name: x\n")
    return made


@pytest.mark.parametrize(
    "args",
    [
        ["list"],
        ["list", "--json"],
        ["list", "--group", "\x1b[31m"],
        ["lint"],
        ["lint", "--json"],
        ["lint", "loop"],
        ["lint", "folder"],
        ["lint", ".."],
        ["lint", "../../.."],
        ["test"],
        ["test", "deep", "bytes"],
        ["test", ""],
        *(
            ["show", name]
            for name in ("empty", "deep", "tabs", "twice", "anchors", "list", "number", "bytes", "python_tag")
        ),
        *(["run", name] for name in ("empty", "deep", "bytes", "loop", "folder", "file", "python_tag")),
        ["show", ""],
        ["show", ".."],
        ["show", "a" * 100_000],
        ["show", b"\xff\xfe"],
        ["show", "x\ny"],
        ["run", ""],
        ["run", "."],
        ["run", "../../etc/passwd"],
        ["run", "/etc/passwd"],
        ["run", "a" * 100_000],
        ["run", b"\xff"],
        ["run", "echo", "x=" + "a" * 100_000],
        ["run", "echo", "x:=" + DEEP],
        ["run", "echo", "n=" + DEEP],
        ["run", "echo", "n=" + "9" * 5000],
        ["run", "echo", "n=1e999"],
        ["run", "echo", "n=NaN"],
        ["run", "echo", "n:=-0.0"],
        ["run", "echo", 'x:="\\ud800"'],
        ["run", "echo", '\\ud800:="x"'],
        ["run", "echo", b"\xff=1"],
        ["run", "echo", "self=1", "run=2", "given=3"],
        ["run", "echo", "__class__=1"],
        ["run", "echo", "--params", DEEP],
        ["run", "echo", "--params", "@deep.json"],
        ["run", "echo", "--params", "@binary.json"],
        ["run", "echo", "--params", "@"],
        ["run", "echo", "--params", "@\ud800".encode("utf-8", "surrogatepass")],
        ["run", "echo", "--params", "null"],
        ["run", "echo", "--timeout", "1e308"],
        ["run", "echo", "--timeout", "-inf"],
        ["run", "echo", "--idempotency-key", "k" * 100_000],
        ["run", "echo", "--idempotency-key", b"\xff"],
        ["run", "echo", "--agent", "a\nb", "--session", b"\xff"],
        ["run", "echo", "--vocabulary", ""],
        ["run", "echo", "--root", "/"],
        ["run", "echo", "--root", ""],
        ["run", "say", "x=-rf"],
        ["run", "say", 'x:="\\u0000"'],
        ["run", "say", 'x:="\\ud800"'],
        ["run", "say", "x=" + "a" * 130_000],
        ["new", "x" * 300, "--kind", "http"],
        ["new", b"\xff", "--kind", "http"],
        ["init", "/proc/nowhere"],
        ["init", "/dev/null"],
        ["init", "a" * 300],
        ["artifact", "artifact:" + "a" * 100_000 + ".txt"],
        ["artifact", b"\xff"],
        ["completion", ""],
        ["--", "--", "--"],
        ["-"],
        ["--root"],
        ["run", "--", "--yes"],
        [b"\xff"],
    ],
    ids=lambda args: " ".join(map(str, args))[:40].encode("ascii", "backslashreplace").decode(),
)
def test_nothing_that_can_be_typed_prints_a_traceback(glee: Glee, args: list[str | bytes]) -> None:
    ran = glee(*args)

    assert "Traceback" not in ran.out + ran.err
    assert "Glee itself failed" not in ran.err
    assert "Glee failed on this call" not in ran.err
    assert ran.status in (0, 1, 2, 3, 124)
    assert ran.status == 0 or ran.out or ran.err.startswith(("error: ", "Usage: "))
    assert not (glee.root / "owned").exists()


@pytest.mark.parametrize(
    "config",
    [
        "",
        "tools: 3",
        "tools:\n  deny: no",
        "limits:\n  timeout_ms: -1",
        "\t",
        "[",
        "egress: {ca_file: x}",
        "\x00",
        DEEP,
    ],
    ids=lambda config: repr(config[:20]),
)
@pytest.mark.parametrize("args", [["list"], ["run", "say", "x=1"]], ids=" ".join)
def test_no_config_makes_a_traceback(make_glee: Callable[[], Glee], config: str, args: list[str]) -> None:
    fresh = make_glee()
    fresh.project.configure(config)

    ran = fresh(*args)

    assert "Traceback" not in ran.err
    assert ran.status in (0, 2)
    assert ran.err == "" or ran.err.startswith("error: ")


def test_state_folders_that_cannot_be_used_are_no_traceback(glee: Glee) -> None:
    nowhere = dict.fromkeys(("HOME", "XDG_STATE_HOME", "XDG_CACHE_HOME", "XDG_CONFIG_HOME"), "/dev/null")

    assert glee("list", env=nowhere).status == 0
    assert glee("run", "say", "x=1", env=nowhere) == (0, "1\n", "")
    claimed = glee("run", "say", "x=1", "--idempotency-key", "k", env=nowhere)
    assert (claimed.status, claimed.out) == (1, "")
    assert claimed.err.startswith("error: the idempotency key cannot be claimed in ")
