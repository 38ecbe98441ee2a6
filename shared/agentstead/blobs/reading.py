"""Reading objects back: every byte is hashed on the way, and what does not match is an error, never content."""

import hashlib
import io
import os
from typing import TYPE_CHECKING, Final

from agentstead.blobs.objects import ObjectKey, corrupt, object_id

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_CLOEXEC


def read_object(file: str, key: ObjectKey) -> bytes:
    """Return the bytes of an object; raise Unavailable `store.corrupt` where they are gone or altered."""
    with io.FileIO(_open(file, key)) as source:
        data = source.readall()
    if object_id(data) != key.id:
        raise corrupt(key, "does not have the bytes that its id says")
    return data


class VerifiedReader(io.RawIOBase):
    """A stream over one object that raises `store.corrupt` in place of the end when the whole does not match.

    Nothing read from it may be trusted before the end was reached.
    """

    def __init__(self, file: str, key: ObjectKey) -> None:
        self._key = key
        self._digest = hashlib.sha256()
        self._source = io.FileIO(_open(file, key))

    def readable(self) -> bool:
        """Say that this stream can be read."""
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        """Fill a buffer; return the number of bytes, 0 at a verified end."""
        view = memoryview(buffer)
        count = self._source.readinto(view)
        self._digest.update(view[:count])
        if count == 0 and len(view) and self._digest.hexdigest() != self._key.id:
            raise corrupt(self._key, "does not have the bytes that its id says")
        return count

    def close(self) -> None:
        """Close the file below."""
        self._source.close()
        super().close()


def _open(file: str, key: ObjectKey) -> int:
    try:
        return os.open(file, _FLAGS)
    except FileNotFoundError:
        raise corrupt(key, "is not in the store") from None
