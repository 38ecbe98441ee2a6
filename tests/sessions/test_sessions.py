"""Sessions: opened anywhere, recorded without a gap, read again by anybody, closed with what hung on them."""

import sqlite3
from collections.abc import Awaitable, Callable
from contextlib import closing
from pathlib import Path
from typing import Any, get_args

import pytest

from agentstead.kit import Home
from agentstead.sessions import machines, service
from agentstead.sessions.machines import CHECK_SETS, RUN, SESSION, EventKind, step
from agentstead.state import Conflict, Invalid, NotFound, SimulatedClock

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]


async def test_a_new_session_says_where_it_is_and_that_it_is_new(home: Home, invoke: Invoke, project: Path) -> None:
    opened = await invoke(home, service.session_open, cwd=project, name="fix the parser")
    assert opened.created
    assert opened.name == "fix the parser"
    assert opened.workspace.root == str(project)
    assert opened.workspace.source == "registered"
    assert ".agentstead" in opened.notes[0]
    again = await invoke(home, service.session_open, cwd=project)
    assert again.notes == []
    assert again.workspace.source == "directory"


async def test_another_host_goes_on_in_the_session_of_that_name(home: Home, invoke: Invoke, project: Path) -> None:
    one = await invoke(home, service.session_open, cwd=project, name="a", principal="host:desktop")
    await invoke(
        home,
        service.session_record,
        session_id=one.session_id,
        events=[
            {"kind": "prompt", "text": "Make it fast."},
            {"kind": "tool_call", "tool": "edit", "path": "src/a.py"},
            {"kind": "reply", "text": "It is twice as fast now."},
        ],
        turn="begin",
    )
    two = await invoke(home, service.session_open, cwd=project, name="a", principal="host:terminal")
    assert not two.created
    assert two.session_id == one.session_id
    assert two.recap["goal"] == "Make it fast."
    assert [each["text"] for each in two.recap["latest"]] == ["Make it fast.", "It is twice as fast now."]
    assert two.recap["files"] == ["src/a.py"]
    assert "twice as fast" in two.summary()


async def test_a_taken_name_is_refused_where_reuse_is_off(home: Home, invoke: Invoke, project: Path) -> None:
    await invoke(home, service.session_open, cwd=project, name="a")
    with pytest.raises(Conflict) as caught:
        await invoke(home, service.session_open, cwd=project, name="a", reuse=False)
    assert caught.value.code == "session.name_taken"


async def test_without_a_directory_the_answer_says_how_to_name_a_workspace(home: Home, invoke: Invoke) -> None:
    with pytest.raises(NotFound) as caught:
        await invoke(home, service.session_open)
    assert caught.value.code == "workspace.unknown"
    assert "workspace=" in caught.value.remedy


async def test_events_are_gapless_and_keep_their_order(home: Home, invoke: Invoke, project: Path) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    for first in (1, 4, 7):
        done = await invoke(
            home,
            service.session_record,
            session_id=session,
            events=[{"kind": "note", "text": str(number)} for number in range(3)],
        )
        assert (done.first_seq, done.last_seq) == (first, first + 2)
    page = await invoke(home, service.session_events, session_id=session, limit=4)
    rest = await invoke(home, service.session_events, session_id=session, after=page.next_after)
    assert [each.seq for each in (*page.items, *rest.items)] == list(range(1, 10))
    assert rest.next_after is None
    assert await service.verify(home) == []


async def test_turns_begin_and_end_and_events_know_theirs(home: Home, invoke: Invoke, project: Path) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    record = [{"kind": "note", "text": "x"}]
    before = await invoke(home, service.session_record, session_id=session, events=record)
    one = await invoke(home, service.session_record, session_id=session, events=record, turn="begin")
    same = await invoke(home, service.session_record, session_id=session, events=record, turn="end")
    after = await invoke(home, service.session_record, session_id=session, events=record)
    two = await invoke(home, service.session_record, session_id=session, events=record, turn="begin")
    three = await invoke(home, service.session_record, session_id=session, events=record, turn="begin")
    assert before.turn_id == after.turn_id == ""
    assert one.turn_id == same.turn_id
    assert len({one.turn_id, two.turn_id, three.turn_id}) == 3


async def test_a_large_event_goes_to_the_blob_store_and_its_row_stays_small(
    home: Home, invoke: Invoke, project: Path
) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    await invoke(home, service.session_record, session_id=session, events=[{"kind": "reply", "text": "x" * 20_000}])
    (event,) = (await invoke(home, service.session_events, session_id=session)).items
    assert event.body is None
    assert b"xxx" in await home.blobs.get("blob", event.blob)
    assert await service.verify(home) == []


