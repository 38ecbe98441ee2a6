"""The requested changes: one flat record for every operation, read into a checked `Draft`, or refused as a whole."""

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentstead.memory import normal
from agentstead.memory.attributes import free_texts, read_attributes
from agentstead.memory.times import read_instant
from agentstead.memory.vocabulary import MemoryType
from agentstead.state import Invalid, is_id

ChangeOp = Literal["add", "revise", "supersede", "confirm", "retract", "archive", "restore", "pin", "unpin", "revert"]

TAGS = 16
TAG_CHARS = 40
EVIDENCE = 32
AUTHOR_CHARS = 80
THREAD_CHARS = 120
REASON_CHARS = 500

_KEY = re.compile(r"[a-z0-9._/-]{1,64}")
_CONTENT = (
    "text",
    "type",
    "scope",
    "key",
    "title",
    "attributes",
    "tags",
    "valid_from",
    "valid_to",
    "evidence",
    "thread",
)
_FIELDS: Mapping[ChangeOp, tuple[str, ...]] = {
    "add": (*_CONTENT, "place", "author"),
    "supersede": ("memory_id", "expected_version", *_CONTENT, "place", "author", "reason"),
    "revise": (
        *("memory_id", "expected_version", "text", "edits", "title", "attributes", "tags", "valid_from", "valid_to"),
        *("evidence", "reason"),
    ),
    "confirm": ("memory_id", "evidence", "reason"),
    "retract": ("memory_id", "expected_version", "reason"),
    "archive": ("memory_id", "expected_version", "reason"),
    "restore": ("memory_id", "expected_version", "reason"),
    "pin": ("memory_id", "expected_version", "reason"),
    "unpin": ("memory_id", "expected_version", "reason"),
    "revert": ("decision_id", "reason"),
}
_NEEDS: Mapping[ChangeOp, tuple[str, ...]] = {
    "add": ("text", "type"),
    "supersede": ("memory_id", "text"),
    "retract": ("memory_id", "reason"),
    "revert": ("decision_id",),
}


def _undescribed(schema: dict[str, Any]) -> None:
    """Publish no description of a nested record: its fields speak for themselves, and bytes are few."""
    schema.pop("description", None)


