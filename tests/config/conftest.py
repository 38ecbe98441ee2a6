"""A registry of a few settings of every kind, and settings over files in a temporary home and workspace."""

from collections.abc import Callable
from dataclasses import dataclass, field
from pathlib import Path

import pytest
from hypothesis import settings

from agentstead.config import Registry, Setting, Settings

# A machine that does much else at once makes an example slow, not wrong.
settings.register_profile("unhurried", deadline=None)
settings.load_profile("unhurried")

KINDS = (
    Setting(key="tasks.lease_seconds", kind="int", default=300, least=30, most=86_400, workspace=True, doc="A lease."),
    Setting(key="tasks.factor", kind="float", default=1.5, least=0, doc="A factor."),
    Setting(key="watch.enabled", kind="bool", default=False, doc="Watch files."),
    Setting(key="log.level", kind="text", default="info", choices=("debug", "info", "error"), doc="Level."),
    Setting(key="hosts.trusted", kind="texts", default=(), most=3, person=True, doc="Hosts."),
    Setting(key="forks.live", kind="int", default=16, least=1, most=256, workspace=True, tighter="lower", doc="Forks."),
    Setting(
        key="checks.isolation",
        kind="text",
        default="best",
        choices=("full", "best", "none"),
        workspace=True,
        tighter="lower",
        doc="Isolation.",
    ),
    Setting(key="server.port", kind="int", default=7433, least=1, most=65_535, live=False, doc="Port."),
    Setting(key="rules.weights.*", kind="float", default=1.0, workspace=True, doc="Weight of a rule."),
)


@pytest.fixture
def registry() -> Registry:
    return Registry(*KINDS)


@dataclass
class Files:
    """A home and a workspace with their files; `now` is the monotonic time that the settings see."""

    home: Path
    workspace: Path
    registry: Registry
    environ: dict[str, str] = field(default_factory=dict)
    now: float = 0.0

    def write_home(self, text: str) -> None:
        self.home.mkdir(exist_ok=True)
        (self.home / "config.toml").write_text(text)

    def write_workspace(self, text: str) -> None:
        path = self.workspace / ".agentstead" / "config.toml"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)

    def settings(self, **flags: object) -> Settings:
        return Settings(
            self.home, environ=self.environ, flags=flags, registry=self.registry, monotonic=lambda: self.now
        )


@pytest.fixture
def files(tmp_path: Path, registry: Registry) -> Files:
    return Files(tmp_path / "home", tmp_path / "project", registry)


@pytest.fixture
def with_flags(files: Files) -> Callable[[dict[str, object]], Settings]:
    def build(flags: dict[str, object]) -> Settings:
        return Settings(files.home, environ=files.environ, flags=flags, registry=files.registry)

    return build
