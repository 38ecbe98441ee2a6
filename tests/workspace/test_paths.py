"""Paths and classes: bytes survive their text form, nothing leads outside, and each name falls into one class."""

import base64
import hashlib
from contextlib import suppress

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.state import Invalid
from agentstead.workspace import paths
from agentstead.workspace.classes import (
    POLICY_BODY,
    POLICY_ID,
    PathClass,
    class_of_directory,
    class_of_file,
    is_marked_derived,
    is_own,
)

BYTE_NAMES = st.lists(st.sampled_from([b for b in range(1, 256) if b != ord("/")]), min_size=1, max_size=8).map(bytes)
PATHS = st.lists(BYTE_NAMES.filter(lambda name: name not in {b".", b".."}), min_size=1, max_size=4).map(b"/".join)


@given(PATHS)
def test_a_path_survives_its_text_form_and_its_base64(path: bytes) -> None:
    text = paths.shown(path)

    assert text.isprintable()
    assert paths.encoded(path) in (None, base64.b64encode(path).decode())
    if not paths._DRIVE.match(path):
        assert paths.given(text) == path
        assert paths.given_base64(base64.b64encode(path).decode()) == path


@given(PATHS)
def test_base64_is_given_only_where_the_text_shows_escapes(path: bytes) -> None:
    assert (paths.encoded(path) is None) == (paths.shown(path).encode() == path)


@given(st.text(max_size=30))
def test_whatever_a_caller_types_is_a_path_inside_or_refused(text: str) -> None:
    path = b"refused"
    with suppress(Invalid):
        path = paths.given(text)
    names = path.split(b"/")
    assert names
    assert not {b"", b".", b".."} & set(names)
    assert b"\0" not in path
    assert not path.startswith(b"/")


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("", "is empty"),
        ("/etc/passwd", "is absolute"),
        ("C:/Windows", "is absolute"),
        ("c:\\Windows", "is absolute"),
        ("a/../b", "component"),
        ("..", "component"),
        ("./a", "component"),
        ("a//b", "component"),
        ("a/", "component"),
        ("a\\x00b", "NUL"),
        ("\\x2e\\x2e/up", "component"),
        ("\\x2fetc", "is absolute"),
        ("n" * 256, "too long"),
        ("a/" * 256 + "a", "too long"),
        ("/".join(["n" * 200] * 21), "too long"),
    ],
)
def test_a_path_that_could_lead_outside_says_why_it_is_refused(text: str, words: str) -> None:
    with pytest.raises(Invalid, match=words):
        paths.given(text)


def test_a_text_that_is_no_base64_is_refused() -> None:
    with pytest.raises(Invalid, match="no base64"):
        paths.given_base64("***")


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (b"plain", "plain"),
        (b"with space", "with space"),
        ("grüße".encode(), "grüße"),
        (b"new\nline", "new\\x0aline"),
        (b"back\\slash", "back\\x5cslash"),
        (b"\xff", "\\xff"),
        (b"\\x41", "\\x5cx41"),
        ("\u202eevil".encode(), "\\xe2\\x80\\xaeevil"),
    ],
)
def test_what_cannot_be_printed_is_shown_as_escapes(path: bytes, text: str) -> None:
    assert paths.shown(path) == text
    assert paths.given(text) == path


def test_being_within_a_directory_is_about_components_and_not_about_letters() -> None:
    assert paths.is_within(b"a/b", [b"a"])
    assert paths.is_within(b"a", [b"a"])
    assert not paths.is_within(b"ab", [b"a"])
    assert not paths.is_within(b"a", [b"a/b"])
    assert (paths.parent(b"a/b/c"), paths.parent(b"a"), paths.join(b"", b"a"), paths.join(b"a", b"b")) == (
        b"a/b",
        b"",
        b"a",
        b"a/b",
    )


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        (".env", "secret"),
        (".env.local", "secret"),
        (".env.example", "content"),
        (".env.local.sample", "content"),
        (".env.template", "content"),
        (".env.dist", "content"),
        (".environment", "content"),
        ("env", "content"),
        ("server.pem", "secret"),
        ("server.pem.txt", "content"),
        ("private.key", "secret"),
        ("keyboard", "content"),
        ("id_rsa", "secret"),
        ("id_rsa.pub", "content"),
        ("id_ed25519_work", "secret"),
        ("id_ecdsa.pub", "content"),
        (".netrc", "secret"),
        ("credentials.json", "secret"),
        ("my-credentials.json", "content"),
        ("store.p12", "secret"),
        ("vault.kdbx", "secret"),
        ("README.md", "content"),
    ],
)
def test_a_file_is_secret_by_its_name_alone(name: str, expected: PathClass) -> None:
    assert class_of_file(name.encode()) == expected


@pytest.mark.parametrize(
    ("name", "siblings", "expected"),
    [
        (".git", (), "vcs"),
        (".hg", (), "vcs"),
        (".jj", (), "vcs"),
        ("git", (), "content"),
        ("node_modules", (), "derived"),
        ("__pycache__", (), "derived"),
        (".venv", (), "derived"),
        (".mypy_cache", (), "derived"),
        ("target", ("Cargo.toml",), "derived"),
        ("target", ("pom.xml",), "content"),
        (".ssh", (), "secret"),
        (".aws", (), "secret"),
        ("aws", (), "content"),
        ("src", (), "content"),
    ],
)
def test_a_directory_has_its_class_by_name_and_by_what_lies_beside_it(
    name: str, siblings: tuple[str, ...], expected: PathClass
) -> None:
    assert class_of_directory(name.encode(), [each.encode() for each in siblings]) == expected


@pytest.mark.parametrize(
    ("directory", "name", "own"),
    [
        (b".agentstead", b"workspace.json", True),
        (b".agentstead", b".workspace.json.4711", True),
        (b".agentstead", b"fork.json", True),
        (b".agentstead", b"stage", True),
        (b".agentstead", b"trash", True),
        (b".agentstead", b"probe", True),
        (b".agentstead", b".gitignore", True),
        (b".agentstead", b"checks.toml", False),
        (b"sub/.agentstead", b"workspace.json", False),
        (b"", b"workspace.json", False),
        (b".agentstead/stage", b"workspace.json", False),
    ],
)
def test_our_own_files_are_those_at_the_top_alone(directory: bytes, name: bytes, own: bool) -> None:
    assert is_own(directory, name) is own


def test_a_directory_can_say_itself_that_it_is_derived() -> None:
    assert is_marked_derived([b"a", b"CACHEDIR.TAG"])
    assert is_marked_derived([b"pyvenv.cfg"])
    assert not is_marked_derived([b"cachedir.tag", b"pyvenv"])


def test_the_rules_are_named_by_the_digest_of_their_text() -> None:
    assert hashlib.sha256(POLICY_BODY.encode()).hexdigest() == POLICY_ID
