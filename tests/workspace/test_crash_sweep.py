"""Killed with SIGKILL at every registered crash point, each operation is whole or undone after a restart.

Nobody has to do anything, nothing that is in no snapshot is gone, and the operation can simply be repeated.
"""

import hashlib
import json
import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from agentstead.state import CRASH_POINTS
from agentstead.workspace.server import SERVER

pytestmark = [pytest.mark.slow, pytest.mark.timeout(900)]

MEMORY = Path("/dev/shm")
# Every passage of every point in a run that asks for it, which takes minutes; else the first six, then every third.
WHOLE = os.environ.get("AGENTSTEAD_TEST_SWEEP") == "all"
PASSAGES = range(1, 200) if WHOLE else (*range(1, 7), *range(8, 200, 3))
DRIVER = Path(__file__).with_name("crash_driver.py")
POINTS = [name for name in CRASH_POINTS.names() if name.startswith(("commit.", "blobs.put.", "workspace.", "runner."))]
UNKNOWN = {"notes/unknown.txt": b"in no snapshot at all\n"}
UNSTORED = {".env": b"TOKEN=kept\n", "cache/CACHEDIR.TAG": b"", "cache/big.bin": b"derived", ".git/HEAD": b"ref: x\n"}


class World:
    """A home and a project, brought back to the same state before each run; the driver does the work."""

    def __init__(self, base: Path) -> None:
        self.home, self.root, self._kept = base / "home", base / "project", base / "kept"
        self._driver = subprocess.Popen(
            [sys.executable, str(DRIVER)], stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
        )
        self.facts: dict[str, Any] = {}

    def run(self, do: str, *, crash: str = "") -> dict[str, Any]:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        job = {"do": do, "crash": crash, "home": str(self.home), "root": str(self.root), **self.facts}
        self._driver.stdin.write(json.dumps(job) + "\n")
        self._driver.stdin.flush()
        answer: dict[str, Any] = json.loads(self._driver.stdout.readline())
        assert "error" not in answer, answer["error"]
        return answer

    def prepare(self) -> None:
        self.root.mkdir()
        files = {
            "edited.txt": b"first version\n",
            "gone.txt": b"goes\n",
            "run.sh": b"echo run\n",
            "same.txt": b"same\n",
        }
        for name, data in {**files, **UNSTORED}.items():
            (self.root / name).parent.mkdir(exist_ok=True)
            (self.root / name).write_bytes(data)
        (self.root / "notes").mkdir()
        self.facts = self.run("prepare")["result"]
        shutil.copytree(self.home, self._kept / "home", symlinks=True)
        shutil.copytree(self.root, self._kept / "project", symlinks=True)

    def reset(self, *, unknown: bool) -> None:
        """Bring everything back, keeping the root directory itself: its identity is recorded."""
        shutil.rmtree(self.home)
        shutil.copytree(self._kept / "home", self.home, symlinks=True)
        for path in self.root.iterdir():
            shutil.rmtree(path) if path.is_dir() else path.unlink()
        shutil.copytree(self._kept / "project", self.root, symlinks=True, dirs_exist_ok=True)
        for name, data in UNKNOWN.items() if unknown else ():
            (self.root / name).write_bytes(data)

    def close(self) -> None:
        assert self._driver.stdin is not None
        assert self._driver.stdout is not None
        self._driver.stdin.close()
        self._driver.wait(timeout=30)
        self._driver.stdout.close()


@pytest.fixture(scope="module")
def world() -> Iterator[World]:
    """A world in memory where there is such a place: a SIGKILL loses nothing that was written, synced or not."""
    with tempfile.TemporaryDirectory(dir=MEMORY if MEMORY.is_dir() else None) as base:
        made = World(Path(base))
        made.prepare()
        yield made
        made.close()


def held(world: World, found: dict[str, Any], *, unknown: bool) -> None:
    """Assert what must hold after any crash and restart."""
    assert found["wrong"] == []
    assert found["journal"]
    assert (found["open"], found["making"], found["receipts"]) == ([], [], [])
    assert (found["staged"], found["incoming"], found["trash"]) == ([], [], [])
    assert found["forks"] == found["living"], "no directory without a fork, and no fork without a directory"
    for name, data in {**UNSTORED, **(UNKNOWN if unknown else {})}.items():
        assert (world.root / name).read_bytes() == data, name


