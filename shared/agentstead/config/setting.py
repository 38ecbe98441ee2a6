"""One setting declared as data: key, kind, default, bounds, who may change it; and the one validator of values."""

from dataclasses import dataclass
from typing import Any, Literal

Kind = Literal["int", "float", "bool", "text", "texts"]
Tighter = Literal["", "lower", "higher"]

_NAMES: dict[Kind, str] = {
    "int": "a whole number",
    "float": "a number",
    "bool": "true or false",
    "text": "a text",
    "texts": "a list of texts",
}
_TRUE = frozenset({"true", "yes", "on", "1"})
_FALSE = frozenset({"false", "no", "off", "0"})


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """Declare a setting.

    `key` is dotted and lower case; a key that ends in `.*` stands for any one name in that place. `least` and `most`
    bound numbers, and the length of texts and lists. `choices` is a closed set, ordered from the tightest to the
    loosest where `tighter` is "lower". `workspace` says that a workspace's file may set it, `tighter` that such a file
    may only move it that way. `person` marks what widens rights: only a person's verb and the home's file set it.
    `live` is False where the value is read once, when the process starts. `env` names further variables that set it.
    """

    key: str
    kind: Kind
    default: Any
    doc: str
    least: float | None = None
    most: float | None = None
    choices: tuple[str, ...] = ()
    workspace: bool = False
    tighter: Tighter = ""
    person: bool = False
    live: bool = True
    env: tuple[str, ...] = ()

    @property
    def variables(self) -> tuple[str, ...]:
        """Name the environment variables that set this key; the first that is there wins."""
        own = "AGENTSTEAD_" + self.key.replace(".", "_").upper()
        return (own, *self.env)

    def expects(self) -> str:
        """Say in words what values are taken."""
        if self.choices:
            return "one of " + ", ".join(self.choices)
        if self.least is None and self.most is None:
            return _NAMES[self.kind]
        return f"{_NAMES[self.kind]}{self._bounds()}"

    def _bounds(self) -> str:
        unit = "" if self.kind in {"int", "float"} else " long"
        if self.most is None:
            return f", at least {_figure(self.least)}{unit}"
        if self.least is None:
            return f", at most {_figure(self.most)}{unit}"
        return f" from {_figure(self.least)} to {_figure(self.most)}{unit}"

    def accept(self, value: object) -> Any:
        """Return the value in its kind; raise ValueError with what is expected where it does not fit."""
        fitting = self._of_kind(value)
        if fitting is None or not self._within(fitting):
            raise ValueError(f"{_show(value)} is not {self.expects()}")
        return fitting

    def read_text(self, text: str) -> Any:
        """Return the value that a text stands for (a flag, a variable, an argument); lists are split at commas."""
        return self.accept(self._from_text(text.strip()))

    def loosens(self, value: Any, than: Any) -> bool:
        """Say whether a value gives more room than another, for a key whose workspace file may only tighten."""
        if not self.tighter or value == than:
            return False
        rank = self.choices.index if self.choices else float
        higher = rank(value) > rank(than)
        return higher if self.tighter == "lower" else not higher

    def _of_kind(self, value: object) -> Any:
        match self.kind:
            case "int":
                return value if isinstance(value, int) and not isinstance(value, bool) else None
            case "float":
                return float(value) if isinstance(value, int | float) and not isinstance(value, bool) else None
            case "bool":
                return value if isinstance(value, bool) else None
            case "text":
                return value if isinstance(value, str) else None
            case "texts":
                if not isinstance(value, list | tuple) or not all(isinstance(item, str) for item in value):
                    return None
                return tuple(value)

    def _within(self, value: Any) -> bool:
        if self.choices:
            return all(item in self.choices for item in value) if self.kind == "texts" else value in self.choices
        size = len(value) if self.kind in {"text", "texts"} else value
        return not ((self.least is not None and size < self.least) or (self.most is not None and size > self.most))

    def _from_text(self, text: str) -> object:
        match self.kind:
            case "int":
                return _number(text.replace("_", ""), int)
            case "float":
                return _number(text, float)
            case "bool":
                return True if text.lower() in _TRUE else False if text.lower() in _FALSE else text
            case "text":
                return text
            case "texts":
                return tuple(item for item in (part.strip() for part in text.split(",")) if item)


def _number(text: str, kind: type[int] | type[float]) -> object:
    try:
        return kind(text)
    except ValueError:
        return text


def _figure(bound: float | None) -> str:
    return f"{int(bound):,}" if bound is not None and bound == int(bound) else str(bound)


def _show(value: object) -> str:
    shown = repr(list(value) if isinstance(value, tuple) else value)
    return shown if len(shown) <= 80 else shown[:77] + "..."
