"""The log is the truth: whatever is done, the rows are what it folds to, and slots and times never overlap."""

import asyncio
import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.memory import log
from agentstead.memory.changes import Change, read_changes
from agentstead.memory.controller import Writer
from agentstead.memory.scopes import Reach
from agentstead.memory.service import memory_reindex
from agentstead.memory.verifying import rebuild, verify
from agentstead.memory.writing import Request, submit
from agentstead.state import AgentsteadError, Migrations, Reading, SimulatedClock, State, Tx

MIGRATIONS = Migrations(package="memory", anchor="agentstead.memory")
WSP = "wsp_01J9ZZZZZZZZZZZZZZZZZZZZZA"
USER = Writer(Reach("user", "user", workspace_id=WSP))
HOST = Writer(Reach("host:desk", "host", agent="desk", workspace_id=WSP))

TEXTS = (
    "The lead is Ada.",
    "The lead is Grace.",
    "Deploys on Friday.",
    "Never deploy on Friday.",
    "Node 22 builds it.",
)
PICKS = st.integers(0, 7)
STEPS = st.lists(
    st.one_of(
        st.fixed_dictionaries(
            {
                "op": st.just("add"),
                "text": st.sampled_from(TEXTS),
                "key": st.sampled_from([None, "lead", "day"]),
                "scope": st.sampled_from(["home", "workspace"]),
                "valid": st.sampled_from([(None, None), (None, "2001-01-05"), ("1999-01-01", "1999-06-01")]),
            }
        ),
        st.fixed_dictionaries({"op": st.just("turn"), "text": st.sampled_from(TEXTS), "place": st.integers(0, 5)}),
        st.fixed_dictionaries({"op": st.just("revise"), "pick": PICKS, "text": st.sampled_from(TEXTS)}),
        st.fixed_dictionaries({"op": st.just("supersede"), "pick": PICKS, "text": st.sampled_from(TEXTS)}),
        st.fixed_dictionaries(
            {"op": st.sampled_from(["retract", "archive", "restore", "pin", "unpin", "confirm"]), "pick": PICKS}
        ),
        st.fixed_dictionaries({"op": st.just("revert"), "pick": PICKS}),
        st.fixed_dictionaries({"op": st.just("wait"), "seconds": st.sampled_from([0, 1, 86_400])}),
    ),
    min_size=1,
    max_size=14,
)


def change(step: Mapping[str, Any], ids: Sequence[str], decisions: Sequence[str]) -> Change | None:
    op = step["op"]
    if op == "add":
        start, end = step["valid"]
        fields = {"type": "fact", "text": step["text"], "key": step["key"], "scope": step["scope"]}
        times = {"valid_from": start, "valid_to": end}
        return Change(op="add", **{name: value for name, value in (fields | times).items() if value is not None})
    if op == "turn":
        turn = {"type": "episode", "scope": "workspace", "thread": "t", "place": step["place"]}
        return Change(op="add", text=step["text"], **turn)
    if op == "revert":
        return Change(op="revert", decision_id=decisions[step["pick"] % len(decisions)]) if decisions else None
    if not ids:
        return None
    more = {name: step[name] for name in ("text",) if name in step} | ({"reason": "x"} if op == "retract" else {})
    return Change(op=op, memory_id=ids[step["pick"] % len(ids)], **more)


async def run(state: State, clock: SimulatedClock, steps: Sequence[Mapping[str, Any]], writer: Writer) -> None:
    ids: list[str] = []
    decisions: list[str] = []
    for step in steps:
        clock.advance(seconds=step.get("seconds", 0))
        if step["op"] == "wait" or (wanted := change(step, ids, decisions)) is None:
            continue
        try:
            outcome = await state.write(submit, state.refs, Request(read_changes([wanted])), writer)
        except AgentsteadError:
            continue
        for row in outcome.decisions:
            decisions.append(row.decision_id)
            if row.memory_id and row.memory_id not in ids:
                ids.append(row.memory_id)


