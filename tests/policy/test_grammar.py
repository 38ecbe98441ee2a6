"""The rule grammar: every key, every fault with its file and line, and examples that run when a file loads."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.identity import Principal
from agentstead.policy import CallFacts
from agentstead.policy.grammar import Faulty, PolicyFile, read_policy
from agentstead.policy.layers import suite_text
from agentstead.policy.matchers import ArgumentTest, glob_matches, look_up
from agentstead.policy.model import Access
from agentstead.policy.rules import Match

RULE = """
[[rule]]
id = "r"
effect = "deny"
action = ["memory.forget"]
"""


def _read(text: str, *, layer: str = "user") -> PolicyFile:
    return read_policy(text, file="mine.toml", layer=layer)  # type: ignore[arg-type]


def _fault(text: str) -> str:
    with pytest.raises(Faulty) as caught:
        _read(text)
    return str(caught.value.fault)


def _match(text: str, action: str, arguments: dict[str, object] | None = None, *, risk: str = "write") -> Match:
    call = CallFacts(
        server="s",
        tool="t",
        action=action,
        risk=risk,  # type: ignore[arg-type]
        arguments=arguments or {},
        principal=Principal.host("h"),
        now_us=0,
    )
    kind = "mcp" if "/" in action else "action"
    (rule,) = _read("version = 1\n" + text).rules
    return rule.matches(Access(kind, action, risk), call)  # type: ignore[arg-type]


def test_a_rule_with_every_key_is_read() -> None:
    (rule,) = _read(
        """
