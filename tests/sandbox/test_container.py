"""A description made into a command line: what stands in it, and that no path is ever misread."""

from __future__ import annotations

import csv
import os
import shlex
import subprocess
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from glee.errors import SandboxUnavailable
from glee.sandbox.container import Engine, compile_run
from glee.sandbox.container_mounts import Mount, arrange_mounts, parse_mount_points
from glee.sandbox.containers import find_engine, find_user
from glee.sandbox.nsjail import compile_nsjail
from glee.sandbox.process_one import SCRIPT, read_mark, write_orders
from glee.sandbox.spec import Bounds, Spec

DOCKER = Engine(name="docker", program="/usr/bin/docker", cpus=2)
PODMAN = Engine(name="podman", program="/usr/bin/podman", is_rootless=True)


def describe(**fields: object) -> Spec:
    usual: dict[str, object] = {"read": (), "write": (), "links": (), "guarded": (), "hidden": ()}
    return Spec(**{**usual, "cwd": "/work", "network": "none", "bounds": Bounds(memory_mb=64), **fields})  # type: ignore[arg-type]


def compile_words(spec: Spec, *mounts: Mount, engine: Engine = DOCKER) -> list[str]:
    return list(compile_run(spec, mounts, engine=engine, image="an/image:1", user="1000:1000", name="glee-1"))


def test_the_whole_command_line() -> None:
    mounts = (
        Mount(source="/data/in", target="/data/in", mode="r"),
        Mount(source="/state", target="/state", mode="mask"),
    )

    words = compile_words(describe(bounds=Bounds(memory_mb=64, cpu_percent=50)), *mounts)

    assert words == [
        "/usr/bin/docker",
        "run",
        "--rm",
        "--interactive",
        "--pull=never",
        "--name=glee-1",
        "--label=glee",
        "--read-only",
        "--cap-drop=ALL",
        "--security-opt=no-new-privileges",
        "--log-driver=none",
        "--no-healthcheck",
        "--hostname=glee",
        "--user=1000:1000",
        "--workdir=/work",
        "--network=none",
        "--memory=64m",
        "--memory-swap=64m",
        "--pids-limit=256",
        "--cpus=0.5",
        "--ulimit=nofile=1024:1024",
        "--ulimit=fsize=1073741824:1073741824",
        "--ulimit=cpu=600:600",
        "--ulimit=core=0:0",
        "--tmpfs=/tmp:rw,exec,nosuid,nodev,size=268435456,mode=1777",
        "--tmpfs=/run/glee:rw,exec,nosuid,nodev,size=268435456,mode=1777",
        "--mount=type=bind,source=/data/in,target=/data/in,readonly",
        "--mount=type=tmpfs,target=/state,tmpfs-size=4096,ro",
        "--entrypoint=/bin/sh",
        "an/image:1",
        "-c",
        SCRIPT,
        "glee",
    ]


def test_a_network_is_there_only_where_it_was_granted() -> None:
    assert "--network=none" in compile_words(describe())
    assert not any(word.startswith("--network") for word in compile_words(describe(network="open")))


def test_podman_of_an_ordinary_user_is_told_who_that_is_and_to_copy_nothing() -> None:
    words = compile_words(describe(), Mount(source="/state", target="/state", mode="mask"), engine=PODMAN)

    assert {"--userns=keep-id", "--read-only-tmpfs=false", "--http-proxy=false"} <= set(words)
    assert all("notmpcopyup" in word for word in words if "tmpfs=/" in word or "type=tmpfs" in word)


def test_more_processors_than_there_are_are_not_asked_for() -> None:
    assert "--cpus=2" in compile_words(describe(bounds=Bounds(cpu_percent=900)))


def test_a_granted_tmp_takes_the_place_of_the_private_one() -> None:
    words = compile_words(describe(), Mount(source="/tmp", target="/tmp", mode="w"))

    assert [word for word in words if word.startswith("--tmpfs=/tmp")] == []


@given(st.text(min_size=1).map(lambda text: f"/{text}"), st.sampled_from(["r", "w"]))
def test_a_mount_is_read_as_it_was_meant_or_refused(path: str, mode: str) -> None:
    mount = Mount(source=path, target=path, mode=mode)  # type: ignore[arg-type]
    try:
        words = compile_words(describe(), mount)
    except SandboxUnavailable:
        assert not path.isprintable() or path != path.strip()
        return

    (field,) = (word.removeprefix("--mount=") for word in words if word.startswith("--mount="))
    (row,) = csv.reader([field], strict=True)
    assert row == ["type=bind", f"source={path}", f"target={path}", *(["readonly"] if mode == "r" else [])]