def check(reading: Reading) -> None:
    for row in reading.all("SELECT * FROM memories"):
        folded = log.fold(log.events_of(reading, row["id"]))
        assert folded is not None
        shown = (row["head_edition"], row["state"], bool(row["pinned"]), row["version"], row["updated_at"])
        assert shown == (folded.head, folded.state, folded.pinned, folded.version, folded.updated_at)
    check_slots(reading)
    check_editions(reading)
    check_index(reading)


def check_slots(reading: Reading) -> None:
    """At most one live memory a slot, and inside a slot what is believed now never overlaps in world time."""
    slots: dict[tuple[str, str, str], list[tuple[int, float]]] = {}
    sql = """
    SELECT m.scope, m.type, m.key, m.state, e.valid_from, e.valid_to
    FROM memories m
    JOIN memory_editions e ON e.id = m.head_edition
    WHERE m.key IS NOT NULL AND e.unrecorded_at IS NULL AND m.state IN ('live', 'superseded', 'expired')
    """
    rows = reading.all(sql)
    live = [(row["scope"], row["type"], row["key"]) for row in rows if row["state"] == "live"]
    assert len(live) == len(set(live))
    for row in rows:
        end = float("inf") if row["valid_to"] is None else row["valid_to"]
        slots.setdefault((row["scope"], row["type"], row["key"]), []).append((row["valid_from"], end))
    for spans in slots.values():
        solid = sorted(span for span in spans if span[0] < span[1])
        assert all(first[1] <= second[0] for first, second in pairwise(solid)), solid


def check_editions(reading: Reading) -> None:
    """Of each memory at most one edition is believed now, and beliefs follow each other without a gap in order."""
    for row in reading.all(
        "SELECT memory_id, count(*) AS n FROM memory_editions WHERE unrecorded_at IS NULL GROUP BY 1"
    ):
        assert row["n"] == 1
    for row in reading.all("SELECT recorded_at, unrecorded_at FROM memory_editions WHERE unrecorded_at IS NOT NULL"):
        assert row["recorded_at"] <= row["unrecorded_at"]


def check_index(reading: Reading) -> None:
    indexed = {row["edition_id"] for row in reading.all("SELECT DISTINCT edition_id FROM recall_docs")}
    assert indexed == {row["id"] for row in reading.all("SELECT id FROM memory_editions")}


def dump(reading: Reading) -> str:
    tables = {
        "memories": "SELECT * FROM memories ORDER BY id",
        "docs": "SELECT edition_id, chunk, scope_token, author, body, prev, next, far, ask, names FROM recall_docs "
        "ORDER BY edition_id, chunk",
        "stems": "SELECT term, doc, cnt FROM recall_stems ORDER BY term",
    }
    return json.dumps({name: [tuple(row) for row in reading.all(sql)] for name, sql in tables.items()})


def integrity(tx: Tx) -> None:
    """Let FTS5 compare its index with the rows that it was made from; raises where they differ."""
    tx.execute("INSERT INTO recall_index (recall_index, rank) VALUES ('integrity-check', 1)")
    tx.execute("INSERT INTO recall_trigrams (recall_trigrams, rank) VALUES ('integrity-check', 1)")


