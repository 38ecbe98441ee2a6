"""The tree as data: nouns with their help, verbs written by hand, operations whose path is not their own name."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

Path = tuple[str, ...]


@dataclass(frozen=True, slots=True)
class Noun:
    """The first word of a path: its line of help, and the server whose operations stand under it ('' for none)."""

    help: str
    server: str = ""


@dataclass(frozen=True, slots=True)
class Verb:
    """A verb written by hand: its words, its function as `module:name`, its line of help.

    `operation` names the operation that it takes the place of.
    """

    path: Path
    target: str
    help: str
    hidden: bool = False
    operation: str = ""


@dataclass(frozen=True, slots=True)
class Route:
    """An operation under another path.

    `fixed` are arguments that the path stands for, `leading` fields that are typed without a flag, in this order. Where
    `item` names a field that takes an object, or a list of objects, the fields of one object are typed in its place;
    `only` are those of them that make sense here, all where it is empty. `without` are fields that make no sense here.
    """

    path: Path
    operation: str
    fixed: Mapping[str, Any] = field(default_factory=dict)
    leading: tuple[str, ...] = ()
    item: str = ""
    only: tuple[str, ...] = ()
    without: tuple[str, ...] = ()


_VERBS = "agentstead.cli.verbs"

VERBS: tuple[Verb, ...] = (
    Verb(("up",), f"{_VERBS}.coordinator:up", "Serve the six servers, in the foreground."),
    Verb(("drain",), f"{_VERBS}.coordinator:drain", "Let running work finish and take no more."),
    Verb(("stop",), f"{_VERBS}.coordinator:stop", "Stop the coordinator."),
    Verb(("status",), f"{_VERBS}.coordinator:status", "Show the coordinator and its home."),
    Verb(("logs",), f"{_VERBS}.logs:logs", "Show the coordinator's log."),
    Verb(("demo",), "agentstead.cli.demo.verb:demo", "Show the whole idea in seconds, with no model and no key."),
    Verb(("doctor",), f"{_VERBS}.doctor:doctor", "Look for what is wrong, with the fix for each finding."),
    Verb(("verify",), f"{_VERBS}.verify:verify", "Check the journal, the blobs and every server's records."),
    Verb(
        ("answer",),
        f"{_VERBS}.answer:answer_question",
        "Answer a question that waits for a person.",
        operation="approval_answer",
    ),
    Verb(("events",), f"{_VERBS}.events:events", "Show the journal, and follow it."),
    Verb(("install",), f"{_VERBS}.install:install", "Write our servers into a host's own settings."),
    Verb(("uninstall",), f"{_VERBS}.install:uninstall", "Take our servers out of a host's settings."),
    Verb(("config", "get"), f"{_VERBS}.config:get", "Print the value of a setting."),
    Verb(("config", "set"), f"{_VERBS}.config:set_value", "Write a setting into a file."),
    Verb(("config", "show"), f"{_VERBS}.config:show", "List every setting with its value and layer."),
    Verb(("config", "explain"), f"{_VERBS}.config:explain", "Say why a setting has its value."),
    Verb(("config", "check"), f"{_VERBS}.config:check", "Look for faults in the settings files."),
    Verb(("config", "path"), f"{_VERBS}.config:path", "Print where the settings files are."),
    Verb(("registry", "list"), f"{_VERBS}.registry:list_workspaces", "List the workspaces of this home."),
    Verb(("registry", "add"), f"{_VERBS}.registry:add", "Register a directory as a workspace."),
    Verb(("registry", "forget"), f"{_VERBS}.registry:forget", "Take a workspace off the list."),
    Verb(("home", "backup"), f"{_VERBS}.home:backup", "Copy the home into a directory while it is in use."),
    Verb(("home", "token"), f"{_VERBS}.home:token", "Show or renew the home's HTTP token."),
    Verb(("trust", "host"), f"{_VERBS}.trust:trust", "Trust a host."),
    Verb(("untrust", "host"), f"{_VERBS}.trust:end_trust", "End the trust in a host."),
    Verb(("trust", "workspace"), f"{_VERBS}.trust_workspace:trust", "Trust the skills of a workspace."),
    Verb(("untrust", "workspace"), f"{_VERBS}.trust_workspace:end_trust", "End the trust in a workspace's skills."),
    Verb(("reference",), f"{_VERBS}.reference:reference", "Write the reference pages.", hidden=True),
)

NOUNS: Mapping[str, Noun] = {
    "session": Noun("Durable records of work.", "sessions"),
    "task": Noun("Pieces of work, and the attempts at them.", "sessions"),
    "pending": Noun("Every open question to a person.", "sessions"),
    "memory": Noun("What was learned, found again with the reason why.", "memory"),
    "skills": Noun("SKILL.md folders, judged and read.", "skills"),
    "permissions": Noun("What agents may do, and why.", "permissions"),
    "workspace": Noun("The state of a workspace.", "workspace"),
    "snapshot": Noun("States of a workspace.", "workspace"),
    "diff": Noun("Compare two versions of a workspace.", "workspace"),
    "restore": Noun("Put a version of a workspace back.", "workspace"),
    "undo": Noun("Undo one operation on a workspace.", "workspace"),
    "fork": Noun("Isolated copies to work in.", "workspace"),
    "check": Noun("Commands that prove something about a tree.", "workspace"),
    "receipt": Noun("What checks proved.", "workspace"),
    "promotion": Noun("Putting a fork's tree into the workspace.", "workspace"),
    "operation": Noun("What was done to workspaces.", "workspace"),
    "store": Noun("The object store.", "workspace"),
    "network": Noun("Conversations between agents.", "network"),
    "config": Noun("Settings with provenance."),
    "registry": Noun("The workspaces of this home."),
    "home": Noun("Backup and token of the home."),
    "trust": Noun("What a person trusts."),
    "untrust": Noun("The end of a person's trust."),
}

_NEW_MEMORY = (
    *("text", "type", "scope", "key", "title", "attributes", "tags", "valid_from", "valid_to", "evidence", "author"),
    *("thread", "reason"),
)
_ONE_MEMORY = ("memory_id", "expected_version", "reason")

ROUTES: tuple[Route, ...] = (
    Route(("session", "list"), "session_find"),
    Route(("session", "record"), "session_record", leading=("session_id", "kind", "text"), item="events"),
    Route(("task", "add"), "task_save", leading=("title",), item="tasks"),
    Route(("task", "list"), "task_find"),
    Route(("task", "show"), "task_get"),
    Route(("pending", "list"), "desk_view", fixed={"kind": "needs_you"}),
    Route(("skills", "validate"), "skill_validate", leading=("path",)),
    Route(("skills", "disable"), "skill_switch", fixed={"enabled": False}, leading=("selector",)),
    Route(("skills", "enable"), "skill_switch", fixed={"enabled": True}, leading=("selector",)),
    Route(("memory", "add"), "memory_write", {"op": "add"}, leading=("text",), item="operations", only=_NEW_MEMORY),
    Route(
        ("memory", "edit"),
        "memory_write",
        {"op": "revise"},
        leading=("memory_id", "text"),
        item="operations",
        only=(*_NEW_MEMORY, "memory_id", "expected_version", "edits"),
    ),
    Route(("memory", "pin"), "memory_write", {"op": "pin"}, ("memory_id",), "operations", _ONE_MEMORY),
    Route(("memory", "unpin"), "memory_write", {"op": "unpin"}, ("memory_id",), "operations", _ONE_MEMORY),
    Route(
        ("memory", "revert"),
        "memory_write",
        {"op": "revert"},
        ("decision_id",),
        "operations",
        ("decision_id", "reason"),
    ),
    Route(("memory", "write"), "memory_write"),
    Route(("memory", "recall"), "memory_recall", leading=("query",)),
    Route(("memory", "show"), "memory_get"),
    Route(("memory", "list"), "memory_list"),
    Route(("memory", "review"), "memory_list", {"what": "proposals"}),
    Route(("memory", "conflicts"), "memory_list", {"what": "conflicts"}),
    Route(("memory", "history"), "memory_list", {"what": "decisions"}, ("memory_id",)),
    Route(("memory", "forget"), "memory_forget", leading=("ids",)),
    Route(("memory", "accept"), "memory_review", {"action": "accept"}),
    Route(("memory", "reject"), "memory_review", {"action": "reject"}),
    Route(("memory", "withdraw"), "memory_review", {"action": "withdraw"}),
    Route(("workspace", "status"), "workspace_view", {"view": "status"}, without=("ref", "path", "offset")),
    Route(("workspace", "view"), "workspace_view", leading=("view", "ref")),
    Route(("diff",), "tree_diff", leading=("from_", "to")),
    Route(("restore",), "tree_restore", leading=("to", "paths"), without=("undo",)),
    Route(("undo",), "tree_restore", leading=("undo",), without=("to", "paths", "place", "unknown")),
    Route(("promotion", "plan"), "tree_promote", {"dry_run": True}, without=("plan_digest", "then")),
    Route(("promotion", "apply"), "tree_promote", {"dry_run": False}),
    Route(("check", "save"), "check_save", leading=("name", "argv"), item="command"),
    Route(("check", "run"), "check_run", without=("wait_s",)),
    Route(("receipt", "show"), "receipt_get"),
    Route(("permissions", "explain"), "permission_explain", leading=("decision_id",)),
    Route(("permissions", "approvals"), "approval_list"),
    Route(("permissions", "approval"), "approval_get"),
    Route(("permissions", "withdraw"), "approval_withdraw"),
    Route(("permissions", "grants", "list"), "grant_list"),
    Route(("permissions", "grants", "revoke"), "grant_revoke"),
    Route(("network", "work", "update"), "work_update"),
    Route(("network", "view"), "network_view", leading=("ref",)),
    Route(("network", "join"), "peer_join"),
    Route(("network", "peers"), "peer_find"),
    Route(("network", "send"), "message_send"),
    Route(("network", "inbox"), "inbox_read"),
    Route(("network", "ack"), "inbox_ack"),
)

# Refused to agents and extensions, and to callers that descend from a connected host or from a process of the runner.
PERSON: frozenset[Path] = frozenset(
    {
        ("answer",),
        ("install",),
        ("uninstall",),
        ("home", "token"),
        ("trust", "host"),
        ("untrust", "host"),
        ("trust", "workspace"),
        ("untrust", "workspace"),
        ("skills", "enable"),
        ("memory", "accept"),
    }
)

_NOUNS_IN_PLURAL = {"skill": "skills", "permission": "permissions"}


def default_path(operation: str) -> Path:
    """Return the path of an operation that has no route: its name in two words."""
    noun, _, verb = operation.partition("_")
    return _NOUNS_IN_PLURAL.get(noun, noun), verb.replace("_", "-")
