"""Names of spans, metrics and attributes: OpenTelemetry's MCP and GenAI conventions, and ours under `agentstead.`."""

SCOPE = "agentstead"

# https://opentelemetry.io/docs/specs/semconv/gen-ai/mcp/
OPERATION_DURATION = "mcp.server.operation.duration"
SESSION_DURATION = "mcp.server.session.duration"
METHOD = "mcp.method.name"
RESOURCE_URI = "mcp.resource.uri"
PROTOCOL_VERSION = "mcp.protocol.version"
TOOL_NAME = "gen_ai.tool.name"
PROMPT_NAME = "gen_ai.prompt.name"
ERROR_TYPE = "error.type"
TRANSPORT = "network.transport"
# The conventions' advice for a histogram of seconds.
BUCKETS_S = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)

DECISION = "agentstead.policy.decide"
TRANSACTION = "agentstead.state.transaction"
RUN = "agentstead.run"
PROCESS = "agentstead.process"

SERVER = "agentstead.server"
PRINCIPAL = "agentstead.principal"
ACTION = "agentstead.action"
RISK = "agentstead.risk"
VERDICT = "agentstead.verdict"
REASONS = "agentstead.reasons"
FUNCTION = "code.function.name"
RUN_ID = "agentstead.run.id"
RUN_OWNER = "agentstead.run.owner"
RUN_STATE = "agentstead.run.state"
ATTEMPT = "agentstead.run.attempt"
EXIT = "process.exit.code"
EXECUTABLE = "process.executable.name"
