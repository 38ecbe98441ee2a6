"""Splitting allowed-tools."""

import pytest

from agentstead.skills.patterns import split_patterns


@pytest.mark.parametrize(
    ("value", "patterns"),
    [
        ("Read", ("Read",)),
        ("Bash(git:*) Read", ("Bash(git:*)", "Read")),
        ("Bash(git log --oneline)  mcp__s__t", ("Bash(git log --oneline)", "mcp__s__t")),
        ("Edit(src/(a|b)/**)", ("Edit(src/(a|b)/**)",)),
        ("*", ("*",)),
    ],
)
def test_blanks_outside_parentheses_part_patterns(value: str, patterns: tuple[str, ...]) -> None:
    assert split_patterns(value) == (patterns, "")


@pytest.mark.parametrize(
    ("value", "patterns"),
    [("Read, Grep", ("Read", "Grep")), ("Bash(git", ()), ("Read )", ("Read",)), ("", ()), ("1x Read", ("Read",))],
)
def test_what_is_wrong_is_said_and_the_rest_is_read(value: str, patterns: tuple[str, ...]) -> None:
    found, fault = split_patterns(value)
    assert found == patterns
    assert fault
