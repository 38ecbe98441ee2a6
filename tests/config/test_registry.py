"""The registry knows the keys of every package, the open ones too, and the nearest to a wrong one."""

import pytest

from agentstead.config import PRODUCT, Registry, Setting


def test_an_open_key_is_found_by_any_one_name_in_its_place(registry: Registry) -> None:
    found = registry.look("rules.weights.secret")
    assert found is not None
    assert found.key == "rules.weights.*"
    assert registry.look("rules.weights.secret.deeper") is None
    assert registry.look("rules.weights") is None


def test_the_nearest_key_is_named_by_spelling_or_by_an_only_last_part(registry: Registry) -> None:
    assert registry.nearest("task.lease_second") == "tasks.lease_seconds"
    assert registry.nearest("coordinator.isolation") == "checks.isolation"
    assert registry.nearest("zzz") == ""


def test_declaring_a_setting_again_is_fine_and_another_under_its_key_is_not(registry: Registry) -> None:
    known = registry.look("log.level")
    assert known is not None
    registry.add(known)
    with pytest.raises(ValueError, match=r"log\.level is declared twice"):
        registry.add(Setting(key="log.level", kind="int", default=1, doc="Other."))


def test_packages_add_theirs_when_an_unknown_key_is_first_met() -> None:
    calls: list[str] = []

    def complete(registry: Registry) -> None:
        calls.append("searched")
        registry.add(Setting(key="late.key", kind="int", default=1, doc="Late."))

    registry = Registry(Setting(key="early.key", kind="int", default=1, doc="Early."), complete=complete)
    assert registry.look("early.key") is not None
    assert calls == []
    assert registry.look("late.key") is not None
    assert registry.look("never.key") is None
    assert calls == ["searched"]


def test_a_listing_holds_the_settings_of_all_packages_in_order_of_their_keys() -> None:
    def complete(registry: Registry) -> None:
        registry.add(Setting(key="a.late", kind="int", default=1, doc="Late."))

    registry = Registry(Setting(key="b.early", kind="int", default=1, doc="Early."), complete=complete)
    assert [setting.key for setting in registry] == ["a.late", "b.early"]


def test_every_default_of_the_product_fits_its_own_declaration() -> None:
    for setting in PRODUCT:
        assert setting.accept(setting.default) == setting.default
        assert setting.doc.endswith("."), setting.key
        assert setting.tighter == "" or setting.workspace, setting.key
        assert not (setting.person and setting.workspace), setting.key


def test_no_two_settings_of_the_product_share_a_variable() -> None:
    variables = [name for setting in PRODUCT for name in setting.variables]
    assert len(variables) == len(set(variables))


@pytest.mark.parametrize("namespace", ["permissions", "runner", "approvals", "elicitation"])
def test_what_widens_rights_is_a_persons_to_set(namespace: str) -> None:
    mine = [setting for setting in PRODUCT if setting.key.startswith(namespace + ".")]
    assert [setting.key for setting in mine if not (setting.person or setting.workspace)] == []
