"""The closed set of what can be wrong with a SKILL.md, each code with its remedy; nothing here reads a file."""

from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum
from typing import Literal

Mode = Literal["strict", "lenient"]


class Severity(StrEnum):
    """How much a diagnostic weighs: an error makes the verdict false, the others never do."""

    ERROR = "error"
    WARNING = "warning"
    NOTE = "note"


REMEDIES: dict[str, str] = {
    "fm.missing": "Start the file with a line that is exactly ---, then the fields, then --- again.",
    "fm.unclosed": "End the front matter with a line that is exactly ---.",
    "fm.yaml": "Correct the YAML; put quotes around a value that holds ': ' or starts with a special character.",
    "fm.not_mapping": "Write the front matter as 'field: value' lines.",
    "fm.alias": "Write the value out; anchors (&) and aliases (*) are never read.",
    "fm.tag": "Remove the tag (!); every value is read as text.",
    "fm.duplicate_key": "Keep one of the two entries.",
    "fm.flow": "Write one entry a line instead of brackets or braces.",
    "fm.unknown_field": "Remove the field, or move it under 'metadata'.",
    "fm.too_large": "Shorten it: front matter may have 64 KiB and SKILL.md 1 MiB.",
    "name.missing": "Add 'name:' with the folder's name.",
    "name.length": "Use 1 to 64 characters.",
    "name.case": "Write the name in lower case.",
    "name.hyphen": "Use single hyphens, none at the start or the end.",
    "name.chars": "Use letters, digits and hyphens only.",
    "name.folder": "Give the folder and the skill the same name.",
    "name.mixed_script": "Use the letters of one script; look-alike letters make names that deceive.",
    "description.missing": "Say in 'description:' what the skill does and when to use it.",
    "description.length": "Use 1 to 1024 characters; details belong in the body.",
    "compatibility.type": "Write 'compatibility:' as one line of text.",
    "compatibility.length": "Use 1 to 500 characters.",
    "metadata.type": "Write 'metadata:' as a flat map of text to text.",
    "allowed_tools.syntax": "Write 'allowed-tools:' as one line of patterns parted by spaces, parentheses closed.",
    "file.missing": "Put a regular file SKILL.md into the folder.",
    "file.not_directory": "Name the skill's folder, not a file.",
    "file.case": "Keep only SKILL.md; skill.md beside it is ignored.",
    "file.encoding": "Save the file as UTF-8 without a byte order mark.",
    "body.long": "Move details into files beside SKILL.md that are read only when needed.",
}


@dataclass(frozen=True, slots=True)
class Diagnostic:
    """One remark on one place of a SKILL.md; ``line`` and ``column`` count from 1, 0 where there is no place."""

    code: str
    severity: Severity
    message: str
    field: str = ""
    line: int = 0
    column: int = 0

    def __post_init__(self) -> None:
        if self.code not in REMEDIES:
            raise ValueError(f"{self.code!r} is no diagnostic code: add it to REMEDIES with its remedy")

    @property
    def remedy(self) -> str:
        """What to do about it."""
        return REMEDIES[self.code]

    def softened(self) -> "Diagnostic":
        """Return the same remark as a warning: what a reader forgives and an author should not."""
        return replace(self, severity=Severity.WARNING)


def has_error(diagnostics: Iterable[Diagnostic]) -> bool:
    """Say whether any of them is an error."""
    return any(diagnostic.severity is Severity.ERROR for diagnostic in diagnostics)
