"""The journal: one chain, append-only, redacted before it is hashed, erasable without a break."""

import sqlite3
from contextlib import closing
from pathlib import Path

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from agentstead.state import DATABASE_FILE, ORIGIN, Origin, Reading, State, Tx

pytestmark = pytest.mark.anyio


class Stars:
    """A redactor that knows one secret."""

    def text(self, text: str) -> str:
        return text.replace("hunter2", "[redacted]")


def note(tx: Tx, body: dict[str, object], kind: str = "state.test.noted") -> int:
    return tx.journal(kind, subject="ses_1", workspace="wsp_1", body=body)


def edit(path: Path, sql: str, *, without: str = "") -> None:
    with closing(sqlite3.connect(path / DATABASE_FILE)) as connection:
        if without:
            connection.execute(f"DROP TRIGGER {without}")
        connection.execute(sql)
        connection.commit()


async def test_each_entry_names_who_and_under_which_trace(state: State) -> None:
    token = ORIGIN.set(Origin("host:claude", f"00-{'a' * 32}-{'b' * 16}-01"))
    await state.write(note, {"n": 1})
    ORIGIN.reset(token)
    (entry,) = await state.read(Reading.entries, 0)
    assert (entry.principal, entry.trace_id) == ("host:claude", "a" * 32)
    assert (entry.seq, entry.kind, entry.subject, entry.workspace_id) == (1, "state.test.noted", "ses_1", "wsp_1")
    assert entry.body == {"n": 1}


async def test_the_chain_holds_and_its_head_is_told(state: State) -> None:
    for number in range(5):
        await state.write(note, {"n": number})
    found = await state.verify()
    assert found.holds
    assert found.entries == 5
    assert found.head == await state.head()


@pytest.mark.parametrize(
    ("sql", "trigger"),
    [
        ("UPDATE journal SET body = '{\"n\":9}' WHERE seq = 3", "journal_keeps_its_rows"),
        ("UPDATE journal SET principal = 'user' WHERE seq = 3", "journal_keeps_its_rows"),
        ("UPDATE journal SET at_us = at_us + 1 WHERE seq = 3", "journal_keeps_its_rows"),
        ("DELETE FROM journal WHERE seq = 3", "journal_is_append_only"),
    ],
)
async def test_one_changed_entry_is_named(state: State, sql: str, trigger: str) -> None:
    for number in range(5):
        await state.write(note, {"n": number})
    home = state.path.parent
    with pytest.raises(sqlite3.IntegrityError):
        edit(home, sql)
    edit(home, sql, without=trigger)
    found = await state.verify()
    assert not found.holds
    assert found.broken_seq in (3, 4)
    assert found.reason


async def test_an_erased_body_breaks_nothing(state: State) -> None:
    for number in range(3):
        await state.write(note, {"n": number})
    await state.write(lambda tx: tx.erase_body(2))
    found = await state.verify()
    assert found.holds
    assert found.erased == 1
    assert (await state.read(Reading.entries, 1, most=1))[0].body is None


async def test_secrets_are_gone_before_the_body_is_hashed(tmp_path: Path) -> None:
    state = await State.open(tmp_path, redactor=Stars())
    await state.write(note, {"deep": [{"hunter2": "say hunter2"}], "n": 1})
    (entry,) = await state.read(Reading.entries, 0)
    await state.close()
    assert entry.body == {"deep": [{"[redacted]": "say [redacted]"}], "n": 1}
    assert b"hunter2" not in (tmp_path / DATABASE_FILE).read_bytes()


async def test_kinds_may_hold_globs(state: State) -> None:
    for kind in ("a.b.made", "a.c.made", "b.b.made"):
        await state.write(note, {}, kind)
    found = await state.read(Reading.entries, 0, kinds=("a.*", "b.b.made"))
    assert [entry.kind for entry in found] == ["a.b.made", "a.c.made", "b.b.made"]
    assert [entry.kind for entry in await state.read(Reading.entries, 0, kinds=("a.c.*",))] == ["a.c.made"]
    assert [entry.seq for entry in await state.read(Reading.entries, 1, most=1)] == [2]


@settings(max_examples=30, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(
    bodies=st.lists(
        st.dictionaries(st.text(max_size=8), st.text(max_size=20) | st.integers() | st.none(), max_size=4), max_size=6
    )
)
def test_whatever_is_written_is_read_back_and_the_chain_holds(tmp_path: Path, bodies: list[dict[str, object]]) -> None:
    import asyncio

    async def run() -> None:
        state = await State.open(tmp_path / "property")
        start = (await state.head()).seq
        for body in bodies:
            await state.write(note, body)
        read = await state.read(Reading.entries, start)
        held = (await state.verify()).holds
        await state.close()
        assert [entry.body for entry in read] == bodies
        assert held

    asyncio.run(run())
