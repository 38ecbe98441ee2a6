"""Approvals of subjects: bound to a hash, used once, never given by the asker; and the record of trust."""

from typing import Any

import anyio
import pytest

from agentstead.policy import (
    Enforcement,
    get_approval,
    host_trusted,
    list_grants,
    subject_use,
    trust_bytes,
    trust_host,
    trusted,
    untrust,
)
from agentstead.policy.trust import trusted_bytes
from agentstead.state import Conflict, Denied, Invalid, NotFound, PendingAnswer, SimulatedClock, State, Tx

pytestmark = pytest.mark.anyio

ASK: dict[str, Any] = {"question": "Promote tree abc?\nIt changes 3 files.\u202e"}


async def _open(enforcement: Enforcement, asker: Any, subject_hash: str = "h1", **more: Any) -> str:
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.subject("promotion", subject_hash, asker=asker, **{**ASK, **more})
    return str(caught.value.details["approval_id"])


async def test_a_subject_is_asked_once_answered_and_used_once(enforcement: Enforcement, state: State, who: Any) -> None:
    approval_id = await _open(enforcement, who.host)
    assert await _open(enforcement, who.agent) == approval_id
    approval = await state.read(get_approval, approval_id)
    assert approval.options == ("allow_once", "deny_once")
    assert "host:desk-host asks:\nPromote tree abc?\nIt changes 3 files.\\u{202E}" in approval.summary
    await enforcement.answer_elicited(approval_id, "allow_once", principal=who.host)
    assert await enforcement.subject("promotion", "h1", asker=who.host, **ASK) == approval_id
    used = await state.write(subject_use, approval_id, "h1")
    assert used.exec_state == "dispatching"
    assert (await state.read(get_approval, approval_id)).exec_state == "completed"
    assert await state.read(list_grants) == []
    assert await _open(enforcement, who.host) != approval_id


async def test_it_covers_exactly_its_hash(enforcement: Enforcement, state: State, who: Any) -> None:
    approval_id = await _open(enforcement, who.host)
    await enforcement.answer(approval_id, "allow_once", by=who.person, proof="terminal")
    with pytest.raises(Conflict, match="what it approved has changed"):
        await state.write(subject_use, approval_id, "h2")
    assert await _open(enforcement, who.host, "h2") != approval_id
    await state.write(subject_use, approval_id, "h1")


@pytest.mark.parametrize(
    ("state_of_it", "said"),
    [
        ("pending", "it is pending"),
        ("denied", "it is denied"),
        ("used", "it was used"),
        ("expired", "it has expired"),
        ("none", "there is none"),
    ],
)
async def test_what_is_not_an_open_yes_is_stale(
    enforcement: Enforcement, state: State, who: Any, clock: SimulatedClock, state_of_it: str, said: str
) -> None:
    approval_id = await _open(enforcement, who.host, expires_s=100)
    if state_of_it == "denied":
        await enforcement.answer(approval_id, "deny_once", by=who.person, proof="terminal")
    elif state_of_it != "pending":
        await enforcement.answer(approval_id, "allow_once", by=who.person, proof="terminal")
    if state_of_it == "used":
        await state.write(subject_use, approval_id, "h1")
    if state_of_it == "expired":
        clock.advance(seconds=100)
    with pytest.raises(Conflict, match=r"approval\.stale") as caught:
        await state.write(subject_use, "apr_0" if state_of_it == "none" else approval_id, "h1")
    assert said in caught.value.message


async def test_an_approval_of_a_call_is_no_approval_of_a_subject(
    enforcement: Enforcement, state: State, call: Any, who: Any
) -> None:
    with pytest.raises(PendingAnswer) as caught:
        await enforcement.enter(call())
    approval_id = caught.value.details["approval_id"]
    await enforcement.answer(approval_id, "allow_once", by=who.person, proof="terminal")
    with pytest.raises(Conflict, match=r"approval\.stale"):
        await state.write(subject_use, approval_id, "")


async def test_a_use_that_rolls_back_leaves_the_yes_whole(enforcement: Enforcement, state: State, who: Any) -> None:
    approval_id = await _open(enforcement, who.host)
    await enforcement.answer(approval_id, "allow_once", by=who.person, proof="terminal")

    def promote_and_fail(tx: Tx) -> None:
        subject_use(tx, approval_id, "h1")
        raise RuntimeError("the promotion failed")

    with pytest.raises(RuntimeError):
        await state.write(promote_and_fail)
    await state.write(subject_use, approval_id, "h1")


