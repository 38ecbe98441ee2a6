"""The content-addressed store: blobs and trees named by their SHA-256, verified on read, kept for registered roots.

Only this package knows where the bytes lie.
"""

from agentstead.blobs.batch import Batch
from agentstead.blobs.blobs import Blobs, StoreStats
from agentstead.blobs.collecting import DEFAULT_GRACE_US, MIN_GRACE_US, Collected
from agentstead.blobs.durable import FEW_FILES, sync_file_system, sync_path, sync_paths
from agentstead.blobs.objects import KINDS, Kind, ObjectKey, ObjectStat, object_id, object_key
from agentstead.blobs.reading import VerifiedReader
from agentstead.blobs.roots import Root, Roots
from agentstead.blobs.store import BlobStore
from agentstead.blobs.trees import (
    EMPTY_TREE,
    MAX_NAME_BYTES,
    TREE_HEADER,
    EntryType,
    TreeEntry,
    TreeFormatError,
    check_name,
    decode_tree,
    encode_tree,
    tree_id,
)
from agentstead.blobs.verifying import Level, StoreVerified

__all__ = [
    "DEFAULT_GRACE_US",
    "EMPTY_TREE",
    "FEW_FILES",
    "KINDS",
    "MAX_NAME_BYTES",
    "MIN_GRACE_US",
    "TREE_HEADER",
    "Batch",
    "BlobStore",
    "Blobs",
    "Collected",
    "EntryType",
    "Kind",
    "Level",
    "ObjectKey",
    "ObjectStat",
    "Root",
    "Roots",
    "StoreStats",
    "StoreVerified",
    "TreeEntry",
    "TreeFormatError",
    "VerifiedReader",
    "check_name",
    "decode_tree",
    "encode_tree",
    "object_id",
    "object_key",
    "sync_file_system",
    "sync_path",
    "sync_paths",
    "tree_id",
]
