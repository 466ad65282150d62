"""The whole of what was too large to return."""

from __future__ import annotations

import pytest
from shell import Glee


@pytest.fixture
def cut(glee: Glee) -> Glee:
    glee.project.configure("limits:\n  output_chars: 200\n")
    glee.project.add_command("long", "i=0; while [ $i -lt 300 ]; do printf 'é%03d\\n' $i; i=$((i+1)); done")
    glee.project.add_command("bytes", "printf 'a\\377\\000b'")
    return glee


def test_a_cut_output_is_read_whole_by_its_handle(cut: Glee) -> None:
    result = cut("run", "long", "--json").json
    handle = result["artifacts"][0]["handle"]

    assert f"[output cut: 1,300 of 1,500 characters hidden; the whole is {handle}]" in result["output"]
    assert cut("artifact", handle) == (0, "".join(f"é{number:03}\n" for number in range(300)), "")


def test_bytes_that_are_no_text_come_back_as_they_were(cut: Glee) -> None:
    ran = cut("run", "bytes", "--json")

    handle = ran.json["artifacts"][0]["handle"]
    assert cut.sh(f'"$glee" artifact {handle} | od -An -c').out.split() == ["a", "377", "\\0", "b"]


@pytest.mark.parametrize(
    "handle", ["", "x", "../../../etc/passwd", "artifact:../x.txt", "artifact:0123456789abcdef.exe"]
)
def test_what_is_no_handle_is_said_to_be_none(glee: Glee, handle: str) -> None:
    ran = glee("artifact", handle)

    assert (ran.status, ran.out) == (2, "")
    assert f"{handle!r} is not an artifact's handle" in ran.err


def test_an_artifact_that_was_removed_is_not_found(glee: Glee) -> None:
    ran = glee("artifact", "artifact:0123456789abcdef.txt")

    assert (ran.status, ran.out) == (2, "")
    assert "there is no artifact:0123456789abcdef.txt" in ran.err


def test_an_artifact_as_json_says_what_it_is_and_holds_it(cut: Glee) -> None:
    text, data = (cut("run", name, "--json").json["artifacts"][0]["handle"] for name in ("long", "bytes"))

    assert cut("artifact", text, "--json").json == {
        "handle": text,
        "media_type": "text/plain; charset=utf-8",
        "size": 1800,
        "text": "".join(f"é{number:03}\n" for number in range(300)),
    }
    assert cut("artifact", data, "--json").json["base64"] == "Yf8AYg=="
