"""The scan gate before every write: secrets and hidden text are refused, orders to agents are held for a person.

Findings name the rule and the place, never the text.
"""

import re
import tomllib
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Literal

from agentstead.memory.hidden import find_hidden
from agentstead.memory.vocabulary import Trust

ScanAction = Literal["hold", "reject"]

SECRET = "secret"  # noqa: S105 - the name of a rule


@dataclass(frozen=True, slots=True)
class Rule:
    """One shape that holds a text back, with examples of both sides."""

    id: str
    action: ScanAction
    pattern: re.Pattern[str]
    hits: tuple[str, ...]
    passes: tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Finding:
    """What a rule found, as `[start, end)` in the characters of one text of the change."""

    rule: str
    action: ScanAction
    start: int
    end: int


@cache
def rules() -> tuple[Rule, ...]:
    """Return the rules of this installation."""
    data = tomllib.loads((resources.files(__package__) / "scan.toml").read_text("utf-8"))
    return tuple(
        Rule(
            id=rule["id"],
            action=rule["action"],
            pattern=re.compile(rule["pattern"], re.IGNORECASE | re.MULTILINE),
            hits=tuple(rule["hits"]),
            passes=tuple(rule["passes"]),
        )
        for rule in data["rule"]
    )


def scan(texts: Iterable[str], *, redact: Callable[[str], str], trust: Trust) -> list[Finding]:
    """Return the findings in all texts of a change, the worst first; `redact` takes secrets out of a text.

    What would be held is rejected where nobody vouches for it (trust foreign).
    """
    found = [finding for text in texts for finding in _scan_one(text, redact)]
    if trust == Trust.FOREIGN:
        found = [Finding(each.rule, "reject", each.start, each.end) for each in found]
    return sorted(found, key=lambda each: each.action == "hold")


def _scan_one(text: str, redact: Callable[[str], str]) -> list[Finding]:
    found = [Finding(each.rule, each.action, each.start, each.end) for each in find_hidden(text)]
    clean = redact(text)
    if clean != text:
        found.append(Finding(SECRET, "reject", *_difference(text, clean)))
    hits = ((rule, rule.pattern.search(text)) for rule in rules())
    return found + [Finding(rule.id, rule.action, hit.start(), hit.end()) for rule, hit in hits if hit]


def _difference(text: str, clean: str) -> tuple[int, int]:
    """Return the part of `text` that `clean` replaces."""
    shorter = min(len(text), len(clean))
    start = next((place for place in range(shorter) if text[place] != clean[place]), shorter)
    most = shorter - start
    tail = next((place for place in range(most) if text[-1 - place] != clean[-1 - place]), most)
    return start, len(text) - tail
