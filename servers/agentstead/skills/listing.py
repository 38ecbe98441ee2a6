"""The forms in which rulings are shown: catalogue items, a page of them, and where each skill of a name stands."""

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Final, Literal, assert_never

from agentstead.skills.candidates import RANKS, Origin
from agentstead.skills.diagnostics import Diagnostic
from agentstead.skills.results import Remark, SkillItem, Standing, Tier
from agentstead.skills.rulings import Ruled, Ruling, TrustMode
from agentstead.skills.unseen import reveal_line
from agentstead.state import canonical_json, sha256_hex

BRIEF_CHARACTERS: Final = 200
FULL_CHARACTERS: Final = 4096
BRIEF_PAGE_BYTES: Final = 8_000
ETAG_CHARACTERS: Final = 16

Detail = Literal["brief", "full"]


@dataclass(frozen=True, slots=True)
class Shown:
    """What is wanted of a listing: which ruling (None for any), which words, how much of each description."""

    ruling: Ruling | None
    query: str = ""
    detail: Detail = "brief"


def items_of(
    ruled: Iterable[Ruled], shown: Shown, *, trust: TrustMode, live: frozenset[tuple[str, str]]
) -> list[SkillItem]:
    """Return the wanted skills by name, then by rank."""
    words = shown.query.casefold().split()
    found = [each for each in ruled if shown.ruling in (None, each.ruling) and _matches(each, words)]
    found.sort(key=lambda each: (each.candidate.key, each.candidate.order))
    return [_item(each, shown.detail, trust=trust, live=live) for each in found]


def etag_of(items: Sequence[SkillItem], cut: Sequence[str]) -> str:
    """Return a short digest that changes whenever the listing does."""
    listing = {"items": [item.model_dump(mode="json") for item in items], "cut": list(cut)}
    return sha256_hex(canonical_json(listing))[:ETAG_CHARACTERS]


def page(items: Sequence[SkillItem], *, start: int, limit: int, detail: Detail) -> list[SkillItem]:
    """Return the items from ``start`` on: at most ``limit``, and in ``brief`` at most 8 kB, but always one."""
    taken: list[SkillItem] = []
    room = BRIEF_PAGE_BYTES
    for item in items[start : start + limit]:
        room -= len(item.model_dump_json())
        if taken and detail == "brief" and room < 0:
            break
        taken.append(item)
    return taken


def standing_of(ruled: Ruled) -> Standing:
    """Return where a skill stands among those of its name."""
    return Standing(
        qualified_name=ruled.candidate.qualified_name,
        path=str(ruled.candidate.shown),
        rank=RANKS[ruled.candidate.origin],
        ruling=ruled.ruling,
        reasons=list(ruled.reasons),
        tree_id=ruled.candidate.tree_id,
        fix=ruled.fix,
    )


def remark_of(diagnostic: Diagnostic) -> Remark:
    """Return a diagnostic as it is shown."""
    return Remark(
        code=diagnostic.code,
        severity=diagnostic.severity,
        field=diagnostic.field,
        line=diagnostic.line,
        column=diagnostic.column,
        message=reveal_line(diagnostic.message, limit=400),
        remedy=diagnostic.remedy,
    )


def tier_of(origin: Origin, trust: TrustMode) -> Tier:
    """Return how near a skill's author is: the person, the product, people they trust, or anybody."""
    match origin:
        case Origin.MANAGED | Origin.USER:
            return "own"
        case Origin.BUNDLED:
            return "official"
        case Origin.INSTALLED | Origin.EXTENSION:
            return "unverified"
        case Origin.WORKSPACE:
            tiers: dict[TrustMode, Tier] = {TrustMode.ALL: "own", TrustMode.CONTENT: "community"}
            return tiers.get(trust, "unverified")
        case _:
            assert_never(origin)


def _matches(ruled: Ruled, words: Sequence[str]) -> bool:
    document = ruled.candidate.document
    text = f"{ruled.candidate.name} {document.description if document else ''}".casefold()
    return all(word in text for word in words)


def _item(ruled: Ruled, detail: Detail, *, trust: TrustMode, live: frozenset[tuple[str, str]]) -> SkillItem:
    candidate = ruled.candidate
    document = candidate.document
    limit = BRIEF_CHARACTERS if detail == "brief" else FULL_CHARACTERS
    return SkillItem(
        name=reveal_line(candidate.name, limit=BRIEF_CHARACTERS),
        qualified_name=reveal_line(candidate.qualified_name, limit=BRIEF_CHARACTERS),
        description=reveal_line(document.description if document else "", limit=limit),
        origin=candidate.origin,
        tier=tier_of(candidate.origin, trust),
        ruling=ruled.ruling,
        reasons=list(ruled.reasons),
        tree_id=candidate.tree_id,
        files=len(candidate.tree.files) if candidate.tree else 0,
        active=(candidate.origin_key, candidate.tree_id) in live,
    )
