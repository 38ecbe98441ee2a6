"""The container's description against the project that it builds."""

import re
from pathlib import Path
from typing import Any

import yaml

from agentstead.config.declared import COORDINATOR

ROOT = Path(__file__).parents[2]
FILE = ROOT / "compose.yaml"
SERVICE: dict[str, Any] = yaml.safe_load(FILE.read_text(encoding="utf-8"))["services"]["agentstead"]
DEFAULTS = {setting.key: setting.default for setting in COORDINATOR}


def test_each_copied_path_is_in_the_checkout() -> None:
    copied = re.findall(r"^COPY (.+) \S+$", SERVICE["build"]["dockerfile_inline"], re.MULTILINE)
    paths = [path for line in copied for path in line.split()]
    assert {"pyproject.toml", "README.md", "LICENSE", "shared", "servers"} == set(paths)
    assert all((ROOT / path).exists() for path in paths)


def test_the_home_lies_in_a_volume() -> None:
    (home,) = re.findall(r"^ENV AGENTSTEAD_HOME=(.+)$", SERVICE["build"]["dockerfile_inline"], re.MULTILINE)
    assert SERVICE["volumes"] == [f"home:{home}"]


def test_the_container_does_not_run_as_root() -> None:
    assert "USER agentstead" in SERVICE["build"]["dockerfile_inline"]


def test_the_coordinator_s_default_port_is_published_on_loopback_alone() -> None:
    port = DEFAULTS["coordinator.port"]
    assert SERVICE["ports"] == [f"127.0.0.1:{port}:{port}"]
    assert set(re.findall(r"127\.0\.0\.1:(\d+)/", FILE.read_text(encoding="utf-8"))) == {str(port)}


def test_docker_waits_longer_than_a_drain_takes() -> None:
    assert int(SERVICE["stop_grace_period"].removesuffix("s")) > DEFAULTS["coordinator.drain_s"]
