"""The descriptions that a registry publishes, against its rules and against the project they describe."""

import json
import re
import tomllib
from pathlib import Path
from typing import Any

import pytest

ROOT = Path(__file__).parents[2]
PROJECT = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["project"]
SERVERS = sorted(PROJECT["entry-points"]["agentstead.servers"])


def described(server: str) -> dict[str, Any]:
    document: dict[str, Any] = json.loads((ROOT / "registry" / f"{server}.json").read_text(encoding="utf-8"))
    return document


def test_each_server_has_one_description_and_nothing_else_does() -> None:
    assert sorted(path.stem for path in (ROOT / "registry").glob("*.json")) == SERVERS


@pytest.mark.parametrize("server", SERVERS)
def test_the_top_of_a_description_keeps_the_schema_s_bounds(server: str) -> None:
    document = described(server)
    assert set(document) == {"$schema", "name", "title", "description", "version", "repository", "packages"}
    assert document["$schema"].endswith("/2025-12-11/server.schema.json")
    assert document["name"] == f"io.github.agentstead/{server}"
    assert re.fullmatch(r"[a-zA-Z0-9.-]+/[a-zA-Z0-9._-]+", document["name"])
    assert 1 <= len(document["title"]) <= 100
    assert 1 <= len(document["description"]) <= 100
    assert set(document["repository"]) == {"url", "source"}


@pytest.mark.parametrize("server", SERVERS)
def test_a_description_names_this_version_of_the_one_distribution(server: str) -> None:
    document = described(server)
    (package,) = document["packages"]
    assert document["version"] == PROJECT["version"]
    assert package["registryType"] == "pypi"
    assert (package["identifier"], package["version"]) == (PROJECT["name"], PROJECT["version"])
    assert package["transport"] == {"type": "stdio"}


@pytest.mark.parametrize("server", SERVERS)
def test_a_description_starts_its_own_server(server: str) -> None:
    (package,) = described(server)["packages"]
    assert [argument["type"] for argument in package["packageArguments"]] == ["positional", "positional"]
    assert [argument["value"] for argument in package["packageArguments"]] == ["serve", server]


@pytest.mark.parametrize("server", SERVERS)
def test_each_variable_is_ours_and_explained(server: str) -> None:
    (package,) = described(server)["packages"]
    for variable in package["environmentVariables"]:
        assert variable["name"].startswith("AGENTSTEAD_")
        assert variable["description"]
        assert variable["format"] in {"string", "number", "boolean", "filepath"}
        assert variable["isRequired"] is False


def test_the_readme_carries_the_marker_of_each_server_once() -> None:
    readme = (ROOT / "README.md").read_text(encoding="utf-8")
    assert sorted(re.findall(r"<!-- mcp-name: (\S+) -->", readme)) == [
        f"io.github.agentstead/{name}" for name in SERVERS
    ]


def test_no_package_registry_is_named() -> None:
    for path in (ROOT / "registry").glob("*.json"):
        assert "registryBaseUrl" not in path.read_text(encoding="utf-8")
