"""Scopes: whose a memory is, which of them a caller reaches, and which is the stronger of two."""

import hashlib
import re
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Literal

from agentstead.memory.vocabulary import MemoryType, Trust
from agentstead.state import Denied, Invalid, NotFound, is_id

ScopeKind = Literal["home", "workspace", "agent", "session"]
PrincipalKind = Literal["user", "host", "session", "agent", "extension"]

HOME = "home"
HOME_TYPES: frozenset[MemoryType] = frozenset({"preference", "instruction", "person"})
NAME_A_WORKSPACE = (
    "Start the host in the project's folder, set AGENTSTEAD_WORKSPACE, or pass scope=workspace:<id, name or path>; "
    "scope=home keeps it for everywhere."
)

_AGENT = re.compile(r"[A-Za-z0-9][A-Za-z0-9._-]{0,63}")


@dataclass(frozen=True, slots=True)
class Scope:
    """One scope, read from its id."""

    kind: ScopeKind
    agent: str = ""
    workspace_id: str = ""
    session_id: str = ""

    @property
    def id(self) -> str:
        """Return the scope's id, as rows hold it."""
        match self.kind:
            case "home":
                return HOME
            case "workspace":
                return f"workspace:{self.workspace_id}"
            case "agent":
                return f"agent:{self.agent}" + (f"@{self.workspace_id}" if self.workspace_id else "")
            case "session":
                return f"session:{self.session_id}"


@dataclass(frozen=True, slots=True)
class Reach:
    """Who calls, and what of memory that caller may touch.

    `named` says that the caller has no folder of its own and named the workspace in the call. `depth` counts the agents
    above this one; `taint` holds the labels that its session carries.
    """

    principal: str
    kind: PrincipalKind
    agent: str = ""
    workspace_id: str = ""
    session_id: str = ""
    session_workspace: str = ""
    fork_id: str = ""
    depth: int = 0
    taint: tuple[str, ...] = ()
    note: str = ""

    @property
    def person(self) -> bool:
        """Tell whether the caller is the person of this home."""
        return self.kind == "user"

    @property
    def trust(self) -> Trust:
        """Return the trust that this caller's words have by themselves."""
        match self.kind:
            case "user":
                return Trust.PERSON
            case "host":
                return Trust.HOST
            case "agent" | "session":
                return Trust.AGENT
            case "extension":
                return Trust.FOREIGN

    def scopes(self) -> list[str]:
        """Return the default set of scopes, strongest first."""
        found = []
        if self.session_id:
            found.append(f"session:{self.session_id}")
        if self.agent and self.workspace_id:
            found.append(f"agent:{self.agent}@{self.workspace_id}")
        if self.agent:
            found.append(f"agent:{self.agent}")
        if self.workspace_id:
            found.append(f"workspace:{self.workspace_id}")
        return [*found, HOME]

    def may_touch(self, scope: Scope) -> bool:
        """Tell whether this caller reads and writes `scope`; of a session its workspace must have been looked up."""
        if self.person:
            return True
        match scope.kind:
            case "home":
                return True
            case "workspace":
                return scope.workspace_id == self.workspace_id
            case "agent":
                return scope.agent == self.agent and scope.workspace_id in ("", self.workspace_id)
            case "session":
                return scope.session_id == self.session_id


def read_scope(text: str) -> Scope:
    """Return the scope that an id names; raises `Invalid` with `memory.invalid` for anything else."""
    kind, _, rest = text.partition(":")
    if text == HOME:
        return Scope("home")
    if kind == "workspace" and is_id(rest, "wsp_"):
        return Scope("workspace", workspace_id=rest)
    if kind == "session" and is_id(rest, "ses_"):
        return Scope("session", session_id=rest)
    if kind == "agent":
        agent, _, workspace_id = rest.partition("@")
        if _AGENT.fullmatch(agent) and (not workspace_id or is_id(workspace_id, "wsp_")):
            return Scope("agent", agent=agent, workspace_id=workspace_id)
    raise Invalid(
        "memory.invalid",
        f"{text[:80]!r} is no scope.",
        remedy="Use home, workspace, agent, session, or an id of these: workspace:<wsp_ id>, agent:<name>, "
        "agent:<name>@<wsp_ id>, session:<ses_ id>.",
    )


def resolve_scope(text: str | None, reach: Reach, memory_type: MemoryType | None = None) -> Scope:
    """Return the scope that a call means: named, a bare word for the caller's own, or the default of the type.

    Raises `memory.workspace_required` where it needs a workspace and none is known, `memory.scope_denied` where it is
    another's.
    """
    scope = _own(text or _default(memory_type), reach)
    if not reach.may_touch(scope):
        raise Denied(
            "memory.scope_denied",
            f"The scope {scope.id} is not {reach.principal}'s to use.",
            remedy=f"Use one of: {', '.join(reach.scopes())}; or work in the other workspace.",
        )
    return scope


def agent_name(text: str) -> str:
    """Return the agent name inside a principal's name, or '' where it cannot name a scope."""
    name = text.partition("@")[0]
    return name if _AGENT.fullmatch(name) else ""


def scope_token(scope: str, fork_id: str = "") -> str:
    """Return the index word of a scope: no stemmer touches it, and no text folds to it by chance."""
    return f"s{hashlib.sha256(f'{scope}|{fork_id}'.encode()).hexdigest()[:24]}0"


def session_turns(workspace_id: str) -> str:
    """Return the name under which the episodes of a workspace's sessions share one index word."""
    return f"turns:{workspace_id}"


def strongest(scope: str, order: Sequence[str]) -> int:
    """Return the place of a scope in a reading order, 0 for the strongest; sessions of the past come before all."""
    return order.index(scope) if scope in order else -1


def _default(memory_type: MemoryType | None) -> str:
    if memory_type is None or memory_type in HOME_TYPES:
        return HOME
    return "session" if memory_type == "episode" else "workspace"


def _own(text: str, reach: Reach) -> Scope:
    match text:
        case "workspace":
            return Scope("workspace", workspace_id=_known_workspace(reach))
        case "session":
            return Scope("session", session_id=_known_session(reach))
        case "agent":
            return Scope("agent", agent=_known_agent(reach), workspace_id=reach.workspace_id)
        case _:
            return read_scope(text)


def _known_workspace(reach: Reach) -> str:
    if not reach.workspace_id:
        raise NotFound(
            "memory.workspace_required",
            "This memory belongs to a workspace, and the call names none." + (f" {reach.note}" if reach.note else ""),
            remedy=NAME_A_WORKSPACE,
        )
    return reach.workspace_id


def _known_session(reach: Reach) -> str:
    if not reach.session_id:
        raise Invalid(
            "memory.invalid",
            "This memory belongs to a session, and the call names none.",
            remedy="Pass session_id=<ses_ id>, or another scope.",
        )
    return reach.session_id


def _known_agent(reach: Reach) -> str:
    if not reach.agent:
        raise Denied(
            "memory.scope_denied",
            f"{reach.principal} is no agent, so it has no scope of its own craft.",
            remedy="Use the scope home or workspace.",
        )
    return reach.agent
