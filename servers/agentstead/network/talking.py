"""Operations that send: a message into a thread or room, and the receipts and traces that move work."""

from typing import Annotated, Any

from pydantic import Field

from agentstead.kit import Call, operation
from agentstead.network.acceptance import Arrival, accept
from agentstead.network.parameters import INTEGER, OBJECT, Artifacts, Channel, OwnPeer, PeerId
from agentstead.network.results import MessageSent, Reached, WorkUpdated
from agentstead.network.sending import Draft, Submission, Wanted, placed, submit, written
from agentstead.network.updating import Action, party_of, update_of
from agentstead.network.wire import Envelope
from agentstead.state import Tx


@operation("message_send", action="network.message_send", risk="write", title="Send a message", open_world=True)
async def message_send(
    call: Call,
    *,
    channel: Channel,
    text: Annotated[str, Field(description="Sent as given.", max_length=262_144)],
    peer: OwnPeer = None,
    to: Annotated[str | None, Field(description="Only receiver; work needs it.", max_length=128)] = None,
    mentions: Annotated[list[PeerId] | None, Field(description="Reach these too.", max_length=64)] = None,
    thread_id: Annotated[str | None, Field(description="Else a new one.", max_length=103)] = None,
    room_with: Annotated[str | None, Field(description="Peer of a room.", max_length=128)] = None,
    title: Annotated[str | None, Field(description="Of a new thread.", max_length=120)] = None,
    work: Annotated[str | None, Field(description="new, or an id.", max_length=128)] = None,
    reply_to: Annotated[str | None, Field(description="Message id.", max_length=256)] = None,
    intent: Annotated[str | None, Field(description="question, ...", max_length=64)] = None,
    artifacts: Artifacts = None,
    expires_in_s: Annotated[int | None, INTEGER, Field(description="Lifetime.", ge=1, le=2_592_000)] = None,
    dry_run: Annotated[bool, Field(description="Store nothing.")] = False,
) -> MessageSent:
    """Say something in a thread or a room of two. Without `to` the thread's participants get it, or everybody present.
    Never send secrets."""
    wanted = Wanted(to, thread_id, room_with, work)
    sender, place = await placed(call, wanted, peer=peer, channel=channel)
    body = {"text": text, "intent": intent, "artifacts": artifacts}
    draft = Draft(
        "say",
        sender,
        {name: value for name, value in body.items() if value is not None},
        place,
        mentions=mentions or (),
        reply_to=reply_to,
        expires_in_s=expires_in_s,
    )
    return await submit(call, Submission(written(call, draft), title=title or "", dry_run=dry_run), _sent, dry_run)


@operation(
    "work_update", action="network.work_update", risk="write", title="Move work", idempotent=True, open_world=True
)
async def work_update(
    call: Call,
    *,
    work_id: Annotated[str, Field(description="Its id.", max_length=128)],
    action: Annotated[Action, Field(description="What happened.")],
    message: Annotated[str | None, Field(description="Explanation.", max_length=65_536)] = None,
    reason_code: Annotated[str | None, Field(description="Of a refusal: busy, ...", max_length=40)] = None,
    result: Annotated[dict[str, Any] | None, OBJECT, Field(description="Of complete.")] = None,
    artifact_refs: Artifacts = None,
    peer: OwnPeer = None,
) -> WorkUpdated:
    """Move work that you are a party of: the target accepts, reports, completes; either cancels. Its end is final."""
    party = await call.read(party_of, call.principal, work_id, peer=peer)
    draft = update_of(
        party, action, message=message, reason_code=reason_code, result=result, artifact_refs=artifact_refs
    )
    return await submit(call, Submission(written(call, draft)), _moved)


def _sent(tx: Tx, envelope: Envelope, arrival: Arrival, dry_run: bool) -> MessageSent:
    accepted = accept(tx, envelope, arrival)
    return MessageSent(
        message_id=envelope.id,
        seq=None if dry_run else accepted.seq,
        thread_id=envelope.container_id if envelope.surface == "thread" else None,
        direct_id=envelope.container_id if envelope.surface == "direct" else None,
        work_id=envelope.work_id,
        delivered=[Reached(peer_id=each.peer_id, reason=each.reason) for each in accepted.delivered],
        skipped=[Reached(peer_id=each.peer_id, reason=each.reason) for each in accepted.skipped],
    )


def _moved(tx: Tx, envelope: Envelope, arrival: Arrival) -> WorkUpdated:
    accepted = accept(tx, envelope, arrival)
    assert accepted.work_state is not None
    assert accepted.work_version is not None
    return WorkUpdated(
        message_id=envelope.id,
        state=accepted.work_state,
        version=accepted.work_version,
    )
