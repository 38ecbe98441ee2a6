"""Checking a skill before it is used or published."""

from functools import partial
from pathlib import Path
from typing import Annotated

import anyio.to_thread
from pydantic import Field

from agentstead.kit import Call, operation
from agentstead.skills.diagnostics import Mode
from agentstead.skills.document import judge
from agentstead.skills.listing import remark_of
from agentstead.skills.resolver import Whereabouts, whereabouts
from agentstead.skills.results import SkillValidated
from agentstead.skills.roots import Standing, roots_of
from agentstead.skills.unseen import unseen_in
from agentstead.skills.validator import Validation, validate_folder
from agentstead.state import Denied, Invalid


@operation("skill_validate", action="skills.validate", risk="read", title="Validate a skill")
async def skill_validate(
    call: Call,
    *,
    path: Annotated[str | None, Field(description="The skill's folder, in the workspace or in a root.")] = None,
    text: Annotated[str | None, Field(description="Or the text of a SKILL.md.", max_length=1_100_000)] = None,
    folder: Annotated[str | None, Field(description="With text: the folder it is for.", max_length=255)] = None,
    mode: Annotated[Mode, Field(description="strict for authors, lenient as a reader would.")] = "strict",
    workspace_id: Annotated[str | None, Field(description="Workspace of a relative path.")] = None,
) -> SkillValidated:
    """Check a skill that you write or change, before it is used: give path, or text.

    Returns every diagnostic with line, message and remedy, and what keeps the folder as a whole from being used.
    Changes nothing.
    """
    if (path is None) == (text is None):
        raise Invalid("tool.invalid_arguments", "Give path or text, and one of them only.", remedy="Nothing was done.")
    if text is not None:
        data = text.encode("utf-8", "surrogatepass")
        judged = judge(data, folder=folder or _name_in(data), mode=mode)
        return _shown(Validation(judged, unseen=unseen_in(data)))
    where = await whereabouts(call, workspace_id=workspace_id)
    base, parts = _below(call, where, Path(path or ""))
    return _shown(await anyio.to_thread.run_sync(partial(validate_folder, base, parts, mode=mode)))


def _below(call: Call, where: Whereabouts, path: Path) -> tuple[Path, tuple[str, ...]]:
    """Return a folder that may be looked into, and the names that lead from it to ``path``."""
    workspace = where.workspace
    root = workspace.root if workspace else None
    if not path.is_absolute():
        path = (root or call.cwd or Path("/")) / path
    if ".." not in path.parts:
        standing = Standing(call.home.path, Path.home(), workspace.id if workspace else "", root)
        allowed = [*([root] if root else []), *(each.path for each in roots_of(standing, call.home.settings))]
        own = [path.parent] if call.principal.kind == "user" else []
        for base in (*allowed, *own):
            if path.is_relative_to(base):
                return base, path.relative_to(base).parts
    raise Denied(
        "skill.path_escape",
        f"{str(path)[:200]!r} is not below this workspace or a folder in which skills are looked for.",
        remedy="Move the skill into the workspace, or give its text.",
    )


def _name_in(data: bytes) -> str:
    """Return the name that the text gives itself: without a folder there is nothing to compare it with."""
    judged = judge(data, folder="", mode="lenient")
    return judged.document.name if judged.document else ""


def _shown(validation: Validation) -> SkillValidated:
    refused = validation.refusal.message if validation.refusal else None
    if validation.unseen:
        refused = f"SKILL.md holds characters that nobody sees: {validation.unseen}."
    return SkillValidated(
        valid=validation.valid,
        diagnostics=[remark_of(remark) for remark in validation.judged.diagnostics],
        tree_id=validation.tree_id or None,
        refused=refused,
    )