def sweep(world: World, do: str, point: str, *, unknown: bool) -> Iterator[tuple[int, dict[str, Any]]]:
    """Kill at passages of a point in turn; yield the passage and what a restart finds, until none is left."""
    for passage in PASSAGES:
        world.reset(unknown=unknown)
        if not world.run(do, crash=f"{point}:{passage}")["killed"]:
            return
        found = world.run("look")["result"]
        held(world, found, unknown=unknown)
        yield passage, found


def test_every_effect_of_the_sweep_is_registered() -> None:
    effects = {name.rpartition(".")[0] for name in POINTS}
    expected = {"stage", "swap", "revert", "settle", "fork"}
    assert {f"workspace.{effect}" for effect in expected} | {"commit", "blobs.put", "runner.start"} <= effects
    assert SERVER.startup is not None


@pytest.mark.parametrize("point", POINTS)
def test_a_restore_killed_anywhere_is_whole_or_was_never_begun(world: World, point: str) -> None:
    for passage, found in sweep(world, "restore", point, unknown=True):
        after_restart = {name: digest for name, digest in found["files"].items() if not name.startswith("notes/")}
        assert after_restart in states(), f"{point}:{passage}"
        assert world.run("restore")["result"] == "done"
        assert (world.root / "edited.txt").read_bytes() == b"first version\n"


def states() -> tuple[dict[str, str], dict[str, str]]:
    """Return the files of the first snapshot, and those of the second, with what no snapshot holds."""

    def digests(files: dict[str, bytes]) -> dict[str, str]:
        return {name: hashlib.sha256(data).hexdigest() for name, data in {**files, **UNSTORED}.items()}

    common = {"run.sh": b"echo run\n", "same.txt": b"same\n"}
    first = {"edited.txt": b"first version\n", "gone.txt": b"goes\n", **common}
    second = {"edited.txt": b"second version\n", "later.txt": b"made after the first snapshot\n", **common}
    return digests(first), digests(second)


@pytest.mark.parametrize("point", POINTS)
def test_a_promotion_killed_anywhere_is_whole_or_taken_back(world: World, point: str) -> None:
    for passage, found in sweep(world, "promote", point, unknown=False):
        assert found["live"] in (world.facts["second"], world.facts["fork"]), f"{point}:{passage}"
        if found["live"] == world.facts["second"]:
            assert world.run("promote")["result"] == "committed"
        assert (world.root / "new" / "deep" / "file.txt").read_bytes() == b"new\n"


@pytest.mark.parametrize("point", POINTS)
def test_forks_killed_anywhere_are_all_open_or_none_is_left(world: World, point: str) -> None:
    for passage, found in sweep(world, "fork", point, unknown=True):
        assert world.facts["fork_id"] in found["living"]
        assert len(found["living"]) in (1, 2, 3), f"{point}:{passage}"
        assert len(set(world.run("fork")["result"])) == 1


@pytest.mark.parametrize("do", ["write", "close", "check"])
@pytest.mark.parametrize("point", [name for name in POINTS if not name.startswith(("blobs.", "commit.before"))])
def test_a_fork_is_written_closed_or_checked_again_after_any_kill(world: World, do: str, point: str) -> None:
    for _ in sweep(world, do, point, unknown=True):
        assert world.run(do)["result"]


@pytest.mark.parametrize("do", ["restore", "promote"])
@pytest.mark.parametrize("first", ["workspace.swap.after:2", "workspace.settle.before:1"])
@pytest.mark.parametrize("point", [name for name in POINTS if name.startswith(("commit.after", "workspace."))])
def test_a_recovery_killed_anywhere_is_recovered_from(world: World, do: str, first: str, point: str) -> None:
    for passage in PASSAGES:
        world.reset(unknown=False)
        assert world.run(do, crash=first)["killed"]
        if not world.run("look", crash=f"{point}:{passage}")["killed"]:
            break
        found = world.run("look")["result"]
        held(world, found, unknown=False)
        assert found["live"] in (world.facts["first"], world.facts["second"], world.facts["fork"])
