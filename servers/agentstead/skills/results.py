"""What the tools of this server return."""

from typing import Literal

from pydantic import BaseModel, ConfigDict

from agentstead.kit import Result
from agentstead.skills.candidates import Origin
from agentstead.skills.diagnostics import Severity
from agentstead.skills.rulings import Ruling, TrustMode

Tier = Literal["own", "official", "community", "unverified"]


class Part(BaseModel):
    """A nested part of a result."""

    model_config = ConfigDict(frozen=True, extra="forbid")


class SkillItem(Part):
    """One skill of a listing; `files` counts them, `reasons` say why it is not served."""

    name: str
    qualified_name: str
    description: str
    origin: Origin
    tier: Tier
    ruling: Ruling
    reasons: list[str]
    tree_id: str
    files: int
    active: bool


class SkillPage(Result):
    """A page of skills; `unchanged` answers a caller whose etag still holds, with no items."""

    items: list[SkillItem]
    etag: str
    unchanged: bool
    truncated_roots: list[str]
    unreadable: list[str]
    note: str | None = None
    next_cursor: str | None = None


class FileItem(Part):
    """One file of an activated skill."""

    path: str
    size: int
    media_type: str
    exec: bool


class RequestedTool(Part):
    """A tool that the skill asks for. Asking grants nothing."""

    pattern: str
    decision: Literal["not_granted"]


class SkillActivated(Result):
    """An activation; `content` is the fenced body, absent where it was active already.

    `next_offset` is the byte of SKILL.md at which skill_read goes on where the body was too long for one result.
    """

    activation_id: str
    state: Literal["active"]
    name: str
    origin: Origin
    tree_id: str
    already_active: bool
    content: str | None
    next_offset: int | None
    files: list[FileItem]
    requested_tools: list[RequestedTool]
    expires_at: int
    note: str | None = None


class SkillFile(Result):
    """A piece of a file: `text`, or `base64` where it is none; `revealed`: unseen characters stand as <U+XXXX>."""

    path: str
    skill: str
    media_type: str
    size: int
    sha256: str
    text: str | None = None
    base64: str | None = None
    revealed: bool = False
    next_offset: int | None = None


class Standing(Part):
    """Where one skill of a name stands among the others."""

    qualified_name: str
    path: str
    rank: int
    ruling: Ruling
    reasons: list[str]
    tree_id: str
    fix: str


class Remark(Part):
    """One diagnostic."""

    code: str
    severity: Severity
    field: str
    line: int
    column: int
    message: str
    remedy: str


class TrustFacts(Part):
    """What a person trusts of this workspace's skills."""

    workspace: str | None
    mode: TrustMode


class SkillExplained(Result):
    """Who holds a name and why; `fix` is the smallest act that would change a ruling."""

    winner: Standing | None
    losers: list[Standing]
    diagnostics: list[Remark]
    trust: TrustFacts


class SkillValidated(Result):
    """A verdict: `valid`, every diagnostic, and why the folder as a whole cannot be used."""

    valid: bool
    diagnostics: list[Remark]
    tree_id: str | None = None
    refused: str | None = None


class SkillDeactivated(Result):
    """An activation that ended, and why."""

    activation_id: str
    state: Literal["ended"]
    end_reason: str


class SkillSwitched(Result):
    """A skill's switch as it stands now."""

    selector: str
    enabled: bool
    scope: Literal["home", "workspace"]
