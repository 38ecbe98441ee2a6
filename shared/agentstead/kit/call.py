"""What a service function gets: who calls, from where, and the ways to read, write, report and ask."""

import inspect
from collections.abc import Awaitable, Callable, Mapping
from dataclasses import dataclass, field
from functools import wraps
from pathlib import Path
from typing import TYPE_CHECKING, Any, Concatenate, ParamSpec, TypeVar

from pydantic import TypeAdapter

from agentstead.kit.places import resolve_workspace
from agentstead.state import KeyUse, Reading, Tx, once

if TYPE_CHECKING:
    from agentstead.identity import Principal, WorkspaceFacts
    from agentstead.kit.home import Home
    from agentstead.policy import Ticket
    from agentstead.policy.machines import SubjectKind

P = ParamSpec("P")
T = TypeVar("T")

Progress = Callable[[float, float | None, str], Awaitable[None]]


async def _silent(_done: float, _total: float | None, _text: str) -> None:
    return None


@dataclass(slots=True)
class Call:
    """One call of one operation.

    `arguments` is the validated JSON form, `replayed` tells whether a stored result was found under its key.
    """

    home: "Home"
    principal: "Principal"
    arguments: Mapping[str, Any] = field(default_factory=dict)
    cwd: Path | None = None
    environ: Mapping[str, str] = field(default_factory=dict)
    operation: str = ""
    key: str | None = None
    arguments_sha256: str = ""
    ticket: "Ticket | None" = None
    report: Progress = _silent
    replayed: bool = False
    _step: int = 0

    async def read(self, fn: Callable[Concatenate[Reading, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a reading function in one snapshot."""
        return await self.home.state.read(fn, *args, **kwargs)

    async def write(self, fn: Callable[Concatenate[Tx, P], T], *args: P.args, **kwargs: P.kwargs) -> T:
        """Run a transaction function as this caller, under the policy's ticket and the call's idempotency key.

        Each `write` of one call is a step of its key: a repeated call finds each step's stored result, so what `fn`
        returns must be JSON-able by its return annotation.
        """
        number, self._step = self._step, self._step + 1

        @wraps(fn)
        def step(tx: Tx) -> tuple[T, bool]:
            return self._once(tx, number, fn, lambda tx: fn(tx, *args, **kwargs))

        result, replayed = await self.home.state.write(step)
        self.replayed = self.replayed or replayed
        return result

    async def progress(self, done: float, total: float | None, text: str) -> None:
        """Tell the caller how far the work is; nobody listening is fine."""
        await self.report(done, total, text)

    async def workspace(self, name: str | None = None, *, session_id: str | None = None) -> "WorkspaceFacts":
        """Return the workspace that this call means, registering the caller's directory where that is allowed.

        Raises `workspace.unknown` with a remedy that says how to name one.
        """
        return await resolve_workspace(self, name, session_id=session_id)

    async def subject(
        self,
        kind: "SubjectKind",
        subject_hash: str,
        *,
        question: str,
        workspace: str = "",
        session_id: str | None = None,
    ) -> str:
        """Return the id of an allowed approval of exactly this subject.

        Raises `PendingAnswer` while nobody has answered; the kit asks the person and runs the body again.
        """
        return await self.home.enforcement.subject(
            kind,
            subject_hash,
            question=question,
            asker=self.principal,
            workspace_id=workspace,
            session_id=session_id or "",
        )

    def key_use(self, step: int) -> KeyUse | None:
        """Return what identifies one step of this call under its key; None without a key."""
        if self.key is None:
            return None
        return KeyUse(self.principal.text, self.operation, self.key, self.arguments_sha256, step)

    def restart(self) -> None:
        """Count steps from the first again: the body runs once more after a person answered."""
        self._step = 0

    def _once(self, tx: Tx, step: int, fn: Callable[..., T], run: Callable[[Tx], T]) -> tuple[T, bool]:
        use = self.key_use(step)
        if use is None:
            return self._run(tx, run), False
        adapter: TypeAdapter[T] = TypeAdapter(inspect.signature(fn, eval_str=True).return_annotation)
        fresh: list[T] = []

        def keep() -> str:
            fresh.append(self._run(tx, run))
            return adapter.dump_json(fresh[0]).decode()

        stored, replayed = once(tx, use, keep)
        return (adapter.validate_json(stored), True) if replayed else (fresh[0], False)

    def _run(self, tx: Tx, run: Callable[[Tx], T]) -> T:
        if self.ticket is not None:
            self.ticket.spend(tx)
        return run(tx)
