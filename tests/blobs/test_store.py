"""Putting and getting: one id for one content, verified on read, and one copy of everything."""

import io
import os
import stat
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.blobs import EMPTY_TREE, Blobs, BlobStore, ObjectKey, TreeEntry, encode_tree, object_id
from agentstead.blobs import layout as layout_module
from agentstead.state import AgentsteadError, Invalid, SimulatedClock, Unavailable

SAME_STORE = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], max_examples=60, deadline=None)


def stored_path(store: BlobStore, data: bytes) -> Path:
    return store.layout.path(ObjectKey("blob", object_id(data)))


def overwrite(path: Path, data: bytes) -> None:
    path.chmod(0o600)
    path.write_bytes(data)


@SAME_STORE
@given(st.binary(max_size=4096))
def test_what_was_put_is_got_back_under_its_sha256(store: BlobStore, data: bytes) -> None:
    blob = store.put(data)

    assert blob == object_id(data)
    assert store.get("blob", blob) == data
    assert store.stat("blob", blob).size_bytes == len(data)
    assert store.open_stream(blob).read() == data


def test_a_stream_gives_the_same_id_as_its_bytes_and_is_read_in_chunks(store: BlobStore) -> None:
    data = os.urandom(3 * 2**20 + 17)

    stored = store.put_stream(io.BytesIO(data))

    assert (stored.id, stored.size_bytes) == (object_id(data), len(data))
    with store.open_stream(stored.id) as reader:
        assert b"".join(iter(lambda: reader.read(2**20), b"")) == data


def test_a_tree_is_read_back_as_entries(store: BlobStore) -> None:
    entries = (TreeEntry(b"a", "f", 0o644, 0, store.put(b"")), TreeEntry(b"d", "d", 0o755, 0, EMPTY_TREE))

    assert store.get_tree(store.put(encode_tree(entries), kind="tree")) == entries


def test_a_blob_can_never_be_read_as_a_tree_although_its_bytes_are_one(store: BlobStore) -> None:
    as_blob = store.put(encode_tree(()))

    assert not store.has("tree", as_blob)
    with pytest.raises(Unavailable, match=r"store\.corrupt"):
        store.get_tree(as_blob)


def test_an_object_stored_as_tree_that_is_none_is_corrupt(store: BlobStore) -> None:
    with pytest.raises(Unavailable, match=r"store\.corrupt: object tree:\w+ is no directory"):
        store.get_tree(store.put(b"not a directory", kind="tree"))


@pytest.mark.parametrize("read", [lambda store, blob: store.get("blob", blob), lambda s, b: s.open_stream(b).read()])
@pytest.mark.parametrize("damage", [b"", b"hell", b"hello!", b"jello"])
def test_altered_bytes_are_an_error_and_never_content(
    store: BlobStore, read: Callable[[BlobStore, str], bytes], damage: bytes
) -> None:
    blob = store.put(b"hello")
    overwrite(stored_path(store, b"hello"), damage)

    with pytest.raises(Unavailable) as caught:
        read(store, blob)

    assert caught.value.code == "store.corrupt"
    assert caught.value.details == {"kind": "blob", "id": blob}


def test_a_missing_object_is_an_error_and_never_absent(store: BlobStore) -> None:
    for look in (store.get, store.stat):
        with pytest.raises(Unavailable, match=r"store\.corrupt: .* is not in the store"):
            look("blob", object_id(b"nobody put this"))
    assert not store.has("blob", object_id(b"nobody put this"))


@pytest.mark.parametrize("bad", ["", "abc", "../../etc/passwd", "A" * 64, "0" * 63 + "/"])
def test_a_text_that_is_no_id_reaches_no_file(store: BlobStore, bad: str) -> None:
    with pytest.raises(Invalid, match=r"ref\.not_found"):
        store.get("blob", bad)


