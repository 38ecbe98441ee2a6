"""Reading one file of a live tree: never through a link, never blocking on a pipe, and never half of a change."""

import hashlib
import hmac
import io
import os
from typing import Final, NamedTuple

from agentstead.blobs import Batch
from agentstead.workspace.statcache import FileKey

SMALL_BYTES: Final = 8 * 2**20
_TRIES: Final = 4
_FLAGS: Final = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_NOCTTY | os.O_CLOEXEC


class TornRead(Exception):
    """A file that changed each time it was read."""


class ReadFile(NamedTuple):
    """What a file held: the id of its bytes, their number, and the key of the moment at which it held them."""

    id: str
    size: int
    key: FileKey


def key_of(facts: os.stat_result) -> FileKey:
    """Return what tells one state of a file from the next."""
    return (facts.st_mtime_ns, facts.st_ctime_ns, facts.st_size, facts.st_ino, facts.st_mode)


def store_file(batch: Batch, name: bytes, *, at: int) -> ReadFile:
    """Put a file's bytes into a batch; raise TornRead where it does not hold still, OSError where it cannot be read.

    Memory stays at about 8 MiB whatever its size; nothing of a torn state is stored.
    """
    for _ in range(_TRIES):
        descriptor = os.open(name, _FLAGS, dir_fd=at)
        try:
            before = os.fstat(descriptor)
            large = before.st_size > SMALL_BYTES
            found = (_store_streamed if large else _store_whole)(batch, descriptor, before)
        finally:
            os.close(descriptor)
        if found is not None:
            return found
    raise TornRead


def keyed_digest(name: bytes, *, at: int, key: bytes) -> str:
    """Return the keyed digest of a secret file's bytes, which are kept nowhere."""
    descriptor = os.open(name, _FLAGS, dir_fd=at)
    digest = hmac.new(key, digestmod=hashlib.sha256)
    with io.FileIO(descriptor) as source:
        while chunk := source.read(2**20):
            digest.update(chunk)
    return digest.hexdigest()


def _store_whole(batch: Batch, descriptor: int, before: os.stat_result) -> ReadFile | None:
    # One byte more than expected, so that a file which grew is noticed.
    wanted = before.st_size + 1
    data = os.read(descriptor, wanted)
    while 0 < len(data) < before.st_size and (more := os.read(descriptor, wanted - len(data))):
        data += more
    if len(data) != before.st_size or key_of(os.fstat(descriptor)) != key_of(before):
        return None
    return ReadFile(batch.put(data), len(data), key_of(before))


def _store_streamed(batch: Batch, descriptor: int, before: os.stat_result) -> ReadFile | None:
    with io.FileIO(descriptor, closefd=False) as source:
        stored = batch.put_stream(source)
    if stored.size_bytes != before.st_size or key_of(os.fstat(descriptor)) != key_of(before):
        batch.drop(stored.id)
        return None
    return ReadFile(stored.id, stored.size_bytes, key_of(before))
