"""Edits of a fork's tree against a plain model: the same sequence of edits gives the same files."""

import base64
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from pydantic import ValidationError

from agentstead.blobs import EMPTY_TREE, BlobStore
from agentstead.state import AgentsteadError, Conflict, Invalid
from agentstead.workspace.contents import Trees
from agentstead.workspace.editing import FileEdit, _edited

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=80)
PATHS = st.sampled_from(["a", "b", "d/a", "d/b", "d/e/a", "x y", "ünï"])
CONTENTS = st.text(max_size=12)
Model = dict[str, tuple[str, bytes, int]]


def writes() -> st.SearchStrategy[dict[str, Any]]:
    text = st.fixed_dictionaries({"path": PATHS, "text": CONTENTS})
    coded = st.fixed_dictionaries(
        {"path": PATHS, "base64": st.binary(max_size=9).map(lambda b: base64.b64encode(b).decode())}
    )
    linked = st.fixed_dictionaries({"path": PATHS, "link": st.text(min_size=1, max_size=5)})
    with_mode = st.fixed_dictionaries({"path": PATHS, "text": CONTENTS, "mode": st.sampled_from(["600", "755"])})
    return st.one_of(text, coded, linked, with_mode)


EDITS = st.lists(st.one_of(writes(), st.fixed_dictionaries({"path": PATHS, "delete": st.just(True)})), max_size=8)


def files_of(store: BlobStore, tree: str) -> Model:
    return {
        path.decode(): (entry.type, store.get("blob", entry.id), entry.mode)
        for path, entry in Trees(store).paths(tree)
        if entry.type != "d"
    }


def model_after(model: Model, edits: list[dict[str, Any]]) -> Model | None:
    """Apply edits to a dict; None where one of them deletes what is not there."""
    files = dict(model)
    for edit in edits:
        path = edit["path"]
        if edit.get("delete"):
            if path not in files:
                return None
            del files[path]
            continue
        kept = files[path][2] if path in files and files[path][0] == "f" else 0o644
        mode = int(edit["mode"], 8) if "mode" in edit else kept
        if "link" in edit:
            files[path] = ("l", edit["link"].encode(), 0)
        else:
            data = edit["text"].encode() if "text" in edit else base64.b64decode(edit["base64"])
            files[path] = ("f", data, mode)
    return files


def edit_tree(store: BlobStore, tree: str, edits: list[dict[str, Any]], patch: str | None = None) -> str:
    return _edited(store, tree, [FileEdit.model_validate(edit) for edit in edits], patch)


@REUSED
@given(first=EDITS, second=EDITS)
def test_edits_do_what_a_dict_would_do_or_nothing(
    first: list[dict[str, Any]], second: list[dict[str, Any]], store: BlobStore
) -> None:
    tree, model = EMPTY_TREE, Model()
    for edits in (first, second):
        expected = model_after(model, edits)
        if expected is None:
            with pytest.raises(Invalid, match="there is nothing at"):
                edit_tree(store, tree, edits)
            continue
        tree, model = edit_tree(store, tree, edits), expected
        assert files_of(store, tree) == model


@pytest.mark.parametrize(
    ("patch", "words"),
    [
        ("--- a/none\n+++ b/none\n@@ -1 +1 @@\n-x\n+y\n", "the file is not there"),
        ("--- /dev/null\n+++ b/f\n@@ -0,0 +1 @@\n+y\n", "there already"),
        ("--- a/f\n+++ b/f\n@@ -1 +1 @@\n-other\n+y\n", "not in the file"),
        ("--- a/f\n+++ /dev/null\n@@ -1 +0,0 @@\n-one\n", "holds more than the patch removes"),
        ("--- a/d\n+++ b/d\n@@ -1 +1 @@\n-x\n+y\n", "the file is not there"),
        ("diff --git a/none b/moved\nrename from none\nrename to moved\n", "the file is not there"),
    ],
)
def test_a_patch_that_does_not_fit_says_why(store: BlobStore, patch: str, words: str) -> None:
    tree = edit_tree(store, EMPTY_TREE, [{"path": "f", "text": "one\ntwo\n"}, {"path": "d/x", "text": "x"}])

    with pytest.raises(Conflict, match=words):
        edit_tree(store, tree, [], patch)


