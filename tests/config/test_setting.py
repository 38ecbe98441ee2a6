"""A declared setting accepts what fits its kind and bounds, and says what it expects."""

import pytest

from agentstead.config import Setting

INT = Setting(key="a.int", kind="int", default=3, least=1, most=9, doc="")
FLOAT = Setting(key="a.float", kind="float", default=0.5, least=0, most=1, doc="")
BOOL = Setting(key="a.bool", kind="bool", default=True, doc="")
TEXT = Setting(key="a.text", kind="text", default="x", most=5, doc="")
CHOICE = Setting(key="a.choice", kind="text", default="low", choices=("low", "mid", "high"), doc="")
TEXTS = Setting(key="a.texts", kind="texts", default=(), most=2, doc="")


@pytest.mark.parametrize(
    ("setting", "value", "accepted"),
    [
        (INT, 1, 1),
        (INT, 9, 9),
        (FLOAT, 1, 1.0),
        (FLOAT, 0.25, 0.25),
        (BOOL, False, False),
        (TEXT, "", ""),
        (CHOICE, "mid", "mid"),
        (TEXTS, ["a", "b"], ("a", "b")),
        (TEXTS, (), ()),
    ],
)
def test_a_value_that_fits_is_accepted_in_its_kind(setting: Setting, value: object, accepted: object) -> None:
    assert setting.accept(value) == accepted
    assert type(setting.accept(value)) is type(accepted)


@pytest.mark.parametrize(
    ("setting", "value", "expected"),
    [
        (INT, 0, "a whole number from 1 to 9"),
        (INT, 10, "a whole number from 1 to 9"),
        (INT, "3", "a whole number from 1 to 9"),
        (INT, True, "a whole number from 1 to 9"),
        (FLOAT, 1.5, "a number from 0 to 1"),
        (FLOAT, False, "a number from 0 to 1"),
        (BOOL, 1, "true or false"),
        (TEXT, "longer", "a text, at most 5 long"),
        (CHOICE, "none", "one of low, mid, high"),
        (TEXTS, "a", "a list of texts, at most 2 long"),
        (TEXTS, ["a", 1], "a list of texts, at most 2 long"),
        (TEXTS, ["a", "b", "c"], "a list of texts, at most 2 long"),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_what_is_expected(
    setting: Setting, value: object, expected: str
) -> None:
    with pytest.raises(ValueError, match=f"is not {expected}$") as refused:
        setting.accept(value)
    assert repr(value) in str(refused.value)


@pytest.mark.parametrize(
    ("setting", "text", "value"),
    [
        (INT, "7", 7),
        (FLOAT, "0.5", 0.5),
        (BOOL, "on", True),
        (BOOL, "False", False),
        (TEXT, " ab ", "ab"),
        (CHOICE, "high", "high"),
        (TEXTS, "a, b,", ("a", "b")),
        (TEXTS, "", ()),
    ],
)
def test_a_text_from_a_flag_or_variable_stands_for_a_value(setting: Setting, text: str, value: object) -> None:
    assert setting.read_text(text) == value


@pytest.mark.parametrize(("setting", "text"), [(INT, "many"), (INT, "1.5"), (FLOAT, "x"), (BOOL, "maybe")])
def test_a_text_that_stands_for_no_value_is_refused(setting: Setting, text: str) -> None:
    with pytest.raises(ValueError, match=f"'{text}' is not"):
        setting.read_text(text)


def test_a_long_refused_value_is_shown_short() -> None:
    with pytest.raises(ValueError, match="is not one of") as refused:
        CHOICE.accept("x" * 500)
    assert len(str(refused.value)) < 130


def test_numbers_with_one_bound_say_that_bound() -> None:
    assert Setting(key="a.b", kind="int", default=1, least=1, doc="").expects() == "a whole number, at least 1"
    assert Setting(key="a.b", kind="float", default=1, most=2.5, doc="").expects() == "a number, at most 2.5"
    assert (
        Setting(key="a.b", kind="int", default=1, most=2**30, doc="").expects()
        == "a whole number, at most 1,073,741,824"
    )


def test_tighter_numbers_and_choices_are_told_from_looser_ones() -> None:
    low = Setting(key="a.b", kind="int", default=4, workspace=True, tighter="lower", doc="")
    high = Setting(key="a.c", kind="int", default=4, workspace=True, tighter="higher", doc="")
    ranked = Setting(
        key="a.d",
        kind="text",
        default="best",
        choices=("full", "best", "none"),
        workspace=True,
        tighter="lower",
        doc="",
    )
    free = Setting(key="a.e", kind="int", default=4, workspace=True, doc="")
    assert [low.loosens(value, 4) for value in (3, 4, 5)] == [False, False, True]
    assert [high.loosens(value, 4) for value in (3, 4, 5)] == [True, False, False]
    assert [ranked.loosens(value, "best") for value in ("full", "best", "none")] == [False, False, True]
    assert not free.loosens(1_000_000, 4)


def test_the_first_variable_of_a_key_is_made_of_its_name() -> None:
    setting = Setting(key="log.max_bytes", kind="int", default=1, env=("LOG_BYTES",), doc="")
    assert setting.variables == ("AGENTSTEAD_LOG_MAX_BYTES", "LOG_BYTES")
