"""Judge the bytes of one SKILL.md, strictly for authors or leniently for readers, and say everything that is wrong."""

import json
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final

from agentstead.skills.diagnostics import Diagnostic, Mode, Severity, has_error
from agentstead.skills.frontmatter import (
    Fields,
    FrontMatterRefused,
    Listing,
    Node,
    Split,
    Text,
    parse,
    requote,
    split,
)
from agentstead.skills.naming import is_usable, normal_name
from agentstead.skills.patterns import split_patterns
from agentstead.skills.rules import USER_ONLY_FIELD, faults

MAX_SKILL_FILE_BYTES: Final = 1024 * 1024
RESERVED_METADATA: Final = "io.modelcontextprotocol/"

_BOM: Final = b"\xef\xbb\xbf"
# What a reader of other people's skills forgives.
_FORGIVEN: Final = frozenset(
    {
        "fm.flow",
        "fm.unknown_field",
        "name.length",
        "name.case",
        "name.hyphen",
        "name.chars",
        "name.folder",
        "description.length",
        "compatibility.type",
        "compatibility.length",
        "metadata.type",
        "allowed_tools.syntax",
        "file.encoding",
    }
)


@dataclass(frozen=True, slots=True)
class SkillDocument:
    """What a SKILL.md says; ``name`` in its normal form, every value as text."""

    name: str
    description: str
    body: str
    body_line: int
    license: str = ""
    compatibility: str = ""
    metadata: Mapping[str, str] = field(default_factory=dict)
    allowed_tools: tuple[str, ...] = ()
    user_only: bool = False

    def words(self, key: str) -> tuple[str, ...]:
        """Return the space-separated words of one of our metadata keys, ``agentstead.<key>``."""
        return tuple(self.metadata.get(f"agentstead.{key}", "").split())


@dataclass(frozen=True, slots=True)
class Judged:
    """The outcome for one file: a document unless an error stands among the diagnostics."""

    document: SkillDocument | None
    diagnostics: tuple[Diagnostic, ...]

    @property
    def valid(self) -> bool:
        """Say whether no diagnostic is an error."""
        return not has_error(self.diagnostics)


def judge(data: bytes, *, folder: str, mode: Mode) -> Judged:
    """Judge the bytes of a SKILL.md that stands in a folder of that name. Never raises: every fault is a diagnostic."""
    if len(data) > MAX_SKILL_FILE_BYTES:
        return _refused(Diagnostic("fm.too_large", Severity.ERROR, f"The file has {len(data)} bytes."))
    found: list[Diagnostic] = []
    if data.startswith(_BOM):
        found.append(Diagnostic("file.encoding", Severity.ERROR, "The file starts with a byte order mark.", line=1))
        data = data.removeprefix(_BOM)
    try:
        text = data.decode()
    except UnicodeDecodeError as error:
        line = data.count(b"\n", 0, error.start) + 1
        message = f"Byte {error.start} is not UTF-8 (0x{data[error.start]:02x})."
        return _refused(Diagnostic("file.encoding", Severity.ERROR, message, line=line))
    try:
        parts = split(text)
        fields = _fields(parts, mode=mode, found=found)
    except FrontMatterRefused as refused:
        return Judged(None, (*_weigh(found, mode=mode), refused.diagnostic))
    return _judged(fields, parts, folder=folder, mode=mode, found=found)


def _refused(diagnostic: Diagnostic) -> Judged:
    return Judged(None, (diagnostic,))


def _fields(parts: Split, *, mode: Mode, found: list[Diagnostic]) -> Fields:
    try:
        return parse(parts.frontmatter)
    except FrontMatterRefused as refused:
        quoted, touched = requote(parts.frontmatter)
        if mode == "strict" or refused.diagnostic.code != "fm.yaml" or not touched:
            raise
        try:
            fields = parse(quoted)
        except FrontMatterRefused:
            raise refused from None
        message = f"Read with quotes around the value of {', '.join(touched)}, which holds a colon."
        place = refused.diagnostic
        found.append(Diagnostic("fm.yaml", Severity.WARNING, message, line=place.line, column=place.column))
        return fields


def _judged(fields: Fields, parts: Split, *, folder: str, mode: Mode, found: list[Diagnostic]) -> Judged:
    found.extend(faults(fields, parts, folder=folder))
    diagnostics = _weigh(found, mode=mode, name=fields.text("name"))
    if has_error(diagnostics):
        return Judged(None, diagnostics)
    return Judged(_document(fields, parts), diagnostics)


def _weigh(found: list[Diagnostic], *, mode: Mode, name: str = "") -> tuple[Diagnostic, ...]:
    if mode == "strict":
        return tuple(found)
    unusable = bool(name) and not is_usable(normal_name(name))
    kept = {"name.chars", "name.length"} if unusable else set()
    return tuple(
        remark.softened() if remark.severity is Severity.ERROR and remark.code in _FORGIVEN - kept else remark
        for remark in found
    )


def _document(fields: Fields, parts: Split) -> SkillDocument:
    return SkillDocument(
        name=normal_name(fields.text("name")),
        description=fields.text("description").strip(),
        body=parts.body,
        body_line=parts.body_line,
        license=fields.text("license").strip(),
        compatibility=fields.text("compatibility").strip(),
        metadata=_metadata(fields.get("metadata")),
        allowed_tools=_tools(fields.get("allowed-tools")),
        user_only=fields.text(USER_ONLY_FIELD).strip().lower() in ("true", "yes", "on", "1"),
    )


def _metadata(node: Node | None) -> dict[str, str]:
    if not isinstance(node, Fields):
        return {}
    return {
        key.value: value.value if isinstance(value, Text) else json.dumps(_plain(value), ensure_ascii=False)
        for key, value in node.entries
        if not key.value.startswith(RESERVED_METADATA)
    }


def _tools(node: Node | None) -> tuple[str, ...]:
    if isinstance(node, Text):
        return split_patterns(node.value)[0]
    if isinstance(node, Listing):
        return tuple(
            pattern for item in node.items if isinstance(item, Text) for pattern in split_patterns(item.value)[0]
        )
    return ()


def _plain(node: Node) -> object:
    match node:
        case Text():
            return node.value
        case Listing():
            return [_plain(item) for item in node.items]
        case Fields():
            return {key.value: _plain(value) for key, value in node.entries}
