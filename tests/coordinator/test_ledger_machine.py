"""Any order of calls, answers, cancelations and deaths: each call is carried out at most once and answered once."""

import json
from collections import Counter, deque
from typing import Any

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, precondition, rule

from agentstead.coordinator.ledger import Ledger, Outgoing


def dump(message: dict[str, Any]) -> bytes:
    return json.dumps({"jsonrpc": "2.0", **message}, separators=(",", ":")).encode() + b"\n"


class Shimmed(RuleBasedStateMachine):
    """A host and one coordinator after the other, with the shim's queue between them."""

    def __init__(self) -> None:
        super().__init__()
        self.ledger = Ledger()
        self.queue: deque[Outgoing] = deque()
        self.next_key = 0
        self.asked: set[int] = set()
        self.canceled: set[int] = set()
        self.answers: Counter[int] = Counter()
        self.carried_out: Counter[int] = Counter()
        self.at_work: list[dict[str, Any]] = []
        self.heard_first: list[str] = []
        self.initialized = False
        self.handshaken = False
        self.generation = 1
        self.questions: set[Any] = set()
        self.open_questions: dict[Any, int] = {}

    def host_says(self, message: dict[str, Any]) -> None:
        item = self.ledger.from_host(dump(message))
        if item is not None:
            self.queue.append(item)

    def coordinator_says(self, message: dict[str, Any]) -> None:
        told = self.ledger.from_coordinator(dump(message))
        if told is not None:
            self.host_hears(json.loads(told))

    def host_hears(self, message: dict[str, Any]) -> None:
        if "method" not in message:
            self.answers[message["id"]] += 1
        elif "id" in message:
            assert message["id"] not in self.questions, "two questions under one id"
            self.questions.add(message["id"])
            self.open_questions[message["id"]] = self.generation
        elif message["method"] == "notifications/cancelled":
            self.open_questions.pop(message["params"]["requestId"], None)

    @precondition(lambda self: not self.initialized)
    @rule()
    def initialize(self) -> None:
        self.initialized = True
        self.asked.add(self.next_key)
        self.host_says({"id": self.next_key, "method": "initialize", "params": {}})
        self.next_key += 1

    @rule(method=st.sampled_from(["tools/call", "tools/list", "subscriptions/listen", "resources/subscribe"]))
    def ask(self, method: str) -> None:
        self.asked.add(self.next_key)
        params = {"name": "save", "uri": f"a://{self.next_key % 3}"}
        self.host_says({"id": self.next_key, "method": method, "params": params})
        self.next_key += 1

    @precondition(lambda self: self.asked)
    @rule(data=st.data())
    def cancel(self, data: st.DataObject) -> None:
        key = data.draw(st.sampled_from(sorted(self.asked)))
        self.canceled.add(key)
        self.host_says({"method": "notifications/cancelled", "params": {"requestId": key}})

    @rule(count=st.integers(1, 5))
    def deliver(self, count: int) -> None:
        for _ in range(min(count, len(self.queue))):
            item = self.queue.popleft()
            self.ledger.sent(item)
            message = json.loads(item.line)
            if "method" in message:
                self.heard_first.append(message["method"])
                if "id" in message:
                    self.at_work.append(message)
                    if message["method"] == "tools/call":
                        self.carried_out[message["id"]] += 1

    @precondition(lambda self: self.at_work)
    @rule(data=st.data(), fails=st.booleans())
    def answer(self, data: st.DataObject, fails: bool) -> None:
        message = self.at_work.pop(data.draw(st.integers(0, len(self.at_work) - 1)))
        outcome = {"error": {"code": -1, "message": "no"}} if fails else {"result": {}}
        self.coordinator_says({"id": message["id"], **outcome})

    @rule(number=st.integers(1, 3))
    def question(self, number: int) -> None:
        key = number + 100 * len(self.questions)
        self.coordinator_says({"id": key, "method": "elicitation/create", "params": {}})

    @rule()
    def die(self) -> None:
        for line in self.ledger.lost():
            self.host_hears(json.loads(line))
        kept = [item for item in self.queue if item.lasting]
        self.queue = deque([*self.ledger.again(), *kept])
        self.at_work.clear()
        self.heard_first.clear()
        self.handshaken = self.ledger.legacy
        self.generation += 1

    @invariant()
    def no_call_is_carried_out_twice(self) -> None:
        assert all(count == 1 for count in self.carried_out.values())

    @invariant()
    def nothing_is_answered_twice_or_unasked(self) -> None:
        assert all(count == 1 for count in self.answers.values())
        assert set(self.answers) <= self.asked

    @invariant()
    def an_accepted_handshake_comes_first(self) -> None:
        if self.handshaken and self.heard_first:
            assert self.heard_first[0] == "initialize"

    @invariant()
    def no_question_of_a_dead_coordinator_is_open(self) -> None:
        assert all(generation == self.generation for generation in self.open_questions.values())

    def teardown(self) -> None:
        """Whatever is still open: one more coordinator that answers everything settles it."""
        self.die()
        self.deliver(len(self.queue))
        for message in self.at_work:
            self.coordinator_says({"id": message["id"], "result": {}})
        assert self.asked - self.canceled <= set(self.answers)
        assert not self.ledger.open


TestShimmed = Shimmed.TestCase
TestShimmed.settings = settings(max_examples=60, stateful_step_count=40, deadline=None)
