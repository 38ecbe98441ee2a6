"""What a run sees besides its tree, as far as we know it: the machine, the program and every variable."""

import hashlib
import platform
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from agentstead.blobs import BlobStore
from agentstead.kit import Home
from agentstead.runner import Command, environment
from agentstead.state import Invalid, canonical_json, sha256_hex
from agentstead.workspace.checks import Check

_PRIVATE: Final = "(private)"


async def environment_digest(home: Home, check: Check, caller: Mapping[str, str]) -> str:
    """Return the digest of everything outside the tree that a run of this check would see, as far as we know it."""
    environ = environment_of(home.path, check, caller)
    return digest_of_facts(await home.blobs.run(outside_of, check, environ))


def environment_of(scratch: Path, check: Check, caller: Mapping[str, str]) -> dict[str, str]:
    """Return the variables of a run: a short fixed list, what the check sets, and what it may take from the caller."""
    command = check.command
    return environment(
        home=scratch / "home",
        temporary=scratch / "tmp",
        caller=caller,
        allowed=command.env_allow,
        values=command.env,
    )


def outside_of(_store: BlobStore, check: Check, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return what is known of the environment: the machine, the program and every variable."""
    private = dict.fromkeys(("HOME", "TMPDIR"), _PRIVATE)
    return {
        "system": platform.system(),
        "release": platform.release(),
        "machine": platform.machine(),
        "libc": " ".join(platform.libc_ver()),
        "program": _program(check.command.argv[0], environ),
        "variables": {**environ, **private},
    }


def _program(name: str, environ: Mapping[str, str]) -> Mapping[str, Any]:
    """Return the path and digest of a program outside the tree; one inside is part of the tree's id."""
    if "/" in name and not name.startswith("/"):
        return {"path": name, "sha256": None}
    try:
        path = Command((name,), Path("/"), environ).program()
    except Invalid:
        return {"path": name, "sha256": None}
    digest = hashlib.sha256()
    with path.open("rb") as source:
        while chunk := source.read(2**20):
            digest.update(chunk)
    return {"path": str(path), "sha256": digest.hexdigest()}


def digest_of_facts(facts: Mapping[str, Any]) -> str:
    """Return the digest by which two environments are compared."""
    return sha256_hex(canonical_json(facts))
