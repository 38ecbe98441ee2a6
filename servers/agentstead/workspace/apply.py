"""The apply engine: each step swaps prepared content in, looks at what it displaced, and can go back.

Nothing is overwritten or deleted unseen: what stood at a path is moved aside first, and if it was not what the plan
expected, it goes back and the step is contested. What the files say decides after a crash, not what was planned.
"""

import os
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Final, Literal

from agentstead.blobs import FEW_FILES, BlobStore, TreeEntry, sync_file_system
from agentstead.state import CRASH_POINTS, Invalid, crash_point
from agentstead.workspace.beneath import entry_at, inode_at, opened_directory
from agentstead.workspace.exchange import Cas, Name, place, rename_new
from agentstead.workspace.paths import parent, parts
from agentstead.workspace.staging import MOST_TURNS, Area, exists
from agentstead.workspace.standing import is_plain, remove, remove_empty, same
from agentstead.workspace.steps import Step
from agentstead.workspace.writing import set_mode, write_entry

Phase = Literal["planned", "staged", "swapped", "verified", "contested", "reverted"]
Located = Literal["before", "after", "reverted"]

_BEFORE_STAGE, _AFTER_STAGE = CRASH_POINTS.declare("workspace.stage")
_BEFORE_SWAP, _AFTER_SWAP = CRASH_POINTS.declare("workspace.swap")
_BEFORE_REVERT, _AFTER_REVERT = CRASH_POINTS.declare("workspace.revert")
_GONE: Final = (FileNotFoundError, NotADirectoryError)


@dataclass(frozen=True, slots=True)
class Outcome:
    """What became of a step; `found` is what stood at its path where that was not what the plan expected."""

    step: Step
    phase: Phase
    found: TreeEntry | None = None


