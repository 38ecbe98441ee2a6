"""Judging SKILL.md: the reference library's cases, our own, and what a lenient reader forgives."""

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from agentstead.skills.diagnostics import REMEDIES, Diagnostic, Severity
from agentstead.skills.document import MAX_SKILL_FILE_BYTES, SkillDocument, judge
from agentstead.skills.validator import validate_folder

VECTORS = Path(__file__).parent / "vectors"


def cases(*names: str) -> list[Any]:
    loaded = [(name, case) for name in names for case in json.loads((VECTORS / f"{name}.json").read_text())["cases"]]
    return [pytest.param(case, id=f"{name}: {case['case']}") for name, case in loaded]


def skill(*lines: str, body: str = "Body\n") -> bytes:
    return ("---\n" + "".join(f"{line}\n" for line in lines) + f"---\n{body}").encode()


def lenient(*lines: str, folder: str = "tides") -> tuple[SkillDocument | None, list[str]]:
    judged = judge(skill(*lines), folder=folder, mode="lenient")
    return judged.document, [f"{each.severity}:{each.code}" for each in judged.diagnostics]


@pytest.mark.parametrize("case", cases("parser", "validator", "ours"))
def test_the_strict_verdict_is_the_listed_one(case: dict[str, Any], tmp_path: Path) -> None:
    folder = tmp_path / case["folder"]
    if isinstance(case["files"], str):
        folder.write_text(case["files"])
    elif case["files"] is not None:
        folder.mkdir()
        for name, text in case["files"].items():
            (folder / name).write_bytes(text.encode())
    verdict = validate_folder(tmp_path, (case["folder"],))
    assert verdict.valid is case["valid"]
    assert sorted({each.code for each in verdict.judged.diagnostics}) == sorted(case["codes"])
    document = verdict.judged.document
    for name, expected in case.get("reads", {}).items():
        read = getattr(document, name)
        assert (list(read) if isinstance(read, tuple) else read) == expected


@pytest.mark.parametrize("case", cases("lenient"))
def test_the_lenient_verdict_is_the_listed_one(case: dict[str, Any]) -> None:
    judged = judge(case["text"].encode(), folder=case["folder"], mode="lenient")
    assert (judged.document is not None) is case["usable"]
    assert sorted({each.code for each in judged.diagnostics}) == case["codes"]
    for name, expected in case.get("reads", {}).items():
        read = getattr(judged.document, name)
        assert (list(read) if isinstance(read, tuple) else read) == expected


@pytest.mark.parametrize("case", cases("parser", "validator", "ours"))
def test_what_is_strictly_valid_is_read_leniently_without_an_error(case: dict[str, Any]) -> None:
    files = case["files"] if isinstance(case["files"], dict) else {}
    text = files.get("SKILL.md", files.get("skill.md"))
    if text is None:
        return
    strict, forgiving = (judge(text.encode(), folder=case["folder"], mode=mode) for mode in ("strict", "lenient"))
    assert strict.valid <= forgiving.valid
    if strict.document is not None:
        assert forgiving.document == strict.document
        assert forgiving.diagnostics == strict.diagnostics


def test_the_reference_has_its_fifteen_and_twenty_one_cases() -> None:
    assert [len(cases(name)) for name in ("parser", "validator")] == [15, 21]


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("name: Tides", "description: d"), "name.case"),
        (("name: other", "description: d"), "name.folder"),
        (("name: " + "t" * 100, "description: d"), "name.length"),
        (("name: tides_now", "description: d"), "name.chars"),
        (("name: tides", "description: " + "w" * 2000), "description.length"),
        (("name: tides", "description: d", "model: large"), "fm.unknown_field"),
        (("name: tides", "description: d", "allowed-tools: [Read, Grep]"), "fm.flow"),
        (("name: tides", "description: d", "metadata:", "  a:", "    - b"), "metadata.type"),
        (("name: tides", "description: Use when: late"), "fm.yaml"),
    ],
)
def test_a_reader_forgives_with_a_warning(lines: tuple[str, ...], code: str) -> None:
    document, remarks = lenient(*lines)
    assert document is not None
    assert f"warning:{code}" in remarks


@pytest.mark.parametrize(
    ("lines", "code"),
    [
        (("description: d",), "name.missing"),
        (("name: tides",), "description.missing"),
        (("name: tides", "description: ' '"), "description.missing"),
        (("name: tides", "description: &a d"), "fm.alias"),
        (("name: tides", "description: !x d"), "fm.tag"),
        (("name: tides", "name: tides", "description: d"), "fm.duplicate_key"),
        (("name: tides", "description: [d"), "fm.yaml"),
        (("name: ../tides", "description: d"), "name.chars"),
        (("name: user:tides", "description: d"), "name.chars"),
        (('name: "a\\u202eb"', "description: d"), "name.chars"),
        (("name: " + "t" * 300, "description: d"), "name.length"),
    ],
)
def test_what_no_reader_forgives(lines: tuple[str, ...], code: str) -> None:
    document, remarks = lenient(*lines)
    assert document is None
    assert f"error:{code}" in remarks