@given(st.text(alphabet='a,"', min_size=1).map(lambda text: f"/{text}"))
def test_podman_which_knows_no_quotes_is_given_none(path: str) -> None:
    mount = Mount(source=path, target=path, mode="r")
    if path.strip("/a"):
        with pytest.raises(SandboxUnavailable, match="podman cannot mount"):
            compile_words(describe(), mount, engine=PODMAN)
    else:
        assert f"--mount=type=bind,source={path},target={path},readonly" in compile_words(
            describe(), mount, engine=PODMAN
        )


@pytest.mark.parametrize("path", ["/a\nb", "/a\r\nb", "/a ", "/a\t", "/\udcff", "/a\0b", "relative", "/\u2028"])
def test_a_path_that_would_be_altered_on_the_way_is_refused(path: str) -> None:
    with pytest.raises(SandboxUnavailable, match="cannot be given the path"):
        compile_words(describe(), Mount(source=path, target=path, mode="r"))
    with pytest.raises(SandboxUnavailable, match="cannot be given the path"):
        compile_words(describe(cwd=path))


def make(root: Path, *names: str) -> None:
    for name in names:
        path = root / name
        if name.endswith("/"):
            path.mkdir(parents=True)
        else:
            path.parent.mkdir(parents=True, exist_ok=True)
            path.touch()


def arrange(root: Path, *mount_points: str, **paths: tuple[str, ...]) -> list[tuple[str, str]]:
    spec = describe(**{kind: tuple(str(root / name) for name in names) for kind, names in paths.items()})
    points = [str(root / name) for name in mount_points]
    return [(os.path.relpath(mount.target, root), mount.mode) for mount in arrange_mounts(spec, (), points)]


def test_what_is_guarded_is_read_only_and_the_way_to_it_cannot_be_renamed(tmp_path: Path) -> None:
    make(tmp_path, ".glee/tools/", ".glee/config.yml", "state/glee/")

    mounts = arrange(tmp_path, write=("",), guarded=(".glee/config.yml", ".glee/tools"), hidden=("state/glee",))

    assert mounts == [
        (".", "w"),
        (".glee", "w"),
        ("state", "w"),
        (".glee/config.yml", "r"),
        (".glee/tools", "r"),
        ("state/glee", "mask"),
    ]


def test_the_way_to_what_is_guarded_does_not_become_writable(tmp_path: Path) -> None:
    make(tmp_path, ".glee/config.yml")

    mounts = arrange(tmp_path, write=("",), read=(".glee",), guarded=(".glee/config.yml",))

    assert mounts == [(".", "w"), (".glee", "r"), (".glee/config.yml", "r")]


def test_another_file_system_inside_a_read_only_folder_is_read_only_too(tmp_path: Path) -> None:
    make(tmp_path, "in/disk/", "in/out/disk/")

    mounts = arrange(tmp_path, "in/disk", "in/out/disk", "other", read=("in",), write=("in/out",))

    assert mounts == [("in", "r"), ("in/disk", "r"), ("in/out", "w")]


def test_a_grant_inside_another_of_the_same_kind_is_left_out(tmp_path: Path) -> None:
    make(tmp_path, "a/b/c")

    assert arrange(tmp_path, read=("a", "a/b/c")) == [("a", "r")]


def test_what_a_link_of_the_program_leads_to_stands_in_its_place(tmp_path: Path) -> None:
    make(tmp_path, "real/tool", "bin/")
    (tmp_path / "bin" / "tool").symlink_to("../real/tool")
    (tmp_path / "bin" / "other").symlink_to("/etc/hostname")

    mounts = arrange(tmp_path, read=("real/tool",), links=("bin/tool", "bin/other"))

    assert mounts == [("bin/tool", "r"), ("real/tool", "r")]


@pytest.mark.parametrize("path", ["/", "/usr", "/etc", "/proc/1", "/sys/kernel", "/dev/sda", "/run", "/var/run"])
def test_what_a_container_has_of_its_own_is_not_covered(path: str) -> None:
    with pytest.raises(SandboxUnavailable, match="cannot be shown in a container"):
        arrange_mounts(describe(read=(path,)), (), ())


def test_a_socket_is_not_granted(tmp_path: Path) -> None:
    os.mkfifo(tmp_path / "pipe")

    with pytest.raises(SandboxUnavailable, match="neither a folder nor a file"):
        arrange_mounts(describe(write=(str(tmp_path / "pipe"),)), (), ())


