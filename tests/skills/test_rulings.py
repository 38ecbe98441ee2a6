"""Rulings: each row of the table, the order of the rows, and who may hold a name."""

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.skills.candidates import Candidate, Origin, Refusal, Root
from agentstead.skills.document import judge
from agentstead.skills.rulings import (
    HOLDS_NAME,
    Answer,
    Consent,
    Known,
    Ruled,
    Ruling,
    TrustMode,
    rule,
)
from agentstead.skills.store import HeldFile, Place, held_tree

FILE = HeldFile("SKILL.md", 3, "ab" * 32, False)
TREE = held_tree({"SKILL.md": FILE})
OTHER = held_tree({"SKILL.md": replace(FILE, blob_id="cd" * 32)})


def candidate(
    origin: Origin = Origin.USER, *, name: str = "tides", index: int = 0, fields: str = "", valid: bool = True
) -> Candidate:
    text = f"---\nname: {name}\ndescription: d\n{fields}---\n" if valid else "no fields"
    root = Root(origin, Path("/roots") / origin, index, "wsp_1" if origin is Origin.WORKSPACE else "")
    shown = root.path / f"{index}" / name
    judged = judge(text.encode(), folder=name, mode="lenient")
    return Candidate(root, shown, Place(root.path, (f"{index}", name)), judged, TREE)


def one(given_candidate: Candidate, known: Known | None = None) -> Ruled:
    (ruled,) = rule([given_candidate], known or Known())
    return ruled


SHIPPED = {"tides": TREE.tree_id}
ASKS = {Origin.USER: True, Origin.WORKSPACE: True}


def consent(answer: Answer = Answer.YES, *, tree_id: str = TREE.tree_id, digest: str = "") -> Known:
    mine = candidate()
    given_consent = Consent(tree_id, digest or mine.capability_digest, answer)
    return Known(asks=ASKS, consents={mine.origin_key: (given_consent,)})


@pytest.mark.parametrize(
    ("judged", "known", "ruling", "reasons"),
    [
        (candidate(), Known(), Ruling.SERVED, ()),
        (candidate(valid=False), Known(), Ruling.INVALID, ("fm.missing",)),
        (candidate(Origin.WORKSPACE), Known(), Ruling.UNTRUSTED, ("workspace_untrusted",)),
        (candidate(Origin.WORKSPACE), Known(trust=TrustMode.CONTENT), Ruling.SERVED, ()),
        (
            candidate(Origin.WORKSPACE),
            Known(trust=TrustMode.CONTENT, asks=ASKS),
            Ruling.NEEDS_CONSENT,
            ("never_asked",),
        ),
        (
            candidate(Origin.WORKSPACE),
            Known(trust=TrustMode.CONTENT, asks=ASKS, trusted=frozenset({TREE.tree_id})),
            Ruling.SERVED,
            (),
        ),
        (candidate(Origin.WORKSPACE), Known(trust=TrustMode.ALL, asks=ASKS), Ruling.SERVED, ()),
        (
            candidate(Origin.WORKSPACE),
            Known(
                trust=TrustMode.CONTENT,
                asks=ASKS,
                trusted=frozenset({OTHER.tree_id}),
                trusted_folders=frozenset({candidate(Origin.WORKSPACE).shown}),
            ),
            Ruling.NEEDS_CONSENT,
            ("content_changed_since_consent",),
        ),
        (candidate(), Known(switched_off=frozenset({"skill:user:tides"})), Ruling.DISABLED, ("disabled_by_user",)),
        (candidate(Origin.MANAGED), Known(switched_off=frozenset({"skill:managed:tides"})), Ruling.SERVED, ()),
        (candidate(Origin.BUNDLED), Known(shipped=SHIPPED), Ruling.SERVED, ()),
        (candidate(Origin.BUNDLED), Known(), Ruling.BLOCKED, ("content_changed",)),
        (
            replace(candidate(), refusal=Refusal("path_escape", "x"), tree=None),
            Known(),
            Ruling.BLOCKED,
            ("path_escape",),
        ),
        (replace(candidate(), unseen="U+200B in line 1"), Known(), Ruling.BLOCKED, ("scan_blocked",)),
        (
            candidate(fields="metadata:\n  agentstead.platforms: plan9\n"),
            Known(platforms=frozenset({"linux"})),
            Ruling.INACTIVE,
            ("platform_mismatch",),
        ),
        (
            candidate(fields="metadata:\n  agentstead.platforms: plan9 linux\n"),
            Known(platforms=frozenset({"linux"})),
            Ruling.SERVED,
            (),
        ),
        (
            candidate(fields="metadata:\n  agentstead.requires-tools: memory_recall\n"),
            Known(),
            Ruling.INACTIVE,
            ("missing_tool",),
        ),
        (
            candidate(fields="metadata:\n  agentstead.requires-tools: memory_recall\n"),
            Known(tools=frozenset({"memory_recall"})),
            Ruling.SERVED,
            (),
        ),
        (candidate(), Known(asks=ASKS), Ruling.NEEDS_CONSENT, ("never_asked",)),
        (candidate(), consent(), Ruling.SERVED, ()),
        (candidate(), consent(tree_id=OTHER.tree_id), Ruling.NEEDS_CONSENT, ("content_changed_since_consent",)),
        (candidate(), consent(digest="ef" * 32), Ruling.NEEDS_CONSENT, ("capability_grew",)),
        (candidate(), consent(Answer.NO), Ruling.NEEDS_CONSENT, ("refused",)),
        (candidate(), consent(Answer.EXPIRED), Ruling.NEEDS_CONSENT, ("consent_expired",)),
        (candidate(), consent(Answer.REVOKED), Ruling.NEEDS_CONSENT, ("never_asked",)),
    ],
)
def test_each_row_of_the_table(judged: Candidate, known: Known, ruling: Ruling, reasons: tuple[str, ...]) -> None:
    ruled = one(judged, known)
    assert (ruled.ruling, ruled.by_itself, ruled.reasons) == (ruling, ruling, reasons)
    assert bool(ruled.fix) is (ruling is not Ruling.SERVED)


