"""The rows that recall searches: what stands in which column, and how turns keep their neighbours in view."""

from typing import Any

import pytest

from agentstead.memory.index import identifiers, indexed_author
from agentstead.state import Reading

pytestmark = pytest.mark.anyio


def rows_of(reading: Reading) -> dict[str, dict[str, str]]:
    sql = """
    SELECT t.body AS text, d.author, d.body, d.prev, d.next, d.far, d.ask, d.names, d.chunk
    FROM recall_docs d
    JOIN memory_editions e ON e.id = d.edition_id
    JOIN memory_texts t ON t.id = e.text_id
    WHERE e.unrecorded_at IS NULL
    """
    return {row["text"]: dict(row) for row in reading.all(sql)}


async def rows(desk: Any) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = await desk.home.state.read(rows_of)
    return found


def turn(text: str, place: int | None = None, **fields: Any) -> dict[str, Any]:
    more = {} if place is None else {"place": place}
    return {"op": "add", "type": "episode", "text": text, "thread": "t", "scope": "workspace", **more, **fields}


async def test_a_turn_sees_its_neighbours_and_they_see_it(host: Any) -> None:
    await host.write(*(turn(text) for text in ("One?", "Two.", "Three.", "Four.", "Five.")))
    found = await rows(host)
    assert {column: found["Three."][column] for column in ("prev", "next", "far", "ask")} == {
        "prev": "two",
        "next": "four",
        "far": "one five",
        "ask": "",
    }
    assert found["Two."]["ask"] == "one"
    assert (found["One?"]["prev"], found["One?"]["next"], found["One?"]["far"]) == ("", "two", "three")
    assert (found["Five."]["prev"], found["Five."]["next"], found["Five."]["far"]) == ("four", "", "three")


async def test_turns_may_come_in_any_order(host: Any) -> None:
    for text, place in (("Five.", 50), ("One.", 10), ("Three.", 30), ("Four.", 40), ("Two.", 20)):
        await host.write(turn(text, place))
    found = await rows(host)
    assert (found["Three."]["prev"], found["Three."]["next"], found["Three."]["far"]) == ("two", "four", "one five")
    assert (found["Four."]["prev"], found["Four."]["next"]) == ("three", "five")


async def test_threads_do_not_mix_and_notes_have_no_neighbours(host: Any) -> None:
    await host.write(turn("Mine."), turn("Theirs.", thread="other"))
    await host.add("A note in between.", thread="t")
    found = await rows(host)
    assert {row["prev"] + row["next"] + row["far"] for row in found.values()} == {""}


async def test_a_turn_that_was_retracted_is_no_neighbour_of_a_new_one(host: Any) -> None:
    written = await host.write(turn("Kept."), turn("Wrong."))
    await host.write({"op": "retract", "memory_id": written.decisions[1].memory_id, "reason": "never said"})
    await host.write(turn("New.", 5))
    assert (await rows(host))["New."]["prev"] == "keep"


async def test_a_retracted_turn_is_seen_by_none_of_its_neighbours_any_more(host: Any) -> None:
    written = await host.write(*(turn(text) for text in ("One.", "A llama.", "Three.")))
    await host.write({"op": "retract", "memory_id": written.decisions[1].memory_id, "reason": "never said"})
    found = await rows(host)
    assert (found["One."]["next"], found["Three."]["prev"]) == ("three", "one")
    assert await host.found("llama") == []


async def test_a_revised_turn_is_seen_in_its_new_words(host: Any) -> None:
    written = await host.write(*(turn(text) for text in ("One.", "A llama.", "Three.")))
    await host.write({"op": "revise", "memory_id": written.decisions[1].memory_id, "text": "An alpaca."})
    found = await rows(host)
    assert (found["One."]["next"], found["Three."]["prev"]) == ("an alpaca", "an alpaca")


async def test_a_given_title_and_tags_are_searched_a_made_title_is_not_counted_twice(host: Any) -> None:
    await host.add("Runs nightly.", title="Backup of the warehouse", tags=["ops"])
    await host.add("Restores weekly.")
    found = await rows(host)
    assert found["Runs nightly."]["body"] == "backup of the warehouse runs nightly ops"
    assert found["Restores weekly."]["body"] == "restores weekly"


async def test_an_author_is_searched_where_one_was_named(host: Any) -> None:
    await host.add("Said by her.", author="Ada Lovelace")
    await host.add("Noted by the host.")
    found = await rows(host)
    assert (found["Said by her."]["author"], found["Noted by the host."]["author"]) == ("ada lovelace", "")
    assert indexed_author("host:desk", "host:desk") == ""


async def test_a_long_text_has_a_row_for_each_part(host: Any) -> None:
    text = "\n\n".join(f"# Part {n}\n" + f"Words of part {n}. " * 60 for n in range(3))
    await host.add(text)
    chunks = await host.home.state.read(lambda r: [row["chunk"] for row in r.all("SELECT chunk FROM recall_docs")])
    assert chunks == [0, 1, 2]


async def test_a_shorter_revision_leaves_no_part_behind(host: Any) -> None:
    long = "\n\n".join(f"# Part {n}\n" + f"Zebra part {n}. " * 60 for n in range(3))
    added = await host.add(long)
    await host.write({"op": "revise", "memory_id": added.memory_id, "text": "Short now."})
    assert await host.found("zebra") == []
    assert await host.found("short") == [added.memory_id]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        ("call `do it now` first", "do it now"),
        ("see src/app/main.py", "src/app/main.py"),
        ("set max_pool_size", "max_pool_size"),
        ("the maxPoolSize option", "maxPoolSize"),
        ("over HTTP only", "HTTP"),
        ("version 1.2.3-rc4 broke", "1.2.3-rc4"),
        ("a kebab-case-name", "kebab-case-name"),
        ("host db01 is down", "db01"),
        ("\u6771\u4eac\u306e\u4f1a\u8b70\u5ba4", "\u6771\u4eac\u306e\u4f1a\u8b70\u5ba4"),
    ],
)
def test_identifiers_are_taken_out_of_prose(text: str, name: str) -> None:
    assert name in identifiers(text).split("\n")


def test_plain_words_are_no_identifiers_and_a_long_list_is_cut() -> None:
    assert identifiers("plain words of a sentence") == ""
    assert len(identifiers(" ".join(f"name_{n}" for n in range(2_000)))) == 4_000
