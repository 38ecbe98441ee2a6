"""From a call to its reach: who calls, in which workspace, session and fork, under which labels."""

from collections.abc import Iterable
from dataclasses import dataclass
from pathlib import Path

from agentstead.identity import Principal, WorkspaceFacts
from agentstead.kit import Call
from agentstead.memory.controller import Limits, Writer
from agentstead.memory.scopes import NAME_A_WORKSPACE, PrincipalKind, Reach, agent_name
from agentstead.memory.vocabulary import Channel
from agentstead.policy import find_approval
from agentstead.state import Denied, NotFound, Reading, References, RefFacts, is_id

SESSION_VARIABLE = "AGENTSTEAD_SESSION"
TAINTS = frozenset({"network", "untrusted_skill", "web", "memory"})
_NAMED = "workspace:"


@dataclass(frozen=True, slots=True)
class Place:
    """A caller's reach, its workspace's folder where known, and the scopes that were given by a name or a path."""

    reach: Reach
    root: Path | None
    names: dict[str, str]


async def place_of(call: Call, *, scopes: Iterable[str | None] = (), session_id: str | None = None) -> Place:
    """Return the reach of a call; a caller without a folder of its own may name its workspace in a scope.

    Raises `session.not_found`, and `memory.scope_denied` for a session or a named workspace that is another's.
    """
    session = session_id or call.environ.get(SESSION_VARIABLE, "") or _own_session(call.principal)
    of_session = await _session(call, session)
    fork = await _fork(call)
    around, note = (None, "") if fork else await _around(call)
    known = fork[1] if fork else around.id if around else ""
    if known and of_session and of_session.workspace not in ("", known) and not is_person(call.principal):
        raise _foreign(session)
    named = await _named(call, scopes)
    root = around.root if around else None
    if not known and of_session:
        known = of_session.workspace
    if not known and named:
        facts = next(iter(named.values()))
        known, root = facts.id, facts.root
    reach = Reach(
        principal=call.principal.text,
        kind=_kind(call.principal),
        agent=agent_name(call.principal.name),
        workspace_id=known,
        session_id=session,
        fork_id=fork[0] if fork else "",
        depth=_depth(session, of_session),
        taint=_taint(call),
        note=note if known or not note else f"{note} {NAME_A_WORKSPACE}",
    )
    return Place(reach, root, {text: f"{_NAMED}{facts.id}" for text, facts in named.items()})


async def writer_of(call: Call, place: Place) -> Writer:
    """Return the caller as a writer, with the limits of its workspace."""
    settings = call.home.settings
    return Writer(
        reach=place.reach,
        channel=_channel(call.principal),
        confirmed=await _person_confirmed(call),
        limits=Limits(
            review=settings.text("memory.accept.workspace", workspace=place.root) == "review",
            minute=settings.whole("memory.writes.minute"),
            day=settings.whole("memory.writes.day"),
            pending=settings.whole("memory.proposals.pending"),
        ),
    )


def is_person(principal: Principal) -> bool:
    """Tell whether a principal is the person: the user, and not from inside a process that an agent drives."""
    return principal.kind == "user" and not principal.facts.supervised


async def _person_confirmed(call: Call) -> bool:
    """Tell whether a person said yes to this very call; a yes that covers other calls too confirms none of them."""
    if call.ticket is None or not call.ticket.approval_id:
        return False
    approval = await call.read(find_approval, call.ticket.approval_id)
    return approval is not None and approval.answer == "allow_once"


def _kind(principal: Principal) -> PrincipalKind:
    return "session" if principal.kind == "user" and not is_person(principal) else principal.kind


def _channel(principal: Principal) -> Channel:
    if principal.kind == "extension":
        return "extension"
    return "cli" if principal.facts.door == "cli" else "tool"


def _own_session(principal: Principal) -> str:
    name = principal.name.rpartition("@")[2] if principal.kind == "agent" else principal.name
    return name if principal.kind in ("agent", "session") and is_id(name, "ses_") else ""


async def _session(call: Call, session_id: str) -> RefFacts | None:
    if not session_id:
        return None
    facts = await call.read(_look, call.home.state.refs, session_id) if is_id(session_id, "ses_") else None
    if facts is None or not facts.exists:
        raise NotFound(
            "session.not_found",
            f"No session {session_id[:40]!r} is known.",
            remedy="Use an id that session_open returned.",
        )
    return facts


def _look(reading: Reading, refs: References, ref: str) -> RefFacts:
    return refs.look(reading, ref)


async def _fork(call: Call) -> tuple[str, str] | None:
    """Return fork and workspace of a caller that works inside a fork's tree."""
    forks = (call.home.path / "forks").resolve()
    folder = call.cwd.resolve() if call.cwd is not None else None
    if folder is None or not folder.is_relative_to(forks):
        return None
    fork_id = next((part for part in folder.relative_to(forks).parts if is_id(part, "frk_")), "")
    facts = await call.read(_look, call.home.state.refs, fork_id) if fork_id else RefFacts(exists=False)
    return (fork_id, facts.workspace) if facts.exists else None


async def _around(call: Call) -> tuple[WorkspaceFacts | None, str]:
    try:
        found = await call.workspace()
    except NotFound as error:
        if error.code != "workspace.unknown":
            raise
        return None, error.message
    return found, found.note


async def _named(call: Call, scopes: Iterable[str | None]) -> dict[str, WorkspaceFacts]:
    """Resolve the scopes that name a workspace by id, name or path."""
    wanted = dict.fromkeys(scope for scope in scopes if scope and scope.startswith(_NAMED))
    return {scope: await call.workspace(scope.removeprefix(_NAMED)) for scope in wanted}


def _depth(session_id: str, facts: RefFacts | None) -> int:
    if facts is None:
        return 0
    return int(facts.facts.get("root_id", "") not in ("", session_id))


def _taint(call: Call) -> tuple[str, ...]:
    labels = call.ticket.call.labels if call.ticket is not None else frozenset()
    return tuple(sorted(label for label in labels if label in TAINTS or label.startswith("mcp:")))


def _foreign(session_id: str) -> Denied:
    return Denied(
        "memory.scope_denied",
        f"The session {session_id} belongs to another workspace than the one that you work in.",
        remedy="Open a session in this workspace, or work in the other.",
    )
