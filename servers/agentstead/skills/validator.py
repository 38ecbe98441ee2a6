"""Say everything that is wrong with one skill folder, before it is used or published."""

from dataclasses import dataclass
from pathlib import Path

from agentstead.skills.candidates import Candidate, Origin, Refusal, Root
from agentstead.skills.diagnostics import Diagnostic, Mode, Severity
from agentstead.skills.document import Judged
from agentstead.skills.store import Place
from agentstead.skills.survey import look
from agentstead.skills.walk import Found


@dataclass(frozen=True, slots=True)
class Validation:
    """The verdict on a folder; ``refusal`` says why its content as a whole cannot be used."""

    judged: Judged
    tree_id: str = ""
    refusal: Refusal | None = None
    unseen: str = ""

    @property
    def valid(self) -> bool:
        """Say whether the text is valid, and the folder can be held and shows everything it holds."""
        return self.judged.valid and self.refusal is None and not self.unseen


def validate_folder(base: Path, parts: tuple[str, ...] = (), *, mode: Mode = "strict") -> Validation:
    """Validate the folder that stands below ``base`` under these names. It reads the disk: run it on a thread."""
    path = base.joinpath(*parts)
    if path.exists() and not path.is_dir():
        return _failed("file.not_directory", f"{path.name!r} is not a folder.")
    candidate = look(Root(Origin.USER, base), Found(path, Place(base, parts)), mode=mode)
    if candidate is None:
        return _failed("file.missing", f"There is no folder {path.name!r}.")
    if candidate.judged is None:
        return Validation(_missing(path).judged, refusal=candidate.refusal)
    return _validated(candidate, candidate.judged)


def _validated(candidate: Candidate, judged: Judged) -> Validation:
    return Validation(judged, candidate.tree_id, candidate.refusal, candidate.unseen)


def _missing(path: Path) -> Validation:
    return _failed("file.missing", f"{path.name!r} holds no regular file SKILL.md.")


def _failed(code: str, message: str) -> Validation:
    return Validation(Judged(None, (Diagnostic(code, Severity.ERROR, message),)))