class Edit(BaseModel):
    """One exact replacement inside a memory's text."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_undescribed)

    old_text: str = Field(min_length=1)
    new_text: str = ""


class Change(BaseModel):
    """One requested change."""

    model_config = ConfigDict(extra="forbid", frozen=True, json_schema_extra=_undescribed)

    op: ChangeOp
    memory_id: str | None = None
    expected_version: int | None = None
    text: str | None = None
    type: MemoryType | None = None
    scope: str | None = None
    key: str | None = Field(None, description="A slot.")
    title: str | None = None
    attributes: dict[str, Any] | None = None
    tags: list[str] | None = None
    valid_from: str | None = None
    valid_to: str | None = None
    evidence: list[str] | None = Field(None, description="Ids, commit:HASH or URLs.")
    author: str | None = None
    thread: str | None = None
    place: int | None = Field(None, ge=0)
    edits: list[Edit] | None = None
    reason: str | None = None
    decision_id: str | None = None


@dataclass(frozen=True, slots=True)
class Draft:
    """A checked change. What was not given is None, so that a revision keeps what stands."""

    op: ChangeOp
    memory_id: str = ""
    expected_version: int | None = None
    text: str | None = None
    type: MemoryType | None = None
    scope: str | None = None
    key: str | None = None
    title: str | None = None
    attributes: Mapping[str, Any] | None = None
    tags: tuple[str, ...] | None = None
    valid_from: int | None = None
    valid_to: int | None = None
    evidence: tuple[str, ...] | None = None
    author: str = ""
    thread: str = ""
    place: int | None = None
    edits: tuple[tuple[str, str], ...] = ()
    reason: str = ""
    decision_id: str = ""

    def texts(self) -> list[str]:
        """Return every free text in it, for the scan."""
        lone = [self.text, self.title, self.key, self.author, self.thread, self.reason]
        lists = [*(self.tags or ()), *(self.evidence or ()), *(new for _, new in self.edits)]
        return [text for text in (*lone, *lists, *free_texts(self.attributes or {})) if text]


@dataclass(frozen=True, slots=True)
class _Place:
    """Which operation of a batch is being read, for its errors."""

    number: int
    op: str

    def error(self, what: str, remedy: str, *, code: str = "memory.invalid") -> Invalid:
        return Invalid(
            code, f"Operation {self.number} ({self.op}): {what}.", remedy=remedy, details={"operation": self.number}
        )


def read_changes(changes: Sequence[Change]) -> list[Draft]:
    """Check every change; raises `Invalid` for the first that cannot be, with its number from 1."""
    return [_read(change, _Place(number, change.op)) for number, change in enumerate(changes, 1)]


def _read(change: Change, at: _Place) -> Draft:
    _check_fields(change, at)
    text = None if change.text is None else _text(change.text, at)
    attributes = change.attributes
    if attributes is not None and change.type is not None:
        attributes = read_attributes(change.type, attributes)
    start = None if change.valid_from is None else read_instant(change.valid_from, what="valid_from")
    end = None if change.valid_to is None else read_instant(change.valid_to, what="valid_to")
    if start is not None and end is not None and end <= start:
        raise at.error("valid_to is not after valid_from", "Give an end after the start, or leave it open")
    return Draft(
        op=change.op,
        memory_id=change.memory_id or "",
        expected_version=change.expected_version,
        text=text,
        type=change.type,
        scope=change.scope,
        key=_key(change.key, at),
        title=_line(change.title, "title", normal.TITLE_CHARS, at) if change.title is not None else None,
        attributes=attributes,
        tags=_tags(change.tags, at),
        valid_from=start,
        valid_to=end,
        evidence=_evidence(change.evidence, at),
        author=_line(change.author or "", "author", AUTHOR_CHARS, at),
        thread=_line(change.thread or "", "thread", THREAD_CHARS, at),
        place=change.place,
        edits=tuple((edit.old_text, edit.new_text) for edit in change.edits or ()),
        reason=read_reason(change.reason),
        decision_id=change.decision_id or "",
    )


def _check_fields(change: Change, at: _Place) -> None:
    given = change.model_fields_set - {"op"}
    allowed = _FIELDS[change.op]
    needed = _NEEDS.get(change.op, ("memory_id",))
    foreign = [name for name in Change.model_fields if name in given and name not in allowed]
    missing = [name for name in needed if not getattr(change, name)]
    if foreign or missing:
        what = f"it does not take {', '.join(foreign)}" if foreign else f"it needs {', '.join(missing)}"
        raise at.error(what, f"{change.op} takes {', '.join(allowed)}.")
    if change.op == "revise":
        _check_revision(change, given, at)
    if change.memory_id is not None and not is_id(change.memory_id, "mem_"):
        raise at.error("memory_id is no memory's id", "Use an id that memory_recall or memory_list returned.")
    if change.place is not None and not change.thread:
        raise at.error("a place needs a thread", "Give the thread that the turn belongs to.")


def _check_revision(change: Change, given: set[str], at: _Place) -> None:
    if change.text is not None and change.edits:
        raise at.error("it takes text or edits, not both", "Send one of them.")
    if not given - {"memory_id", "expected_version", "reason"}:
        raise at.error("it changes nothing", "Give what is new: text, edits, title, tags, attributes, validity.")


def read_reason(reason: str | None) -> str:
    """Return the normal form of a reason; raises `Invalid` for one over 500 characters."""
    normalised = normal.normalise(reason or "", what="reason")
    if len(normalised) > REASON_CHARS:
        raise Invalid(
            "memory.too_large",
            f"The reason has {len(normalised)} characters; at most {REASON_CHARS} are kept.",
            remedy="Say it in a sentence.",
        )
    return normalised


def without_secrets(draft: Draft, redact: Callable[[str], str]) -> Draft:
    """Return a change whose every text went through `redact`."""
    return replace(
        draft,
        text=None if draft.text is None else redact(draft.text),
        title=None if draft.title is None else redact(draft.title)[: normal.TITLE_CHARS],
        tags=None if draft.tags is None else tuple(redact(tag)[:TAG_CHARS] for tag in draft.tags),
        attributes=None if draft.attributes is None else _redacted(draft.attributes, redact),
        edits=tuple((old, redact(new)) for old, new in draft.edits),
        reason=redact(draft.reason),
    )


def _redacted(value: Any, redact: Callable[[str], str]) -> Any:
    match value:
        case str():
            return redact(value)
        case Mapping():
            return {name: _redacted(item, redact) for name, item in value.items()}
        case list():
            return [_redacted(item, redact) for item in value]
        case _:
            return value


def check_text(text: str, *, what: str) -> str:
    """Return a text's normal form; raises `Invalid` for none, too much, or control characters."""
    normalised = normal.normalise(text, what=what)
    size = len(normalised.encode())
    if not normalised:
        raise Invalid("memory.invalid", f"{what} holds no text.", remedy="Say what should be kept.")
    if size > normal.TEXT_BYTES:
        raise Invalid(
            "memory.too_large",
            f"{what} has {size} bytes; a memory holds at most {normal.TEXT_BYTES}.",
            remedy="Keep the part that will matter later, or split it.",
            details={"bytes": size, "most": normal.TEXT_BYTES},
        )
    return normalised


def _text(text: str, at: _Place) -> str:
    return check_text(text, what=f"The text of operation {at.number}")


def _line(text: str, what: str, most: int, at: _Place) -> str:
    line = " ".join(normal.normalise(text, what=what).split())
    if len(line) > most:
        raise at.error(
            f"{what} has {len(line)} characters; at most {most} are kept",
            f"Shorten the {what}.",
            code="memory.too_large",
        )
    return line


def _key(key: str | None, at: _Place) -> str | None:
    if key is not None and not _KEY.fullmatch(key):
        raise at.error(f"{key[:64]!r} is no key", "A key has 1 to 64 of a-z, 0-9 and . _ / - only.", code="memory.key")
    return key


def _tags(tags: Sequence[str] | None, at: _Place) -> tuple[str, ...] | None:
    if tags is None:
        return None
    if len(tags) > TAGS:
        raise at.error(f"it has {len(tags)} tags; at most {TAGS} are kept", "Drop some.", code="memory.too_large")
    lines = [_line(tag, "tag", TAG_CHARS, at).lower() for tag in tags]
    return tuple(sorted({line for line in lines if line}))


def _evidence(evidence: Sequence[str] | None, at: _Place) -> tuple[str, ...] | None:
    if evidence is not None and len(evidence) > EVIDENCE:
        raise at.error(
            f"it has {len(evidence)} pieces of evidence; at most {EVIDENCE} are kept",
            "Keep those that prove it.",
            code="memory.too_large",
        )
    return None if evidence is None else tuple(dict.fromkeys(ref.strip() for ref in evidence))
