"""Which paths are content: everything, but for what is derived, secret, of a version control system, ours or special.

The rules are data with a digest of their own, which every snapshot names.
"""

import fnmatch
import re
from collections.abc import Iterable
from typing import Final, Literal

from agentstead.state import canonical_json, sha256_hex

PathClass = Literal["content", "derived", "secret", "vcs", "own", "special"]

OWN_DIRECTORY: Final = b".agentstead"
_OWN: Final = ("workspace.json", ".workspace.json.*", "fork.json", ".gitignore", "stage", "trash", "probe")
_DERIVED: Final = (
    *("node_modules", ".venv", "venv", "__pycache__", ".tox", ".nox"),
    *(".pytest_cache", ".mypy_cache", ".ruff_cache", ".gradle", ".next", ".turbo"),
)
_DERIVED_MARKS: Final = ("CACHEDIR.TAG", "pyvenv.cfg")
_BUILD_DIRECTORY: Final = ("target", "Cargo.toml")
_SECRET_FILES: Final = (
    *(".env", ".env.*", ".netrc", ".pgpass", ".htpasswd", "credentials.json"),
    *("*.pem", "*.key", "*.p12", "*.pfx", "*.jks", "*.kdbx", "id_rsa*", "id_ed25519*", "id_ecdsa*"),
)
_NOT_SECRET: Final = (".env*.example", ".env*.sample", ".env*.template", ".env*.dist", "*.pub")
_SECRET_DIRECTORIES: Final = (".ssh", ".aws", ".gnupg", ".kube", ".docker")
_VCS_DIRECTORIES: Final = (".git", ".hg", ".svn", ".jj")

POLICY: Final = {
    "schema": "agentstead.paths/1",
    "own": _OWN,
    "derived": {"names": _DERIVED, "marks": _DERIVED_MARKS, "beside": _BUILD_DIRECTORY},
    "secret": {"files": _SECRET_FILES, "not": _NOT_SECRET, "directories": _SECRET_DIRECTORIES},
    "vcs": _VCS_DIRECTORIES,
}
POLICY_BODY: Final = canonical_json(POLICY).decode()
POLICY_ID: Final = sha256_hex(POLICY_BODY.encode())


def _matcher(patterns: Iterable[str]) -> re.Pattern[bytes]:
    return re.compile("|".join(fnmatch.translate(pattern) for pattern in patterns).encode())


_IS_OWN: Final = _matcher(_OWN)
_IS_SECRET: Final = _matcher(_SECRET_FILES)
_IS_NOT_SECRET: Final = _matcher(_NOT_SECRET)
_DERIVED_NAMES: Final = frozenset(name.encode() for name in _DERIVED)
_SECRET_NAMES: Final = frozenset(name.encode() for name in _SECRET_DIRECTORIES)
_VCS_NAMES: Final = frozenset(name.encode() for name in _VCS_DIRECTORIES)
_MARKS: Final = frozenset(name.encode() for name in _DERIVED_MARKS)


def is_own(directory: bytes, name: bytes) -> bool:
    """Tell whether a name is one of the files that Agentstead itself keeps in a tree."""
    return directory == OWN_DIRECTORY and _IS_OWN.match(name) is not None


def class_of_file(name: bytes) -> PathClass:
    """Return the class of a regular file or link by its name."""
    secret = _IS_SECRET.match(name) and not _IS_NOT_SECRET.match(name)
    return "secret" if secret else "content"


def class_of_directory(name: bytes, siblings: Iterable[bytes]) -> PathClass:
    """Return the class of a directory by its name and by what lies beside it."""
    if name in _VCS_NAMES:
        return "vcs"
    if name in _SECRET_NAMES:
        return "secret"
    if name in _DERIVED_NAMES:
        return "derived"
    built, beside = (word.encode() for word in _BUILD_DIRECTORY)
    return "derived" if name == built and beside in siblings else "content"


def is_marked_derived(names: Iterable[bytes]) -> bool:
    """Tell whether a directory says itself, by one of the names in it, that it can be made again."""
    return not _MARKS.isdisjoint(names)
