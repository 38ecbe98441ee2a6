"""The tables hold the closed sets of the code, and nothing else."""

import re
from importlib import resources
from typing import Any, get_args

import pytest

from agentstead.memory import vocabulary
from agentstead.memory.changes import ChangeOp
from agentstead.memory.controller import _OPS
from agentstead.memory.evidence import _KINDS
from agentstead.memory.search import COLUMN_WEIGHTS

SQL = (resources.files("agentstead.memory") / "migrations" / "0001_memory.sql").read_text("utf-8")

SETS: dict[tuple[str, str], Any] = {
    ("memories", "type"): vocabulary.MemoryType,
    ("memories", "state"): vocabulary.MemoryState,
    ("memories", "stale"): vocabulary.Stale,
    ("memories", "channel"): vocabulary.Channel,
    ("memory_editions", "type"): vocabulary.MemoryType,
    ("memory_editions", "source_kind"): vocabulary.Channel,
    ("memory_events", "op"): vocabulary.EventOp,
    ("proposals", "state"): vocabulary.ProposalState,
    ("proposals", "channel"): vocabulary.Channel,
    ("decisions", "op"): vocabulary.DecisionOp,
    ("decisions", "verdict"): vocabulary.Verdict,
    ("decisions", "judged_by"): vocabulary.JudgedBy,
    ("evidence", "kind"): vocabulary.EvidenceKind,
    ("evidence", "state"): vocabulary.EvidenceState,
    ("links", "kind"): vocabulary.LinkKind,
    ("links", "state"): vocabulary.LinkState,
    ("recalls", "mode"): vocabulary.RecallMode,
    ("recall_items", "outcome"): vocabulary.Outcome,
}


def table(name: str) -> str:
    found = re.search(rf"CREATE TABLE {name} \((.*?)\n\) STRICT;", SQL, re.DOTALL)
    assert found, name
    return found[1]


def listed(name: str, column: str) -> set[str]:
    found = re.search(rf"\b{column} TEXT NOT NULL[^(]*?CHECK \({column} IN \(([^)]*)\)", table(name), re.DOTALL)
    assert found, (name, column)
    return set(re.findall(r"'([^']*)'", found[1]))


@pytest.mark.parametrize(("name", "column"), SETS)
def test_each_check_lists_the_set_of_the_code(name: str, column: str) -> None:
    assert listed(name, column) == set(get_args(SETS[name, column]))


def test_every_check_of_a_set_is_compared() -> None:
    checks = re.findall(r"CHECK \((\w+) IN \(\s*'", SQL)
    assert len(checks) == len(SETS)


def test_trust_is_bounded_by_its_levels() -> None:
    assert SQL.count("CHECK (trust BETWEEN 0 AND 4)") == 3
    assert [int(level) for level in vocabulary.Trust] == [0, 1, 2, 3, 4]


def test_every_table_is_strict_and_every_index_says_what_it_serves() -> None:
    assert SQL.count("CREATE TABLE") == SQL.count(") STRICT;")
    lines = SQL.splitlines()
    for number, line in enumerate(lines):
        if line.startswith(("CREATE INDEX", "CREATE UNIQUE INDEX")):
            before = next(earlier for earlier in reversed(lines[:number]) if not earlier.startswith(("CREATE", "    ")))
            assert before.startswith("--"), line


def test_there_is_a_weight_for_each_column_of_the_index() -> None:
    found = re.search(r"CREATE VIRTUAL TABLE recall_index USING fts5\(\s*([^\n]*?),\n", SQL)
    assert found
    assert len(found[1].split(",")) == len(COLUMN_WEIGHTS)


def test_every_requested_change_has_its_decision() -> None:
    assert set(_OPS) | {"revert"} == set(get_args(ChangeOp))
    assert set(_OPS.values()) <= set(get_args(vocabulary.DecisionOp))


def test_every_kind_of_evidence_is_one_of_the_set() -> None:
    assert set(_KINDS.values()) <= set(get_args(vocabulary.EvidenceKind))


def test_every_type_has_a_half_life_or_none() -> None:
    assert set(vocabulary.HALF_LIFE_DAYS) == set(vocabulary.MEMORY_TYPES)
