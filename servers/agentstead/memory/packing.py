"""Handing out context packs: the one that a session keeps, or a fresh one, which a session then keeps."""

from agentstead.kit import Call
from agentstead.memory import context
from agentstead.memory.reaching import Place
from agentstead.memory.results import Context
from agentstead.state import new_id, sha256_hex


async def context_now(call: Call, place: Place, *, scope: str | None, hint: str, budget: int, refresh: bool) -> Context:
    """Return the pack of a call; with a session the same bytes again and again, until `refresh` asks for new ones."""
    state, reach = call.home.state, place.reach
    frozen = await call.read(context.find, reach.session_id) if reach.session_id and not refresh else None
    if frozen is None:
        pack, built_seq, filters = await call.read(
            context.build, state.refs, reach, scope=scope, hint=hint, budget=budget
        )
        recall_id = new_id("rcl_", call.home.clock)
        await state.write(context.record, reach, pack, filters, recall_id=recall_id, hint=hint)
        if not reach.session_id:
            return _shown(place, pack.text, context.Frozen.of(pack, recall_id=recall_id, built_seq=built_seq), newer=0)
        blob = await call.home.blobs.put(pack.text.encode())
        fresh = context.Frozen.of(pack, recall_id=recall_id, built_seq=built_seq, blob=blob)
        frozen = await state.write(context.freeze, reach.session_id, fresh, refresh=refresh)
    text = (await call.home.blobs.get("blob", frozen.blob)).decode()
    newer = await call.read(context.count_newer, frozen.built_seq, reach.scopes(), reach.fork_id)
    return _shown(place, text, frozen, newer=newer)


def _shown(place: Place, text: str, frozen: context.Frozen, *, newer: int) -> Context:
    return Context(
        text=text,
        sha256=sha256_hex(text.encode()),
        recall_id=frozen.recall_id,
        items=frozen.items,
        left_out=frozen.left_out,
        newer=newer,
        note=place.reach.note or None,
    )
