"""Patches: `git apply` and `patch` make the new tree of ours, ours of git's, and nothing else is accepted."""

import base64
import os
import shutil
import subprocess
import zlib
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, example, given, settings
from hypothesis import strategies as st

from agentstead.blobs import BlobStore
from agentstead.state import Conflict, Invalid
from agentstead.workspace.changes import changes, with_renames
from agentstead.workspace.contents import Trees
from agentstead.workspace.hunks import Hunk, apply_hunks
from agentstead.workspace.patch import parse_patch
from agentstead.workspace.unified import file_patch, quoted
from tests.workspace.conftest import Walk
from tests.workspace.directories import LINKS, NAMES, File, Folder, Link, Node, empty, make, seen

REUSED = settings(suppress_health_check=[HealthCheck.function_scoped_fixture], deadline=None, max_examples=40)
TEXTS = st.lists(st.sampled_from([b"x\n", b"y\n", b"long line\n", b"\n", b"no end"]), max_size=9).map(b"".join)
BINARIES = st.binary(min_size=1, max_size=200).map(lambda data: b"\0" + data)
LEAVES = st.one_of(st.builds(File, st.one_of(TEXTS, BINARIES), st.sampled_from([0o644, 0o755])), LINKS)
# `git apply` takes no name with a newline in an unquoted place and no empty directory: one level of files is enough.
TREES = st.dictionaries(NAMES, LEAVES, max_size=5)
PatchOf = Callable[[Folder, Folder], bytes]

needs_git = pytest.mark.skipif(shutil.which("git") is None, reason="git is not installed")
needs_patch = pytest.mark.skipif(shutil.which("patch") is None, reason="patch is not installed")
GIT_ENVIRONMENT = {**os.environ, "GIT_CONFIG_NOSYSTEM": "1", "GIT_CONFIG_GLOBAL": "/dev/null"}


def git(directory: Path, *arguments: str, given: bytes = b"") -> bytes:
    done = subprocess.run(
        ["git", *arguments],
        cwd=directory,
        input=given,
        capture_output=True,
        env=GIT_ENVIRONMENT,
        check=False,
        umask=0o022,
    )
    assert done.returncode in {0, 1}, done.stderr.decode()
    assert not done.stderr.startswith(b"error"), done.stderr.decode()
    return done.stdout


@pytest.fixture
def patch_of(tmp_path: Path, walk_at: Walk, store: BlobStore) -> PatchOf:
    def tree_of(folder: Folder) -> str:
        root = empty(tmp_path / "made")
        make(folder, root)
        return walk_at(root).tree

    def run(old: Folder, new: Folder) -> bytes:
        before, after = (tree_of(folder) for folder in (old, new))
        found = with_renames(changes(Trees(store), before, after))
        parts = [file_patch(change, lambda blob: store.get("blob", blob)) for change in found]
        return b"".join(segment for part in parts for segment in part.segments)

    return run


def patched(folder: Folder, text: bytes) -> Folder:
    """Apply a patch to data by our own reader."""
    names: dict[bytes, Node] = dict(folder.names)
    for file in parse_patch(text) if text else []:
        old = folder.names.get(file.old_path or b"")
        content = old.data if isinstance(old, File) else old.target if isinstance(old, Link) else b""
        if file.old_path is not None and (file.renamed or file.deleted) and names.get(file.old_path) == old:
            del names[file.old_path]
        if file.new_path is None:
            continue
        data = file.literal if file.literal is not None else apply_hunks(file.path, file.hunks, content)
        kept = (
            b"120000" if isinstance(old, Link) else b"100755" if isinstance(old, File) and old.mode & 1 else b"100644"
        )
        mode = file.mode or kept
        names[file.new_path] = Link(data) if mode == b"120000" else File(data, int(mode[3:], 8))
    return Folder(names)


@needs_git
@REUSED
@given(old=TREES, new=TREES)
@example(old={b"a": File(b"x\n")}, new={b"a": Link(b"x\n")})
@example(old={b"sp ace": File(b"x\n")}, new={b"sp ace": File(b"y\n", 0o755)})
@example(old={b"moved": File(b"x\n")}, new={b"to here": File(b"x\n", 0o755)})
def test_git_makes_the_new_tree_of_our_patch(
    old: dict[bytes, Node], new: dict[bytes, Node], tmp_path: Path, patch_of: PatchOf
) -> None:
    text = patch_of(Folder(old), Folder(new))
    root = empty(tmp_path / "git")
    make(Folder(old), root)

    if text:
        git(root, "apply", "--whitespace=nowarn", "-", given=text)

    assert seen(root) == Folder(new)


@REUSED
@given(old=TREES, new=TREES)
def test_we_make_the_new_tree_of_our_own_patch(
    old: dict[bytes, Node], new: dict[bytes, Node], patch_of: PatchOf
) -> None:
    assert patched(Folder(old), patch_of(Folder(old), Folder(new))) == Folder(new)


@needs_git
@REUSED
@given(old=TREES, new=TREES)
def test_we_make_the_new_tree_of_gits_patch(old: dict[bytes, Node], new: dict[bytes, Node], tmp_path: Path) -> None:
    for name, folder in ((b"a", old), (b"b", new)):
        make(Folder(folder), empty(tmp_path / "pair" / name.decode()))
    text = git(
        tmp_path / "pair", "diff", "--binary", "--no-index", "--no-renames", "--src-prefix=", "--dst-prefix=", "a", "b"
    )

    assert patched(Folder(old), text) == Folder(new)


