"""Change a TOML text key by key through tomlkit, which keeps comments, order and layout."""

from collections.abc import Sequence
from typing import Any

import tomlkit
from tomlkit.exceptions import TOMLKitError
from tomlkit.items import InlineTable


class TomlText:
    """A TOML document as text; it raises ValueError where the text is not TOML."""

    def __init__(self, text: str) -> None:
        try:
            self._document = tomlkit.parse(text)
        except TOMLKitError as error:
            raise ValueError(str(error)) from error

    @property
    def text(self) -> str:
        """The whole text as it is now."""
        return tomlkit.dumps(self._document)

    def tree(self) -> dict[str, Any]:
        """Return the values."""
        values: dict[str, Any] = self._document.unwrap()
        return values

    def set(self, path: Sequence[str], value: Any) -> None:
        """Set the value at a path of keys, making the tables on the way; a new table comes last in the text."""
        table: Any = self._document
        for depth, key in enumerate(path[:-1]):
            if key not in table:
                table[key] = _table(inline=isinstance(table, InlineTable), above=depth == 0)
            table = table[key]
            if not hasattr(table, "items"):
                raise ValueError(f"{key!r} is no table")
        if not (isinstance(value, dict) and path[-1] not in table and self._append(path, value)):
            table[path[-1]] = _value(value, inline=isinstance(table, InlineTable))

    def remove(self, path: Sequence[str]) -> None:
        """Take a key away; a path that is not there changes nothing."""
        table: Any = self._document
        for key in path[:-1]:
            if key not in table:
                return
            table = table[key]
        if path[-1] in table:
            del table[path[-1]]
            if (text := self.text).endswith("\n\n"):
                self._document = tomlkit.parse(text.rstrip("\n") + "\n")

    def _append(self, path: Sequence[str], value: dict[str, Any]) -> bool:
        """Write a table behind all others; False where the tables above it are inline, and cannot be added to."""
        text = self.text
        gap = "" if not text or text.endswith("\n\n") else "\n" if text.endswith("\n") else "\n\n"
        header = ".".join(tomlkit.key(part).as_string() for part in path)
        block = "".join(
            f"{tomlkit.key(k).as_string()} = {_value(v, inline=True).as_string()}\n" for k, v in value.items()
        )
        try:
            self._document = tomlkit.parse(f"{text}{gap}[{header}]\n{block}")
        except TOMLKitError:
            return False
        return True


def _table(*, inline: bool, above: bool) -> Any:
    return tomlkit.inline_table() if inline else tomlkit.table(is_super_table=above)


def _value(value: Any, *, inline: bool) -> Any:
    if not isinstance(value, dict):
        return tomlkit.item(value)
    table: Any = tomlkit.inline_table() if inline else tomlkit.table()
    for key, item in value.items():
        table[key] = _value(item, inline=True)
    return table
