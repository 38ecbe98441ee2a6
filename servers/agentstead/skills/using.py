"""Taking a skill into use: activate it, read its files, end it."""

from functools import partial
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from agentstead.kit import Call, operation
from agentstead.skills import activations, lifetimes
from agentstead.skills.activations import Activation, Begun, EndReason, Terms
from agentstead.skills.admitting import admit, effective, require_person
from agentstead.skills.asking import Asked, asked_of, question
from agentstead.skills.fencing import fence
from agentstead.skills.finding import Name, WorkspaceId
from agentstead.skills.reading import ContentChanged, check_path, piece, read_held
from agentstead.skills.resolver import Resolution, Whereabouts, resolve, whereabouts
from agentstead.skills.results import FileItem, RequestedTool, SkillActivated, SkillDeactivated, SkillFile
from agentstead.skills.rulings import Ruled, Ruling
from agentstead.skills.store import SKILL_FILES, HeldTree, TreeRefused, hold
from agentstead.state import Conflict, Tx

HOUR_US = 3_600_000_000
BODY_BYTES = 256 * 1024
PIECE_BYTES = 64 * 1024

SessionId = Annotated[str | None, Field(description="It ends with this session.")]
ActivationId = Annotated[str, Field(description="From skill_activate.", max_length=40)]


@operation(
    "skill_activate", action="skills.activate", risk="write", title="Activate a skill", idempotent=True, asks="subject"
)
async def skill_activate(
    call: Call,
    *,
    name: Name,
    session_id: SessionId = None,
    workspace_id: WorkspaceId = None,
    again: Annotated[bool, Field(description="Return content though active.")] = False,
) -> SkillActivated:
    """Load a skill for a task that its description covers. Returns its text, fenced, and its files; it grants nothing.

    Content that nobody agreed to asks a person first. A changed byte of the skill ends the activation.
    """
    session = session_id or call.environ.get("AGENTSTEAD_SESSION", "")
    await call.read(lifetimes.require_open, call.home.state.refs, session)
    where = await whereabouts(call, workspace_id=workspace_id, session_id=session or None)
    resolution = await resolve(call, where)
    found = admit(resolution, name, consenting=True)
    require_person(call, found)
    tree = await _held(found)
    asked = None
    if effective(found, name) is Ruling.NEEDS_CONSENT:
        asked = await _consent(call, resolution, found, session=session)
    begun = await call.write(_begin, _terms(call, resolution, found, session=session), tree, asked)
    return _activated(found, tree, begun, again=again, note=where.note)


@operation("skill_read", action="skills.read", risk="read", title="Read a file of a skill")
async def skill_read(
    call: Call,
    *,
    activation_id: ActivationId,
    path: Annotated[str, Field(description="One of its files.", min_length=1, max_length=1024)],
    offset: Annotated[int, Field(description="Byte to start at.", ge=0)] = 0,
    length: Annotated[int, Field(description="Bytes at most.", ge=1, le=PIECE_BYTES)] = PIECE_BYTES,
) -> SkillFile:
    """Read a file of an activated skill when its text points to it. Returns text or base64, sha256, next_offset.

    If anything of the skill changed, the activation ends with skill.content_changed.
    """
    check_path(path)
    activation = await _live(call, activation_id)
    held = {file.path: file for file in await call.read(activations.files_of, activation.tree_id)}
    candidate = (await _still_served(call, activation)).candidate
    assert candidate.place is not None
    try:
        data = await anyio.to_thread.run_sync(read_held, candidate.place, held, path)
    except ContentChanged as changed:
        raise await _changed(call, activation, str(changed)) from None
    part = piece(data, offset=offset, length=length)
    return SkillFile(
        path=path,
        skill=activation.qualified_name,
        media_type=held[path].media_type,
        size=held[path].size,
        sha256=held[path].blob_id,
        text=part.text,
        base64=part.base64,
        revealed=part.revealed,
        next_offset=part.next_offset,
    )


@operation(
    "skill_deactivate", action="skills.deactivate", risk="write", title="End a skill's activation", idempotent=True
)
async def skill_deactivate(call: Call, *, activation_id: ActivationId) -> SkillDeactivated:
    """End an activation when its task is done; what it was granted ends with it. One that ended stays as it ended."""
    ended = await call.write(activations.end, activation_id, "deactivated")
    return SkillDeactivated(activation_id=ended.id, state="ended", end_reason=ended.end_reason)


