"""What we rely on in the MCP SDK beyond its public names, so that a new minor fails here and not in a host."""

import inspect

import mcp_types as types
import pytest
from mcp.server import runner
from mcp.server.connection import Connection
from mcp.server.context import ServerRequestContext
from mcp.server.lowlevel import Server
from mcp.server.session import ServerSession
from mcp_types.version import HANDSHAKE_PROTOCOL_VERSIONS, MODERN_PROTOCOL_VERSIONS


def test_both_protocol_eras_are_served() -> None:
    assert "2025-11-25" in HANDSHAKE_PROTOCOL_VERSIONS
    assert "2026-07-28" in MODERN_PROTOCOL_VERSIONS


def test_a_session_keeps_its_connection_under_the_name_that_we_read() -> None:
    assert "self._connection = connection" in inspect.getsource(ServerSession.__init__)
    assert inspect.iscoroutinefunction(Connection.send_resource_updated)
    assert "exit_stack" in inspect.getsource(Connection)


def test_the_loop_for_both_eras_takes_our_streams() -> None:
    parameters = inspect.signature(runner.serve_dual_era_loop).parameters
    assert {"server", "read_stream", "write_stream", "lifespan_state", "init_options"} <= set(parameters)
    assert "serve_dual_era_loop" in runner.__all__


def test_a_request_context_has_the_fields_that_we_read() -> None:
    fields = set(ServerRequestContext.__dataclass_fields__)
    assert {"session", "protocol_version", "method", "params", "request_id", "meta"} <= fields


@pytest.mark.parametrize(
    "name", ["on_list_tools", "on_call_tool", "on_read_resource", "on_subscriptions_listen", "cache_hints"]
)
def test_the_lowlevel_server_takes_what_we_pass(name: str) -> None:
    assert name in inspect.signature(Server.__init__).parameters


def test_a_tool_call_carries_answers_to_earlier_questions() -> None:
    fields = types.CallToolRequestParams.model_fields
    assert {"input_responses", "request_state"} <= set(fields)
    result = types.InputRequiredResult(input_requests={}, request_state="x")
    assert result.model_dump(by_alias=True, mode="json")["resultType"] == "input_required"
