"""Holding a folder's content: one identity, and everything that is no plain content of the skill refused."""

import hashlib
import os
import socket
from collections.abc import Callable
from pathlib import Path

import pytest

from agentstead.skills import store
from agentstead.skills.handles import Fingerprint, Moved, open_folder, read_file
from agentstead.skills.store import HeldFile, Listed, Place, TreeRefused, held_tree, hold, list_files, media_type
from agentstead.skills.warm import WarmIds

WriteSkill = Callable[..., Path]
HI = hashlib.sha256(b"hi\n").hexdigest()


def tree_id(folder: Path) -> str:
    return hold(Place(folder, ())).tree_id


def refusal(folder: Path) -> str:
    with pytest.raises(TreeRefused) as caught:
        hold(Place(folder, ()))
    return caught.value.reason


def test_the_published_vector_of_one_file_is_met(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"hi\n")
    (tmp_path / "a").chmod(0o600)
    assert tree_id(tmp_path) == "2d5b99010451edbab98fc22c42257238d00c9848522a455a7d108b18197e46c2"


def test_an_empty_folder_has_the_empty_trees_identity(tmp_path: Path) -> None:
    (tmp_path / "empty" / "inner").mkdir(parents=True)
    assert tree_id(tmp_path) == "88b2442de5225ad9a79e6fd64756cc72ac547a9329bdef278b1e5009b509b6c8"


