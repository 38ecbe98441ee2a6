"""A story told over days, and asked for by two clocks: `cases/as_of.toml`."""

import tomllib
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any

import pytest

from agentstead.memory.times import DAY_US, show_instant
from agentstead.state import SimulatedClock

pytestmark = pytest.mark.anyio

TABLE: Mapping[str, Any] = tomllib.loads((Path(__file__).parent / "cases" / "as_of.toml").read_text("utf-8"))
STORY: Sequence[Mapping[str, Any]] = sorted(TABLE["story"], key=lambda step: step["day"])
LAST_DAY = 12
CLOCKS = ("as_of", "valid_at", "known_at")


def name_of(ask: Mapping[str, Any]) -> str:
    return "-".join([ask["question"], *(f"{clock}{ask[clock]}" for clock in CLOCKS if clock in ask)])


@pytest.fixture
async def told(user: Any, clock: SimulatedClock) -> int:
    """Tell the story; return the instant at which its day 0 began."""
    start = clock.now_us()
    ids: dict[str, str] = {}
    for step in STORY:
        clock.advance(seconds=(start + step["day"] * DAY_US - clock.now_us()) / 1_000_000)
        written = await user.write(change(step, ids, start))
        if step["op"] == "add":
            ids[step["as"]] = written.decisions[0].memory_id
    clock.advance(seconds=(start + LAST_DAY * DAY_US + DAY_US // 2 - clock.now_us()) / 1_000_000)
    return start


def change(step: Mapping[str, Any], ids: Mapping[str, str], start: int) -> dict[str, Any]:
    days = {"valid_from": step.get("from"), "valid_to": step.get("to")}
    fields = {name: show_instant(start + day * DAY_US) for name, day in days.items() if day is not None}
    if step["op"] == "add":
        more = {"key": step["key"]} if "key" in step else {}
        return {"op": "add", "type": "fact", "text": step["text"], **more, **fields}
    change = {"op": step["op"], "memory_id": ids[step["of"]]} | ({"text": step["text"]} if "text" in step else {})
    return change | ({"reason": "never true"} if step["op"] == "retract" else {})


async def test_every_question_finds_what_was_true_and_known_then(user: Any, told: int) -> None:
    wrong = {}
    for ask in TABLE["ask"]:
        clocks = {name: show_instant(told + ask[name] * DAY_US + DAY_US // 2) for name in CLOCKS if name in ask}
        answer = await user.recall(ask["question"], **clocks)
        found = [item.text for item in answer.items]
        if found != ask["finds"]:
            wrong[name_of(ask)] = (found, ask["finds"])
    assert wrong == {}


async def test_the_past_is_found_alike_whatever_was_written_since(user: Any, told: int) -> None:
    def day(number: int) -> str:
        return show_instant(told + number * DAY_US + DAY_US // 2)

    asked = [("lead", 3), ("lead", 5), ("wiki", 4), ("freeze", 3), ("moon", 2)]
    before = [await user.recall(question, as_of=day(number)) for question, number in asked]
    for number in range(60):
        await user.add(f"Later fact {number} about leads, wikis, freezes and moons.")
    after = [await user.recall(question, as_of=day(number)) for question, number in asked]
    for one, two in zip(before, after, strict=True):
        assert [(item.memory_id, item.edition_id, item.text) for item in one.items] == [
            (item.memory_id, item.edition_id, item.text) for item in two.items
        ]


def test_the_table_is_long_enough_and_names_no_case_twice() -> None:
    names = [name_of(ask) for ask in TABLE["ask"]]
    assert len(names) >= 40
    assert len(names) == len(set(names))
