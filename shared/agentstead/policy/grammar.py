"""The rule grammar: TOML text to rules, axes and faults. Examples run at load; one fault refuses the whole file.

Selectors of this version: `action`, `mcp` and `class`. Any other key is a fault that names file and line.
"""

import json
import re
import tomllib
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import date
from typing import Any, Literal, cast, get_args

from agentstead.identity.principals import Principal
from agentstead.policy.axes import AXES, Axes
from agentstead.policy.matchers import ArgumentTest, pointer_of
from agentstead.policy.model import RISKS, VERDICTS, Access, CallFacts, Layer, Risk
from agentstead.policy.rules import Condition, Match, Rule

FaultCode = Literal[
    "policy.syntax",
    "policy.unknown_key",
    "policy.duplicate_id",
    "policy.example_failed",
    "policy.claim_in_allow",
]

MOST_RULES = 2_000
MOST_BYTES = 1_048_576

_ID = re.compile(r"^[a-z0-9][a-z0-9.-]{0,63}$")
_HEADER = re.compile(r"^[ \t]*\[\[[ \t]*rule[ \t]*\]\]", re.MULTILINE)
_TOP = frozenset({"version", "only", "axes", "rule"})
_KEYS = frozenset(
    {
        *("id", "effect", "action", "mcp", "class", "args", "closed", "when"),
        *("reason", "instead", "expires", "match", "not-match"),
    }
)
_CONDITIONS: tuple[Condition, ...] = get_args(Condition)
_TEST_KEYS = frozenset({"min", "max", "not", "absent"})


@dataclass(frozen=True, slots=True)
class Fault:
    """What is wrong with a policy file: a stable code, where it stands, and what it is."""

    code: FaultCode
    file: str
    line: int
    what: str

    def __str__(self) -> str:
        return f"{self.code}: {self.file}:{self.line}: {self.what}"


@dataclass(frozen=True, slots=True)
class PolicyFile:
    """One file that holds: its rules, the axes it sets, and whether a managed one forbids others to allow."""

    file: str
    rules: tuple[Rule, ...]
    axes: Axes
    only: bool = False


class Faulty(Exception):
    """A file is refused; `fault` says why."""

    def __init__(self, fault: Fault) -> None:
        super().__init__(str(fault))
        self.fault = fault


@dataclass(frozen=True, slots=True)
class _Place:
    """Where a rule stands, to say it in a fault."""

    file: str
    text: str
    start: int

    def line(self, key: str = "") -> int:
        end = following.start() if (following := _HEADER.search(self.text, self.start + 1)) else len(self.text)
        pattern = re.compile(rf"^[ \t]*[\"']?{re.escape(key)}[\"']?[ \t]*[=.]", re.MULTILINE)
        found = pattern.search(self.text, self.start, end) if key else None
        return self.text.count("\n", 0, found.end() if found else self.start) + 1

    def fault(self, what: str, *, key: str = "", code: FaultCode = "policy.syntax") -> Faulty:
        return Faulty(Fault(code, self.file, self.line(key), what))


def read_policy(text: str, *, file: str, layer: Layer) -> PolicyFile:
    """Read one policy file; raises `Faulty` at its first fault."""
    top = _Place(file, text, 0)
    if len(text.encode()) > MOST_BYTES:
        raise top.fault(f"the file is larger than {MOST_BYTES} bytes")
    try:
        tables = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        found = re.search(r"line (\d+)", str(error))
        last = text.count("\n") + 1
        raise Faulty(Fault("policy.syntax", file, int(found[1]) if found else last, str(error))) from error
    for key in tables.keys() - _TOP:
        raise top.fault(f"`{key}` is no key of a policy file", key=key, code="policy.unknown_key")
    if tables.get("version") != 1:
        raise top.fault("`version = 1` is required", key="version")
    if not isinstance(tables.get("only", False), bool) or ("only" in tables and layer != "managed"):
        raise top.fault("`only` is true or false, in the managed layer", key="only")
    rules = tuple(_rules(tables.get("rule", []), file=file, text=text, layer=layer))
    return PolicyFile(file, rules, _axes(tables.get("axes", {}), top), bool(tables.get("only", False)))


