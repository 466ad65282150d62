"""What a launcher is told: plain words that any program can read."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.sandbox.plan import ARITY, decode_steps, encode_steps

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
