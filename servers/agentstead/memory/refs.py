"""What other packages may know of a memory or a proposal: where it is and how it stands, never what it says."""

from agentstead.memory import proposals
from agentstead.state import Reading, RefFacts

_MEMORY = "SELECT scope, workspace_id, type, state, trust, version FROM memories WHERE id = :id"


def look_memory(reading: Reading, ref: str) -> RefFacts | None:
    """Answer `state.refs` for `mem_` ids."""
    row = reading.one(_MEMORY, id=ref)
    if row is None:
        return None
    facts = {"scope": row["scope"], "type": row["type"], "trust": str(row["trust"]), "version": str(row["version"])}
    return RefFacts(exists=True, workspace=row["workspace_id"], state=row["state"], facts=facts)


def look_proposal(reading: Reading, ref: str) -> RefFacts | None:
    """Answer `state.refs` for `mpr_` ids."""
    found = proposals.by_id(reading, ref)
    if found is None:
        return None
    state = found.state_at(reading.now_us)
    return RefFacts(exists=True, workspace=found.workspace_id, state=state, facts={"principal": found.principal})