def test_the_first_failed_row_rules_and_all_reasons_are_told() -> None:
    escaping = replace(candidate(Origin.WORKSPACE), refusal=Refusal("path_escape", "x"), tree=None)
    ruled = one(escaping, Known(asks=ASKS, switched_off=frozenset({"skill:workspace:tides"})))
    assert ruled.ruling is Ruling.UNTRUSTED
    assert ruled.reasons == ("workspace_untrusted", "disabled_by_user", "path_escape", "never_asked")


def test_the_higher_rank_has_the_name_and_both_are_told() -> None:
    low, high = candidate(Origin.BUNDLED), candidate(Origin.USER)
    winner, loser = rule([low, high], Known(shipped=SHIPPED))
    assert (winner.candidate, winner.ruling) == (high, Ruling.SERVED)
    assert (loser.ruling, loser.by_itself) == (Ruling.SHADOWED, Ruling.SERVED)
    assert loser.reasons == (f"shadowed_by:user:{high.shown}",)
    assert "bundled:tides" in loser.fix


def test_in_one_rank_the_first_root_then_the_first_path_has_the_name() -> None:
    later, earlier = candidate(index=1), candidate(index=0)
    assert [each.candidate for each in rule([later, earlier], Known())] == [earlier, later]


def test_names_that_differ_in_case_are_one() -> None:
    upper, lower = candidate(Origin.USER, name="TIDES"), candidate(Origin.BUNDLED)
    assert [each.ruling for each in rule([upper, lower], Known(shipped=SHIPPED))] == [Ruling.SERVED, Ruling.SHADOWED]


@pytest.mark.parametrize(
    ("known", "expected"),
    [
        (Known(), Ruling.SERVED),
        (Known(trust=TrustMode.CONTENT, switched_off=frozenset({"skill:workspace:tides"})), Ruling.SERVED),
        (Known(trust=TrustMode.CONTENT, asks={Origin.WORKSPACE: True}), Ruling.SHADOWED),
    ],
)
def test_untrusted_and_disabled_skills_leave_their_name_to_the_next(known: Known, expected: Ruling) -> None:
    _, mine = rule([candidate(Origin.WORKSPACE), candidate(Origin.USER)], known)
    assert mine.ruling is expected


def test_a_tampered_skill_keeps_its_name() -> None:
    tampered = replace(candidate(Origin.WORKSPACE), refusal=Refusal("path_escape", "x"), tree=None)
    blocked, mine = rule([tampered, candidate(Origin.USER)], Known(trust=TrustMode.CONTENT))
    assert (blocked.ruling, mine.ruling) == (Ruling.BLOCKED, Ruling.SHADOWED)


def any_candidate(origin: Origin, index: int, valid: bool, whole: bool, fields: str) -> Candidate:
    found = candidate(origin, index=index, valid=valid, fields=fields)
    return found if whole else replace(found, tree=None, refusal=Refusal("path_escape", "x"))


CANDIDATES = st.lists(
    st.builds(
        any_candidate,
        st.sampled_from(Origin),
        st.integers(0, 3),
        st.booleans(),
        st.booleans(),
        st.sampled_from(["", "metadata:\n  agentstead.platforms: plan9\n"]),
    ),
    max_size=6,
)
KNOWN = st.builds(
    Known,
    trust=st.sampled_from(TrustMode),
    trusted=st.sampled_from([frozenset(), frozenset({TREE.tree_id})]),
    switched_off=st.frozensets(st.sampled_from([f"skill:{origin}:tides" for origin in Origin])),
    platforms=st.just(frozenset({"linux"})),
    asks=st.dictionaries(st.sampled_from(Origin), st.booleans()),
)


@given(CANDIDATES, KNOWN)
def test_the_first_rightful_skill_alone_has_the_name(found: Sequence[Candidate], known: Known) -> None:
    ruled = rule(found, known)
    assert len(ruled) == len(found)
    rightful = [each for each in ruled if each.by_itself in HOLDS_NAME]
    for each in ruled:
        if each.by_itself not in HOLDS_NAME or each is rightful[0]:
            assert each.ruling is each.by_itself
        else:
            assert each.ruling in (Ruling.SHADOWED, Ruling.BLOCKED)
            assert f"shadowed_by:{rightful[0].candidate.origin}:{rightful[0].candidate.shown}" in each.reasons


@given(CANDIDATES, KNOWN)
def test_an_untrusted_workspace_changes_nothing_for_the_others(found: Sequence[Candidate], known: Known) -> None:
    distrusting = replace(known, trust=TrustMode.NONE)
    own = [each for each in found if each.origin is not Origin.WORKSPACE]
    with_workspace = [each for each in rule(found, distrusting) if each.candidate.origin is not Origin.WORKSPACE]
    assert with_workspace == list(rule(own, distrusting))
