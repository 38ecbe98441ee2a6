"""Names of skills: one normal form, one key, and the scripts that deceive."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from agentstead.skills.naming import is_usable, name_faults, name_key, normal_name


def codes(name: str, folder: str | None = None) -> list[str]:
    return [code for code, _ in name_faults(name, folder=name if folder is None else folder)]


@pytest.mark.parametrize("name", ["a", "tide-tables", "x2", "潮汐", "приливы", "marée", "日本語ガイド", "react와-vue"])
def test_good_names_have_no_fault(name: str) -> None:
    assert codes(name) == []


@pytest.mark.parametrize(
    ("name", "expected"),
    [
        ("Tides", ["name.case"]),
        ("-a", ["name.hyphen"]),
        ("a-", ["name.hyphen"]),
        ("a--b", ["name.hyphen"]),
        ("a b", ["name.chars"]),
        ("a/b", ["name.chars"]),
        ("a" * 65, ["name.length"]),
        ("p\u0430ypal", ["name.mixed_script"]),
        ("\u03b1bc", ["name.mixed_script"]),
    ],
)
def test_each_fault_has_its_code(name: str, expected: list[str]) -> None:
    assert codes(name) == expected


def test_folder_and_name_are_compared_in_one_form() -> None:
    assert codes(normal_name("mare\u0301e"), "mare\u0301e") == []
    assert codes("tides", "moon") == ["name.folder"]


def test_names_that_differ_in_case_or_form_have_one_key() -> None:
    assert len({name_key(name) for name in ("Tides", "tides", "\uff34ides", " tides ")}) == 1


@pytest.mark.parametrize("name", ["../x", "a/b", "a:b", "a\nb", "a\u202eb", ".", "..", "x" * 300, "a\x00b", "a%b"])
def test_a_name_that_could_mislead_a_path_or_an_address_is_unusable(name: str) -> None:
    assert not is_usable(name)


@pytest.mark.parametrize("name", ["My Skill", "a_b.c", "हिन्दी"])
def test_a_name_that_only_breaks_style_is_usable(name: str) -> None:
    assert is_usable(name)


@given(st.text(max_size=80).filter(is_usable))
def test_the_key_of_a_key_is_itself(name: str) -> None:
    assert name_key(name_key(name)) == name_key(name)
