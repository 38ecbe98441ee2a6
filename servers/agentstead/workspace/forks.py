"""Forks as rows: whose they are, what they came from, how long they live, and what state they are in."""

from dataclasses import dataclass
from pathlib import Path
from typing import Final, Literal

from agentstead.state import Conflict, Exhausted, NotFound, Reading, RefFacts, Tx
from agentstead.workspace.machines import FORK
from agentstead.workspace.places import Place, fork_place

ForkMode = Literal["edit", "run"]

MOST_LIVING: Final = 16
DEFAULT_TTL_S: Final = 86_400
MIN_TTL_S: Final = 60
MAX_TTL_S: Final = 2_592_000
LIVING: Final = ("making", "open", "conflicted", "settled", "promoting")

_COLUMNS: Final = """id, workspace_id, base_snapshot, head_snapshot, dir, strategy, mode, label, hypothesis, state,
holder, session_id, fence, expires_at, bytes, version, created_at"""
_BY_ID: Final = f"SELECT {_COLUMNS} FROM forks WHERE id = :id"
_LIVING: Final = "state IN ('making', 'open', 'conflicted', 'settled', 'promoting')"
_LIST: Final = f"""
SELECT {_COLUMNS}
FROM forks
WHERE workspace_id = :workspace
    AND (:ended = 1 OR {_LIVING})
    AND (:before = '' OR id < :before)
ORDER BY id DESC
LIMIT :most
"""
_COUNT: Final = f"SELECT count(*) FROM forks WHERE workspace_id = :workspace AND {_LIVING}"
_STALE: Final = f"""
SELECT {_COLUMNS}
FROM forks
WHERE state = 'making' OR state = 'closed' OR (state IN ('open', 'settled', 'conflicted') AND expires_at <= :now)
"""
_INSERT: Final = """
INSERT INTO forks (id, workspace_id, base_snapshot, head_snapshot, dir, strategy, mode, label, hypothesis, state,
    holder, session_id, expires_at, created_at)
VALUES (:id, :workspace, :base, :base, :dir, 'materialised', :mode, :label, :hypothesis, :state,
    :holder, :session_id, :expires_at, :now)
"""
_MOVE: Final = "UPDATE forks SET state = :state, version = version + 1 WHERE id = :id"
_HEAD: Final = "UPDATE forks SET head_snapshot = :head, bytes = :bytes, version = version + 1 WHERE id = :id"
_RENEW: Final = "UPDATE forks SET expires_at = :expires_at, version = version + 1 WHERE id = :id"


@dataclass(frozen=True, slots=True)
class Fork:
    """One copy of a tree to work in; `dir` is the folder in the home that holds it."""

    id: str
    workspace_id: str
    base_snapshot: str
    head_snapshot: str
    dir: str
    strategy: str
    mode: ForkMode
    label: str
    hypothesis: str
    state: str
    holder: str
    session_id: str
    fence: int
    expires_at: int
    bytes: int
    version: int
    created_at: int

    @property
    def place(self) -> Place:
        """Return the fork as a place."""
        return fork_place(self.workspace_id, self.id, Path(self.dir))


@dataclass(frozen=True, slots=True)
class NewFork:
    """What a fork is made from and for."""

    workspace_id: str
    base_snapshot: str
    mode: ForkMode
    label: str
    hypothesis: str
    session_id: str
    ttl_s: int


def make(tx: Tx, wanted: list[NewFork], folder: str) -> list[str]:
    """Record that forks are being made, all or none; return their ids.

    Raises Exhausted `fork.limit` where the workspace would have more living forks than it may.
    """
    workspace_id = wanted[0].workspace_id
    living = int(tx.value(_COUNT, workspace=workspace_id))
    if living + len(wanted) > MOST_LIVING:
        raise Exhausted(
            "fork.limit",
            f"the workspace has {living} living forks and may have {MOST_LIVING}; {len(wanted)} more were asked for",
            remedy="Close some with fork_close, or ask for fewer.",
            details={"living": living, "most": MOST_LIVING},
        )
    return [_insert(tx, each, folder) for each in wanted]