@needs_patch
def test_patch_makes_the_new_tree_of_our_patch(tmp_path: Path, patch_of: PatchOf) -> None:
    old = Folder({b"a b": File(b"1\n2\n3\n4\n5\n6\n7\n8\n9\n"), b"gone": File(b"x\n"), b"end": File(b"no end")})
    new = Folder({b"a b": File(b"1\nII\n3\n4\n5\n6\n7\n8\n9\nX\n"), b"come": File(b"y\n"), b"end": File(b"no end!")})
    root = empty(tmp_path / "patch")
    make(old, root)

    subprocess.run(["patch", "-p1", "-s"], cwd=root, input=patch_of(old, new), check=True, timeout=60)

    assert seen(root) == new


def test_a_small_change_reads_as_everybody_writes_it(patch_of: PatchOf) -> None:
    old, new = (b"".join(b"%d\n" % n for n in range(1, 31)).replace(b"15\n", middle) for middle in (b"15\n", b"XV\n"))

    text = patch_of(Folder({b"f": File(old)}), Folder({b"f": File(new)}))

    assert (
        text
        == b"""diff --git a/f b/f
--- a/f
+++ b/f
@@ -12,7 +12,7 @@
 12
 13
 14
-15
+XV
 16
 17
 18
"""
    )


def test_a_hunk_that_moved_is_found_and_one_that_differs_is_refused() -> None:
    hunk = Hunk(1, [b"b\n"], [b"B\n"])

    assert apply_hunks(b"f", [hunk], b"new\nnew\na\nb\n") == b"new\nnew\na\nB\n"
    assert apply_hunks(b"f", [hunk], b"b\nx\nb\n") == b"B\nx\nb\n"
    with pytest.raises(Conflict, match=r"patch\.rejected: hunk 1 of 'f'") as caught:
        apply_hunks(b"f", [hunk], b"a\nc\n")
    assert caught.value.details == {"path": "f", "hunk": 1, "reason": "its lines are not in the file"}


def test_a_second_hunk_moves_with_the_first() -> None:
    lines = b"".join(b"%d\n" % n for n in range(10))
    hunks = [Hunk(2, [b"2\n"], [b"2\n", b"new\n"]), Hunk(7, [b"7\n"], [])]

    assert apply_hunks(b"f", hunks, b"before\n" + lines) == b"before\n0\n1\n2\nnew\n3\n4\n5\n6\n8\n9\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (b"", "names no file"),
        (b"just words\n", "names no file"),
        (b"--- a/f\n+++ b/f\n@@ -1,2 +1 @@\n a\n", "ends within a file"),
        (b"--- a/f\n+++ b/f\n@@ -1,2 +1,2 @@\n a\n?b\n", "shorter than its header"),
        (b"--- a/f\n+++ b/f\n@@ -1,1 +1,2 @@\n a\n-b\n+c\n", "longer than its header"),
        (b"diff --git a/f b/f\nindex 1..2\nBinary files a/f and b/f differ\n", "without its content"),
        (b"diff --git a/f b/f\nGIT binary patch\ndelta 3\nzcmV\n\n", "no literal block"),
        (b"diff --git a/f b/f\nGIT binary patch\nliteral 3\nzcmV\n\n", "another size"),
        (b"diff --git a/f b/g h\n", "told apart"),
        (b"--- /dev/null\n+++ /dev/null\n@@ -0,0 +1 @@\n+a\n", "has no name"),
    ],
)
def test_a_patch_that_cannot_be_read_is_refused_with_its_line(text: bytes, words: str) -> None:
    with pytest.raises(Invalid, match=words) as caught:
        parse_patch(text)
    assert caught.value.code == "patch.invalid"


@pytest.mark.parametrize("name", [b"../up", b"/etc/passwd", b"a/../../b", b"a//b", b'"a/..\\057x"'])
def test_a_patch_cannot_name_a_path_outside(name: bytes) -> None:
    with pytest.raises(Invalid, match=r"path\.invalid"):
        parse_patch(b"--- /dev/null\n+++ " + name + b"\n@@ -0,0 +1 @@\n+a\n")


@given(st.binary(max_size=300))
def test_no_bytes_crash_the_reader(text: bytes) -> None:
    with suppress(Invalid):
        parse_patch(text)


def test_a_binary_bomb_is_cut_off() -> None:
    packed = zlib.compress(b"\0" * 50_000_000)[:52]
    line = bytes([len(packed) + ord("a") - 27]) + base64.b85encode(packed)

    with pytest.raises(Invalid, match="16 MiB"):
        parse_patch(b"diff --git a/f b/f\nGIT binary patch\nliteral 50000000\n" + line + b"\n\n")


def test_a_large_binary_is_a_stub_with_its_ids(patch_of: PatchOf) -> None:
    big = b"\0" + os.urandom(70_000)

    text = patch_of(Folder(), Folder({b"big": File(big)}))

    assert text.startswith(b"diff --git a/big b/big\nnew file mode 100644\nBinary files differ: blob:none and blob:")
    with pytest.raises(Invalid, match="without its content"):
        parse_patch(text)


def test_names_are_quoted_as_git_quotes_them() -> None:
    assert quoted(b"a/", b"plain name") == b"a/plain name"
    assert quoted(b"a/", b'q"\\\t\xff') == b'"a/q\\"\\\\\\t\\377"'
