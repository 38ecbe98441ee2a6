"""The pure decision: axes, rules, layers, floors; and the properties that hold for any set of rules."""

import importlib
import itertools
import random
from collections.abc import Mapping
from dataclasses import replace
from datetime import date
from typing import Any, get_args

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.identity import Principal
from agentstead.policy import CallFacts, PolicySet, decide
from agentstead.policy.axes import Axes, RiskAxis, default_verdict, strictest_axes
from agentstead.policy.decide import Decider
from agentstead.policy.matchers import ArgumentTest
from agentstead.policy.model import LAYERS, RISKS, VERDICTS, Verdict, is_looser, strictest
from agentstead.policy.rules import Rule

NOW_US = 1_800_000_000_000_000
RISK_VALUES: tuple[RiskAxis, ...] = get_args(RiskAxis)


class Broken(ArgumentTest):
    """A test that fails while it runs."""

    def holds(self, arguments: Mapping[str, Any]) -> bool:
        raise ValueError("cannot tell")


def _call(action: str = "workspace.promote", risk: Any = "destructive", **more: Any) -> CallFacts:
    fields: dict[str, Any] = {"arguments": {}, "principal": Principal.host("h"), **more}
    return CallFacts(server="workspace", tool="t", action=action, risk=risk, now_us=NOW_US, **fields)


def _rule(rule_id: str, effect: Verdict, *actions: str, **more: Any) -> Rule:
    fields: dict[str, Any] = {"layer": "user", "file": "f.toml", "line": 1, **more}
    return Rule(rule_id, effect, actions=actions, **fields)


def _set(*rules: Rule, **more: Any) -> PolicySet:
    return PolicySet("r", rules, **more)


@pytest.mark.parametrize(
    ("axis", "allowed", "otherwise"),
    [
        ("deny", set(), "deny"),
        ("ask-all", set(), "ask"),
        ("ask-writes", {"read"}, "ask"),
        ("auto", {"read", "write", "execute"}, "ask"),
    ],
)
def test_each_value_of_the_risk_axis_gives_each_class_its_default(axis: Any, allowed: set[str], otherwise: str) -> None:
    for risk in RISKS:
        decision = decide(_set(axes=Axes(axis)), _call(risk=risk))
        assert decision.verdict == ("allow" if risk in allowed else otherwise)
        assert decision.reasons == ("axis.risk",)


def test_a_stricter_axis_is_never_looser() -> None:
    for risk in RISKS:
        verdicts = [default_verdict(value, risk) for value in RISK_VALUES]
        assert all(not is_looser(stricter, looser) for stricter, looser in itertools.pairwise(verdicts))


def test_the_strictest_set_axis_holds_and_an_unset_one_gives_the_default() -> None:
    assert strictest_axes([]) == Axes("ask-writes")
    assert strictest_axes([Axes("auto"), Axes()]) == Axes("auto")
    assert strictest_axes([Axes("auto"), Axes("ask-all"), Axes("ask-writes")]) == Axes("ask-all")


def test_a_call_without_any_access_is_asked() -> None:
    assert decide(_set(_rule("a", "allow", "*")), _call(), ()).verdict == "ask"


def test_an_allow_rule_beats_the_axis_and_an_ask_or_deny_beats_the_allow() -> None:
    allow, ask, deny = (_rule(effect, effect, "workspace.promote") for effect in VERDICTS)
    assert decide(_set(allow), _call()).verdict == "allow"
    assert decide(_set(allow, ask), _call()).verdict == "ask"
    assert decide(_set(allow, ask, deny), _call()).verdict == "deny"


def test_no_value_of_an_axis_lifts_an_ask_or_a_deny() -> None:
    for effect in VERDICTS[1:]:
        rule = _rule("r", effect, "memory.*")
        for axis in RISK_VALUES:
            decision = decide(_set(rule, axes=Axes(axis)), _call("memory.accept", "write"))
            assert not is_looser(decision.verdict, effect)


def test_a_decision_names_each_rule_that_spoke_and_each_layers_verdict() -> None:
    rules = (
        _rule("b", "ask", "workspace.*", layer="workspace"),
        _rule("a", "allow", "workspace.promote", reason="why", instead="what"),
    )
    ruled = decide(_set(*rules), _call()).accesses[0]
    assert [(hit.id, hit.layer, hit.effect, hit.file, hit.line) for hit in ruled.rules] == [
        ("a", "user", "allow", "f.toml", 1),
        ("b", "workspace", "ask", "f.toml", 1),
    ]
    published = ruled.as_dict()
    assert published["layers"] == {
        "builtin": "none",
        "managed": "none",
        "user": "allow",
        "workspace": "ask",
        "session": "none",
    }
    assert (published["text"], published["class"], published["origin"]) == (
        "action workspace.promote",
        "destructive",
        "direct",
    )


@pytest.mark.parametrize("layer", ["builtin", "session"])
def test_builtin_and_session_never_allow(layer: Any) -> None:
    decision = decide(_set(_rule("a", "allow", "*", layer=layer)), _call())
    assert (decision.verdict, decision.reasons) == ("ask", ("axis.risk", "layer.untrusted"))


