"""The word lists that recall and the write controller share, read once from `words.toml`."""

import tomllib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from importlib import resources


@dataclass(frozen=True, slots=True)
class Words:
    """The lists in the shape that their readers want."""

    stop_words: frozenset[str]
    first_of_group: Mapping[str, str]
    time_words: frozenset[str]
    when_openers: tuple[str, ...]
    negations: frozenset[str]


@cache
def words() -> Words:
    """Return the lists of this installation."""
    data = tomllib.loads((resources.files(__package__) / "words.toml").read_text("utf-8"))
    forms, twins = _firsts(data["irregular_forms"]), _firsts(data["twins"])
    first = {word: twins.get(base, base) for word, base in forms.items()} | twins
    return Words(
        stop_words=frozenset(data["stop_words"]),
        first_of_group=first,
        time_words=frozenset(data["time_words"]),
        when_openers=tuple(data["when_openers"]),
        negations=frozenset(data["negations"]),
    )


def _firsts(groups: Iterable[list[str]]) -> dict[str, str]:
    return {word: group[0] for group in groups for word in group}
