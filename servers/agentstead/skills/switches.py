"""Skills that were switched off, for the home or for one workspace."""

from typing import Final, Literal

from agentstead.state import Reading, Tx

Scope = Literal["home", "workspace"]

_OFF: Final = """
SELECT selector
FROM switches
WHERE enabled = 0
    AND workspace_id IN ('', :workspace_id)
"""
_SET: Final = """
INSERT INTO switches (scope, workspace_id, selector, enabled, principal, at)
VALUES (:scope, :workspace_id, :selector, :enabled, :principal, :now)
ON CONFLICT (scope, workspace_id, selector) DO UPDATE
SET enabled = excluded.enabled, principal = excluded.principal, at = excluded.at
"""


def switched_off(reading: Reading, workspace_id: str) -> frozenset[str]:
    """Return the selectors that are off in a workspace ('' for none): by its own switch or by the home's."""
    return frozenset(row["selector"] for row in reading.all(_OFF, workspace_id=workspace_id))


def switch(tx: Tx, selector: str, *, enabled: bool, scope: Scope, workspace_id: str) -> None:
    """Switch a skill on or off in a scope."""
    held = workspace_id if scope == "workspace" else ""
    fields = {"scope": scope, "workspace_id": held, "selector": selector, "enabled": int(enabled)}
    tx.execute(_SET, **fields, principal=tx.principal, now=tx.now_us)
    kind = "skills.skill.enabled" if enabled else "skills.skill.disabled"
    tx.journal(kind, subject=selector, workspace=held, body={"selector": selector, "scope": scope})