def test_an_untrusted_layer_may_narrow_but_not_allow() -> None:
    untrusted = frozenset({"workspace"})
    allow = _rule("a", "allow", "*", layer="workspace")
    assert decide(_set(allow, untrusted=untrusted), _call()).reasons == ("axis.risk", "layer.untrusted")
    assert decide(_set(allow), _call()).verdict == "allow"
    deny = _rule("d", "deny", "*", layer="workspace")
    assert decide(_set(deny, untrusted=untrusted), _call(risk="read")).verdict == "deny"


def test_only_managed_allows_where_it_says_so() -> None:
    mine = _rule("a", "allow", "*")
    theirs = _rule("m", "allow", "*", layer="managed")
    assert decide(_set(mine, managed_only=True), _call()).reasons == ("axis.risk", "layer.managed_only")
    assert decide(_set(mine, theirs, managed_only=True), _call()).verdict == "allow"


def test_an_ask_rule_does_not_lift_what_the_axis_denies_but_an_allow_rule_does() -> None:
    ask, allow = _rule("q", "ask", "*"), _rule("a", "allow", "*")
    assert decide(_set(ask, axes=Axes("deny")), _call()).verdict == "deny"
    assert decide(_set(ask, axes=Axes("deny")), _call()).reasons == ("axis.risk", "rule.ask")
    assert decide(_set(ask, allow, axes=Axes("deny")), _call()).verdict == "ask"
    assert decide(_set(allow, axes=Axes("deny")), _call()).verdict == "allow"


def test_a_broken_layer_makes_everything_at_least_ask() -> None:
    decision = decide(_set(_rule("a", "allow", "*"), broken=("user",)), _call(risk="read"))
    assert (decision.verdict, decision.reasons) == ("ask", ("layer.broken",))


def test_a_stale_layer_is_marked_in_every_decision() -> None:
    decision = decide(_set(_rule("a", "allow", "*"), stale=("user",)), _call())
    assert (decision.verdict, decision.stale) == ("allow", ("user",))
    assert "layer.stale" in decision.reasons


def test_an_expired_rule_is_inert_from_the_day_after() -> None:
    rule = _rule("d", "deny", "*", expires=date(2027, 1, 15))
    last_moment = 1_800_057_599_000_000  # 2027-01-15 23:59:59 UTC
    assert decide(_set(rule), replace(_call(risk="read"), now_us=last_moment)).verdict == "deny"
    assert decide(_set(rule), replace(_call(risk="read"), now_us=last_moment + 1_000_000)).verdict == "allow"


@pytest.mark.parametrize(
    ("condition", "globs", "principal", "more", "holds"),
    [
        ("actor", ("rev*",), Principal.agent("reviewer", session_id="ses_1"), {}, True),
        ("actor", ("*",), Principal.host("reviewer"), {}, False),
        ("principal", ("agent",), Principal.agent("x", session_id="ses_1"), {}, True),
        ("principal", ("user",), Principal.agent("x", session_id="ses_1"), {}, False),
        ("host", ("desk*",), Principal.host("desk-host"), {}, True),
        ("host", ("*",), Principal.user(), {}, False),
        ("workspace", ("wsp_1",), Principal.user(), {"workspace_id": "wsp_1"}, True),
        ("workspace", ("*",), Principal.user(), {}, False),
        ("label", ("skill:*",), Principal.user(), {"labels": frozenset({"web", "skill:x:community"})}, True),
        ("label", ("skill:*",), Principal.user(), {"labels": frozenset({"web"})}, False),
    ],
)
def test_a_condition_looks_at_its_one_thing_and_a_missing_thing_meets_none(
    condition: Any, globs: tuple[str, ...], principal: Principal, more: dict[str, Any], holds: bool
) -> None:
    rule = _rule("d", "deny", "*", when=((condition, globs),))
    assert (decide(_set(rule), _call(risk="read", principal=principal, **more)).verdict == "deny") is holds


def test_somebody_elses_tool_is_external_whatever_class_is_claimed() -> None:
    call = _call("github/get_issue", "read", door="gateway")
    decision = decide(_set(axes=Axes("auto")), call)
    assert (decision.verdict, decision.risk) == ("ask", "external")
    assert decision.accesses[0].access.text == "mcp github/get_issue"


def test_server_and_tool_are_compared_as_a_pair_and_never_joined() -> None:
    rule = _rule("a", "allow", tools=(("git", "hub*"),))
    assert decide(_set(rule), _call("git/hub_x", door="gateway")).verdict == "allow"
    assert decide(_set(rule), _call("git/x", door="gateway")).verdict == "ask"
    assert decide(_set(rule), _call("github/x", door="gateway")).verdict == "ask"


