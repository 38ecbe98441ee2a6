"""What is said on the local socket before and beside MCP: hello, welcome, leaving, control. Standard library only.

Each is one line of JSON whose key `agentstead` names its kind. A shim says hello first and then sends MCP's own lines;
a command says control and reads lines until one holds `done`.
"""

import json
import os

LINE_BYTES = 32 * 1024 * 1024
GREETING_BYTES = 64 * 1024
VALUE_CHARS = 4096
# `kit.caller` accepts these; a test compares the two.
ENVIRONMENT = ("AGENTSTEAD_WORKSPACE", "AGENTSTEAD_SESSION", "AGENTSTEAD_AGENT", "AGENTSTEAD_PROCESS")
TOKEN_VARIABLE = "AGENTSTEAD_TOKEN"  # noqa: S105 - the name of a variable
LEAVING_HEAD = b'{"agentstead":"leaving"'


def say(kind: str, **fields: object) -> bytes:
    """Return the line of a kind."""
    return json.dumps({"agentstead": kind, **fields}, separators=(",", ":")).encode() + b"\n"


def hear(line: bytes) -> "dict[str, object]":
    """Return what a line says; raises ValueError for a line that is none of ours."""
    said = json.loads(line)
    if not isinstance(said, dict) or not isinstance(said.get("agentstead"), str):
        raise ValueError("not a line of the local socket")
    return said


def hello(server: str, *, toolset: str, version: str) -> bytes:
    """Return the hello of this process: what it wants, where it stands and who started it."""
    return say(
        "hello",
        server=server,
        toolset=toolset,
        version=version,
        cwd=_working_directory(),
        pid=os.getppid(),
        environ={name: os.environ[name][:VALUE_CHARS] for name in ENVIRONMENT if name in os.environ},
        token=os.environ.get(TOKEN_VARIABLE, ""),
    )


def _working_directory() -> str:
    try:
        return os.getcwd()
    except OSError:  # it was removed
        return ""
