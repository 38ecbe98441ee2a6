"""The protocol's JSON Schema, run stage by stage so that the first broken rule in the order of receipt gives the code.

The schema carries its own codes (`x-refusal`); a keyword without one has the code listed here.
"""

import json
from collections.abc import Iterator, Mapping
from functools import cache
from importlib import resources
from typing import TYPE_CHECKING, Any, Final, Literal

from agentstead.network.wire.refusal import LOCAL_CODES, REASONS, LocalCode, Reason, Refused, pointer_of

if TYPE_CHECKING:
    from jsonschema import ValidationError

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
    """Raise `Refused` for the first rule of `stage` that a parsed envelope breaks.

    A stage behind the header is for envelopes whose header passed.
    """
    kind = None if stage == "header" else envelope["kind"]
    error = next(_validator(stage, kind).iter_errors(envelope), None)
    if error is not None:
        raise _refused(stage, error)


def is_valid(envelope: Any) -> bool:
    """Tell whether a parsed value satisfies the whole schema."""
    return next(_strict()(load_schema()).iter_errors(envelope), None) is None


def _refused(stage: Stage, error: "ValidationError") -> Refused:
    keyword = str(error.validator)
    path = [*error.absolute_path, *_missing(keyword, error)]
    what = _MEANINGS.get(keyword, "The member breaks a rule of the protocol.")
    reason, local = _code(stage, keyword, error, in_body=path[:1] == ["body"])
    return Refused(reason, local, what=what, pointer=pointer_of(path))


def _code(stage: Stage, keyword: str, error: "ValidationError", *, in_body: bool) -> tuple[Reason, LocalCode | None]:
    if stage == "content" and in_body:
        return "malformed", "bad_body"
    schema = error.schema if isinstance(error.schema, dict) else {}
    named: Any = schema.get("x-refusal", {}).get(keyword)
    if named in REASONS:
        return named, None
    return "malformed", named if named in LOCAL_CODES else _CODES.get(keyword, "bad_type")


def _missing(keyword: str, error: "ValidationError") -> list[str]:
    if keyword != "required":
        return []
    wanted: Any = error.validator_value
    present: Any = error.instance
    return [name for name in wanted if name not in present][:1]


@cache
def _validator(stage: Stage, kind: str | None) -> Any:
    """Return the validator of a stage, for one kind where the stage has rules for each.

    References are resolved and rules of other kinds left out beforehand: measured, that halves the time of a message.
    """
    document = load_schema()
    if kind is None:
        part = {key: value for key, value in document.items() if key != "allOf"}
    else:
        rules = document["$defs"][stage]["allOf"]
        part = {"allOf": [_for_kind(rule, kind) for rule in rules]}
    return _strict()(_resolved(part, document["$defs"]))


def _for_kind(rule: Mapping[str, Any], kind: str) -> Mapping[str, Any]:
    """Return what a conditional rule asks of `kind`: a branch where the kind alone decides, else the rule itself."""
    asked = rule["if"].get("properties", {})
    allowed = asked.get("kind", {})
    fits = kind in allowed.get("enum", (allowed.get("const", kind),))
    if fits and (not allowed or len(asked) > 1):
        return rule
    branch: Mapping[str, Any] = rule.get("then" if fits else "else", {})
    return branch


def _resolved(schema: Any, definitions: Mapping[str, Any]) -> Any:
    """Return a schema with each `$ref` replaced by what it names; siblings stay beside it."""
    if isinstance(schema, list):
        return [_resolved(each, definitions) for each in schema]
    if not isinstance(schema, dict):
        return schema
    named = schema.get("$ref", "").rpartition("/")[2]
    target = _resolved(definitions[named], definitions) if named else {}
    rest = {key: value for key, value in schema.items() if key not in ("$ref", "$defs")}
    return {**target, **{key: _resolved(value, definitions) for key, value in rest.items()}}


@cache
def _strict() -> Any:
    """Return the library's validator with our integers and a linear `uniqueItems`.

    The library is imported here since it takes longer than all of this package, and only who sends needs it.
    """
    from jsonschema import Draft202012Validator
    from jsonschema.validators import extend

    return extend(  # type: ignore[no-untyped-call] # the stubs leave it out
        Draft202012Validator,
        validators={"uniqueItems": _unique},
        type_checker=Draft202012Validator.TYPE_CHECKER.redefine("integer", _is_integer),
    )


def _is_integer(_: Any, value: Any) -> bool:
    # 1.0 and 1e9 are integers to JSON Schema, but not to the protocol: the token has neither fraction nor exponent.
    return isinstance(value, int) and not isinstance(value, bool)


def _unique(_: Any, wanted: bool, items: Any, __: Mapping[str, Any]) -> Iterator["ValidationError"]:
    """Compare strings by a set: the library's pairwise comparison of mixed items costs hours on one megabyte."""
    from jsonschema import ValidationError

    strings = [item for item in items if isinstance(item, str)] if isinstance(items, list) else []
    if wanted and len(set(strings)) != len(strings):
        yield ValidationError("an item stands twice")
