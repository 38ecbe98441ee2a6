"""Who calls: what a caller claims about itself, kept apart from what we verified.

A claim (a client's name, a session id in an argument) may narrow what is allowed and never widen it.
"""

import unicodedata
from dataclasses import dataclass, field
from typing import Literal

PrincipalKind = Literal["user", "host", "session", "agent", "extension"]
Door = Literal["socket", "stdio", "http", "cli"]
TokenKind = Literal["home", "operator", "process"]
Proof = Literal["elicited", "terminal", "code", "host_trusted", "operator", "page"]

_NAME_CHARS = 64


@dataclass(frozen=True, slots=True)
class Claims:
    """What the caller said of itself."""

    client_name: str = ""
    client_version: str = ""


@dataclass(frozen=True, slots=True)
class Facts:
    """What we saw ourselves.

    `supervised`: the caller descends from a process that the runner started, or (for the command line) from one that
    started a connected shim. `at_terminal`: its standard input and output are a terminal.
    """

    door: Door = "cli"
    token: TokenKind | None = None
    pid: int | None = None
    at_terminal: bool = False
    supervised: bool = False
    run_id: str = ""


@dataclass(frozen=True, slots=True)
class Principal:
    """One caller; `text` is its form in the journal, in rows and in answers."""

    kind: PrincipalKind
    name: str = ""
    claims: Claims = field(default_factory=Claims)
    facts: Facts = field(default_factory=Facts)

    @property
    def text(self) -> str:
        """Return `user`, `host:<client>`, `session:<ses_>`, `agent:<name>@<ses_>` or `extension:<name>`."""
        return "user" if self.kind == "user" else f"{self.kind}:{self.name}"

    @property
    def proof(self) -> Proof | None:
        """Return how this connection by itself proves a person, or None where it does not."""
        if self.kind in ("agent", "session", "extension") or self.facts.supervised:
            return None
        if self.facts.token == "operator":  # noqa: S105 - a kind of token, not one
            return "operator"
        return "terminal" if self.kind == "user" and self.facts.at_terminal else None

    @classmethod
    def user(cls, *, at_terminal: bool = False, supervised: bool = False, pid: int | None = None) -> "Principal":
        """Return the person of this home, who types commands."""
        return cls("user", facts=Facts(at_terminal=at_terminal, supervised=supervised, pid=pid))

    @classmethod
    def host(cls, name: str, *, version: str = "", facts: Facts | None = None) -> "Principal":
        """Return an MCP client under the name that it claims."""
        claims = Claims(client_name=clean_name(name), client_version=clean_name(version))
        return cls("host", claims.client_name or "unknown", claims, facts or Facts(door="socket"))

    @classmethod
    def agent(cls, name: str, *, session_id: str, facts: Facts | None = None) -> "Principal":
        """Return an agent that works in a session."""
        return cls("agent", f"{clean_name(name)}@{session_id}", facts=facts or Facts(door="socket", supervised=True))


def clean_name(text: str) -> str:
    """Return a claimed name without control, format and separator characters, at most 64 characters long."""
    kept = (char for char in text if char == " " or unicodedata.category(char)[0] not in "CZ")
    return "".join(kept).strip()[:_NAME_CHARS]


def parse_principal(text: str) -> tuple[PrincipalKind, str]:
    """Return kind and name of a principal's text form; raises ValueError for anything else."""
    if text == "user":
        return "user", ""
    kind, colon, name = text.partition(":")
    if colon and name:
        for known in ("host", "session", "agent", "extension"):
            if kind == known:
                return known, name
    raise ValueError(f"{text!r} is no principal: user, host:, session:, agent: or extension: and a name")
