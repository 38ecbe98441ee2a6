"""Receipts as rows and as sealed documents: what was run on which exact tree, and what we measured."""

import hashlib
import hmac
import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentstead.state import NotFound, Reading, RefFacts, Tx, Unavailable, canonical_json
from agentstead.workspace.checks import Check
from agentstead.workspace.machines import RECEIPT

Status = Literal["pass", "fail", "error", "timeout", "invalid"]

OPEN: Final = ("queued", "preparing", "running", "settling")

_COLUMNS: Final = """id, workspace_id, check_name, check_digest, tree_in, tree_out, state, status, exit,
environment_digest, isolation, enforced, body, stdout, stderr, mac, reused_from, at"""
_BY_ID: Final = f"SELECT {_COLUMNS} FROM receipts WHERE id = :id"
_OPEN: Final = f"""
SELECT {_COLUMNS}
FROM receipts
WHERE state IN ('queued', 'preparing', 'running', 'settling')
ORDER BY id
"""
_LIST: Final = f"""
SELECT {_COLUMNS}
FROM receipts
WHERE workspace_id = :workspace
    AND (:tree = '' OR tree_in = :tree)
    AND (:before = '' OR id < :before)
ORDER BY id DESC
LIMIT :most
"""
_REUSABLE: Final = f"""
SELECT {_COLUMNS}
FROM receipts
WHERE workspace_id = :workspace
    AND tree_in = :tree
    AND check_digest = :check_digest
    AND environment_digest = :environment_digest
    AND state = 'recorded'
    AND status IN ('pass', 'fail')
    AND reused_from = ''
ORDER BY id DESC
LIMIT 1
"""
_EVIDENCE: Final = f"""
SELECT {_COLUMNS}
FROM receipts
WHERE workspace_id = :workspace
    AND tree_in = :tree
    AND check_digest = :check_digest
    AND state = 'recorded'
ORDER BY id DESC
"""
_INSERT: Final = """
INSERT INTO receipts (id, workspace_id, check_name, check_digest, tree_in, state, at)
VALUES (:id, :workspace, :check_name, :check_digest, :tree_in, :state, :now)
"""
_MOVE: Final = "UPDATE receipts SET state = :state WHERE id = :id"
_SEAL: Final = """
UPDATE receipts
SET state = :state,
    status = :status,
    exit = :exit,
    tree_out = :tree_out,
    environment_digest = :environment_digest,
    isolation = :isolation,
    enforced = :enforced,
    body = :body,
    stdout = :stdout,
    stderr = :stderr,
    mac = :mac,
    at = :now
WHERE id = :id
"""


@dataclass(frozen=True, slots=True)
class Receipt:
    """One run of a check; `body` is the blob of the sealed document, `exit` what ended it, as JSON."""

    id: str
    workspace_id: str
    check_name: str
    check_digest: str
    tree_in: str
    tree_out: str
    state: str
    status: str
    exit: str
    environment_digest: str
    isolation: str
    enforced: str
    body: str
    stdout: str
    stderr: str
    mac: str
    reused_from: str
    at: int

    @property
    def facts(self) -> Mapping[str, Any]:
        """Return how the run ended: exit code or signal, reason and times."""
        found: Mapping[str, Any] = json.loads(self.exit or "{}")
        return found


@dataclass(frozen=True, slots=True)
class Sealed:
    """What is recorded of a run that ended: the blob of its document and the facts that rows are searched by."""

    status: Status
    tree_out: str
    environment_digest: str
    isolation: str
    enforced: Mapping[str, str]
    exit: Mapping[str, Any]
    body: str
    stdout: str
    stderr: str
    mac: str


def ask(tx: Tx, workspace_id: str, check: Check, tree_in: str) -> str:
    """Record that a check was asked for on a tree; return the receipt's id."""
    receipt_id = tx.new_id("rcp_")
    tx.execute(
        _INSERT,
        id=receipt_id,
        workspace=workspace_id,
        check_name=check.name,
        check_digest=check.digest,
        tree_in=tree_in,
        state=RECEIPT.after("", "asked"),
        now=tx.now_us,
    )
    body = {"check": check.name, "check_digest": check.digest, "tree_in": tree_in}
    tx.journal("workspace.receipt.asked", subject=receipt_id, workspace=workspace_id, body=body)
    return receipt_id


def move(tx: Tx, receipt_id: str, event: str) -> Receipt:
    """Move a receipt by an event of its machine."""
    known = the_receipt(tx, receipt_id)
    state = RECEIPT.after(known.state, event)
    tx.execute(_MOVE, id=receipt_id, state=state)
    tx.journal("workspace.receipt.moved", subject=receipt_id, workspace=known.workspace_id, body={"event": event})
    return the_receipt(tx, receipt_id)


