"""Hostile folders: whatever stands in them, and whoever changes them meanwhile, no byte from outside comes out."""

import os
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentstead.blobs import object_id
from agentstead.skills.candidates import Origin, Root
from agentstead.skills.reading import ContentChanged, read_held
from agentstead.skills.store import MAX_BYTES, MAX_FILES, HeldTree, Place, TreeRefused, hold
from agentstead.skills.survey import survey

SECRET = b"secret of the machine\n"
NAME = st.sampled_from(["a", "b", "SKILL.md", "skill.md", "A", ".git", "e\u0301", "\u00e9", "x\u200by", "n\nn", "..."])
TARGET = st.sampled_from(
    ["a", "b", "../secret", "../../secret", "/etc/hostname", ".", "..", "a/../b", "self", "SKILL.md"]
)
NODE = st.recursive(
    st.one_of(
        st.binary(max_size=20).map(lambda data: ("file", data)),
        TARGET.map(lambda target: ("link", target)),
        st.just(("pipe", "")),
        st.just(("text", "---\nname: a\ndescription: d\n---\n")),
    ),
    lambda inner: st.dictionaries(NAME, inner, max_size=4).map(lambda entries: ("folder", entries)),
    max_leaves=12,
)


def build(path: Path, node: Any) -> None:
    kind, content = node
    if path.is_symlink() or path.exists():
        return
    match kind:
        case "file":
            path.write_bytes(content)
        case "text":
            path.write_text(content)
        case "link":
            path.symlink_to(content)
        case "pipe":
            os.mkfifo(path)
        case "folder":
            path.mkdir()
            for name, inner in content.items():
                build(path / name, inner)


@settings(max_examples=120, deadline=None)
@given(st.dictionaries(NAME, NODE, max_size=5))
def test_any_folder_is_held_whole_or_refused(content: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "secret").write_bytes(SECRET)
        build(Path(folder) / "skill", ("folder", content))
        place = Place(Path(folder), ("skill",))
        held = held_or_none(place)
        if held is None:
            return
        assert all(file.blob_id != object_id(SECRET) for file in held.files)
        assert len(held.files) <= MAX_FILES
        assert sum(file.size for file in held.files) <= MAX_BYTES
        by_path = {file.path: file for file in held.files}
        for file in held.files:
            assert object_id(read_held(place, by_path, file.path)) == file.blob_id
        assert hold(place) == held


def held_or_none(place: Place) -> HeldTree | None:
    try:
        return hold(place)
    except (TreeRefused, OSError):
        return None


@settings(max_examples=60, deadline=None)
@given(st.dictionaries(st.sampled_from(["one", "two", ".git", "node_modules", "x\u200by"]), NODE, max_size=4))
def test_any_root_is_surveyed_without_an_error(content: dict[str, Any]) -> None:
    with TemporaryDirectory() as folder:
        (Path(folder) / "secret").write_bytes(SECRET)
        build(Path(folder) / "root", ("folder", content))
        for candidate in survey([Root(Origin.USER, Path(folder) / "root")]).candidates:
            assert candidate.tree is not None or candidate.refusal is not None or candidate.judged is not None
            assert candidate.judged is None or SECRET.decode() not in str(candidate.judged)


@pytest.fixture
def racing(tmp_path: Path) -> Iterator[Path]:
    """A skill folder in which a thread swaps a file and a folder for links to a secret, over and over."""
    (tmp_path / "outside").mkdir()
    (tmp_path / "outside" / "a.txt").write_bytes(SECRET)
    skill = tmp_path / "skill"
    (skill / "sub").mkdir(parents=True)
    for path in ("a.txt", "sub/a.txt"):
        (skill / path).write_bytes(b"honest\n")
    stop = threading.Event()

    def swap() -> None:
        while not stop.is_set():
            for path, target in (("a.txt", "outside/a.txt"), ("sub", "outside")):
                (skill / path).rename(tmp_path / "aside")
                (skill / path).symlink_to(tmp_path / target)
                (skill / path).unlink()
                (tmp_path / "aside").rename(skill / path)

    swapping = threading.Thread(target=swap)
    swapping.start()
    yield skill
    stop.set()
    swapping.join()


def test_a_file_swapped_for_a_link_while_it_is_read_never_gives_the_links_target(racing: Path) -> None:
    place = Place(racing, ())
    seen = {True: 0, False: 0}
    deadline = time.monotonic() + 30
    while min(seen.values()) < 20 and time.monotonic() < deadline:
        held = held_or_none(place)
        seen[held is not None] += 1
        if held is not None:
            assert {file.blob_id for file in held.files} <= {object_id(b"honest\n")}
            read_all(place, held)
    assert min(seen.values()), "the race was never met"


def read_all(place: Place, held: HeldTree) -> None:
    by_path = {file.path: file for file in held.files}
    for path in by_path:
        with suppress(ContentChanged):
            assert read_held(place, by_path, path) == b"honest\n"
