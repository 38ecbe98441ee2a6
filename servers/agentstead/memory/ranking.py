"""The score of what was found: parts that add up, factors that multiply, and the record of both.

Formula and weights: the lexical core of the memory specification, found by measurement on LoCoMo's first half.
"""

from collections import defaultdict
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

from agentstead.memory.question import Question
from agentstead.memory.times import age_days, date_of
from agentstead.memory.vocabulary import HALF_LIFE_DAYS, MemoryType, Stale, Trust

AUTHOR_FACTOR = 1.3
WHEN_FACTOR = 1.25
MONTH_FACTOR = 1.3
THREAD_SHARE = 0.35
THREAD_BEST = 3
EPISODE_SAMPLE = 20
PINNED_FACTOR = 1.1
STALE_FACTOR = 0.8
STANDING_RANGE = (0.5, 1.25)
TRUST_FACTOR = {Trust.FOREIGN: 0.90, Trust.AGENT: 0.95, Trust.HOST: 1.0, Trust.CHECKED: 1.0, Trust.PERSON: 1.0}
DIGITS = 6


@dataclass(frozen=True, slots=True)
class Candidate:
    """One memory that matched, as its best chunk. `lexical` is FTS5's bm25 with the sign turned."""

    memory_id: str
    edition_id: str
    doc: int
    type: MemoryType
    scope: str
    author_words: tuple[str, ...]
    thread: str
    trust: Trust
    stale: Stale
    pinned: bool
    valid_from: int
    recorded_at: int
    touched_at: int
    lexical: float
    speaks_of_time: bool = False
    fate: str = ""


@dataclass(frozen=True, slots=True)
class Uses:
    """How often a memory was returned, and what came of it."""

    surfaced: int = 0
    used: int = 0
    helped: int = 0
    misled: int = 0


@dataclass(frozen=True, slots=True)
class Ranked:
    """A candidate with its score; `signals` holds the parts, then the factors that are not 1."""

    candidate: Candidate
    score: float
    signals: Mapping[str, float] = field(default_factory=dict)


PARTS = ("lexical", "thread", "substring")


def recompute(signals: Mapping[str, float]) -> float:
    """Return the score that signals add and multiply up to."""
    score = sum(signals.get(part, 0.0) for part in PARTS)
    for name, value in signals.items():
        if name not in PARTS:
            score *= value
    return score


def scored(candidate: Candidate, signals: Mapping[str, float]) -> Ranked:
    """Return a candidate with the score of its signals, both rounded, so that the one can be had from the other."""
    rounded = {name: round(value, DIGITS) for name, value in signals.items()}
    told = {name: value for name, value in rounded.items() if name in PARTS or value != 1.0}
    return Ranked(candidate, round(recompute(told), DIGITS), told)


def rank(
    candidates: Sequence[Candidate],
    question: Question,
    *,
    order: Sequence[str],
    now_us: int,
    uses: Mapping[str, Uses],
) -> list[Ranked]:
    """Return the candidates, best first; ties go to the stronger scope, then the newer, then the id."""
    levels = {each.edition_id: each.lexical * _hints(each, question) for each in candidates}
    top = max(levels.values(), default=0.0)
    if top <= 0.0:
        return []
    threads, weight = _threads(candidates, levels)
    top_thread = max(threads.values(), default=0.0)
    ranked = []
    for each in candidates:
        signals = {"lexical": levels[each.edition_id] / top}
        if weight and each.thread:
            signals["thread"] = weight * threads[each.scope, each.thread] / top_thread
        signals |= standing(each, now_us=now_us, uses=uses.get(each.memory_id, Uses()))
        ranked.append(scored(each, signals))
    ranked.sort(key=lambda each: _place(each, order))
    return ranked


def standing(candidate: Candidate, *, now_us: int, uses: Uses) -> dict[str, float]:
    """Return the factors of a memory's standing: pinned, and the clipped product of use, age, trust and staleness."""
    half_life = HALF_LIFE_DAYS[candidate.type]
    days = age_days(candidate.touched_at, now_us)
    factors: dict[str, float] = {
        "use": 0.8 + 0.4 * use_share(uses),
        "age": 1.0 if half_life is None else 0.95 + 0.05 * 2.0 ** (-days / half_life),
        "trust": TRUST_FACTOR[candidate.trust],
        "stale": STALE_FACTOR if candidate.stale in ("changed", "missing") else 1.0,
    }
    product = factors["use"] * factors["age"] * factors["trust"] * factors["stale"]
    least, most = STANDING_RANGE
    clipped = min(max(product, least), most)
    if clipped != product:
        factors["clip"] = clipped / product
    if candidate.pinned:
        factors["pinned"] = PINNED_FACTOR
    return factors


def use_share(uses: Uses) -> float:
    """Return the share of good outcomes, between 0 and 1; being returned alone never lifts it."""
    ignored = min(1.0, max(0, uses.surfaced - 10 - 10 * uses.used) / 20)
    good = 2 + uses.helped + 0.25 * uses.used
    return good / (4 + uses.helped + 0.25 * uses.used + 2 * uses.misled + ignored)


def _hints(candidate: Candidate, question: Question) -> float:
    factor = 1.0
    if candidate.author_words and question.names.issuperset(candidate.author_words):
        factor *= AUTHOR_FACTOR
    if question.asks_when and candidate.speaks_of_time:
        factor *= WHEN_FACTOR
    if question.months and _near_month(candidate, question):
        factor *= MONTH_FACTOR
    return factor


def _near_month(candidate: Candidate, question: Question) -> bool:
    """Tell whether the document's date lies in a month that the question names, or in the one after."""
    date = date_of(candidate.valid_from)
    before = (date.month - 2) % 12 + 1
    in_year = not question.years or date.year in question.years
    return in_year and bool(question.months & {date.month, before})


def _threads(
    candidates: Sequence[Candidate], levels: Mapping[str, float]
) -> tuple[Mapping[tuple[str, str], float], float]:
    """Return each thread's sum of its three best levels, and the weight that threads have among these candidates.

    The weight falls with the fourth power of the share of episodes: a store of notes has no conversation to follow.
    """
    best = sorted(candidates, key=lambda each: -levels[each.edition_id])[:EPISODE_SAMPLE]
    share = sum(each.type == "episode" for each in best) / len(best)
    found: dict[tuple[str, str], list[float]] = defaultdict(list)
    for each in candidates:
        if each.thread:
            found[each.scope, each.thread].append(levels[each.edition_id])
    sums = {name: sum(sorted(values, reverse=True)[:THREAD_BEST]) for name, values in found.items()}
    return sums, THREAD_SHARE * share**4


def _place(ranked: Ranked, order: Sequence[str]) -> tuple[float, int, int, str]:
    each = ranked.candidate
    strength = order.index(each.scope) if each.scope in order else -1
    return -ranked.score, strength, -each.recorded_at, each.memory_id
