"""The kit for building an MCP server: declare operations once, get tools, verbs and reference pages.

Importing this package never imports `mcp`; the MCP face lives in `mcp_server`, `connection` and `http`.
"""

from agentstead.kit.call import Call
from agentstead.kit.caller import CALLER, ENVIRONMENT, Caller
from agentstead.kit.declaration import Prompt, Resource, ServerDeclaration, declarations
from agentstead.kit.home import Home, home_path
from agentstead.kit.invoke import Context, invoke
from agentstead.kit.operation import Operation, operation, operation_of
from agentstead.kit.result import Result

__all__ = [
    "CALLER",
    "ENVIRONMENT",
    "Call",
    "Caller",
    "Context",
    "Home",
    "Operation",
    "Prompt",
    "Resource",
    "Result",
    "ServerDeclaration",
    "declarations",
    "home_path",
    "invoke",
    "operation",
    "operation_of",
]
