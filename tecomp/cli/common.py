"""Shared helpers of commands: tables, JSON, scripts, completion words."""

from __future__ import annotations

import json
import runpy
import sys
from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
from pathlib import Path
from types import ModuleType
from typing import Any

import click
from click.shell_completion import CompletionItem

import tecomp
from tecomp.compute.tensor import Tensor
from tecomp.error_pages import error_pages
from tecomp.errors import TecompError
from tecomp.scheduling.schedule import Schedule

Row = Mapping[str, Any]


def with_json(command: Callable[..., Any]) -> Callable[..., Any]:
    """Add the option `--json` to a command."""
    return click.option("--json", "as_json", is_flag=True, help="Print JSON.")(command)


def show(rows: Sequence[Row], *, as_json: bool = False) -> None:
    """Print rows with equal keys: as JSON, as a table on a terminal, or as aligned columns.

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
    """Print one value per line, or a JSON object.

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
    # Import lazily: loading `rich` takes as long as a whole command without a terminal.
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


def load_definitions(spec: str) -> Any:
    """Run a script and return the value of a name; a function without parameters is called.

    Args:
        spec: `script.py:name`.

    Raises:
        click.ClickException: If the script or the name does not exist.
    """
    value = load_value(spec)
    return value() if is_function(value) else value


def is_function(value: object) -> bool:
    """Return whether a value is a function; tensors and kernels are callable too."""
    return callable(value) and type(value).__name__ == "function"


def load_value(spec: str) -> Any:
    """Run a script and return the value of a name.

    Args:
        spec: `script.py:name`.

    Raises:
        click.ClickException: If the script or the name does not exist.
    """
    path, _, name = spec.rpartition(":")
    if not path or not name:
        raise click.BadParameter(f"{spec!r} is not a valid object; pass script.py:name")
    if not Path(path).is_file():
        raise click.BadParameter(f"file not found: {path}")
    names = runpy.run_path(path, run_name="__tecomp__")
    if name not in names:
        public = sorted(
            key for key, value in names.items()
            if not key.startswith("_") and not isinstance(value, ModuleType)
        )
        raise click.BadParameter(
            f"{path} does not define `{name}`" + (f"; it has {', '.join(public)}" if public else "")
        )
    return names[name]


def format_error(error: TecompError, spec: str) -> str:
    """Format an error for a command, with the lines of the script that caused it."""
    location, path = error.location, spec.rpartition(":")[0]
    return str(error) if location is not None and location.file == path else error.message


def parse_schedule_value(spec: str) -> tuple[Schedule | Tensor | list[Tensor], Sequence[Any]]:
    """Return a schedule or results, and the kernel arguments, as `tecomp.build` accepts them.

    Raises:
        click.ClickException: If the value has another type.
    """
    value = load_definitions(spec)
    match value:
        case (Schedule() | Tensor() | list() as results, list() | tuple() as arguments):
            return results, arguments
    raise click.BadParameter(
        f"{spec} is {type(value).__name__}; expected a pair of a schedule or tensor and the "
        "list of arguments, as for tecomp.build, or a function that returns such a pair"
    )


def machines(
    context: click.Context, parameter: click.Parameter, prefix: str
) -> list[CompletionItem]:
    """Return completions for a target: names with the prefix, or else files.

    A target can be given by the path of its TOML file.
    """
    found = [CompletionItem(name) for name in tecomp.list_targets() if name.startswith(prefix)]
    return found or [CompletionItem(prefix, type="file")]


def codes(context: click.Context, parameter: click.Parameter, prefix: str) -> list[CompletionItem]:
    """Return completions for an error code or kind: codes with their messages, and kinds."""
    known = error_pages().values()
    by_code = [
        CompletionItem(page.code, help=page.title)
        for page in known if page.code.startswith(prefix.upper())
    ]
    by_kind = [
        CompletionItem(page.kind, help=page.title)
        for page in known if prefix and page.kind.startswith(prefix)
    ]
    return by_code + by_kind
