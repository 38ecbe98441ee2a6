"""Scopes: ids, defaults, and who may touch what."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.memory.scopes import Reach, Scope, agent_name, read_scope, resolve_scope, scope_token
from agentstead.memory.vocabulary import MEMORY_TYPES, Trust
from agentstead.state import AgentsteadError, Denied, Invalid, NotFound

ULID = "01J9ZZZZZZZZZZZZZZZZZZZZZ"
WSP, OTHER = f"wsp_{ULID}A", f"wsp_{ULID}B"
SES, PAST = f"ses_{ULID}A", f"ses_{ULID}B"

HOST = Reach("host:desk", "host", agent="desk", workspace_id=WSP, session_id=SES)
LONE = Reach("host:desk app", "host")
USER = Reach("user", "user", workspace_id=WSP)

scope_ids = st.sampled_from(
    [
        *("home", f"workspace:{WSP}", f"workspace:{OTHER}", "agent:desk", "agent:other", f"agent:desk@{WSP}"),
        *(f"agent:desk@{OTHER}", f"agent:other@{WSP}", f"session:{SES}", f"session:{PAST}"),
    ]
)


@given(scope_ids)
def test_reading_a_scope_and_writing_its_id_is_the_same(text: str) -> None:
    assert read_scope(text).id == text


@pytest.mark.parametrize(
    "text",
    [
        "",
        "homes",
        "workspace:",
        "workspace:wsp_1",
        "workspace:../x",
        "agent:",
        "agent:a b",
        "agent:a@b",
        "session:x",
        "x:y",
    ],
)
def test_anything_else_is_no_scope(text: str) -> None:
    with pytest.raises(Invalid) as refused:
        read_scope(text)
    assert refused.value.code == "memory.invalid"


@pytest.mark.parametrize(
    ("memory_type", "scope"),
    [
        ("preference", "home"),
        ("instruction", "home"),
        ("person", "home"),
        ("fact", f"workspace:{WSP}"),
        ("choice", f"workspace:{WSP}"),
        ("procedure", f"workspace:{WSP}"),
        ("incident", f"workspace:{WSP}"),
        ("reference", f"workspace:{WSP}"),
        ("episode", f"session:{SES}"),
    ],
)
def test_each_type_has_its_default_scope(memory_type: str, scope: str) -> None:
    assert memory_type in MEMORY_TYPES
    assert resolve_scope(None, HOST, next(each for each in MEMORY_TYPES if each == memory_type)).id == scope


def test_bare_words_mean_the_callers_own_scope() -> None:
    assert [resolve_scope(word, HOST).id for word in ("home", "workspace", "agent", "session")] == [
        "home",
        f"workspace:{WSP}",
        f"agent:desk@{WSP}",
        f"session:{SES}",
    ]


@pytest.mark.parametrize(
    ("call", "code"),
    [
        (lambda: resolve_scope(None, LONE, "fact"), "memory.workspace_required"),
        (lambda: resolve_scope("workspace", LONE), "memory.workspace_required"),
        (lambda: resolve_scope(None, LONE, "episode"), "memory.invalid"),
        (lambda: resolve_scope("agent", LONE), "memory.scope_denied"),
        (lambda: resolve_scope(f"workspace:{OTHER}", HOST), "memory.scope_denied"),
        (lambda: resolve_scope("agent:other", HOST), "memory.scope_denied"),
        (lambda: resolve_scope(f"session:{PAST}", HOST), "memory.scope_denied"),
    ],
)
def test_there_is_no_silent_fallback(call: "object", code: str) -> None:
    assert callable(call)
    with pytest.raises(AgentsteadError) as refused:
        call()
    assert refused.value.code == code
    assert refused.value.remedy


@given(scope_ids, st.sampled_from([HOST, LONE]))
def test_a_caller_touches_only_its_own_scopes(text: str, reach: Reach) -> None:
    own = {*reach.scopes(), "agent:desk"} if reach.agent else set(reach.scopes())
    assert reach.may_touch(read_scope(text)) == (text in own)


@given(scope_ids)
def test_a_person_touches_every_scope(text: str) -> None:
    assert USER.may_touch(read_scope(text))


def test_the_default_set_runs_from_the_strongest_to_the_weakest() -> None:
    assert HOST.scopes() == [f"session:{SES}", f"agent:desk@{WSP}", "agent:desk", f"workspace:{WSP}", "home"]
    assert LONE.scopes() == ["home"]


def test_trust_comes_from_the_principal() -> None:
    kinds = {"user": 4, "host": 2, "agent": 1, "session": 1, "extension": 0}
    made = {kind: Reach("x", kind).trust for kind in ("user", "host", "agent", "session", "extension")}
    assert made == {kind: Trust(value) for kind, value in kinds.items()}


@given(scope_ids, scope_ids, st.sampled_from(["", "frk_1"]), st.sampled_from(["", "frk_1"]))
def test_scopes_and_forks_share_no_index_word(left: str, right: str, one: str, two: str) -> None:
    assert (scope_token(left, one) == scope_token(right, two)) == ((left, one) == (right, two))


def test_an_agents_name_is_what_can_stand_in_a_scope() -> None:
    assert agent_name(f"reviewer@{SES}") == "reviewer"
    assert agent_name("Claude Desktop") == ""
    assert Scope("agent", agent="a", workspace_id=WSP).id == f"agent:a@{WSP}"


def test_a_foreign_scope_is_denied_with_those_that_are_open() -> None:
    with pytest.raises(Denied) as refused:
        resolve_scope(f"workspace:{OTHER}", HOST)
    assert f"workspace:{WSP}" in refused.value.remedy


def test_a_missing_workspace_says_how_to_name_one() -> None:
    with pytest.raises(NotFound) as refused:
        resolve_scope("workspace", LONE)
    assert "AGENTSTEAD_WORKSPACE" in refused.value.remedy
