"""What the six servers put into a model's context: how many tools, how they are named, and how many bytes.

The bytes are those of the answer to `tools/list` as a host reads them from the shim.
"""

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest

from agentstead.kit import declarations
from agentstead.kit.operation import KEY

AGENTSTEAD = Path(sys.executable).parent / "agentstead"

TOOLS_AT_MOST = 48
BYTES_AT_MOST = 48_000
NAME_AT_MOST = 32
DESCRIPTION_AT_MOST = 600

# server: core tools and bytes of its answer, at most
SHARES = {
    "sessions": (9, 9_600),
    "memory": (8, 8_800),
    "workspace": (8, 8_000),
    "network": (8, 7_800),
    "skills": (8, 7_600),
    "permissions": (7, 6_000),
}

LINES = (
    {
        "jsonrpc": "2.0",
        "id": 1,
        "method": "initialize",
        "params": {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "budget", "version": "1"},
        },
    },
    {"jsonrpc": "2.0", "method": "notifications/initialized"},
    {"jsonrpc": "2.0", "id": 2, "method": "tools/list", "params": {}},
)


def listed(server: str, environ: Mapping[str, str]) -> dict[str, Any]:
    """Return the result of `tools/list` that a host gets from the shim of one server."""
    process = subprocess.Popen(
        [AGENTSTEAD, "serve", server], env=environ, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True
    )
    assert process.stdin is not None
    assert process.stdout is not None
    with process, process.stdin:
        for line in LINES:
            process.stdin.write(json.dumps(line) + "\n")
        process.stdin.flush()
        answers = (json.loads(line) for line in process.stdout)
        result: dict[str, Any] = next(answer["result"] for answer in answers if answer.get("id") == 2)
    return result


@pytest.fixture(scope="module")
def lists(tmp_path_factory: pytest.TempPathFactory) -> Iterator[dict[str, dict[str, Any]]]:
    environ = {**os.environ, "AGENTSTEAD_HOME": str(tmp_path_factory.mktemp("as") / "home")}
    try:
        yield {server: listed(server, environ) for server in SHARES}
    finally:
        subprocess.run([AGENTSTEAD, "stop"], env=environ, capture_output=True, timeout=90, check=False)


def size(result: Mapping[str, Any]) -> int:
    return len(json.dumps(result, ensure_ascii=False, separators=(",", ":")).encode())


def test_the_six_core_toolsets_together_fit_their_budget(
    lists: Mapping[str, Mapping[str, Any]], capsys: pytest.CaptureFixture[str]
) -> None:
    counts = {server: len(result["tools"]) for server, result in lists.items()}
    sizes = {server: size(result) for server, result in lists.items()}
    with capsys.disabled():
        print(f"\n{'server':<12} {'tools':>5} {'of':>3} {'bytes':>7} {'of':>7}")
        for server, (tools, share) in SHARES.items():
            print(f"{server:<12} {counts[server]:>5} {tools:>3} {sizes[server]:>7,} {share:>7,}")
        print(f"{'all':<12} {sum(counts.values()):>5} {TOOLS_AT_MOST:>3} {sum(sizes.values()):>7,} {BYTES_AT_MOST:>7,}")
    assert sum(counts.values()) <= TOOLS_AT_MOST
    assert sum(sizes.values()) < BYTES_AT_MOST


@pytest.mark.parametrize("server", SHARES)
def test_each_server_keeps_its_share(lists: Mapping[str, Mapping[str, Any]], server: str) -> None:
    tools, share = SHARES[server]
    assert 1 <= len(lists[server]["tools"]) <= tools
    assert size(lists[server]) <= share


@pytest.mark.parametrize("server", SHARES)
def test_each_listed_tool_is_described_and_annotated_in_full(
    lists: Mapping[str, Mapping[str, Any]], server: str
) -> None:
    for tool in lists[server]["tools"]:
        assert 1 <= len(tool["description"]) <= DESCRIPTION_AT_MOST, tool["name"]
        hints = {"readOnlyHint", "destructiveHint", "idempotentHint", "openWorldHint"}
        assert hints <= set(tool["annotations"]), tool["name"]
        for name, schema in tool["inputSchema"].get("properties", {}).items():
            # The kit's own parameter means the same everywhere; explaining it 30 times would cost 3 kB.
            assert schema.get("description") or name == KEY, f"{tool['name']}.{name}"


def test_each_tool_name_is_unique_over_the_full_sets_and_fits_every_host() -> None:
    names = [operation.name for server in declarations() for operation in server.tools("full")]
    assert sorted(name for name in set(names) if names.count(name) > 1) == []
    assert [name for name in names if len(name) > NAME_AT_MOST or not name.replace("_", "").isalnum()] == []


def test_the_core_set_of_each_server_is_part_of_its_full_set() -> None:
    for server in declarations():
        full = {operation.name for operation in server.tools("full")}
        assert {operation.name for operation in server.tools("core")} <= full, server.name


def test_the_readme_lists_exactly_the_core_tools_of_each_server() -> None:
    readme = (Path(__file__).parents[2] / "README.md").read_text(encoding="utf-8")
    for server in declarations():
        (row,) = [line for line in readme.splitlines() if line.startswith(f"| `{server.name}` |")]
        told = [cell.strip("`") for cell in row.strip("|").split("|")[2].split()]
        assert sorted(told) == sorted(operation.name for operation in server.tools("core")), server.name
