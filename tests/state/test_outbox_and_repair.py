"""Effects run after the commit, at least once; bad rows are set aside and block nobody."""

import sqlite3

import pytest

from agentstead.state import (
    Delivery,
    Invalid,
    Repair,
    SimulatedClock,
    State,
    Tx,
    Unavailable,
    deliver_due,
    quarantined,
    refuse_quarantined,
    repair_all,
)

pytestmark = pytest.mark.anyio


class Receiver:
    """Notes what it was sent; fails the first times."""

    def __init__(self, fails: int = 0) -> None:
        self.seen: list[Delivery] = []
        self.fails = fails

    async def __call__(self, delivery: Delivery) -> None:
        self.seen.append(delivery)
        if len(self.seen) <= self.fails:
            raise ConnectionError("no route")


async def test_an_effect_runs_after_the_commit_and_once(state: State) -> None:
    receiver = Receiver()
    await state.write(lambda tx: tx.send("mail", {"to": "a"}, delivery_id="d1"))
    assert await deliver_due(state, {"mail": receiver}) == 1
    assert await deliver_due(state, {"mail": receiver}) == 0
    assert [(each.delivery_id, each.payload) for each in receiver.seen] == [("d1", {"to": "a"})]


async def test_an_effect_of_a_failed_function_never_runs(state: State) -> None:
    def fail(tx: Tx) -> None:
        tx.send("mail", {})
        raise Invalid("a.b", "no")

    with pytest.raises(Invalid):
        await state.write(fail)
    assert await deliver_due(state, {"mail": Receiver()}) == 0


async def test_a_failed_delivery_waits_longer_each_time_and_gives_up(state: State, clock: SimulatedClock) -> None:
    receiver = Receiver(fails=100)
    await state.write(lambda tx: tx.send("mail", {}, delivery_id="d1"))
    pauses = []
    for _ in range(8):
        await deliver_due(state, {"mail": receiver})
        pauses.append(await state.read(lambda reading: reading.value("SELECT next_at FROM outbox") - reading.now_us))
        clock.advance(seconds=pauses[-1] / 1e6)
    assert pauses[:3] == [1_000_000, 2_000_000, 4_000_000]
    assert await state.read(lambda reading: reading.value("SELECT state FROM outbox")) == "failed"
    assert len(receiver.seen) == 8
    assert await deliver_due(state, {"mail": receiver}) == 0


async def test_a_delivery_id_is_queued_once(state: State) -> None:
    for _ in range(2):
        await state.write(lambda tx: tx.send("mail", {}, delivery_id="d1"))
    receiver = Receiver()
    assert await deliver_due(state, {"mail": receiver}) == 1


async def test_what_nobody_receives_stays_queued(state: State) -> None:
    await state.write(lambda tx: tx.send("mail", {}))
    assert await deliver_due(state, {"other": Receiver()}) == 0
    assert await deliver_due(state, {"mail": Receiver()}) == 1


def mend(tx: Tx, row: sqlite3.Row) -> None:
    if row["value"] == "bad":
        raise ValueError("this one is broken")
    tx.execute("UPDATE home_facts SET value = 'mended' WHERE name = :name", name=row["ref"])


REPAIR = Repair("facts", "SELECT name AS ref, value FROM home_facts WHERE name LIKE 'x%' ORDER BY name", mend)


async def test_one_bad_row_is_set_aside_and_the_rest_is_mended(state: State) -> None:
    for name, value in (("x1", "good"), ("x2", "bad"), ("x3", "good")):
        await state.fact(name, value.lower)
    (held,) = await repair_all(state, [REPAIR])
    assert (held.entity, held.ref) == ("facts", "x2")
    assert "this one is broken" in held.reason
    assert await state.fact("x3", str) == "mended"
    with pytest.raises(Unavailable) as caught:
        await state.read(refuse_quarantined, "facts", "x2")
    assert caught.value.code == "home.quarantined"
    await state.read(refuse_quarantined, "facts", "x1")


async def test_a_row_that_can_be_mended_again_leaves_quarantine(state: State) -> None:
    await state.fact("x2", lambda: "bad")
    await repair_all(state, [REPAIR])
    await state.write(lambda tx: tx.execute("UPDATE home_facts SET value = 'good' WHERE name = 'x2'"))
    assert await repair_all(state, [REPAIR]) == []
    assert await state.read(quarantined) == []
    assert (await state.verify()).holds
