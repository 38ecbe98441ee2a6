"""The tree reads common options before and after the verb, loads what is named, and ends with documented codes."""

from collections.abc import Callable, Mapping
from inspect import Parameter
from pathlib import Path
from typing import Annotated, Any

import pytest
import typer

from agentstead.cli import front, leaves
from agentstead.cli.leaves import Leaf
from agentstead.cli.terminal import Terminal
from agentstead.cli.tree import named_words
from agentstead.state import Conflict, Denied, PendingAnswer, Unavailable

from .conftest import Ran, Run

Seen = list[tuple[Terminal, Mapping[str, Any]]]


def argument(name: str) -> Parameter:
    annotation = Annotated[str, typer.Argument(help=f"The {name}.")]
    return Parameter(name, Parameter.KEYWORD_ONLY, annotation=annotation)


@pytest.fixture
def seen(monkeypatch: pytest.MonkeyPatch) -> Seen:
    """Put one noun of three verbs, one of them three words deep, in the place of the real ones."""
    calls: Seen = []

    def run(terminal: Terminal, typed: Mapping[str, Any]) -> int:
        calls.append((terminal, typed))
        terminal.show({"typed": dict(typed)})
        return 0

    workspace = Parameter(
        "workspace", Parameter.KEYWORD_ONLY, default=None, annotation=Annotated[str | None, typer.Option(help="Which.")]
    )
    made = [
        Leaf(("task", "show"), "Show one.", [argument("ref")], run),
        Leaf(("task", "open"), "Open one.", [workspace], run),
        Leaf(("task", "links", "list"), "List links.", [], run),
    ]
    monkeypatch.setattr(leaves, "leaves_of", lambda noun: made if noun == "task" else [])
    return calls


@pytest.mark.parametrize(
    "line",
    [
        "--home H --workspace W -o json task show x",
        "task --home H --workspace W -o json show x",
        "task show x --home H --workspace W -o json",
        "task show --home=H --workspace=W --output=json x",
        "--home H task --workspace W show x -o json",
    ],
)
def test_common_options_stand_anywhere(run: Run, seen: Seen, line: str, tmp_path: Path) -> None:
    ran = run(*line.split())
    assert ran == Ran(0, '{"typed":{"ref":"x"}}\n', "")
    ((terminal, _),) = seen
    assert (terminal.home, terminal.workspace, terminal.form) == (tmp_path / "H", "W", "json")


def test_what_is_said_behind_the_verb_counts_more_than_what_is_said_before(
    run: Run, seen: Seen, tmp_path: Path
) -> None:
    run("--home", "A", "--workspace", "A", "task", "show", "x", "--home", "B", "--workspace", "B")
    assert (seen[0][0].home, seen[0][0].workspace) == (tmp_path / "B", "B")


def test_the_workspace_goes_to_an_operation_that_asks_for_one(run: Run, seen: Seen) -> None:
    run("--workspace", "W", "task", "open")
    run("task", "open", "--workspace", "V")
    run("task", "open")
    assert [typed["workspace"] for _, typed in seen] == ["W", "V", None]


@pytest.mark.parametrize("typed", [".", "./sub/..", "~/here"])
def test_a_workspace_that_is_meant_by_a_path_is_made_absolute(
    run: Run, seen: Seen, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, typed: str
) -> None:
    monkeypatch.setenv("HOME", str(tmp_path))
    run("task", "open", "--workspace", typed)
    assert seen[0][1]["workspace"] == str(tmp_path / "here" if "here" in typed else tmp_path)


def test_a_verb_may_be_three_words_deep(run: Run, seen: Seen) -> None:
    assert run("task", "links", "list", "-o", "json").out == '{"typed":{}}\n'


def test_help_of_a_noun_lists_its_verbs_and_that_of_a_verb_its_arguments(run: Run, seen: Seen) -> None:
    noun = run("task", "--help")
    assert noun.code == 0
    assert [verb in noun.out for verb in ("show", "open", "links")] == [True, True, True]
    verb = run("task", "show", "--help")
    assert "The ref." in verb.out
    assert "--workspace" in verb.out
    assert seen == []


@pytest.mark.parametrize(
    ("line", "what"),
    [
        ("nonsense", "No such command 'nonsense'"),
        ("task nonsense", "No such command 'nonsense'"),
        ("task show", "Missing argument 'ref'"),
        ("task show x --nonsense", "No such option: --nonsense"),
        ("task show x -o yaml", "'yaml' is not one of"),
        ("task show x y", "unexpected extra argument"),
    ],
)
def test_what_was_typed_wrong_ends_with_2_and_says_what(run: Run, seen: Seen, line: str, what: str) -> None:
    ran = run(*line.split())
    assert ran.code == 2
    assert ran.out == ""
    assert ran.err.startswith("tool.invalid_arguments: ")
    assert what in ran.err
    assert "--help'." in ran.err
    assert seen == []


def test_a_usage_error_is_json_where_json_is_wanted(run: Run, seen: Seen) -> None:
    ran = run("task", "show", "-o", "json")
    assert (ran.code, ran.err) == (2, "")
    assert ran.json["error"]["code"] == "tool.invalid_arguments"


