"""Writing into a fork: files, links, deletions and a patch become one new tree, applied whole or not at all."""

import base64
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Annotated, Final, Self

import anyio
from pydantic import BaseModel, ConfigDict, Field, model_validator

from agentstead.blobs import Batch, BlobStore, TreeEntry
from agentstead.kit import Home
from agentstead.state import Conflict, Invalid
from agentstead.workspace import operations
from agentstead.workspace.acting import cas_of
from agentstead.workspace.changes import changes
from agentstead.workspace.classes import class_of_directory, class_of_file, is_own
from agentstead.workspace.contents import Trees, edited
from agentstead.workspace.finishing import carry_out
from agentstead.workspace.forking import capture_fork
from agentstead.workspace.forks import Fork
from agentstead.workspace.hunks import apply_hunks, rejected
from agentstead.workspace.operations import Begin, Operation
from agentstead.workspace.patch import PatchedFile, parse_patch
from agentstead.workspace.paths import given, given_base64, join, parent, parts, shown
from agentstead.workspace.steps import Step, plan_steps

MAX_BYTES: Final = 16 * 2**20
_MODES: Final[Mapping[bytes, int]] = {b"100644": 0o644, b"100755": 0o755}


class FileEdit(BaseModel):
    """One path to set: exactly one of text, base64, link, delete; `mode` as octal text such as 755."""

    model_config = ConfigDict(extra="forbid", frozen=True)

    path: str | None = None
    path_b64: str | None = None
    text: str | None = None
    base64: str | None = None
    link: str | None = None
    delete: bool = False
    mode: Annotated[str, Field(pattern="^[0-7]{3}$")] | None = None

    @model_validator(mode="after")
    def _one_of_each(self) -> Self:
        if (self.path is None) == (self.path_b64 is None):
            raise ValueError("give path or path_b64")
        contents = (self.text is not None, self.base64 is not None, self.link is not None, self.delete)
        if sum(contents) != 1 and not (sum(contents) == 0 and self.mode is not None):
            raise ValueError("give one of text, base64, link, delete; or mode alone")
        return self

    def exact_path(self) -> bytes:
        """Return the bytes of the path."""
        return given(self.path) if self.path is not None else given_base64(self.path_b64 or "")

    def content(self) -> bytes | None:
        """Return the new bytes of a file, or None where it is no file that is written."""
        if self.text is not None:
            return self.text.encode()
        if self.base64 is None:
            return None
        try:
            return base64.b64decode(self.base64, validate=True)
        except ValueError:
            raise Invalid(
                "path.invalid", f"the content of {self.path!r} is no base64", remedy="Encode the bytes of the file."
            ) from None


@dataclass(frozen=True, slots=True)
class Written:
    """A write that ended: the tree afterwards and the paths that it set."""

    operation: Operation | None
    tree: str
    written: tuple[bytes, ...]


async def write_fork(
    home: Home,
    fork: Fork,
    *,
    files: Sequence[FileEdit],
    patch: str | None,
    expected_tree: str | None,
    operation_id: str,
) -> Written:
    """Apply edits to a fork, all or none; the caller holds the fork's lock.

    What other programs wrote into the fork is recorded first. Raises Conflict `fork.tree_changed`, `patch.rejected`,
    Invalid for what cannot be written.
    """
    before = (await capture_fork(home, fork)).walked
    if expected_tree is not None and expected_tree != before.tree:
        raise _tree_changed(fork, before.tree)
    after = await home.blobs.run(_edited, before.tree, files, patch)
    if after == before.tree:
        return Written(None, after, ())
    steps, written = await home.blobs.run(_steps, before.tree, after)
    begin = Begin(operation_id, "write", fork.workspace_id, fork.id, before.tree, after, await cas_of(home, fork.place))
    with anyio.CancelScope(shield=True):
        operation = await home.state.write(operations.begin, begin, steps)
        ended = await carry_out(home, fork.place, operation)
    if ended.applied.undone:
        raise _tree_changed(fork, ended.after.walked.tree)
    return Written(ended.operation, ended.after.walked.tree, tuple(written))


def _edited(store: BlobStore, tree: str, files: Sequence[FileEdit], patch: str | None) -> str:
    trees = Trees(store)
    with store.batch() as batch:
        edits = _Edits(trees, batch, tree)
        for file in files:
            edits.set_file(file)
        for patched in parse_patch(patch.encode("utf-8", "surrogateescape")) if patch else ():
            edits.set_patched(patched)
        result = edited(trees, batch, tree, edits.entries)
        batch.commit()
    return result


def _steps(store: BlobStore, before: str, after: str) -> tuple[list[Step], list[bytes]]:
    trees = Trees(store)
    found = list(changes(trees, before, after))
    return plan_steps(found, lambda path: trees.entry(before, path)), [change.path for change in found]


