"""What a run left behind is removed, whatever it is."""

from __future__ import annotations

import os
from pathlib import Path

from glee.sandbox.leftovers import remove_tree


def test_a_tree_deeper_than_python_can_descend_is_removed(tmp_path: Path) -> None:
    top = tmp_path / "top"
    top.mkdir()
    here = os.open(top, os.O_RDONLY)
    for _ in range(3000):
        os.mkdir("deeper", dir_fd=here)
        os.close(os.open(".glee-0", os.O_CREAT | os.O_WRONLY, dir_fd=here))
        inner = os.open("deeper", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = inner
    os.close(here)

    remove_tree(str(top))

    assert list(tmp_path.iterdir()) == []


def test_what_is_closed_is_opened_and_what_a_link_leads_to_is_left(tmp_path: Path) -> None:
    kept = tmp_path / "kept"
    (kept / "inner").mkdir(parents=True)
    top = tmp_path / "top"
    (top / "closed" / "inner" / "more").mkdir(parents=True)
    (top / "closed" / "inner" / "link").symlink_to(kept)
    (top / "link").symlink_to(kept)
    (top / ".glee-0" / "full").mkdir(parents=True)
    (top / "closed" / "inner").chmod(0)
    (top / "closed").chmod(0)

    remove_tree(str(top))

    assert sorted(str(path.relative_to(tmp_path)) for path in tmp_path.rglob("*")) == ["kept", "kept/inner"]
