"""The question about one content of one skill, and what a person's yes to it does."""

from dataclasses import dataclass, replace

from agentstead.policy.subjects import subject_use
from agentstead.skills import consents
from agentstead.skills.candidates import Candidate
from agentstead.skills.capabilities import capability_summary
from agentstead.skills.rulings import Answer, Ruled
from agentstead.skills.unseen import reveal_line
from agentstead.state import Tx

MOST_SHOWN = 12


@dataclass(frozen=True, slots=True)
class Asked:
    """A consent that is asked for; ``approval_id`` is set once a person said yes."""

    origin_key: str
    tree_id: str
    capability_digest: str
    approval_id: str = ""

    @property
    def subject_hash(self) -> str:
        """The hash of everything that the person judges."""
        return consents.subject_hash(self.origin_key, self.tree_id, self.capability_digest)

    def answered(self, approval_id: str) -> "Asked":
        """Return the same with the approval that answers it."""
        return replace(self, approval_id=approval_id)

    def use(self, tx: Tx, *, workspace: str) -> None:
        """Spend the approval and keep the consent; raises Conflict (``approval.stale``)."""
        subject_use(tx, self.approval_id, self.subject_hash)
        consents.record(
            tx,
            self.origin_key,
            self.tree_id,
            self.capability_digest,
            decision=Answer.YES,
            approval_id=self.approval_id,
            workspace=workspace,
        )


def asked_of(candidate: Candidate) -> Asked:
    """Return the consent that a candidate's present content needs."""
    return Asked(candidate.origin_key, candidate.tree_id, candidate.capability_digest)


def question(found: Ruled, workspace: str) -> str:
    """Return what the person is asked: what it is, where it stands, what it holds, and why they are asked now."""
    candidate = found.candidate
    assert candidate.tree is not None
    assert candidate.document is not None
    summary = capability_summary(candidate.tree, candidate.document)
    scripts = [script["path"] for script in summary["scripts"]]
    size = sum(file.size for file in candidate.tree.files)
    lines = [
        f"May agents use the skill {candidate.qualified_name}{f' of workspace {workspace}' if workspace else ''}?",
        f"It says: {reveal_line(candidate.document.description, limit=300)}",
        f"Folder: {candidate.shown}",
        f"Content: {len(candidate.tree.files)} files, {size} bytes, tree {candidate.tree_id}",
        f"Scripts: {_some(scripts)}",
        f"Tools it asks for (none is granted by this): {_some(summary['requested_tools'])}",
        f"Why now: {', '.join(found.reasons)}",
    ]
    return "\n".join(lines)


def _some(names: list[str]) -> str:
    shown = ", ".join(reveal_line(name, limit=80) for name in names[:MOST_SHOWN])
    more = f" and {len(names) - MOST_SHOWN} more" if len(names) > MOST_SHOWN else ""
    return f"{shown}{more}" or "none"
