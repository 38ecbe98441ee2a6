"""The MCP face of the sessions server."""

import json

from agentstead.kit import Call, Prompt, Resource, ServerDeclaration
from agentstead.sessions import runs, service, sessions, tasks, working
from agentstead.sessions.recap import recap
from agentstead.sessions.recording import needs_you
from agentstead.sessions.results import Object, recap_object
from agentstead.state import Migrations, Reading

INSTRUCTIONS = (
    "Durable sessions and tasks that outlive this host. Begin with session_open (it returns a session_id, a recap and "
    "what needs a person), record what you do with session_record, and look around with desk_view. Plan work with "
    "task_save; take it with task_claim, keep the lease alive with task_report(state='progress') and finish it with "
    "task_report. Workspaces are found by your working directory, or named by id, name or absolute path."
)


async def _recap(call: Call, session_id: str) -> str:
    return json.dumps(await call.read(_recap_of, session_id))


async def _events(call: Call, session_id: str) -> str:
    view = await service.session_events(call, session_id=session_id, limit=1000)
    return view.model_dump_json()


async def _task(call: Call, task_id: str) -> str:
    return (await call.read(working.full, task_id)).model_dump_json()


async def _needs_you(call: Call) -> str:
    return json.dumps(await call.read(needs_you, ""))


async def _sessions(call: Call) -> list[tuple[str, str]]:
    found = await call.read(sessions.list_sessions, most=100)
    return [(f"session://{each.id}/recap", each.name) for each in found]


async def _tasks(call: Call) -> list[tuple[str, str]]:
    found = await call.read(tasks.list_tasks, most=100)
    return [(f"task://{each.id}", each.title) for each in found]


async def _continue(_call: Call, name: str = "") -> str:
    which = f"name={name!r}" if name else "no name, or the one I tell you"
    return (
        f"Call session_open with {which}. Tell me in three sentences what was done last, what is open, and what needs "
        "me. Then ask what to do next, unless the recap makes it plain."
    )


async def _next_task(_call: Call, session_id: str) -> str:
    return (
        f"Call task_claim with session_id={session_id!r}. If there is work, do it as the packet says, report progress "
        "before renew_before, and end with task_report: completed with a summary and a result, failed with the reason, "
        "or blocked with what is missing. If there is none, say so."
    )


def _recap_of(reading: Reading, session_id: str) -> Object:
    return recap_object(recap(reading, sessions.get(reading, session_id), detail="full"))


SERVER = ServerDeclaration(
    name="sessions",
    title="Agentstead sessions",
    instructions=INSTRUCTIONS,
    operations=(
        service.session_open,
        service.session_record,
        service.desk_view,
        service.task_save,
        service.task_claim,
        service.task_report,
        service.session_find,
        service.session_events,
        service.session_close,
        service.task_find,
        service.task_get,
        service.task_cancel,
        service.task_unblock,
    ),
    toolsets={"core": ("session_open", "session_record", "desk_view", "task_save", "task_claim", "task_report")},
    migrations=(Migrations(package="sessions", anchor="agentstead.sessions"),),
    resources=(
        Resource(
            "session://{session_id}/recap",
            title="Recap of a session",
            description="What was done and what is open; as desk_view(ref, view='recap').",
            read=_recap,
            entries=_sessions,
        ),
        Resource(
            "session://{session_id}/events",
            title="Events of a session",
            description="The first 1000 events as recorded; as session_events.",
            read=_events,
        ),
        Resource(
            "task://{task_id}",
            title="One task",
            description="A task with its attempts; as desk_view(ref).",
            read=_task,
            entries=_tasks,
        ),
        Resource(
            "desk://needs-you",
            title="What needs a person",
            description="Open approvals and tasks that need attention; as desk_view(kind='needs_you').",
            read=_needs_you,
        ),
    ),
    prompts=(
        Prompt(
            "continue-session",
            title="Continue a session",
            description="Go on where a session stopped, in any host.",
            render=_continue,
            arguments={"name": "Name of the session in this workspace."},
            optional=frozenset({"name"}),
        ),
        Prompt(
            "work-next-task",
            title="Work on the next task",
            description="Claim the next task, do it, and report it.",
            render=_next_task,
            arguments={"session_id": "The session to work in (ses_...)."},
        ),
    ),
    refs={"ses_": sessions.look_session, "tsk_": tasks.look_task, "run_": runs.look_run},
    repairs=(runs.REPAIR,),
    roots={"sessions.events": "SELECT 'blob' AS kind, blob AS id FROM events WHERE blob IS NOT NULL"},
    changes=service.changes,
    startup=service.sweep,
    sweep=service.sweep,
    verify=service.verify,
)