async def _held(found: Ruled) -> HeldTree:
    """Read every byte of the skill anew: what is activated is what was judged, or nothing is."""
    assert found.candidate.place is not None
    try:
        tree = await anyio.to_thread.run_sync(partial(hold, found.candidate.place))
    except (TreeRefused, OSError) as error:
        raise _moving(found, str(error)) from None
    if tree.tree_id != found.candidate.tree_id:
        raise _moving(found, "Its files have other bytes than a moment ago.")
    return tree


def _moving(found: Ruled, why: str) -> Conflict:
    return Conflict(
        "skill.content_changed",
        f"{found.candidate.qualified_name} changed while it was activated. {why}",
        remedy="Call again when nothing writes to the skill.",
        retryable=True,
    )


async def _consent(call: Call, resolution: Resolution, found: Ruled, *, session: str) -> Asked:
    asked = asked_of(found.candidate)
    workspace = resolution.where.workspace
    text = question(found, workspace.name if workspace else "")
    approval_id = await call.subject(
        "consent", asked.subject_hash, question=text, workspace=resolution.workspace_id, session_id=session or None
    )
    return asked.answered(approval_id)


def _terms(call: Call, resolution: Resolution, found: Ruled, *, session: str) -> Terms:
    settings = call.home.settings
    hours = settings.whole("skills.activation.session_days") * 24 if session else 0
    hours = hours or settings.whole("skills.activation.ttl_hours")
    return Terms(
        origin_key=found.candidate.origin_key,
        qualified_name=found.candidate.qualified_name,
        workspace_id=resolution.workspace_id,
        session_id=session,
        expires_at=call.home.clock.now_us() + hours * HOUR_US,
    )


def _begin(tx: Tx, terms: Terms, tree: HeldTree, asked: Asked | None) -> Begun:
    if asked is not None:
        asked.use(tx, workspace=terms.workspace_id)
    return activations.begin(tx, terms, tree)


def _activated(found: Ruled, tree: HeldTree, begun: Begun, *, again: bool, note: str) -> SkillActivated:
    candidate = found.candidate
    assert candidate.document is not None
    body = candidate.document.body.encode()
    part = piece(body, offset=0, length=BODY_BYTES)
    silent = begun.already_active and not again
    return SkillActivated(
        activation_id=begun.activation.id,
        state="active",
        name=candidate.name,
        origin=candidate.origin,
        tree_id=tree.tree_id,
        already_active=begun.already_active,
        content=None if silent else fence(part.text or "", skill=candidate.qualified_name, tree_id=tree.tree_id),
        next_offset=None if silent or part.next_offset is None else _above(tree, body) + part.next_offset,
        files=[
            FileItem(path=file.path, size=file.size, media_type=file.media_type, exec=file.executable)
            for file in tree.files
        ],
        requested_tools=[
            RequestedTool(pattern=pattern, decision="not_granted") for pattern in candidate.document.allowed_tools
        ],
        expires_at=begun.activation.expires_at,
        note=note or None,
    )


def _above(tree: HeldTree, body: bytes) -> int:
    """Return how many bytes of the file stand above its body."""
    sizes = {file.path: file.size for file in tree.files}
    return next(sizes[name] for name in SKILL_FILES if name in sizes) - len(body)


async def _live(call: Call, activation_id: str) -> Activation:
    activation = await call.read(activations.find, activation_id)
    activations.refuse_ended(activation)
    if await call.read(lifetimes.is_over, call.home.state.refs, activation):
        activation = await call.write(lifetimes.settle, call.home.state.refs, activation)
    activations.refuse_ended(activation)
    return activation


async def _still_served(call: Call, activation: Activation) -> Ruled:
    where = Whereabouts()
    if activation.workspace_id:
        where = await whereabouts(call, workspace_id=activation.workspace_id)
    resolution = await resolve(call, where)
    found = resolution.by_origin_key(activation.origin_key)
    if found is None or found.candidate.tree_id != activation.tree_id:
        raise await _changed(call, activation, "It is gone." if found is None else "Its files have other bytes.")
    if found.by_itself is not Ruling.SERVED:
        await _end(call, activation, "not_served")
    return found


async def _end(call: Call, activation: Activation, reason: EndReason) -> None:
    activations.refuse_ended(await call.write(activations.end, activation.id, reason))


async def _changed(call: Call, activation: Activation, what: str) -> Conflict:
    await call.write(activations.end, activation.id, "content_changed")
    return Conflict(
        "skill.content_changed",
        f"{activation.qualified_name} is not what was activated. {what} Its activation ended.",
        remedy=f"Look at the change, then activate it again: skill_activate(name={activation.qualified_name!r}).",
        details={"activation_id": activation.id, "tree_id": activation.tree_id},
    )
