"""Nobody answers their own question: each kind of asker, at each door, in each era, with and without forms."""

from collections.abc import Awaitable, Callable
from typing import Any

import anyio
import pytest

from agentstead.identity import Facts, Principal
from agentstead.kit import Home
from agentstead.permissions import answering
from agentstead.policy import Enforcement, get_approval, list_grants, trust_host
from agentstead.policy.machines import CHOICES
from agentstead.state import AgentsteadError, SimulatedClock
from tests.permissions.conftest import ERAS, PERSON, Connect, ask

pytestmark = pytest.mark.anyio

Invoke = Callable[..., Awaitable[Any]]
SESSION = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
PROOFS = ("elicited", "terminal", "code", "host_trusted", "operator", "page")

ASKERS = {
    "agent": Principal.agent("reviewer", session_id=SESSION),
    "session": Principal("session", SESSION, facts=Facts(door="socket")),
    "extension": Principal("extension", "tidy", facts=Facts(door="socket")),
    "host": Principal.host("plain", facts=Facts(door="socket")),
    "host over HTTP": Principal.host("plain", facts=Facts(door="http", token="home")),
    "operator": Principal.host("plain", facts=Facts(door="http", token="operator")),
    "process": Principal.host("tester", facts=Facts(door="socket", token="process", supervised=True)),
    "trusted host of the runner": Principal.host("tester", facts=Facts(door="socket", supervised=True)),
    "agent with a stolen operator token": Principal.agent(
        "reviewer", session_id=SESSION, facts=Facts(door="http", token="operator", supervised=True)
    ),
    "command under an agent": Principal.user(at_terminal=True, supervised=True),
    "script": Principal.user(),
}


async def _still_open(home: Home, approval_id: str) -> bool:
    approval = await home.state.read(get_approval, approval_id)
    return approval.state == "pending" and await home.state.read(list_grants) == []


@pytest.mark.parametrize("asker", [name for name in ASKERS if name != "script"])
async def test_no_asker_answers_itself_by_any_proof_or_tool(
    home: Home, invoke: Invoke, clock: SimulatedClock, asker: str
) -> None:
    principal = ASKERS[asker]
    approval_id = await ask(home.enforcement, clock, principal)
    for proof in PROOFS:
        with pytest.raises(AgentsteadError, match=r"approval\.(self|not_approver)"):
            await home.enforcement.answer(approval_id, "allow_once", by=principal, proof=proof)  # type: ignore[arg-type]
    with pytest.raises(AgentsteadError, match=r"(approval\.(self|not_approver)|permission\.pending)"):
        await invoke(home, answering.approval_answer, approval_id=approval_id, choice="allow_once", principal=principal)
    assert await home.enforcement.question(approval_id, principal) is None
    assert await _still_open(home, approval_id)


async def test_a_script_of_the_person_asks_for_nothing_but_subjects_and_cannot_answer_those(
    home: Home, clock: SimulatedClock
) -> None:
    script = ASKERS["script"]
    with pytest.raises(AgentsteadError) as caught:
        await home.enforcement.subject("erase", "h", question="Erase?", asker=script)
    approval_id = str(caught.value.details["approval_id"])
    for proof in PROOFS:
        with pytest.raises(AgentsteadError, match=r"approval\.not_approver"):
            await home.enforcement.answer(approval_id, "allow_once", by=script, proof=proof)  # type: ignore[arg-type]
    await home.enforcement.answer(approval_id, "allow_once", by=PERSON, proof="terminal")


async def test_a_member_of_the_same_lineage_cannot_answer_for_another(home: Home, clock: SimulatedClock) -> None:
    asked = await ask(home.enforcement, clock, ASKERS["agent"], session_id=SESSION)
    relatives = [
        Principal.agent("parent", session_id="ses_01ARZ3NDEKTSV4RRFFQ69G5FAW"),
        Principal("session", "ses_01ARZ3NDEKTSV4RRFFQ69G5FAX"),
    ]
    for relative in relatives:
        with pytest.raises(AgentsteadError, match=r"approval\.self"):
            await home.enforcement.answer(asked, "allow_once", by=relative, proof="elicited")
    assert await _still_open(home, asked)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("choice", CHOICES)
async def test_the_answering_tool_refuses_hosts_in_both_eras(
    home: Home, connect: Connect, clock: SimulatedClock, era: str, choice: str
) -> None:
    approval_id = await ask(home.enforcement, clock)
    async with connect(era) as client:
        answer = await client.call_tool("approval_answer", {"approval_id": approval_id, "choice": choice})
    assert answer.is_error
    assert answer.content[0].text.startswith("approval.not_approver: host:tester does not prove a person")
    assert await _still_open(home, approval_id)


@pytest.mark.parametrize("era", ERAS)
@pytest.mark.parametrize("forms", ["none", "untrusted", "trusted"])
async def test_no_door_waits_for_a_person_who_is_not_there(
    home: Home, connect: Connect, rules: Any, era: str, forms: str
) -> None:
    rules('[[rule]]\nid = "q"\neffect = "ask"\naction = ["permissions.grant_list"]\n')
    name = "tester" if forms == "trusted" else "stranger"
    choose = "" if forms == "none" else "allow_once"
    with anyio.fail_after(20):
        async with connect(era, name=name, choose=choose) as client:
            answer = await client.call_tool("grant_list", {})
    assert answer.is_error is (forms != "trusted")


async def test_trusting_a_host_for_its_word_still_lets_it_answer_no_approval(home: Home, clock: SimulatedClock) -> None:
    await home.state.write(trust_host, "wordy")
    host = Principal.host("wordy", facts=Facts(door="socket"))
    approval_id = await ask(home.enforcement, clock)
    with pytest.raises(AgentsteadError, match=r"approval\.not_approver"):
        await home.enforcement.answer(approval_id, "allow_once", by=host, proof="host_trusted")
    assert isinstance(home.enforcement, Enforcement)
    assert await _still_open(home, approval_id)
