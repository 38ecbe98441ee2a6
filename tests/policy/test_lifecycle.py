"""A random life of calls, answers, revocations, restarts and passing time, against a small model of what may run."""

import asyncio
import tempfile
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, initialize, invariant, precondition, rule

from agentstead import identity, policy
from agentstead.config import Settings
from agentstead.identity import Principal
from agentstead.policy import CallFacts, Enforcement, get_approval, list_grants, revoke_grant, session_ended
from agentstead.policy.machines import DENIED_HOLDS_US, ONCE_US, SESSION_US, UNTIL_MOST_US
from agentstead.state import Conflict, Denied, PendingAnswer, RefFacts, SimulatedClock, State

SESSION = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
PERSON = Principal.user(at_terminal=True)
HOST = Principal.host("desk")
TTL_US = 600 * 10**6

inputs = st.integers(0, 1)
sessions = st.sampled_from(["", SESSION])


@dataclass
class Model:
    """What a person has said so far; times are when each yes or no ends."""

    open: dict[tuple[int, str], tuple[str, int]] = field(default_factory=dict)
    once: dict[tuple[int, str], int] = field(default_factory=dict)
    whole_session: int = 0
    never: int = 0
    fresh_no: dict[tuple[int, str], int] = field(default_factory=dict)

    def expected(self, key: tuple[int, str], now: int) -> str:
        if self.never > now:
            return "denied"
        if (key[1] and self.whole_session > now) or self.once.get(key, 0) > now:
            return "runs"
        return "denied" if self.fresh_no.get(key, 0) > now else "asks"


class Life(RuleBasedStateMachine):
    """Every outcome of enforcement is the model's, whatever happened before."""

    @initialize()
    def start(self) -> None:
        self.runner = asyncio.Runner()
        self.folder = tempfile.TemporaryDirectory()
        self.home = Path(self.folder.name)
        self.clock = SimulatedClock()
        self.state = self.runner.run(
            State.open(self.home, sets=(identity.MIGRATIONS, policy.MIGRATIONS), clock=self.clock)
        )
        self.state.refs.register("ses_", lambda reading, ref: RefFacts(exists=True))
        self.model = Model()
        self.restart()

    @rule()
    def restart(self) -> None:
        flags = {"approvals.ttl_s": TTL_US // 10**6}
        self.enforcement = Enforcement(self.state, self.home, settings=Settings(self.home, environ={}, flags=flags))

    @rule(number=inputs, session=sessions)
    def call_is_let_go_asked_or_denied_as_the_model_says(self, number: int, session: str) -> None:
        key, now = (number, session), self.clock.now_us()
        expected = self.model.expected(key, now)
        outcome = self._call(number, session)
        assert outcome[0] == expected
        if expected == "runs" and not (session and self.model.whole_session > now):
            del self.model.once[key]
        if expected == "asks":
            known = self.model.open.get(key)
            if known is not None and known[1] > now:
                assert outcome[1] == known[0]
            else:
                self.model.open[key] = (outcome[1], now + TTL_US)

    @precondition(lambda self: self.model.open)
    @rule(data=st.data(), choice=st.sampled_from(["allow_once", "allow_session", "deny_once", "deny_always"]))
    def a_person_answers_an_open_question(self, data: Any, choice: str) -> None:
        key = data.draw(st.sampled_from(sorted(self.model.open)))
        approval_id, expires = self.model.open[key]
        now = self.clock.now_us()
        if choice == "allow_session" and not key[1]:
            choice = "allow_once"
        answering = self.enforcement.answer(approval_id, choice, by=PERSON, proof="terminal")
        del self.model.open[key]
        if expires <= now:
            self._refused(answering)
            return
        self.runner.run(answering)
        match choice:
            case "allow_once":
                self.model.once[key] = now + ONCE_US
            case "allow_session":
                self.model.whole_session = now + SESSION_US
            case "deny_always":
                self.model.never = now + UNTIL_MOST_US
        if choice.startswith("deny"):
            self.model.fresh_no[key] = now + DENIED_HOLDS_US
        self._refused(self.enforcement.answer(approval_id, "allow_once", by=PERSON, proof="terminal"))

    @rule(seconds=st.sampled_from([30, 61, 600, 901, 8 * 3600]))
    def time_passes(self, seconds: int) -> None:
        self.clock.advance(seconds=seconds)

    @rule()
    def a_person_revokes_everything(self) -> None:
        for grant in self.runner.run(self.state.read(list_grants)):
            self.runner.run(self.state.write(revoke_grant, grant.id))
        self.model.once.clear()
        self.model.never = 0
        self.model.whole_session = 0

    @rule()
    def the_session_ends(self) -> None:
        self.runner.run(self.state.write(session_ended, SESSION))
        self.model.whole_session = 0
        self.model.once = {key: end for key, end in self.model.once.items() if not key[1]}
        for key in [key for key in self.model.open if key[1]]:
            approval_id, _ = self.model.open.pop(key)
            state = self.runner.run(self.state.read(get_approval, approval_id)).state
            assert state in ("canceled", "expired")

    @invariant()
    def the_journal_holds(self) -> None:
        if hasattr(self, "state"):
            assert self.runner.run(self.state.verify()).holds

    def teardown(self) -> None:
        if hasattr(self, "state"):
            self.runner.run(self.state.close())
            self.runner.close()
            self.folder.cleanup()

    def _call(self, number: int, session: str) -> tuple[str, str]:
        call = CallFacts(
            server="workspace",
            tool="tree_promote",
            action="workspace.promote",
            risk="destructive",
            arguments={"number": number},
            principal=HOST,
            now_us=self.clock.now_us(),
            session_id=session,
        )
        return self.runner.run(self._through(call))

    async def _through(self, call: CallFacts) -> tuple[str, str]:
        try:
            ticket = await self.enforcement.enter(call)
        except PendingAnswer as pending:
            return "asks", str(pending.details["approval_id"])
        except Denied:
            return "denied", ""
        await self.state.write(lambda tx: ticket.spend(tx))
        await self.enforcement.settle(ticket, completed=True)
        return "runs", ""

    def _refused(self, answering: Any) -> None:
        try:
            self.runner.run(answering)
        except Conflict as error:
            assert error.code in ("approval.settled", "approval.expired")  # noqa: PT017 - runs outside pytest's reach
        else:
            raise AssertionError("a second answer was taken")


TestLife = Life.TestCase
TestLife.settings = settings(
    max_examples=20, stateful_step_count=25, deadline=None, suppress_health_check=list(HealthCheck)
)
