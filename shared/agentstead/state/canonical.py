"""Canonical JSON (RFC 8785) and the digests made from it."""

import hashlib
from typing import Any

import rfc8785


def canonical_json(value: Any) -> bytes:
    """Return the one UTF-8 form of a JSON value.

    Raises `rfc8785.CanonicalizationError` for what JSON cannot carry (NaN, integers past 2**53, lone surrogates).
    """
    return rfc8785.dumps(value)


def sha256_hex(data: bytes) -> str:
    """Return the SHA-256 of `data` as 64 lower-case hex digits."""
    return hashlib.sha256(data).hexdigest()
