"""A person's trust in the skills of a workspace: no tool gives it, a verb of the command line does."""

from dataclasses import dataclass
from pathlib import Path

from agentstead.identity import WorkspaceFacts
from agentstead.kit import Call
from agentstead.skills import trust
from agentstead.skills.candidates import Origin
from agentstead.skills.resolver import Resolution, resolve, whereabouts
from agentstead.skills.rulings import Ruled
from agentstead.skills.trust import GivenMode
from agentstead.state import Denied, Invalid, Tx


@dataclass(frozen=True, slots=True)
class Trusted:
    """What was trusted: each skill's folder below the workspace with its tree id, and the folders left out."""

    workspace: str
    mode: GivenMode
    contents: dict[str, str]
    left_out: tuple[str, ...]


async def trust_skills(call: Call, *, workspace_id: str | None, mode: GivenMode) -> Trusted:
    """Trust every skill that stands in a workspace now: ``content`` for these bytes, ``all`` for what they become too.

    Raises Denied (``skill.user_only``) for anybody but the person, Invalid where there is nothing to trust.
    """
    resolution, workspace = await _resolved(call, workspace_id)
    ruled = [each for each in resolution.ruled if each.candidate.origin is Origin.WORKSPACE]
    contents = {_path(each, workspace.root): each.candidate.tree_id for each in ruled if _is_whole(each)}
    left = tuple(f"{_path(each, workspace.root)}: {', '.join(each.reasons)}" for each in ruled if not _is_whole(each))
    if not contents:
        raise Invalid(
            "skill.not_found",
            f"Workspace {workspace.name} has no skill that could be trusted.",
            remedy="skill_list with ruling=any shows what stands there.",
        )
    await call.write(_record, workspace.id, workspace.root, contents, mode)
    return Trusted(workspace.name, mode, contents, left)


async def untrust_skills(call: Call, *, workspace_id: str | None) -> list[str]:
    """End the trust in every skill of a workspace; return the folders that were trusted.

    Raises Denied (``skill.user_only``) for anybody but the person.
    """
    _, workspace = await _resolved(call, workspace_id)
    return await call.write(trust.end, workspace.id)


async def _resolved(call: Call, workspace_id: str | None) -> tuple[Resolution, WorkspaceFacts]:
    if call.principal.kind != "user":
        raise Denied(
            "skill.user_only",
            f"{call.principal.text} cannot decide about trust in skills.",
            remedy="A person runs `agentstead trust workspace --skills content` in a terminal.",
        )
    where = await whereabouts(call, workspace_id=workspace_id)
    if where.workspace is None:
        raise Invalid("workspace.unknown", where.note, remedy="Run it inside the workspace, or name it.")
    return await resolve(call, where), where.workspace


def _record(tx: Tx, workspace_id: str, root: Path, contents: dict[str, str], mode: GivenMode) -> None:
    trust.record(tx, workspace_id, root, contents=contents, mode=mode)


def _is_whole(ruled: Ruled) -> bool:
    candidate = ruled.candidate
    return bool(candidate.tree_id) and candidate.document is not None and not candidate.unseen


def _path(ruled: Ruled, root: Path) -> str:
    return ruled.candidate.shown.relative_to(root).as_posix()
