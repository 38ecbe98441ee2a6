"""The tree of everything installed: no path twice, each noun known, each page of help there, strangers' servers too."""

import re
import subprocess
import sys
from collections import Counter
from pathlib import Path
from typing import get_args

import pytest

from agentstead.cli.leaves import Leaf, all_leaves, routes_of
from agentstead.cli.outcomes import OUTCOMES
from agentstead.cli.reference import differing, pages
from agentstead.cli.routes import NOUNS, PERSON, ROUTES, VERBS
from agentstead.config import PRODUCT
from agentstead.kit import declarations, operation_of

from .conftest import Run

ROOT = Path(__file__).parents[2]
OPERATIONS = {
    operation.name: operation for server in declarations() for operation in map(operation_of, server.operations)
}
LEAVES = all_leaves()


def test_no_path_is_there_twice() -> None:
    assert [path for path, times in Counter(leaf.path for leaf in LEAVES).items() if times > 1] == []


def test_no_path_is_the_beginning_of_another() -> None:
    paths = {leaf.path for leaf in LEAVES}
    assert [path for path in paths if any(path[:depth] in paths for depth in range(1, len(path)))] == []


def test_every_noun_has_verbs_and_every_verb_a_noun_with_help() -> None:
    alone = {verb.path[0] for verb in VERBS if len(verb.path) == 1}
    assert {leaf.path[0] for leaf in LEAVES} - alone == set(NOUNS)
    assert [noun for noun, known in NOUNS.items() if not known.help.endswith(".")] == []


def test_every_operation_for_the_terminal_has_a_verb() -> None:
    paths = {leaf.path for leaf in LEAVES}
    by_hand = {verb.operation for verb in VERBS if verb.path in paths}
    reached = {name for name, each in OPERATIONS.items() if any(route.path in paths for route in routes_of(each))}
    assert set(OPERATIONS) - reached - by_hand == {"permission_prompt"}


def test_every_route_leads_to_an_operation_and_its_fields() -> None:
    for route in ROUTES:
        fields = OPERATIONS[route.operation].arguments.model_fields
        assert route.item == "" or route.item in fields, route.path
        assert route.item or set(route.fixed) <= set(fields), route.path
        leaf = next(leaf for leaf in LEAVES if leaf.path == route.path)
        assert set(route.leading) <= {parameter.name for parameter in leaf.parameters}, route.path
        assert set(route.without) <= set(fields), route.path


def test_every_verb_of_a_person_is_there_and_says_so() -> None:
    by_path = {leaf.path: leaf for leaf in LEAVES}
    assert set(by_path) >= PERSON
    for path in PERSON:
        assert "Only a person may run this" in by_path[path].help


def test_no_argument_takes_the_name_of_a_common_option() -> None:
    taken = {"home", "output", "help", "typer_context"}
    assert [(leaf.path, each.name) for leaf in LEAVES for each in leaf.parameters if each.name in taken] == []


def test_the_line_of_help_of_a_verb_is_one_sentence() -> None:
    for verb in VERBS:
        assert re.fullmatch(r"[A-Z].*\.", verb.help), verb.path


@pytest.mark.parametrize("noun", sorted({leaf.path[0] for leaf in LEAVES}))
def test_every_page_of_help_can_be_read(run: Run, noun: str) -> None:
    mine: list[Leaf] = [leaf for leaf in LEAVES if leaf.path[0] == noun]
    for leaf in mine:
        ran = run(*leaf.path, "--help")
        assert ran.code == 0, leaf.path
        assert ran.out.startswith(f"Usage: agentstead {' '.join(leaf.path)}")
        words = " ".join(ran.out.split()).lower().replace("_", "-")
        for parameter in leaf.parameters:
            said = parameter.annotation.__metadata__[0].help or parameter.name.rstrip("_")
            assert " ".join(said.split()).lower().replace("_", "-") in words, (leaf.path, parameter.name)


def test_the_reference_is_what_the_code_says() -> None:
    assert differing(ROOT / "docs" / "reference") == [], "run: agentstead reference --write"


