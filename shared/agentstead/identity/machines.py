"""The closed sets of identity, as data: the table definitions and the tests read the same values."""

from collections.abc import Mapping
from typing import Literal, get_args

from agentstead.identity.principals import TokenKind

WorkspaceState = Literal["present", "moved", "gone"]
WorkspaceEvent = Literal["found", "lost", "forgotten"]

WORKSPACE_STATES: tuple[WorkspaceState, ...] = get_args(WorkspaceState)
TOKEN_KINDS: tuple[TokenKind, ...] = get_args(TokenKind)

# `found`: its id file stands at this root; `lost`: its root is gone or carries another id
WORKSPACE_TRANSITIONS: Mapping[tuple[WorkspaceState, WorkspaceEvent], WorkspaceState] = {
    ("present", "found"): "present",
    ("moved", "found"): "present",
    ("gone", "found"): "present",
    ("present", "lost"): "moved",
    ("moved", "lost"): "moved",
    ("present", "forgotten"): "gone",
    ("moved", "forgotten"): "gone",
}
