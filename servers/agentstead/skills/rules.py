"""The format's rules, one function a field, each fault as the strict verdict sees it."""

from collections.abc import Iterator
from typing import Final

from agentstead.skills.diagnostics import Diagnostic, Severity
from agentstead.skills.frontmatter import Fields, Listing, Node, Split, Text
from agentstead.skills.naming import name_faults, normal_name
from agentstead.skills.patterns import split_patterns
from agentstead.skills.unseen import reveal_line

MAX_DESCRIPTION: Final = 1024
MAX_COMPATIBILITY: Final = 500
MAX_BODY_LINES: Final = 500
MAX_BODY_TOKENS: Final = 5000
CHARACTERS_A_TOKEN: Final = 4

FIELDS: Final = ("name", "description", "license", "compatibility", "metadata", "allowed-tools")
# Fields that other hosts read. The first is honoured since it narrows; the rest would run or widen, and never act.
USER_ONLY_FIELD: Final = "disable-model-invocation"
FOREIGN_FIELDS: Final = frozenset({"hooks", "model", "agent", "context"})


def faults(fields: Fields, parts: Split, *, folder: str) -> Iterator[Diagnostic]:
    """Yield what is wrong with the fields and the body of a skill in a folder of that name, as an author is told."""
    for key, node in fields.entries:
        if key.value not in FIELDS:
            yield _at(key, "fm.unknown_field", _unknown(key.value), field=reveal_line(key.value, limit=64))
        if flow := _first_flow(node):
            yield _at(flow, "fm.flow", f"'{reveal_line(key.value, limit=64)}' is written with brackets or braces.")
    yield from _name_faults(fields, folder=folder)
    yield from _description_faults(fields)
    yield from _compatibility_faults(fields)
    yield from _metadata_faults(fields)
    yield from _tools_faults(fields)
    yield from _body_faults(parts)


def _unknown(key: str) -> str:
    if key == USER_ONLY_FIELD:
        return f"'{key}' is a field of other hosts; it is honoured: only a person may activate the skill."
    if key in FOREIGN_FIELDS:
        return f"'{key}' is a field of other hosts; it is never acted on."
    return f"'{reveal_line(key, limit=64)}' is no field of a skill: {', '.join(FIELDS)}."


def _name_faults(fields: Fields, *, folder: str) -> Iterator[Diagnostic]:
    node = fields.get("name")
    name = normal_name(fields.text("name"))
    if node is None or not name:
        yield _at(node or fields, "name.missing", "The skill has no name.", field="name")
        return
    for code, message in name_faults(name, folder=folder):
        severity = Severity.WARNING if code == "name.mixed_script" else Severity.ERROR
        yield _at(node, code, reveal_line(message, limit=240), field="name", severity=severity)


def _description_faults(fields: Fields) -> Iterator[Diagnostic]:
    node = fields.get("description")
    description = fields.text("description")
    if node is None or not description.strip():
        yield _at(node or fields, "description.missing", "The skill has no description.", field="description")
    elif len(description) > MAX_DESCRIPTION:
        message = f"The description has {len(description)} characters."
        yield _at(node, "description.length", message, field="description")


def _compatibility_faults(fields: Fields) -> Iterator[Diagnostic]:
    node = fields.get("compatibility")
    if node is None:
        return
    if not isinstance(node, Text):
        yield _at(node, "compatibility.type", "The value is not text.", field="compatibility")
    elif not 1 <= len(node.value) <= MAX_COMPATIBILITY:
        message = f"The value has {len(node.value)} characters."
        yield _at(node, "compatibility.length", message, field="compatibility")


def _metadata_faults(fields: Fields) -> Iterator[Diagnostic]:
    node = fields.get("metadata")
    if node is None:
        return
    if not isinstance(node, Fields):
        yield _at(node, "metadata.type", "The value is not a map.", field="metadata")
        return
    for key, value in node.entries:
        if not isinstance(value, Text):
            message = f"The value of '{reveal_line(key.value, limit=64)}' is not text."
            yield _at(value, "metadata.type", message, field="metadata")


def _tools_faults(fields: Fields) -> Iterator[Diagnostic]:
    node = fields.get("allowed-tools")
    if node is None:
        return
    if not isinstance(node, Text):
        yield _at(node, "allowed_tools.syntax", "The value is not one line of text.", field="allowed-tools")
        return
    _, fault = split_patterns(node.value)
    if fault:
        yield _at(node, "allowed_tools.syntax", reveal_line(fault, limit=240), field="allowed-tools")


def _body_faults(parts: Split) -> Iterator[Diagnostic]:
    lines, tokens = parts.body.count("\n") + 1, len(parts.body) // CHARACTERS_A_TOKEN
    if lines > MAX_BODY_LINES or tokens > MAX_BODY_TOKENS:
        message = f"The body has {lines} lines and about {tokens} tokens."
        yield Diagnostic("body.long", Severity.NOTE, message, line=parts.body_line)


def _first_flow(node: Node) -> Node | None:
    match node:
        case Text():
            return None
        case Listing() | Fields() if node.flow:
            return node
        case Listing():
            return next((flow for item in node.items if (flow := _first_flow(item))), None)
        case Fields():
            return next((flow for _, value in node.entries if (flow := _first_flow(value))), None)


def _at(node: Node, code: str, message: str, *, field: str = "", severity: Severity = Severity.ERROR) -> Diagnostic:
    return Diagnostic(code, severity, message, field=field, line=node.line, column=node.column)