def test_a_lenient_reader_keeps_what_it_can_use() -> None:
    document, _ = lenient(
        "name: tides",
        "description: '  Looks up tides  '",
        "allowed-tools:",
        "  - Read",
        "  - Bash(git log:*)",
        "metadata:",
        "  agentstead.platforms: linux darwin",
        "  io.modelcontextprotocol/x: theirs",
        "  nested:",
        "    a: 1",
        "disable-model-invocation: true",
    )
    assert document is not None
    assert document.description == "Looks up tides"
    assert document.allowed_tools == ("Read", "Bash(git log:*)")
    assert document.metadata == {"agentstead.platforms": "linux darwin", "nested": '{"a": "1"}'}
    assert document.words("platforms") == ("linux", "darwin")
    assert document.user_only


def test_a_byte_order_mark_is_stripped_for_readers() -> None:
    judged = judge(b"\xef\xbb\xbf" + skill("name: tides", "description: d"), folder="tides", mode="lenient")
    assert judged.document is not None
    assert [each.code for each in judged.diagnostics] == ["file.encoding"]


def test_bytes_that_are_no_utf8_name_their_line() -> None:
    judged = judge(skill("name: tides", "description: d") + b"ok\n\xff\n", folder="tides", mode="lenient")
    (remark,) = judged.diagnostics
    assert (judged.document, remark.code, remark.line) == (None, "file.encoding", 7)


def test_a_file_over_one_mebibyte_is_not_read() -> None:
    judged = judge(b"---\n" + b"x" * MAX_SKILL_FILE_BYTES, folder="tides", mode="lenient")
    assert [each.code for each in judged.diagnostics] == ["fm.too_large"]


@pytest.mark.parametrize("body", ["line\n" * 501, "w" * 20_004])
def test_a_long_body_is_a_note(body: str) -> None:
    judged = judge(skill("name: tides", "description: d", body=body), folder="tides", mode="strict")
    assert judged.valid
    assert [(each.code, each.severity, each.line) for each in judged.diagnostics] == [
        ("body.long", Severity.NOTE, 5),
    ]


def test_messages_show_unseen_characters_as_code_points() -> None:
    judged = judge(skill("name: tides", "description: d", '"x\\u200by": 1'), folder="tides", mode="strict")
    assert "x<U+200B>y" in judged.diagnostics[0].message


def test_every_code_has_a_remedy_and_no_other_can_be_used() -> None:
    assert all(remedy.endswith(".") for remedy in REMEDIES.values())
    with pytest.raises(ValueError, match=r"made\.up"):
        Diagnostic("made.up", Severity.ERROR, "x")


FIELD = st.sampled_from(["name", "description", "metadata", "allowed-tools", "license", "hooks", "compatibility"])
VALUE = st.one_of(
    st.text(max_size=20),
    st.sampled_from(
        ["[a, b]", "{a: b}", "&a b", "*a", "|\n  x", "\n  - a", "\n  a: b", "'", '"', "a: b", "!t x", "---"]
    ),
)


@settings(max_examples=400)
@given(st.lists(st.tuples(FIELD, VALUE), max_size=6), st.sampled_from(["strict", "lenient"]))
def test_any_front_matter_gives_a_verdict_with_places(fields: list[tuple[str, str]], mode: Any) -> None:
    data = skill(*(f"{name}: {value}" for name, value in fields)) if fields else b""
    judged = judge(data.replace(b"\xed", b""), folder="tides", mode=mode)
    assert (judged.document is None) == (not judged.valid)
    assert all(each.line > 0 for each in judged.diagnostics)


@settings(max_examples=200)
@given(st.lists(st.tuples(FIELD, VALUE), max_size=6))
def test_whoever_pleases_the_strict_reader_pleases_the_lenient_one(fields: list[tuple[str, str]]) -> None:
    data = skill(*(f"{name}: {value}" for name, value in fields))
    strict, forgiving = (judge(data, folder="tides", mode=mode) for mode in ("strict", "lenient"))
    assert strict.valid <= forgiving.valid
    assert strict.document in (None, forgiving.document)


NEVER_FORGIVEN = {"fm.alias", "fm.tag", "fm.duplicate_key", "fm.unclosed", "name.missing", "description.missing"}


@settings(max_examples=200)
@given(st.lists(st.tuples(FIELD, VALUE), max_size=6))
def test_a_lenient_reader_never_forgives_what_hides_or_lacks(fields: list[tuple[str, str]]) -> None:
    judged = judge(skill(*(f"{name}: {value}" for name, value in fields)), folder="tides", mode="lenient")
    grave = [each for each in judged.diagnostics if each.code in NEVER_FORGIVEN]
    assert all(each.severity is Severity.ERROR for each in grave)
    assert not (grave and judged.document)


@given(st.binary(max_size=200))
def test_any_bytes_give_a_verdict(data: bytes) -> None:
    assert judge(data, folder="tides", mode="strict").diagnostics
