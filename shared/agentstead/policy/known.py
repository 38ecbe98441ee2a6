"""What the database knows of a call that is not simply allowed: its place, its grant, its last question."""

import json
from dataclasses import dataclass, replace

from agentstead.identity.glance import glance
from agentstead.identity.registry import Workspace
from agentstead.policy.approvals import Approval, find_approval
from agentstead.policy.grants import Grant, Holder, MatchKeys, find_grant, why_no_grant
from agentstead.policy.model import CallFacts, Decision, action_hash, action_hash_of
from agentstead.state import NotFound, Reading, References

_LATEST_OF_CALL = """
SELECT id
FROM approvals
WHERE action_hash = :action_hash
    AND input_digest = :input_digest
    AND principal = :principal
    AND session_id = :session_id
ORDER BY created_at DESC, id DESC
LIMIT 1
"""
_LAST_OF_TOOL = """
SELECT accesses
FROM approvals
WHERE server = :server
    AND tool = :tool
    AND state = 'allowed'
ORDER BY answered_at DESC, id DESC
LIMIT 1
"""


@dataclass(frozen=True, slots=True)
class Known:
    """A placed call with the grant that answers it, or why none does, and the newest question about it.

    `before` holds the accesses of the last approval of that tool, None where there was none.
    """

    call: CallFacts
    root_session_id: str
    workspace: Workspace | None
    keys: MatchKeys
    input_digest: str
    grant: Grant | None
    miss: str
    latest: Approval | None
    before: tuple[str, ...] | None


def look(reading: Reading, refs: References, call: CallFacts, decision: Decision) -> Known:
    """Read everything that a call which is not simply allowed depends on."""
    placed, root, workspace = _placed(reading, refs, call)
    keys, digest = match_keys(placed, decision)
    holder = Holder(placed.principal.text, placed.session_id, placed.workspace_id)
    grant = find_grant(reading, keys, holder)
    return Known(
        placed,
        root,
        workspace,
        keys,
        digest,
        grant,
        why_no_grant(reading, keys, holder) if grant is None else "",
        _latest(reading, placed, keys, digest),
        _before(reading, placed),
    )


def match_keys(call: CallFacts, decision: Decision) -> tuple[MatchKeys, str]:
    """Return what grants of a call are compared by, and the digest of its input."""
    accesses = [ruled.access for ruled in decision.accesses]
    texts = [access.text for access in accesses]
    exact, digest = action_hash(call, accesses), call.input_digest()
    anywhere = action_hash_of(call.server, call.tool, texts, definition_digest=call.definition_digest)
    return MatchKeys(input=f"{exact}:{digest}", exact=exact, anywhere=anywhere), digest


def _placed(reading: Reading, refs: References, call: CallFacts) -> tuple[CallFacts, str, Workspace | None]:
    """Return the call with its workspace, the root of its session's lineage, and the workspace's row."""
    facts = _session(reading, refs, call.session_id) if call.session_id else {}
    given = call.workspace_id or call.arguments.get("workspace") or call.workspace_name
    name = given if isinstance(given, str) else ""
    found = glance(reading, name=name, session_workspace=facts.get("workspace", ""), cwd=call.cwd)
    placed = replace(call, workspace_id=found.id) if found is not None else call
    return placed, facts.get("root_id", "") or call.session_id, found


def _session(reading: Reading, refs: References, session_id: str) -> dict[str, str]:
    try:
        facts = refs.look(reading, session_id)
    except NotFound:
        return {}
    return {**facts.facts, "workspace": facts.workspace} if facts.exists else {}


def _latest(reading: Reading, call: CallFacts, keys: MatchKeys, digest: str) -> Approval | None:
    found = reading.value(
        _LATEST_OF_CALL,
        action_hash=keys.exact,
        input_digest=digest,
        principal=call.principal.text,
        session_id=call.session_id,
    )
    return find_approval(reading, found) if found else None


def _before(reading: Reading, call: CallFacts) -> tuple[str, ...] | None:
    accesses = reading.value(_LAST_OF_TOOL, server=call.server, tool=call.tool)
    return None if accesses is None else tuple(access["text"] for access in json.loads(accesses))
