"""Normal forms of a memory's text: what is stored, what counts as the same, its title, slug and chunks."""

import hashlib
import re
import unicodedata

from agentstead.state import Invalid

TEXT_BYTES = 16_384
TITLE_CHARS = 120
SLUG_CHARS = 60
CHUNK_CHARS = 1_200
WHOLE_CHARS = 2_000
SHINGLE_WORDS = 5

_TRAILING = re.compile(r"[ \t]+$", re.MULTILINE)
_SPACE = re.compile(r"\s+")
_NOT_SLUG = re.compile(r"[^a-z0-9]+")
_END_MARKS = " \t\n.!?;:,"
_SENTENCE = re.compile(r"(?<=[.!?])\s+")
_HEADING = re.compile(r"\n(?=#{1,6} )")
_QUESTION = re.compile(r"[^.!?\n]*\?")


def normalise(text: str, *, what: str) -> str:
    """Return `text` in NFC with line feeds and no trailing blanks.

    Raises `Invalid` with `memory.invalid` for control characters (but tab and newline) and lone surrogates.
    """
    plain = text.replace("\r\n", "\n").replace("\r", "\n")
    for place, char in enumerate(plain):
        if char not in "\t\n" and unicodedata.category(char) in ("Cc", "Cs"):
            raise Invalid(
                "memory.invalid",
                f"{what} holds the control character U+{ord(char):04X} at character {place}.",
                remedy="Remove it; of control characters only tab and newline are kept.",
                details={"offset": place},
            )
    return _TRAILING.sub("", unicodedata.normalize("NFC", plain)).strip("\n").rstrip()


def exact_form(text: str) -> str:
    """Return the form in which equal texts are equal: case folded, white space folded, end punctuation dropped."""
    return _SPACE.sub(" ", text.casefold()).strip(_END_MARKS)


def text_hash(text: str) -> str:
    """Return the hash of a text's exact form."""
    return hashlib.sha256(exact_form(text).encode()).hexdigest()


def title_of(text: str) -> str:
    """Return a title for a text without one: its first sentence or line, cut at a word."""
    line = next((line.lstrip("#->* \t") for line in text.splitlines() if line.strip("#->* \t")), "")
    sentence = _SENTENCE.split(line, maxsplit=1)[0].strip()
    return cut_at_word(sentence, TITLE_CHARS)


def cut_at_word(text: str, most: int) -> str:
    """Return `text` within `most` characters, with an ellipsis where words were left out."""
    if len(text) <= most:
        return text
    return text[: most - 1].rsplit(" ", 1)[0].rstrip(_END_MARKS) + "…"


def slug_of(title: str) -> str:
    """Return the file-name form of a title; `memory` where nothing of it is left."""
    spread = unicodedata.normalize("NFKD", title).casefold()
    slug = _NOT_SLUG.sub("-", spread).strip("-")[:SLUG_CHARS].strip("-")
    return slug or "memory"


def chunks(text: str) -> list[str]:
    """Return the parts that recall sees: the whole of a short text, else pieces of at most 1,200 characters.

    Cuts fall at headings, then blank lines, then sentences, then anywhere.
    """
    if len(text) <= WHOLE_CHARS:
        return [text]
    pieces = [text]
    for cut in (_HEADING, re.compile(r"\n\s*\n"), _SENTENCE):
        pieces = [part for piece in pieces for part in (cut.split(piece) if len(piece) > CHUNK_CHARS else [piece])]
    short = [
        piece[place : place + CHUNK_CHARS] for piece in pieces for place in range(0, max(len(piece), 1), CHUNK_CHARS)
    ]
    return _joined(short)


def shingles(words: list[str]) -> frozenset[tuple[str, ...]]:
    """Return the runs of five words; a shorter text is one run."""
    if len(words) <= SHINGLE_WORDS:
        return frozenset({tuple(words)}) if words else frozenset()
    return frozenset(tuple(words[place : place + SHINGLE_WORDS]) for place in range(len(words) - SHINGLE_WORDS + 1))


def questions(text: str) -> str:
    """Return the sentences of a text that end with a question mark."""
    return " ".join(part.strip() for part in _QUESTION.findall(text))


def _joined(pieces: list[str]) -> list[str]:
    """Join neighbours that fit into one chunk together."""
    joined: list[str] = []
    for piece in pieces:
        if joined and len(joined[-1]) + len(piece) + 1 <= CHUNK_CHARS:
            joined[-1] += "\n" + piece
        elif piece.strip():
            joined.append(piece)
    return joined
