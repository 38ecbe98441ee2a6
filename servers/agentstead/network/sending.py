"""Sending on the local path: which container and target a call means, and the one door for every message."""

from collections.abc import Callable, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import dataclass, field
from functools import partial
from typing import Any, Concatenate, Final, ParamSpec, TypeVar

from anyio import to_thread

from agentstead.kit import Call
from agentstead.network.acceptance import Arrival
from agentstead.network.asking import Asker
from agentstead.network.joining import Newcomer
from agentstead.network.peers import Peer, peer_named, unknown_peer
from agentstead.network.refusals import as_error, record
from agentstead.network.rooms import room_of
from agentstead.network.wire import Envelope, Refused, compose, examine
from agentstead.network.wire.grammar import Kind, Surface
from agentstead.network.works import find_work
from agentstead.state import Invalid, Reading, Tx, new_id

# Larger messages lie in the blob store, and are examined off the event loop.
INLINE_BYTES: Final = 65_536

P = ParamSpec("P")
T = TypeVar("T")


@dataclass(frozen=True, slots=True)
class Wanted:
    """Where a message is to go, as a caller said it; `work` is an id or `new`."""

    to: str | None = None
    thread_id: str | None = None
    room_with: str | None = None
    work: str | None = None


@dataclass(frozen=True, slots=True)
class Fresh:
    """Ids for what a message may open."""

    thread: str
    work: str


@dataclass(frozen=True, slots=True)
class Address:
    """Where a message goes."""

    surface: Surface
    container_id: str
    to: str | None
    work_id: str | None


@dataclass(frozen=True, slots=True)
class Draft:
    """A message before it has bytes."""

    kind: Kind
    sender: Peer
    body: dict[str, Any]
    address: Address | None = None
    mentions: Sequence[str] = field(default=())
    reply_to: str | None = None
    causation_id: str | None = None
    expires_in_s: int | None = None


@dataclass(frozen=True, slots=True)
class Submission:
    """A message's bytes on their way in; `title` is that of a thread which it may open."""

    raw: bytes
    title: str = ""
    dry_run: bool = False


async def placed(call: Call, wanted: Wanted, *, peer: str | None, channel: str) -> tuple[Peer, Address]:
    """Return the sender that a call means and where its message goes.

    That is the named room or thread, else that of the work it continues, else a new thread. Raises `Invalid` for two
    containers or a second target in a room, `NotFound` for an unknown room peer, and what `Asker.acting` does.
    """
    clock = call.home.clock
    fresh = Fresh(new_id("thread_", clock).lower(), new_id("work_", clock))
    return await call.read(_placed, Asker.of(call), peer, channel, wanted, fresh)


def written(call: Call, draft: Draft) -> bytes:
    """Return the bytes of a draft under a fresh message id, dated now."""
    now = now_s(call)
    place = draft.address
    return compose(
        message_id=new_id("msg_", call.home.clock),
        workspace_id=draft.sender.workspace,
        kind=draft.kind,
        channel=draft.sender.channel,
        sender=draft.sender.peer_id,
        ts=now,
        body=draft.body,
        to=place.to if place else None,
        surface=place.surface if place else None,
        container_id=place.container_id if place else None,
        work_id=place.work_id if place else None,
        mentions=draft.mentions,
        reply_to=draft.reply_to,
        causation_id=draft.causation_id,
        expires_at=None if draft.expires_in_s is None else now + draft.expires_in_s,
    )


def greeting(call: Call, who: Newcomer, card: Mapping[str, Any]) -> bytes:
    """Return the bytes of the greet that announces a peer."""
    return compose(
        message_id=new_id("msg_", call.home.clock),
        workspace_id=who.place.workspace,
        kind="greet",
        channel=who.place.channel,
        sender=who.peer_id,
        ts=now_s(call),
        body={"peer_card": dict(card)},
    )


async def submit(
    call: Call,
    message: Submission,
    store: Callable[Concatenate[Tx, Envelope, Arrival, P], T],
    *args: P.args,
    **kwargs: P.kwargs,
) -> T:
    """Check a message and hand it to `store` in one transaction; keep a record, and raise the error, of a refusal.

    `store` calls `accept` and returns what its own caller wants. A dry run is rolled back and records nothing.
    """
    raw = message.raw
    try:
        envelope = await examined(call, raw)
        async with AsyncExitStack() as stack:
            raw_blob = None
            if len(raw) > INLINE_BYTES and not message.dry_run:
                await stack.enter_async_context(call.home.blobs.holding())
                raw_blob = await call.home.blobs.put(raw)
            arrival = Arrival(raw_blob=raw_blob, title=message.title)
            if message.dry_run:
                return await call.home.state.rehearse(store, envelope, arrival, *args, **kwargs)
            return await call.write(store, envelope, arrival, *args, **kwargs)
    except Refused as refused:
        if not message.dry_run:
            await call.write(record, raw, refused, "local")
        raise as_error(refused) from None


async def examined(call: Call, raw: bytes) -> Envelope:
    """Return the checked envelope in `raw`; raises `Refused`."""
    look = partial(examine, raw, now=now_s(call), is_secret=partial(_is_secret, call))
    return look() if len(raw) <= INLINE_BYTES else await to_thread.run_sync(look)


def now_s(call: Call) -> int:
    """Return the home's time in whole Unix seconds."""
    return call.home.clock.now_us() // 1_000_000


def _is_secret(call: Call, text: str) -> bool:
    return bool(text) and call.home.redactor.text(text) != text


def _placed(
    reading: Reading, asker: Asker, peer: str | None, channel: str, wanted: Wanted, fresh: Fresh
) -> tuple[Peer, Address]:
    sender = asker.acting(reading, peer=peer, channel=channel)[0]
    if wanted.room_with is not None:
        return sender, _room(reading, sender, wanted, fresh)
    if wanted.work in (None, "new"):
        work_id = fresh.work if wanted.work else None
        return sender, Address("thread", wanted.thread_id or fresh.thread, wanted.to, work_id)
    return sender, _of_work(reading, sender, wanted, fresh)


def _of_work(reading: Reading, sender: Peer, wanted: Wanted, fresh: Fresh) -> Address:
    work = find_work(reading, sender.workspace, wanted.work or "")
    if work is None:
        return Address("thread", wanted.thread_id or fresh.thread, wanted.to, wanted.work)
    to = wanted.to or work.other_party(sender.peer_id)
    if wanted.thread_id is not None:
        return Address("thread", wanted.thread_id, to, wanted.work)
    return Address(work.surface, work.container_id, to, wanted.work)


def _room(reading: Reading, sender: Peer, wanted: Wanted, fresh: Fresh) -> Address:
    other = peer_named(reading, sender.place, wanted.room_with or "")
    if other is None:
        raise unknown_peer(wanted.room_with or "")
    if wanted.thread_id is not None or wanted.to not in (None, other.peer_id) or other == sender:
        raise Invalid(
            "tool.invalid_arguments",
            "room_with: a room has two different peers, no thread, and no other target.",
            remedy="Give room_with alone, or thread_id with to.",
        )
    work_id = fresh.work if wanted.work == "new" else wanted.work
    return Address("direct", room_of(sender, other), other.peer_id, work_id)
