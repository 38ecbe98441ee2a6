"""Directories described as plain data, made on disk and read back by code that shares nothing with ours."""

import os
import stat
from dataclasses import dataclass, field
from pathlib import Path

from hypothesis import strategies as st


@dataclass(frozen=True)
class File:
    data: bytes = b""
    mode: int = 0o644


@dataclass(frozen=True)
class Link:
    target: bytes = b"elsewhere"


@dataclass(frozen=True)
class Folder:
    names: "dict[bytes, Node]" = field(default_factory=dict)
    mode: int = 0o755


Node = File | Link | Folder

_NAME_BYTES = [byte for byte in range(1, 256) if byte != ord("/")]
NAMES = st.one_of(
    st.sampled_from(
        [b"a", b"b", b"c.txt", b"d e", b"-f", b"\xff\xfe", b"new\nline", "\u00e9".encode(), b"back\\slash"]
    ),
    st.lists(st.sampled_from(_NAME_BYTES), min_size=1, max_size=6).map(bytes),
).filter(lambda name: name not in {b".", b".."} and not name.startswith(b".") and not name.endswith((b".key", b".pem")))
CONTENTS = st.one_of(
    st.binary(max_size=40), st.lists(st.sampled_from([b"x\n", b"y\n", b"z"]), max_size=8).map(b"".join)
)
FILES = st.builds(File, CONTENTS, st.sampled_from([0o644, 0o600, 0o755, 0o400, 0o777]))
LINKS = st.builds(Link, st.lists(st.sampled_from(_NAME_BYTES), min_size=1, max_size=12).map(bytes))
LEAVES = st.one_of(FILES, LINKS, st.just(Folder()))
FOLDER_MODES = st.sampled_from([0o755, 0o700, 0o555])


def _folder(children: "st.SearchStrategy[Node]") -> "st.SearchStrategy[Folder]":
    return st.builds(Folder, st.dictionaries(NAMES, children, max_size=4), FOLDER_MODES)


NODES: "st.SearchStrategy[Node]" = st.recursive(LEAVES, _folder, max_leaves=12)
FOLDERS: "st.SearchStrategy[Folder]" = st.dictionaries(NAMES, NODES, max_size=5).map(Folder)


def make(folder: Folder, at: Path) -> None:
    """Fill an existing, empty directory."""
    for name, node in folder.names.items():
        path = at / os.fsdecode(name)
        if isinstance(node, Link):
            path.symlink_to(os.fsdecode(node.target))
        elif isinstance(node, File):
            path.write_bytes(node.data)
            path.chmod(node.mode)
        else:
            path.mkdir()
            make(node, path)
            path.chmod(node.mode)


def seen(at: Path, *, ignored: tuple[bytes, ...] = ()) -> Folder:
    """Read a directory back as data; names in `ignored` are passed over at the top."""
    paths = {os.fsencode(path.name): path for path in at.iterdir()}
    return Folder({name: _node(path) for name, path in paths.items() if name not in ignored})


def empty(at: Path) -> Path:
    """Return a fresh, empty directory, whatever stood there before."""
    if at.exists():
        remove(at)
    at.mkdir(parents=True)
    return at


def remove(at: Path) -> None:
    """Remove a directory and all in it, whatever its modes."""
    at.chmod(0o755)
    for path in at.iterdir():
        if path.is_dir() and not path.is_symlink():
            remove(path)
        else:
            path.unlink()
    at.rmdir()


def _node(path: Path) -> Node:
    facts = path.lstat()
    mode = stat.S_IMODE(facts.st_mode)
    if stat.S_ISLNK(facts.st_mode):
        return Link(os.fsencode(path.readlink()))
    return Folder(seen(path).names, mode) if stat.S_ISDIR(facts.st_mode) else File(path.read_bytes(), mode)
