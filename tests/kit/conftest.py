"""A small server of our own making, and clients of both protocol eras."""

from collections.abc import AsyncIterator, Sequence
from contextlib import AbstractAsyncContextManager, asynccontextmanager
from dataclasses import dataclass, field
from pathlib import Path
from typing import Annotated, Any

import mcp_types as types
import pytest
from mcp import Client
from pydantic import Field

from agentstead.kit import CALLER, Call, Caller, Home, Prompt, Resource, Result, ServerDeclaration, operation
from agentstead.kit.changes import ChangeHub
from agentstead.kit.mcp_server import build
from agentstead.policy import trust_host
from agentstead.state import Entry, HomeLock, NotFound, Reading, Tx

ERAS = ("legacy", "2026-07-28")


class Note(Result):
    """One kept note."""

    seq: int
    text: str


class Notes(Result):
    """Every note."""

    items: Sequence[Note]


def keep(tx: Tx, text: str) -> int:
    return tx.journal("notes.note.kept", subject="note", body={"text": text})


def kept(reading: Reading) -> list[Note]:
    found = reading.entries(0, kinds=("notes.*",))
    return [Note(seq=entry.seq, text=str(entry.body["text"])) for entry in found if entry.body]


@operation("note_keep", action="memory.note_keep", risk="write", title="Keep a note")
async def note_keep(call: Call, *, text: Annotated[str, Field(description="The note.", max_length=200)]) -> Note:
    """Keep a note."""
    await call.progress(1, 2, "half")
    return Note(seq=await call.write(keep, text), text=text)


@operation("note_list", action="memory.note_list", risk="read", title="List notes")
async def note_list(call: Call) -> Notes:
    """List the notes."""
    return Notes(items=await call.read(kept))


@operation("note_burn", action="memory.note_burn", risk="destructive", title="Burn notes")
async def note_burn(call: Call, *, text: Annotated[str, Field(description="Which.")]) -> Note:
    """Burn a note; a person must say yes."""
    return Note(seq=await call.write(keep, f"burned {text}"), text=text)


@operation("note_vow", action="memory.note_vow", risk="destructive", title="Vow", asks="subject")
async def note_vow(call: Call, *, text: Annotated[str, Field(description="What.")]) -> Note:
    """Vow something; asks about its own subject."""
    approval = await call.subject("override", f"vow:{text}", question=f"Vow {text}?")
    return Note(seq=await call.write(keep, f"vowed {text}"), text=approval)


@operation("note_fail", action="memory.note_fail", risk="read", title="Fail")
async def note_fail(call: Call, *, how: Annotated[str, Field(description="How.")]) -> Note:
    """Fail in one of several ways."""
    if how == "known":
        raise NotFound("task.not_found", "No such note.", remedy="Look again.", details={"how": how})
    raise RuntimeError("hunter2-secret-value")


async def _read_note(call: Call, seq: str) -> str:
    found = [note for note in await call.read(kept) if str(note.seq) == seq]
    if not found:
        raise NotFound("task.not_found", f"No note {seq}.", remedy="List them.")
    return found[0].text


async def _list_notes(call: Call) -> list[tuple[str, str]]:
    return [(f"notes://one/{note.seq}", f"note {note.seq}") for note in await call.read(kept)]


async def _raw(_call: Call) -> bytes:
    return b"\x00\x01"


async def _render(_call: Call, topic: str, tone: str = "plain") -> str:
    return f"Write about {topic} in a {tone} tone."


def _changes(entry: Entry) -> list[str]:
    return [f"notes://one/{entry.seq}", "notes://raw"] if entry.kind == "notes.note.kept" else []


NOTES = ServerDeclaration(
    name="notes",
    title="Notes",
    instructions="Keeps notes.",
    operations=(note_keep, note_list, note_burn, note_vow, note_fail),
    toolsets={"core": ("note_keep", "note_list", "note_burn", "note_vow", "note_fail")},
    resources=(
        Resource(
            "notes://one/{seq}",
            title="A note",
            description="One note.",
            read=_read_note,
            mime="text/plain",
            entries=_list_notes,
        ),
        Resource("notes://raw", title="Raw", description="Bytes.", read=_raw, mime="application/octet-stream"),
    ),
    prompts=(
        Prompt(
            "write",
            title="Write",
            description="Write a text.",
            render=_render,
            arguments={"topic": "About what.", "tone": "How."},
            optional=frozenset({"tone"}),
        ),
    ),
    changes=_changes,
)


@dataclass
class Person:
    """Answers forms as told, and remembers them."""

    decision: str = "allow_once"
    action: Any = "accept"
    asked: list[str] = field(default_factory=list)

    async def answer(self, context: Any, params: Any) -> types.ElicitResult | types.ErrorData:
        self.asked.append(params.message)
        content = {"decision": self.decision} if self.action == "accept" else None
        return types.ElicitResult(action=self.action, content=content)


@pytest.fixture
def person() -> Person:
    return Person()


@pytest.fixture
async def home(tmp_path: Path) -> AsyncIterator[Home]:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    lock = HomeLock(path)
    lock.acquire()
    opened = await Home.open(path, lock=lock, servers=[NOTES])
    await opened.state.write(trust_host, "tester", forms_only=True)
    yield opened
    await opened.close()
    lock.release()


@pytest.fixture
def hub() -> ChangeHub:
    return ChangeHub([NOTES])


Connect = Any


@pytest.fixture
def connect(home: Home, hub: ChangeHub) -> Connect:
    """Connect a client of an era; with a person, it shows forms to them."""

    def connected(
        mode: str, person: Person | None = None, environ: dict[str, str] | None = None, **kwargs: Any
    ) -> AbstractAsyncContextManager[Client]:
        @asynccontextmanager
        async def run() -> AsyncIterator[Client]:
            CALLER.set(Caller(door="socket", environ=environ or {}))
            server = build(NOTES, home, hub=hub)
            client = Client(
                server,
                mode=mode,
                client_info=types.Implementation(name="tester", version="1"),
                elicitation_callback=person.answer if person else None,
                **kwargs,
            )
            async with client:
                yield client

        return run()

    return connected
