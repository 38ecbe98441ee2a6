"""Skills as resources and prompts: the same answers as the tools give, for hosts that read by address."""

import json
from collections.abc import Iterable
from urllib.parse import quote, unquote

import anyio.to_thread

from agentstead.kit import Call
from agentstead.skills.admitting import admit, for_person_only, require_person
from agentstead.skills.fencing import fence
from agentstead.skills.finding import catalogue
from agentstead.skills.listing import Shown
from agentstead.skills.reading import ContentChanged, check_path, read_held
from agentstead.skills.resolver import Resolution, resolve, whereabouts
from agentstead.skills.rulings import Ruled, Ruling
from agentstead.skills.store import SKILL_FILES
from agentstead.state import Conflict, Entry

CATALOGUE = "agentstead://skills/catalogue"


async def read_catalogue(call: Call) -> str:
    """Return the served skills as JSON, as skill_list shows them."""
    resolution = await _here(call)
    items = await catalogue(call, resolution, Shown(Ruling.SERVED))
    listing = {"items": [item.model_dump(mode="json") for item in items], "truncated_roots": list(resolution.cut)}
    return json.dumps(listing, ensure_ascii=False)


async def read_file(call: Call, *, origin: str, name: str, path: str) -> str | bytes:
    """Return the bytes of a served skill's file as they were judged; reading makes no activation and grants nothing."""
    return await _bytes(await _readable(call, origin, name), unquote(path))


async def read_text(call: Call, *, origin: str, name: str) -> str | bytes:
    """Return the SKILL.md of a served skill."""
    found = await _readable(call, origin, name)
    return await _bytes(found, _skill_file(found))


async def list_texts(call: Call) -> list[tuple[str, str]]:
    """Return address and name of each served skill's SKILL.md."""
    served = (await _here(call)).served()
    return [(address_of(each), each.candidate.name) for each in served if not for_person_only(call, each)]


async def use_skill(call: Call, *, name: str) -> str:
    """Return a served skill's instructions as a prompt; those for a person only too, since a person picks prompts."""
    found = admit(await _here(call), name)
    candidate = found.candidate
    assert candidate.document is not None
    assert candidate.tree is not None
    paths = ", ".join(file.path for file in candidate.tree.files if file.path not in SKILL_FILES)
    body = fence(candidate.document.body, skill=candidate.qualified_name, tree_id=candidate.tree_id)
    files = f" Its files ({paths}) are read with skill_activate and skill_read." if paths else ""
    return f"Follow the skill {candidate.qualified_name} for the task at hand.{files}\n\n{body}"


def changed_by(entry: Entry) -> Iterable[str]:
    """Return the addresses whose answer a journal entry may have changed."""
    return (CATALOGUE,) if entry.kind.startswith(("skills.", "permissions.trust.")) else ()


def address_of(ruled: Ruled) -> str:
    """Return the address of a skill's SKILL.md."""
    return f"skill://{ruled.candidate.origin}/{quote(ruled.candidate.name, safe='')}/SKILL.md"


async def _here(call: Call) -> Resolution:
    return await resolve(call, await whereabouts(call))


async def _readable(call: Call, origin: str, name: str) -> Ruled:
    found = admit(await _here(call), f"{unquote(origin)}:{unquote(name)}")
    require_person(call, found)
    return found


async def _bytes(found: Ruled, path: str) -> str | bytes:
    check_path(path)
    candidate = found.candidate
    assert candidate.place is not None
    assert candidate.tree is not None
    held = {file.path: file for file in candidate.tree.files}
    try:
        data = await anyio.to_thread.run_sync(read_held, candidate.place, held, path)
    except ContentChanged as changed:
        raise Conflict(
            "skill.content_changed",
            f"{candidate.qualified_name} changed while it was read. {changed}",
            remedy="Read it again.",
            retryable=True,
        ) from None
    try:
        return data.decode()
    except UnicodeDecodeError:
        return data


def _skill_file(found: Ruled) -> str:
    assert found.candidate.tree is not None
    paths = {file.path for file in found.candidate.tree.files}
    return next(name for name in SKILL_FILES if name in paths)
