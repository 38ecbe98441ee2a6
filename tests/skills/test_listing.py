"""Listings: roots in order, items as shown, pages that are small, etags that tell every change."""

from dataclasses import replace
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.config import Settings
from agentstead.skills.candidates import RANKS, Candidate, Origin, Root
from agentstead.skills.document import judge
from agentstead.skills.listing import BRIEF_PAGE_BYTES, Shown, etag_of, items_of, page, standing_of, tier_of
from agentstead.skills.results import SkillItem
from agentstead.skills.roots import BUNDLED, Standing, folders, roots_of
from agentstead.skills.rulings import Known, Ruled, Ruling, TrustMode, rule
from agentstead.skills.store import HeldFile, Place, held_tree

TREE = held_tree({"SKILL.md": HeldFile("SKILL.md", 3, "ab" * 32, False)})
NOBODY: frozenset[tuple[str, str]] = frozenset()


def found(name: str, *, description: str = "d", origin: Origin = Origin.USER) -> Candidate:
    text = f"---\nname: {name}\ndescription: {description}\n---\n"
    root = Root(origin, Path("/roots") / origin)
    judged = judge(text.encode(), folder=name, mode="lenient")
    return Candidate(root, root.path / name, Place(root.path, (name,)), judged, TREE)


def served(*names: str, description: str = "d") -> tuple[Ruled, ...]:
    return rule([found(name, description=description) for name in names], Known())


def items(ruled: tuple[Ruled, ...], shown: Shown | None = None) -> list[SkillItem]:
    return items_of(ruled, shown or Shown(None), trust=TrustMode.NONE, live=NOBODY)


def test_roots_come_in_their_rank(tmp_path: Path) -> None:
    settings = Settings(tmp_path, environ={})
    standing = Standing(tmp_path / "home", tmp_path / "me", "wsp_1", tmp_path / "w")
    found_roots = roots_of(standing, settings)
    assert [(root.origin, str(root.path.relative_to(tmp_path))) for root in found_roots[:-1]] == [
        (Origin.WORKSPACE, "w/.agentstead/skills"),
        (Origin.WORKSPACE, "w/.agents/skills"),
        (Origin.WORKSPACE, "w/.claude/skills"),
        (Origin.USER, "home/skills"),
        (Origin.USER, "me/.agents/skills"),
        (Origin.USER, "me/.claude/skills"),
    ]
    assert found_roots[-1] == Root(Origin.BUNDLED, BUNDLED)
    assert [RANKS[root.origin] for root in found_roots] == sorted(RANKS[root.origin] for root in found_roots)
    alone = roots_of(replace(standing, workspace=None, workspace_id=""), settings)
    assert all(root.origin is not Origin.WORKSPACE for root in alone)


def test_written_folders_are_absolute_or_the_persons(tmp_path: Path) -> None:
    written = ("~/more", "~", "/srv/skills", "relative", "")
    assert folders(written, person=tmp_path) == [tmp_path / "more", tmp_path, Path("/srv/skills")]


@pytest.mark.parametrize(
    ("origin", "trust", "tier"),
    [
        (Origin.MANAGED, TrustMode.NONE, "own"),
        (Origin.USER, TrustMode.NONE, "own"),
        (Origin.BUNDLED, TrustMode.NONE, "official"),
        (Origin.WORKSPACE, TrustMode.NONE, "unverified"),
        (Origin.WORKSPACE, TrustMode.CONTENT, "community"),
        (Origin.WORKSPACE, TrustMode.ALL, "own"),
        (Origin.INSTALLED, TrustMode.ALL, "unverified"),
        (Origin.EXTENSION, TrustMode.ALL, "unverified"),
    ],
)
def test_a_tier_says_how_near_the_author_is(origin: Origin, trust: TrustMode, tier: str) -> None:
    assert tier_of(origin, trust) == tier


def test_a_query_finds_skills_that_have_every_word() -> None:
    ruled = (*served("tides", description="looks up the Sea"), *served("moon", description="looks up phases"))
    assert [item.name for item in items(ruled, Shown(None, "looks"))] == ["moon", "tides"]
    assert [item.name for item in items(ruled, Shown(None, "sea LOOKS"))] == ["tides"]
    assert [item.name for item in items(ruled, Shown(None, "moon"))] == ["moon"]
    assert items(ruled, Shown(Ruling.BLOCKED)) == []


def test_active_skills_are_marked() -> None:
    ruled = served("tides", "moon")
    live = frozenset({("user/-/tides", TREE.tree_id)})
    shown = items_of(ruled, Shown(None), trust=TrustMode.NONE, live=live)
    assert [(item.name, item.active) for item in shown] == [("moon", False), ("tides", True)]


def test_an_etag_tells_every_change() -> None:
    one = items(served("tides"))
    tags = {
        etag_of(one, ()),
        etag_of(one, ("root: cut",)),
        etag_of([], ()),
        etag_of(items(served("tides", "moon")), ()),
        etag_of([one[0].model_copy(update={"tree_id": "cd" * 32})], ()),
        etag_of([one[0].model_copy(update={"active": True})], ()),
    }
    assert len(tags) == 6
    assert etag_of(items(served("tides")), ()) in tags


@given(st.lists(st.integers(1, 900), max_size=60), st.integers(1, 50), st.sampled_from(["brief", "full"]))
def test_pages_put_together_are_the_listing(lengths: list[int], limit: int, detail: str) -> None:
    one = items(served("tides"))[0]
    listing = [one.model_copy(update={"description": "w" * length}) for length in lengths]
    start, seen = 0, []
    while start < len(listing):
        part = page(listing, start=start, limit=limit, detail="brief" if detail == "brief" else "full")
        assert 1 <= len(part) <= limit
        size = sum(len(item.model_dump_json()) for item in part)
        assert detail == "full" or len(part) == 1 or size <= BRIEF_PAGE_BYTES
        seen += part
        start += len(part)
    assert seen == listing


def test_a_standing_shows_rank_and_reasons() -> None:
    first, second = rule([found("tides"), found("tides", origin=Origin.EXTENSION)], Known())
    assert (standing_of(first).rank, standing_of(second).rank) == (3, 5)
    assert standing_of(second).reasons == ["shadowed_by:user:/roots/user/tides"]
