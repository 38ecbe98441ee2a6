"""A home with policy and identity on simulated time, callers of every kind, and calls made short."""

from collections.abc import AsyncIterator, Callable
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from agentstead import identity, policy
from agentstead.config import Settings
from agentstead.identity import Facts, Principal
from agentstead.policy import CallFacts, Enforcement
from agentstead.state import RefFacts, SimulatedClock, State

SESSION = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAV"
CHILD = "ses_01ARZ3NDEKTSV4RRFFQ69G5FAW"
TRUSTED = "desk-host"


@dataclass(frozen=True)
class Callers:
    """One principal of each sort that answers or asks."""

    person: Principal = field(default_factory=lambda: Principal.user(at_terminal=True))
    script: Principal = field(default_factory=Principal.user)
    captive: Principal = field(default_factory=lambda: Principal.user(at_terminal=True, supervised=True))
    host: Principal = field(default_factory=lambda: Principal.host(TRUSTED, version="1"))
    stranger: Principal = field(default_factory=lambda: Principal.host("other-host"))
    worker: Principal = field(
        default_factory=lambda: Principal.host(TRUSTED, facts=Facts(door="socket", supervised=True))
    )
    operator: Principal = field(
        default_factory=lambda: Principal.host("ops", facts=Facts(door="http", token="operator"))
    )
    agent: Principal = field(default_factory=lambda: Principal.agent("reviewer", session_id=SESSION))
    extension: Principal = field(default_factory=lambda: Principal("extension", "tidy"))


@pytest.fixture
def who() -> Callers:
    return Callers()


@pytest.fixture
def home_path(tmp_path: Path) -> Path:
    path = tmp_path / "home"
    path.mkdir(mode=0o700)
    (path / "config.toml").write_text(f'[elicitation]\ntrusted_hosts = ["{TRUSTED}"]\n')
    return path


@pytest.fixture
async def state(home_path: Path, clock: SimulatedClock) -> AsyncIterator[State]:
    opened = await State.open(home_path, sets=(identity.MIGRATIONS, policy.MIGRATIONS), clock=clock)
    opened.refs.register("ses_", _look_session)
    yield opened
    await opened.close()


def _look_session(_reading: object, ref: str) -> RefFacts | None:
    return RefFacts(exists=True, state="open", facts={"root_id": SESSION}) if ref in (SESSION, CHILD) else None


@pytest.fixture
def enforcing(state: State, home_path: Path) -> Callable[..., Enforcement]:
    """Build the enforcement of this home under given settings."""

    def build(**flags: Any) -> Enforcement:
        given = {key.replace("__", "."): value for key, value in flags.items()}
        return Enforcement(state, home_path, settings=Settings(home_path, environ={}, flags=given))

    return build


@pytest.fixture
def enforcement(enforcing: Callable[..., Enforcement]) -> Enforcement:
    return enforcing()


@pytest.fixture
def call(clock: SimulatedClock, who: Callers) -> Callable[..., CallFacts]:
    """Make the facts of a call of our own; by default one that asks."""

    def make(action: str = "workspace.promote", risk: Any = "destructive", **more: Any) -> CallFacts:
        server, _, name = action.partition(".")
        facts: dict[str, Any] = {"server": server, "tool": name, "arguments": {}, "principal": who.host, **more}
        return CallFacts(action=action, risk=risk, now_us=clock.now_us(), **facts)

    return make


@pytest.fixture
def rules(home_path: Path) -> Callable[[str], None]:
    """Write the user layer of the home: its rules, without `version`."""

    def write(text: str, *, name: str = "mine.toml") -> None:
        folder = home_path / "policy.d"
        folder.mkdir(exist_ok=True)
        (folder / name).write_text(f"version = 1\n{text}")

    return write
