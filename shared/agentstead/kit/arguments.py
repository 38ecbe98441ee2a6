"""Reading a caller's arguments into an operation's model, with errors that say what to change and echo no value."""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from types import UnionType
from typing import Annotated, Any, Literal, Union, get_args, get_origin

import rfc8785
from pydantic import BaseModel, ValidationError

from agentstead.kit.operation import KEY, Operation
from agentstead.state import Invalid, canonical_json, sha256_hex

ERRORS_SHOWN = 5


@dataclass(frozen=True, slots=True)
class Arguments:
    """Validated arguments: typed values for the function, their JSON form, its digest, and the idempotency key."""

    values: Mapping[str, Any]
    json: Mapping[str, Any]
    sha256: str
    key: str | None


def read_arguments(operation: Operation, raw: Mapping[str, Any]) -> Arguments:
    """Validate `raw`; raises `Invalid` with `tool.invalid_arguments` naming each field and what it should be."""
    try:
        model = operation.arguments.model_validate(_parsed_strings(operation.arguments, raw))
        dumped = model.model_dump(mode="json", exclude_unset=True, exclude={KEY})
        digest = sha256_hex(canonical_json(dumped))
    except ValidationError as error:
        raise _invalid(operation, _problems(operation, error)) from None
    except (rfc8785.CanonicalizationError, UnicodeError, ValueError):
        raise _invalid(operation, ["a number or text has no canonical JSON form"]) from None
    values = {name: getattr(model, name) for name in operation.arguments.model_fields if name != KEY}
    return Arguments(values, dumped, digest, getattr(model, KEY, None))


def _parsed_strings(model: type[BaseModel], raw: Mapping[str, Any]) -> dict[str, Any]:
    """Read JSON in a string where a list or object is asked for: some hosts send it so."""
    parsed = dict(raw)
    for name, value in raw.items():
        field = model.model_fields.get(name)
        if (
            field is not None
            and isinstance(value, str)
            and value[:1] in ("[", "{")
            and not _takes_text(field.annotation)
        ):
            try:
                parsed[name] = json.loads(value)
            except ValueError:
                continue
    return parsed


def _takes_text(annotation: Any) -> bool:
    origin = get_origin(annotation)
    if origin in (Union, UnionType):
        return any(_takes_text(each) for each in get_args(annotation))
    if origin is Annotated:
        return _takes_text(get_args(annotation)[0])
    return annotation in (str, Any) or origin is Literal


def _problems(operation: Operation, error: ValidationError) -> list[str]:
    found = []
    for each in error.errors(include_url=False, include_input=False, include_context=False):
        where = ".".join(str(part)[:40] for part in each["loc"]) or "arguments"
        if each["type"] == "extra_forbidden":
            known = ", ".join(operation.arguments.model_fields)
            found.append(f"{where}: unknown argument (known: {known})")
        else:
            found.append(f"{where}: {each['msg'][:1].lower()}{each['msg'][1:]}")
    return found


def _invalid(operation: Operation, problems: list[str]) -> Invalid:
    more = len(problems) - ERRORS_SHOWN
    shown = "; ".join(problems[:ERRORS_SHOWN]) + (f"; and {more} more" if more > 0 else "")
    return Invalid(
        "tool.invalid_arguments",
        f"{operation.name} cannot be called so: {shown}.",
        remedy="Correct the named arguments; nothing was changed.",
        details={"problems": problems[:20]},
    )
