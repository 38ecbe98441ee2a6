"""Which peer a call means: by its workspace where one identity stands in several, and without registering anything."""

from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import Home
from agentstead.network.service import inbox_read, message_send, network_view, peer_find, peer_join
from agentstead.state import Conflict, Invalid
from tests.network.conftest import Invoke

pytestmark = pytest.mark.anyio


@pytest.fixture
def places(tmp_path: Path) -> tuple[Path, Path]:
    for name in ("orchard", "garden"):
        (tmp_path / name / ".git").mkdir(parents=True)
    return tmp_path / "orchard", tmp_path / "garden"


async def test_the_callers_directory_decides_between_workspaces(
    home: Home, invoke: Invoke, places: tuple[Path, Path]
) -> None:
    for place in places:
        await invoke(home, peer_join, cwd=place, channel="pruning")
    sent = [await invoke(home, message_send, cwd=place, channel="pruning", text=place.name) for place in places]
    for place, message in zip(places, sent, strict=True):
        shown = await invoke(home, network_view, cwd=place / ".git", ref="pruning", view="messages")
        assert [each["message_id"] for each in shown.items if each["kind"] == "say"] == [message.message_id]


async def test_the_environment_decides_too_and_nothing_at_all_is_ambiguous(
    home: Home, invoke: Invoke, places: tuple[Path, Path], tmp_path: Path
) -> None:
    joined = [await invoke(home, peer_join, cwd=place, channel="pruning") for place in places]
    assert joined[0].peer_id == joined[1].peer_id
    environ = {"AGENTSTEAD_WORKSPACE": "garden"}
    assert (await invoke(home, inbox_read, environ=environ)).items == []
    for arguments in ({}, {"cwd": tmp_path}, {"environ": {"AGENTSTEAD_WORKSPACE": "elsewhere"}}):
        with pytest.raises(Conflict) as caught:
            await invoke(home, inbox_read, **arguments)
        assert caught.value.code == "network.peer_ambiguous"


async def test_a_call_without_a_directory_finds_its_only_peer(home: Home, invoke: Invoke, project: Path) -> None:
    await invoke(home, peer_join, cwd=project, channel="pruning")
    assert (await invoke(home, message_send, channel="pruning", text="hello")).seq is not None


async def test_looking_registers_no_workspace(home: Home, invoke: Invoke, places: tuple[Path, Path]) -> None:
    orchard, garden = places
    await invoke(home, peer_join, cwd=orchard, channel="pruning")
    await invoke(home, network_view, cwd=garden)
    await invoke(home, inbox_read, cwd=garden)
    assert not (garden / ".agentstead").exists()


@pytest.mark.parametrize("fn", [peer_join, peer_find])
async def test_a_workspace_that_is_registered_is_announced_once(
    home: Home, invoke: Invoke, project: Path, fn: Any
) -> None:
    arguments = {"channel": "pruning"}
    first = await invoke(home, fn, cwd=project, **arguments)
    assert ".agentstead" in first.note
    assert (await invoke(home, fn, cwd=project, **arguments)).note is None


async def test_a_person_has_no_bounds(home: Home, invoke: Invoke, project: Path) -> None:
    with pytest.raises(Invalid) as caught:
        await invoke(home, peer_join, cwd=project, channel="pruning", participation={"bounds": {"max_wakes": 2}})
    assert caught.value.code == "network.bounds_invalid"


async def test_a_secret_in_a_threads_title_is_taken_out(home: Home, invoke: Invoke, project: Path) -> None:
    secret = "ghp_" + "a1B2" * 9
    await invoke(home, peer_join, cwd=project, channel="pruning")
    sent = await invoke(home, message_send, cwd=project, channel="pruning", text="hello", title=f"Row {secret}")
    title = (await invoke(home, network_view, cwd=project, ref=sent.thread_id)).facts["title"]
    assert title.startswith("Row ")
    assert secret not in title
