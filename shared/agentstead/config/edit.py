"""Write one key back into a settings file: comments, order and layout of the rest stay as the person left them."""

import os
from pathlib import Path
from typing import Any

from agentstead.config.registry import Registry
from agentstead.config.sheet import Scope, read_sheet
from agentstead.state import Conflict, Invalid, sha256_hex


def set_key(
    path: Path, key: str, value: Any, *, registry: Registry, scope: Scope, expected_digest: str | None = None
) -> str:
    """Set a key in a file, made if need be, and return the SHA-256 of its new text.

    Nothing is written where the key is unknown, the value does not fit, the scope may not set it, the file as it is
    has a fault, or it is not the one that `expected_digest` names.
    """
    import tomlkit

    before = path.read_bytes() if path.exists() else b""
    if expected_digest is not None and sha256_hex(before) != expected_digest:
        raise Conflict(
            "version.conflict",
            f"{path} has the digest {sha256_hex(before)}, not {expected_digest}.",
            remedy="Read it again, then set the key with its present digest.",
        )
    _sound(before.decode(), path, registry=registry, scope=scope)
    document = tomlkit.parse(before.decode())
    _put(document, key.split("."), list(value) if isinstance(value, tuple) else value)
    after = tomlkit.dumps(document)
    _sound(after, path, registry=registry, scope=scope)
    _replace(path, after.encode())
    return sha256_hex(after.encode())


def _sound(text: str, path: Path, *, registry: Registry, scope: Scope) -> None:
    for fault in read_sheet(text, path, registry=registry, scope=scope).faults:
        raise Invalid(fault.code, fault.what, remedy=f"{fault.remedy} Nothing was written.")


def _put(table: Any, parts: list[str], value: Any) -> None:
    import tomlkit

    for part in parts[:-1]:
        if part not in table:
            table[part] = tomlkit.table(is_super_table=len(parts) > 2)
        table = table[part]
    table[parts[-1]] = value


def _replace(path: Path, data: bytes) -> None:
    target = path.resolve()
    target.parent.mkdir(parents=True, exist_ok=True)
    mode = target.stat().st_mode & 0o777 if target.exists() else 0o600
    fresh = target.with_name(f".{target.name}.{os.getpid()}")
    with fresh.open("wb") as stream:
        fresh.chmod(mode)
        stream.write(data)
        stream.flush()
        os.fsync(stream.fileno())
    fresh.replace(target)
