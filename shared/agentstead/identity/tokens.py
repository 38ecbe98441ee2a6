"""Bearer tokens as rows: only their SHA-256 is stored, each is bound to a principal, and each can be ended at once."""

import base64
import os
import sqlite3
from dataclasses import dataclass

from agentstead.identity.principals import TokenKind
from agentstead.state import Invalid, Reading, Tx, sha256_hex

PREFIX = "agst_"
OPERATOR_DAYS = 30
OPERATOR_MOST_DAYS = 365
_DAY_US = 86_400_000_000

_IN_FORCE = """
SELECT token_hash, kind, principal, run_id, created_at, expires_at
FROM tokens
WHERE token_hash = :token_hash
    AND revoked_at IS NULL
    AND (expires_at IS NULL OR expires_at > :now)
"""
_INSERT = """
INSERT INTO tokens (token_hash, kind, principal, run_id, created_at, expires_at, revoked_at)
VALUES (:token_hash, :kind, :principal, :run_id, :now, :expires_at, NULL)
"""
_END = """
UPDATE tokens
SET revoked_at = :now
WHERE kind = :kind
    AND run_id = :run_id
    AND revoked_at IS NULL
"""


@dataclass(frozen=True, slots=True)
class TokenFacts:
    """What a token proves: its kind, the principal it stands for, and the run it belongs to ('' for none)."""

    kind: TokenKind
    principal: str
    run_id: str
    created_at: int
    expires_at: int | None


def check_token(reading: Reading, token: str) -> TokenFacts | None:
    """Return what `token` proves now; None for an unknown, ended or expired one."""
    return _facts(reading.one(_IN_FORCE, token_hash=token_hash(token), now=reading.now_us))


def token_hash(token: str) -> str:
    """Return what is stored of a token."""
    return sha256_hex(token.encode("utf-8", "surrogatepass"))


def new_token(kind: TokenKind) -> str:
    """Return a fresh token of 32 random bytes; its prefix says what it is, so that redaction finds it."""
    return f"{PREFIX}{kind}_{base64.urlsafe_b64encode(os.urandom(32)).decode().rstrip('=')}"


def renew_home(tx: Tx, token: str) -> None:
    """Make `token` the home's one token; the old one ends in the same transaction."""
    ended = tx.execute(_END, kind="home", run_id="", now=tx.now_us)
    _insert(tx, token, kind="home", principal="host:http")
    tx.journal("identity.token.renewed", subject="home", body={"kind": "home", "ended": ended})


def add_operator(tx: Tx, token: str, *, days: int = OPERATOR_DAYS) -> int:
    """Store an operator token, which answers for the person; return when it expires, in microseconds."""
    if not 1 <= days <= OPERATOR_MOST_DAYS:
        raise Invalid(
            "tool.invalid_arguments",
            f"An operator token cannot last {days} days.",
            remedy=f"Give 1 to {OPERATOR_MOST_DAYS} days.",
        )
    expires_at = tx.now_us + days * _DAY_US
    _insert(tx, token, kind="operator", principal="user", expires_at=expires_at)
    tx.journal("identity.token.minted", subject="user", body={"kind": "operator", "expires_at": expires_at})
    return expires_at


def add_process(tx: Tx, token: str, *, principal: str, run_id: str, expires_at: int) -> None:
    """Store the token of a supervised process; it ends with its run at the latest."""
    _insert(tx, token, kind="process", principal=principal, run_id=run_id, expires_at=expires_at)
    tx.journal("identity.token.minted", subject=principal, body={"kind": "process", "run_id": run_id})


def end_of_run(tx: Tx, run_id: str) -> int:
    """End every token of a run; return how many there were."""
    ended = tx.execute(_END, kind="process", run_id=run_id, now=tx.now_us)
    if ended:
        tx.journal("identity.token.ended", subject=run_id, body={"kind": "process", "ended": ended})
    return ended


def _insert(
    tx: Tx, token: str, *, kind: TokenKind, principal: str, run_id: str = "", expires_at: int | None = None
) -> None:
    tx.execute(
        _INSERT,
        token_hash=token_hash(token),
        kind=kind,
        principal=principal,
        run_id=run_id,
        now=tx.now_us,
        expires_at=expires_at,
    )


def _facts(row: sqlite3.Row | None) -> TokenFacts | None:
    if row is None:
        return None
    return TokenFacts(row["kind"], row["principal"], row["run_id"], row["created_at"], row["expires_at"])
