"""The attributes of each type of memory: small closed records, checked strictly and stored as canonical JSON."""

from collections.abc import Mapping
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field, ValidationError

from agentstead.memory.vocabulary import MemoryType
from agentstead.state import Invalid, canonical_json

ATTRIBUTES_BYTES = 8_192

Knowledge = Literal["yes", "no", "unknown"]


class _Attributes(BaseModel):
    model_config = ConfigDict(extra="forbid", frozen=True, strict=True)


class _Preference(_Attributes):
    of: str | None = None


class _Instruction(_Attributes):
    of: str | None = None
    until: str | None = None


class _Fact(_Attributes):
    attribute: str | None = None
    value: str | None = None


class Assumption(_Attributes):
    """One thing that a choice rests on, and whether it still holds."""

    id: str = Field(min_length=1, max_length=40)
    text: str = Field(min_length=1)
    holds: Knowledge = "unknown"


class _Choice(_Attributes):
    alternatives: list[str] | None = None
    assumptions: list[Assumption] | None = None
    expected: str | None = None
    observed: str | None = None


class _Procedure(_Attributes):
    command: str | None = None
    worked: Knowledge | None = None


class _Incident(_Attributes):
    cause: str | None = None
    cure: str | None = None
    outcome: Literal["solved", "open", "dead_end"] | None = None


class _Person(_Attributes):
    name: str | None = None
    role: str | None = None


class _Reference(_Attributes):
    uri: str | None = None


class _Episode(_Attributes):
    speaker: str | None = None
    reply_to: str | None = None


MODELS: Mapping[MemoryType, type[BaseModel]] = {
    "preference": _Preference,
    "instruction": _Instruction,
    "fact": _Fact,
    "choice": _Choice,
    "procedure": _Procedure,
    "incident": _Incident,
    "person": _Person,
    "reference": _Reference,
    "episode": _Episode,
}


def read_attributes(memory_type: MemoryType, given: Mapping[str, Any]) -> dict[str, Any]:
    """Return the attributes that were given, checked; raises `Invalid` naming what does not fit, never its value."""
    model = MODELS[memory_type]
    try:
        checked = model.model_validate(dict(given)).model_dump(exclude_none=True)
        size = len(canonical_json(checked))
    except (ValidationError, UnicodeError, ValueError) as error:
        raise Invalid(
            "memory.invalid",
            f"The attributes do not fit a memory of type {memory_type}: {_problem(error)}.",
            remedy=f"A {memory_type} takes {', '.join(model.model_fields)}.",
        ) from None
    if size > ATTRIBUTES_BYTES:
        raise Invalid(
            "memory.too_large",
            f"The attributes have {size} bytes; at most {ATTRIBUTES_BYTES} are kept.",
            remedy="Put long text into `text`, or shorten the attributes.",
        )
    return checked


def free_texts(attributes: Mapping[str, Any]) -> list[str]:
    """Return every text inside attributes, for the scan."""
    found: list[str] = []
    for value in attributes.values():
        match value:
            case str():
                found.append(value)
            case Mapping():
                found.extend(free_texts(value))
            case list():
                found.extend(free_texts({str(place): item for place, item in enumerate(value)}))
    return found


def _problem(error: Exception) -> str:
    if not isinstance(error, ValidationError):
        return "they have no canonical JSON form"
    first = error.errors(include_url=False, include_input=False, include_context=False)[0]
    where = ".".join(str(part)[:40] for part in first["loc"])
    return f"{where}: {first['msg'][:1].lower()}{first['msg'][1:]}"
