"""Each setting of permissions changes a behaviour, and none of them can be set by what is not a person."""

from collections.abc import Awaitable, Callable
from pathlib import Path
from typing import Any

import pytest

from agentstead.config import Settings
from agentstead.kit import Home
from agentstead.permissions.settings import SETTINGS
from agentstead.policy import CallFacts
from agentstead.state import Denied, HomeLock, Invalid, PendingAnswer, SimulatedClock
from tests.permissions.conftest import HOST, ask

pytestmark = pytest.mark.anyio


@pytest.fixture
async def open_home(tmp_path: Path, clock: SimulatedClock) -> Any:
    """Open a home with settings of its own; closed when the test ends."""
    opened: list[tuple[Home, HomeLock]] = []

    async def run(text: str) -> Home:
        path = tmp_path / f"home{len(opened)}"
        path.mkdir(mode=0o700)
        (path / "config.toml").write_text(text)
        lock = HomeLock(path)
        assert lock.acquire()
        home = await Home.open(path, lock=lock, clock=clock)
        opened.append((home, lock))
        return home

    yield run
    for home, lock in opened:
        await home.close()
        lock.release()


OpenHome = Callable[[str], Awaitable[Home]]


def _call(clock: SimulatedClock, risk: Any) -> CallFacts:
    return CallFacts("extra", "x", "extra.x", risk, {}, HOST, clock.now_us())


@pytest.mark.parametrize(
    ("axis", "read", "execute"),
    [("deny", "deny", "deny"), ("ask-all", "ask", "ask"), ("ask-writes", "allow", "ask"), ("auto", "allow", "allow")],
)
async def test_the_risk_axis_moves_the_default(
    open_home: OpenHome, clock: SimulatedClock, axis: str, read: str, execute: str
) -> None:
    home = await open_home(f'[permissions.axes]\nrisk = "{axis}"\n')
    verdicts = [home.enforcement.decide(_call(clock, risk)).verdict for risk in ("read", "execute")]
    assert verdicts == [read, execute]


async def test_headless_deny_refuses_where_queue_stores_a_question(open_home: OpenHome, clock: SimulatedClock) -> None:
    queue = await open_home('[permissions]\nheadless = "queue"\n')
    assert (await ask(queue.enforcement, clock)).startswith("apr_")
    deny = await open_home('[permissions]\nheadless = "deny"\n')
    with pytest.raises(Denied, match=r"permission\.headless"):
        await deny.enforcement.enter(_call(clock, "execute"))


async def test_the_life_of_a_question_is_a_setting(open_home: OpenHome, clock: SimulatedClock) -> None:
    home = await open_home("[approvals]\nttl_s = 60\n")
    with pytest.raises(PendingAnswer) as caught:
        await home.enforcement.enter(_call(clock, "execute"))
    assert caught.value.details["expires_at"] == clock.now_us() + 60 * 10**6


@pytest.mark.parametrize(
    ("key", "value"),
    [
        ("permissions.axes.risk", "yolo"),
        ("permissions.headless", "wait"),
        ("prompt.wait_s", -1),
        ("prompt.wait_s", 271),
    ],
)
def test_a_value_outside_its_bounds_is_refused(tmp_path: Path, key: str, value: object) -> None:
    with pytest.raises(Invalid, match=r"config\.invalid"):
        Settings(tmp_path, environ={}, flags={key: value})


def test_everything_here_widens_rights_so_only_a_person_sets_it() -> None:
    assert all(setting.person and setting.doc for setting in SETTINGS)
    assert not any(setting.workspace for setting in SETTINGS)


def test_the_environment_cannot_loosen_an_axis(tmp_path: Path) -> None:
    variable = next(s for s in SETTINGS if s.key == "permissions.axes.risk").variables[0]
    loosened = Settings(tmp_path, environ={variable: "auto"})
    assert loosened.get("permissions.axes.risk") == "ask-writes"
