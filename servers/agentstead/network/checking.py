"""Checking stored messages against themselves: bytes against digests, states of work against their steps."""

from agentstead.network.wire import Refused, canonical_sha256, parse
from agentstead.state import Reading

_MESSAGES = """
SELECT seq, raw, canon_sha256
FROM net_message
WHERE seq > :after
    AND raw IS NOT NULL
ORDER BY seq
LIMIT 500
"""
_APART = "SELECT seq, raw_blob, canon_sha256 FROM net_message WHERE raw_blob IS NOT NULL ORDER BY seq"
_WORK = """
SELECT w.work_id, w.state, (
    SELECT s.to_state
    FROM net_work_step AS s
    WHERE s.workspace = w.workspace
        AND s.work_id = w.work_id
    ORDER BY s.seq DESC
    LIMIT 1
) AS last
FROM net_work AS w
"""


def faults(reading: Reading) -> list[str]:
    """Return what is wrong in the tables."""
    found: list[str] = []
    after = 0
    while rows := reading.all(_MESSAGES, after=after):
        after = rows[-1]["seq"]
        found += [fault for row in rows for fault in fault_of(row["seq"], row["raw"], row["canon_sha256"])]
    for row in reading.all(_WORK):
        if row["state"] != row["last"]:
            found.append(f"work {row['work_id']} is {row['state']}, but its last step led to {row['last']}")
    return found


def stored_apart(reading: Reading) -> list[tuple[int, str, str]]:
    """Return (sequence, blob, digest) of messages whose bytes lie in the blob store."""
    return [(row["seq"], row["raw_blob"], row["canon_sha256"]) for row in reading.all(_APART)]


def fault_of(seq: int, raw: bytes, digest: str) -> list[str]:
    """Return what is wrong with one message's bytes."""
    try:
        fits = canonical_sha256(parse(raw)) == digest
    except Refused:
        fits = False
    return [] if fits else [f"message {seq} no longer has the bytes that were accepted"]
