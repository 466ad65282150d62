"""Artifacts: files of their owner alone, read by handle and never by path."""

from __future__ import annotations

import os
import stat
import threading
from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from glee.artifacts.store import ArtifactStore
from glee.definitions.result import Artifact
from glee.errors import NotFound, Unavailable
from glee.testing import Project

ID = "0123456789abcdef"


@pytest.fixture
def folder(tmp_path: Path) -> Path:
    return tmp_path / "state" / "artifacts"


@pytest.fixture
def store(folder: Path) -> ArtifactStore:
    return ArtifactStore(folder)


@pytest.mark.parametrize(
    ("suffix", "media_type"),
    [("txt", "text/plain; charset=utf-8"), ("json", "application/json"), ("bin", "application/octet-stream")],
)
def test_what_is_kept_is_read_again_whole(store: ArtifactStore, suffix: str, media_type: str) -> None:
    data = bytes(range(256)) * 100

    kept = store.keep(ID, data, suffix)

    assert kept == Artifact(handle=f"artifact:{ID}.{suffix}", media_type=media_type, size=len(data))
    assert store.read(kept.handle) == data


def test_an_artifact_is_its_owner_s_alone(store: ArtifactStore, folder: Path) -> None:
    before = os.umask(0)
    try:
        store.keep(ID, b"private", "txt")
    finally:
        os.umask(before)

    (file,) = folder.iterdir()
    assert [stat.S_IMODE(path.stat().st_mode) for path in (file, folder)] == [0o600, 0o700]


def test_an_artifact_lies_outside_the_project(project: Project) -> None:
    project.add_command("many", "seq 1 100000")

    with project.open() as engine:
        engine.call_sync("many")

    (file,) = Path(project.environ["XDG_STATE_HOME"]).rglob("artifacts/*")
    assert not file.is_relative_to(project.root)


HOSTILE = [
    "",
    "artifact:",
    ID,
    f"artifact:{ID}",
    f"artifact:{ID}.exe",
    f"artifact:{ID}.txt\n",
    f"artifact:{ID}.txt\0",
    f"artifact:{ID}\0.txt",
    f" artifact:{ID}.txt",
    f"artifact:../{ID}.txt",
    f"artifact:../../{ID}.txt",
    f"artifact:/{ID}.txt",
    "artifact:/etc/passwd",
    "artifact:..",
    "../../etc/passwd",
    "/etc/passwd",
    f"artifact:{ID.upper()}.txt",
    f"artifact:{'0' * 65}.txt",
    "artifact:0123.txt",
    f"artifact:%2e%2e%2f{ID}.txt",
    f"artifact:{ID}.txt/../{ID}.txt",
    "artifact:０１２３４５６７８９.txt",
]


@pytest.mark.parametrize("handle", HOSTILE)
def test_a_handle_that_is_none_is_refused(store: ArtifactStore, folder: Path, handle: str) -> None:
    store.keep(ID, b"here", "txt")
    (folder.parent / f"{ID}.txt").write_text("outside")

    with pytest.raises(NotFound, match="is not an artifact's handle"):
        store.read(handle)


@settings(deadline=None)
@given(st.text() | st.text("artifact:./0f\0\\%").map(lambda text: f"artifact:{text}"))
def test_no_text_leads_out_of_the_folder(tmp_path_factory: pytest.TempPathFactory, handle: str) -> None:
    store = ArtifactStore(tmp_path_factory.getbasetemp() / "nothing-kept")

    with pytest.raises(NotFound):
        store.read(handle)


def test_a_handle_of_nothing_says_why_it_may_be_gone(store: ArtifactStore) -> None:
    with pytest.raises(NotFound) as raised:
        store.read(f"artifact:{ID}.txt")

    assert str(raised.value) == (f"there is no artifact:{ID}.txt; artifacts are removed when newer ones need the room")


def test_an_artifact_that_cannot_be_read_says_why(store: ArtifactStore, folder: Path) -> None:
    (folder / f"{ID}.txt").mkdir(parents=True)

    with pytest.raises(Unavailable, match=f"^artifact:{ID}.txt cannot be read: Is a directory$"):
        store.read(f"artifact:{ID}.txt")


def test_the_oldest_are_removed_when_there_are_too_many_bytes(folder: Path) -> None:
    store = ArtifactStore(folder, kept_bytes=250)
    for number in range(4):
        kept = store.keep(f"{number:016x}", b"x" * 100, "bin")
        os.utime(folder / kept.handle.removeprefix("artifact:"), ns=(number, number))

    assert sorted(path.name for path in folder.iterdir()) == [f"{2:016x}.bin", f"{3:016x}.bin"]
    with pytest.raises(NotFound):
        store.read(f"artifact:{0:016x}.bin")


def test_an_artifact_larger_than_the_room_is_kept_alone(folder: Path) -> None:
    store = ArtifactStore(folder, kept_bytes=50)
    store.keep("0" * 16, b"small", "bin")

    kept = store.keep("1" * 16, b"x" * 100, "bin")

    assert (store.read(kept.handle), len(list(folder.iterdir()))) == (b"x" * 100, 1)


def test_keeping_leaves_no_draft_behind(store: ArtifactStore, folder: Path) -> None:
    store.keep(ID, b"data", "txt")

    assert [path.name for path in folder.iterdir()] == [f"{ID}.txt"]


def test_a_folder_that_cannot_be_made_is_an_error_that_says_why(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("in the way")

    with pytest.raises(Unavailable) as raised:
        ArtifactStore(tmp_path / "file" / "artifacts").keep(ID, b"data", "txt")

    assert str(raised.value) == "the whole output could not be kept: Not a directory"


def test_an_artifact_that_cannot_take_its_place_leaves_no_draft(store: ArtifactStore, folder: Path) -> None:
    (folder / f"{ID}.txt").mkdir(parents=True)

    with pytest.raises(Unavailable, match="the whole output could not be kept"):
        store.keep(ID, b"data", "txt")

    assert [path.name for path in folder.iterdir()] == [f"{ID}.txt"]


def test_many_threads_keep_and_prune_in_one_folder(folder: Path) -> None:
    """Each sees the others' files come and go while it makes room."""
    store = ArtifactStore(folder, kept_bytes=10_000)
    failures: list[Exception] = []
    start = threading.Barrier(4)

    def keep(worker: int) -> None:
        start.wait()
        for number in range(100):
            try:
                store.keep(f"{worker:08x}{number:08x}", b"x" * 10, "bin")
            except Exception as error:
                failures.append(error)

    threads = [threading.Thread(target=keep, args=(worker,)) for worker in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert (failures, len(list(folder.iterdir()))) == ([], 400)


def test_an_engine_reads_an_artifact_by_its_handle_or_by_itself(project: Project) -> None:
    project.add_command("many", "seq 1 100000")

    with project.open() as engine:
        (artifact,) = engine.call_sync("many").artifacts
        assert engine.read_artifact(artifact) == engine.read_artifact(artifact.handle)

    with project.open() as another:
        assert another.read_artifact(artifact).startswith(b"1\n2\n3\n")