async def test_secrets_in_events_are_never_stored(home: Home, invoke: Invoke, project: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    await invoke(
        home,
        service.session_record,
        session_id=session,
        events=[{"kind": "reply", "text": f"use {secret}"}, {"kind": "tool_call", "body": {"env": {"T": secret}}}],
    )
    await home.state.maintain(lambda connection: connection.execute("PRAGMA wal_checkpoint(TRUNCATE)").fetchall())
    assert secret.encode() not in home.state.path.read_bytes()


async def test_one_changed_event_is_named_by_verify(home: Home, invoke: Invoke, project: Path) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    events = [{"kind": "note", "text": text} for text in "abc"]
    await invoke(home, service.session_record, session_id=session, events=events)
    with closing(sqlite3.connect(home.state.path)) as raw:
        with pytest.raises(sqlite3.IntegrityError):
            raw.execute("UPDATE events SET body = '{}' WHERE seq = 2")
        raw.execute("DROP TRIGGER events_keep_their_rows")
        raw.execute('UPDATE events SET body = \'{"text":"B"}\' WHERE seq = 2')
        raw.commit()
    assert await service.verify(home) == [f"event {session}/2 is not the one that was recorded"]


async def test_a_closed_session_takes_no_events_until_it_is_opened_again(
    home: Home, invoke: Invoke, project: Path
) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    closed = await invoke(home, service.session_close, session_id=session, reason="done")
    assert closed.state == "closed"
    with pytest.raises(Conflict) as caught:
        await invoke(home, service.session_record, session_id=session, events=[{"kind": "note", "text": "x"}])
    assert f"session_open(session_id='{session}')" in caught.value.remedy
    again = await invoke(home, service.session_open, session_id=session)
    assert not again.created
    await invoke(home, service.session_record, session_id=session, events=[{"kind": "note", "text": "x"}])


async def test_the_same_key_records_once(home: Home, invoke: Invoke, project: Path) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    arguments = {"session_id": session, "events": [{"kind": "note", "text": "x"}], "idempotency_key": "k"}
    one = await invoke(home, service.session_record, **arguments)
    two = await invoke(home, service.session_record, **arguments)
    assert one == two
    with pytest.raises(Conflict) as caught:
        await invoke(home, service.session_record, **{**arguments, "events": [{"kind": "note", "text": "y"}]})
    assert caught.value.code == "key.conflict"
    assert len((await invoke(home, service.session_events, session_id=session)).items) == 1


async def test_sessions_are_listed_newest_first_page_by_page(
    home: Home, invoke: Invoke, project: Path, clock: SimulatedClock
) -> None:
    made = []
    for number in range(5):
        clock.advance(seconds=1)
        made.append((await invoke(home, service.session_open, cwd=project, name=f"s{number}")).session_id)
    found: list[str] = []
    cursor = None
    while True:
        page = await invoke(home, service.session_find, limit=2, cursor=cursor)
        found += [each.session_id for each in page.items]
        cursor = page.next_cursor
        if cursor is None:
            break
    assert found == made[::-1]
    assert [each.name for each in (await invoke(home, service.session_find, query="s3")).items] == ["s3"]
    assert (await invoke(home, service.session_find, query="%")).items == []
    first = await invoke(home, service.session_find, limit=2)
    with pytest.raises(Invalid) as caught:
        await invoke(home, service.session_find, limit=2, cursor=first.next_cursor, state="closed")
    assert caught.value.code == "cursor.foreign"


async def test_a_view_wakes_when_something_changed(home: Home, invoke: Invoke, project: Path) -> None:
    session = (await invoke(home, service.session_open, cwd=project)).session_id
    seen = (await invoke(home, service.desk_view, ref=session)).as_of_seq
    quiet = await invoke(home, service.desk_view, ref=session, since=seen, wait_s=0)
    assert not quiet.changed
    await invoke(home, service.session_record, session_id=session, events=[{"kind": "note", "text": "x"}])
    woken = await invoke(home, service.desk_view, ref=session, view="events", since=seen, wait_s=20)
    assert woken.changed
    assert [each["body"]["text"] for each in woken.item["events"]] == ["x"]


async def test_an_unknown_handle_is_refused_with_the_known_kinds(home: Home, invoke: Invoke) -> None:
    with pytest.raises(Invalid) as caught:
        await invoke(home, service.desk_view, ref="xyz_1")
    assert caught.value.code == "desk.ref_invalid"
    with pytest.raises(NotFound):
        await invoke(home, service.desk_view, ref="ses_1")


async def test_the_tables_list_the_same_closed_sets_as_the_code(home: Home) -> None:
    tables = await home.state.read(
        lambda r: {row["name"]: row["sql"] for row in r.all("SELECT name, sql FROM sqlite_master")}
    )
    for (table, column), allowed in CHECK_SETS.items():
        sql = " ".join(tables[table].split())
        listed = sql.split(f"{column} IN (", 1)[1].split(")", 1)[0].replace("'", "").replace(" ", "")
        assert tuple(listed.split(",")) == allowed, (table, column)
    assert get_args(EventKind) == CHECK_SETS["events", "kind"]


@pytest.mark.parametrize(("machine", "noun", "column"), [(SESSION, "session", "sessions"), (RUN, "run", "runs")])
async def test_every_pair_of_state_and_event_is_listed_or_refused(
    machine: machines.Transitions, noun: str, column: str
) -> None:
    states = CHECK_SETS[column, "state"]
    events = {event for _, event in machine}
    for state in states:
        for event in events:
            if (state, event) in machine:
                assert step(machine, noun, "x", state=state, event=event) in states
                continue
            with pytest.raises(Conflict) as caught:
                step(machine, noun, "x", state=state, event=event)
            assert caught.value.code == f"{noun}.transition_refused"
            assert caught.value.details["legal"] == sorted(known for at, known in machine if at == state)