def test_an_error_inside_a_rule_asks_for_deny_and_ask_and_never_allows() -> None:
    for effect in VERDICTS:
        rule = _rule("r", effect, "*", arguments=(Broken("/x", 1),))
        assert decide(_set(rule), _call()).verdict == "ask"
        assert decide(_set(rule), _call(risk="read")).verdict == ("allow" if effect == "allow" else "ask")
    assert decide(_set(_rule("r", "deny", "*", arguments=(Broken("/x", 1),))), _call()).reasons == ("rule.possible",)


actions = st.sampled_from(["*", "workspace.*", "workspace.promote", "memory.*", "memory.accept"])
some_rules = st.lists(
    st.builds(
        Rule,
        id=st.uuids().map(str),
        effect=st.sampled_from(VERDICTS),
        layer=st.sampled_from(LAYERS),
        file=st.sampled_from(["a.toml", "b.toml"]),
        line=st.integers(1, 9),
        actions=st.tuples(actions),
        classes=st.frozensets(st.sampled_from(RISKS), max_size=2),
        closed=st.booleans(),
        arguments=st.sampled_from([(), (ArgumentTest("/x", 1),), (Broken("/x", 1),)]),
    ),
    max_size=6,
)
some_calls = st.builds(
    _call,
    st.sampled_from(["workspace.promote", "memory.accept", "network.send"]),
    st.sampled_from(RISKS),
    arguments=st.sampled_from([{}, {"x": 1}, {"x": 2, "y": 3}]),
)
some_axes = st.builds(Axes, risk=st.sampled_from(RISK_VALUES))


@given(some_rules, some_calls, some_axes, st.randoms())
def test_the_order_of_rules_changes_nothing(
    rules: list[Rule], call: CallFacts, axes: Axes, chance: random.Random
) -> None:
    shuffled = list(rules)
    chance.shuffle(shuffled)
    assert decide(_set(*rules, axes=axes), call) == decide(_set(*shuffled, axes=axes), call)


@given(some_rules, some_rules, some_calls, some_axes)
def test_adding_ask_and_deny_rules_never_loosens(
    rules: list[Rule], added: list[Rule], call: CallFacts, axes: Axes
) -> None:
    more = [rule for rule in added if rule.effect != "allow"]
    before = decide(_set(*rules, axes=axes), call).verdict
    assert not is_looser(decide(_set(*rules, *more, axes=axes), call).verdict, before)


@given(some_rules, some_rules, some_calls, some_axes)
def test_whatever_is_added_to_a_layer_that_may_not_allow_never_loosens(
    rules: list[Rule], added: list[Rule], call: CallFacts, axes: Axes
) -> None:
    lower = [replace(rule, layer="session" if rule.closed else "workspace") for rule in added]
    untrusted = frozenset({"workspace"})
    before = decide(_set(*rules, axes=axes, untrusted=untrusted), call).verdict
    after = decide(_set(*rules, *lower, axes=axes, untrusted=untrusted), call).verdict
    assert not is_looser(after, before)


@given(some_rules, some_calls, some_axes)
def test_breaking_any_rules_matcher_never_loosens_what_it_forbids(
    rules: list[Rule], call: CallFacts, axes: Axes
) -> None:
    broken = [replace(rule, arguments=(Broken("/x", 1),)) for rule in rules]
    verdict = decide(_set(*broken, axes=axes), call).verdict
    wanted = [rule.effect for rule in broken if rule.effect != "allow" and rule.matches(_access(call), call) != "none"]
    assert not is_looser(verdict, "ask" if wanted else default_verdict(axes.risk or "deny", call.risk))


@given(some_rules, st.lists(some_calls, min_size=1, max_size=6), some_axes)
def test_what_is_remembered_is_what_would_be_decided(rules: list[Rule], calls: list[CallFacts], axes: Axes) -> None:
    policy = _set(*rules, axes=axes)
    decider = Decider(policy)
    for call in calls * 2:
        assert decider.decide(call) == decide(policy, call)


def test_a_rule_that_looks_deeper_is_asked_each_time() -> None:
    rule = _rule("d", "deny", "memory.*", when=(("principal", ("agent",)),))
    decider = Decider(_set(rule))
    agent = Principal.agent("x", session_id="ses_1")
    for principal, verdict in [(Principal.host("h"), "allow"), (agent, "deny"), (Principal.host("h"), "allow")]:
        assert decider.decide(_call("memory.recall", "read", principal=principal)).verdict == verdict


def test_what_is_remembered_is_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(importlib.import_module("agentstead.policy.decide"), "REMEMBERED", 3)
    decider = Decider(_set())
    for n in range(10):
        assert decider.decide(_call(f"memory.{n}", "read")).verdict == "allow"
        assert len(decider._known) <= 3


@given(st.lists(st.sampled_from(VERDICTS)))
def test_the_strictest_verdict_is_the_worst_of_all(verdicts: list[Verdict]) -> None:
    expected = "deny" if "deny" in verdicts else "ask" if "ask" in verdicts or not verdicts else "allow"
    assert strictest(verdicts) == expected


def _access(call: CallFacts) -> Any:
    return decide(_set(), call).accesses[0].access
