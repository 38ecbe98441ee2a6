"""The reference pages, made from the declarations: one a server, one of the command line, one of the settings."""

import inspect
from collections.abc import Iterator, Mapping, Sequence
from inspect import Parameter
from pathlib import Path
from typing import Any, get_args, get_origin

from agentstead.cli.leaves import Leaf, all_leaves, routes_of
from agentstead.cli.routes import PERSON, VERBS
from agentstead.config import PRODUCT, Setting
from agentstead.kit import Operation, ServerDeclaration, declarations, operation_of

_MADE = "<!-- Made by `agentstead reference --write docs/reference`; a test compares it with the code. -->"


def pages() -> Mapping[str, str]:
    """Return the text of each page by its file name."""
    servers = declarations()
    made = {f"{server.name}.md": _server(server) for server in servers}
    made["cli.md"] = _command_line(all_leaves())
    made["settings.md"] = _settings(list(PRODUCT))
    made["README.md"] = _index(servers)
    return made


def differing(folder: Path) -> list[str]:
    """Name the pages of a folder that are missing, that differ, or that nothing makes any more."""
    made = pages()
    stale = [name for name, text in made.items() if not _same(folder / name, text)]
    return sorted([*stale, *(path.name for path in folder.glob("*.md") if path.name not in made)])


def write(folder: Path) -> list[str]:
    """Bring the pages of a folder up to date; return the names of those that changed."""
    changed = differing(folder)
    folder.mkdir(parents=True, exist_ok=True)
    made = pages()
    for name in changed:
        if name in made:
            (folder / name).write_text(made[name], encoding="utf-8")
        else:
            (folder / name).unlink()
    return changed


def _same(path: Path, text: str) -> bool:
    return path.exists() and path.read_text(encoding="utf-8") == text


def _index(servers: Sequence[ServerDeclaration]) -> str:
    lines = ["# Reference", "", _MADE, "", "Each page is made from the code.", ""]
    lines += [f"- [{server.title}]({server.name}.md): {len(server.operations)} tools" for server in servers]
    lines += ["- [Command line](cli.md)", "- [Settings](settings.md)"]
    return _joined(lines)


def _server(server: ServerDeclaration) -> str:
    lines = [f"# {server.title}", "", _MADE, "", server.instructions, "", "## Tools", ""]
    core = set(server.toolsets.get("core", ()))
    for operation in map(operation_of, server.operations):
        lines += _operation(operation, core=operation.name in core)
    sets = {name: tools for name, tools in server.toolsets.items() if name != "core"}
    if sets:
        lines += ["## Toolsets", "", *(f"- `{name}`: {', '.join(tools)}" for name, tools in sets.items()), ""]
    if server.resources:
        rows = [(f"`{each.uri_template}`", each.title, each.description) for each in server.resources]
        lines += ["## Resources", "", *_table(("uri", "title", "what"), rows), ""]
    if server.prompts:
        prompts = [(f"`{each.name}`", ", ".join(each.arguments), each.description) for each in server.prompts]
        lines += ["## Prompts", "", *_table(("name", "arguments", "what"), prompts), ""]
    return _joined(lines)


def _operation(operation: Operation, *, core: bool) -> Iterator[str]:
    yield from (f"### {operation.name}", "", operation.description, "")
    marks = ["core" if core else "full set", f"risk: {operation.risk}"]
    marks += ["idempotent"] if operation.idempotent else []
    marks += ["reaches out of this machine"] if operation.open_world else []
    paths = [route.path for route in routes_of(operation)]
    paths += [verb.path for verb in VERBS if verb.operation == operation.name]
    marks += [f"`agentstead {' '.join(path)}`" for path in paths]
    yield from (" · ".join(marks), "")
    schema = operation.arguments.model_json_schema()
    yield from _fields("argument", schema, operation.arguments.model_fields)
    yield from _fields("result", operation.result.model_json_schema(), operation.result.model_fields)


def _fields(title: str, schema: Mapping[str, Any], fields: Mapping[str, Any]) -> Iterator[str]:
    properties: Mapping[str, Any] = schema.get("properties", {})
    if not properties:
        return
    rows = [
        (f"`{name}`", _type(properties[name]), _need(field), field.description or "")
        for name, field in fields.items()
        if name in properties
    ]
    yield from _table((title, "type", "default", "what"), rows)
    yield ""


def _need(field: Any) -> str:
    if field.is_required():
        return "required"
    default = field.get_default(call_default_factory=True, validated_data={})
    if default in (None, "", (), [], {}):
        return ""
    return f"`{str(default).lower() if isinstance(default, bool) else default}`"


