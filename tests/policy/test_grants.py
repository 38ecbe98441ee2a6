"""Grants: where they hold, when they end, and with what."""

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.identity import registry
from agentstead.identity.folders import Folder
from agentstead.policy import (
    CallFacts,
    Enforcement,
    find_decision,
    get_approval,
    grants,
    grants_end,
    list_grants,
    revoke_grant,
    session_ended,
)
from agentstead.state import NotFound, PendingAnswer, SimulatedClock, State, Tx, new_id

pytestmark = pytest.mark.anyio

Calls = Callable[..., CallFacts]
SESSION = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"


async def _asked(enforcement: Enforcement, call: CallFacts) -> str:
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.enter(call)
    return str(caught.value.details["approval_id"])


async def _allow(enforcement: Enforcement, call: CallFacts, who: Any, choice: str, **more: Any) -> str:
    approval_id = await _asked(enforcement, call)
    await enforcement.answer(approval_id, choice, by=who.person, proof="terminal", **more)
    return approval_id


async def _workspace(state: State, root: str, *, repository: str = "") -> str:
    placed = await state.write(registry.place, Folder(Path(root), new_id("wsp_", state.clock), repository))
    return placed.id


async def test_a_workspace_grant_holds_in_every_worktree_of_its_repository_and_nowhere_else(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    main = await _workspace(state, "/w/main", repository="/w/main/.git")
    tree = await _workspace(state, "/w/tree", repository="/w/main/.git")
    other = await _workspace(state, "/w/other", repository="/w/other/.git")
    plain = await _workspace(state, "/w/plain")
    await _allow(enforcement, call(workspace_id=main, cwd="/w/main/src"), who, "allow_workspace")
    for workspace_id, cwd in ((main, "/w/main"), (tree, "/w/tree/docs")):
        ticket = await enforcement.enter(call(workspace_id=workspace_id, cwd=cwd, principal=who.stranger))
        assert ticket.passed_by == "grant"
    for workspace_id in (other, plain):
        await _asked(enforcement, call(workspace_id=workspace_id))
    await _asked(enforcement, call())
    clock.advance(seconds=30 * 86_400)
    await _asked(enforcement, call(workspace_id=main))


async def test_two_plain_folders_share_no_grant(enforcement: Enforcement, state: State, call: Calls, who: Any) -> None:
    first, second = await _workspace(state, "/w/a"), await _workspace(state, "/w/b")
    await _allow(enforcement, call(workspace_id=first), who, "allow_workspace")
    await _asked(enforcement, call(workspace_id=second))


async def test_the_workspace_of_a_call_is_found_by_argument_environment_and_directory(
    enforcement: Enforcement, state: State, call: Calls
) -> None:
    workspace = await _workspace(state, "/w/shop")
    ways = [
        call(arguments={"workspace": "shop"}),
        call(arguments={"workspace": workspace, "n": 1}),
        call(arguments={"workspace": "/w/shop/src"}),
        call(arguments={"n": 2}, workspace_name="shop"),
        call(arguments={"n": 3}, cwd="/w/shop/src"),
        call(arguments={"n": 4}, workspace_id=workspace),
    ]
    for each in ways:
        approval = await state.read(get_approval, await _asked(enforcement, each))
        assert approval.workspace_id == workspace
        assert "In workspace shop (/w/shop)." in approval.summary


@pytest.mark.parametrize(
    ("spoil", "reason"),
    [
        ("revoke", "grant.revoked"),
        ("use", "grant.exhausted"),
        ("wait", "grant.expired"),
        ("other session", "grant.other_session"),
        ("nothing", "grant.none"),
    ],
)
async def test_a_question_is_recorded_with_the_reason_why_no_grant_answered(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock, spoil: str, reason: str
) -> None:
    asked = call(session_id=SESSION)
    if spoil != "nothing":
        await _allow(enforcement, asked, who, "allow_uses" if spoil == "use" else "allow_session", **_uses(spoil))
    if spoil == "revoke":
        (grant,) = await state.read(list_grants)
        await state.write(revoke_grant, grant.id, reason="changed my mind")
    elif spoil == "use":
        ticket = await enforcement.enter(asked)
        await state.write(lambda tx: ticket.spend(tx))
    elif spoil == "wait":
        clock.advance(seconds=8 * 3600)
    elif spoil == "other session":
        asked = call(session_id="ses_01ARZ3NDEKTSV4RRFFQ69G5FAX")
    recorded = await state.read(find_decision, await _asked(enforcement, asked))
    assert reason in recorded.reasons


def _uses(spoil: str) -> dict[str, int]:
    return {"uses": 1} if spoil == "use" else {}


async def test_a_revoked_grant_ends_at_once_and_revoking_again_changes_nothing(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    await _allow(enforcement, call(), who, "allow_uses", uses=5)
    (grant,) = await state.read(list_grants)
    ended = await state.write(revoke_grant, grant.id)
    assert await state.write(revoke_grant, grant.id) == ended
    assert await state.read(list_grants) == []
    await _asked(enforcement, call())
    with pytest.raises(NotFound, match=r"grant\.not_found"):
        await state.write(revoke_grant, "grn_1")


async def test_a_session_that_ends_takes_its_grants_and_open_questions_along_in_one_transaction(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    await _allow(enforcement, call(session_id=SESSION), who, "allow_session")
    await _allow(enforcement, call("workspace.purge"), who, "allow_uses", uses=9)
    open_one = await _asked(enforcement, call("workspace.restore", session_id=SESSION))

    def close_and_fail(tx: Tx) -> None:
        session_ended(tx, SESSION)
        raise RuntimeError("the session stays open")

    with pytest.raises(RuntimeError):
        await state.write(close_and_fail)
    assert (await enforcement.enter(call(session_id=SESSION))).passed_by == "grant"

    await state.write(session_ended, SESSION)
    assert (await state.read(get_approval, open_one)).state == "canceled"
    await _asked(enforcement, call(session_id=SESSION))
    assert (await enforcement.enter(call("workspace.purge"))).passed_by == "grant"


async def test_ending_nothing_writes_nothing(state: State) -> None:
    before = await state.head()
    await state.write(session_ended, "")
    assert await state.write(grants_end, SESSION, "over") == 0
    assert await state.write(grants_end, "act_01ARZ3NDEKTSV4RRFFQ69G5FAV", "over") == 0
    assert await state.head() == before


async def test_a_lasting_grant_is_used_before_one_that_is_used_up(
    enforcement: Enforcement, state: State, call: Calls, who: Any
) -> None:
    once = await _asked(enforcement, call(session_id=SESSION, arguments={"n": 1}))
    lasting = await _asked(enforcement, call(session_id=SESSION, arguments={"n": 2}))
    await enforcement.answer(once, "allow_once", by=who.person, proof="terminal")
    await enforcement.answer(lasting, "allow_session", by=who.person, proof="terminal")
    ticket = await enforcement.enter(call(session_id=SESSION, arguments={"n": 1}))
    assert (await state.read(grants.get_grant, ticket.grant_id)).scope == "session"


async def test_a_once_grant_of_one_tool_is_none_for_another_with_the_same_arguments(
    enforcement: Enforcement, call: Calls, who: Any
) -> None:
    await _allow(enforcement, call("workspace.promote"), who, "allow_once")
    await _asked(enforcement, call("workspace.restore"))


async def test_lists_are_of_what_is_in_force(
    enforcement: Enforcement, state: State, call: Calls, who: Any, clock: SimulatedClock
) -> None:
    await _allow(enforcement, call(session_id=SESSION), who, "allow_session")
    await _allow(enforcement, call("workspace.purge"), who, "allow_once")
    assert len(await state.read(list_grants)) == 2
    assert [grant.scope for grant in await state.read(list_grants, session_id=SESSION)] == ["session"]
    clock.advance(seconds=1000)
    assert [grant.scope for grant in await state.read(list_grants)] == ["session"]
