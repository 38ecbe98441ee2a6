"""Standard input and output as asyncio streams, out of reach of stray prints."""

import asyncio
import fcntl
import os
import stat
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import anyio

from agentstead.kit.connection import LINE_BYTES, LineSink

STDIN, STDOUT, STDERR = 0, 1, 2
CHUNK = 64 * 1024


@asynccontextmanager
async def standard_streams(*, line_bytes: int = LINE_BYTES) -> AsyncIterator[tuple[asyncio.StreamReader, LineSink]]:
    """Give input and output for as long as the context lasts.

    Meanwhile descriptor 0 is empty and descriptor 1 is standard error, so that neither a print nor a child can write
    into the protocol or read from it.
    """
    wire_in, wire_out = (fcntl.fcntl(fd, fcntl.F_DUPFD_CLOEXEC, 3) for fd in (STDIN, STDOUT))
    nothing = os.open(os.devnull, os.O_RDONLY)
    os.dup2(nothing, STDIN)
    os.close(nothing)
    os.dup2(STDERR, STDOUT)
    reader = asyncio.StreamReader(limit=line_bytes)
    reading = await _read_from(wire_in, reader)
    sink = await _written_to(wire_out)
    try:
        yield reader, sink
    finally:
        reading.close()
        sink.close()
        for wire, fd in ((wire_in, STDIN), (wire_out, STDOUT)):
            # The other end may be a terminal's, which its shell expects to block.
            os.set_blocking(wire, True)
            os.dup2(wire, fd)


class _FilePump:
    """Reads what no loop can wait for, a file or the null device, by threads."""

    def __init__(self, fd: int, reader: asyncio.StreamReader) -> None:
        self._task = asyncio.get_running_loop().create_task(self._pump(fd, reader))

    def close(self) -> None:
        self._task.cancel()

    @staticmethod
    async def _pump(fd: int, reader: asyncio.StreamReader) -> None:
        while chunk := await asyncio.to_thread(os.read, fd, CHUNK):
            reader.feed_data(chunk)
        reader.feed_eof()


class _BlockingSink:
    """Writes to what no loop can wait for, or must not be made non-blocking: a file, a terminal."""

    def __init__(self, fd: int) -> None:
        self._fd = fd
        self._waiting = bytearray()
        self._turn = asyncio.Lock()

    def write(self, data: bytes) -> None:
        self._waiting += data

    async def drain(self) -> None:
        async with self._turn:
            data, self._waiting = bytes(self._waiting), bytearray()
            # A cancelled writer must not take back a line that no thread has begun to write.
            with anyio.CancelScope(shield=True):
                await asyncio.to_thread(_write_all, self._fd, data)

    def close(self) -> None:
        _write_all(self._fd, bytes(self._waiting))
        self._waiting.clear()


async def _read_from(fd: int, reader: asyncio.StreamReader) -> "asyncio.ReadTransport | _FilePump":
    if not (_is_pipe(fd) or os.isatty(fd)):
        return _FilePump(fd, reader)
    transport, _protocol = await asyncio.get_running_loop().connect_read_pipe(
        lambda: asyncio.StreamReaderProtocol(reader), os.fdopen(os.dup(fd), "rb", 0)
    )
    return transport


async def _written_to(fd: int) -> LineSink:
    if not _is_pipe(fd):
        return _BlockingSink(fd)
    loop = asyncio.get_running_loop()
    transport, protocol = await loop.connect_write_pipe(
        lambda: asyncio.StreamReaderProtocol(asyncio.StreamReader()), os.fdopen(os.dup(fd), "wb", 0)
    )
    return asyncio.StreamWriter(transport, protocol, None, loop)


def _is_pipe(fd: int) -> bool:
    mode = os.fstat(fd).st_mode
    return stat.S_ISFIFO(mode) or stat.S_ISSOCK(mode)


def _write_all(fd: int, data: bytes) -> None:
    view = memoryview(data)
    while view:
        view = view[os.write(fd, view) :]
