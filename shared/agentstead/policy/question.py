"""The question that a person reads: every access on its own line, what would run, why it is asked, what answers do.

It holds no id and no time of its own, so that asking again shows the same text.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from agentstead.policy.machines import FORM_CHOICES, Choice
from agentstead.policy.model import CallFacts, Decision
from agentstead.policy.visible import visible

Redact = Callable[[str], str]

MOST_BYTES = 8192
_VALUE_CHARS = 300

_EFFECTS: Mapping[Choice, str] = {
    "allow_once": "this call with these arguments, within 15 minutes",
    "allow_session": "the same tool and action with any arguments in this session, for at most 8 hours",
    "allow_workspace": "the same tool and action with any arguments in this workspace, for 30 days",
    "allow_until": "the same until a date that you give",
    "allow_uses": "the same a number of times that you give",
    "deny_once": "not this time",
    "deny_always": "never: refused for 90 days without asking",
}


@dataclass(frozen=True, slots=True)
class Question:
    """The text of a form and the choices that it offers."""

    text: str
    options: tuple[Choice, ...]


def question(summary: str, options: Sequence[Choice]) -> Question:
    """Return the form of a stored question; choices that need a date or a number are left to the terminal."""
    return Question(summary, tuple(choice for choice in options if choice in FORM_CHOICES))


def call_text(
    call: CallFacts,
    decision: Decision,
    *,
    workspace: str,
    options: Sequence[Choice],
    redact: Redact,
    before: Sequence[str] | None,
) -> str:
    """Return the question about one call; `before` holds the accesses of the last approval of that tool."""
    lines = [f"{visible(call.principal.text)} wants to use {visible(call.server)}/{visible(call.tool)}."]
    lines.extend(f"{visible(ruled.access.text)} ({ruled.access.risk})" for ruled in decision.accesses)
    if workspace:
        lines.append(f"In workspace {visible(workspace)}.")
    lines.extend(_arguments(call.arguments, redact))
    if call.why:
        lines.append(f"It says why: {visible(redact(call.why), most=500)}")
    lines.extend(_why(decision))
    lines.extend(_difference(decision, before))
    return bounded([*lines, *_answers(options)])


def subject_text(text: str, *, asker: str, options: Sequence[Choice], redact: Redact) -> str:
    """Return the question about a subject, in the words of the server that asks for it."""
    lines = [visible(redact(line)) for line in text.splitlines() if line.strip()]
    return bounded([f"{visible(asker)} asks:", *lines, f"Answers: {', '.join(options)}."])


def bounded(lines: Sequence[str]) -> str:
    """Join lines up to 8 KiB; what is left out is counted, never cut in silence. The last line always stands."""
    *body, last = lines
    room = MOST_BYTES - len(last.encode()) - 80
    kept: list[str] = []
    for line in body:
        room -= len(line.encode()) + 1
        if room < 0:
            kept.append(f"... {len(body) - len(kept)} lines more: see permission_explain")
            break
        kept.append(line)
    return "\n".join([*kept, last])


def _arguments(arguments: Mapping[str, Any], redact: Redact) -> Iterator[str]:
    for name, value in arguments.items():
        if value is None:
            continue
        text = json.dumps(value, ensure_ascii=False, sort_keys=True)
        yield f"  {visible(name, most=64)} = {visible(redact(text), most=_VALUE_CHARS)}"


def _why(decision: Decision) -> Iterator[str]:
    for ruled in decision.accesses:
        asking = [rule for rule in ruled.rules if rule.effect != "allow"]
        for rule in asking:
            said = f": {visible(rule.reason)}" if rule.reason else "."
            instead = f" Instead: {visible(rule.instead)}" if rule.instead else ""
            yield f"Asked by rule {rule.id} ({rule.layer}, {visible(rule.file)}:{rule.line}){said}{instead}"
        if not asking:
            yield f"Asked because no rule allows what is of class {ruled.access.risk}."


def _difference(decision: Decision, before: Sequence[str] | None) -> Iterator[str]:
    if before is None:
        yield "This tool was never approved before."
        return
    new = [ruled.access.text for ruled in decision.accesses if ruled.access.text not in before]
    if new:
        yield f"New since the last approval of this tool: {visible(', '.join(new))}."


def _answers(options: Sequence[Choice]) -> Iterator[str]:
    yield "Answers: " + "; ".join(f"{choice} = {_EFFECTS[choice]}" for choice in options) + "."
