"""What a waiting proposal keeps: each change complete, its text apart, and what it rests on until a person looks."""

import json
from collections.abc import Mapping, Sequence
from typing import Any

from agentstead.memory import log
from agentstead.memory.changes import Draft
from agentstead.memory.controller import Judgement, Writer, judge
from agentstead.memory.intents import Intent
from agentstead.memory.proposals import Proposal
from agentstead.state import Reading, Tx, canonical_json, sha256_hex

_TEXTS = "SELECT id, title, body FROM memory_texts WHERE id IN (SELECT value FROM json_each(:ids))"
_TEXTUAL = ("add", "supersede", "revise")


def park(tx: Tx, intents: Sequence[Intent], accepter: Writer) -> tuple[list[dict[str, Any]], list[str]]:
    """Return the changes as a proposal keeps them, and the ids of their stored texts ('' for one without)."""
    operations = [_parked(tx, intent, basis_of(intent, judge(tx, intent, accepter)), accepter) for intent in intents]
    text_ids = [
        log.store_text(tx, title=intent.title, body=intent.text) if intent.op in _TEXTUAL and not intent.undoes else ""
        for intent in intents
    ]
    return operations, text_ids


def unpark(reading: Reading, proposal: Proposal, *, edit: str | None = None) -> list[Draft]:
    """Return the changes of a proposal; `edit` stands for the text of its only one."""
    known = texts(reading, proposal)
    drafts = []
    for operation, text_id in zip(proposal.operations, proposal.text_ids, strict=True):
        title, body = known.get(text_id, ("", ""))
        values = {name: value for name, value in operation.items() if name != "basis"}
        if text_id:
            values |= {"text": edit or body, "title": None if edit else title}
        for name in ("tags", "evidence"):
            if values.get(name) is not None:
                values[name] = tuple(values[name])
        drafts.append(Draft(**values))
    return drafts


def texts(reading: Reading, proposal: Proposal) -> dict[str, tuple[str, str]]:
    """Return title and body of each stored text of a proposal."""
    rows = reading.all(_TEXTS, ids=json.dumps(list(proposal.text_ids)))
    return {row["id"]: (row["title"], row["body"]) for row in rows}


def basis_of(intent: Intent, judgement: Judgement) -> dict[str, Any]:
    """Return what a change rests on: what would be done if a person accepted it now, and to which version."""
    return {
        "verdict": judgement.verdict,
        "op": judgement.op,
        "version": intent.target.version if intent.target else 0,
        "supersedes": _named(judgement),
        "twin": judgement.twin,
    }


def subject_of(intents: Sequence[Intent]) -> str:
    """Return the name of what a proposal is about: a newer one of its author about the same takes its place."""
    subjects = [
        [intent.op, intent.scope.id, intent.type, intent.key or intent.draft.memory_id or intent.text_hash]
        for intent in intents
    ]
    return sha256_hex(canonical_json(subjects))


def _parked(tx: Tx, intent: Intent, basis: Mapping[str, Any], accepter: Writer) -> dict[str, Any]:
    draft = intent.draft
    if intent.undoes:
        return {"op": "revert", "decision_id": intent.undoes, "reason": draft.reason, "basis": dict(basis)}
    return {
        "op": draft.op,
        "memory_id": draft.memory_id,
        "type": intent.type if draft.op in ("add", "supersede") else None,
        "scope": intent.scope.id if draft.op in ("add", "supersede") else None,
        "key": intent.key if draft.op in ("add", "supersede") else None,
        "attributes": draft.attributes,
        "tags": draft.tags,
        "valid_from": draft.valid_from,
        "valid_to": draft.valid_to,
        "evidence": draft.evidence,
        "author": draft.author or (accepter.reach.principal if draft.op in ("add", "supersede") else ""),
        "thread": draft.thread,
        "place": draft.place,
        "reason": draft.reason,
        "basis": dict(basis),
    }


def _named(judgement: Judgement) -> str:
    held = judgement.supersedes
    return f"{held.id}@{held.version}" if held else ""
