"""The formula on a store small enough to compute by hand, and its parts one by one."""

import math

import pytest

from agentstead.memory.question import read_question
from agentstead.memory.ranking import (
    AUTHOR_FACTOR,
    MONTH_FACTOR,
    THREAD_SHARE,
    WHEN_FACTOR,
    Candidate,
    Uses,
    rank,
    recompute,
    standing,
    use_share,
)
from agentstead.memory.times import DAY_US, read_instant
from agentstead.memory.vocabulary import Trust

NOW = read_instant("2026-06-15", what="now")
PLAIN = read_question("where is the key?")


def candidate(name: str, lexical: float, **fields: object) -> Candidate:
    values: dict[str, object] = {
        "memory_id": name,
        "edition_id": f"e{name}",
        "doc": 1,
        "type": "fact",
        "scope": "home",
        "author_words": (),
        "thread": "",
        "trust": Trust.HOST,
        "stale": "no",
        "pinned": False,
        "valid_from": NOW,
        "recorded_at": NOW,
        "touched_at": NOW,
        "lexical": lexical,
    }
    return Candidate(**(values | fields))  # type: ignore[arg-type]


def ranked(*candidates: Candidate, question: str = "where is the key?", **uses: Uses) -> list[tuple[str, float]]:
    found = rank(candidates, read_question(question), order=("workspace:w", "home"), now_us=NOW, uses=uses)
    return [(each.candidate.memory_id, each.score) for each in found]


def test_a_hand_computed_store_of_twelve() -> None:
    """Ten turns of two threads and two notes; every number below follows from the formula alone."""
    turns = [
        candidate(f"t{n}", 10.0 - n, type="episode", thread="a" if n < 5 else "b", scope="session:s") for n in range(10)
    ]
    notes = [candidate("n1", 9.5), candidate("n2", 0.5, pinned=True)]
    share = 10 / 12
    weight = THREAD_SHARE * share**4
    best_a, best_b = 10.0 + 9.0 + 8.0, 5.0 + 4.0 + 3.0
    expected = {f"t{n}": (10.0 - n) / 10.0 + weight * (best_a if n < 5 else best_b) / best_a for n in range(10)}
    expected |= {"n1": 0.95, "n2": 0.05 * 1.1}
    found = dict(ranked(*turns, *notes))
    assert found.keys() == expected.keys()
    for name, score in expected.items():
        assert math.isclose(found[name], score, abs_tol=1e-6), name


def test_a_store_of_notes_has_no_thread_part() -> None:
    found = rank([candidate("a", 2.0), candidate("b", 1.0)], PLAIN, order=(), now_us=NOW, uses={})
    assert [dict(each.signals) for each in found] == [{"lexical": 1.0}, {"lexical": 0.5}]


def test_naming_the_author_lifts_their_words() -> None:
    ada, bob = candidate("ada", 1.0, author_words=("ada",)), candidate("bob", 1.2, author_words=("bob",))
    assert ranked(ada, bob)[0][0] == "bob"
    assert ranked(ada, bob, question="what did Ada say?")[0][0] == "ada"
    assert AUTHOR_FACTOR * 1.0 > 1.2


def test_every_word_of_an_authors_name_must_be_named() -> None:
    full = candidate("full", 1.0, author_words=("ada", "lovelace"))
    other = candidate("other", 1.1)
    assert ranked(full, other, question="what did Ada do")[0][0] == "other"
    assert ranked(full, other, question="what did Ada Lovelace do")[0][0] == "full"


@pytest.mark.parametrize("question", ["When did it ship?", "how long did it take", "What date was it?"])
def test_a_question_for_a_time_lifts_what_speaks_of_time(question: str) -> None:
    dated, plain = candidate("dated", 1.0, speaks_of_time=True), candidate("plain", 1.2)
    assert ranked(dated, plain, question=question)[0][0] == "dated"
    assert ranked(dated, plain)[0][0] == "plain"
    assert WHEN_FACTOR > 1.2


@pytest.mark.parametrize(
    ("question", "first"),
    [
        ("what broke in June", "june"),
        ("what broke in May 2026", "june"),
        ("what broke in June 2025", "plain"),
        ("what may have broken", "plain"),
        ("what broke on 3 May", "june"),
        ("a march towards june", "june"),
    ],
)
def test_a_named_month_lifts_what_is_dated_there_or_a_month_later(question: str, first: str) -> None:
    june = candidate("june", 1.0, valid_from=read_instant("2026-06-03", what="t"))
    plain = candidate("plain", 1.25, valid_from=read_instant("2026-01-03", what="t"))
    assert ranked(june, plain, question=question)[0][0] == first
    assert MONTH_FACTOR > 1.25


def test_ties_go_to_the_stronger_scope_then_the_newer_then_the_id() -> None:
    weak, strong = candidate("weak", 1.0), candidate("strong", 1.0, scope="workspace:w")
    assert [name for name, _ in ranked(weak, strong)] == ["strong", "weak"]
    older, newer = candidate("older", 1.0, recorded_at=NOW - 1), candidate("newer", 1.0)
    assert [name for name, _ in ranked(older, newer)] == ["newer", "older"]
    assert [name for name, _ in ranked(candidate("b", 1.0), candidate("a", 1.0))] == ["a", "b"]


@pytest.mark.parametrize(
    ("fields", "factor"),
    [
        ({}, {}),
        ({"pinned": True}, {"pinned": 1.1}),
        ({"stale": "changed"}, {"stale": 0.8}),
        ({"stale": "missing"}, {"stale": 0.8}),
        ({"stale": "unknown"}, {}),
        ({"trust": Trust.AGENT}, {"trust": 0.95}),
        ({"trust": Trust.FOREIGN}, {"trust": 0.9}),
        ({"trust": Trust.PERSON}, {}),
        ({"touched_at": NOW - 180 * DAY_US}, {"age": 0.975}),
        ({"touched_at": NOW - 180 * DAY_US, "type": "instruction"}, {}),
        ({"touched_at": NOW + DAY_US}, {}),
    ],
)
def test_each_factor_of_standing(fields: dict[str, object], factor: dict[str, float]) -> None:
    found = standing(candidate("x", 1.0, **fields), now_us=NOW, uses=Uses())
    assert {name: value for name, value in found.items() if value != 1.0} == pytest.approx(factor)


def test_standing_is_clipped_so_that_decay_never_hides() -> None:
    worst = candidate("x", 1.0, trust=Trust.FOREIGN, stale="missing", touched_at=0, type="episode")
    factors = standing(worst, now_us=NOW, uses=Uses(misled=50))
    assert recompute({"lexical": 1.0, **factors}) >= 0.5


def test_misled_lowers_use_lifts_and_being_shown_never_does() -> None:
    assert use_share(Uses()) == 0.5
    assert use_share(Uses(misled=1)) < 0.5
    assert use_share(Uses(helped=1)) > use_share(Uses(used=1)) > 0.5
    assert use_share(Uses(surfaced=10)) == 0.5
    assert use_share(Uses(surfaced=30)) < 0.5
    assert all(use_share(Uses(surfaced=n)) <= 0.5 for n in range(100))
    order = ranked(
        candidate("shown", 1.0),
        candidate("used", 1.0),
        candidate("bad", 1.0),
        shown=Uses(surfaced=50),
        used=Uses(surfaced=50, used=5),
        bad=Uses(surfaced=1, misled=2),
    )
    assert [name for name, _ in order] == ["used", "shown", "bad"]


def test_nothing_that_matched_gives_nothing() -> None:
    assert ranked() == []
