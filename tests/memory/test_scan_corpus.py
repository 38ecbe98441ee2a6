"""The labelled corpus of the scan gate: what each family catches, what it lets pass, and how often it is wrong."""

import json
from collections import Counter
from pathlib import Path

import pytest

from agentstead.memory.scan import SECRET, scan
from agentstead.memory.vocabulary import Trust
from agentstead.policy import Redactor

ROWS = [json.loads(line) for line in (Path(__file__).parent / "cases" / "scan.jsonl").read_text("utf-8").splitlines()]
FAMILIES = ("secret", "hidden", "look_alike", "injection", "bait")
# (recall, precision) that each family must reach on this corpus.
WANTED = {
    "secret": (0.98, 0.98),
    "hidden": (1.0, 1.0),
    "look_alike": (1.0, 1.0),
    "injection": (0.90, 0.95),
    "bait": (0.90, 0.95),
}
REDACTOR = Redactor()


def caught(text: str) -> set[str]:
    """Return the families that stop a text."""
    found = set()
    for finding in scan([text], redact=REDACTOR.text, trust=Trust.HOST):
        family = finding.rule.partition(".")[0]
        found.add("look_alike" if finding.rule == "hidden.look_alike" else family)
    return found


@pytest.fixture(scope="module")
def verdicts() -> list[tuple[str, set[str], str]]:
    return [(row["family"], caught(row["text"]), row["text"]) for row in ROWS]


@pytest.mark.parametrize("family", FAMILIES)
def test_each_family_catches_its_own_and_little_else(
    family: str, verdicts: list[tuple[str, set[str], str]], capsys: pytest.CaptureFixture[str]
) -> None:
    hits = [text for label, found, text in verdicts if label == family and family in found]
    missed = [text for label, found, text in verdicts if label == family and family not in found]
    false = [text for label, found, text in verdicts if label == "benign" and family in found]
    recall, precision = len(hits) / (len(hits) + len(missed)), len(hits) / (len(hits) + len(false))
    with capsys.disabled():
        print(f"\n{family:<11} recall {recall:.3f} precision {precision:.3f} of {len(hits) + len(missed)}")
    least_recall, least_precision = WANTED[family]
    assert recall >= least_recall, missed
    assert precision >= least_precision, false


def test_benign_text_passes_whole(verdicts: list[tuple[str, set[str], str]]) -> None:
    assert [text for label, found, text in verdicts if label == "benign" and found] == []


def test_the_corpus_is_half_benign_and_repeats_nothing() -> None:
    counts = Counter(row["family"] for row in ROWS)
    assert set(counts) == {*FAMILIES, "benign"}
    assert counts["benign"] >= sum(counts[family] for family in FAMILIES)
    assert len({row["text"] for row in ROWS}) == len(ROWS)


def test_a_finding_never_holds_the_text() -> None:
    for row in ROWS:
        if row["family"] == "secret":
            for finding in scan([row["text"]], redact=REDACTOR.text, trust=Trust.HOST):
                assert finding.rule == SECRET or row["text"][finding.start : finding.end] not in repr(finding)
