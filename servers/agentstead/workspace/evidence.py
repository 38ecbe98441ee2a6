"""What recorded receipts say of a tree: the built-in gate, which reads nothing that a caller or a worker claims.

Every named check of the workspace counts; a check's receipts must be of exactly this tree and of its current digest.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final, Literal

from agentstead.state import Reading, canonical_json, sha256_hex
from agentstead.workspace import checks, receipts

Outcome = Literal["pass", "fail", "pending"]
Truth = Literal["true", "false", "unknown"]

GATE: Final = {"schema": "agentstead.gate/1", "name": "default", "require": {"all": [{"check": "*"}]}}
GATE_DIGEST: Final = sha256_hex(canonical_json(GATE))


@dataclass(frozen=True, slots=True)
class Leaf:
    """One condition: a check, whether it holds of the tree, and the receipt that says so."""

    check: str
    truth: Truth
    status: str
    receipt_id: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What the gate says of a tree; `why` names what is missing where it is pending."""

    outcome: Outcome
    leaves: tuple[Leaf, ...]
    why: str

    def as_json(self) -> Mapping[str, Any]:
        """Return the published form."""
        leaves: Sequence[Mapping[str, str]] = [
            {"check": leaf.check, "truth": leaf.truth, "status": leaf.status, "receipt_id": leaf.receipt_id}
            for leaf in self.leaves
        ]
        return {"gate": "default", "outcome": self.outcome, "leaves": leaves, "why": self.why}


def judge(reading: Reading, workspace_id: str, tree: str) -> Verdict:
    """Return what the receipts say of a tree: all checks pass, one fails or varies, or one has not been run."""
    leaves = tuple(_leaf(reading, workspace_id, check, tree) for check in checks.listed(reading, workspace_id))
    if not leaves:
        return Verdict("pending", (), "no_checks")
    if any(leaf.truth == "false" for leaf in leaves):
        failed = [leaf.check for leaf in leaves if leaf.truth == "false"]
        return Verdict("fail", leaves, f"not passed: {', '.join(failed)}")
    missing = [leaf.check for leaf in leaves if leaf.truth == "unknown"]
    if missing:
        return Verdict("pending", leaves, f"not run on this tree: {', '.join(missing)}")
    return Verdict("pass", leaves, "")


def _leaf(reading: Reading, workspace_id: str, check: checks.Check, tree: str) -> Leaf:
    found = receipts.evidence(reading, workspace_id, tree, check.digest)
    statuses = {receipt.status for receipt in found}
    if not found:
        return Leaf(check.name, "unknown", "", "")
    if statuses == {"pass"}:
        return Leaf(check.name, "true", "pass", found[0].id)
    worst = next(receipt for receipt in found if receipt.status != "pass")
    status = "flaky" if "pass" in statuses else worst.status
    return Leaf(check.name, "false", status, worst.id)
