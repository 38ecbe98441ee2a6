"""The registry of settings: what keys exist. Packages add to it; a key that is in no package's list is unknown."""

import difflib
from collections.abc import Callable, Iterator

from agentstead.config.setting import Setting


class Registry:
    """Hold declared settings by key; `complete` is called once, when a key is met that nobody has declared yet."""

    def __init__(self, *settings: Setting, complete: Callable[["Registry"], None] | None = None) -> None:
        self._exact: dict[str, Setting] = {}
        self._open: dict[str, Setting] = {}
        self._complete = complete
        self.add(*settings)

    def add(self, *settings: Setting) -> None:
        """Declare settings; declaring the same one again is fine, another under its key is a fault of the program."""
        for setting in settings:
            self._add(setting)

    def look(self, key: str) -> Setting | None:
        """Find the declaration of a key; a name in the place of a `.*` finds the open one."""
        found = self._here(key)
        if found is None and self.finish():
            found = self._here(key)
        return found

    def nearest(self, key: str) -> str:
        """Name the declared key that is spelled most like this one; '' if none is near."""
        self.finish()
        near = difflib.get_close_matches(key, [*self._exact, *self._open], n=1, cutoff=0.6)
        if near:
            return near[0]
        leaf = key.rpartition(".")[2]
        same_leaf = [known for known in self._exact if known.rpartition(".")[2] == leaf]
        return same_leaf[0] if len(same_leaf) == 1 else ""

    def is_table(self, key: str) -> bool:
        """Say whether a key is the table that declared keys lie in."""
        return any(known.startswith(key + ".") for known in (*self._exact, *self._open))

    def finish(self) -> bool:
        """Have every installed package add its settings; False if that was done before."""
        if self._complete is None:
            return False
        complete, self._complete = self._complete, None
        complete(self)
        return True

    def __iter__(self) -> Iterator[Setting]:
        self.finish()
        return iter(sorted((*self._exact.values(), *self._open.values()), key=lambda setting: setting.key))

    def _add(self, setting: Setting) -> None:
        table, key = (self._open, setting.key[:-2]) if setting.key.endswith(".*") else (self._exact, setting.key)
        known = table.setdefault(key, setting)
        if known != setting:
            raise ValueError(f"the setting {setting.key} is declared twice")

    def _here(self, key: str) -> Setting | None:
        return self._exact.get(key) or self._open.get(key.rpartition(".")[0])