def _rules(tables: Any, *, file: str, text: str, layer: Layer) -> Iterator[Rule]:
    top = _Place(file, text, 0)
    if not isinstance(tables, list) or len(tables) > MOST_RULES:
        raise top.fault(f"`[[rule]]` is a list of at most {MOST_RULES} rules", key="rule")
    starts = [found.start() for found in _HEADER.finditer(text)]
    starts = starts if len(starts) == len(tables) else [0] * len(tables)
    seen: set[str] = set()
    for table, start in zip(tables, starts, strict=True):
        place = _Place(file, text, start)
        rule = _rule(table, place, layer)
        if rule.id in seen:
            raise place.fault(f"rule id {rule.id} is used twice", key="id", code="policy.duplicate_id")
        seen.add(rule.id)
        _run_examples(rule, table, place)
        yield rule


def _rule(table: Mapping[str, Any], place: _Place, layer: Layer) -> Rule:
    for key in table.keys() - _KEYS:
        raise place.fault(f"`{key}` is no key of a rule here", key=key, code="policy.unknown_key")
    name, effect = table.get("id"), table.get("effect")
    if not isinstance(name, str) or not _ID.match(name):
        raise place.fault(f"a rule's id is like `no-force-push`, not {name!r}", key="id")
    if effect not in VERDICTS:
        raise place.fault(f"the effect of {name} is allow, ask or deny, not {effect!r}", key="effect")
    actions, tools, classes = _texts(table, "action", place), _tools(table, place), _texts(table, "class", place)
    if bool(actions) + bool(tools) > 1 or not (actions or tools or classes):
        raise place.fault(f"{name} needs one selector: action, mcp or class", key="id")
    if unknown := set(classes) - set(RISKS):
        raise place.fault(f"{min(unknown)!r} is no class: {', '.join(RISKS)}", key="class")
    when = _when(table, place)
    if effect == "allow" and any(key == "host" for key, _ in when):
        raise place.fault(f"{name} allows by `host`, which is a claim", key="when", code="policy.claim_in_allow")
    return Rule(
        id=name,
        effect=effect,
        layer=layer,
        file=place.file,
        line=place.line(),
        actions=actions,
        tools=tools,
        classes=frozenset(cast("tuple[Risk, ...]", classes)),
        arguments=_arguments(table, place, selected=bool(actions or tools)),
        closed=_flag(table, "closed", place),
        when=when,
        reason=_text(table, "reason", place),
        instead=_text(table, "instead", place),
        expires=_date(table, place),
    )


def _texts(table: Mapping[str, Any], key: str, place: _Place) -> tuple[str, ...]:
    value = table.get(key, [])
    values = [value] if isinstance(value, str) else value
    if not isinstance(values, list) or not all(isinstance(each, str) and each for each in values):
        raise place.fault(f"`{key}` is a list of texts", key=key)
    if key in table and not values:
        raise place.fault(f"`{key}` is empty", key=key)
    return tuple(values)


def _tools(table: Mapping[str, Any], place: _Place) -> tuple[tuple[str, str], ...]:
    if "mcp" not in table:
        return ()
    value = table["mcp"]
    if not isinstance(value, dict) or value.keys() - {"server", "tool"} or "server" not in value:
        raise place.fault('`mcp` is like { server = "github", tool = ["get_*"] }', key="mcp")
    servers, tools = _texts(value, "server", place), _texts(value, "tool", place) or ("*",)
    return tuple((server, tool) for server in servers for tool in tools)


