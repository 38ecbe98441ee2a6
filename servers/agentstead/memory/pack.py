"""A context pack: whole memories within a budget of tokens, in an order that makes equal content equal bytes.

Retrieval restores information, never authority: only what a person set stands outside of the fence.
"""

from collections.abc import Sequence
from dataclasses import dataclass

from agentstead.memory.fence import HEADER, content_hash, fenced, note_text
from agentstead.memory.recall import Item
from agentstead.memory.scopes import read_scope
from agentstead.memory.store import Memory
from agentstead.memory.times import show_instant
from agentstead.memory.vocabulary import BEHAVIOURAL, Trust

OWNER_LABEL = "Set by the owner"
_SCOPES = ("home", "workspace", "agent", "session")
_HASH = "0" * 64


@dataclass(frozen=True, slots=True)
class Pack:
    """The text of a pack, what stands in it, and how many memories did not fit."""

    text: str
    items: tuple[Item, ...]
    left_out: int


def tokens(text: str) -> float:
    """Estimate the tokens of a text: a quarter for each ASCII byte, one for every other character."""
    plain = sum(1 for char in text if char < "\x80")
    return plain / 4 + (len(text) - plain)


def fill(tiers: Sequence[Sequence[Item]], *, budget: int) -> Pack:
    """Choose items tier by tier while they fit whole, and print them in their fixed order."""
    chosen: list[Item] = []
    spent = tokens(_printed([], budget))
    seen: set[str] = set()
    for item in (item for tier in tiers for item in tier):
        if item.memory.id in seen:
            continue
        seen.add(item.memory.id)
        cost = tokens(note_text(*_note(item)) + "\n")
        if spent + cost <= budget:
            chosen.append(item)
            spent += cost
    chosen.sort(key=_order)
    return Pack(_printed(chosen, budget), tuple(chosen), len(seen) - len(chosen))


def _printed(items: Sequence[Item], budget: int) -> str:
    """Return the pack's text; without items the frame at its widest, so that a budget holds for every content."""
    mark = content_hash([_note(item) for item in items]) if items else _HASH
    owner = [note_text(*_note(item)) for item in items if _is_owners(item.memory)]
    notes = [_note(item) for item in items if not _is_owners(item.memory)]
    body = []
    if owner or not items:
        body += [OWNER_LABEL, *owner]
    if notes or not items:
        body.append(fenced(notes))
    count, size = (len(items), round(tokens("\n".join(body)))) if items else (budget, budget)
    return "\n".join([f"{HEADER} {mark[:12]} items={count} tokens~{size}", *body])


def _is_owners(memory: Memory) -> bool:
    return memory.trust == Trust.PERSON and memory.type in BEHAVIOURAL


def _note(item: Item) -> tuple[str, str]:
    memory = item.memory
    flags = [
        *(["pinned"] if memory.pinned else []),
        *([f"stale:{memory.stale}"] if memory.stale != "no" else []),
        *(["suspect"] if memory.suspect else []),
        *([f"conflict:{item.conflict_with}"] if item.conflict_with else []),
    ]
    head = [memory.id, memory.type, memory.trust.word, show_instant(memory.edition.valid_from)[:10], *flags]
    return " ".join(head), memory.text


def _order(item: Item) -> tuple[int, str, str, str]:
    scope = item.memory.scope
    return _SCOPES.index(read_scope(scope).kind), scope, item.memory.type, item.memory.id
