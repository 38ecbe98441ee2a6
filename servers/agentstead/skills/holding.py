"""Checking the stored lists of files: each must still give the tree id under which an activation holds it."""

from typing import Final

from agentstead.kit import Home
from agentstead.skills.activations import files_of
from agentstead.skills.store import held_tree
from agentstead.state import Reading

_HELD: Final = "SELECT id, qualified_name, tree_id FROM activations WHERE state = 'active' ORDER BY id"


async def faults(home: Home) -> list[str]:
    """Return what is wrong with the records of live activations; nothing, if all is well."""
    return await home.state.read(_faults)


def _faults(reading: Reading) -> list[str]:
    found = []
    for row in reading.all(_HELD):
        files = {file.path: file for file in files_of(reading, row["tree_id"])}
        if held_tree(files).tree_id != row["tree_id"]:
            found.append(f"{row['id']} ({row['qualified_name']}): its list of files does not give its tree id")
    return found
