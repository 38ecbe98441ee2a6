"""Collection and verification: what a root, a pin or a running writer needs is never removed."""

import sqlite3
from collections.abc import AsyncIterator
from pathlib import Path

import pytest

from agentstead.blobs import (
    DEFAULT_GRACE_US,
    EMPTY_TREE,
    MIN_GRACE_US,
    Blobs,
    ObjectKey,
    TreeEntry,
    encode_tree,
    object_id,
)
from agentstead.state import SimulatedClock, State, Tx, Unavailable

pytestmark = pytest.mark.anyio

DAY_S = 86_400
_HELD = "SELECT 'tree' AS kind, value AS id FROM home_facts WHERE name LIKE 'tree_%'"
_NOTE = "INSERT INTO home_facts (name, value) VALUES (:name, :value)"
_DROP = "DELETE FROM home_facts WHERE name = :name"


@pytest.fixture
async def state(tmp_path: Path, store_clock: SimulatedClock, blobs: Blobs) -> AsyncIterator[State]:
    opened = await State.open(tmp_path, clock=store_clock)
    blobs.roots.register("trees of the test", _HELD)
    yield opened
    await opened.close()


def note(tx: Tx, name: str, tree: str) -> None:
    tx.execute(_NOTE, name=name, value=tree)


def drop(tx: Tx, name: str) -> None:
    tx.execute(_DROP, name=name)


async def put_tree(blobs: Blobs, *contents: bytes) -> str:
    entries = [TreeEntry(b"%d" % n, "f", 0o644, len(data), await blobs.put(data)) for n, data in enumerate(contents)]
    below = await blobs.put(encode_tree(entries), kind="tree")
    return await blobs.put(encode_tree([TreeEntry(b"below", "d", 0o755, 0, below)]), kind="tree")


