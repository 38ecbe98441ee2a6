"""The door that every call passes: a decision, what stored grants say of it, a question where a person must answer.

ticket = await enforcement.enter(CallFacts(...))   # or Denied / PendingAnswer
... ticket.spend(tx) in the first mutation ...
await enforcement.settle(ticket, completed=True)   # only has work where ticket.needs_settling
"""

from collections.abc import Sequence
from pathlib import Path

from agentstead.config import Settings
from agentstead.identity.principals import Principal, Proof
from agentstead.policy import answers, approvals, audit, grants, subjects
from agentstead.policy.approvals import Approval, NewApproval
from agentstead.policy.approvers import form_counts
from agentstead.policy.audit import Counts, Judged
from agentstead.policy.known import Known, look
from agentstead.policy.layers import LayerFile, LayerFiles
from agentstead.policy.machines import SECOND_US, Outcome, SubjectKind
from agentstead.policy.model import ESCALATED, CallFacts, Decision, action_hash
from agentstead.policy.question import Question, call_text, question
from agentstead.policy.refusals import lost, pending, refusal
from agentstead.policy.ticket import PassedBy, Ticket
from agentstead.state import Denied, Reading, State, Tx, acting

# they answer only to deny rules: asking never needs asking
ASKING_ACTIONS = frozenset(
    f"permissions.{name}" for name in ("check", "explain", "request", "approval_get", "status", "prompt", "secret_list")
)

_OUTCOMES: dict[PassedBy, Outcome] = {
    "verdict": "run",
    "asking": "run",
    "grant": "granted",
    "person": "person",
    "subject": "subject",
}


