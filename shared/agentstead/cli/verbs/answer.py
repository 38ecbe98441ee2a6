"""`agentstead answer ID`: a person's answer to a stored question, at a terminal and nowhere else."""

from collections.abc import Sequence
from datetime import UTC, datetime, time
from typing import Annotated

import typer

from agentstead.cli.exits import DONE, FAILED
from agentstead.cli.person import principal_of
from agentstead.cli.running import as_person, with_home
from agentstead.cli.terminal import Terminal
from agentstead.identity import Principal
from agentstead.kit import Home
from agentstead.policy import Approval, answer, get_approval
from agentstead.state import Conflict, Denied, Invalid, PendingAnswer

_DATED = "allow_until"
_COUNTED = "allow_uses"


def answer_question(
    terminal: Terminal,
    *,
    id: Annotated[str, typer.Argument(help="The question, as `apr_...`.", metavar="ID")],  # noqa: A002 - the argument's name
    choice: Annotated[str, typer.Option(help="The answer; without it the question is shown and asked.")] = "",
    note: Annotated[str, typer.Option(help="A word to whoever asked.")] = "",
    until: Annotated[str, typer.Option(help="For allow_until: the last day, as 2027-01-31.", metavar="DATE")] = "",
    uses: Annotated[int | None, typer.Option(help="For allow_uses: how many times.")] = None,
) -> int:
    """Answer a question about a permission; the first answer counts.

    The call that waits for it is repeated by its agent. Exit code 1 where the answer is no.
    """
    principal = principal_of(terminal)
    if principal.proof != "terminal":
        raise Denied(
            "pending.person_required",
            f"{id} is answered at a terminal: input and output of this command must be one.",
            remedy=f"Run `agentstead answer {id}` in a terminal of your own, not through a pipe.",
        )

    async def settle(home: Home) -> Approval:
        asked = await home.state.read(get_approval, id)
        _check_open(asked, home.clock.now_us())
        chosen = choice or _asked(terminal, asked.summary, asked.options)
        if not chosen:
            raise PendingAnswer(
                "permission.pending", f"{id} stays open.", remedy=f"Answer it later: agentstead answer {id}."
            )
        return await _record(terminal, home, principal, asked.id, chosen, note=note, until=until, uses=uses)

    settled = with_home(terminal, as_person(settle))
    terminal.show({"id": settled.id, "state": settled.state, "answer": settled.answer, "note": settled.note})
    return DONE if settled.state == "allowed" else FAILED


async def _record(
    terminal: Terminal,
    home: Home,
    principal: Principal,
    approval_id: str,
    choice: str,
    *,
    note: str = "",
    until: str = "",
    uses: int | None = None,
) -> Approval:
    until_us = _date_us(until or _typed(terminal, "Last day (2027-01-31): ")) if choice == _DATED else None
    if choice == _COUNTED and uses is None:
        uses = _count(_typed(terminal, "How many times: "))
    return await home.state.write(
        answer, approval_id, choice, by=principal, proof="terminal", note=note, until_us=until_us, uses=uses
    )


def _check_open(approval: Approval, now_us: int) -> None:
    if approval.state != "pending":
        raise Conflict(
            "approval.settled",
            f"{approval.id} is {approval.state}: it was answered {approval.answer or 'by itself'}.",
            remedy="The asker asks again if it is still wanted.",
        )
    if approval.expires_at <= now_us:
        raise Conflict(
            "approval.expired", f"{approval.id} has expired.", remedy="The asker asks again if it is wanted."
        )


def _asked(terminal: Terminal, question: str, options: Sequence[str]) -> str:
    """Show a question and return the option that was chosen; '' where none was."""
    terminal.note(question)
    for number, option in enumerate(options, 1):
        terminal.note(f"  {number}  {option}")
    while True:
        typed = _typed(terminal, f"1 to {len(options)}, or Enter to leave it open: ")
        if not typed or typed in options:
            return typed
        if typed.isdigit() and 1 <= int(typed) <= len(options):
            return options[int(typed) - 1]


def _typed(terminal: Terminal, prompt: str) -> str:
    print(prompt, end="", file=terminal.err, flush=True)
    try:
        return input().strip()
    except EOFError:
        terminal.note("")
        return ""


def _date_us(text: str) -> int:
    try:
        day = datetime.strptime(text, "%Y-%m-%d").date()
    except ValueError:
        raise Invalid("grant.expiry_required", f"{text!r} is no date.", remedy="Write it as 2027-01-31.") from None
    return int(datetime.combine(day, time.max, UTC).timestamp() * 1_000_000)


def _count(text: str) -> int | None:
    return int(text) if text.isdigit() else None
