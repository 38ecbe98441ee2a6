"""The files of the user layer: the first start, changes while running, faults that never loosen, revisions."""

import os
from collections.abc import Callable
from pathlib import Path

import pytest

from agentstead.policy import CallFacts, Enforcement
from agentstead.policy.layers import seed, suite_text
from agentstead.state import SimulatedClock

pytestmark = pytest.mark.anyio

DENY_ALL = '[[rule]]\nid = "stop"\neffect = "deny"\naction = ["memory.*"]\n'

Calls = Callable[..., CallFacts]
Rules = Callable[..., None]


async def test_a_new_home_gets_the_suites_file_and_is_judged_by_it(
    enforcement: Enforcement, call: Calls, home_path: Path
) -> None:
    verdicts = {
        (action, risk): enforcement.decide(call(action, risk)).verdict
        for action, risk in [
            ("memory.recall", "read"),
            ("sessions.task_save", "write"),
            ("memory.accept", "write"),
            ("workspace.check", "execute"),
            ("workspace.promote", "destructive"),
            ("skills.install", "external"),
            ("permissions.secret_put", "secret"),
            ("stranger.note", "write"),
        ]
    }
    assert list(verdicts.values()) == ["allow", "allow", "ask", "ask", "ask", "ask", "ask", "ask"]
    assert (home_path / "policy.d" / "suite.toml").read_bytes() == suite_text()


async def test_a_folder_that_exists_is_left_as_it_is(enforcement: Enforcement, call: Calls, home_path: Path) -> None:
    (home_path / "policy.d").mkdir()
    assert enforcement.decide(call("sessions.task_save", "write")).verdict == "ask"
    assert list((home_path / "policy.d").iterdir()) == []


async def test_two_first_starts_at_once_leave_one_whole_folder(home_path: Path) -> None:
    seed(home_path / "policy.d")
    seed(home_path / "policy.d")
    assert sorted(path.name for path in home_path.iterdir()) == sorted(
        ["config.toml", "policy.d", *_database(home_path)]
    )


async def test_a_home_that_cannot_be_written_is_judged_by_the_packaged_rules(
    enforcement: Enforcement, call: Calls, home_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refuse(*_args: object, **_more: object) -> str:
        raise PermissionError(13, "read-only")

    monkeypatch.setattr("agentstead.policy.layers.tempfile.TemporaryDirectory", refuse)
    assert enforcement.decide(call("sessions.task_save", "write")).verdict == "allow"
    assert not (home_path / "policy.d").exists()


async def test_a_change_is_seen_within_a_second_and_at_once_by_an_escalated_call(
    enforcement: Enforcement, call: Calls, rules: Rules, clock: SimulatedClock
) -> None:
    assert enforcement.decide(call("memory.recall", "read")).verdict == "allow"
    rules(DENY_ALL)
    assert enforcement.decide(call("memory.recall", "read")).verdict == "allow"
    assert enforcement.decide(call("memory.forget", "destructive")).verdict == "deny"
    assert enforcement.decide(call("memory.recall", "read")).verdict == "deny"
    rules(DENY_ALL.replace("deny", "ask"))
    clock.advance(seconds=1.5)
    assert enforcement.decide(call("memory.recall", "read")).verdict == "ask"


async def test_a_faulty_file_keeps_the_last_good_state_and_says_so(
    enforcement: Enforcement, call: Calls, rules: Rules, clock: SimulatedClock
) -> None:
    rules(DENY_ALL)
    assert enforcement.decide(call("memory.recall", "read")).verdict == "deny"
    good = enforcement.layers.current().policy.revision
    rules(DENY_ALL.replace("deny", "dney"))
    clock.advance(seconds=2)
    decision = enforcement.decide(call("memory.recall", "read"))
    assert (decision.verdict, decision.stale, decision.revision) == ("deny", ("user",), good)
    assert "layer.stale" in decision.reasons
    (fault,) = enforcement.layers.current().faults
    assert (fault.code, fault.file, fault.line) == ("policy.syntax", "mine.toml", 4)
    rules("")
    clock.advance(seconds=2)
    assert enforcement.decide(call("workspace.log", "read")).stale == ()


async def test_a_faulty_file_at_the_first_load_makes_everything_at_least_ask(
    enforcement: Enforcement, call: Calls, rules: Rules
) -> None:
    rules("[[rule]]\n")
    decision = enforcement.decide(call("memory.recall", "read"))
    assert (decision.verdict, decision.reasons) == ("ask", ("layer.broken",))


async def test_one_bad_file_refuses_the_whole_layer(enforcement: Enforcement, call: Calls, rules: Rules) -> None:
    rules(DENY_ALL, name="a.toml")
    rules("[[rule]]\n", name="b.toml")
    assert enforcement.decide(call("memory.recall", "read")).reasons == ("layer.broken",)


async def test_an_id_in_two_files_is_a_fault(enforcement: Enforcement, rules: Rules) -> None:
    rules(DENY_ALL, name="a.toml")
    rules(DENY_ALL, name="b.toml")
    (fault,) = enforcement.layers.current().faults
    assert (fault.code, fault.file) == ("policy.duplicate_id", "b.toml")


async def test_a_file_that_is_no_text_is_a_fault(enforcement: Enforcement, home_path: Path) -> None:
    (home_path / "policy.d").mkdir()
    (home_path / "policy.d" / "x.toml").write_bytes(b"\xff\xfe")
    assert enforcement.layers.current().faults[0].code == "policy.syntax"


async def test_hidden_and_other_files_are_no_policy(enforcement: Enforcement, call: Calls, rules: Rules) -> None:
    rules("[[rule]]\n", name=".draft.toml")
    rules("[[rule]]\n", name="notes.txt")
    assert enforcement.layers.current().faults == ()
    assert enforcement.decide(call("memory.recall", "read")).verdict == "allow"


async def test_the_same_files_are_the_same_revision_and_others_another(
    enforcing: Callable[..., Enforcement], rules: Rules, home_path: Path
) -> None:
    rules(DENY_ALL)
    first = enforcing().layers.current().policy.revision
    os.utime(home_path / "policy.d" / "mine.toml", (1, 1))
    assert enforcing().layers.current().policy.revision == first
    assert enforcing(permissions__axes__risk="auto").layers.current().policy.revision != first
    rules(DENY_ALL + "\n")
    assert enforcing().layers.current().policy.revision != first


async def test_the_configured_axis_and_a_files_axis_meet_at_the_strictest(
    enforcing: Callable[..., Enforcement], call: Calls, rules: Rules
) -> None:
    rules('[axes]\nrisk = "auto"\n')
    assert enforcing().decide(call("x.run", "execute")).verdict == "allow"
    assert enforcing(permissions__axes__risk="ask-writes").decide(call("x.run", "execute")).verdict == "ask"
    assert enforcing(permissions__axes__risk="deny").decide(call("x.look", "read")).verdict == "deny"
    by_source = dict(enforcing(permissions__axes__risk="deny").layers.current().axes_of)
    assert (by_source["config"].risk, by_source["mine.toml"].risk) == ("deny", "auto")


def _database(home_path: Path) -> list[str]:
    return [path.name for path in home_path.iterdir() if path.name.startswith(("state.db", "coordinator"))]
