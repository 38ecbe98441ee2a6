"""The forms in which a secret value turns up in text: raw, base64, hex, URL-encoded, JSON-escaped."""

import base64
import json
from collections.abc import Iterator
from urllib.parse import quote, quote_plus

LEAST_CHARS = 8
_LINE_CHARS = 16

# of a base64 text, by how many bytes stand before the value: leading characters that also carry those bytes
_LEAD = (0, 2, 3)


def forms_of(value: str) -> list[str]:
    """Return every form of `value` that is at least 8 characters long, longest first."""
    found = {form for form in _forms(value) if len(form) >= LEAST_CHARS}
    return sorted(found, key=lambda form: (-len(form), form))


def _forms(value: str) -> Iterator[str]:
    yield value
    yield from (line.strip() for line in value.splitlines() if len(line.strip()) >= _LINE_CHARS)
    data = value.encode("utf-8", "surrogatepass")
    yield data.hex()
    yield data.hex().upper()
    for quoted in (quote(data, safe=""), quote(data), quote_plus(data)):
        yield quoted
        yield _lower_escapes(quoted)
    for text in (json.dumps(value), json.dumps(value, ensure_ascii=False)):
        yield text[1:-1]
        yield text[1:-1].replace("/", "\\/")
    yield from _base64_forms(data)


def _base64_forms(data: bytes) -> Iterator[str]:
    """Yield the characters that carry only this value, for each place it can have among groups of three bytes."""
    for before, lead in enumerate(_LEAD):
        bits = 8 * (before + len(data))
        for encode in (base64.b64encode, base64.urlsafe_b64encode):
            yield encode(b"\0" * before + data).decode()[lead : bits // 6]


def _lower_escapes(quoted: str) -> str:
    parts = quoted.split("%")
    return "%".join([parts[0], *(part[:2].lower() + part[2:] for part in parts[1:])])
