"""The one door to skills: every surface asks it what is served here, and it alone joins files, trust and consent."""

import difflib
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from functools import partial
from pathlib import Path
from typing import Final

import anyio.to_thread

from agentstead.config import Settings
from agentstead.identity import WorkspaceFacts
from agentstead.kit import Call
from agentstead.skills.candidates import Origin
from agentstead.skills.consents import consents_of
from agentstead.skills.naming import name_key
from agentstead.skills.roots import SHIPPED, Standing, folders, roots_of
from agentstead.skills.rulings import HOLDS_NAME, Known, Ruled, Ruling, rule
from agentstead.skills.survey import survey
from agentstead.skills.switches import switched_off
from agentstead.skills.trust import trust_in
from agentstead.skills.warm import WarmIds
from agentstead.state import NotFound, Reading

_WARM: Final = WarmIds()
_PLATFORMS: Final = {"linux": ("linux",), "darwin": ("darwin", "macos"), "win32": ("win32", "windows")}


@dataclass(frozen=True, slots=True)
class Whereabouts:
    """The workspace that a call is about, if one is known, and what the caller is told of it."""

    workspace: WorkspaceFacts | None = None
    note: str = ""


@dataclass(frozen=True, slots=True)
class Resolution:
    """Every candidate with its ruling, for one caller at one moment.

    ``cut`` and ``unreadable`` say what was not looked into.
    """

    ruled: tuple[Ruled, ...]
    known: Known
    where: Whereabouts = Whereabouts()
    cut: tuple[str, ...] = ()
    unreadable: tuple[str, ...] = ()

    def named(self, name: str) -> list[Ruled]:
        """Return the candidates of a name or a qualified name, the one that the name stands for first.

        Raises NotFound (``skill.not_found``) with similar names of served skills.
        """
        origin, _, bare = name.rpartition(":")
        key = name_key(bare)
        found = [each for each in self.ruled if each.candidate.key == key and origin in ("", each.candidate.origin)]
        if not found:
            raise self._not_found(name)
        return sorted(found, key=lambda each: _leading(each, qualified=bool(origin)))

    def by_origin_key(self, origin_key: str) -> Ruled | None:
        """Return the skill that consents and activations know by this key, or None."""
        found = [each for each in self.ruled if each.candidate.origin_key == origin_key]
        return min(found, key=lambda each: _leading(each, qualified=True), default=None)

    @property
    def workspace_id(self) -> str:
        """The id of the workspace, or an empty text."""
        return self.where.workspace.id if self.where.workspace else ""

    def served(self) -> list[Ruled]:
        """Return what is served, by name."""
        return [each for each in self.ruled if each.ruling is Ruling.SERVED]

    def _not_found(self, name: str) -> NotFound:
        served = [each.candidate.name for each in self.served()]
        near = difflib.get_close_matches(name.rpartition(":")[2], served, n=3)
        similar = f" Similar: {', '.join(near)}." if near else ""
        return NotFound(
            "skill.not_found",
            f"No skill {name[:64]!r} stands here.{similar}",
            remedy="skill_list shows what is served; with ruling=any also what is not.",
            details={"similar": near},
        )


async def whereabouts(call: Call, *, workspace_id: str | None = None, session_id: str | None = None) -> Whereabouts:
    """Return the workspace of a call; without any, what is left is the person's own skills and the bundled ones.

    Raises what an explicit ``workspace_id`` meets.
    """
    try:
        found = await call.workspace(workspace_id, session_id=session_id)
    except NotFound as unknown:
        if workspace_id is not None or unknown.code != "workspace.unknown":
            raise
        return Whereabouts(note=f"Skills of a workspace are left out. {unknown.message} {unknown.remedy}")
    return Whereabouts(found, found.note)


async def resolve(call: Call, where: Whereabouts) -> Resolution:
    """Judge every skill that a caller there could mean, as things stand now."""
    workspace, settings = where.workspace, call.home.settings
    root = workspace.root if workspace else None
    standing = Standing(call.home.path, Path.home(), workspace.id if workspace else "", root)
    look = partial(
        survey,
        roots_of(standing, settings),
        link_targets=folders(settings.texts("skills.link_targets"), person=standing.person),
        warm=_WARM,
    )
    seen = await anyio.to_thread.run_sync(look)
    tools = frozenset(name for server in call.home.servers for name in server.by_name)
    known = await call.read(_known, standing, asks=_asks(settings, root), tools=tools)
    return Resolution(rule(seen.candidates, known), known, where, seen.cut, seen.unreadable)


def _known(reading: Reading, standing: Standing, *, asks: Mapping[Origin, bool], tools: frozenset[str]) -> Known:
    trust = trust_in(reading, standing.workspace_id, standing.workspace)
    return Known(
        trust=trust.mode,
        trusted=trust.trees,
        trusted_folders=trust.folders,
        consents=consents_of(reading),
        switched_off=switched_off(reading, standing.workspace_id),
        shipped=SHIPPED,
        platforms=frozenset(_PLATFORMS.get(sys.platform, (sys.platform,))),
        tools=tools,
        asks=asks,
    )


def _asks(settings: Settings, workspace: Path | None) -> Mapping[Origin, bool]:
    return {
        Origin.USER: settings.text("skills.consent.user", workspace=workspace) == "ask",
        Origin.WORKSPACE: settings.text("skills.consent.workspace", workspace=workspace) == "ask",
    }


def _leading(ruled: Ruled, *, qualified: bool) -> bool:
    return (ruled.by_itself if qualified else ruled.ruling) not in HOLDS_NAME