async def test_of_many_uses_at_once_one_wins(enforcement: Enforcement, state: State, who: Any) -> None:
    approval_id = await _open(enforcement, who.host)
    await enforcement.answer(approval_id, "allow_once", by=who.person, proof="terminal")
    outcomes: list[str] = []

    async def use() -> None:
        try:
            await state.write(subject_use, approval_id, "h1")
        except Conflict as error:
            outcomes.append(error.code)
        else:
            outcomes.append("used")

    async with anyio.create_task_group() as group:
        for _ in range(5):
            group.start_soon(use)
    assert sorted(outcomes) == ["approval.stale"] * 4 + ["used"]


async def test_the_person_at_their_terminal_answers_by_calling_and_nobody_else_does(
    enforcement: Enforcement, state: State, who: Any
) -> None:
    approval_id = await enforcement.subject("promotion", "h1", asker=who.person, **ASK)
    approval = await state.read(get_approval, approval_id)
    assert (approval.state, approval.proof, approval.answered_by) == ("allowed", "terminal", "user")
    for n, asker in enumerate([who.script, who.captive, who.host, who.operator, who.agent, who.extension]):
        await _open(enforcement, asker, f"other{n}")


async def test_a_persons_no_is_fresh_for_a_minute(enforcement: Enforcement, who: Any, clock: SimulatedClock) -> None:
    approval_id = await _open(enforcement, who.host)
    await enforcement.answer(approval_id, "deny_once", by=who.person, proof="terminal")
    with pytest.raises(Denied, match=r"permission\.denied"):
        await enforcement.subject("promotion", "h1", asker=who.host, **ASK)
    clock.advance(seconds=61)
    assert await _open(enforcement, who.host) != approval_id


@pytest.mark.parametrize(("kind", "subject_hash"), [("wish", "h"), ("erase", "")])
async def test_what_is_no_subject_is_refused(enforcement: Enforcement, who: Any, kind: Any, subject_hash: str) -> None:
    with pytest.raises(Invalid, match="is no subject"):
        await enforcement.subject(kind, subject_hash, asker=who.host, **ASK)


async def test_exact_bytes_are_trusted_in_one_workspace_under_one_kind(state: State) -> None:
    await state.write(trust_bytes, "wsp_1", "check", path="checks.toml", digest="d1")
    assert await state.read(trusted, "wsp_1", "check", "d1")
    for workspace, kind, digest in [
        ("wsp_1", "check", "d2"),
        ("wsp_2", "check", "d1"),
        ("wsp_1", "hook", "d1"),
        ("wsp_1", "check", ""),
    ]:
        assert not await state.read(trusted, workspace, kind, digest)  # type: ignore[arg-type]


async def test_trust_ends_and_can_be_given_again(state: State) -> None:
    await state.write(trust_bytes, "wsp_1", "skills", path="s", digest="t1", mode="content", root_device_inode="1:2")
    assert await state.write(untrust, "wsp_1", "skills", path="s") == 1
    assert not await state.read(trusted, "wsp_1", "skills", "t1")
    with pytest.raises(NotFound, match="No trust"):
        await state.write(untrust, "wsp_1", "skills", path="s")
    await state.write(trust_bytes, "wsp_1", "skills", path="s", digest="t1", mode="all", root_device_inode="1:3")
    (row,) = await state.read(trusted_bytes, "wsp_1", "skills")
    assert (row.path, row.sha256, row.mode, row.root_device_inode) == ("s", "t1", "all", "1:3")


async def test_a_host_is_trusted_for_its_forms_or_for_its_word(state: State) -> None:
    assert not await state.read(host_trusted, "desk")
    await state.write(trust_host, "desk", forms_only=True)
    assert await state.read(host_trusted, "desk")
    assert not await state.read(host_trusted, "desk", forms=False)
    await state.write(trust_host, "desk")
    assert await state.read(host_trusted, "desk", forms=False)
    await state.write(untrust, "", "host", path="desk")
    assert not await state.read(host_trusted, "desk")
    assert not await state.read(host_trusted, "")


async def test_trust_without_a_name_place_or_digest_is_refused(state: State) -> None:
    with pytest.raises(Invalid):
        await state.write(trust_host, "")
    for workspace, kind, digest in (("", "check", "d"), ("wsp_1", "check", ""), ("wsp_1", "host", "d")):
        with pytest.raises(Invalid, match="needs a workspace and a digest"):
            await state.write(trust_bytes, workspace, kind, path="p", digest=digest)  # type: ignore[arg-type]
