"""A person's trust in the skills of a workspace: no tool gives it, a verb of the command line does."""

from dataclasses import dataclass
from pathlib import Path

from agentstead.kit import Call
from agentstead.skills import trust
from agentstead.skills.candidates import Origin
from agentstead.skills.resolver import resolve, whereabouts
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
    if call.principal.kind != "user":
        raise Denied(
            "skill.user_only",
            f"{call.principal.text} cannot trust skills.",
            remedy="A person runs `agentstead trust workspace --skills content` in a terminal.",
        )
    where = await whereabouts(call, workspace_id=workspace_id)
    if where.workspace is None:
        raise Invalid("workspace.unknown", where.note, remedy="Run it inside the workspace, or name it.")
    ruled = [each for each in (await resolve(call, where)).ruled if each.candidate.origin is Origin.WORKSPACE]
    root = where.workspace.root
    contents = {_path(each, root): each.candidate.tree_id for each in ruled if _is_whole(each)}
    left_out = tuple(f"{_path(each, root)}: {', '.join(each.reasons)}" for each in ruled if not _is_whole(each))
    if not contents:
        raise Invalid(
            "skill.not_found",
            f"Workspace {where.workspace.name} has no skill that could be trusted.",
            remedy="skill_list with ruling=any shows what stands there.",
        )
    await call.write(_record, where.workspace.id, root, contents, mode)
    return Trusted(where.workspace.name, mode, contents, left_out)


def _record(tx: Tx, workspace_id: str, root: Path, contents: dict[str, str], mode: GivenMode) -> None:
    trust.record(tx, workspace_id, root, contents=contents, mode=mode)


def _is_whole(ruled: Ruled) -> bool:
    candidate = ruled.candidate
    return bool(candidate.tree_id) and candidate.document is not None and not candidate.unseen


def _path(ruled: Ruled, root: Path) -> str:
    return ruled.candidate.shown.relative_to(root).as_posix()
