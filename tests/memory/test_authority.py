"""Who may write what: the whole table, with and without taint."""

from dataclasses import replace
from itertools import product

import pytest

from agentstead.memory.authority import TABLE, authority
from agentstead.memory.changes import Draft
from agentstead.memory.evidence import Evidence
from agentstead.memory.intents import Intent
from agentstead.memory.scopes import Reach, Scope
from agentstead.memory.vocabulary import BEHAVIOURAL, MEMORY_TYPES, Channel, MemoryType, Trust

WSP = "wsp_01J9ZZZZZZZZZZZZZZZZZZZZZA"
SES = "ses_01J9ZZZZZZZZZZZZZZZZZZZZZA"

CALLERS: dict[str, tuple[Reach, Channel]] = {
    "user": (Reach("user", "user", workspace_id=WSP), "cli"),
    "host": (Reach("host:desk", "host", workspace_id=WSP), "tool"),
    "agent": (Reach(f"agent:coder@{SES}", "agent", agent="coder", workspace_id=WSP, session_id=SES), "tool"),
    "spawned": (Reach(f"agent:coder@{SES}", "agent", agent="coder", workspace_id=WSP, depth=1), "tool"),
    "folder": (Reach("host:desk", "host", workspace_id=WSP), "folder"),
    "import": (Reach("host:desk", "host", workspace_id=WSP), "import"),
    "extension": (Reach("extension:notes", "extension", workspace_id=WSP), "extension"),
    "consolidation": (Reach("host:desk", "host", workspace_id=WSP), "consolidation"),
    "network": (Reach("host:desk", "host", workspace_id=WSP), "network"),
}
# behavioural, others at home, others in the own workspace, turns of the own session
EXPECTED = {
    "user": ("accepted", "accepted", "accepted", "accepted"),
    "host": ("pending", "pending", "accepted", "accepted"),
    "agent": ("pending", "pending", "accepted", "accepted"),
    "spawned": ("refused", "pending", "pending", "accepted"),
    "folder": ("pending", "pending", "pending", "accepted"),
    "import": ("pending", "pending", "pending", "accepted"),
    "extension": ("pending", "pending", "pending", "accepted"),
    "consolidation": ("pending", "pending", "pending", "accepted"),
    "network": ("refused", "refused", "pending", "accepted"),
}
TRUST = {
    "user": Trust.PERSON,
    "host": Trust.HOST,
    "agent": Trust.AGENT,
    "spawned": Trust.AGENT,
    "folder": Trust.FOREIGN,
    "import": Trust.FOREIGN,
    "extension": Trust.FOREIGN,
    "consolidation": Trust.FOREIGN,
    "network": Trust.FOREIGN,
}
PLACES = (
    Scope("home"),
    Scope("workspace", workspace_id=WSP),
    Scope("agent", agent="coder", workspace_id=WSP),
    Scope("session", session_id=SES),
)


def intent(memory_type: MemoryType, scope: Scope, *evidence: Evidence) -> Intent:
    draft = Draft(op="add", type=memory_type, text="x")
    return Intent(draft=draft, scope=scope, workspace_id=scope.workspace_id, type=memory_type, evidence=evidence)


def column(memory_type: MemoryType, scope: Scope) -> int:
    if memory_type in BEHAVIOURAL:
        return 0
    if memory_type == "episode" and scope.kind == "session":
        return 3
    return 1 if scope.kind == "home" else 2


@pytest.mark.parametrize(("caller", "memory_type"), list(product(CALLERS, MEMORY_TYPES)))
def test_every_cell_of_the_table(caller: str, memory_type: MemoryType) -> None:
    reach, channel = CALLERS[caller]
    for scope in PLACES:
        found = authority(intent(memory_type, scope), reach, channel=channel, confirmed=False)
        assert found.right == EXPECTED[caller][column(memory_type, scope)], (caller, memory_type, scope)
        assert found.trust == TRUST[caller]


@pytest.mark.parametrize("caller", CALLERS)
def test_what_a_person_confirmed_is_a_persons(caller: str) -> None:
    reach, channel = CALLERS[caller]
    found = authority(intent("instruction", Scope("home")), reach, channel=channel, confirmed=True)
    assert (found.right, found.trust) == ("accepted", Trust.PERSON)


@pytest.mark.parametrize("caller", [name for name in CALLERS if name != "user"])
@pytest.mark.parametrize("taint", ["network", "web", "mcp:files"])
def test_under_taint_nothing_has_more_than_foreign_trust(caller: str, taint: str) -> None:
    reach, channel = CALLERS[caller]
    proof = Evidence("rcp_x", "receipt", WSP, "holds", passed=True)
    found = authority(
        intent("fact", Scope("workspace", workspace_id=WSP), proof),
        replace(reach, taint=(taint,)),
        channel=channel,
        confirmed=False,
    )
    assert found.trust == Trust.FOREIGN


def test_a_passed_receipt_lifts_trust_to_checked_and_never_above_a_persons() -> None:
    proof = Evidence("rcp_x", "receipt", WSP, "holds", passed=True)
    failed = replace(proof, passed=False)
    scope = Scope("workspace", workspace_id=WSP)
    host, channel = CALLERS["host"]
    user, _ = CALLERS["user"]
    assert authority(intent("fact", scope, proof), host, channel=channel, confirmed=False).trust == Trust.CHECKED
    assert authority(intent("fact", scope, failed), host, channel=channel, confirmed=False).trust == Trust.HOST
    assert authority(intent("fact", scope, proof), user, channel="cli", confirmed=False).trust == Trust.PERSON


def test_nobody_but_a_person_gets_behaviour_accepted() -> None:
    assert {caller for caller, rights in TABLE.items() if rights["behavioural"] == "accepted"} == {"person"}
