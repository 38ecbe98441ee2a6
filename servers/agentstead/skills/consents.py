"""A person's recorded answers about exact contents: kept, never changed, the newest counts."""

from collections import defaultdict
from collections.abc import Mapping
from typing import Final

from agentstead.skills.rulings import Answer, Consent
from agentstead.state import Reading, Tx, canonical_json, sha256_hex

_ALL: Final = """
SELECT origin_key, tree_id, capability_digest, decision, expires_at, revoked_at
FROM consents
ORDER BY id DESC
"""
_RECORD: Final = """
INSERT INTO consents (
    id, origin_key, tree_id, capability_digest, decision, principal, approval_id,
    decided_at, expires_at, revoked_at, revoke_reason
)
VALUES (
    :id, :origin_key, :tree_id, :capability_digest, :decision, :principal, :approval_id,
    :now, NULL, NULL, ''
)
"""


def consents_of(reading: Reading) -> Mapping[str, tuple[Consent, ...]]:
    """Return every answer by origin key, the newest first."""
    found: dict[str, list[Consent]] = defaultdict(list)
    for row in reading.all(_ALL):
        answer = Answer(row["decision"])
        if row["revoked_at"] is not None:
            answer = Answer.REVOKED
        elif row["expires_at"] is not None and row["expires_at"] <= reading.now_us:
            answer = Answer.EXPIRED
        found[row["origin_key"]].append(Consent(row["tree_id"], row["capability_digest"], answer))
    return {key: tuple(answers) for key, answers in found.items()}


def record(
    tx: Tx, origin_key: str, tree_id: str, capability_digest: str, *, decision: Answer, approval_id: str, workspace: str
) -> str:
    """Keep an answer about one content; return the consent's id."""
    consent_id = tx.new_id("cns_")
    fields = {"origin_key": origin_key, "tree_id": tree_id, "capability_digest": capability_digest}
    row = {**fields, "decision": decision.value, "principal": tx.principal, "approval_id": approval_id}
    tx.execute(_RECORD, id=consent_id, **row, now=tx.now_us)
    tx.journal("skills.consent.recorded", subject=consent_id, workspace=workspace, body=row)
    return consent_id


def subject_hash(origin_key: str, tree_id: str, capability_digest: str) -> str:
    """Return the hash of everything that a person judges when asked for a consent."""
    return sha256_hex(canonical_json({"consent": [origin_key, tree_id, capability_digest]}))
