"""The canonical digest of a message: SHA-256 over the RFC 8785 form of the whole object as it was received."""

import hashlib
from typing import Any

import rfc8785


def canonical_bytes(value: Any) -> bytes:
    """Return the RFC 8785 form of a value that `strict.parse` gave, nulls and unknown members included."""
    return rfc8785.dumps(value)


def canonical_sha256(value: Any) -> str:
    """Return the digest that tells two messages of one id apart, as 64 lower-case hex digits."""
    return hashlib.sha256(canonical_bytes(value)).hexdigest()
