"""The wire forms of a declaration and of results: tools, prompts, successes and failures."""

import json
from typing import Any

import mcp_types as types

from agentstead.kit.declaration import Prompt
from agentstead.kit.operation import Operation
from agentstead.kit.result import Result
from agentstead.kit.schema import input_schema, output_schema
from agentstead.state import AgentsteadError, Redactor
from agentstead.state.ports import redact_value

ERROR_META = "dev.agentstead/error"
REPLAYED_META = "dev.agentstead/replayed"
SUMMARY_CHARS = 16_000
RESULT_CHARS = 1_000_000


def tool(operation: Operation, *, shallow: bool) -> types.Tool:
    """Return the tool of an operation; `shallow` publishes nested results as plain objects."""
    hints = types.ToolAnnotations(
        read_only_hint=operation.risk == "read",
        destructive_hint=operation.risk == "destructive",
        idempotent_hint=operation.idempotent,
        open_world_hint=operation.open_world,
    )
    return types.Tool(
        name=operation.name,
        title=operation.title,
        description=operation.description,
        input_schema=input_schema(operation.arguments),
        output_schema=None if operation.raw_text else output_schema(operation.result, shallow=shallow),
        annotations=hints,
    )


def success(operation: Operation, result: Result, *, replayed: bool, redactor: Redactor) -> types.CallToolResult:
    """Return a result: short text, and the whole as structured content."""
    if operation.raw_text:
        # the host gets back what it sent and runs it: a mark inside would change what runs
        return types.CallToolResult(content=[types.TextContent(text=result.summary())])
    structured = redact_value(redactor, result.model_dump(mode="json", exclude_none=True))
    whole = json.dumps(structured, separators=(",", ":"), ensure_ascii=False)
    if len(whole) > RESULT_CHARS:
        return failure(operation, _too_large(operation), redactor=redactor)
    text = whole if type(result).summary is Result.summary else redactor.text(result.summary())
    if len(text) > SUMMARY_CHARS:
        text = text[:SUMMARY_CHARS] + " ... (the structured content is complete)"
    meta: dict[str, Any] | None = {REPLAYED_META: True} if replayed else None
    return types.CallToolResult(content=[types.TextContent(text=text)], structured_content=structured, meta=meta)


def failure(operation: Operation, error: AgentsteadError, *, redactor: Redactor) -> types.CallToolResult:
    """Return an error: `code: what happened. what to do.` and the structure in `_meta`, never structured content."""
    text = redactor.text(operation.failure(error) if operation.failure else str(error))
    if operation.raw_text and operation.failure:
        return types.CallToolResult(content=[types.TextContent(text=text)])
    meta = {ERROR_META: redact_value(redactor, error.as_dict())}
    return types.CallToolResult(content=[types.TextContent(text=text)], is_error=True, meta=meta)


def prompt(declared: Prompt) -> types.Prompt:
    """Return the listing of a prompt."""
    arguments = [
        types.PromptArgument(name=name, description=text, required=name not in declared.optional)
        for name, text in declared.arguments.items()
    ]
    return types.Prompt(name=declared.name, title=declared.title, description=declared.description, arguments=arguments)


def prompt_text(declared: Prompt, text: str) -> types.GetPromptResult:
    """Return a rendered prompt as one message of the user."""
    message = types.PromptMessage(role="user", content=types.TextContent(text=text))
    return types.GetPromptResult(description=declared.description, messages=[message])


def _too_large(operation: Operation) -> AgentsteadError:
    return AgentsteadError(
        "tool.result_too_large",
        f"The result of {operation.name} passes {RESULT_CHARS} characters.",
        remedy="Ask for less: a smaller limit, a filter, or detail=brief.",
    )