def test_the_reference_has_a_page_for_each_server_and_names_every_tool_and_setting() -> None:
    made = pages()
    for server in declarations():
        assert all(f"### {operation_of(fn).name}\n" in made[f"{server.name}.md"] for fn in server.operations)
    for setting in PRODUCT:
        assert f"| `{setting.key}` |" in made["settings.md"]
    for leaf in LEAVES:
        assert leaf.hidden or f"`agentstead {' '.join(leaf.path)}" in made["cli.md"]


def test_the_reference_verb_compares_and_writes(run: Run, tmp_path: Path) -> None:
    folder = tmp_path / "pages"
    assert run("reference", str(folder), "-o", "json").code == 1
    assert "cli.md" in run("reference", str(folder), "--write", "-o", "json").json["changed"]
    assert run("reference", str(folder)).code == 0
    (folder / "cli.md").write_text("other")
    (folder / "gone.md").write_text("of a server that is gone")
    assert run("reference", str(folder), "-o", "json").json["differing"] == ["cli.md", "gone.md"]
    assert run("reference", str(folder), "--write", "-o", "json").json["changed"] == ["cli.md", "gone.md"]
    assert not (folder / "gone.md").exists()


SOURCES = {
    path: path.read_text(encoding="utf-8")
    for folder in ("shared", "servers")
    for path in (ROOT / folder).rglob("*.py")
    if path.name != "settings.py" and path.parent.name != "config"
}


def test_every_setting_is_read_somewhere() -> None:
    text = "\n".join(SOURCES.values())
    unread = [each.key for each in PRODUCT if not _is_read(each.key.removesuffix(".*"), text)]
    assert unread == []


def _is_read(key: str, text: str) -> bool:
    """Say whether a key, or a key with its last part filled in at run time, stands in a string of the code."""
    ahead = re.escape(key.rpartition(".")[0])
    return f'"{key}"' in text or re.search(rf'f"{ahead}\.\{{\w+\}}"', text) is not None


def test_every_setting_that_is_read_is_declared() -> None:
    read = re.compile(r'settings\.(?:get|whole|number|flag|text|texts|explain)\(\s*"([a-z_.]+)"')
    keys = {key for text in SOURCES.values() for key in read.findall(text)}
    assert keys
    assert [key for key in sorted(keys) if PRODUCT.look(key) is None] == []


STRANGER = '''
from typing import Annotated
from pydantic import Field
from agentstead.kit import Call, Result, ServerDeclaration, operation

class Said(Result):
    said: str

@operation("parrot_say", action="parrot.say", risk="read", title="Say it again")
async def parrot_say(call: Call, *, words: Annotated[str, Field(description="What to say.")]) -> Said:
    """Say something again."""
    return Said(said=words)

SERVER = ServerDeclaration(name="parrot", title="The parrot", instructions="", operations=(parrot_say,), toolsets={})
'''


def test_a_strangers_server_brings_its_verbs(home_path: Path, tmp_path: Path) -> None:
    site = tmp_path / "site"
    info = site / "parrot-1.0.dist-info"
    info.mkdir(parents=True)
    (site / "parrot_server.py").write_text(STRANGER)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: parrot\nVersion: 1.0\n")
    (info / "entry_points.txt").write_text("[agentstead.servers]\nparrot = parrot_server:SERVER\n")
    code = f"import sys; sys.path.insert(0, {str(site)!r}); from agentstead.cli.main import main; sys.exit(main())"

    def ran(*arguments: str) -> subprocess.CompletedProcess[str]:
        command = [sys.executable, "-c", code, *arguments]
        return subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert "Verbs of the server parrot." in ran("--help").stdout
    said = ran("parrot", "say", "hello", "-o", "json")
    assert (said.returncode, said.stdout) == (0, '{"said":"hello"}\n')


def test_every_outcome_names_a_field_of_its_result_and_values_it_may_have() -> None:
    for name, (field, codes) in OUTCOMES.items():
        values = get_args(OPERATIONS[name].result.model_fields[field].annotation)
        assert not values or set(codes) <= set(values), name