class _Edits:
    """The entries that one write sets, by path; what it removes is None."""

    def __init__(self, trees: Trees, batch: Batch, tree: str) -> None:
        self.entries: dict[bytes, TreeEntry | None] = {}
        self._trees = trees
        self._batch = batch
        self._tree = tree
        self._contents: dict[str, bytes] = {}
        self._bytes = 0

    def set_file(self, edit: FileEdit) -> None:
        """Take in one edit of a file, link, mode or deletion."""
        path = edit.exact_path()
        _refuse_unstored(path)
        old = self._entry(path)
        if edit.delete:
            if old is None:
                raise _nothing_there(path)
            self.entries[path] = None
        elif edit.link is not None:
            self.entries[path] = self._put(path, edit.link.encode("utf-8", "surrogateescape"), "l", 0)
        else:
            content = edit.content()
            mode = int(edit.mode, 8) if edit.mode else old.mode if old is not None and old.type == "f" else 0o644
            if content is None and old is None:
                raise _nothing_there(path)
            self.entries[path] = (
                TreeEntry(old.name, old.type, mode, old.size, old.id)
                if content is None and old is not None
                else self._put(path, content or b"", "f", mode)
            )

    def set_patched(self, file: PatchedFile) -> None:
        """Take in what a patch does to one file."""
        old_path, new_path = file.old_path, file.new_path
        for path in (old_path, new_path):
            if path is not None:
                _refuse_unstored(path)
        old = self._entry(old_path) if old_path is not None else None
        if old_path is not None and (old is None or old.type == "d"):
            raise rejected(file.path, 0, "the file is not there")
        if file.created and new_path is not None and self._entry(new_path) is not None:
            raise rejected(file.path, 0, "the file that it makes is there already")
        before = self._content(old) if old is not None else b""
        data = file.literal if file.literal is not None else apply_hunks(file.path, file.hunks, before)
        if new_path is None:
            if data and file.literal is None:
                raise rejected(file.path, len(file.hunks), "the file holds more than the patch removes")
            self.entries[old_path or b""] = None
            return
        if file.renamed and old_path is not None:
            self.entries[old_path] = None
        kind = "l" if file.mode == b"120000" or (file.mode is None and old is not None and old.type == "l") else "f"
        kept = old.mode if old is not None and old.type == "f" else 0o644
        mode = 0 if kind == "l" else _mode(file.mode, kept)
        self.entries[new_path] = self._put(new_path, data, kind, mode)

    def _put(self, path: bytes, data: bytes, kind: str, mode: int) -> TreeEntry:
        self._bytes += len(data)
        if self._bytes > MAX_BYTES:
            raise Invalid(
                "path.invalid",
                f"one write may carry {MAX_BYTES // 2**20} MiB; {shown(path)!r} goes beyond",
                remedy="Write the files in several calls, or with a program in the fork's directory.",
            )
        blob = self._batch.put(data)
        self._contents[blob] = data
        return TreeEntry(parts(path)[-1], "l" if kind == "l" else "f", mode, len(data), blob)

    def _entry(self, path: bytes) -> TreeEntry | None:
        return self.entries[path] if path in self.entries else self._trees.entry(self._tree, path)

    def _content(self, entry: TreeEntry) -> bytes:
        known = self._contents.get(entry.id)
        return self._trees.store.get("blob", entry.id) if known is None else known


def _mode(given_mode: bytes | None, kept: int) -> int:
    """Return a file's mode after a patch, which knows no more than whether it can be executed."""
    if given_mode is None:
        return kept
    wanted = _MODES.get(given_mode, kept)
    return kept if (kept & 0o111 != 0) == (wanted & 0o111 != 0) else wanted


def _refuse_unstored(path: bytes) -> None:
    """Raise Invalid for a path that no snapshot would hold: what is written there would be lost."""
    names = parts(path)
    directory = b""
    for name in names[:-1]:
        if class_of_directory(name, ()) != "content" or is_own(directory, name):
            raise _unstored(path)
        directory = join(directory, name)
    if is_own(parent(path), names[-1]) or class_of_file(names[-1]) != "content":
        raise _unstored(path)


def _unstored(path: bytes) -> Invalid:
    return Invalid(
        "path.invalid",
        f"{shown(path)!r} is a path that no snapshot stores (derived, secret or Agentstead's own)",
        remedy="Use another path; such files are made by the programs that need them.",
    )


def _nothing_there(path: bytes) -> Invalid:
    return Invalid(
        "path.invalid", f"there is nothing at {shown(path)!r}", remedy="Look at the tree (workspace_view, view=tree)."
    )


def _tree_changed(fork: Fork, tree: str) -> Conflict:
    return Conflict(
        "fork.tree_changed",
        f"fork {fork.id} holds another tree now: {tree}",
        remedy="Look at what changed with tree_diff, then repeat the write with expected_tree set to it.",
        details={"tree": tree},
    )
