"""The one path of every call: validate, ask the policy, run the body, and ask a person where one must answer."""

from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

from agentstead import telemetry
from agentstead.identity import WORKSPACE_VARIABLE, Principal
from agentstead.kit.arguments import Arguments, read_arguments
from agentstead.kit.call import Call, Progress, _silent
from agentstead.kit.operation import Operation
from agentstead.kit.places import SESSION_VARIABLE
from agentstead.kit.result import Result
from agentstead.policy import CallFacts
from agentstead.state import PendingAnswer, Unavailable, acting, is_used
from agentstead.telemetry import names

if TYPE_CHECKING:
    from agentstead.kit.home import Home

# A question that was answered is not asked again; a body may ask for its subject after the kit asked for the call.
ROUNDS = 4

Ask = Callable[[PendingAnswer], Awaitable[bool]]


async def _nobody(_pending: PendingAnswer) -> bool:
    return False


@dataclass(frozen=True, slots=True)
class Context:
    """Who calls, from where, and how to reach the person behind the call.

    `ask` puts a stored question to that person and returns whether it was answered.
    """

    principal: Principal
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    traceparent: str = ""
    report: Progress = _silent
    ask: Ask = _nobody


async def invoke(home: "Home", operation: Operation, raw: Mapping[str, Any], context: Context) -> tuple[Result, bool]:
    """Run one operation; return its result and whether it is a stored one.

    Raises `AgentsteadError`: bad arguments, a refusal, a pending question, or what the body meets.
    """
    arguments = read_arguments(operation, raw)
    _refuse_while_draining(home, operation)
    call = _call(home, operation, arguments, context)
    facts = facts_of(home, operation, arguments, context)
    with acting(context.principal.text, context.traceparent):
        return await _answered(home, operation, call, facts, arguments, context)


async def _answered(
    home: "Home", operation: Operation, call: Call, facts: CallFacts, arguments: Arguments, context: Context
) -> tuple[Result, bool]:
    """Attempt the call until no question is left, or one stays open."""
    for _ in range(ROUNDS):
        try:
            return await _attempt(home, operation, call, facts, arguments), call.replayed
        except PendingAnswer as pending:
            if not await context.ask(pending):
                raise
            call.restart()
    raise PendingAnswer(
        "permission.pending",
        f"{operation.name} asked {ROUNDS} questions and is not done.",
        remedy="Repeat the call.",
        retryable=True,
    )


def _refuse_while_draining(home: "Home", operation: Operation) -> None:
    if home.draining and operation.starts_work:
        raise Unavailable(
            "coordinator.draining",
            "The coordinator takes no new work: it is about to stop or to be upgraded.",
            remedy="Retry in a minute; what runs already may finish.",
            retryable=True,
        )


def facts_of(home: "Home", operation: Operation, arguments: Arguments, context: Context) -> CallFacts:
    """Return what the policy is told of this call."""
    action, risk = operation.action_for(arguments.json)
    return CallFacts(
        server=operation.server,
        tool=operation.name,
        action=action,
        risk=risk,
        arguments=arguments.json,
        principal=context.principal,
        now_us=home.clock.now_us(),
        asks=operation.asks,
        session_id=str(arguments.json.get("session_id") or context.environ.get(SESSION_VARIABLE, "")),
        workspace_name=context.environ.get(WORKSPACE_VARIABLE, ""),
        cwd=str(context.cwd or ""),
    )


def _call(home: "Home", operation: Operation, arguments: Arguments, context: Context) -> Call:
    return Call(
        home=home,
        principal=context.principal,
        arguments=arguments.json,
        cwd=context.cwd,
        environ=context.environ,
        operation=operation.name,
        key=arguments.key,
        arguments_sha256=arguments.sha256,
        report=context.report,
    )


async def _attempt(home: "Home", operation: Operation, call: Call, facts: CallFacts, arguments: Arguments) -> Result:
    if await _was_let_through(home, call, facts):
        return await operation.fn(call, **arguments.values)
    with telemetry.span(names.DECISION, {names.ACTION: facts.action, names.RISK: facts.risk}):
        ticket = await home.enforcement.enter(facts)
        telemetry.describe({names.VERDICT: ticket.decision.verdict, names.REASONS: ticket.decision.reasons})
    call.ticket = ticket
    try:
        result = await operation.fn(call, **arguments.values)
    except PendingAnswer:
        raise
    except BaseException:
        await home.enforcement.settle(ticket, completed=False)
        raise
    await home.enforcement.settle(ticket, completed=True)
    return result


async def _was_let_through(home: "Home", call: Call, facts: CallFacts) -> bool:
    """Tell whether this very call was judged before, so that its stored result is not asked about again."""
    use = call.key_use(0)
    return use is not None and home.enforcement.decide(facts).verdict != "deny" and await call.read(is_used, use)
