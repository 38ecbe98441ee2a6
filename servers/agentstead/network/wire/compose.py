"""Writing an envelope on the local send path: identifiers trimmed, blanks dropped, `to` and `proof` always explicit."""

import json
from collections.abc import Iterable, Mapping
from typing import Any

from agentstead.network.wire.grammar import PROTOCOL, Kind, Surface, trim


def compose(
    *,
    message_id: str,
    workspace_id: str,
    kind: Kind,
    channel: str,
    sender: str,
    ts: int,
    body: Mapping[str, Any],
    to: str | None = None,
    surface: Surface | None = None,
    container_id: str | None = None,
    mentions: Iterable[str] = (),
    work_id: str | None = None,
    reply_to: str | None = None,
    trace_id: str | None = None,
    causation_id: str | None = None,
    expires_at: int | None = None,
) -> bytes:
    """Return the bytes of a message, unchecked: they go through `examine` as foreign ones do."""
    envelope: dict[str, Any] = {
        "protocol": PROTOCOL,
        "id": message_id,
        "workspace_id": workspace_id,
        "kind": kind,
        "channel": trim(channel),
    }
    if surface is not None:
        envelope["surface"] = surface
        envelope["thread_id" if surface == "thread" else "direct_id"] = container_id
    envelope |= {"from": sender, "to": _set(to)}
    if named := _mentions(mentions):
        envelope["mentions"] = named
    links = {"work_id": work_id, "reply_to": reply_to, "trace_id": trace_id, "causation_id": causation_id}
    envelope |= {name: text for name, value in links.items() if (text := _set(value)) is not None}
    envelope["ts"] = ts
    if expires_at is not None:
        envelope["expires_at"] = expires_at
    envelope |= {"body": dict(body), "proof": None}
    # A lone surrogate becomes bytes that are no UTF-8: the strict parser then refuses the message by its code.
    return json.dumps(envelope, ensure_ascii=False, separators=(",", ":")).encode("utf-8", "surrogatepass")


def card(peer_id: str, *, display_name: str | None, capabilities: Iterable[str]) -> dict[str, Any]:
    """Return the card of a local peer: claims that give it no right."""
    document: dict[str, Any] = {"peer_id": peer_id}
    if name := _set(display_name):
        document["display_name"] = name
    return document | {
        "profiles_supported": [PROTOCOL],
        "capabilities": list(dict.fromkeys(filter(None, map(trim, capabilities)))),
        "artifacts_supported": ["capability"],
        "trust_modes_supported": ["unverified"],
    }


def _set(value: str | None) -> str | None:
    return (trim(value) or None) if value is not None else None


def _mentions(names: Iterable[str]) -> list[str]:
    return sorted({name for each in names if (name := trim(each))})
