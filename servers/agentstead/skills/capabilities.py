"""What a held skill can do or asks for, as far as its names show it; what is not recognised is said to be unknown."""

from pathlib import PurePosixPath
from typing import Any, Final

from agentstead.skills.document import SkillDocument
from agentstead.skills.store import HeldTree
from agentstead.state import canonical_json, sha256_hex

_LANGUAGES: Final = {
    ".py": "python",
    ".sh": "shell",
    ".bash": "shell",
    ".zsh": "shell",
    ".js": "javascript",
    ".mjs": "javascript",
    ".ts": "typescript",
    ".rb": "ruby",
    ".pl": "perl",
    ".ps1": "powershell",
    ".bat": "batch",
}


def capability_summary(tree: HeldTree, document: SkillDocument) -> dict[str, Any]:
    """Return the sorted scripts and requested tools; ``unknown`` stays true until contents are analysed too."""
    scripts = [
        {"path": file.path, "language": _LANGUAGES.get(PurePosixPath(file.path).suffix.lower(), "unknown")}
        for file in tree.files
        if file.executable or PurePosixPath(file.path).suffix.lower() in _LANGUAGES
    ]
    return {"scripts": scripts, "requested_tools": sorted(document.allowed_tools), "unknown": True}


def capability_digest(tree: HeldTree, document: SkillDocument) -> str:
    """Return the SHA-256 of the summary's canonical JSON: what a consent is bound to beside the tree id."""
    return sha256_hex(canonical_json(capability_summary(tree, document)))
