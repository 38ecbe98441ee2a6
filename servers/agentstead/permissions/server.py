"""The MCP face of the permissions server."""

from collections.abc import Iterable

from agentstead.kit import Call, Home, Prompt, Resource, ServerDeclaration
from agentstead.permissions import answering, prompt, service
from agentstead.policy import find_approval, find_decision, list_approvals
from agentstead.policy.approvals import REPAIR, expire_due
from agentstead.policy.audit import forget_old
from agentstead.policy.grants import get_grant
from agentstead.state import Entry, NotFound, Reading, RefFacts

INSTRUCTIONS = (
    "What may be done here, and why. Reading and recording in Agentstead is allowed; what executes, destroys, goes "
    "outside or touches secrets is asked of a person. After permission.pending: tell the person the command that "
    "answers it, wait with approval_get, then repeat the same call. After permission.denied: permission_explain says "
    "which rule. Plan ahead with permission_check and permission_request. You can never answer your own question."
)


async def _status(call: Call) -> str:
    return (await service.permission_status(call)).model_dump_json()


async def _approval(call: Call, id: str) -> str:  # noqa: A002 - the URI's own variable
    return (await service.approval_get(call, approval_id=id)).model_dump_json()


async def _decision(call: Call, id: str) -> str:  # noqa: A002 - the URI's own variable
    return (await service.permission_explain(call, decision_id=id)).model_dump_json()


async def _open(call: Call) -> list[tuple[str, str]]:
    found = await call.read(list_approvals, state="pending")
    return [(f"permissions://approval/{each.id}", each.tool or each.subject_kind) for each in found]


async def _explain_denial(_call: Call, decision_id: str) -> str:
    return (
        f"Call permission_explain with decision_id={decision_id!r} (or approval_id, for an apr_ id). Tell me in plain "
        "words what was refused, by which rule in which file and line or by which default, and the narrowest change "
        "that would let exactly this through. Do not change anything."
    )


async def _draft_rule(_call: Call, tool: str) -> str:
    return (
        f"Call permission_check for {tool!r} with the arguments that I usually use, detail='full'. Then draft one "
        "[[rule]] for a file in policy.d that allows no more than that: id, effect, action or mcp, args where they "
        "matter, reason, one match and one not-match example. Show it to me; I will put it in place myself."
    )


def _look_approval(reading: Reading, ref: str) -> RefFacts | None:
    found = find_approval(reading, ref)
    if found is None:
        return None
    facts = {"tool": found.tool, "kind": found.kind, "exec_state": found.exec_state}
    return RefFacts(exists=True, workspace=found.workspace_id, state=found.state_at(reading.now_us), facts=facts)


def _look_grant(reading: Reading, ref: str) -> RefFacts | None:
    try:
        found = get_grant(reading, ref)
    except NotFound:
        return None
    holds = found.revoked_at is None and found.expires_at > reading.now_us and found.uses_left != 0
    state = "in_force" if holds else "ended"
    return RefFacts(exists=True, workspace=found.workspace_id, state=state, facts={"scope": found.scope})


def _look_decision(reading: Reading, ref: str) -> RefFacts | None:
    try:
        found = find_decision(reading, ref)
    except NotFound:
        return None
    return RefFacts(exists=True, state=found.outcome, facts={"tool": found.tool, "verdict": found.verdict})


def _changes(entry: Entry) -> Iterable[str]:
    if entry.kind.startswith("permissions.approval."):
        return (f"permissions://approval/{entry.subject}", "permissions://status")
    return ("permissions://status",) if entry.kind.startswith("permissions.grant.") else ()


async def _settle_due(home: Home) -> None:
    while await home.state.write(expire_due):
        pass
    while await home.state.write(forget_old):
        pass


SERVER = ServerDeclaration(
    name="permissions",
    title="Agentstead permissions",
    instructions=INSTRUCTIONS,
    operations=(
        service.permission_check,
        service.permission_explain,
        service.permission_request,
        service.approval_get,
        service.permission_status,
        prompt.permission_prompt,
        answering.approval_list,
        answering.approval_answer,
        answering.approval_withdraw,
        answering.grant_list,
        answering.grant_revoke,
    ),
    toolsets={
        "core": (
            "permission_check",
            "permission_explain",
            "permission_request",
            "approval_get",
            "permission_status",
            "permission_prompt",
        )
    },
    resources=(
        Resource("permissions://status", "Policy in force", "Axes, grants and open questions.", _status),
        Resource("permissions://approval/{id}", "Question", "One question and its answer.", _approval, entries=_open),
        Resource("permissions://decision/{id}", "Decision", "One decision with its reasons.", _decision),
    ),
    prompts=(
        Prompt(
            "explain-denial",
            "Explain a refusal",
            "Why something was refused, and what would allow it.",
            _explain_denial,
            {"decision_id": "pdc_ or apr_ id of the refusal"},
        ),
        Prompt(
            "draft-rule",
            "Draft a rule",
            "The narrowest rule that allows what you usually do.",
            _draft_rule,
            {"tool": "The tool that asks too often"},
        ),
    ),
    refs={"apr_": _look_approval, "grn_": _look_grant, "pdc_": _look_decision},
    repairs=(REPAIR,),
    changes=_changes,
    startup=_settle_due,
    sweep=_settle_due,
)
