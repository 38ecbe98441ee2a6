"""A store in a temporary directory, on simulated time."""

from pathlib import Path

import pytest

from agentstead.blobs import Blobs, BlobStore
from agentstead.state import SimulatedClock


@pytest.fixture
def store_clock() -> SimulatedClock:
    return SimulatedClock()


@pytest.fixture
def blobs(tmp_path: Path, store_clock: SimulatedClock) -> Blobs:
    return Blobs(tmp_path / "blobs", clock=store_clock)


@pytest.fixture
def store(blobs: Blobs) -> BlobStore:
    return blobs.store
