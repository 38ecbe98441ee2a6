"""Whatever is written to a settings file, in whatever order: its last good state is in force, else its sound keys."""

from pathlib import Path
from tempfile import TemporaryDirectory

from hypothesis import settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule

from agentstead.config import Registry, Settings

from .conftest import KINDS

LEASE = "tasks.lease_seconds"
FACTOR = "tasks.factor"
DEFAULTS = {LEASE: 300, FACTOR: 1.5}


class SettingsFile(RuleBasedStateMachine):
    """One file that a person edits, watched by one process while others come and go."""

    def __init__(self) -> None:
        super().__init__()
        self._folder = TemporaryDirectory()
        self.home = Path(self._folder.name)
        self.path = self.home / "config.toml"
        self.now = 0.0
        self.good: dict[str, float] | None = None
        self.sound: dict[str, float] = {}
        self.faults = 0
        self.watching = self.started()

    def started(self) -> Settings:
        return Settings(self.home, environ={}, registry=Registry(*KINDS), monotonic=lambda: self.now)

    def seen(self) -> None:
        """Let the watching process notice: states that nobody saw are nobody's last good one."""
        self.now += 1.0
        self.watching.get(LEASE)

    def write(self, text: str) -> None:
        # another length each time: two writes within one tick of the file system's clock are told apart by it
        self.path.write_text(text + "\n" * (1 + (self.path.stat().st_size % 7 if self.path.exists() else 0)))
        self.seen()

    @rule(lease=st.integers(30, 86_400), factor=st.none() | st.integers(0, 9))
    def writes_what_fits(self, lease: int, factor: int | None) -> None:
        written: dict[str, float] = {LEASE: lease} if factor is None else {LEASE: lease, FACTOR: factor}
        self.good, self.sound, self.faults = written, written, 0
        self.write("[tasks]\n" + "".join(f"{key.partition('.')[2]} = {value}\n" for key, value in written.items()))

    @rule(lease=st.integers(30, 86_400))
    def misspells_a_key(self, lease: int) -> None:
        self.sound, self.faults = {LEASE: lease}, 1
        self.write(f"[tasks]\nlease_seconds = {lease}\nfactr = 2\n")

    @rule(factor=st.integers(0, 9), lease=st.sampled_from(["1", '"long"', "[300]"]))
    def writes_a_value_that_does_not_fit(self, factor: int, lease: str) -> None:
        self.sound, self.faults = {FACTOR: factor}, 1
        self.write(f"[tasks]\nfactor = {factor}\nlease_seconds = {lease}\n")

    @rule()
    def breaks_the_file(self) -> None:
        self.sound, self.faults = {}, 1
        self.write("[tasks\nlease_seconds = 60\n")

    @rule()
    def removes_the_file(self) -> None:
        self.path.unlink(missing_ok=True)
        self.good, self.sound, self.faults = None, {}, 0
        self.seen()

    @invariant()
    def the_watching_process_has_the_last_good_state(self) -> None:
        self.agrees(self.watching)

    @invariant()
    def a_process_that_starts_now_has_it_too(self) -> None:
        self.agrees(self.started())

    def agrees(self, found: Settings) -> None:
        expected = self.sound if self.good is None else self.good
        assert {key: found.get(key) for key in DEFAULTS} == DEFAULTS | expected
        assert len(found.faults()) == self.faults

    def teardown(self) -> None:
        self._folder.cleanup()


TestSettingsFile = SettingsFile.TestCase
TestSettingsFile.settings = settings(max_examples=40, stateful_step_count=20, deadline=None)