def seal(tx: Tx, receipt_id: str, sealed: Sealed) -> Receipt:
    """Record what a run gave; it never changes afterwards."""
    known = the_receipt(tx, receipt_id)
    tx.execute(
        _SEAL,
        id=receipt_id,
        state=RECEIPT.after(known.state, "stored"),
        status=sealed.status,
        exit=json.dumps(sealed.exit),
        tree_out=sealed.tree_out,
        environment_digest=sealed.environment_digest,
        isolation=sealed.isolation,
        enforced=json.dumps(sealed.enforced),
        body=sealed.body,
        stdout=sealed.stdout,
        stderr=sealed.stderr,
        mac=sealed.mac,
        now=tx.now_us,
    )
    body = {"status": sealed.status, "tree_in": known.tree_in, "tree_out": sealed.tree_out, "body": sealed.body}
    tx.journal("workspace.receipt.recorded", subject=receipt_id, workspace=known.workspace_id, body=body)
    return the_receipt(tx, receipt_id)


def find(reading: Reading, receipt_id: str) -> Receipt | None:
    """Return a receipt by its id."""
    return _receipt(reading.one(_BY_ID, id=receipt_id))


def the_receipt(reading: Reading, receipt_id: str) -> Receipt:
    """Return a receipt by its id; raise NotFound `receipt.not_found`."""
    found = find(reading, receipt_id)
    if found is None:
        raise NotFound(
            "receipt.not_found",
            f"there is no receipt {receipt_id[:40]}",
            remedy="workspace_view (view=receipt) lists them; check_run makes one.",
        )
    return found


def unfinished(reading: Reading) -> list[Receipt]:
    """Return the receipts whose run has not ended."""
    return [Receipt(*row) for row in reading.all(_OPEN)]


def listed(reading: Reading, workspace_id: str, *, tree: str = "", before: str = "", most: int = 50) -> list[Receipt]:
    """Return receipts of a workspace newest first, of one tree if it is given."""
    rows = reading.all(_LIST, workspace=workspace_id, tree=tree, before=before, most=most)
    return [Receipt(*row) for row in rows]


def reusable(
    reading: Reading, workspace_id: str, tree: str, check_digest: str, environment_digest: str
) -> Receipt | None:
    """Return a recorded run of the same check on the same tree in the same environment."""
    facts = {"tree": tree, "check_digest": check_digest, "environment_digest": environment_digest}
    return _receipt(reading.one(_REUSABLE, workspace=workspace_id, **facts))


def evidence(reading: Reading, workspace_id: str, tree: str, check_digest: str) -> list[Receipt]:
    """Return the recorded runs of a check on exactly this tree, newest first."""
    rows = reading.all(_EVIDENCE, workspace=workspace_id, tree=tree, check_digest=check_digest)
    return [Receipt(*row) for row in rows]


def mac_of(key: bytes, document: bytes) -> str:
    """Return the code that only this home can make over a receipt's document."""
    return hmac.new(key, document, hashlib.sha256).hexdigest()


def opened(receipt: Receipt, document: bytes, key: bytes) -> dict[str, Any]:
    """Return a receipt's document; raise Unavailable `receipt.mac_broken` unless it is what this home sealed."""
    body: dict[str, Any] = {}
    if hmac.compare_digest(mac_of(key, document), receipt.mac):
        body = json.loads(document)
    sides = (receipt.id, receipt.status, receipt.tree_in, receipt.tree_out, receipt.check_digest)
    names = ("receipt_id", "status", "tree_in", "tree_out", "check_digest")
    if tuple(body.get(name) for name in names) != sides or canonical_json(body) != document:
        raise Unavailable(
            "receipt.mac_broken",
            f"receipt {receipt.id} is not what this home recorded",
            remedy="It proves nothing; run the check again with check_run (fresh=true).",
            details={"receipt_id": receipt.id},
        )
    return body


def look_receipt(reading: Reading, ref: str) -> RefFacts | None:
    """Return what other servers may know of a receipt: its state and its verdict."""
    found = find(reading, ref)
    if found is None:
        return None
    facts = {"status": found.status, "check": found.check_name, "tree": found.tree_in}
    return RefFacts(True, found.workspace_id, found.state, facts)


def _receipt(row: sqlite3.Row | None) -> Receipt | None:
    return None if row is None else Receipt(*row)
