"""What OpenTelemetry's conventions want of each message beyond the SDK's own span: attributes and durations."""

import time
from collections.abc import Mapping

import mcp_types as types
from mcp.server.context import CallNext, HandlerResult
from mcp.shared.exceptions import MCPError

from agentstead import telemetry
from agentstead.kit.caller import CALLER, Caller
from agentstead.kit.sdk import Context
from agentstead.telemetry import names

_TRANSPORTS = {"http": "tcp", "socket": "pipe", "stdio": "pipe", "cli": "inproc"}
_TARGETS = {"tools/call": ("name", names.TOOL_NAME), "prompts/get": ("name", names.PROMPT_NAME)}
_URI_METHODS = ("resources/read", "resources/subscribe", "resources/unsubscribe")


class Observing:
    """Middleware of one server; costs nothing while telemetry is off, since it is not installed then."""

    def __init__(self, server: str) -> None:
        self._server = server

    async def __call__(self, ctx: Context, call_next: CallNext) -> HandlerResult:
        """Pass the message on, and record how long it took and how it ended."""
        attributes = self._attributes(ctx)
        telemetry.describe(attributes | _uri(ctx))
        began = time.perf_counter()
        failure = ""
        try:
            result = await call_next(ctx)
            failure = "tool_error" if _is_tool_error(result) else ""
            return result
        except MCPError as error:
            failure = str(error.code)
            raise
        except BaseException as error:
            failure = type(error).__name__
            raise
        finally:
            ended = attributes | ({names.ERROR_TYPE: failure} if failure else {})
            telemetry.record_seconds(names.OPERATION_DURATION, time.perf_counter() - began, ended)

    def _attributes(self, context: Context) -> dict[str, str]:
        caller = CALLER.get(Caller(door="stdio"))
        found = {
            names.SERVER: self._server,
            names.METHOD: context.method,
            names.PROTOCOL_VERSION: context.protocol_version,
            names.TRANSPORT: _TRANSPORTS[caller.door],
        }
        parameter, attribute = _TARGETS.get(context.method, ("", ""))
        target = (context.params or {}).get(parameter)
        return found | ({attribute: target} if isinstance(target, str) else {})


def _uri(context: Context) -> dict[str, str]:
    uri = (context.params or {}).get("uri")
    return {names.RESOURCE_URI: str(uri)} if context.method in _URI_METHODS and uri is not None else {}


def _is_tool_error(result: HandlerResult) -> bool:
    if isinstance(result, Mapping):
        return bool(result.get("isError"))
    return isinstance(result, types.CallToolResult) and bool(result.is_error)
