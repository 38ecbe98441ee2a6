"""Any result as text: names and values in two columns, lists of objects as tables; with rich where a person looks."""

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Literal, TextIO

from agentstead.cli.plain import is_simple, one_line, shown

_GAP = "  "
# A column that wraps below this many characters is harder to read than a line of its own.
_NARROWEST = 16


@dataclass(frozen=True, slots=True)
class Part:
    """Rows of one table, `depth` steps to the right: under `names` in capitals, or pairs where there are none."""

    depth: int
    names: tuple[str, ...]
    rows: tuple[tuple[str, ...], ...]


@dataclass(frozen=True, slots=True)
class Heading:
    """The name of what follows."""

    depth: int
    text: str


def plain(result: Mapping[str, Any]) -> str:
    """Return a result as aligned text of any width, for files, pipes and greps."""
    return "\n".join(line for part in _parts(result, 0) for line in _lines(part))


def print_rich(result: Mapping[str, Any], stream: TextIO, *, colour: bool) -> None:
    """Print a result to a terminal, in tables that fit its width; what has too many columns is a block a row."""
    from rich.console import Console
    from rich.padding import Padding
    from rich.table import Table
    from rich.text import Text

    system: Literal["auto"] | None = "auto" if colour else None
    console = Console(file=stream, color_system=system, highlight=False, markup=False, emoji=False)
    for part in _fitting(_parts(result, 0), console.width):
        indent = (0, 0, 0, len(_GAP) * part.depth)
        if isinstance(part, Heading):
            console.print(Padding(Text(part.text, "bold"), indent, expand=False) if part.text else "")
            continue
        table = Table(box=None, show_header=bool(part.names), header_style="bold", pad_edge=False, padding=(0, 2, 0, 0))
        for place in range(max(map(len, part.rows))):
            name = part.names[place].upper() if part.names else ""
            table.add_column(Text(name), style="" if part.names or place else "bold", overflow="fold")
        for row in part.rows:
            table.add_row(*map(Text, row))
        console.print(Padding(table, indent, expand=False))


def _fitting(parts: Iterable[Part | Heading], width: int) -> Iterator[Part | Heading]:
    """Turn tables whose columns would be too narrow to read into one block a row."""
    for part in parts:
        if isinstance(part, Heading) or not part.names or _readable(part, width):
            yield part
            continue
        for place, row in enumerate(part.rows):
            if place:
                yield Heading(part.depth, "")
            yield Part(part.depth, (), tuple((n, cell) for n, cell in zip(part.names, row, strict=True) if cell))


def _readable(part: Part, width: int) -> bool:
    columns = zip(part.names, *part.rows, strict=True)
    needed = sum(min(max(map(len, column)), _NARROWEST) + len(_GAP) for column in columns)
    return needed + len(_GAP) * part.depth <= width


def _parts(result: Mapping[str, Any], depth: int) -> Iterator[Part | Heading]:
    present = {name: value for name, value in result.items() if value not in (None, "", [], {}, ())}
    pairs = tuple((name, shown(name, value)) for name, value in present.items() if is_simple(value))
    deeper = {name: value for name, value in present.items() if not is_simple(value)}
    if not present:
        yield Heading(depth, "nothing")
    if pairs:
        yield Part(depth, (), pairs)
    alone = not pairs and len(deeper) == 1
    for name, value in deeper.items():
        if not alone:
            yield Heading(depth, name)
        inner = depth if alone else depth + 1
        if isinstance(value, Mapping):
            yield from _parts(value, inner)
        else:
            yield _table(value, inner)


def _table(items: Sequence[Any], depth: int) -> Part:
    rows = [item if isinstance(item, Mapping) else {"value": item} for item in items]
    names = [name for name in dict.fromkeys(name for row in rows for name in row) if _used(rows, name)] or ["value"]
    cells = tuple(tuple(one_line(shown(name, row.get(name))) for name in names) for row in rows)
    return Part(depth, tuple(names), cells)


def _used(rows: Sequence[Mapping[str, Any]], name: str) -> bool:
    return any(row.get(name) not in (None, "", [], {}) for row in rows)


def _lines(part: Part | Heading) -> Iterator[str]:
    indent = _GAP * part.depth
    if isinstance(part, Heading):
        yield indent + part.text
        return
    rows = [tuple(name.upper() for name in part.names), *part.rows] if part.names else list(part.rows)
    widths = [max(len(row[place]) for row in rows) for place in range(len(rows[0]) - 1)] if part.names else _first(rows)
    for row in rows:
        ahead = indent + "".join(cell.ljust(size) + _GAP for cell, size in zip(row, widths, strict=False))
        first, *more = row[-1].split("\n")
        yield (ahead + first).rstrip()
        yield from ((" " * len(ahead) + line).rstrip() for line in more)


def _first(pairs: Sequence[tuple[str, ...]]) -> list[int]:
    return [max(len(pair[0]) for pair in pairs)]