class Applier:
    """One operation's steps on one open directory; every method may be called again after a crash.

    `plan` holds all steps of the operation, so that a directory is recognised that was opened and closed again.
    """

    def __init__(self, store: BlobStore, root: int, area: Area, *, cas: Cas, plan: Iterable[Step] = ()) -> None:
        self._store = store
        self._root = root
        self._area = area
        self._cas = cas
        self._last_modes = {step.path: step.new for step in plan if step.kind == "mode"}

    def stage(self, step: Step, *, durable: bool = False) -> int:
        """Prepare a step's new content; return the inode by which it is known from then on (0: nothing to prepare)."""
        if not step.is_staged or step.new is None:
            return 0
        staged = self._area.staged(step.ordinal)
        crash_point(_BEFORE_STAGE)
        if exists(staged):
            remove(staged)
        write_entry(self._store, staged.directory, staged.name, step.new, durable=durable)
        if step.new.type == "d":
            set_mode(staged.directory, staged.name, step.new.mode)
        crash_point(_AFTER_STAGE)
        return inode_at(staged.directory, staged.name)

    def forward(self, step: Step, inode: int) -> Outcome:
        """Do a step, or finish it, or find it done; a contested one leaves the path as somebody else made it."""
        try:
            with self._at(step) as target:
                located = self._locate(step, target, inode)
                if located == "before":
                    crash_point(_BEFORE_SWAP)
                    self._swap(step, target)
                    crash_point(_AFTER_SWAP)
                    located = self._locate(step, target, inode)
                if located == "after" and self._displaced_as_expected(step):
                    return Outcome(step, "verified")
                if located == "after":
                    self._put_back(step, target, lambda name: inode_at(*name) == inode)
                return Outcome(step, "contested", entry_at(*target))
        except (*_GONE, Invalid):
            return Outcome(step, "verified") if self._is_past(step) else Outcome(step, "contested")
        except FileExistsError:
            return Outcome(step, "contested", self._found(step))

    def backward(self, step: Step, inode: int) -> Outcome:
        """Undo a step, or find it undone; an edit that was made since stays, and the step is contested."""
        try:
            with self._at(step) as target:
                if self._locate(step, target, inode) != "after":
                    return Outcome(step, "reverted")
                crash_point(_BEFORE_REVERT)
                undone = self._undo(step, target)
                crash_point(_AFTER_REVERT)
                return Outcome(step, "reverted") if undone else Outcome(step, "contested", entry_at(*target))
        except (*_GONE, Invalid):
            # Without its directory there is nothing to take out; what was displaced has no place to go back to.
            homeless = step.kind == "rmdir" or exists(self._area.displaced(step.ordinal))
            return Outcome(step, "contested") if homeless else Outcome(step, "reverted")
        except FileExistsError:
            return Outcome(step, "contested", self._found(step))

    def is_done(self, step: Step, inode: int) -> bool:
        """Tell from the files alone whether a step was done."""
        try:
            with self._at(step) as target:
                return self._locate(step, target, inode) == "after"
        except (*_GONE, Invalid):
            return False

    def moved_on(self, steps: Iterable[Step]) -> list[bytes]:
        """Return the paths that no longer read as the plan left them: somebody wrote there afterwards."""
        last = {step.path: step for step in steps}
        return [path for path, step in sorted(last.items()) if self._differs(step)]

    def sync(self, steps: Iterable[Step], root_path: str) -> None:
        """Make the names of all touched directories durable."""
        touched = {parent(step.path) for step in steps}
        if len(touched) > FEW_FILES and sync_file_system(root_path):
            return
        for directory in sorted(touched, key=parts):
            try:
                with opened_directory(self._root, directory) as descriptor:
                    os.fsync(descriptor)
            except (*_GONE, Invalid):
                continue

    def _differs(self, step: Step) -> bool:
        try:
            with self._at(step) as target:
                return not same(entry_at(*target), step.new)
        except (*_GONE, Invalid):
            return step.new is not None

    def _is_past(self, step: Step) -> bool:
        """Tell, where the directory of a step is gone, whether a later step took it after this one had been done."""
        if step.kind == "mode":
            return step.new is not None and step.new.type == "d"
        if step.kind == "rmdir":
            return True
        is_away = step.kind == "delete" and exists(self._area.displaced(step.ordinal))
        return is_away and self._displaced_as_expected(step)

    def _at(self, step: Step) -> "_Target":
        return _Target(self._root, step.path)

    def _locate(self, step: Step, target: Name, inode: int) -> Located:
        """Read from the files how far a step got, and finish a rename that a crash cut in two."""
        if step.kind == "mode":
            return self._locate_mode(step, entry_at(*target))
        if step.kind == "rmdir":
            return "before" if exists(target) else "after"
        if step.kind == "delete":
            return "after" if exists(self._area.displaced(step.ordinal)) else "before"
        if step.kind in ("add", "mkdir"):
            return self._locate_addition(step, target, inode)
        return self._locate_replacement(step, target, inode)

    def _locate_mode(self, step: Step, now: TreeEntry | None) -> Located:
        if step.new is not None and step.new.type == "d" and (now is None or now.type != "d"):
            # Opened so that it could be emptied, and gone by now: there is no mode left to set.
            return "after"
        last = self._last_modes.get(step.path)
        if now is not None and last is not None and now.mode == last.mode and not same(last, step.old):
            # What a later step leaves: this one came before it.
            return "after"
        return "after" if now is not None and step.new is not None and now.mode == step.new.mode else "before"

    def _locate_addition(self, step: Step, target: Name, inode: int) -> Located:
        staged, returned = self._area.staged(step.ordinal), self._area.returned(step.ordinal, 0)
        if exists(returned) and not exists(target) and not same(entry_at(*returned), step.new):
            # An edited file was taken out, and a crash came before it was put back.
            rename_new(returned, target)
        if not exists(staged):
            return "reverted" if exists(returned) else "after"
        if inode and inode_at(*target) == inode:
            remove(staged)
            return "after"
        return "before"

    def _locate_replacement(self, step: Step, target: Name, inode: int) -> Located:
        staged, displaced = self._area.staged(step.ordinal), self._area.displaced(step.ordinal)
        held = inode_at(*displaced)
        if not held:
            if inode_at(*staged) == inode:
                return "before"
            if not exists(staged):
                return "reverted"
            # Exchanged, and killed before what came out got its own name.
            os.rename(staged.name, displaced.name, src_dir_fd=staged.directory, dst_dir_fd=displaced.directory)
            return "after"
        if held == inode:
            return self._finish_return(step, displaced)
        if inode_at(*staged) == inode:
            # The old name stepped aside, and the new one has not come.
            rename_new(staged, target)
        return "after"

    def _finish_return(self, step: Step, displaced: Name) -> Located:
        """Our own content is where the displaced one was: it was exchanged back, and killed before the rename."""
        returned = self._area.returned(step.ordinal, 0)
        os.rename(displaced.name, returned.name, src_dir_fd=displaced.directory, dst_dir_fd=returned.directory)
        return "reverted"

    def _swap(self, step: Step, target: Name) -> None:
        staged, displaced = self._area.staged(step.ordinal), self._area.displaced(step.ordinal)
        if step.kind in ("add", "mkdir"):
            rename_new(staged, target)
        elif step.kind == "delete":
            os.rename(target.name, displaced.name, src_dir_fd=target.directory, dst_dir_fd=displaced.directory)
        elif step.kind == "rmdir":
            remove_empty(target)
        elif step.kind == "mode":
            if same(entry_at(*target), step.old) and step.new is not None:
                set_mode(target.directory, target.name, step.new.mode)
        else:
            place(staged, target, displaced, cas=self._cas)

    def _displaced_as_expected(self, step: Step) -> bool:
        if step.kind not in ("delete", "replace", "retype"):
            return True
        displaced = self._area.displaced(step.ordinal)
        return same(entry_at(*displaced), step.old) and is_plain(displaced)

    def _put_back(self, step: Step, target: Name, is_ours: Callable[[Name], bool]) -> bool:
        """Put what a step displaced back; false where something newer was met, which then stays at the path.

        What comes out must be what we put there. Anything else was saved meanwhile and is newer than what is being
        put back, so it goes to the path in its turn, until what comes out is what was put there last.
        """
        held = self._area.displaced(step.ordinal)
        if step.kind == "delete":
            rename_new(held, target)
            return True
        undisturbed = True
        for turn in range(MOST_TURNS):
            aside = self._area.returned(step.ordinal, turn)
            inode = inode_at(*held)
            try:
                place(held, target, aside, cas=self._cas)
            except FileNotFoundError:
                rename_new(held, target)
                return undisturbed
            if is_ours(aside):
                return undisturbed
            undisturbed = False
            held, is_ours = aside, _has_inode(inode)
        return undisturbed

    def _undo(self, step: Step, target: Name) -> bool:
        """Undo a step that was done; false where the path was edited since and is left as it is."""
        if step.new is not None and exists(target) and not same(entry_at(*target), step.new):
            return False
        if step.kind in ("replace", "retype", "delete"):
            return self._put_back(step, target, lambda name: same(entry_at(*name), step.new) and is_plain(name))
        if step.kind == "add":
            return self._take_out(step, target)
        if step.kind == "mkdir":
            return remove_empty(target)
        if step.kind == "rmdir" and step.old is not None:
            os.mkdir(target.name, 0o700, dir_fd=target.directory)
            set_mode(target.directory, target.name, step.old.mode)
        elif step.old is not None:
            set_mode(target.directory, target.name, step.old.mode)
        return True

    def _take_out(self, step: Step, target: Name) -> bool:
        """Take an added file away again, unless somebody changed it."""
        aside = self._area.returned(step.ordinal, 0)
        os.rename(target.name, aside.name, src_dir_fd=target.directory, dst_dir_fd=aside.directory)
        if same(entry_at(*aside), step.new):
            return True
        rename_new(aside, target)
        return False

    def _found(self, step: Step) -> TreeEntry | None:
        try:
            with self._at(step) as target:
                return entry_at(*target)
        except (*_GONE, Invalid):
            return None


class _Target:
    """The name that a step is about, in its directory opened by handles."""

    def __init__(self, root: int, path: bytes) -> None:
        self._opened = opened_directory(root, parent(path))
        self._name = parts(path)[-1]

    def __enter__(self) -> Name:
        return Name(self._opened.__enter__(), self._name)

    def __exit__(self, *details: object) -> None:
        self._opened.__exit__(None, None, None)


def _has_inode(inode: int) -> Callable[[Name], bool]:
    return lambda name: inode_at(*name) == inode