def test_a_patch_can_create_rename_delete_and_set_modes(store: BlobStore) -> None:
    tree = edit_tree(
        store,
        EMPTY_TREE,
        [
            {"path": "old", "text": "1\n2\n3\n"},
            {"path": "gone", "text": "x\n"},
            {"path": "tool", "text": "run\n", "mode": "640"},
            {"path": "ln", "link": "old"},
        ],
    )
    patch = (
        "diff --git a/old b/new\nrename from old\nrename to new\n--- a/old\n+++ b/new\n@@ -2 +2 @@\n-2\n+II\n"
        "diff --git a/gone b/gone\ndeleted file mode 100644\n--- a/gone\n+++ /dev/null\n@@ -1 +0,0 @@\n-x\n"
        "diff --git a/tool b/tool\nold mode 100644\nnew mode 100755\n"
        "diff --git a/made b/made\nnew file mode 120000\n--- /dev/null\n+++ b/made\n@@ -0,0 +1 @@\n+target\n"
        "\\ No newline at end of file\n"
        "diff --git a/ln b/ln\n--- a/ln\n+++ b/ln\n@@ -1 +1 @@\n-old\n\\ No newline at end of file\n+new\n"
        "\\ No newline at end of file\n"
    )

    files = files_of(store, edit_tree(store, tree, [], patch))

    assert files == {
        "new": ("f", b"1\nII\n3\n", 0o644),
        "tool": ("f", b"run\n", 0o755),
        "made": ("l", b"target", 0),
        "ln": ("l", b"new", 0),
    }


def test_files_and_a_patch_in_one_write_see_each_other(store: BlobStore) -> None:
    tree = edit_tree(
        store,
        EMPTY_TREE,
        [{"path": "f", "text": "before\n"}],
        "--- a/f\n+++ b/f\n@@ -1 +1 @@\n-before\n+after\n",
    )

    assert files_of(store, tree) == {"f": ("f", b"after\n", 0o644)}


def test_nothing_of_a_refused_write_is_stored(store: BlobStore) -> None:
    with pytest.raises(AgentsteadError):
        edit_tree(store, EMPTY_TREE, [{"path": "a", "text": "never kept"}, {"path": "b", "delete": True}])

    assert [key for key, _ in store.layout.stored()] == []


@pytest.mark.parametrize(
    "path",
    [
        ".git/config",
        "sub/.git/hooks/x",
        "node_modules/a",
        ".venv/bin/python",
        ".env",
        "d/.env.local",
        "key.pem",
        ".ssh/id",
    ],
)
def test_a_path_that_no_snapshot_stores_is_refused_because_it_would_be_lost(store: BlobStore, path: str) -> None:
    for edit in ({"path": path, "text": "x"}, {"path": path, "link": "x"}):
        with pytest.raises(Invalid, match="no snapshot stores"):
            edit_tree(store, EMPTY_TREE, [edit])
    with pytest.raises(Invalid, match="no snapshot stores"):
        edit_tree(store, EMPTY_TREE, [], f"--- /dev/null\n+++ b/{path}\n@@ -0,0 +1 @@\n+x\n")


@pytest.mark.parametrize(
    "wrong", [{}, {"path": "a"}, {"path": "a", "text": "", "link": "b"}, {"path": "a", "mode": "9"}]
)
def test_an_edit_says_exactly_one_thing(wrong: dict[str, Any]) -> None:
    with pytest.raises(ValidationError):
        FileEdit.model_validate(wrong)


def test_the_model_that_edits_are_held_against_is_right_itself() -> None:
    assert model_after({}, [{"path": "a", "delete": True}]) is None
    assert model_after({}, [{"path": "a", "text": "x"}]) == {"a": ("f", b"x", 0o644)}
