"""A store, and quick ways from a directory to a tree and back."""

from collections.abc import Callable
from pathlib import Path

import pytest

from agentstead.blobs import BlobStore
from agentstead.state import SimulatedClock
from agentstead.workspace.beneath import opened_root
from agentstead.workspace.contents import Trees
from agentstead.workspace.materialise import materialise
from agentstead.workspace.statcache import StatCache
from agentstead.workspace.walk import Limits, Walked, walk

SECRET_KEY = b"k" * 32
Walk = Callable[..., Walked]


@pytest.fixture
def store(tmp_path: Path) -> BlobStore:
    return BlobStore(tmp_path / "store", clock=SimulatedClock())


@pytest.fixture
def walk_at(store: BlobStore) -> Walk:
    def run(root: Path, cache: StatCache | None = None, limits: Limits | None = None, **given: object) -> Walked:
        with opened_root(root) as descriptor:
            return walk(
                store,
                descriptor,
                cache=cache or StatCache(),
                secret_key=SECRET_KEY,
                limits=limits,
                **given,  # type: ignore[arg-type]
            )

    return run


@pytest.fixture
def write_tree(store: BlobStore) -> Callable[[str, Path], None]:
    def run(tree: str, root: Path) -> None:
        with opened_root(root) as descriptor:
            materialise(Trees(store), tree, descriptor)

    return run
