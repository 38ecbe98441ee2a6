"""An envelope that passed every check of its form: typed fields, and the bytes it came as."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Literal

from agentstead.network.wire.grammar import DISCOVERY_KINDS, Kind, Surface

Trust = Literal["unverified", "verified"]


@dataclass(frozen=True, slots=True)
class Envelope:
    """One message as received; `raw` is stored and forwarded unchanged, `canon_sha256` tells copies apart.

    Unset and null members are None alike. Times are whole Unix seconds.
    """

    raw: bytes
    canon_sha256: str
    trust: Trust
    id: str
    workspace_id: str
    kind: Kind
    channel: str
    sender: str
    to: str | None
    mentions: tuple[str, ...]
    surface: Surface | None
    container_id: str | None
    work_id: str | None
    reply_to: str | None
    trace_id: str | None
    causation_id: str | None
    ts: int
    expires_at: int | None
    body: Mapping[str, Any]

    @classmethod
    def of(cls, fields: Mapping[str, Any], *, raw: bytes, canon_sha256: str, trust: Trust) -> "Envelope":
        """Take the fields of a checked object; mentions are deduplicated in their order."""
        surface = fields.get("surface")
        return cls(
            raw=raw,
            canon_sha256=canon_sha256,
            trust=trust,
            id=fields["id"],
            workspace_id=fields["workspace_id"],
            kind=fields["kind"],
            channel=fields["channel"],
            sender=fields["from"],
            to=fields.get("to"),
            mentions=tuple(dict.fromkeys(fields.get("mentions", ()))),
            surface=surface,
            container_id=fields.get("thread_id" if surface == "thread" else "direct_id"),
            work_id=fields.get("work_id"),
            reply_to=fields.get("reply_to"),
            trace_id=fields.get("trace_id"),
            causation_id=fields.get("causation_id"),
            ts=fields["ts"],
            expires_at=fields.get("expires_at"),
            body=fields["body"],
        )

    @property
    def in_container(self) -> bool:
        """Tell whether the message stands in a thread or a room."""
        return self.kind not in DISCOVERY_KINDS