def test_mount_points_are_read_with_their_odd_characters() -> None:
    text = "36 35 98:0 / /mnt/a\\040b rw,noatime master:1 - ext3 /dev/root rw\n"

    assert parse_mount_points(text) == ["/mnt/a b"]


@given(
    st.lists(st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])), max_size=4),
    st.dictionaries(
        st.from_regex("[A-Z]{1,3}", fullmatch=True),
        st.text(st.characters(exclude_characters="\0", exclude_categories=["Cs"])),
        max_size=3,
    ),
)
def test_orders_arrive_as_they_were_given(words: list[str], env: dict[str, str]) -> None:
    orders = write_orders(["/bin/true", *words], env=env, mark="m")
    values = " ".join(f'"${name}"' for name in env)

    done = subprocess.run(
        ["sh"], input=orders + f'printf "%s\\0" "$@" {values}'.encode(), capture_output=True, check=True
    )

    assert done.stdout.decode().split("\0")[:-1] == ["/bin/true", *words, *env.values()]


@given(st.integers(min_value=0, max_value=400))
def test_orders_that_arrive_in_part_are_no_orders(size: int) -> None:
    orders = write_orders(["/bin/echo", "one", "two"], env={"A": "b"}, mark="m")
    part = orders[: min(size, len(orders) - 2)]

    done = subprocess.run(
        ["sh", "-c", f"set --\neval {shlex.quote(part.decode())}\necho $#"], capture_output=True, text=True
    )

    assert done.stdout in ("", "0\n")


def test_the_mark_is_taken_out_of_what_the_program_wrote() -> None:
    assert read_mark(b"mine\nM code\nlate\n", "M") == (b"mine\nlate\n", "code")
    assert read_mark(b"mine\n", "M") == (b"mine\n", "")


def test_an_engine_is_found_or_its_absence_is_said(tmp_path: Path) -> None:
    with pytest.raises(SandboxUnavailable, match="there is no docker or podman on PATH"):
        find_engine(None, {}, str(tmp_path))
    make(tmp_path, "podman")
    (tmp_path / "podman").chmod(0o755)
    assert find_engine(None, {}, str(tmp_path)).name == "podman"
    with pytest.raises(SandboxUnavailable, match="there is no docker on PATH"):
        find_engine("docker", {}, str(tmp_path))


@pytest.mark.skipif(os.getuid() != 0, reason="only root may be somebody else")
def test_a_run_by_root_is_whoever_owns_what_it_may_write_to(tmp_path: Path) -> None:
    make(tmp_path, "a/", "b/", "open/", "roots/")
    os.chown(tmp_path / "a", 1001, 1002)
    os.chown(tmp_path / "b", 1003, 1003)
    (tmp_path / "open").chmod(0o777)
    a, b, everyones, roots = (str(tmp_path / name) for name in ("a", "b", "open", "roots"))

    assert find_user([]) == "64999:64999"
    assert find_user([everyones]) == "64999:64999"
    assert find_user([a, everyones]) == "1001:1002"
    with pytest.raises(SandboxUnavailable, match="belongs to root"):
        find_user([a, roots])
    with pytest.raises(SandboxUnavailable, match="belong to different users"):
        find_user([a, b])


def test_the_command_line_of_nsjail() -> None:
    mounts = (
        Mount(source="/data/in", target="/data/in", mode="r"),
        Mount(source="/data/out", target="/data/out", mode="w"),
        Mount(source="/state", target="/state", mode="mask"),
    )
    system = {"/usr": "", "/bin": "usr/bin"}

    words = compile_nsjail(describe(), mounts, program="nsjail", system=system, user="1:2", search_path="/usr/bin:/bin")

    assert words[:8] == (
        "nsjail",
        "--mode=o",
        "--quiet",
        "--time_limit=0",
        "--hostname=glee",
        "--env=PATH=/usr/bin:/bin",
        "--user=1:1:1",
        "--group=2:2:1",
    )
    assert {"--iface_no_lo", "--bindmount_ro=/usr", "--symlink=usr/bin:/bin", "--rlimit_core=0"} <= set(words)
    assert words[-8:-5] == (
        "--bindmount_ro=/data/in:/data/in",
        "--bindmount=/data/out:/data/out",
        "--mount=none:/state:tmpfs:size=4096,mode=0",
    )
    assert words[-4:-2] == ("/bin/sh", "-c")
    assert words[-2].startswith("ulimit -d 65536 ")


def test_nsjail_which_cuts_at_colons_is_given_none() -> None:
    with pytest.raises(SandboxUnavailable, match="nsjail cannot be given the path"):
        compile_nsjail(describe(cwd="/a:b"), (), program="nsjail", system={}, user="1:1", search_path="/bin")
