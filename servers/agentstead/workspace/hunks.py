"""Applying hunks to a file's content: each fits exactly, or nothing is applied.

A hunk may have moved, but no line of it may differ.
"""

from collections.abc import Sequence
from dataclasses import dataclass, field

from agentstead.state import Conflict
from agentstead.workspace.lines import split_lines
from agentstead.workspace.paths import shown


@dataclass(slots=True)
class Hunk:
    """One hunk: where it says it belongs (0-based), the lines it expects and the lines it leaves."""

    start: int
    old: list[bytes] = field(default_factory=list)
    new: list[bytes] = field(default_factory=list)


def apply_hunks(path: bytes, hunks: Sequence[Hunk], content: bytes) -> bytes:
    """Return a file's content after its hunks; raise Conflict `patch.rejected` for the first that does not fit."""
    lines = split_lines(content)
    moved = 0
    for number, hunk in enumerate(hunks, 1):
        at = _find(lines, hunk.old, hunk.start + moved)
        if at is None:
            raise rejected(path, number, "its lines are not in the file")
        lines[at : at + len(hunk.old)] = hunk.new
        moved = at - hunk.start + len(hunk.new) - len(hunk.old)
    return b"".join(lines)


def rejected(path: bytes, hunk: int, why: str) -> Conflict:
    """Return the error for a hunk (numbered from 1; 0 is the file as a whole) that cannot be applied."""
    return Conflict(
        "patch.rejected",
        f"hunk {hunk} of {shown(path)!r} does not apply: {why}",
        remedy="Read the file as it is now (workspace_view, view=file) and make the patch again; nothing was written.",
        details={"path": shown(path), "hunk": hunk, "reason": why},
    )


def _find(lines: list[bytes], wanted: list[bytes], near: int) -> int | None:
    """Return the place nearest to the expected one where the wanted lines stand exactly."""
    last = len(lines) - len(wanted)
    if not wanted:
        return min(max(near, 0), len(lines))
    places = sorted(range(last + 1), key=lambda at: abs(at - near))
    return next((at for at in places if lines[at] == wanted[0] and lines[at : at + len(wanted)] == wanted), None)
