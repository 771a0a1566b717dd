"""How commands print rows: a table on a terminal, columns elsewhere, or JSON."""

from __future__ import annotations

import json
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from typing import Any

import click

Row = Mapping[str, Any]


def with_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """The option `--json` of a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def show(rows: Sequence[Row], *, as_json: bool = False) -> None:
    """Print rows that have the same keys: JSON, a table on a terminal, or else aligned columns.

    >>> show([{"name": "lx", "bytes": 2048}, {"name": "ddr", "bytes": 64}])
    name  bytes
    lx    2,048
    ddr      64
    """
    if as_json:
        click.echo(json.dumps([dict(row) for row in rows], indent=2))
    elif rows and sys.stdout.isatty():
        _table(rows)
    elif rows:
        click.echo("\n".join(_columns(rows)))


def show_record(record: Row, *, as_json: bool = False) -> None:
    """Print one value a line, or an object of JSON.

    >>> show_record({"folder": "/tmp", "entries": 2})
    folder   /tmp
    entries  2
    """
    if as_json:
        click.echo(json.dumps(dict(record), indent=2))
        return
    width = max(map(len, record))
    for name, value in record.items():
        click.echo(f"{name:<{width}}  {_text(value)}")


def _columns(rows: Sequence[Row]) -> list[str]:
    names = list(rows[0])
    cells = [names, *([_text(row[name]) for name in names] for row in rows)]
    widths = [max(len(line[k]) for line in cells) for k in range(len(names))]
    right = [all(_is_number(row[name]) for row in rows) for name in names]
    return [
        "  ".join(
            f"{cell:>{width}}" if is_right else f"{cell:<{width}}"
            for cell, width, is_right in zip(line, widths, right, strict=True)
        ).rstrip()
        for line in cells
    ]


def _table(rows: Sequence[Row]) -> None:
    # It takes as long to load as a command does that prints elsewhere.
    console, tables, text = (import_module(f"rich.{name}") for name in ("console", "table", "text"))
    table = tables.Table(box=None, header_style="bold", pad_edge=False)
    for name in rows[0]:
        is_right = all(_is_number(row[name]) for row in rows)
        table.add_column(name, justify="right" if is_right else "left", overflow="fold")
    for row in rows:
        table.add_row(*(text.Text(_text(value)) for value in row.values()))
    console.Console().print(table)


def _is_number(value: object) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool)


def _text(value: object) -> str:
    if isinstance(value, bool):
        return "yes" if value else "no"
    if isinstance(value, int):
        return f"{value:,}"
    if isinstance(value, float):
        return f"{value:.3g}"
    if isinstance(value, list | tuple):
        return ", ".join(map(str, value))
    return "" if value is None else str(value)