def _type(schema: Mapping[str, Any]) -> str:
    """Say a JSON schema in a few words."""
    if "enum" in schema:
        return " \\| ".join(f"`{value}`" for value in schema["enum"])
    if "anyOf" in schema:
        kinds = [_type(each) for each in schema["anyOf"] if each.get("type") != "null"]
        return " or ".join(dict.fromkeys(kinds))
    if schema.get("type") == "array":
        return f"list of {_type(schema.get('items', {}))}"
    if "$ref" in schema:
        return str(schema["$ref"]).rpartition("/")[2]
    bounds = [f"{word} {schema[key]}" for key, word in _BOUNDS.items() if key in schema]
    kind = str(schema.get("const", schema.get("type", "any value")))
    return ", ".join([kind, *bounds])


_BOUNDS = {"minimum": "from", "maximum": "to", "maxLength": "at most", "maxItems": "at most"}


def _command_line(leaves: Sequence[Leaf]) -> str:
    lines = ["# Command line", "", _MADE, "", *_COMMON, ""]
    for noun in dict.fromkeys(leaf.path[0] for leaf in leaves if not leaf.hidden):
        lines += [f"## {noun}", ""]
        for leaf in leaves:
            if leaf.path[0] == noun and not leaf.hidden:
                lines += _verb(leaf)
    return _joined(lines)


_COMMON = (
    "`--home DIR`, `--workspace NAME` and `-o json|text` go with every verb, before or after it.",
    "",
    "Exit codes: 0 done; 1 ran and failed; 2 typed wrong; 3 denied, or for a person; 4 a person must answer; 5 timed",
    "out; 6 conflict; 7 unavailable.",
)


def _verb(leaf: Leaf) -> Iterator[str]:
    arguments = [each for each in leaf.parameters if _info(each) == "ArgumentInfo"]
    usage = " ".join(["agentstead", *leaf.path, *(_placed(each) for each in arguments)])
    person = " A person's verb." if leaf.path in PERSON else ""
    first = " ".join(inspect.cleandoc(leaf.help).split("\n\nOnly a person")[0].split())
    yield from (f"### `{usage}`", "", f"{first}{person}", "")
    rows = [(f"`{_flag(each)}`", _help(each)) for each in leaf.parameters]
    if rows:
        yield from (*_table(("argument", "what"), rows), "")


def _info(parameter: Parameter) -> str:
    return type(parameter.annotation.__metadata__[0]).__name__


def _placed(parameter: Parameter) -> str:
    name = _flag(parameter) + ("..." if _is_list(parameter) else "")
    return name if parameter.default is Parameter.empty else f"[{name}]"


def _is_list(parameter: Parameter) -> bool:
    kind = parameter.annotation.__origin__
    return get_origin(kind) is list or any(get_origin(each) is list for each in get_args(kind))


def _flag(parameter: Parameter) -> str:
    info = parameter.annotation.__metadata__[0]
    if _info(parameter) == "ArgumentInfo":
        return str(info.metavar or parameter.name.upper())
    declared = [text for text in (info.default, *(info.param_decls or ())) if isinstance(text, str)]
    names = [text for text in declared if text.startswith("-")]
    if names:
        return ", ".join(names)
    flag = parameter.name.replace("_", "-")
    return f"--{flag}/--no-{flag}" if bool in (parameter.annotation.__origin__, *get_args(parameter)) else f"--{flag}"


def _help(parameter: Parameter) -> str:
    return str(parameter.annotation.__metadata__[0].help or "")


def _settings(settings: Sequence[Setting]) -> str:
    head = [
        "# Settings",
        "",
        _MADE,
        "",
        "`config.toml` in the home, and `.agentstead/config.toml` in a workspace for what is marked W. A variable",
        "`AGENTSTEAD_` and the key in capitals (`AGENTSTEAD_LOG_LEVEL`) counts more than files. What is marked P",
        "only a person sets, in the home's file.",
        "",
    ]
    rows = [
        (
            f"`{each.key}`",
            _marks(each),
            _default(each),
            each.expects(),
            each.doc + ("" if each.live else " Next start."),
        )
        for each in settings
    ]
    return _joined([*head, *_table(("key", "", "default", "takes", "what"), rows)])


def _marks(setting: Setting) -> str:
    return "W" if setting.workspace else "P" if setting.person else ""


def _default(setting: Setting) -> str:
    if setting.kind == "bool":
        return f"`{str(setting.default).lower()}`"
    return f"`{setting.default}`" if setting.default not in ((), "") else ""


def _table(names: Sequence[str], rows: Sequence[Sequence[str]]) -> Iterator[str]:
    yield f"| {' | '.join(names)} |"
    yield f"|{'---|' * len(names)}"
    for row in rows:
        yield f"| {' | '.join(_cell(text) for text in row)} |"


def _cell(text: str) -> str:
    return " ".join(text.split()).replace("|", "\\|").replace("\\\\|", "\\|")


def _joined(lines: Sequence[str]) -> str:
    return "\n".join(lines).rstrip() + "\n"
