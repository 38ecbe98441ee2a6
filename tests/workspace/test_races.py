"""Forced races: while steps are applied another thread keeps saving, and no save is ever lost.

Every content that the other thread wrote last to a path is at that path afterwards, or is kept aside.
"""

import os
import random
import threading
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest

from agentstead.blobs import BlobStore
from agentstead.workspace import exchange as exchange_module
from agentstead.workspace.apply import Applier, Outcome
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.changes import changes
from agentstead.workspace.contents import Trees
from agentstead.workspace.exchange import Cas
from agentstead.workspace.staging import opened_area
from agentstead.workspace.steps import plan_steps
from tests.workspace.conftest import Walk
from tests.workspace.directories import File, Folder, empty, make

ROUNDS = 60
NAMES = [f"file{number}" for number in range(6)]


def by_rename(path: Path, content: bytes) -> None:
    draft = path.with_name(f".{path.name}~")
    draft.write_bytes(content)
    draft.replace(path)


def in_place(path: Path, content: bytes) -> None:
    """Write as a program that keeps the file open would: one write of a fixed length, never through a link."""
    descriptor = os.open(path, os.O_WRONLY | os.O_NOFOLLOW)
    try:
        os.pwrite(descriptor, content, 0)
    finally:
        os.close(descriptor)


def delete_and_make(path: Path, content: bytes) -> None:
    """Delete, then make anew; raises FileExistsError where something came in between, and nothing was saved then."""
    path.unlink(missing_ok=True)
    descriptor = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o644)
    try:
        os.write(descriptor, content)
    finally:
        os.close(descriptor)


class Race:
    """One plan over a few files, applied while another thread saves."""

    def __init__(self, tmp_path: Path, walk_at: Walk, store: BlobStore) -> None:
        self.root, self.base = empty(tmp_path / "root"), empty(tmp_path / "base")
        wanted = empty(tmp_path / "wanted")
        make(Folder({name.encode(): File(b"OLD-%06d" % 0) for name in NAMES}), self.root)
        make(Folder({name.encode(): File(b"NEW-%06d" % 0) for name in NAMES[:-1]}), wanted)
        trees = Trees(store)
        before, after = walk_at(self.root).tree, walk_at(wanted).tree
        self.steps = plan_steps(changes(trees, before, after), lambda path: trees.entry(before, path))
        self.store = store

    def apply(self, cas: Cas, *, back: bool) -> list[Outcome]:
        with opened_root(self.root) as root, opened_area(self.base, "opr_race") as area:
            applier = Applier(self.store, root, area, cas=cas)
            inodes = [applier.stage(step) for step in self.steps]
            self.started.set()
            pairs = list(zip(self.steps, inodes, strict=True))
            outcomes = [applier.forward(step, inode) for step, inode in pairs]
            return [applier.backward(step, inode) for step, inode in reversed(pairs)] if back else outcomes

    def run(self, cas: Cas, save: Callable[[Path, bytes], None], *, back: bool, seed: int) -> dict[str, list[bytes]]:
        """Apply while another thread saves; return what it saved to each path, in order."""
        self.started = threading.Event()
        stop = threading.Event()
        saved: dict[str, list[bytes]] = {name: [] for name in NAMES}
        chance = random.Random(seed)

        def keep_saving() -> None:
            self.started.wait(10)
            number = 0
            while not stop.is_set() and number < 400:
                number += 1
                name = chance.choice(NAMES)
                content = b"EDT-%06d" % number
                try:
                    save(self.root / name, content)
                    saved[name].append(content)
                except FileExistsError:
                    saved[name].clear()  # the person deleted what they had saved
                except OSError:
                    continue

        thread = threading.Thread(target=keep_saving)
        thread.start()
        try:
            self.apply(cas, back=back)
        finally:
            stop.set()
            thread.join(30)
        return saved

    def contents(self) -> list[bytes]:
        """Return every content that is at a path or kept aside."""
        files = [path for folder in (self.root, self.base) for path in folder.rglob("*") if path.is_file()]
        return [path.read_bytes() for path in files]


@pytest.mark.parametrize("back", [False, True], ids=["forward", "and back"])
@pytest.mark.parametrize("save", [by_rename, in_place, delete_and_make])
@pytest.mark.parametrize("cas", ["exchange", "weak"])
def test_no_save_is_lost_while_a_plan_is_applied(
    tmp_path: Path,
    walk_at: Walk,
    store: BlobStore,
    cas: Cas,
    save: Callable[[Path, bytes], None],
    back: bool,
) -> None:
    for seed in range(ROUNDS // 6):
        race = Race(tmp_path, walk_at, store)
        saved = race.run(cas, save, back=back, seed=seed)
        there = race.contents()
        for name, contents in saved.items():
            assert not contents or contents[-1] in there, f"the last save of {name} is gone (seed {seed})"


@pytest.mark.parametrize("cas", ["exchange", "weak"])
def test_a_save_between_any_two_effects_is_kept(
    tmp_path: Path, walk_at: Walk, store: BlobStore, cas: Cas, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Deterministic: one save, right after each single rename of a forward and a backward run."""
    for moment in range(1, 40):
        race = Race(tmp_path, walk_at, store)
        race.started = threading.Event()
        saver = SaveOnce(moment, race.root / NAMES[moment % (len(NAMES) - 1)])
        with monkeypatch.context() as patch:
            for name in ("exchange", "rename_new"):
                patch.setattr(exchange_module, name, saver.after(getattr(exchange_module, name)))
            race.apply(cas, back=True)
        assert not saver.happened or b"SAVED" in race.contents(), f"the save at effect {moment} is gone"


class SaveOnce:
    """Saves to one path right after the n-th effect."""

    def __init__(self, moment: int, path: Path) -> None:
        self.happened = False
        self._left = moment
        self._path = path

    def after(self, effect: Callable[..., Any]) -> Callable[..., Any]:
        def run(*arguments: Any, **named: Any) -> Any:
            result = effect(*arguments, **named)
            self._left -= 1
            if self._left == 0:
                with suppress(OSError):
                    self._path.unlink(missing_ok=True)
                    self._path.write_bytes(b"SAVED")
                    self.happened = True
            return result

        return run
