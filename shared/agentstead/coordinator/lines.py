"""Cutting a stream of bytes into whole lines, with a bound on the length of one. Standard library only."""


class TooLong(Exception):
    """A line went over the bound; `head` is how it began, and the rest of it is dropped."""

    def __init__(self, head: bytes) -> None:
        super().__init__("a line is longer than the bound")
        self.head = head


class Lines:
    """Whole lines out of chunks; half a line stays here until its end comes."""

    HEAD_BYTES = 512

    def __init__(self, limit: int) -> None:
        self._limit = limit
        self._pending = bytearray()
        self._searched = 0
        self._skipping = False

    @property
    def unfinished(self) -> bool:
        """Tell whether half a line is waiting for its end."""
        return bool(self._pending)

    def feed(self, chunk: bytes) -> "list[bytes | TooLong]":
        """Return the lines, each with its line break, that `chunk` completes; a line over the bound as `TooLong`."""
        self._pending += chunk
        found: list[bytes | TooLong] = []
        while (end := self._pending.find(b"\n", self._searched)) >= 0:
            self._take(end + 1, found)
        self._searched = len(self._pending)
        if self._skipping:
            self._clear()
        elif len(self._pending) > self._limit:
            found.append(TooLong(bytes(self._pending[: self.HEAD_BYTES])))
            self._skipping = True
            self._clear()
        return found

    def _take(self, end: int, found: "list[bytes | TooLong]") -> None:
        line = bytes(self._pending[:end])
        del self._pending[:end]
        self._searched = 0
        if self._skipping:
            self._skipping = False
        elif len(line) > self._limit:
            found.append(TooLong(line[: self.HEAD_BYTES]))
        elif line.strip():
            found.append(line)

    def _clear(self) -> None:
        self._pending.clear()
        self._searched = 0
