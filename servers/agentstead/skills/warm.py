"""Remember the ids of files that did not change since they were read. Never asked for an activation's own reads."""

import threading
import time
from collections import OrderedDict
from typing import Final

from agentstead.skills.handles import Fingerprint

MOST_FILES: Final = 50_000
# A file changed twice within one tick of the file system's clock keeps its times; younger changes are not remembered.
SETTLED_NS: Final = 2_000_000_000


class WarmIds:
    """Blob ids by fingerprint, the least recently used forgotten first. Safe to use from any thread."""

    def __init__(self, most: int = MOST_FILES) -> None:
        self._most = most
        self._ids: OrderedDict[Fingerprint, str] = OrderedDict()
        self._lock = threading.Lock()

    def get(self, fingerprint: Fingerprint) -> str | None:
        """Return the id of the bytes last read from a file with this fingerprint, or None."""
        with self._lock:
            known = self._ids.get(fingerprint)
            if known is not None:
                self._ids.move_to_end(fingerprint)
            return known

    def put(self, fingerprint: Fingerprint, blob_id: str) -> None:
        """Remember an id, unless the file changed so lately that a further change might not show."""
        if time.time_ns() - max(fingerprint.mtime_ns, fingerprint.ctime_ns) < SETTLED_NS:
            return
        with self._lock:
            self._ids[fingerprint] = blob_id
            while len(self._ids) > self._most:
                self._ids.popitem(last=False)