def _when(table: Mapping[str, Any], place: _Place) -> tuple[tuple[Condition, tuple[str, ...]], ...]:
    value = table.get("when", {})
    if not isinstance(value, dict):
        raise place.fault("`when` is a table", key="when")
    for key in value.keys() - set(_CONDITIONS):
        raise place.fault(f"`when.{key}` is no condition", key="when", code="policy.unknown_key")
    return tuple((key, _texts(value, key, place)) for key in _CONDITIONS if key in value)


def _arguments(table: Mapping[str, Any], place: _Place, *, selected: bool) -> tuple[ArgumentTest, ...]:
    value = table.get("args", {})
    if not isinstance(value, dict) or (value and not selected):
        raise place.fault("`args` is a table, on a rule with `action` or `mcp`", key="args")
    for key, expected in value.items():
        if isinstance(expected, dict) and (not expected or expected.keys() - _TEST_KEYS):
            raise place.fault(f"`args.{key}` takes min, max, not, absent", key="args", code="policy.unknown_key")
        if isinstance(expected, date):
            raise place.fault(f"`args.{key}` is a text, number, boolean, list or table", key="args")
    return tuple(ArgumentTest(pointer_of(key), expected) for key, expected in value.items())


def _flag(table: Mapping[str, Any], key: str, place: _Place) -> bool:
    value = table.get(key, False)
    if not isinstance(value, bool):
        raise place.fault(f"`{key}` is true or false", key=key)
    return value


def _text(table: Mapping[str, Any], key: str, place: _Place) -> str:
    value = table.get(key, "")
    if not isinstance(value, str) or len(value) > 500:
        raise place.fault(f"`{key}` is a text of at most 500 characters", key=key)
    return value


def _date(table: Mapping[str, Any], place: _Place) -> date | None:
    value = table.get("expires")
    if value is not None and type(value) is not date:
        raise place.fault("`expires` is a date such as 2030-12-31", key="expires")
    return value


def _axes(value: Any, place: _Place) -> Axes:
    if not isinstance(value, dict):
        raise place.fault("`axes` is a table", key="axes")
    for key, set_to in value.items():
        if key not in AXES:
            raise place.fault(f"`{key}` is no axis: {', '.join(AXES)}", key=key, code="policy.unknown_key")
        if set_to not in AXES[key]:
            raise place.fault(f"{key} is one of {', '.join(AXES[key])}, not {set_to!r}", key=key)
    return Axes(**value)


def _run_examples(rule: Rule, table: Mapping[str, Any], place: _Place) -> None:
    """Hold a rule to its own examples, without the conditions that an example cannot say."""
    bare = replace(rule, when=(), expires=None)
    wanted: Sequence[tuple[str, bool]] = [("match", True), ("not-match", False)]
    for key, should in wanted:
        for example in _texts(table, key, place) if key in table else ():
            found = _example(bare, example, key, place)
            if (found == "certain") if should else (found == "none"):
                continue
            what = f"{rule.id} {'does not match' if should else 'matches'} its example {example!r}"
            raise place.fault(what, key=key, code="policy.example_failed")


def _example(rule: Rule, text: str, key: str, place: _Place) -> Match:
    """Read `memory.accept destructive {"id": "x"}` or `github/get_issue {"owner": "acme"}`; class and JSON may lack."""
    name, _, rest = text.partition(" ")
    word, _, tail = rest.strip().partition(" ")
    risk, rest = (word, tail) if word in RISKS else (_any_class(rule), rest)
    try:
        arguments = json.loads(rest) if rest.strip() else {}
    except ValueError as error:
        raise place.fault(f"the arguments of the example {text!r} are no JSON", key=key) from error
    kind: Literal["mcp", "action"] = "mcp" if "/" in name else "action"
    call = CallFacts(
        server="", tool="", action=name, risk=risk, arguments=arguments, principal=Principal.user(), now_us=0
    )
    return rule.matches(Access(kind, name, risk), call)


def _any_class(rule: Rule) -> Risk:
    return next((risk for risk in RISKS if risk in rule.classes), "read")
