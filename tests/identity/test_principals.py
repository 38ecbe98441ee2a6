"""Principals: text forms, claims cleaned, and what proves a person by itself."""

import os
import subprocess
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.identity import Facts, Principal, ancestors, descends_from, parse_principal


@pytest.mark.parametrize(
    ("principal", "text"),
    [
        (Principal.user(), "user"),
        (Principal.host("claude-code", version="2.1"), "host:claude-code"),
        (Principal("session", "ses_1"), "session:ses_1"),
        (Principal.agent("reviewer", session_id="ses_1"), "agent:reviewer@ses_1"),
        (Principal("extension", "tidy"), "extension:tidy"),
    ],
)
def test_each_kind_has_its_text_form_and_it_reads_back(principal: Principal, text: str) -> None:
    assert principal.text == text
    assert parse_principal(text) == (principal.kind, principal.name)


@pytest.mark.parametrize("text", ["", "root", "host:", "user:x", ":x", "hosts:x"])
def test_what_is_no_principal_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="no principal"):
        parse_principal(text)


@given(st.text())
def test_a_claimed_name_cannot_carry_lines_or_marks_and_is_never_empty(name: str) -> None:
    text = Principal.host(name).text
    assert text.startswith("host:")
    assert text.isprintable()
    assert 5 < len(text) <= 69


def test_a_host_cannot_name_itself_into_another_kind() -> None:
    assert parse_principal(Principal.host("user").text) == ("host", "user")
    assert parse_principal(Principal.host("agent:x@ses_1").text)[0] == "host"


@pytest.mark.parametrize(
    ("kind", "facts", "proof"),
    [
        ("user", {"at_terminal": True}, "terminal"),
        ("user", {"at_terminal": False}, None),
        ("user", {"at_terminal": True, "supervised": True}, None),
        ("host", {"door": "socket", "at_terminal": True}, None),
        ("host", {"door": "http", "token": "home"}, None),
        ("host", {"door": "http", "token": "operator"}, "operator"),
        ("host", {"door": "http", "token": "operator", "supervised": True}, None),
        ("host", {"door": "socket", "token": "process"}, None),
        ("agent", {"at_terminal": True}, None),
        ("agent", {"token": "operator"}, None),
        ("session", {"token": "operator"}, None),
        ("extension", {"token": "operator"}, None),
    ],
)
def test_only_a_free_terminal_and_an_operator_token_prove_a_person(
    kind: Any, facts: dict[str, Any], proof: str | None
) -> None:
    assert Principal(kind, "x", facts=Facts(**facts)).proof == proof


def test_an_agent_is_supervised_unless_said() -> None:
    assert Principal.agent("a", session_id="ses_1").facts.supervised


def test_the_processes_above_are_found_nearest_first() -> None:
    tree = {10: 7, 7: 3, 3: 1, 1: 0}
    assert ancestors(10, parent=tree.get) == [7, 3, 1]
    assert descends_from(10, {3}, parent=tree.get) is True
    assert descends_from(10, {4}, parent=tree.get) is False
    assert descends_from(10, {10}, parent=tree.get) is True


def test_an_unknown_ancestry_is_no_answer_rather_than_no() -> None:
    assert descends_from(10, {3}, parent=lambda pid: None) is None


def test_a_loop_in_the_process_table_ends() -> None:
    assert ancestors(1, parent={1: 2, 2: 3, 3: 2}.get) == [2, 3]


def test_a_real_child_descends_from_this_process() -> None:
    code = "import os,sys; from agentstead.identity import ancestors; print(*ancestors(os.getpid()))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=60, check=True)
    assert str(os.getpid()) in done.stdout.split()
