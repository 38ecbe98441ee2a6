"""Walking: what lies there is what is stored, nothing is read twice for nothing, and nothing is passed over."""

import hashlib
import hmac
import os
import socket
import threading
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings

from agentstead.blobs import EMPTY_TREE, BlobStore, TreeEntry, object_id, tree_id
from agentstead.workspace import reading
from agentstead.workspace.contents import Trees
from agentstead.workspace.omissions import decode_omissions, encode_omissions
from agentstead.workspace.statcache import StatCache, load_cache, save_cache
from agentstead.workspace.walk import GRAIN_NS, Limits
from tests.workspace.conftest import SECRET_KEY, Walk
from tests.workspace.directories import FOLDERS, File, Folder, Link, empty, make, seen

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=60)

# Longer than any test: what was just written is too fresh, however busy the machine is.
AN_HOUR_NS = 3_600_000_000_000


def long_ago(root: Path) -> None:
    """Set times back and wait until the change times, which nobody can set, are older than the grain as well."""
    for directory, folders, files in os.walk(root):
        for name in [*files, *folders]:
            os.utime(Path(directory) / name, (1_000_000_000, 1_000_000_000), follow_symlinks=False)
    os.utime(root, (1_000_000_000, 1_000_000_000))
    deadline = time.time_ns() + 2 * GRAIN_NS
    while time.time_ns() < deadline:
        threading.Event().wait(0.001)


def paths_of(store: BlobStore, tree: str) -> list[tuple[bytes, TreeEntry]]:
    return list(Trees(store).paths(tree))


@REUSED
@given(folder=FOLDERS)
def test_a_directory_written_from_its_tree_is_the_same_directory(
    folder: Folder, tmp_path: Path, walk_at: Walk, write_tree: Callable[[str, Path], None]
) -> None:
    first, second = empty(tmp_path / "first"), empty(tmp_path / "second")
    make(folder, first)
    walked = walk_at(first)

    write_tree(walked.tree, second)

    assert (walked.completeness, walked.omissions) == ("complete", ())
    assert seen(second) == seen(first) == folder
    assert walk_at(second).tree == walked.tree


@REUSED
@given(before=FOLDERS, after=FOLDERS)
def test_a_walk_with_a_cache_finds_what_a_full_walk_finds(
    before: Folder, after: Folder, tmp_path: Path, walk_at: Walk
) -> None:
    root = empty(tmp_path / "root")
    make(before, root)
    cache = walk_at(root, now_ns=lambda: time.time_ns() + 10 * GRAIN_NS).cache
    again = walk_at(empty(root), cache).cache
    make(after, root)

    assert walk_at(root, again).tree == walk_at(root).tree


def test_the_tree_is_the_one_of_the_published_vector(tmp_path: Path, walk_at: Walk) -> None:
    root = tmp_path / "root"
    root.mkdir()
    make(Folder({b"B\xff": File(b"", 0o755), b"a": File(b"hi\n"), b"e": Folder(), b"ln": Link(b"../x")}), root)

    walked = walk_at(root)

    assert walked.tree == "0bf8607d96528e6a63fa5f521652000ae20ed743f0c7559e2321bb9f7247cc87"
    assert (walked.files, walked.size_bytes) == (2, 7)
    assert walk_at(empty(tmp_path / "nothing")).tree == EMPTY_TREE


def test_an_unchanged_file_is_not_read_again(tmp_path: Path, walk_at: Walk, monkeypatch: pytest.MonkeyPatch) -> None:
    root = empty(tmp_path / "root")
    make(Folder({b"d": Folder({b"one": File(b"1"), b"two": File(b"2")}), b"link": Link()}), root)
    long_ago(root)
    first = walk_at(root)
    opened: list[bytes] = []
    store_file = reading.store_file

    def noted(batch: object, name: bytes, *, at: int) -> object:
        opened.append(name)
        return store_file(batch, name, at=at)  # type: ignore[arg-type]

    monkeypatch.setattr("agentstead.workspace.walk.store_file", noted)
    monkeypatch.setattr(os, "readlink", lambda *_a, **_k: pytest.fail("the link was read again"))

    second = walk_at(root, first.cache)
    assert (opened, second.tree, second.new_bytes) == ([], first.tree, 0)

    monkeypatch.undo()
    monkeypatch.setattr("agentstead.workspace.walk.store_file", noted)
    (root / "d" / "two").write_bytes(b"II")
    assert walk_at(root, first.cache).tree != first.tree
    assert opened == [b"two"]