def test_a_noun_without_a_verb_shows_its_help_and_ends_with_2(run: Run, seen: Seen) -> None:
    ran = run("task")
    assert ran.code == 2
    assert "show" in ran.err


@pytest.mark.parametrize(
    ("error", "code"),
    [
        (Denied("permission.denied", "No.", remedy="Ask."), 3),
        (PendingAnswer("permission.pending", "Wait.", remedy="Ask."), 4),
        (Conflict("version.conflict", "Moved.", remedy="Ask."), 6),
        (Unavailable("coordinator.lost", "Gone.", remedy="Ask."), 7),
    ],
)
def test_an_error_goes_to_standard_error_or_into_the_json(
    run: Run, monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    monkeypatch.setattr(leaves, "leaves_of", lambda _noun: [Leaf(("task", "show"), "", [], raising(error))])
    text = run("task", "show")
    assert (text.code, text.out, text.err) == (code, "", f"{error}\n")
    compact = run("task", "show", "-o", "json")
    assert (compact.code, compact.err) == (code, "")
    assert compact.json["error"]["remedy"] == "Ask."
    assert set(compact.json["error"]) == {"code", "message", "remedy", "retryable", "details"}


def raising(error: BaseException) -> Callable[..., int]:
    def run(_terminal: Terminal, _typed: Mapping[str, Any]) -> int:
        raise error

    return run


SECRET = "ghp_" + "k3Yx" * 9


@pytest.mark.parametrize(
    "line",
    [["task", "show", "x", "-o", SECRET], ["task", SECRET], ["config", "set", "log.level", SECRET]],
)
@pytest.mark.parametrize("form", [[], ["--output=json"]])
def test_a_secret_that_was_typed_in_the_wrong_place_is_not_repeated(run: Run, line: list[str], form: list[str]) -> None:
    ran = run(*form, *line)
    assert ran.code != 0
    assert ran.out + ran.err
    assert SECRET not in ran.out + ran.err


def test_an_interrupt_ends_with_130(run: Run, monkeypatch: pytest.MonkeyPatch) -> None:
    leaf = Leaf(("task", "show"), "", [], raising(KeyboardInterrupt()))
    monkeypatch.setattr(leaves, "leaves_of", lambda _noun: [leaf])
    assert run("task", "show").code == 130


def test_a_fault_of_ours_is_one_line_and_its_place_is_shown_on_demand(
    run: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    leaf = Leaf(("task", "show"), "", [], raising(RuntimeError("odd")))
    monkeypatch.setattr(leaves, "leaves_of", lambda _noun: [leaf])
    with pytest.raises(RuntimeError, match="odd"):
        run("task", "show")
    monkeypatch.delenv("AGENTSTEAD_TRACEBACK")
    ran = run("task", "show")
    assert ran.code == 1
    assert ran.err.startswith("RuntimeError: odd (a fault of Agentstead; AGENTSTEAD_TRACEBACK=1 shows")


@pytest.mark.parametrize(
    ("line", "words"),
    [
        ("", []),
        ("--help", []),
        ("task show x", ["task", "show", "x"]),
        ("--home H -o json task --workspace W show", ["task", "show"]),
        ("--home=H task", ["task"]),
        ("task -- show", ["task"]),
    ],
)
def test_the_words_of_a_line_are_told_from_options_and_their_values(line: str, words: list[str]) -> None:
    assert named_words(line.split()) == words


def test_a_shell_completes_nouns_and_verbs(
    monkeypatch: pytest.MonkeyPatch, seen: Seen, home_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert "task" in completed(monkeypatch, capsys, "agentstead ta")
    assert set(completed(monkeypatch, capsys, "agentstead task ")) >= {"show", "open", "links"}
    assert completed(monkeypatch, capsys, "agentstead task sh") == ["show"]


@pytest.mark.parametrize("shell", ["zsh", "fish"])
def test_other_shells_complete_too(
    monkeypatch: pytest.MonkeyPatch, seen: Seen, home_path: Path, capsys: pytest.CaptureFixture[str], shell: str
) -> None:
    monkeypatch.setenv("_AGENTSTEAD_COMPLETE", f"complete_{shell}")
    monkeypatch.setenv("_TYPER_COMPLETE_FISH_ACTION", "get-args")
    monkeypatch.setenv("_TYPER_COMPLETE_ARGS", "agentstead task sh")
    with pytest.raises(SystemExit):
        front.run([])
    out = capsys.readouterr().out
    assert "show" in out
    assert "open" not in out.replace("Show one.", "")


def completed(monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str], typed: str) -> list[str]:
    words = typed.split()
    monkeypatch.setenv("_AGENTSTEAD_COMPLETE", "complete_bash")
    monkeypatch.setenv("COMP_WORDS", typed)
    monkeypatch.setenv("COMP_CWORD", str(len(words) if typed.endswith(" ") else len(words) - 1))
    with pytest.raises(SystemExit):
        front.run([])
    return capsys.readouterr().out.split()
