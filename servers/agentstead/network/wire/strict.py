"""Reading untrusted bytes as strict I-JSON: one object, no member twice, no number that a double cannot hold.

Size and nesting are bounded before anything is built, so that no input costs more than its length.
"""

import json
import math
import re
from typing import Any, Never

from agentstead.network.wire.grammar import MAX_BYTES, MAX_NESTING, MAX_SAFE_INTEGER
from agentstead.network.wire.refusal import Refused

_BOM = b"\xef\xbb\xbf"
# A string (also an unfinished one, so that the scan stays linear) or a bracket.
_SHAPE = re.compile(r'"[^"\\]*+(?:\\.[^"\\]*+)*+"?+|[\[\]{}]', re.DOTALL)
_SURROGATE_ESCAPE = re.compile(r"\\u[dD][89a-fA-F]")
_INTEGER_DIGITS = 17


def parse(raw: bytes, *, max_bytes: int = MAX_BYTES) -> dict[str, Any]:
    """Return the object in `raw`.

    Raises `Refused` with `malformed` and the local code of what is wrong.
    """
    if len(raw) > max_bytes:
        raise Refused(
            "malformed", "envelope_too_large", what=f"{len(raw)} bytes are more than the limit of {max_bytes}."
        )
    text = _decode(raw)
    _check_nesting(text)
    value = _load(text)
    if not isinstance(value, dict):
        raise Refused("malformed", "not_object", what=f"The top level is {_name(value)}, not an object.")
    if _SURROGATE_ESCAPE.search(text):
        _refuse_lone_surrogates(value)
    return value


def _decode(raw: bytes) -> str:
    if raw.startswith(_BOM):
        raise Refused("malformed", "not_json", what="The text starts with a byte order mark.")
    try:
        return raw.decode("utf-8")
    except UnicodeDecodeError as error:
        raise Refused("malformed", "not_json", what=f"Byte {error.start} is not UTF-8.") from None


def _check_nesting(text: str) -> None:
    if text.count("[") + text.count("{") <= MAX_NESTING:
        return
    depth = 0
    for match in _SHAPE.finditer(text):
        mark = match[0]
        if mark in "[{":
            depth += 1
            if depth > MAX_NESTING:
                raise Refused("malformed", "too_deep", what=f"Objects and arrays nest deeper than {MAX_NESTING}.")
        elif mark in "]}":
            depth -= 1


def _load(text: str) -> Any:
    try:
        return _DECODER.decode(text)
    except json.JSONDecodeError as error:
        raise Refused("malformed", "not_json", what=f"Character {error.pos} breaks JSON's grammar.") from None


def _members(pairs: list[tuple[str, Any]]) -> dict[str, Any]:
    members = dict(pairs)
    if len(members) != len(pairs):
        raise Refused("malformed", "duplicate_key", what="An object names a member twice.")
    return members


def _integer(token: str) -> int:
    if len(token) > _INTEGER_DIGITS or abs(int(token)) > MAX_SAFE_INTEGER:
        raise Refused("malformed", "integer_range", what="An integer lies outside of plus or minus 2^53 - 1.")
    return int(token)


def _fraction(token: str) -> float:
    number = float(token)
    if not math.isfinite(number):
        raise Refused("malformed", "integer_range", what="A number is too large for a double.")
    return number


def _constant(token: str) -> Never:
    raise Refused("malformed", "not_json", what=f"{token} is no JSON value.")


_DECODER = json.JSONDecoder(
    object_pairs_hook=_members, parse_int=_integer, parse_float=_fraction, parse_constant=_constant
)


def _refuse_lone_surrogates(value: Any) -> None:
    pending = [value]
    while pending:
        item = pending.pop()
        if isinstance(item, str):
            _check_scalar(item)
        elif isinstance(item, dict):
            pending.extend(item)
            pending.extend(item.values())
        elif isinstance(item, list):
            pending.extend(item)


def _check_scalar(text: str) -> None:
    try:
        text.encode()
    except UnicodeEncodeError:
        raise Refused("malformed", "not_json", what="A string holds half of a surrogate pair.") from None


def _name(value: Any) -> str:
    match value:
        case list():
            return "an array"
        case str():
            return "a string"
        case None | bool():
            return json.dumps(value)
        case _:
            return "a number"
