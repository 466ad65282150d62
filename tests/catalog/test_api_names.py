"""Names as model providers accept them: a table in which every tool has its own."""

from __future__ import annotations

import hashlib
import re
from random import Random

from hypothesis import given, settings
from hypothesis import strategies as st

from glee.catalog.registry import api_table

ACCEPTED = re.compile(r"[A-Za-z0-9_-]{1,64}")
near_misses = st.text(alphabet="ab._-:/ é", max_size=6)
names = st.one_of(near_misses, st.text(max_size=80), st.from_regex(ACCEPTED, fullmatch=True))
name_sets = st.sets(names, max_size=30)


def short_hash(name: str, length: int = 8) -> str:
    return hashlib.sha256(name.encode()).hexdigest()[:length]


def test_a_dot_becomes_an_underscore() -> None:
    assert api_table(["web.search", "repo_scan"]) == {"web_search": "web.search", "repo_scan": "repo_scan"}


def test_a_collision_gives_a_short_hash_to_the_name_that_had_to_change() -> None:
    assert api_table(["web.search", "web_search"]) == {
        "web_search": "web_search",
        f"web_search_{short_hash('web.search')}": "web.search",
    }


def test_two_changed_names_that_collide_both_get_a_hash() -> None:
    assert api_table(["web.search", "web:search"]) == {
        f"web_search_{short_hash('web.search')}": "web.search",
        f"web_search_{short_hash('web:search')}": "web:search",
    }


def test_a_long_name_is_shortened_and_told_apart_by_its_hash() -> None:
    long, longer = "x" * 65, "x" * 66

    assert api_table([long, longer]) == {
        f"{'x' * 55}_{short_hash(long)}": long,
        f"{'x' * 55}_{short_hash(longer)}": longer,
    }


def test_a_name_that_looks_like_a_hashed_one_keeps_its_own_name() -> None:
    taken = f"web_search_{short_hash('web.search')}"

    assert api_table(["web.search", "web_search", taken]) == {
        "web_search": "web_search",
        taken: taken,
        f"web_search_{short_hash('web.search', 16)}": "web.search",
    }


def test_a_name_given_twice_is_one_name() -> None:
    assert api_table(["web.search", "web.search"]) == {"web_search": "web.search"}


@settings(deadline=None)
@given(name_sets)
def test_every_tool_has_one_accepted_name_of_its_own(known: set[str]) -> None:
    table = api_table(known)

    assert sorted(table.values()) == sorted(known)
    assert [api_name for api_name in table if not ACCEPTED.fullmatch(api_name)] == []


@settings(deadline=None)
@given(name_sets, st.randoms(use_true_random=False))
def test_the_table_does_not_depend_on_the_order_of_loading(known: set[str], random: Random) -> None:
    shuffled = sorted(known)
    random.shuffle(shuffled)

    assert api_table(shuffled) == api_table(sorted(known))


@settings(deadline=None)
@given(name_sets)
def test_a_name_that_is_accepted_as_it_is_stays_as_it_is(known: set[str]) -> None:
    table = api_table(known)

    assert {name for name in known if ACCEPTED.fullmatch(name) and table.get(name) != name} == set()
