"""What a memory rests on: references that are looked up at their owners before they are believed."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import urlsplit

from agentstead.memory.scopes import Reach
from agentstead.memory.vocabulary import EvidenceKind, EvidenceState
from agentstead.state import Denied, Invalid, NotFound, Reading, References, RefFacts, Tx

PASSED = frozenset({"pass", "passed"})

_KINDS: dict[str, EvidenceKind] = {
    "rcp_": "receipt",
    "rpl_": "receipt",
    "gvd_": "receipt",
    "ses_": "turn",
    "trn_": "turn",
    "tsk_": "turn",
    "run_": "turn",
    "frk_": "commit",
    "snp_": "commit",
    "prm_": "commit",
    "mem_": "memory",
}
_COMMIT = re.compile(r"commit:[0-9a-f]{7,64}")

_ADD = """
INSERT INTO evidence (id, edition_id, ref, kind, workspace_id, observed_at, state)
VALUES (:id, :edition, :ref, :kind, :workspace, :now, :state)
ON CONFLICT (edition_id, ref) DO NOTHING
"""
_COPY = """
INSERT INTO evidence (id, edition_id, ref, kind, workspace_id, path, first_line, last_line, span_sha256, file_sha256,
    snapshot_id, observed_at, state)
SELECT :id, :to_edition, ref, kind, workspace_id, path, first_line, last_line, span_sha256, file_sha256, snapshot_id,
    observed_at, state
FROM evidence
WHERE id = :from_id
ON CONFLICT (edition_id, ref) DO NOTHING
"""
_OF = "SELECT id, ref, kind, workspace_id, state, observed_at FROM evidence WHERE edition_id = :edition ORDER BY id"


@dataclass(frozen=True, slots=True)
class Evidence:
    """One checked reference."""

    ref: str
    kind: EvidenceKind
    workspace_id: str
    state: EvidenceState
    passed: bool = False


@dataclass(frozen=True, slots=True)
class EvidenceRow:
    """One stored reference of an edition."""

    id: str
    ref: str
    kind: EvidenceKind
    workspace_id: str
    state: EvidenceState
    observed_at: int


def check_evidence(reading: Reading, refs: References, given: Sequence[str], *, reach: Reach) -> tuple[Evidence, ...]:
    """Return the references as evidence; those with an id are looked up at their owner.

    Raises `NotFound` (`ref.not_found`), `Denied` (`ref.foreign`: of another workspace), `Invalid` for anything else.
    """
    return tuple(_check(reading, refs, ref, reach) for ref in given)


def add_evidence(tx: Tx, edition_id: str, found: Sequence[Evidence]) -> None:
    """Keep the references with an edition; one it has already is left as it is."""
    for each in found:
        tx.execute(
            _ADD,
            id=tx.new_id("mev_"),
            edition=edition_id,
            ref=each.ref,
            kind=each.kind,
            workspace=each.workspace_id,
            now=tx.now_us,
            state=each.state,
        )


def copy_evidence(tx: Tx, from_edition: str, to_edition: str) -> None:
    """Keep the references of an edition with the one that follows it."""
    for row in evidence_of(tx, from_edition):
        tx.execute(_COPY, id=tx.new_id("mev_"), from_id=row.id, to_edition=to_edition)


def evidence_of(reading: Reading, edition_id: str) -> list[EvidenceRow]:
    """Return the references of an edition in the order they came."""
    return [EvidenceRow(*row) for row in reading.all(_OF, edition=edition_id)]


def is_passing_receipt(ref: str, facts: RefFacts) -> bool:
    """Tell whether a reference is a receipt of a check that passed."""
    return ref.startswith("rcp_") and bool({facts.state, facts.facts.get("status", "")} & PASSED)


def _check(reading: Reading, refs: References, ref: str, reach: Reach) -> Evidence:
    kind = _KINDS.get(ref[:4])
    if kind is not None:
        return _look(reading, refs, ref, kind, reach)
    if _COMMIT.fullmatch(ref):
        return Evidence(ref, "commit", reach.workspace_id, "unchecked")
    if _is_url(ref):
        return Evidence(ref, "url", "", "unchecked")
    raise Invalid(
        "memory.invalid",
        f"{ref[:60]!r} is no evidence.",
        remedy="Use an id that an Agentstead tool returned (rcp_, ses_, trn_, tsk_, frk_, snp_, mem_), "
        "commit:<hash>, or an https URL.",
    )


def _look(reading: Reading, refs: References, ref: str, kind: EvidenceKind, reach: Reach) -> Evidence:
    facts = refs.look(reading, ref)
    if not facts.exists:
        raise NotFound(
            "ref.not_found",
            f"The evidence {ref[:40]!r} does not exist.",
            remedy="Cite what a tool returned, or leave the evidence out.",
        )
    if facts.workspace and facts.workspace != reach.workspace_id and not reach.person:
        raise Denied(
            "ref.foreign",
            f"The evidence {ref[:40]!r} belongs to another workspace.",
            remedy="Cite evidence of the workspace that you work in.",
        )
    return Evidence(ref, kind, facts.workspace, "holds", passed=is_passing_receipt(ref, facts))


def _is_url(text: str) -> bool:
    try:
        parts = urlsplit(text)
    except ValueError:
        return False
    return parts.scheme in ("https", "http") and bool(parts.hostname) and not parts.username and " " not in text
