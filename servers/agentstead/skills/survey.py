"""Look at every skill folder under the roots. With the resolver and the store, the only code that reads skills."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from pathlib import Path

from agentstead.blobs import object_id
from agentstead.skills.candidates import Candidate, Refusal, Root
from agentstead.skills.diagnostics import Diagnostic, Mode, Severity
from agentstead.skills.document import Judged, judge
from agentstead.skills.handles import Moved, entries, open_below, open_folder
from agentstead.skills.store import (
    MAX_BYTES,
    MAX_ENTRIES,
    SKILL_FILES,
    HeldTree,
    Listed,
    TreeRefused,
    hold_listed,
    list_files,
    read_listed,
)
from agentstead.skills.unseen import unseen_in
from agentstead.skills.walk import Found, walk
from agentstead.skills.warm import WarmIds


@dataclass(frozen=True, slots=True)
class Survey:
    """What the roots hold now; ``cut`` says which bounds were reached where, ``unreadable`` what could not be read."""

    candidates: tuple[Candidate, ...]
    cut: tuple[str, ...]
    unreadable: tuple[str, ...]


def survey(roots: Sequence[Root], *, link_targets: Sequence[Path] = (), warm: WarmIds | None = None) -> Survey:
    """Look at each skill folder under the roots. It reads the disk: run it on a thread."""
    allowed = [*(root.path for root in roots), *link_targets]
    candidates: list[Candidate] = []
    cut: list[str] = []
    unreadable: list[str] = []
    for root in roots:
        walked = walk(root.path, allowed=allowed)
        seen = (look(root, found, warm=warm) for found in walked.found)
        candidates += (candidate for candidate in seen if candidate is not None)
        cut += (f"{root.path}: {bound}" for bound in walked.truncated)
        unreadable += walked.unreadable
    return Survey(tuple(candidates), tuple(cut), tuple(unreadable))


def look(root: Root, found: Found, *, warm: WarmIds | None = None, mode: Mode = "lenient") -> Candidate | None:
    """Return the candidate of one skill folder, or None when it is gone."""
    bare = Candidate(root, found.shown, found.place)
    if found.place is None:
        message = "It is a link that ends outside the folders in which skills are looked for."
        return replace(bare, refusal=Refusal("link_refused", message))
    try:
        with open_folder(found.place.base) as base, open_below(base, found.place.parts) as handle:
            return _look(bare, handle, warm=warm, mode=mode)
    except FileNotFoundError:
        return None
    except OSError as error:
        return replace(bare, refusal=Refusal("path_escape", f"It cannot be read: {error.strerror}."))


def _look(bare: Candidate, handle: int, *, warm: WarmIds | None, mode: Mode) -> Candidate:
    data, twins = None, False
    tree, refusal = None, None
    try:
        # The text is read before the tree: a folder that cannot be held still says whose name it holds.
        data, twins = _text(handle)
        files = list_files(handle)
        tree = hold_listed(handle, files, warm=warm)
        data = data if data is not None else _linked_text(handle, files)
        _check_same(data, tree)
    except TreeRefused as refused:
        refusal = Refusal(refused.reason, str(refused))
    except Moved:
        tree, refusal = None, Refusal("content_changed", "It changed while it was read.")
    if data is None:
        return replace(bare, tree=tree, refusal=refusal)
    judged = _judged(data, folder=bare.shown.name, mode=mode, twins=twins)
    return replace(bare, judged=judged, tree=tree, refusal=refusal, unseen=unseen_in(data))


def _text(handle: int) -> tuple[bytes | None, bool]:
    """Return the bytes of SKILL.md as far as it is a regular file, and whether skill.md stands beside it."""
    found = {entry.name: entry.fingerprint for entry in entries(handle, most=MAX_ENTRIES) if entry.kind == "file"}
    names = [name for name in SKILL_FILES if name in found]
    # One too large for any skill is left to the listing, which refuses the folder for it.
    if not names or found[names[0]].size > MAX_BYTES:
        return None, False
    return read_listed(handle, Listed((names[0],), found[names[0]])), len(names) > 1


def _check_same(data: bytes | None, tree: HeldTree) -> None:
    held = {file.blob_id for file in tree.files if file.path in SKILL_FILES}
    if data is not None and object_id(data) not in held:
        raise Moved


def _linked_text(handle: int, files: dict[str, Listed]) -> bytes | None:
    name = next((name for name in SKILL_FILES if name in files), None)
    return None if name is None else read_listed(handle, files[name])


def _judged(data: bytes, *, folder: str, mode: Mode, twins: bool) -> Judged:
    judged = judge(data, folder=folder, mode=mode)
    if not twins:
        return judged
    remark = Diagnostic("file.case", Severity.WARNING, "SKILL.md and skill.md stand side by side; SKILL.md is read.")
    return Judged(judged.document, (*judged.diagnostics, remark))