version = 1
[axes]
risk = "ask-all"
[[rule]]
id = "no-erase.2"
effect = "deny"
action = ["memory.forget", "memory.erase*"]
class = ["destructive"]
args = { scope = "home", "/deep/0" = { max = 3 } }
closed = true
when = { principal = ["agent", "host"], label = "skill:*" }
reason = "Memories are kept."
instead = "memory_write with a correction"
expires = 2031-01-01
match = ['memory.erase {"scope": "home", "deep": [2]}']
not-match = ['memory.erase {"scope": "home", "deep": [4]}', "memory.recall"]
"""
    ).rules
    assert (rule.id, rule.effect, rule.file, rule.line) == ("no-erase.2", "deny", "mine.toml", 5)
    assert rule.actions == ("memory.forget", "memory.erase*")
    assert rule.classes == {"destructive"}
    assert [test.pointer for test in rule.arguments] == ["/scope", "/deep/0"]
    assert rule.when == (("principal", ("agent", "host")), ("label", ("skill:*",)))
    assert (rule.reason, rule.instead) == ("Memories are kept.", "memory_write with a correction")
    assert str(rule.expires) == "2031-01-01"


def test_the_suites_own_rules_hold_their_examples() -> None:
    rules = read_policy(suite_text().decode(), file="suite.toml", layer="user").rules
    assert [(rule.id, rule.effect) for rule in rules] == [
        ("suite.read-write", "allow"),
        ("suite.memory-accept", "ask"),
    ]


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("version = 1\nversion = 2", "policy.syntax: mine.toml:2:"),
        ("", "policy.syntax: mine.toml:1: `version = 1` is required"),
        ("version = 2", "policy.syntax: mine.toml:1: `version = 1` is required"),
        ("version = 1\nmode = 'x'", "policy.unknown_key: mine.toml:2: `mode` is no key of a policy file"),
        ("version = 1\nonly = true", "policy.syntax: mine.toml:2: `only` is true or false, in the managed layer"),
        ("version = 1\n[axes]\nspeed = 'x'", "policy.unknown_key: mine.toml:3: `speed` is no axis"),
        ("version = 1\n[axes]\nrisk = 'yolo'", "policy.syntax: mine.toml:3: risk is one of deny, ask-all"),
        (f"version = 1{RULE}\nexec = ['git']", "policy.unknown_key: mine.toml:7: `exec` is no key of a rule here"),
        (f"version = 1{RULE}{RULE}", "policy.duplicate_id: mine.toml:8: rule id r is used twice"),
        ("version = 1\n[[rule]]\nid = 'R'\neffect='deny'\naction='a.b'", "mine.toml:3: a rule's id is like"),
        ("version = 1\n[[rule]]\nid = 'r'\neffect='maybe'\naction='a.b'", "mine.toml:4: the effect of r is allow"),
        ("version = 1\n[[rule]]\nid = 'r'\neffect='deny'", "mine.toml:3: r needs one selector"),
        ("version = 1\n[[rule]]\nid = 'r'\neffect='deny'\nclass='huge'", "mine.toml:5: 'huge' is no class"),
        (f"version = 1{RULE}\nmcp = {{ server = 'x' }}", "mine.toml:3: r needs one selector"),
        (f"version = 1{RULE}\nwhen = {{ moon = 'full' }}", "policy.unknown_key: mine.toml:7: `when.moon`"),
        (f"version = 1{RULE}\nargs = {{ x = {{ like = 1 }} }}", "policy.unknown_key: mine.toml:7: `args.x` takes"),
        (f"version = 1{RULE}\nclosed = 'yes'", "mine.toml:7: `closed` is true or false"),
        (f"version = 1{RULE}\nexpires = 'soon'", "mine.toml:7: `expires` is a date"),
        (f"version = 1{RULE}\nreason = 3", "mine.toml:7: `reason` is a text"),
        (f"version = 1{RULE}\nmatch = ['memory.recall']", "policy.example_failed: mine.toml:7: r does not match its"),
        (f"version = 1{RULE}\nnot-match = ['memory.forget']", "policy.example_failed: mine.toml:7: r matches its"),
        (f"version = 1{RULE}\nmatch = ['memory.forget {{x']", "mine.toml:7: the arguments of the example"),
        ("version = 1\nrule = 3", "mine.toml:2: `[[rule]]` is a list"),
        (
            "version = 1\n[[rule]]\nid='r'\neffect='allow'\nclass='read'\nwhen={host='claude*'}",
            "policy.claim_in_allow: mine.toml:6: r allows by `host`, which is a claim",
        ),
    ],
)
def test_each_fault_names_its_code_file_and_line(text: str, said: str) -> None:
    assert said in _fault(text)


def test_a_host_may_be_named_in_a_rule_that_only_narrows() -> None:
    (rule,) = _read(f"version = 1{RULE}\nwhen = {{ host = 'claude*' }}").rules
    assert rule.when == (("host", ("claude*",)),)


def test_a_file_that_is_too_large_is_refused() -> None:
    assert "larger than" in _fault("version = 1\n#" + "x" * 1_048_576)


def test_only_a_managed_file_may_forbid_others_to_allow() -> None:
    assert _read("version = 1\nonly = true", layer="managed").only


@pytest.mark.parametrize(
    ("arguments", "holds"),
    [
        ({"n": 1}, True),
        ({"n": 1.0}, True),
        ({"n": True}, False),
        ({"n": "1"}, False),
        ({"n": None}, False),
        ({}, False),
    ],
)
def test_types_must_agree_and_true_is_not_one(arguments: dict[str, object], holds: bool) -> None:
    assert ArgumentTest("/n", 1).holds(arguments) is holds


@pytest.mark.parametrize(
    ("expected", "value", "holds"),
    [
        ("a*", "abc", True),
        ("a*", "bc", False),
        (True, True, True),
        (True, 1, False),
        (["a", 2], 2, True),
        (["a", 2], "b", False),
        ({"min": 2, "max": 4}, 3, True),
        ({"min": 2, "max": 4}, 5, False),
        ({"min": 2}, True, False),
        ({"min": 2}, "3", False),
        ({"not": "home"}, "project", True),
        ({"not": "home"}, "home", False),
        ({"absent": True}, "x", False),
        ({"absent": False}, "x", True),
    ],
)
def test_each_form_of_an_argument_test(expected: object, value: object, holds: bool) -> None:
    assert ArgumentTest("/v", expected).holds({"v": value}) is holds


def test_a_missing_argument_matches_only_absent() -> None:
    assert ArgumentTest("/v", {"absent": True}).holds({})
    assert not ArgumentTest("/v", {"absent": False}).holds({})
    assert not ArgumentTest("/v", {"not": "x"}).holds({})


@pytest.mark.parametrize(
    ("pointer", "found"),
    [("/a/b", 1), ("/a~1b", 2), ("/c/1", "y"), ("/m~0n", 3)],
)
def test_a_pointer_reads_as_the_standard_says(pointer: str, found: object) -> None:
    assert look_up({"a": {"b": 1}, "a/b": 2, "c": ["x", "y"], "m~n": 3}, pointer) == found


@pytest.mark.parametrize("pointer", ["/a/c", "/c/2", "/c/x", "/c/-1", "/a/b/c", "/"])
def test_a_pointer_to_nothing_finds_nothing(pointer: str) -> None:
    assert not ArgumentTest(pointer, {"absent": False}).holds({"a": {"b": 1}, "c": ["x", "y"]})


def test_a_closed_allow_does_not_match_with_an_argument_that_it_does_not_name() -> None:
    allow = "[[rule]]\nid='a'\neffect='allow'\naction='x.y'\nargs={a='1'}\nclosed=true"
    assert _match(allow, "x.y", {"a": "1"}) == "certain"
    assert _match(allow, "x.y", {"a": "1", "b": "2"}) == "none"
    deny = allow.replace("'allow'", "'deny'")
    assert _match(deny, "x.y", {"a": "1", "b": "2"}) == "certain"


def test_an_mcp_rule_without_a_tool_is_about_every_tool_of_the_server() -> None:
    rule = "[[rule]]\nid='a'\neffect='deny'\nmcp={server='git*'}\nmatch=['github/x']\nnot-match=['gitlab']"
    assert _match(rule, "github/get_issue") == "certain"
    assert _match(rule, "notgit/get_issue") == "none"


@given(st.text(max_size=20), st.text(max_size=20))
def test_a_text_without_wildcards_matches_itself_alone(glob: str, text: str) -> None:
    plain = glob.replace("*", "").replace("?", "")
    assert glob_matches(plain, text) == (plain == text)
    assert glob_matches(plain + "*", plain + text)


@given(st.text(max_size=400))
def test_no_text_makes_the_reader_fail_otherwise_than_by_a_fault(text: str) -> None:
    fault = None
    try:
        read_policy(text, file="f", layer="user")
    except Faulty as error:
        fault = error.fault
    assert fault is None or (fault.code.startswith("policy.") and fault.line >= 1)
