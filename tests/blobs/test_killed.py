"""A writer killed at any point leaves whole objects or none, and the next opening needs no help."""

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from agentstead.blobs import BlobStore, object_id
from agentstead.state import CRASH_POINTS, SimulatedClock

WRITER = """
import sys
from pathlib import Path
from agentstead.blobs import BlobStore
from agentstead.state import SimulatedClock
store = BlobStore(Path(sys.argv[1]), clock=SimulatedClock())
with store.batch() as batch:
    for number in range(3):
        batch.put(b"object %d" % number)
    batch.commit()
"""
CONTENTS = [b"object %d" % number for number in range(3)]


def write_until(point: str, root: Path) -> int:
    environment = {**os.environ, "AGENTSTEAD_CRASH": point}
    return subprocess.run(
        [sys.executable, "-c", WRITER, str(root)], env=environment, timeout=60, check=False
    ).returncode


def test_the_points_of_the_store_are_registered() -> None:
    expected = {"blobs.put.before", "blobs.put.after", "blobs.remove.before", "blobs.remove.after"}
    assert expected <= set(CRASH_POINTS.names())


@pytest.mark.parametrize("name", ["blobs.put.before", "blobs.put.after"])
@pytest.mark.parametrize("passage", [1, 2, 3])
def test_a_writer_killed_while_naming_leaves_whole_objects_and_can_be_repeated(
    name: str, passage: int, tmp_path: Path
) -> None:
    assert write_until(f"{name}:{passage}", tmp_path) == -signal.SIGKILL

    store = BlobStore(tmp_path, clock=SimulatedClock())
    stored = [data for data in CONTENTS if store.has("blob", object_id(data))]
    assert len(stored) == passage - (name == "blobs.put.before")
    assert [store.get("blob", object_id(data)) for data in stored] == stored
    assert list(store.layout.incoming.iterdir()) == []

    assert write_until("", tmp_path) == 0
    assert [store.get("blob", object_id(data)) for data in CONTENTS] == CONTENTS
