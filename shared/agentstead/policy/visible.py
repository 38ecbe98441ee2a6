"""Text for a person's eyes: what could hide, reorder or break a line is written out, and length is bounded."""

import unicodedata

# kept as they are: they join or colour visible characters
_HARMLESS = frozenset("\u200d\ufe0f")
_NAMED = {"\n": "\\n", "\r": "\\r", "\t": "\\t"}


def visible(text: str, *, most: int = 2000) -> str:
    """Return `text` on one line, with control, format, bidi, tag and non-ASCII space characters as `\\u{...}`."""
    cut = text[:most]
    shown = cut if cut.isascii() and cut.isprintable() else "".join(map(_shown, cut))
    return shown if len(text) <= most else f"{shown} ... ({len(text) - most} characters more)"


def hidden_in(text: str) -> tuple[str, ...]:
    """Return the code points in `text` that a person would not see, sorted."""
    return tuple(sorted({f"U+{ord(char):04X}" for char in text if char != "\n" and _is_hidden(char)}))


def _shown(char: str) -> str:
    if char in _NAMED:
        return _NAMED[char]
    return f"\\u{{{ord(char):04X}}}" if _is_hidden(char) else char


def _is_hidden(char: str) -> bool:
    if char == " " or char in _HARMLESS:
        return False
    # C: controls, format characters, surrogates, unassigned; Z: separators; the rest of the fillers look like nothing
    return unicodedata.category(char)[0] in "CZ" or char in "\u115f\u1160\u3164\uffa0\u2800"
