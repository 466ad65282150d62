"""What a launcher is told: plain words that any program can read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.sandbox.plan import ARITY, PLAN_BYTES, decode_steps, encode_steps

words = st.text(st.characters(exclude_characters="\0", exclude_categories=("Cs",)), max_size=20)
steps = st.sampled_from(sorted(ARITY)).flatmap(lambda name: st.tuples(st.just(name), *[words] * ARITY[name]))


@given(st.lists(steps))
def test_steps_are_read_as_they_were_written(written: list[tuple[str, ...]]) -> None:
    assert list(decode_steps(encode_steps(written))) == written


def test_a_path_that_is_not_utf8_is_kept() -> None:
    assert list(decode_steps(encode_steps([("folder", "/a\udcff")]))) == [("folder", "/a\udcff")]


@pytest.mark.parametrize("step", [("folder",), ("folder", "/a", "/b"), ("folder", "/a\0/b")])
def test_a_step_that_would_be_read_as_another_is_refused(step: tuple[str, ...]) -> None:
    with pytest.raises(ValueError, match=r"arguments|zero byte"):
        encode_steps([step])


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"nonsense\0/\0", "the step nonsense is not known"),
        (b"stamp\0x\0bind\0r\0", "the step bind takes 3 arguments"),
        (b"x" * (PLAN_BYTES + 1), "the plan is too large"),
    ],
)
def test_what_no_engine_writes_is_not_read(data: bytes, words: str) -> None:
    with pytest.raises(ValueError, match=words):
        list(decode_steps(data))
