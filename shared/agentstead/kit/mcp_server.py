"""One MCP server from a declaration: tools, resources, prompts and subscriptions for both protocol eras.

It knows nothing of what the operations do; every call goes through `invoke`.
"""

import base64
import logging
import uuid
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import mcp_types as types
from mcp.server.caching import CacheHint
from mcp.server.lowlevel import NotificationOptions, Server
from mcp.server.models import InitializationOptions
from mcp.server.request_state import RequestStateBoundary, RequestStateSecurity
from mcp.server.subscriptions import ListenHandler
from mcp.shared.exceptions import MCPError
from mcp_types import INVALID_PARAMS

from agentstead import telemetry
from agentstead.identity import Facts, Principal
from agentstead.kit import published
from agentstead.kit.asking import AskInRetry, HostPerson
from agentstead.kit.caller import CALLER, Caller
from agentstead.kit.changes import ChangeHub
from agentstead.kit.declaration import Prompt, Resource, ServerDeclaration
from agentstead.kit.invoke import Context, invoke
from agentstead.kit.observing import Observing
from agentstead.kit.operation import Operation
from agentstead.kit.reading import call_for_reading
from agentstead.kit.sdk import Context as Request
from agentstead.kit.sdk import LegacyConnection, client_name
from agentstead.state import AgentsteadError, Unavailable

if TYPE_CHECKING:
    from agentstead.kit.home import Home

log = logging.getLogger(__name__)

LIST_TTL_MS = 300_000
RESOURCES_A_PAGE = 100
_REQUEST_KEY = "request-state"

ToolAnswer = types.CallToolResult | types.InputRequiredResult


def build(
    declaration: ServerDeclaration, home: "Home", *, hub: ChangeHub, toolset: str = "core"
) -> "Server[dict[str, Any]]":
    """Return the SDK's server for one declaration, with the tools of `toolset`."""
    face = _Face(declaration, home, toolset)
    public = CacheHint(ttl_ms=LIST_TTL_MS, scope="public")
    server = _Announcing(
        declaration.name,
        version=home.version,
        title=declaration.title,
        instructions=declaration.instructions,
        cache_hints={"tools/list": public, "prompts/list": public, "resources/templates/list": public},
        on_list_tools=face.list_tools,
        on_call_tool=face.call_tool,
        on_list_resources=face.list_resources if declaration.resources else None,
        on_list_resource_templates=face.list_templates if declaration.resources else None,
        on_read_resource=face.read_resource if declaration.resources else None,
        on_list_prompts=face.list_prompts if declaration.prompts else None,
        on_get_prompt=face.get_prompt if declaration.prompts else None,
        on_subscriptions_listen=ListenHandler(hub.bus),
    )
    if declaration.resources:
        _subscribe(server, hub)
    security = RequestStateSecurity(keys=[home.key(_REQUEST_KEY)], bind_principal=_bound_principal)
    if telemetry.is_on():
        server.middleware.append(Observing(declaration.name))
    server.middleware.append(RequestStateBoundary(security, default_audience=declaration.name))
    return server


class _Announcing(Server[dict[str, Any]]):
    """A server whose lists may change under a connection: a shim says so when a newer coordinator took over."""

    def create_initialization_options(
        self,
        notification_options: NotificationOptions | None = None,
        experimental_capabilities: dict[str, dict[str, Any]] | None = None,
        extensions: dict[str, dict[str, Any]] | None = None,
    ) -> InitializationOptions:
        """Return what `initialize` answers, with changing lists announced."""
        changing = notification_options or NotificationOptions(True, True, True)
        return super().create_initialization_options(changing, experimental_capabilities, extensions)


def _subscribe(server: "Server[dict[str, Any]]", hub: ChangeHub) -> None:
    async def subscribe(request: Request, params: types.SubscribeRequestParams) -> types.EmptyResult:
        hub.subscribe(str(params.uri), LegacyConnection(request))
        return types.EmptyResult()

    async def unsubscribe(request: Request, params: types.UnsubscribeRequestParams) -> types.EmptyResult:
        hub.unsubscribe(str(params.uri), LegacyConnection(request))
        return types.EmptyResult()

    server.add_request_handler("resources/subscribe", types.SubscribeRequestParams, subscribe)
    server.add_request_handler("resources/unsubscribe", types.UnsubscribeRequestParams, unsubscribe)