def test_an_unchanged_directory_is_not_listed_again(
    tmp_path: Path, walk_at: Walk, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = empty(tmp_path / "root")
    make(Folder({b"d": Folder({b"one": File(b"1")})}), root)
    long_ago(root)
    cache = walk_at(root).cache
    monkeypatch.setattr(os, "listdir", lambda _fd: pytest.fail("a directory was listed again"))

    assert walk_at(root, cache).files == 1


def test_a_file_that_is_too_fresh_to_be_trusted_is_read_again(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    path = root / "racy"
    path.write_bytes(b"one")
    first = walk_at(root, grain_ns=AN_HOUR_NS)
    before = path.stat()

    # The same length, inode and times: only the key that was not kept can tell.
    with path.open("r+b") as file:
        file.write(b"two")
    os.utime(path, ns=(before.st_atime_ns, before.st_mtime_ns))
    entry = first.cache.directories[b""].entries[b"racy"]

    assert entry.key is None
    assert walk_at(root, first.cache).tree == tree_id([TreeEntry(b"racy", "f", 0o644, 3, object_id(b"two"))])


def test_a_time_that_was_set_back_does_not_hide_an_edit(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    (root / "file").write_bytes(b"one")
    long_ago(root)
    first = walk_at(root)
    assert first.cache.directories[b""].entries[b"file"].key is not None

    (root / "file").write_bytes(b"two")
    os.utime(root / "file", (1_000_000_000, 1_000_000_000))

    assert walk_at(root, first.cache).tree != first.tree


def test_a_time_in_the_future_is_never_trusted(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    (root / "file").write_bytes(b"one")
    ahead = time.time_ns() + 10**12
    os.utime(root / "file", ns=(ahead, ahead))

    assert walk_at(root).cache.directories[b""].entries[b"file"].key is None


def test_a_new_name_in_a_directory_too_fresh_to_be_trusted_is_seen(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    (root / "one").write_bytes(b"1")
    first = walk_at(root)
    facts = root.stat()
    (root / "two").write_bytes(b"2")
    os.utime(root, ns=(facts.st_atime_ns, facts.st_mtime_ns))

    assert walk_at(root, first.cache).files == 2


def test_a_file_in_our_own_folder_is_seen_although_the_root_did_not_change(
    tmp_path: Path, walk_at: Walk, store: BlobStore
) -> None:
    root = empty(tmp_path / "root")
    own = root / ".agentstead"
    own.mkdir()
    (own / "workspace.json").write_text("{}")
    (own / "stage").mkdir()
    long_ago(root)
    first = walk_at(root)
    assert first.tree == EMPTY_TREE, "what we keep there is invisible, the folder with it"

    (own / "checks.toml").write_text("[unit]\n")

    second = walk_at(root, first.cache)
    assert [path for path, _ in paths_of(store, second.tree)] == [b".agentstead", b".agentstead/checks.toml"]
    (own / "trash").mkdir()
    assert walk_at(root, second.cache).tree == second.tree


def test_every_path_that_is_left_out_is_named_with_its_reason(tmp_path: Path, walk_at: Walk, store: BlobStore) -> None:
    root = empty(tmp_path / "root")
    secret = Folder({b"id_rsa": File(b"private"), b"id_rsa.pub": File(b"public")})
    make(
        Folder(
            {
                b".env": File(b"TOKEN=planted"),
                b".env.example": File(b"TOKEN="),
                b"node_modules": Folder({b"x.js": File(b"x")}),
                b"cache": Folder({b"CACHEDIR.TAG": File(b"Signature"), b"big": File(b"y")}),
                b"crate": Folder({b"Cargo.toml": File(b""), b"target": Folder({b"out": File(b"z")})}),
                b"target": Folder({b"kept": File(b"content here")}),
                b".git": Folder({b"HEAD": File(b"ref")}),
                b"sub": Folder({b".git": File(b"gitdir: ../x")}),
                b"keys": secret,
                b".ssh": secret,
            }
        ),
        root,
    )
    os.mkfifo(root / "pipe")
    with socket.socket(socket.AF_UNIX) as listener:
        listener.bind(str(root / "socket"))

    walked = walk_at(root)

    assert {(omission.path, omission.reason, omission.path_class) for omission in walked.omissions} == {
        (b".env", "secret", "secret"),
        (b".git", "vcs", "vcs"),
        (b".ssh", "secret", "secret"),
        (b"cache", "derived", "derived"),
        (b"crate/target", "derived", "derived"),
        (b"keys/id_rsa", "secret", "secret"),
        (b"node_modules", "derived", "derived"),
        (b"pipe", "special", "special"),
        (b"socket", "special", "special"),
    }
    stored = [path for path, _ in paths_of(store, walked.tree)]
    assert stored == [
        *(b".env.example", b"crate", b"crate/Cargo.toml", b"keys", b"keys/id_rsa.pub"),
        *(b"sub", b"sub/.git", b"target", b"target/kept"),
    ]
    assert walked.completeness == "partial"
    assert decode_omissions(encode_omissions(walked.omissions)) == sorted(walked.omissions, key=lambda each: each.path)


def test_no_byte_of_a_secret_is_stored_and_a_change_of_it_is_seen(
    tmp_path: Path, walk_at: Walk, store: BlobStore
) -> None:
    root = empty(tmp_path / "root")
    (root / ".env").write_bytes(b"PLANTED-SECRET-VALUE")
    long_ago(root)
    first = walk_at(root)
    (digest,) = [omission.digest for omission in first.omissions]

    assert digest == hmac.new(SECRET_KEY, b"PLANTED-SECRET-VALUE", hashlib.sha256).hexdigest()
    assert walk_at(root, first.cache).omissions == first.omissions
    (root / ".env").write_bytes(b"PLANTED-SECRET-OTHER")
    assert walk_at(root, first.cache).omissions != first.omissions
    for file in store.layout.root.rglob("*"):
        assert not file.is_file() or b"PLANTED-SECRET" not in file.read_bytes()


def test_links_are_stored_as_text_and_never_followed(tmp_path: Path, walk_at: Walk, store: BlobStore) -> None:
    outside = empty(tmp_path / "outside")
    (outside / "private").write_bytes(b"outside")
    root = empty(tmp_path / "root")
    targets = [os.fsencode(outside), b"loop", b"/nowhere", b"../outside/private"]
    make(
        Folder(
            {b"dir": Link(targets[0]), b"loop": Link(targets[1]), b"gone": Link(targets[2]), b"file": Link(targets[3])}
        ),
        root,
    )

    walked = walk_at(root)

    entries = dict(paths_of(store, walked.tree))
    assert {entry.type for entry in entries.values()} == {"l"}
    assert walked.files == 0


def test_limits_leave_out_and_say_so_and_the_walk_goes_on(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    make(
        Folder(
            {b"big": File(b"x" * 100), b"many": Folder({b"1": File(), b"2": File(), b"3": File()}), b"z": File(b"z")}
        ),
        root,
    )

    by_size = walk_at(root, limits=Limits(file_bytes=50))
    by_budget = walk_at(root, limits=Limits(new_bytes=0))
    by_entries = walk_at(root, limits=Limits(directory_entries=2))

    assert [(each.path, each.reason, each.size) for each in by_size.omissions] == [(b"big", "too_large", 100)]
    assert by_size.files == 4
    assert {(each.path, each.reason) for each in by_budget.omissions} >= {(b"big", "budget"), (b"z", "budget")}
    assert [(each.path, each.reason) for each in by_entries.omissions] == [(b"", "limit")]
    assert {each.completeness for each in (by_size, by_budget, by_entries)} == {"partial"}


def test_a_directory_too_deep_is_left_out_and_not_a_crash(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    here = os.open(root, os.O_RDONLY)
    for _ in range(300):
        os.mkdir(b"d", dir_fd=here)
        below = os.open(b"d", os.O_RDONLY, dir_fd=here)
        os.close(here)
        here = below
    os.close(here)

    walked = walk_at(root)

    assert [(each.reason, each.path.count(b"/")) for each in walked.omissions] == [("limit", 256)]


@pytest.mark.parametrize("size", [10, 9 * 2**20])
def test_a_file_that_changes_while_it_is_read_is_unstable_and_nothing_of_it_is_stored(
    tmp_path: Path, walk_at: Walk, store: BlobStore, monkeypatch: pytest.MonkeyPatch, size: int
) -> None:
    root = empty(tmp_path / "root")
    (root / "log").write_bytes(b"a" * size)
    (root / "still").write_bytes(b"calm")
    fstat = os.fstat
    inode = (root / "log").stat().st_ino

    def writing_meanwhile(descriptor: int) -> os.stat_result:
        facts = fstat(descriptor)
        if facts.st_ino == inode:
            with (root / "log").open("ab") as log:
                log.write(b"more")
        return facts

    monkeypatch.setattr(os, "fstat", writing_meanwhile)
    walked = walk_at(root)
    monkeypatch.undo()

    assert (walked.unstable, walked.completeness, walked.files) == ([b"log"], "unstable", 1)
    assert {store.get("blob", key.id) for key, _ in store.layout.stored() if key.kind == "blob"} == {b"calm"}


def test_a_file_that_settles_while_it_is_read_again_is_stored_whole(
    tmp_path: Path, walk_at: Walk, store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    root = empty(tmp_path / "root")
    path = root / "file"
    path.write_bytes(b"first")
    fstat = os.fstat
    edits = iter([b"second", b"third"])

    def writing_meanwhile(descriptor: int) -> os.stat_result:
        facts = fstat(descriptor)
        if facts.st_ino == path.stat().st_ino:
            for edit in edits:
                path.write_bytes(edit)
                break
        return facts

    monkeypatch.setattr(os, "fstat", writing_meanwhile)
    walked = walk_at(root)

    assert walked.completeness == "complete"
    assert Trees(store).entry(walked.tree, b"file") == TreeEntry(b"file", "f", 0o644, 5, object_id(b"third"))


def test_a_cache_survives_its_file_and_a_damaged_one_is_empty(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    make(Folder({b"d": Folder({b"\xff": File(b"1"), b".env": File(b"s")}), b"e": Folder(), b"l": Link()}), root)
    long_ago(root)
    cache = walk_at(root).cache
    file = tmp_path / "caches" / "wsp"

    save_cache(cache, file)
    assert load_cache(file) == cache
    assert [path.name for path in file.parent.iterdir()] == ["wsp"]

    data = file.read_bytes()
    for damaged in (data[:-1], data[:40] + bytes([data[40] ^ 1]) + data[41:], b"", b"agentstead.statcache/1\n"):
        file.write_bytes(damaged)
        assert load_cache(file) == StatCache()
    assert load_cache(tmp_path / "absent") == StatCache()


def test_a_cache_of_another_generation_of_the_store_is_not_used(
    tmp_path: Path, walk_at: Walk, store: BlobStore
) -> None:
    root = empty(tmp_path / "root")
    (root / "file").write_bytes(b"kept by nobody")
    long_ago(root)
    first = walk_at(root)
    for key, _ in list(store.layout.stored()):
        store.layout.path(key).unlink()
    store.index.forget([])

    second = walk_at(root, first.cache)

    assert second.tree == first.tree
    assert store.get("blob", object_id(b"kept by nobody")) == b"kept by nobody"


def test_what_may_not_be_read_is_named_and_the_rest_is_stored(tmp_path: Path, walk_at: Walk) -> None:
    root = empty(tmp_path / "root")
    make(Folder({b"closed": File(b"x", 0), b"dir": Folder({b"in": File(b"y")}, 0), b"open": File(b"z")}), root)
    try:
        if os.access(root / "dir" / "in", os.R_OK):
            pytest.skip("this user may read everything")
        walked = walk_at(root)
    finally:
        (root / "dir").chmod(0o700)

    assert {(each.path, each.reason) for each in walked.omissions} == {
        (b"closed", "unreadable"),
        (b"dir", "unreadable"),
    }
    assert (walked.completeness, walked.files) == ("partial", 1)
