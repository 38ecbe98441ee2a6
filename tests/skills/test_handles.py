"""Opening by handle: folders and regular files only, never through a link, and what was listed or nothing."""

import os
from pathlib import Path

import pytest

from agentstead.skills.handles import (
    Entry,
    Fingerprint,
    Moved,
    entries,
    link_target,
    open_below,
    open_folder,
    read_file,
)


def by_name(folder: Path) -> dict[str, Entry]:
    with open_folder(folder) as handle:
        return {entry.name: entry for entry in entries(handle, most=100)}


def test_entries_say_what_stands_there_without_following_it(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("x")
    (tmp_path / "folder").mkdir()
    (tmp_path / "link").symlink_to("folder")
    (tmp_path / "broken").symlink_to("nowhere")
    os.mkfifo(tmp_path / "pipe")
    kinds = {name: entry.kind for name, entry in by_name(tmp_path).items()}
    assert kinds == {"broken": "link", "file": "file", "folder": "folder", "link": "link", "pipe": "special"}


def test_entries_come_in_byte_order_and_one_more_than_asked_tells_of_more(tmp_path: Path) -> None:
    for name in ("b", "a", "Z", "\u00e9", "_"):
        (tmp_path / name).write_text("x")
    with open_folder(tmp_path) as handle:
        assert [entry.name for entry in entries(handle, most=100)] == ["Z", "_", "a", "b", "\u00e9"]
        assert len(entries(handle, most=3)) == 4
        assert len(entries(handle, most=5)) == 5


def test_a_configured_folder_may_be_a_link_and_those_below_may_not(tmp_path: Path) -> None:
    (tmp_path / "real" / "sub").mkdir(parents=True)
    (tmp_path / "link").symlink_to("real")
    with open_folder(tmp_path / "link") as handle, open_below(handle, ("sub",)) as sub:
        assert entries(sub, most=1) == []
    with (
        open_folder(tmp_path) as handle,
        pytest.raises(OSError, match=r"Not a directory|symbolic"),
        open_below(handle, ("link", "sub")),
    ):
        pass


@pytest.mark.parametrize("parts", [("missing",), ("file",), ("real", "missing")])
def test_what_is_no_folder_is_not_opened(tmp_path: Path, parts: tuple[str, ...]) -> None:
    (tmp_path / "real").mkdir()
    (tmp_path / "file").write_text("x")
    with (
        open_folder(tmp_path) as handle,
        pytest.raises(OSError, match=r"No such file|Not a directory"),
        open_below(handle, parts),
    ):
        pass


def test_every_handle_is_closed_whatever_happens(tmp_path: Path) -> None:
    (tmp_path / "a" / "b").mkdir(parents=True)
    before = len(list(Path("/dev/fd").iterdir()))
    for parts in (("a", "b"), ("a", "missing"), ("missing",)):
        try:
            with open_folder(tmp_path) as handle, open_below(handle, parts):
                raise KeyError
        except (KeyError, FileNotFoundError):
            continue
    assert len(list(Path("/dev/fd").iterdir())) == before


@pytest.mark.parametrize("swap", ["link", "pipe", "folder", "missing", "other", "touched"])
def test_only_the_file_that_was_listed_is_read(tmp_path: Path, swap: str) -> None:
    file = tmp_path / "a"
    file.write_bytes(b"one")
    listed = by_name(tmp_path)["a"].fingerprint
    if swap != "touched":
        file.unlink()
    match swap:
        case "link":
            file.symlink_to("/etc/hostname")
        case "pipe":
            os.mkfifo(file)
        case "folder":
            file.mkdir()
        case "other":
            file.write_bytes(b"two!")
        case "touched":
            os.utime(file, ns=(5, 5))
    with open_folder(tmp_path) as handle, pytest.raises(Moved):
        read_file(handle, "a", expected=listed, most=100)


def test_a_large_file_is_read_whole_and_bounded(tmp_path: Path) -> None:
    data = os.urandom(3 * 1024 * 1024 + 7)
    (tmp_path / "a").write_bytes(data)
    listed = by_name(tmp_path)["a"].fingerprint
    with open_folder(tmp_path) as handle:
        assert read_file(handle, "a", expected=listed, most=len(data)) == data
        with pytest.raises(Moved):
            read_file(handle, "a", expected=listed, most=len(data) - 1)


def test_a_file_that_may_not_be_read_says_so(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "a").write_text("x")
    listed = by_name(tmp_path)["a"].fingerprint
    opened = os.open

    def refuse(path: object, flags: int, *, dir_fd: int | None = None) -> int:
        if path == "a":
            raise PermissionError(13, "Permission denied")
        return opened(str(path), flags, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", refuse)
    with open_folder(tmp_path) as handle, pytest.raises(PermissionError):
        read_file(handle, "a", expected=listed, most=100)


def test_a_fingerprint_tells_every_state_apart(tmp_path: Path) -> None:
    file = tmp_path / "a"
    file.write_text("one")
    first = Fingerprint.of(file.stat())
    file.chmod(0o755)
    second = Fingerprint.of(file.stat())
    file.write_text("four")
    third = Fingerprint.of(file.stat())
    assert len({first, second, third}) == 3
    assert (first.executable, second.executable) == (False, True)


def test_a_link_is_read_as_text(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("../some/where")
    with open_folder(tmp_path) as handle:
        assert link_target(handle, "link") == "../some/where"


def test_nothing_below_a_configured_folder_is_opened_through_a_link_or_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "sub").mkdir()
    (tmp_path / "sub" / "a").write_text("x")
    listed = by_name(tmp_path / "sub")["a"].fingerprint
    opened = os.open
    flags: dict[str, int] = {}

    def remember(path: str, flag: int, *, dir_fd: int | None = None) -> int:
        if dir_fd is not None:
            flags[path] = flag
        return opened(path, flag, dir_fd=dir_fd)

    monkeypatch.setattr(os, "open", remember)
    with open_folder(tmp_path) as handle, open_below(handle, ("sub",)) as sub:
        read_file(sub, "a", expected=listed, most=10)
    assert flags["sub"] & os.O_NOFOLLOW
    assert flags["sub"] & os.O_DIRECTORY
    assert flags["a"] & os.O_NOFOLLOW
    assert flags["a"] & os.O_NONBLOCK
    assert all(flag & os.O_CLOEXEC for flag in flags.values())
