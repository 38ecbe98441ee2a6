"""Values that are secrets by the name beside them: `password = ...`, `"apiKey": "..."`, `DB_TOKEN=...`.

Only what looks like a literal value is taken out: code that reads a value from elsewhere stays readable.
"""

import re
from collections.abc import Iterator

# a name that holds one of these is sensitive; the longer the stem, the shorter the value may be
_STRONG = ("password", "passwd", "passphrase", "secret", "credential")
_KEYED = ("api_key", "api-key", "apikey", "access_key", "accesskey", "private_key", "privatekey", "auth_token")
_WEAK = ("token",)
_LEAST = {**dict.fromkeys(_STRONG, 6), **dict.fromkeys(_KEYED, 8), **dict.fromkeys(_WEAK, 16)}

_HARMLESS_ENDINGS = ("hash", "digest", "count", "sha256", "name", "names", "id", "ids", "kind", "file", "path", "url")
_MEMBER = re.compile(
    r"(?P<tail>[A-Za-z0-9_-]{0,40})(?P<close>[\"']?)[ \t]{0,3}(?P<sign>=>|:=|=|:)[ \t]{0,3}"
    r"(?:(?P<quote>[\"'])(?P<quoted>[^\"'\r\n]{4,512})(?P=quote)|(?P<plain>[^\s\"'`,;&<>(){}\[\]|]{6,512}))"
)
_REFERENCE = re.compile(r"secret://|\$|%|\{|<|\[redacted:|\*{3}|https?://")
_LITERAL = re.compile(r"(?=.*[0-9])(?=.*[A-Za-z])|.*[!@#^+~/=]")


def replace_members(text: str, *, lower: str) -> str:
    """Return `text` without the values of sensitive names; `lower` is `text` in lower case, of the same length."""
    spans = sorted(_spans(text, lower))
    if not spans:
        return text
    parts: list[str] = []
    at = 0
    for start, end, kind in spans:
        if start >= at:
            parts += (text[at:start], f"[redacted:{kind}]")
            at = end
    return "".join([*parts, text[at:]])


def _spans(text: str, lower: str) -> Iterator[tuple[int, int, str]]:
    for stem, least in _LEAST.items():
        at = lower.find(stem)
        while at >= 0:
            found = _MEMBER.match(text, at + len(stem))
            if found is not None and _is_secret(text, at, stem, found, least):
                group = "quoted" if found["quoted"] is not None else "plain"
                yield found.start(group), found.end(group), stem
            at = lower.find(stem, at + len(stem))


def _is_secret(text: str, at: int, stem: str, found: re.Match[str], least: int) -> bool:
    tail = found["tail"].lower().rstrip("_-")
    if tail.endswith(_HARMLESS_ENDINGS) or (tail and tail.isalpha() and tail != "s"):
        return False
    value = found["quoted"] or found["plain"]
    if len(value) < least or _REFERENCE.match(value):
        return False
    if found["quoted"] is not None:
        return _quoted_is_secret(value, stem)
    return _shouted(text, at, found) or (_LITERAL.match(value) is not None and not _is_code(value))


def _quoted_is_secret(value: str, stem: str) -> bool:
    if " " in value or _is_code(value):
        return False
    return stem in _STRONG or _LITERAL.match(value) is not None


def _is_code(value: str) -> bool:
    """Tell whether a value reads like a path through names, a pattern or a format rather than like a literal."""
    words = re.split(r"[._/:-]", value)
    return len(words) > 1 and all(word.isalpha() or not word for word in words)


def _shouted(text: str, at: int, found: re.Match[str]) -> bool:
    """Tell whether this is a variable of an environment (`DB_PASSWORD=value`), where any text is the value."""
    name = text[at : found.end("tail")]
    return name.isupper() and found["sign"] == "=" and text[found.end("sign") - 2] not in " \t"