async def test_what_a_root_reaches_stays_and_the_rest_goes_after_the_grace(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    await state.write(note, "tree_kept", await put_tree(blobs, b"kept", b"shared"))
    lost = await put_tree(blobs, b"lost", b"shared")

    first = await blobs.collect(state, dry_run=False)
    assert (first.stored, first.reached, first.dead, first.removed) == (7, 4, 3, 0)

    store_clock.advance(seconds=DAY_S + 1)
    second = await blobs.collect(state, dry_run=False)

    assert (second.removed, second.removed_bytes > 0, second.interrupted) == (3, True, False)
    assert not await blobs.has("tree", lost)
    assert not await blobs.has("blob", object_id(b"lost"))
    assert await blobs.get("blob", object_id(b"shared")) == b"shared"
    assert (await blobs.verify(state, level="bytes")).ok


async def test_a_dry_run_changes_nothing_and_says_what_would_go(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    await blobs.put(b"lost")
    assert (await blobs.collect(state, dry_run=True)).dead == 0 + 1
    await blobs.collect(state, dry_run=False)
    store_clock.advance(seconds=DAY_S + 1)

    found = await blobs.collect(state, dry_run=True)

    assert (found.removed, found.removed_bytes, found.dry_run) == (1, 4, True)
    assert await blobs.has("blob", object_id(b"lost"))


async def test_a_dead_object_that_is_put_again_lives_from_then_on(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    await blobs.put(b"again")
    await blobs.collect(state, dry_run=False)
    store_clock.advance(seconds=DAY_S - 60)
    await blobs.put(b"again")
    store_clock.advance(seconds=120)

    assert (await blobs.collect(state, dry_run=False)).removed == 0
    store_clock.advance(seconds=DAY_S + 1)
    assert (await blobs.collect(state, dry_run=False)).removed == 1


async def test_a_reference_that_came_back_ends_the_death_of_what_it_reaches(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    tree = await put_tree(blobs, b"wanted again")
    await blobs.collect(state, dry_run=False)
    await state.write(note, "tree_late", tree)
    store_clock.advance(seconds=DAY_S + 1)
    assert (await blobs.collect(state, dry_run=False)).removed == 0

    await state.write(drop, "tree_late")
    store_clock.advance(seconds=DAY_S + 1)

    assert (await blobs.collect(state, dry_run=False)).removed == 0, "dead since this collection, not since the first"
    store_clock.advance(seconds=DAY_S + 1)
    assert (await blobs.collect(state, dry_run=False)).removed == 3


async def test_a_pin_keeps_an_object_until_its_time_or_until_it_is_dropped(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    kept, dropped = await blobs.put(b"pinned"), await blobs.put(b"pinned and dropped")
    until = store_clock.now_us() + 3 * DAY_S * 10**6
    for blob in (kept, dropped):
        await blobs.pin("blob", blob, owner="test", until_us=until)
    await blobs.unpin("blob", dropped, owner="test")
    await blobs.unpin("blob", dropped, owner="nobody")

    for _ in range(2):
        await blobs.collect(state, dry_run=False)
        store_clock.advance(seconds=DAY_S + 1)
    assert (await blobs.has("blob", kept), await blobs.has("blob", dropped)) == (True, False)

    for _ in range(3):
        await blobs.collect(state, dry_run=False)
        store_clock.advance(seconds=DAY_S + 1)
    assert not await blobs.has("blob", kept)


async def test_nothing_is_removed_when_a_writer_began_after_the_roots_were_read(
    blobs: Blobs, state: State, store_clock: SimulatedClock, monkeypatch: pytest.MonkeyPatch
) -> None:
    await blobs.put(b"lost")
    await blobs.collect(state, dry_run=False)
    store_clock.advance(seconds=DAY_S + 1)
    read = blobs.roots.read

    def read_while_somebody_holds(reading: object) -> list[ObjectKey]:
        with blobs.store.holding():
            return read(reading)  # type: ignore[arg-type]

    monkeypatch.setattr(blobs.roots, "read", read_while_somebody_holds)
    assert (await blobs.collect(state, dry_run=False)).interrupted
    assert await blobs.has("blob", object_id(b"lost"))

    monkeypatch.undo()
    assert (await blobs.collect(state, dry_run=False)).removed == 1


async def test_removing_begins_a_new_generation_and_nothing_else_does(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    await blobs.put(b"lost")
    await blobs.collect(state, dry_run=False)
    before = await blobs.run(lambda store: store.generation())
    store_clock.advance(seconds=DAY_S + 1)

    await blobs.collect(state, dry_run=False)

    assert await blobs.run(lambda store: store.generation()) == before + 1


async def test_below_a_directory_that_cannot_be_read_nothing_is_collected(
    blobs: Blobs, state: State, store_clock: SimulatedClock
) -> None:
    tree = await put_tree(blobs, b"below the damage")
    await state.write(note, "tree_damaged", tree)
    blobs.store.layout.path(ObjectKey("tree", tree)).unlink()
    await blobs.collect(state, dry_run=False)
    store_clock.advance(seconds=DAY_S + 1)

    found = await blobs.collect(state, dry_run=False)

    assert (found.removed, found.missing) == (0, (ObjectKey("tree", tree),))
    assert await blobs.has("blob", object_id(b"below the damage"))


async def test_a_grace_below_an_hour_is_refused(blobs: Blobs, state: State) -> None:
    assert DEFAULT_GRACE_US == 24 * MIN_GRACE_US
    with pytest.raises(ValueError, match="below one hour"):
        await blobs.collect(state, dry_run=True, grace_us=MIN_GRACE_US - 1)


async def test_verification_names_what_is_missing_and_what_is_altered(blobs: Blobs, state: State) -> None:
    await state.write(note, "tree_a", await put_tree(blobs, b"one", b"two"))
    await state.write(note, "tree_b", EMPTY_TREE)
    one, two = (ObjectKey("blob", object_id(data)) for data in (b"one", b"two"))
    blobs.store.layout.path(one).unlink()
    blobs.store.layout.path(two).chmod(0o600)
    blobs.store.layout.path(two).write_bytes(b"tow")

    by_index = await blobs.verify(state)
    by_bytes = await blobs.verify(state, level="bytes")

    absent = tuple(sorted([one, ObjectKey("tree", EMPTY_TREE)]))
    assert (by_index.missing, by_index.corrupt, by_index.ok) == (absent, (), False)
    assert (by_bytes.missing, by_bytes.corrupt, by_bytes.reached) == (absent, (two,), 5)


async def test_a_root_that_yields_other_columns_or_a_name_used_twice_is_a_fault(blobs: Blobs, state: State) -> None:
    blobs.roots.register("trees of the test", _HELD)
    with pytest.raises(ValueError, match="registered twice"):
        blobs.roots.register("trees of the test", "SELECT 1")
    blobs.roots.register("wrong", "SELECT name, value FROM home_facts")
    await state.write(note, "tree_x", EMPTY_TREE)

    with pytest.raises(ValueError, match="columns kind and id"):
        await blobs.collect(state, dry_run=True)
    assert blobs.roots.names() == ["trees of the test", "wrong"]


async def test_rows_without_an_id_hold_nothing(blobs: Blobs, state: State) -> None:
    await state.write(note, "tree_none", "")

    assert (await blobs.collect(state, dry_run=True)).reached == 0


def test_an_index_of_a_newer_program_is_refused(blobs: Blobs) -> None:
    with sqlite3.connect(blobs.store.layout.index) as connection:
        connection.execute("PRAGMA user_version = 99")
    connection.close()

    with pytest.raises(Unavailable, match=r"store\.newer"):
        Blobs(blobs.store.layout.root, clock=SimulatedClock())