def _insert(tx: Tx, new: NewFork, folder: str) -> str:
    fork_id = tx.new_id("frk_")
    tx.execute(
        _INSERT,
        id=fork_id,
        workspace=new.workspace_id,
        base=new.base_snapshot,
        dir=str(Path(folder) / fork_id),
        mode=new.mode,
        label=tx.redact(new.label),
        hypothesis=tx.redact(new.hypothesis),
        state=FORK.after("", "make"),
        holder=tx.principal,
        session_id=new.session_id,
        expires_at=tx.now_us + new.ttl_s * 10**6,
        now=tx.now_us,
    )
    body = {"base": new.base_snapshot, "label": new.label}
    tx.journal("workspace.fork.made", subject=fork_id, workspace=new.workspace_id, body=body)
    return fork_id


def move(tx: Tx, fork_id: str, event: str) -> Fork:
    """Move a fork by an event of its machine."""
    known = the_fork(tx, fork_id)
    state = FORK.after(known.state, event)
    tx.execute(_MOVE, id=fork_id, state=state)
    kind = {"promoted": "promoted", "close": "dropped", "error": "dropped"}.get(event, "moved")
    body = {"event": event, "state": state}
    tx.journal(f"workspace.fork.{kind}", subject=fork_id, workspace=known.workspace_id, body=body)
    return the_fork(tx, fork_id)


def advance(tx: Tx, fork_id: str, head_snapshot: str, size_bytes: int) -> None:
    """Record the newest snapshot of a fork."""
    tx.execute(_HEAD, id=fork_id, head=head_snapshot, bytes=size_bytes)


def renew(tx: Tx, fork_id: str, ttl_s: int) -> Fork:
    """Let a fork live for another time to live, from now on."""
    known = the_fork(tx, fork_id)
    tx.execute(_RENEW, id=fork_id, expires_at=tx.now_us + ttl_s * 10**6)
    tx.journal("workspace.fork.renewed", subject=fork_id, workspace=known.workspace_id, body={"ttl_s": ttl_s})
    return the_fork(tx, fork_id)


def find(reading: Reading, fork_id: str) -> Fork | None:
    """Return a fork by its id."""
    row = reading.one(_BY_ID, id=fork_id)
    return None if row is None else Fork(*row)


def the_fork(reading: Reading, fork_id: str) -> Fork:
    """Return a fork by its id; raise NotFound `fork.not_found` with how to find one."""
    found = find(reading, fork_id)
    if found is None:
        raise NotFound(
            "fork.not_found",
            f"there is no fork {fork_id[:40]}",
            remedy="workspace_view (view=fork) lists the forks of a workspace; fork_open makes one.",
        )
    return found


def writable(fork: Fork, now_us: int) -> None:
    """Raise where a fork takes no more writes: Conflict `fork.expired`, or `fork.transition_refused` for its state."""
    if fork.state in ("closed", "failed", "gone") or fork.expires_at <= now_us:
        raise Conflict(
            "fork.expired",
            f"fork {fork.id} is {'expired' if fork.state in LIVING else fork.state}",
            remedy=f"Open a new one from its last content: fork_open(from={fork.head_snapshot!r}).",
            details={"head_snapshot": fork.head_snapshot},
        )
    FORK.after(fork.state, "write")


def stale(reading: Reading, now_us: int) -> list[Fork]:
    """Return the forks that were left half-made, have expired, or were closed and not swept."""
    return [Fork(*row) for row in reading.all(_STALE, now=now_us)]


def listed(reading: Reading, workspace_id: str, *, ended: bool = False, before: str = "", most: int = 50) -> list[Fork]:
    """Return the forks of a workspace, newest first; the ended ones too if asked for."""
    rows = reading.all(_LIST, workspace=workspace_id, ended=int(ended), before=before, most=most)
    return [Fork(*row) for row in rows]


def look_fork(reading: Reading, ref: str) -> RefFacts | None:
    """Return what other servers may know of a fork."""
    found = find(reading, ref)
    if found is None:
        return None
    facts = {"base_snapshot": found.base_snapshot, "head_snapshot": found.head_snapshot, "label": found.label}
    return RefFacts(True, found.workspace_id, found.state, facts)
