"""Undoing decisions that other tests do not: restores, pins, proposals of others, and what cannot be undone."""

from typing import Any

import pytest

from agentstead.memory.changes import Change, read_changes, without_secrets
from agentstead.memory.refs import look_memory, look_proposal
from agentstead.state import AgentsteadError

pytestmark = pytest.mark.anyio


async def revert(desk: Any, decision: Any) -> Any:
    return (await desk.write({"op": "revert", "decision_id": decision.decision_id})).decisions[0]


async def refused(desk: Any, decision_id: str) -> AgentsteadError:
    with pytest.raises(AgentsteadError) as error:
        await desk.write({"op": "revert", "decision_id": decision_id})
    return error.value


async def change(desk: Any, op: str, memory_id: str, **fields: Any) -> Any:
    return (await desk.write({"op": op, "memory_id": memory_id, **fields})).decisions[0]


async def test_an_undone_restore_is_archived_again(host: Any) -> None:
    added = await host.add("A fact.")
    await change(host, "archive", added.memory_id)
    undone = await revert(host, await change(host, "restore", added.memory_id))
    assert (undone.op, (await host.get(added.memory_id)).state) == ("archive", "archived")


async def test_an_undone_unpin_is_pinned_again(host: Any) -> None:
    added = await host.add("A fact.")
    await change(host, "pin", added.memory_id)
    await revert(host, await change(host, "unpin", added.memory_id))
    assert (await host.get(added.memory_id)).pinned


async def test_the_undoing_itself_can_be_undone(host: Any) -> None:
    added = await host.add("Version one.")
    revised = await change(host, "revise", added.memory_id, text="Version two.")
    undone = await revert(host, revised)
    assert (await host.get(added.memory_id)).text == "Version one."
    await revert(host, undone)
    assert (await host.get(added.memory_id)).text == "Version two."


async def test_undoing_a_revision_brings_back_all_of_the_earlier_edition(host: Any) -> None:
    added = await host.add("One.", tags=["a"], title="Named", attributes={"value": "1"}, valid_from="2020-01-01")
    revised = await change(
        host,
        "revise",
        added.memory_id,
        text="Two.",
        tags=["b"],
        title="Renamed",
        attributes={"value": "2"},
        valid_from="2021-01-01",
    )
    await revert(host, revised)
    memory = await host.get(added.memory_id, "history")
    assert (memory.text, memory.tags, memory.title, memory.attributes, memory.valid_from) == (
        "One.",
        ["a"],
        "Named",
        {"value": "1"},
        "2020-01-01T00:00:00Z",
    )
    assert len(memory.history) == 3


async def test_an_undone_supersession_leaves_the_old_one_valid_without_an_end(host: Any) -> None:
    old = await host.add("Postgres 14.", key="db")
    new = await host.add("Postgres 15.", key="db")
    await revert(host, new)
    before, after = await host.get(old.memory_id), await host.get(new.memory_id)
    assert (before.state, before.valid_to, after.state) == ("live", None, "retracted")
    assert await host.found("postgres") == [old.memory_id]


async def test_a_decision_that_changed_nothing_cannot_be_undone(host: Any) -> None:
    await host.add("A fact.")
    duplicate = await host.add("A fact.")
    assert (await refused(host, duplicate.decision_id)).code == "memory.invalid"


async def test_a_restore_of_what_was_superseded_cannot_be_undone_by_the_way(host: Any) -> None:
    old = await host.add("Postgres 14.", key="db")
    new = await host.add("Postgres 15.", key="db")
    await change(host, "retract", new.memory_id, reason="wrong")
    restored = await change(host, "restore", old.memory_id)
    assert (await refused(host, restored.decision_id)).code == "memory.invalid"


@pytest.mark.parametrize("decision_id", ["dec_01J9ZZZZZZZZZZZZZZZZZZZZZA", "nonsense"])
async def test_an_unknown_decision_is_named(host: Any, decision_id: str) -> None:
    assert (await refused(host, decision_id)).code == "memory.not_found"


async def test_a_decision_of_another_workspace_is_unknown(host: Any, other_project: Any) -> None:
    added = await host.add("A fact.")
    assert (await refused(host.at(other_project), added.decision_id)).code == "memory.not_found"


async def test_a_host_may_only_propose_to_undo_a_persons_decision(host: Any, user: Any) -> None:
    added = await user.add("A fact.")
    written = await host.write({"op": "revert", "decision_id": added.decision_id})
    assert (written.state, written.decisions[0].conflict_with) == ("pending", added.memory_id)


async def test_others_learn_where_a_memory_is_and_not_what_it_says(host: Any) -> None:
    added = await host.add("A xylophone.")
    proposed = await host.write({"op": "add", "type": "preference", "text": "A zither."})
    state = host.home.state
    memory = await state.read(look_memory, added.memory_id)
    proposal = await state.read(look_proposal, proposed.proposal_id)
    assert (memory.exists, memory.state, memory.facts["type"]) == (True, "live", "fact")
    assert memory.workspace.startswith("wsp_")
    assert (proposal.state, proposal.facts) == ("pending", {"principal": "host:desk"})
    assert "xylophone" not in repr(memory)
    assert await state.read(look_memory, "mem_x") is None
    assert await state.read(look_proposal, "mpr_x") is None


def test_every_text_of_a_change_goes_through_the_redactor() -> None:
    assumption = {"id": "1", "text": "rests on SECRET", "holds": "yes"}
    [draft] = read_changes(
        [
            Change(
                op="add",
                type="choice",
                text="a SECRET",
                title="SECRET title",
                tags=["SECRET-tag"],
                attributes={"expected": "SECRET", "alternatives": ["SECRET"], "assumptions": [assumption]},
            )
        ]
    )
    cleaned = without_secrets(draft, lambda text: text.replace("SECRET", "gone").replace("secret", "gone"))
    assert cleaned.texts()
    assert not any("secret" in text.lower() for text in cleaned.texts())
    assert cleaned.attributes is not None
    assert cleaned.attributes["assumptions"][0]["holds"] == "yes"


def test_edits_and_reasons_go_through_it_too() -> None:
    edit = {"old_text": "x", "new_text": "SECRET"}
    [draft] = read_changes(
        [Change(op="revise", memory_id="mem_01J9ZZZZZZZZZZZZZZZZZZZZZA", edits=[edit], reason="SECRET")]
    )
    cleaned = without_secrets(draft, lambda text: text.replace("SECRET", "gone"))
    assert (cleaned.edits, cleaned.reason) == ((("x", "gone"),), "gone")