@pytest.fixture(scope="module")
def homes(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    def fresh() -> Iterator[Path]:
        while True:
            yield tmp_path_factory.mktemp("log")

    return fresh()


@pytest.mark.parametrize("writer", [USER, HOST], ids=["user", "host"])
def test_random_changes_keep_log_rows_slots_times_and_index_together(homes: Iterator[Path], writer: Writer) -> None:
    @settings(max_examples=60, deadline=None, suppress_health_check=list(HealthCheck))
    @given(STEPS)
    def examine(steps: list[Mapping[str, Any]]) -> None:
        asyncio.run(one(next(homes), steps))

    async def one(path: Path, steps: Sequence[Mapping[str, Any]]) -> None:
        clock = SimulatedClock()
        state = await State.open(path, sets=[MIGRATIONS], clock=clock, durability="normal")
        try:
            await run(state, clock, steps, writer)
            await state.read(check)
            before = await state.read(dump)
            await state.write(integrity)
            await state.write(rebuild)
            assert await state.read(dump) == before
            await state.write(integrity)
        finally:
            await state.close()

    examine()


@pytest.mark.anyio
async def test_the_log_and_its_editions_cannot_be_rewritten(user: Any) -> None:
    added = await user.add("A fact.")
    state = user.home.state
    attempts = [
        "UPDATE memory_events SET op = 'retract'",
        "DELETE FROM memory_events",
        "UPDATE memory_editions SET trust = 0",
        "UPDATE memory_editions SET tags = '[\"x\"]'",
        "UPDATE memory_editions SET valid_to = valid_from + 1",
    ]
    for sql in attempts:
        with pytest.raises(Exception, match=r"append-only|fixed"):
            await state.write(lambda tx, sql=sql: tx.execute(sql))
    assert (await user.get(added.memory_id)).state == "live"


@pytest.mark.anyio
async def test_an_edition_ends_once_and_an_erasure_may_empty_it(user: Any) -> None:
    added = await user.add("A fact.", tags=["x"], attributes={"value": "y"})
    await user.write({"op": "retract", "memory_id": added.memory_id, "reason": "x"})
    with pytest.raises(Exception, match="fixed"):
        await user.home.state.write(lambda tx: tx.execute("UPDATE memory_editions SET unrecorded_at = 9e15"))
    emptied = "UPDATE memory_editions SET tags = '[]', attributes = '{}', text_hash = ''"
    assert await user.home.state.write(lambda tx: tx.execute(emptied)) == 1


@pytest.mark.anyio
async def test_a_clock_that_was_set_back_breaks_nothing(user: Any, clock: SimulatedClock) -> None:
    added = await user.add("A fact.")
    clock.advance(seconds=-3_600)
    await user.write({"op": "revise", "memory_id": added.memory_id, "text": "Another."})
    assert (await user.get(added.memory_id)).text == "Another."


def test_an_empty_log_folds_to_nothing() -> None:
    assert log.fold([]) is None


@pytest.mark.parametrize(
    ("events", "expected"),
    [
        ([log.Event("add", "e1", 1)], {"state": "live", "head": "e1", "version": 1}),
        ([log.Event("add", "e1", 1), log.Event("stale", "", 2, {"stale": "missing"})], {"stale": "missing"}),
        (
            [log.Event("add", "e1", 1), log.Event("stale", "", 2, {"stale": "missing"}), log.Event("fresh", "", 3)],
            {"stale": "no", "updated_at": 3},
        ),
        ([log.Event("add", "e1", 1), log.Event("suspect", "", 2, {"path": "a>b"})], {"suspect": "a>b"}),
        (
            [log.Event("add", "e1", 1), log.Event("suspect", "", 2, {"path": "a"}), log.Event("clear", "", 3)],
            {"suspect": ""},
        ),
        ([log.Event("add", "e1", 1), log.Event("merge", "", 2)], {"state": "merged"}),
        ([log.Event("add", "e1", 1), log.Event("erase", "", 2)], {"state": "erased"}),
        ([log.Event("add", "e1", 1), log.Event("link", "", 2)], {"state": "live", "version": 2}),
    ],
)
def test_each_event_folds_to_what_it_means(events: list[log.Event], expected: dict[str, Any]) -> None:
    folded = log.fold(events)
    assert {name: getattr(folded, name) for name in expected} == expected


@pytest.mark.anyio
async def test_verify_finds_what_was_changed_behind_the_log(user: Any) -> None:
    one, two = await user.add("One."), await user.add("Two.")
    await user.write({"op": "pin", "memory_id": one.memory_id})
    state = user.home.state
    assert await verify(state) == []
    await state.write(lambda tx: tx.execute("UPDATE memories SET pinned = 0 WHERE id = :id", id=one.memory_id))
    await state.write(lambda tx: tx.execute("DELETE FROM recall_docs WHERE edition_id = :id", id=two.edition_id))
    found = await verify(state)
    assert [one.memory_id in found[0], two.edition_id in found[1], len(found)] == [True, True, 2]
    rebuilt = await user.call(memory_reindex)
    assert (rebuilt.memories, rebuilt.editions) == (2, 2)
    assert await verify(state) == []