def test_files_are_held_with_size_digest_and_kind(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides", files={"scripts/run.py": "print()", "data/a.bin": b"hi\n"})
    (folder / "scripts" / "run.py").chmod(0o755)
    held = {file.path: file for file in hold(Place(skills, ("tides",))).files}
    assert list(held) == ["SKILL.md", "data/a.bin", "scripts/run.py"]
    assert (held["data/a.bin"].size, held["data/a.bin"].blob_id) == (3, HI)
    assert [held[path].executable for path in held] == [False, False, True]


@pytest.mark.parametrize(
    "change",
    [
        lambda folder: (folder / "SKILL.md").write_text("other"),
        lambda folder: (folder / "SKILL.md").chmod(0o755),
        lambda folder: (folder / "SKILL.md").rename(folder / "skill.md"),
        lambda folder: (folder / "new").write_text(""),
        lambda folder: (folder / "a" / "b.txt").rename(folder / "b.txt"),
    ],
)
def test_byte_execute_bit_name_and_place_change_the_identity(
    skills: Path, write_skill: WriteSkill, change: Callable[[Path], object]
) -> None:
    folder = write_skill(skills, "tides", files={"a/b.txt": "b"})
    before = tree_id(folder)
    change(folder)
    assert tree_id(folder) != before


def test_order_times_other_modes_empty_folders_and_git_do_not(skills: Path, write_skill: WriteSkill) -> None:
    one = write_skill(skills, "tides", files={"a/b.txt": "b", "c.txt": "c"})
    two = write_skill(skills / "copy", "tides", files={"c.txt": "c", "a/b.txt": "b"})
    (two / "c.txt").chmod(0o640)
    (two / "a").chmod(0o700)
    (two / "empty").mkdir()
    (two / ".git").mkdir()
    (two / ".git" / "config").write_text("[core]")
    os.utime(two / "c.txt", ns=(1, 1))
    assert tree_id(one) == tree_id(two)


def test_names_count_in_their_composed_form(tmp_path: Path) -> None:
    for folder, name in (("one", "mare\u0301e.txt"), ("two", "mar\u00e9e.txt")):
        (tmp_path / folder).mkdir()
        (tmp_path / folder / name).write_text("x")
    assert tree_id(tmp_path / "one") == tree_id(tmp_path / "two")


def test_a_link_inside_counts_as_a_copy_of_its_target(skills: Path, write_skill: WriteSkill) -> None:
    linked = write_skill(skills, "tides", files={"a/b.txt": "b"})
    (linked / "a" / "c.txt").symlink_to("b.txt")
    (linked / "d.txt").symlink_to("a/c.txt")
    copied = write_skill(skills / "copy", "tides", files={"a/b.txt": "b", "a/c.txt": "b", "d.txt": "b"})
    assert tree_id(linked) == tree_id(copied)


@pytest.mark.parametrize(
    "target", ["../outside.txt", "/etc/hostname", "missing.txt", "self", "a", "a/../../outside.txt"]
)
def test_a_link_that_ends_at_no_file_of_the_skill_is_refused(
    skills: Path, write_skill: WriteSkill, target: str
) -> None:
    (skills / "outside.txt").write_text("secret")
    folder = write_skill(skills, "tides", files={"a/b.txt": "b"})
    (folder / "self").symlink_to(target)
    assert refusal(folder) == "path_escape"


def test_a_folder_that_is_a_link_is_refused_even_inside(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides", files={"a/b.txt": "b"})
    (folder / "c").symlink_to("a")
    assert refusal(folder) == "path_escape"


def test_a_pipe_does_not_hang_and_is_refused(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides")
    os.mkfifo(folder / "pipe")
    assert refusal(folder) == "path_escape"


def test_a_socket_is_refused(skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_skill(skills, "tides")
    monkeypatch.chdir(folder)
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind("s")
        assert refusal(folder) == "path_escape"


@pytest.mark.parametrize(
    ("name", "reason"),
    [
        (b"a\xff", "path_escape"),
        (b"a\\b", "path_escape"),
        ("a\u202eb".encode(), "scan_blocked"),
        (b"a\nb", "scan_blocked"),
        (b"a\x1bb", "scan_blocked"),
    ],
)
def test_a_file_name_that_deceives_is_refused(skills: Path, write_skill: WriteSkill, name: bytes, reason: str) -> None:
    folder = write_skill(skills, "tides")
    Path(os.fsdecode(os.fsencode(folder) + b"/" + name)).write_text("x")
    assert refusal(folder) == reason


@pytest.mark.parametrize(("one", "two"), [("A.md", "a.md"), ("x/mare\u0301e", "x/mar\u00e9e"), ("D/x", "d/y")])
def test_names_that_are_one_on_many_systems_collide(skills: Path, write_skill: WriteSkill, one: str, two: str) -> None:
    assert refusal(write_skill(skills, "tides", files={one: "1", two: "2"})) == "tree.collision"


def test_too_many_files_are_refused(skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(store, "MAX_FILES", 4)
    folder = write_skill(skills, "tides", files={f"{n}": "x" for n in range(3)})
    assert len(hold(Place(folder, ())).files) == 4
    (folder / "9").write_text("x")
    assert refusal(folder) == "too_large"


def test_too_many_folders_too_much_depth_and_too_many_bytes_are_refused(
    skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = write_skill(skills, "tides")
    (folder / "big").write_bytes(b"x" * 1000)
    monkeypatch.setattr(store, "MAX_BYTES", 999)
    assert refusal(folder) == "too_large"
    monkeypatch.undo()
    monkeypatch.setattr(store, "MAX_ENTRIES", 10)
    (folder / "e").mkdir()
    for n in range(10):
        (folder / "e" / str(n)).mkdir()
    assert refusal(folder) == "too_large"
    monkeypatch.undo()
    folder.joinpath(*["d"] * 40).mkdir(parents=True)
    assert refusal(folder) == "too_large"


def test_a_sparse_file_of_a_tebibyte_is_refused_unread(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides")
    with (folder / "huge").open("wb") as file:
        file.truncate(1 << 40)
    assert refusal(folder) == "too_large"


def test_a_file_swapped_after_listing_is_noticed(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides", files={"a.txt": "a"})
    with open_folder(folder) as root:
        listed = list_files(root)["a.txt"]
        (folder / "a.txt").unlink()
        (folder / "a.txt").symlink_to("/etc/hostname")
        with pytest.raises(Moved):
            store.read_listed(root, listed)
        (folder / "a.txt").unlink()
        (folder / "other").write_text("b")
        (folder / "other").rename(folder / "a.txt")
        with pytest.raises(Moved):
            store.read_listed(root, listed)
        (folder / "a.txt").unlink()
        with pytest.raises(Moved):
            store.read_listed(root, listed)


def test_a_folder_swapped_for_a_link_is_not_followed(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides", files={"a/b.txt": "b"})
    elsewhere = write_skill(skills, "other", files={"a/b.txt": "b"})
    with open_folder(folder) as root:
        listed = list_files(root)["a/b.txt"]
        (folder / "a").rename(folder / "was")
        (folder / "a").symlink_to(elsewhere / "a")
        with pytest.raises(OSError, match="a"):
            store.read_listed(root, listed)


def test_a_file_that_grows_while_it_is_read_is_noticed(tmp_path: Path) -> None:
    (tmp_path / "a").write_bytes(b"x" * 100)
    with open_folder(tmp_path) as folder:
        facts = Fingerprint.of((tmp_path / "a").stat())
        assert read_file(folder, "a", expected=facts, most=100) == b"x" * 100
        with pytest.raises(Moved):
            read_file(folder, "a", expected=facts, most=99)


def test_the_tree_of_given_files_does_not_depend_on_their_order() -> None:
    files = [HeldFile("b/x", 3, HI, False), HeldFile("a", 3, HI, False)]
    assert held_tree({file.path: file for file in files}) == held_tree({file.path: file for file in reversed(files)})


@pytest.mark.parametrize(
    ("path", "expected"),
    [
        ("a.md", "text/markdown"),
        ("x/run.py", "text/x-python"),
        ("a.png", "image/png"),
        ("LICENSE", "application/octet-stream"),
    ],
)
def test_media_types_follow_the_name(path: str, expected: str) -> None:
    assert media_type(path) == expected


def test_warm_ids_are_used_for_settled_files_alone(skills: Path, write_skill: WriteSkill) -> None:
    folder = write_skill(skills, "tides")
    warm = WarmIds()
    young = Fingerprint.of((folder / "SKILL.md").stat())
    warm.put(young, HI)
    assert warm.get(young) is None
    old = Fingerprint(1, 2, 3, 4, 5, False)
    warm.put(old, HI)
    assert warm.get(old) == HI
    assert warm.get(Fingerprint(1, 2, 3, 4, 6, False)) is None


def test_warm_ids_forget_the_least_used_first() -> None:
    warm = WarmIds(most=2)
    one, two, three = (Fingerprint(1, inode, 3, 4, 5, False) for inode in (1, 2, 3))
    warm.put(one, "1")
    warm.put(two, "2")
    warm.get(one)
    warm.put(three, "3")
    assert [warm.get(each) for each in (one, two, three)] == ["1", None, "3"]


def test_a_known_file_is_not_read_again(skills: Path, write_skill: WriteSkill, monkeypatch: pytest.MonkeyPatch) -> None:
    folder = write_skill(skills, "tides")
    monkeypatch.setattr("agentstead.skills.warm.SETTLED_NS", 0)
    warm = WarmIds()
    first = hold(Place(folder, ()), warm=warm)

    def never(_root: int, _file: Listed) -> bytes:
        raise AssertionError("read again")

    monkeypatch.setattr(store, "read_listed", never)
    assert hold(Place(folder, ()), warm=warm) == first
