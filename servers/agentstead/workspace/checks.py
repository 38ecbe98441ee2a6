"""Checks: named commands whose exit says whether a tree is in order, known by the digest of their whole body."""

import json
import sqlite3
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Annotated, Any, Final, Literal

from pydantic import BaseModel, ConfigDict, Field

from agentstead.state import Invalid, NotFound, Reading, Redactor, Tx, canonical_json, check_version, sha256_hex

CheckSource = Literal["tool", "adhoc"]

MAX_TIMEOUT_S: Final = 3_600

_COLUMNS: Final = "name, digest, body, source, version, created_at"
_CURRENT: Final = f"""
SELECT {_COLUMNS}
FROM checks
WHERE workspace_id = :workspace AND name = :name
ORDER BY version DESC
LIMIT 1
"""
_LIST: Final = f"""
SELECT {_COLUMNS}
FROM checks AS one
WHERE workspace_id = :workspace
    AND version = (SELECT max(version) FROM checks AS other
        WHERE other.workspace_id = one.workspace_id AND other.name = one.name)
ORDER BY name
"""
_SAVE: Final = """
INSERT INTO checks (workspace_id, name, digest, body, source, version, created_at)
VALUES (:workspace, :name, :digest, :body, :source, :version, :now)
ON CONFLICT (workspace_id, name, digest) DO UPDATE SET version = excluded.version
"""


class CheckCommand(BaseModel):
    """A command to run in a tree: argv without a shell, in a directory of the tree, with an environment of its own."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    argv: Annotated[list[str], Field(min_length=1, max_length=256)]
    cwd: str = ""
    env: dict[str, str] = Field(default_factory=dict)
    env_allow: list[str] = Field(default_factory=list)
    timeout_s: Annotated[int, Field(ge=1, le=MAX_TIMEOUT_S)] = 600
    expect_exit: list[int] = Field(default_factory=lambda: [0])


@dataclass(frozen=True, slots=True)
class Check:
    """A check as it is run: `name` is empty for a command of one call, which no gate can read."""

    name: str
    digest: str
    command: CheckCommand
    source: CheckSource
    version: int = 0
    created_at: int = 0


def check_of(command: CheckCommand, *, name: str = "", source: CheckSource = "adhoc") -> Check:
    """Return a command as a check, with its digest over the canonical body, defaults filled in."""
    return Check(name, digest_of(command), command, source)


def refuse_secrets(command: CheckCommand, redactor: Redactor) -> None:
    """Raise `Invalid` with `runner.secret_literal` where a command holds a secret in plain text: it would be stored."""
    words = [*command.argv, *(f"{name}={value}" for name, value in command.env.items())]
    if any(redactor.text(word) != word for word in words):
        raise Invalid(
            "runner.secret_literal",
            "The command holds what looks like a secret.",
            remedy="Let it read the secret from a file or from a variable named in env_allow; nothing was stored.",
        )


def body_of(command: CheckCommand) -> dict[str, Any]:
    """Return the whole body of a check as it is digested and kept in receipts."""
    return {"schema": "agentstead.check/1", "parser": "exit", **command.model_dump()}


def digest_of(command: CheckCommand) -> str:
    """Return the digest by which a check is known."""
    return sha256_hex(canonical_json(body_of(command)))


def save(tx: Tx, workspace_id: str, name: str, command: CheckCommand, *, expected_version: int | None = None) -> Check:
    """Make a command the current check of a name; the ones before it stay readable by their digests."""
    known = find(tx, workspace_id, name)
    check_version(known.version if known else 0, expected_version, noun="check", ref=name)
    digest = digest_of(command)
    if known is None or known.digest != digest:
        version = (known.version if known else 0) + 1
        body = command.model_dump_json()
        facts = {"workspace": workspace_id, "name": name, "digest": digest, "body": body, "source": "tool"}
        tx.execute(_SAVE, **facts, version=version, now=tx.now_us)
        entry = {"name": name, "digest": digest, "version": version}
        tx.journal("workspace.check.saved", subject=name, workspace=workspace_id, body=entry)
    return the_check(tx, workspace_id, name)


def find(reading: Reading, workspace_id: str, name: str) -> Check | None:
    """Return the current check of a name."""
    row = reading.one(_CURRENT, workspace=workspace_id, name=name)
    return None if row is None else _check(row)


def the_check(reading: Reading, workspace_id: str, name: str) -> Check:
    """Return the current check of a name; raise NotFound `check.not_found` with the names that there are."""
    found = find(reading, workspace_id, name)
    if found is None:
        names = [each.name for each in listed(reading, workspace_id)]
        raise NotFound(
            "check.not_found",
            f"this workspace has no check named {name[:80]!r}",
            remedy=f"Save it with check_save, or run a command. Known: {', '.join(names) or 'none'}.",
            details={"known": names},
        )
    return found


def listed(reading: Reading, workspace_id: str) -> list[Check]:
    """Return the current checks of a workspace by name."""
    return [_check(row) for row in reading.all(_LIST, workspace=workspace_id)]


def _check(row: sqlite3.Row) -> Check:
    body: Mapping[str, Any] = json.loads(row["body"])
    return Check(
        row["name"],
        row["digest"],
        CheckCommand.model_validate(body),
        row["source"],
        row["version"],
        row["created_at"],
    )
