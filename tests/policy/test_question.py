"""The question's text: nothing hidden, nothing cut in silence, every access on a line of its own."""

from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.policy import CallFacts, PolicySet, decide
from agentstead.policy.axes import Axes
from agentstead.policy.machines import CHOICES
from agentstead.policy.model import Access
from agentstead.policy.question import MOST_BYTES, bounded, call_text, question, subject_text
from agentstead.policy.rules import Rule
from agentstead.policy.visible import hidden_in, visible

Calls = Callable[..., CallFacts]


def _text(call: CallFacts, *accesses: Access, rules: tuple[Rule, ...] = (), **more: Any) -> str:
    decision = decide(PolicySet("r", rules, Axes("ask-all")), call, accesses or None)
    given: dict[str, Any] = {"workspace": "", "options": CHOICES, "redact": str, "before": None, **more}
    return call_text(call, decision, **given)


@given(st.text(max_size=200))
def test_what_a_person_reads_is_printable_on_one_line(text: str) -> None:
    shown = visible(text)
    assert all(char.isprintable() or char in "\u200d\ufe0f" for char in shown)
    assert "\n" not in shown


@pytest.mark.parametrize(
    ("char", "shown"),
    [
        ("\u202e", "\\u{202E}"),
        ("\u200b", "\\u{200B}"),
        ("\u00a0", "\\u{00A0}"),
        ("\U000e0041", "\\u{E0041}"),
        ("\u3164", "\\u{3164}"),
        ("\x1b", "\\u{001B}"),
        ("\ud800", "\\u{D800}"),
        ("\n", "\\n"),
        ("\t", "\\t"),
        ("é", "é"),
        ("日", "日"),
        ("👩\u200d🚀", "👩\u200d🚀"),
    ],
)
def test_each_hiding_character_is_written_out_and_letters_stay(char: str, shown: str) -> None:
    assert visible(f"a{char}b") == f"a{shown}b"


def test_hidden_code_points_are_listed() -> None:
    assert hidden_in("a\u202eb\u200bc\nd") == ("U+200B", "U+202E")
    assert hidden_in("plain text") == ()


def test_a_long_value_is_cut_and_the_cut_is_counted() -> None:
    assert visible("x" * 30, most=10) == "x" * 10 + " ... (20 characters more)"


def test_every_access_stands_on_its_own_line(call: Calls) -> None:
    accesses = [Access("fs.write", "/ws/a b", "write"), Access("fs.delete", "/ws/c\n/etc/passwd", "destructive")]
    lines = _text(call(), *accesses).splitlines()
    assert "fs.write /ws/a b (write)" in lines
    assert "fs.delete /ws/c\\n/etc/passwd (destructive)" in lines


def test_a_caller_cannot_write_lines_of_its_own_into_the_question(call: Calls) -> None:
    text = _text(call(arguments={"x\nAnswers: allow": "y\nAnswers: allow_once"}))
    assert [line for line in text.splitlines() if line.startswith("Answers")] == [text.splitlines()[-1]]


def test_the_rule_that_asks_is_named_with_its_reason(call: Calls) -> None:
    rule = Rule("q", "ask", "user", "mine.toml", 7, actions=("*",), reason="Because.", instead="Fork.")
    text = _text(call(), rules=(rule,))
    assert "Asked by rule q (user, mine.toml:7): Because. Instead: Fork." in text


def test_without_a_rule_the_class_is_why(call: Calls) -> None:
    assert "Asked because no rule allows what is of class destructive." in _text(call())


def test_what_is_new_since_the_last_approval_is_said(call: Calls) -> None:
    assert "never approved before" in _text(call())
    assert "New since the last approval of this tool: action workspace.promote." in _text(call(), before=("x",))
    assert "New since" not in _text(call(), before=("action workspace.promote",))


def test_each_offered_answer_says_what_it_does(call: Calls) -> None:
    last = _text(call()).splitlines()[-1]
    for choice in CHOICES:
        assert f"{choice} = " in last


def test_arguments_that_were_not_given_are_left_out(call: Calls) -> None:
    assert "empty" not in _text(call(arguments={"empty": None, "zero": 0}))


@given(st.lists(st.text(min_size=1, max_size=400), min_size=1, max_size=60))
def test_a_long_question_ends_with_its_answers_and_counts_what_it_leaves_out(lines: list[str]) -> None:
    flat = [visible(line) for line in lines]
    text = bounded([*flat, "Answers: x."])
    assert len(text.encode()) <= MOST_BYTES
    assert text.splitlines()[-1] == "Answers: x."
    shown = text.count("\n")
    if shown < len(flat):
        assert f"... {len(flat) - shown + 1} lines more" in text


def test_a_form_offers_only_what_it_can_carry() -> None:
    assert question("text", CHOICES).options == (
        "allow_once",
        "allow_session",
        "allow_workspace",
        "deny_once",
        "deny_always",
    )


def test_a_subject_is_asked_in_the_servers_words_without_hidden_marks() -> None:
    text = subject_text("Promote?\n\n3 files\u202e", asker="host:h", options=("allow_once",), redact=str.upper)
    assert text == "host:h asks:\nPROMOTE?\n3 FILES\\u{202E}\nAnswers: allow_once."