class Enforcement:
    """The policy of one home at work."""

    def __init__(self, state: State, home: Path, *, settings: Settings) -> None:
        self.layers = LayerFiles(home, settings=settings, clock=state.clock)
        self._state = state
        self._settings = settings
        self._counts = Counts()

    def decide(self, call: CallFacts) -> Decision:
        """Return what the policy says of `call`: rules and axes alone, no grant and no database."""
        return self.layers.current(force=call.risk in ESCALATED).decider.decide(call)

    async def enter(self, call: CallFacts) -> Ticket:
        """Judge `call` before its body runs.

        An allowed read or write costs a pure decision and is counted. Raises `Denied` (`permission.denied`,
        `permission.headless`) or `PendingAnswer` (`permission.pending`, details `approval_id`, `expires_at`, `answer`).
        """
        decision = self.decide(call)
        if decision.verdict == "allow" and call.risk not in ESCALATED:
            await self._count(call, decision)
            return Ticket(call, decision, "verdict")
        if decision.verdict != "deny" and (passed := _passes(call, decision)):
            return self._ticket(call, decision, passed)
        known = await self._state.read(look, self._state.refs, call, decision)
        if decision.verdict == "deny":
            raise await self._refused(known, decision, "denied")
        return await self._ask(known, decision)

    def look(self, reading: Reading, call: CallFacts) -> tuple[Decision, Known]:
        """Return what would be decided about `call` now, with the grant that would answer it; nothing is recorded."""
        decision = self.decide(call)
        return decision, look(reading, self._state.refs, call, decision)

    def ask(self, tx: Tx, call: CallFacts) -> Approval | None:
        """Ask ahead about a call inside a transaction; None where it needs no answer now, or is denied.

        Raises `Denied` while a person's no to this very call is fresh, `Exhausted` where too many questions wait.
        """
        decision, known = self.look(tx, call)
        if decision.verdict != "ask" or known.grant is not None or _passes(call, decision):
            return None
        if known.latest is not None:
            subjects.refuse_fresh_denial(known.latest, call.now_us)
        return self._store_question(tx, known, decision)

    async def settle(self, ticket: Ticket, *, completed: bool) -> None:
        """Record how an approved or escalated call ended; spends a ticket whose body made no mutation."""
        if ticket.needs_settling:
            with acting(ticket.call.principal.text):
                await self._state.write(_settle, ticket, completed=completed)

    async def question(self, approval_id: str, principal: Principal) -> Question | None:
        """Return the form to show for an open question; None where this host's form is no person's answer."""
        return await self._state.read(self._question, approval_id, principal)

    async def answer(
        self,
        approval_id: str,
        choice: str,
        *,
        by: Principal,
        proof: Proof,
        note: str = "",
        until_us: int | None = None,
        uses: int | None = None,
    ) -> Approval:
        """Record a person's answer; see `answers.answer` for who may and what is refused."""
        with acting(by.text):
            return await self._state.write(
                answers.answer,
                approval_id,
                choice,
                by=by,
                proof=proof,
                note=note,
                until_us=until_us,
                uses=uses,
                trusted_hosts=self._trusted_hosts(),
            )

    async def answer_elicited(self, approval_id: str, choice: str, *, principal: Principal, note: str = "") -> Approval:
        """Record what a person chose in the form of a host that they trust."""
        return await self.answer(approval_id, choice, by=principal, proof="elicited", note=note)

    async def subject(
        self,
        kind: SubjectKind,
        subject_hash: str,
        *,
        question: str,
        asker: Principal,
        workspace_id: str = "",
        session_id: str = "",
        expires_s: int = subjects.TTL_S,
    ) -> str:
        """Return the id of an allowed approval of exactly this subject; raises `PendingAnswer` or `Denied`."""
        with acting(asker.text):
            approval = await self._state.write(
                subjects.subject_ask,
                kind,
                subject_hash,
                question=question,
                asker=asker,
                workspace_id=workspace_id,
                session_id=session_id,
                expires_s=expires_s,
            )
        if approval.state == "allowed":
            return approval.id
        raise pending(approval, f"A person must approve this {kind}")

    async def flush(self) -> None:
        """Write the counts of allowed calls; call it before a process ends."""
        body = self._counts.take()
        if body is not None:
            await self._state.write(audit.record_counts, body)

    async def _count(self, call: CallFacts, decision: Decision) -> None:
        if call.principal.kind == "user":
            return
        if self._counts.add(call, decision):
            await self.flush()
            self._counts.add(call, decision)

    def _ticket(
        self, call: CallFacts, decision: Decision, passed: PassedBy, grant: grants.Grant | None = None
    ) -> Ticket:
        """Return a ticket that records its decision, and spends its grant, in the first mutation of the call."""
        ticket = Ticket(call, decision, passed)
        if grant is not None:
            ticket.grant_id, ticket.approval_id = grant.id, grant.approval_id
        if call.risk in ESCALATED or grant is not None:
            ticket.on_spend = self._spend
        return ticket

    def _spend(self, tx: Tx, ticket: Ticket) -> None:
        loaded = self.layers.current()
        call, grant_id = ticket.call, ticket.grant_id
        if loaded.decider.decide(call).verdict == "deny":
            raise lost(call.tool, "a rule denies it now")
        if grant_id and not grants.spend_grant(tx, grant_id):
            raise lost(call.tool, "its grant was revoked, expired or used up")
        approval = approvals.find_approval(tx, ticket.approval_id) if ticket.approval_id else None
        if approval is not None:
            approvals.execute(tx, approval, "dispatch")
        judged = Judged(
            call,
            ticket.decision,
            action_hash(call, (ruled.access for ruled in ticket.decision.accesses)),
            _OUTCOMES[ticket.passed_by],
            ticket.approval_id,
            grant_id,
            ("grant.used",) if grant_id else (),
        )
        ticket.decision_id = audit.record(tx, judged, loaded.files)

    async def _ask(self, known: Known, decision: Decision) -> Ticket:
        call = known.call
        if known.grant is not None and known.grant.effect == "allow":
            return self._ticket(call, decision, "grant", known.grant)
        if known.grant is not None:
            raise await self._refused(known, decision, "denied", notes=("grant.deny",))
        if known.latest is not None:
            subjects.refuse_fresh_denial(known.latest, call.now_us)
        if self._settings.text("permissions.headless") == "deny":
            raise await self._refused(known, decision, "headless", notes=("headless",))
        with acting(call.principal.text):
            approval = await self._state.write(self._store_question, known, decision)
        raise pending(approval, f"{call.tool} needs a person's answer ({', '.join(decision.reasons)})")

    def _store_question(self, tx: Tx, known: Known, decision: Decision) -> Approval:
        approval = approvals.ask(tx, self._question_of(known, decision, tx))
        if approval.asks == 1:
            judged = Judged(known.call, decision, known.keys.exact, "pending", approval.id, notes=(known.miss,))
            audit.record(tx, judged, self.layers.current().files)
        return approval

    def _question_of(self, known: Known, decision: Decision, tx: Tx) -> NewApproval:
        call = known.call
        options = answers.options_for(
            session_id=call.session_id, workspace_id=call.workspace_id, reusable=call.door == "own"
        )
        workspace = f"{known.workspace.name} ({known.workspace.root})" if known.workspace else ""
        return NewApproval(
            kind="call",
            summary=call_text(
                call, decision, workspace=workspace, options=options, redact=tx.redact, before=known.before
            ),
            principal=call.principal.text,
            options=options,
            ttl_us=self._settings.whole("approvals.ttl_s") * SECOND_US,
            workspace_most=self._settings.whole("approvals.max_pending"),
            server=call.server,
            tool=call.tool,
            action_hash=known.keys.exact,
            input_digest=known.input_digest,
            accesses=[{"text": ruled.access.text, "class": ruled.access.risk} for ruled in decision.accesses],
            session_id=call.session_id,
            root_session_id=known.root_session_id,
            workspace_id=call.workspace_id,
            policy_revision=decision.revision,
        )

    async def _refused(
        self, known: Known, decision: Decision, outcome: Outcome, *, notes: tuple[str, ...] = ()
    ) -> Denied:
        """Record a refusal; return its error."""
        grant_id = known.grant.id if known.grant is not None and decision.verdict == "ask" else ""
        judged = Judged(known.call, decision, known.keys.exact, outcome, "", grant_id, notes)
        with acting(known.call.principal.text):
            decision_id = await self._state.write(_record_refusal, judged, self.layers.current().files, known.latest)
        return refusal(judged, decision_id)

    def _question(self, reading: Reading, approval_id: str, principal: Principal) -> Question | None:
        approval = approvals.find_approval(reading, approval_id)
        if approval is None or approval.state_at(reading.now_us) != "pending":
            return None
        if not form_counts(reading, principal, trusted_hosts=self._trusted_hosts()):
            return None
        return question(approval.summary, approval.options)

    def _trusted_hosts(self) -> frozenset[str]:
        return frozenset(self._settings.texts("elicitation.trusted_hosts"))


def _passes(call: CallFacts, decision: Decision) -> PassedBy | None:
    """Tell what lets a call go that no rule denies, short of a grant."""
    if decision.verdict == "allow":
        return "verdict"
    if call.principal.kind == "user" and not call.principal.facts.supervised:
        return "person"
    if call.asks == "subject":
        return "subject"
    return "asking" if call.action in ASKING_ACTIONS and call.door == "own" else None


def _settle(tx: Tx, ticket: Ticket, *, completed: bool) -> None:
    ticket.spend(tx)
    approval = approvals.find_approval(tx, ticket.approval_id) if ticket.approval_id else None
    if approval is not None:
        approvals.execute(tx, approval, "complete" if completed else "fail")


def _record_refusal(tx: Tx, judged: Judged, files: Sequence[LayerFile], latest: Approval | None) -> str:
    if judged.decision.verdict == "deny" and latest is not None and latest.state == "pending":
        approvals.move(tx, latest, "supersede")
    return audit.record(tx, judged, files)
