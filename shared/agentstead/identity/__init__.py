"""Who calls and where: principals, tokens, and the registry of workspaces.

`registry` and `tokens` hold the functions that run inside transactions and snapshots.
"""

from agentstead.identity import registry, tokens
from agentstead.identity.ancestry import ancestors, descends_from
from agentstead.identity.home_token import TOKEN_FILE, HomeToken, home_token
from agentstead.identity.principals import (
    Claims,
    Door,
    Facts,
    Principal,
    PrincipalKind,
    Proof,
    TokenKind,
    parse_principal,
)
from agentstead.identity.registry import Workspace
from agentstead.identity.tokens import TokenFacts, check_token
from agentstead.identity.workspaces import VARIABLE as WORKSPACE_VARIABLE
from agentstead.identity.workspaces import Asked, Source, WorkspaceFacts, register, resolve
from agentstead.state import Migrations

MIGRATIONS = Migrations(package="identity", anchor="agentstead.identity")

__all__ = [
    "MIGRATIONS",
    "TOKEN_FILE",
    "WORKSPACE_VARIABLE",
    "Asked",
    "Claims",
    "Door",
    "Facts",
    "HomeToken",
    "Principal",
    "PrincipalKind",
    "Proof",
    "Source",
    "TokenFacts",
    "TokenKind",
    "Workspace",
    "WorkspaceFacts",
    "ancestors",
    "check_token",
    "descends_from",
    "home_token",
    "parse_principal",
    "register",
    "registry",
    "resolve",
    "tokens",
]
