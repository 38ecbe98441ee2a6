"""Policy is for light programs too: it loads neither the protocol nor pydantic."""

import subprocess
import sys

import pytest


@pytest.mark.parametrize("package", ["agentstead.policy", "agentstead.policy.redact", "agentstead.identity"])
def test_importing_it_loads_neither_protocol_nor_pydantic(package: str) -> None:
    code = f"import sys, {package}; print(*(name for name in ('mcp', 'mcp_types', 'pydantic') if name in sys.modules))"
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True, timeout=60)
    assert done.stdout.strip() == ""
