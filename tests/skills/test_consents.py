"""Consents: kept as given, the newest counts, and what a person is asked covers everything that they judge."""

from dataclasses import replace
from pathlib import Path

import pytest

from agentstead.kit import Home
from agentstead.skills.asking import Asked, asked_of, question
from agentstead.skills.candidates import Candidate, Origin, Root
from agentstead.skills.capabilities import capability_digest, capability_summary
from agentstead.skills.consents import consents_of, record, subject_hash
from agentstead.skills.document import judge
from agentstead.skills.rulings import Answer, Consent, Known, Ruled, TrustMode, rule
from agentstead.skills.store import HeldFile, HeldTree, Place, held_tree
from agentstead.state import Conflict, Reading, SimulatedClock, Tx

KEY = "workspace/wsp_1/tides"
TREE, DIGEST = "ab" * 32, "cd" * 32


def tree_of(**files: bool) -> HeldTree:
    held = {name: HeldFile(name, 3, "ab" * 32, executable) for name, executable in files.items()}
    return held_tree({"SKILL.md": HeldFile("SKILL.md", 3, "ef" * 32, False), **held})


def candidate(tree: HeldTree, *, description: str = "Looks up tides", fields: str = "") -> Candidate:
    text = f"---\nname: tides\ndescription: {description}\n{fields}---\n"
    root = Root(Origin.WORKSPACE, Path("/w/.claude/skills"), 0, "wsp_1")
    judged = judge(text.encode(), folder="tides", mode="lenient")
    return Candidate(root, root.path / "tides", Place(root.path, ("tides",)), judged, tree)


def ruled(found: Candidate) -> Ruled:
    (one,) = rule([found], Known(trust=TrustMode.CONTENT, asks={Origin.WORKSPACE: True}))
    return one


def keep(tx: Tx, decision: Answer = Answer.YES, *, tree_id: str = TREE) -> str:
    return record(tx, KEY, tree_id, DIGEST, decision=decision, approval_id="apr_1", workspace="wsp_1")


@pytest.mark.anyio
async def test_answers_come_back_with_the_newest_first(home: Home, clock: SimulatedClock) -> None:
    await home.state.write(keep, Answer.NO)
    clock.advance(seconds=1)
    await home.state.write(keep, tree_id="ee" * 32)
    found = await home.state.read(consents_of)
    assert found == {KEY: (Consent("ee" * 32, DIGEST, Answer.YES), Consent(TREE, DIGEST, Answer.NO))}


@pytest.mark.anyio
async def test_a_revoked_and_an_expired_answer_count_as_such(home: Home, clock: SimulatedClock) -> None:
    consent_id = await home.state.write(keep)
    await home.state.write(lambda tx: tx.execute("UPDATE consents SET expires_at = :at", at=tx.now_us + 1_000_000))

    def answers(reading: Reading) -> list[Answer]:
        return [each.answer for each in consents_of(reading)[KEY]]

    assert await home.state.read(answers) == [Answer.YES]
    clock.advance(seconds=1)
    assert await home.state.read(answers) == [Answer.EXPIRED]
    revoke = "UPDATE consents SET revoked_at = 1, revoke_reason = 'test' WHERE id = :id"
    await home.state.write(lambda tx: tx.execute(revoke, id=consent_id))
    assert await home.state.read(answers) == [Answer.REVOKED]


@pytest.mark.anyio
async def test_a_consent_without_its_approval_is_not_kept(home: Home) -> None:
    asked = replace(Asked(KEY, TREE, DIGEST), approval_id="apr_none")
    with pytest.raises(Conflict) as caught:
        await home.state.write(asked.use, workspace="wsp_1")
    assert caught.value.code == "approval.stale"
    assert await home.state.read(consents_of) == {}


def test_the_subject_covers_name_content_and_capabilities() -> None:
    hashes = {
        subject_hash(KEY, TREE, DIGEST),
        subject_hash("user/-/tides", TREE, DIGEST),
        subject_hash(KEY, "ee" * 32, DIGEST),
        subject_hash(KEY, TREE, "ee" * 32),
    }
    assert len(hashes) == 4
    found = candidate(tree_of())
    assert asked_of(found).subject_hash == asked_of(candidate(tree_of())).subject_hash


def test_capabilities_follow_scripts_and_requested_tools_alone() -> None:
    plain = candidate(tree_of())
    assert plain.document is not None
    summary = capability_summary(tree_of(**{"run.py": False, "tool": True}), plain.document)
    assert summary == {
        "scripts": [{"path": "run.py", "language": "python"}, {"path": "tool", "language": "unknown"}],
        "requested_tools": [],
        "unknown": True,
    }
    assert plain.capability_digest == candidate(tree_of(**{"notes.txt": False})).capability_digest
    assert plain.capability_digest == candidate(tree_of(), description="other").capability_digest
    grown = [candidate(tree_of(**{"run.sh": False})), candidate(tree_of(), fields="allowed-tools: Read\n")]
    assert len({plain.capability_digest, *(each.capability_digest for each in grown)}) == 3
    assert plain.capability_digest == capability_digest(tree_of(), plain.document)


def test_the_question_says_what_is_asked_and_hides_nothing() -> None:
    found = candidate(
        tree_of(**{f"run{number}.sh": False for number in range(20)}),
        description='"line\\u202e one \\n line two"',
        fields="allowed-tools: Bash(git:*)\n",
    )
    text = question(ruled(found), "harbour")
    assert "workspace:tides of workspace harbour" in text
    assert found.tree_id in text
    assert "line<U+202E> one line two" in text
    assert "and 8 more" in text
    assert "Bash(git:*)" in text
    assert "Why now: never_asked" in text
    assert "\u202e" not in text


def test_the_question_of_a_plain_skill_says_none() -> None:
    text = question(ruled(candidate(tree_of())), "")
    assert "Scripts: none" in text
    assert "(none is granted by this): none" in text
