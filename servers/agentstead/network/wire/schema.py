"""The protocol's JSON Schema, run stage by stage so that the first broken rule in the order of receipt gives the code.

The schema carries its own codes (`x-refusal`); a keyword without one has the code listed here.
"""

import json
from collections.abc import Iterator, Mapping
from importlib import resources
from typing import Any, Final, Literal, cast

from jsonschema import Draft202012Validator, TypeChecker
from jsonschema.exceptions import ValidationError
from jsonschema.protocols import Validator
from jsonschema.validators import extend

from agentstead.network.wire.refusal import LOCAL_CODES, REASONS, LocalCode, Reason, Refused, pointer_of

Stage = Literal["header", "placement", "content"]

_CODES: Final[Mapping[str, LocalCode]] = {
    "type": "bad_type",
    "required": "missing_field",
    "minimum": "bad_timestamp",
    "maxLength": "bad_identifier",
    "pattern": "bad_identifier",
}
_MEANINGS: Final[Mapping[str, str]] = {
    "type": "The member has another type than the protocol gives it.",
    "required": "A required member is missing.",
    "const": "The value is not the one that the protocol fixes.",
    "enum": "The value is not in the protocol's closed set.",
    "not": "A member of an older protocol is present.",
    "minimum": "The number is too small.",
    "maxLength": "The identifier is too long.",
    "pattern": "The text does not match the member's grammar.",
    "uniqueItems": "The list holds an item twice.",
}


def load_schema() -> dict[str, Any]:
    """Return the published schema as a fresh document."""
    text = (resources.files("agentstead.network.wire") / "envelope.schema.json").read_text("utf-8")
    document: dict[str, Any] = json.loads(text)
    return document


def check(stage: Stage, envelope: Mapping[str, Any]) -> None:
    """Raise `Refused` for the first rule of `stage` that a parsed envelope breaks."""
    error = next(_VALIDATORS[stage].iter_errors(envelope), None)
    if error is not None:
        raise _refused(stage, error)


def is_valid(envelope: Any) -> bool:
    """Tell whether a parsed value satisfies the whole schema."""
    return next(_WHOLE.iter_errors(envelope), None) is None


def _refused(stage: Stage, error: ValidationError) -> Refused:
    keyword = str(error.validator)
    path = [*error.absolute_path, *_missing(keyword, error)]
    what = _MEANINGS.get(keyword, "The member breaks a rule of the protocol.")
    reason, local = _code(stage, keyword, error, in_body=path[:1] == ["body"])
    return Refused(reason, local, what=what, pointer=pointer_of(path))


def _code(stage: Stage, keyword: str, error: ValidationError, *, in_body: bool) -> tuple[Reason, LocalCode | None]:
    if stage == "content" and in_body:
        return "malformed", "bad_body"
    schema = error.schema if isinstance(error.schema, dict) else {}
    named: Any = schema.get("x-refusal", {}).get(keyword)
    if named in REASONS:
        return named, None
    return "malformed", named if named in LOCAL_CODES else _CODES.get(keyword, "bad_type")


def _missing(keyword: str, error: ValidationError) -> list[str]:
    if keyword != "required":
        return []
    wanted: Any = error.validator_value
    present: Any = error.instance
    return [name for name in wanted if name not in present][:1]


def _is_integer(_: TypeChecker, value: Any) -> bool:
    # 1.0 and 1e9 are integers to JSON Schema, but not to the protocol: the token has neither fraction nor exponent.
    return isinstance(value, int) and not isinstance(value, bool)


def _unique(_: Validator, wanted: bool, items: Any, __: Mapping[str, Any]) -> Iterator[ValidationError]:
    """Compare strings by a set: the library's pairwise comparison of mixed items costs hours on one megabyte."""
    strings = [item for item in items if isinstance(item, str)] if isinstance(items, list) else []
    if wanted and len(set(strings)) != len(strings):
        yield ValidationError("an item stands twice")


_Strict: Any = extend(  # type: ignore[no-untyped-call] # the stubs leave it out
    Draft202012Validator,
    validators={"uniqueItems": _unique},
    type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
)
_DOCUMENT = load_schema()


def _stage(name: Stage) -> Validator:
    if name == "header":
        header = {key: value for key, value in _DOCUMENT.items() if key != "allOf"}
        return cast("Validator", _Strict(header))
    return cast("Validator", _Strict({"$ref": f"#/$defs/{name}", "$defs": _DOCUMENT["$defs"]}))


_VALIDATORS: Final[Mapping[Stage, Validator]] = {
    "header": _stage("header"),
    "placement": _stage("placement"),
    "content": _stage("content"),
}
_WHOLE: Final[Validator] = _Strict(_DOCUMENT)