def test_the_second_put_of_a_content_writes_nothing(store: BlobStore) -> None:
    store.put(b"once")
    before = stored_path(store, b"once").stat()

    with store.batch() as batch:
        batch.put(b"once")
        assert (batch.new_objects, batch.new_bytes) == (0, 0)
        batch.commit()

    after = stored_path(store, b"once").stat()
    assert (after.st_ino, after.st_mtime_ns) == (before.st_ino, before.st_mtime_ns)


def test_a_batch_stores_nothing_until_it_is_committed(store: BlobStore) -> None:
    with store.batch() as batch:
        batch.put(b"draft")

    assert not store.has("blob", object_id(b"draft"))
    assert list(store.layout.incoming.iterdir()) == []


def test_a_blob_taken_out_of_a_batch_is_not_stored_with_the_rest(store: BlobStore) -> None:
    with store.batch() as batch:
        torn = batch.put(b"torn read")
        kept = batch.put(b"kept")
        batch.drop(torn)
        batch.drop(object_id(b"never put"))
        batch.commit()

    assert (store.has("blob", torn), store.has("blob", kept)) == (False, True)


def test_files_and_directories_of_the_store_are_private_and_objects_are_read_only(store: BlobStore) -> None:
    store.put(b"private")

    for path in (store.layout.root, *store.layout.root.rglob("*")):
        mode = stat.S_IMODE(path.stat().st_mode)
        assert mode & 0o077 == 0 or path.name.startswith("objects.db"), path
    assert stat.S_IMODE(stored_path(store, b"private").stat().st_mode) == 0o400


def test_unfinished_files_of_a_dead_writer_are_swept_at_the_next_opening(store: BlobStore) -> None:
    left_over = store.layout.incoming / "left"
    left_over.mkdir()
    (left_over / "1").write_bytes(b"half an obj")

    BlobStore(store.layout.root, clock=SimulatedClock())

    assert list(store.layout.incoming.iterdir()) == []


def test_an_opening_beside_a_living_writer_leaves_its_files_alone(store: BlobStore) -> None:
    with store.batch() as batch:
        blob = batch.put(b"still writing")
        BlobStore(store.layout.root, clock=SimulatedClock())
        batch.commit()

    assert store.get("blob", blob) == b"still writing"


def test_threads_that_put_the_same_contents_at_once_all_succeed(store: BlobStore) -> None:
    contents = [b"%d" % number for number in range(40)]
    errors: list[AgentsteadError] = []

    def put_all() -> None:
        try:
            for data in contents:
                store.put(data)
        except AgentsteadError as error:
            errors.append(error)

    threads = [threading.Thread(target=put_all) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join(timeout=60)

    assert errors == []
    assert [store.get("blob", object_id(data)) for data in contents] == contents


def test_a_nearly_full_disk_refuses_before_anything_is_written(
    store: BlobStore, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(layout_module, "_FREE_SHARE", 0.5)
    facts = os.statvfs(store.layout.root)
    full = os.statvfs_result((*facts[:3], 0, 0, *facts[5:]))
    monkeypatch.setattr(os, "statvfs", lambda _path: full)

    with pytest.raises(Unavailable, match=r"store\.disk_low"):
        store.put(b"no room")

    assert list(store.layout.incoming.iterdir()) == []


@pytest.mark.anyio
async def test_the_asynchronous_face_does_the_same(blobs: Blobs) -> None:
    blob = await blobs.put(b"through a thread")
    streamed = await blobs.put_stream(io.BytesIO(b"x" * (2**20 + 1)))
    tree = await blobs.put(encode_tree([TreeEntry(b"n", "f", 0o600, 16, blob)]), kind="tree")

    assert await blobs.get("blob", blob) == b"through a thread"
    assert [len(chunk) async for chunk in blobs.open_stream(streamed.id)] == [2**20, 1]
    assert [entry.id for entry in await blobs.get_tree(tree)] == [blob]
    assert await blobs.has("tree", tree)
    assert (await blobs.stat("blob", blob)).size_bytes == 16
    stats = await blobs.stats()
    assert (stats.blobs, stats.trees, stats.dead) == (2, 1, 0)
    assert stats.blob_bytes == 16 + 2**20 + 1
