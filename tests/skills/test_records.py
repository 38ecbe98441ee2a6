"""The stored side: closed sets, the start, the check of records, and what others may ask."""

import re
import sqlite3
from pathlib import Path
from typing import get_args

import pytest

from agentstead.kit import Home, declarations
from agentstead.skills import activations, holding, lifetimes
from agentstead.skills.activations import EndReason, Terms, begin, end, find
from agentstead.skills.candidates import Origin, Root
from agentstead.skills.roots import BUNDLED, SHIPPED
from agentstead.skills.rulings import Answer
from agentstead.skills.server import SERVER
from agentstead.skills.settings import SETTINGS
from agentstead.skills.store import HeldFile, held_tree
from agentstead.skills.survey import survey
from agentstead.skills.validator import validate_folder
from agentstead.state import NotFound, SimulatedClock, Tx

PACKAGE = Path(holding.__file__).parent
TREE = held_tree({"SKILL.md": HeldFile("SKILL.md", 3, "ab" * 32, False)})


def start(tx: Tx, *, session_id: str = "", hours: int = 1) -> str:
    terms = Terms("user/-/tides", "user:tides", "", session_id, tx.now_us + hours * 3_600_000_000)
    return begin(tx, terms, TREE).activation.id


def schema() -> str:
    return (PACKAGE / "migrations" / "0001_skills.sql").read_text()


def test_the_tables_closed_sets_are_those_of_the_code() -> None:
    text = " ".join(schema().split())
    reasons = ", ".join(f"'{reason}'" for reason in get_args(EndReason))
    assert f"CHECK (end_reason IN ( '', {reasons} ))" in text
    assert "CHECK (state IN ('pending', 'active', 'refused', 'expired', 'ended'))" in text
    assert {"yes", "no"} < set(Answer)
    assert text.count("CREATE TABLE") == text.count(") STRICT;")


@pytest.mark.parametrize(
    "change",
    [
        "UPDATE activations SET state = 'gone'",
        "UPDATE activations SET state = 'ended'",
        "UPDATE activations SET end_reason = 'expired'",
        "UPDATE activations SET tree_id = 'short'",
        "UPDATE tree_files SET size = -1",
        "INSERT INTO switches VALUES ('workspace', '', 'skill:a:b', 0, 'user', 1)",
        "INSERT INTO switches VALUES ('home', '', 'a:b', 0, 'user', 1)",
    ],
)
@pytest.mark.anyio
async def test_rows_that_break_a_rule_are_refused(home: Home, change: str) -> None:
    await home.state.write(start)
    with pytest.raises(sqlite3.IntegrityError):
        await home.state.write(lambda tx: tx.execute(change))


@pytest.mark.anyio
async def test_an_activation_is_looked_up_by_others(home: Home) -> None:
    activation_id = await home.state.write(start, session_id="ses_x")
    facts = await home.state.read(home.state.refs.look, activation_id)
    assert (facts.exists, facts.state) == (True, "active")
    assert facts.facts == {"skill": "user:tides", "tree_id": TREE.tree_id, "session_id": "ses_x"}
    assert not (await home.state.read(home.state.refs.look, "act_none")).exists


@pytest.mark.anyio
async def test_the_start_ends_what_is_over(home: Home, clock: SimulatedClock) -> None:
    gone = await home.state.write(start, session_id="ses_gone", hours=9)
    late = await home.state.write(start, hours=1)
    clock.advance(seconds=3600)
    live = await home.state.write(start, hours=9)
    await SERVER.startup(home)
    ended = [await home.state.read(find, each) for each in (gone, late, live)]
    assert [each.end_reason for each in ended] == ["session_closed", "expired", ""]
    assert await home.state.write(lifetimes.sweep, home.state.refs) == 0


@pytest.mark.anyio
async def test_files_are_kept_while_any_activation_holds_them(home: Home) -> None:
    one = await home.state.write(start)
    two = await home.state.write(start, session_id="ses_x")
    await home.state.write(end, one, "deactivated")
    assert await home.state.read(activations.files_of, TREE.tree_id) == TREE.files
    await home.state.write(end, two, "deactivated")
    assert await home.state.read(activations.files_of, TREE.tree_id) == ()
    with pytest.raises(NotFound):
        await home.state.write(end, "act_none", "deactivated")


@pytest.mark.anyio
async def test_the_check_of_records_finds_a_list_that_was_tampered_with(home: Home) -> None:
    activation_id = await home.state.write(start)
    assert await holding.faults(home) == []
    await home.state.write(lambda tx: tx.execute("UPDATE tree_files SET size = 4"))
    (fault,) = await holding.faults(home)
    assert activation_id in fault


def test_the_bundled_skills_are_valid_and_are_those_that_were_shipped() -> None:
    found = {each.name: each.tree_id for each in survey([Root(Origin.BUNDLED, BUNDLED)]).candidates}
    assert found == SHIPPED
    assert all(validate_folder(BUNDLED, (name,)).valid for name in found)


OPENING = re.compile(
    r"skills\.handles import|os\.(open|scandir|listdir)"
    r"|\.(read_bytes|read_text|iterdir|rglob|glob|walk)\(|(?<!cursors)\.open\("
)


def test_only_the_modules_of_the_door_open_files() -> None:
    door = {"handles.py", "store.py", "survey.py", "walk.py", "reading.py", "warm.py"}
    found = {path.name for path in PACKAGE.glob("*.py") if OPENING.search(path.read_text("utf-8"))}
    assert found - {"server.py"} <= door


def test_every_setting_of_this_server_is_read_somewhere() -> None:
    code = "".join(path.read_text("utf-8") for path in PACKAGE.glob("*.py") if path.name != "settings.py")
    assert [each.key for each in SETTINGS if each.key not in code] == []


def test_the_bundled_skills_name_tools_that_exist() -> None:
    servers = declarations()
    if len(servers) < 6:
        pytest.skip("a server is not installed here")
    tools = {tool.name for server in servers for tool in server.tools("core")}
    text = (BUNDLED / "agentstead" / "SKILL.md").read_text("utf-8")
    named = set(re.findall(r"`([a-z]+_[a-z_]+)`", text)) - {"session_id"}
    assert named <= tools