class _Face:
    """The handlers of one server."""

    def __init__(self, declaration: ServerDeclaration, home: "Home", toolset: str) -> None:
        self._declaration = declaration
        self._home = home
        self._operations: Mapping[str, Operation] = {each.name: each for each in declaration.tools(toolset)}
        core = set(declaration.toolsets.get("core", ()))
        self._tools = [published.tool(each, shallow=each.name in core) for each in self._operations.values()]

    async def list_tools(
        self, _request: Request, _params: types.PaginatedRequestParams | None
    ) -> types.ListToolsResult:
        return types.ListToolsResult(tools=self._tools)

    async def call_tool(self, request: Request, params: types.CallToolRequestParams) -> ToolAnswer:
        operation = self._operations.get(params.name)
        if operation is None:
            known = ", ".join(self._operations)
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown tool: {params.name[:64]}. Known: {known}.")
        person = HostPerson(self._home, request, self._principal(request))
        try:
            if params.input_responses and params.request_state:
                await person.take_answer(params.request_state, params.input_responses)
            context = self._context(request, person)
            result, replayed = await invoke(self._home, operation, params.arguments or {}, context)
            return published.success(operation, result, replayed=replayed, redactor=self._home.redactor)
        except AskInRetry as question:
            return question.result()
        except AgentsteadError as error:
            return published.failure(operation, error, redactor=self._home.redactor)
        except MCPError:
            raise
        except Exception as error:
            return published.failure(operation, self._unexpected(operation.name, error), redactor=self._home.redactor)

    async def list_resources(
        self, request: Request, params: types.PaginatedRequestParams | None
    ) -> types.ListResourcesResult:
        found = [
            types.Resource(uri=each.uri_template, name=each.title, description=each.description, mime_type=each.mime)
            for each in self._declaration.resources
            if not each.is_template
        ]
        for each in self._declaration.resources:
            found += await self._existing(request, each)
        start = self._offset(params)
        more = len(found) > start + RESOURCES_A_PAGE
        cursor = self._home.state.cursors.seal({"at": start + RESOURCES_A_PAGE}, self._filters) if more else None
        return types.ListResourcesResult(resources=found[start : start + RESOURCES_A_PAGE], next_cursor=cursor)

    async def list_templates(
        self, _request: Request, _params: types.PaginatedRequestParams | None
    ) -> types.ListResourceTemplatesResult:
        templates = [
            types.ResourceTemplate(
                uri_template=each.uri_template, name=each.title, description=each.description, mime_type=each.mime
            )
            for each in self._declaration.resources
            if each.is_template
        ]
        return types.ListResourceTemplatesResult(resource_templates=templates)

    async def read_resource(
        self, request: Request, params: types.ReadResourceRequestParams
    ) -> types.ReadResourceResult:
        uri = str(params.uri)
        for resource in self._declaration.resources:
            variables = resource.match(uri)
            if variables is not None:
                content = await self._read(request, resource, uri, variables)
                return types.ReadResourceResult(contents=[content])
        raise MCPError(code=INVALID_PARAMS, message="Resource not found.", data={"uri": uri})

    async def list_prompts(
        self, _request: Request, _params: types.PaginatedRequestParams | None
    ) -> types.ListPromptsResult:
        return types.ListPromptsResult(prompts=[published.prompt(each) for each in self._declaration.prompts])

    async def get_prompt(self, request: Request, params: types.GetPromptRequestParams) -> types.GetPromptResult:
        prompt = next((each for each in self._declaration.prompts if each.name == params.name), None)
        if prompt is None:
            known = ", ".join(each.name for each in self._declaration.prompts)
            raise MCPError(code=INVALID_PARAMS, message=f"Unknown prompt: {params.name[:64]}. Known: {known}.")
        arguments = _prompt_arguments(prompt, params.arguments or {})
        try:
            call = await self._reading(request, "prompt", prompt.name, arguments)
            text = await prompt.render(call, **arguments)
        except AgentsteadError as error:
            raise MCPError(code=INVALID_PARAMS, message=self._home.redactor.text(str(error))) from None
        return published.prompt_text(prompt, self._home.redactor.text(text))

    async def _existing(self, request: Request, resource: Resource) -> list[types.Resource]:
        if resource.entries is None:
            return []
        call = await self._reading(request, "resource", resource.uri_template, {})
        return [
            types.Resource(uri=uri, name=name, description=resource.description, mime_type=resource.mime)
            for uri, name in await resource.entries(call)
        ]

    async def _read(
        self, request: Request, resource: Resource, uri: str, variables: Mapping[str, str]
    ) -> types.TextResourceContents | types.BlobResourceContents:
        try:
            call = await self._reading(request, "resource", uri, variables)
            content = await resource.read(call, **variables)
        except AgentsteadError as error:
            message = self._home.redactor.text(str(error))
            raise MCPError(code=INVALID_PARAMS, message=message, data={"uri": uri}) from None
        except Exception as error:
            raise MCPError(code=types.INTERNAL_ERROR, message=str(self._unexpected(uri, error))) from None
        if isinstance(content, bytes):
            blob = base64.b64encode(content).decode()
            return types.BlobResourceContents(uri=uri, mime_type=resource.mime, blob=blob)
        text = self._home.redactor.text(content)
        return types.TextResourceContents(uri=uri, mime_type=resource.mime, text=text)

    async def _reading(self, request: Request, kind: Any, name: str, arguments: Mapping[str, str]) -> Any:
        context = self._context(request, None)
        return await call_for_reading(
            self._home, self._declaration.name, context, kind=kind, name=name, arguments=arguments
        )

    def _principal(self, request: Request) -> Principal:
        caller = CALLER.get(Caller(door="stdio"))
        name, version = client_name(request)
        token = None if caller.token == "none" else caller.token  # noqa: S105 - a kind of token
        facts = Facts(door=caller.door, token=token, pid=caller.pid, supervised=caller.supervised)
        return Principal.host(name, version=version, facts=facts)

    def _context(self, request: Request, person: HostPerson | None) -> Context:
        caller = CALLER.get(Caller(door="stdio"))

        async def report(done: float, total: float | None, text: str) -> None:
            await request.session.report_progress(done, total, text)

        context = Context(
            principal=self._principal(request),
            cwd=caller.cwd,
            environ=caller.environ,
            traceparent=telemetry.traceparent(),
            report=report,
        )
        if person is None:
            return context
        return Context(
            principal=context.principal,
            cwd=context.cwd,
            environ=context.environ,
            traceparent=context.traceparent,
            report=report,
            ask=person.ask,
        )

    def _offset(self, params: types.PaginatedRequestParams | None) -> int:
        if params is None or params.cursor is None:
            return 0
        try:
            return int(self._home.state.cursors.open(params.cursor, self._filters)["at"])
        except AgentsteadError as error:
            raise MCPError(code=INVALID_PARAMS, message=str(error)) from None

    @property
    def _filters(self) -> Mapping[str, str]:
        return {"server": self._declaration.name, "list": "resources"}

    def _unexpected(self, what: str, error: Exception) -> AgentsteadError:
        """Log a fault of ours under an id; its message may hold a caller's data, so the answer has the id alone."""
        fault = uuid.uuid4().hex[:12]
        log.error("fault %s in %s", fault, self._home.redactor.text(what), exc_info=error)
        return Unavailable(
            "tool.failed",
            f"{what} met a fault of Agentstead ({type(error).__name__}, id {fault}).",
            remedy="Nothing of it was stored. `agentstead logs` shows the fault under this id.",
        )


def _prompt_arguments(prompt: Prompt, given: Mapping[str, str]) -> dict[str, str]:
    missing = [name for name in prompt.arguments if name not in given and name not in prompt.optional]
    unknown = [name for name in given if name not in prompt.arguments]
    if missing or unknown:
        known = ", ".join(prompt.arguments) or "none"
        message = f"Prompt {prompt.name}: missing {missing}, unknown {unknown}. Arguments: {known}."
        raise MCPError(code=INVALID_PARAMS, message=message)
    return dict(given)


def _bound_principal(request: Request) -> str:
    """Bind a question to the door and the claimed client, so that no other connection can bring its answer."""
    caller = CALLER.get(Caller(door="stdio"))
    return f"{caller.door}:{caller.token}:{client_name(request)[0]}"
