"""Holding memory's records against each other, and making anew what is derived from the log."""

from collections.abc import Iterator

from pydantic import BaseModel, ConfigDict

from agentstead.memory import index
from agentstead.memory.log import events_of, fold, project_all
from agentstead.state import Reading, State, Tx

_ROWS = "SELECT id, head_edition, state, pinned, stale, suspect, version, updated_at FROM memories ORDER BY id"
_UNKNOWN = """
SELECT DISTINCT memory_id FROM memory_events
WHERE memory_id NOT IN (SELECT id FROM memories)
"""
_UNINDEXED = """
SELECT id FROM memory_editions
WHERE text_hash <> '' AND id NOT IN (SELECT edition_id FROM recall_docs)
"""
_STRAY = "SELECT edition_id FROM recall_docs WHERE edition_id NOT IN (SELECT id FROM memory_editions)"
_TEXTLESS = "SELECT id FROM memory_editions WHERE text_id NOT IN (SELECT id FROM memory_texts)"


class Rebuilt(BaseModel):
    """How much was made anew."""

    model_config = ConfigDict(frozen=True, extra="forbid")

    memories: int
    editions: int


def rebuild(tx: Tx) -> Rebuilt:
    """Drop the rows of memories and of recall, and make them anew from the log, the editions and the texts."""
    rebuilt = Rebuilt(memories=project_all(tx), editions=index.rebuild(tx))
    tx.journal("memory.store.reindexed", subject="memory", body=rebuilt.model_dump())
    return rebuilt


async def verify(state: State) -> list[str]:
    """Return what is wrong, one line each; `memory reindex` mends all but missing texts."""
    return await state.read(_faults)


def _faults(reading: Reading) -> list[str]:
    return [*_projection(reading), *_index(reading)]


def _projection(reading: Reading) -> Iterator[str]:
    for row in reading.all(_ROWS):
        folded = fold(events_of(reading, row["id"]))
        shown = (row["head_edition"], row["state"], bool(row["pinned"]), row["stale"], row["suspect"])
        counted = (row["version"], row["updated_at"])
        if folded is None or (shown, counted) != (
            (folded.head, folded.state, folded.pinned, folded.stale, folded.suspect),
            (folded.version, folded.updated_at),
        ):
            yield f"memory {row['id']} is not what its log folds to"
    for row in reading.all(_UNKNOWN):
        yield f"memory {row['memory_id']} is in the log and has no row"


def _index(reading: Reading) -> Iterator[str]:
    for row in reading.all(_UNINDEXED):
        yield f"edition {row['id']} cannot be recalled: it is not indexed"
    for row in reading.all(_STRAY):
        yield f"recall holds a document of {row['edition_id']}, which does not exist"
    for row in reading.all(_TEXTLESS):
        yield f"edition {row['id']} has lost its text"
