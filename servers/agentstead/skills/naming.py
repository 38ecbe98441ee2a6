"""The rules for a skill's name, and the key under which a name is held."""

import unicodedata
from collections.abc import Iterator
from typing import Final

MAX_NAME: Final = 64
# A name longer than any folder's can name no folder.
MAX_LENIENT_NAME: Final = 255
_FORGIVEN: Final = frozenset("-_. ")
# Scripts that are written together: Latin with the East Asian ones.
_EAST_ASIAN: Final = frozenset({"CJK", "HIRAGANA", "KATAKANA", "HANGUL", "BOPOMOFO"})


def normal_name(written: str) -> str:
    """Return the one form of a name: stripped, NFKC."""
    return unicodedata.normalize("NFKC", written.strip())


def name_key(name: str) -> str:
    """Return the key under which a name is held, so that names that differ only in case are one."""
    return normal_name(normal_name(name).casefold())


def name_faults(name: str, *, folder: str) -> Iterator[tuple[str, str]]:
    """Yield (code, message) for each rule that the normal form ``name`` breaks in a folder of that name."""
    if len(name) > MAX_NAME:
        yield "name.length", f"The name has {len(name)} characters."
    if name != name.lower():
        yield "name.case", f"'{name}' has upper-case letters."
    if name.startswith("-") or name.endswith("-") or "--" in name:
        yield "name.hyphen", f"'{name}' has a hyphen at an end or two in a row."
    if odd := sorted({character for character in name if not (character.isalnum() or character == "-")}):
        yield "name.chars", f"'{name}' has characters that are not allowed: {' '.join(map(repr, odd))}."
    if normal_name(folder) != name:
        yield "name.folder", f"The skill is named '{name}', its folder '{folder}'."
    scripts = scripts_of(name)
    if len(scripts - _EAST_ASIAN - {"LATIN"}) + bool(scripts & (_EAST_ASIAN | {"LATIN"})) > 1:
        yield "name.mixed_script", f"'{name}' mixes letters of {', '.join(sorted(scripts)).title()}."


def is_usable(name: str) -> bool:
    """Say whether a lenient reader can hold a skill under this name: it fits a path segment and an address."""
    return (
        len(name) <= MAX_LENIENT_NAME
        and name not in (".", "..")
        and all(c.isalnum() or c in _FORGIVEN or unicodedata.category(c).startswith("M") for c in name)
    )


def scripts_of(name: str) -> frozenset[str]:
    """Return the scripts of the letters in ``name``, as the first words of their Unicode names."""
    return frozenset(unicodedata.name(c, "UNKNOWN").split(" ")[0] for c in name if c.isalpha())
