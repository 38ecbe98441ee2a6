"""Running a recall for a call: its clocks and page, its record afterwards; and the ids that a forgetting means."""

import time

from agentstead.kit import Call
from agentstead.memory.asking import Asking, filters_of, shown_filters
from agentstead.memory.question import Question, read_question
from agentstead.memory.reaching import Place
from agentstead.memory.recall import Answer, answer
from agentstead.memory.recording import Asked, record_recall
from agentstead.memory.scopes import Reach
from agentstead.memory.search import Filters
from agentstead.memory.views import Recalled, recalled
from agentstead.state import Invalid, NotFound, Reading, References, new_id

FORGET_MOST = 50


async def recall_now(call: Call, asking: Asking, place: Place, *, limit: int, cursor: str | None) -> Recalled:
    """Answer a question and record what was returned; a cursor goes on under the clock of its first page."""
    started = time.perf_counter()
    question = read_question(asking.query)
    basis = {"recall": asking.query, "place": [place.reach.workspace_id, place.reach.session_id], **_asked(asking)}
    page = call.home.state.cursors.open(cursor, basis) if cursor else {"offset": 0, "now": call.home.clock.now_us()}
    offset, now_us = int(page["offset"]), int(page["now"])
    filters, found = await call.read(
        _answer, call.home.state.refs, asking, question, place.reach, limit=limit, offset=offset, now_us=now_us
    )
    more = call.home.state.cursors.seal({"offset": offset + limit, "now": now_us}, basis) if found.more else None
    recall_id = new_id("rcl_", call.home.clock)
    asked = Asked(
        principal=place.reach.principal,
        workspace_id=place.reach.workspace_id,
        session_id=place.reach.session_id,
        query=question.text,
        filters=shown_filters(filters),
        latency_us=int((time.perf_counter() - started) * 1_000_000),
    )
    await call.home.state.write(record_recall, asked, found, recall_id=recall_id, offset=offset)
    return recalled(
        found,
        recall_id=recall_id,
        filters=shown_filters(filters),
        cursor=more,
        note=place.reach.note,
        now_us=now_us,
    )


async def chosen_ids(call: Call, ids: list[str] | None, query: str | None, place: Place, *, final: bool) -> list[str]:
    """Return the memories that a forgetting means: those named, or those that a question finds.

    Raises `memory.invalid` unless exactly one is given, `memory.not_found` where the question finds nothing; not where
    a `final` call repeats a question whose answer is gone by now.
    """
    if (ids is None) == (query is None) or ids == []:
        raise Invalid("memory.invalid", "Forgetting takes ids or a query.", remedy="Give one of them.")
    if ids is not None:
        return ids
    asking = Asking(query or "")
    _, found = await call.read(
        _answer,
        call.home.state.refs,
        asking,
        read_question(asking.query),
        place.reach,
        limit=FORGET_MOST,
        offset=0,
        now_us=call.home.clock.now_us(),
    )
    if not found.items and not final:
        raise NotFound("memory.not_found", "Nothing here matches that.", remedy=found.reason)
    return [item.memory.id for item in found.items]


def _answer(
    reading: Reading,
    refs: References,
    asking: Asking,
    question: Question,
    reach: Reach,
    *,
    limit: int,
    offset: int,
    now_us: int,
) -> tuple[Filters, Answer]:
    filters = filters_of(reading, refs, asking, reach, now_us=now_us)
    scored_at = filters.known_at if filters.past else now_us
    return filters, answer(reading, question, filters, limit=limit, offset=offset, scored_at=scored_at)


def _asked(asking: Asking) -> dict[str, object]:
    return {
        "scope": asking.scope,
        "types": list(asking.types),
        "tags": list(asking.tags),
        "author": asking.author,
        "thread": asking.thread,
        "clocks": [asking.as_of, asking.valid_at, asking.known_at],
        "min_trust": asking.min_trust,
        "include": list(asking.include),
    }
