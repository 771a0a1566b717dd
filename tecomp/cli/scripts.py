"""What a user's script defines, by the words `script.py:name`."""

from __future__ import annotations

import runpy
from collections.abc import Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import click

from tecomp.compute.tensor import Tensor
from tecomp.errors import TecompError
from tecomp.scheduling.schedule import Schedule


def defined(words: str) -> Any:
    """The value of a name after a script was run; what a function of no arguments gives.

    Args:
        words: `script.py:name`.

    Raises:
        click.ClickException: there is no such script, or name in it.
    """
    path, _, name = words.rpartition(":")
    if not path or not name:
        raise click.BadParameter(f"{words!r} names nothing; write script.py:name")
    if not Path(path).is_file():
        raise click.BadParameter(f"there is no file {path}")
    names = runpy.run_path(path, run_name="__tecomp__")
    if name not in names:
        own = sorted(
            each for each, value in names.items()
            if not each.startswith("_") and not isinstance(value, ModuleType)
        )
        raise click.BadParameter(
            f"{path} defines no `{name}`" + (f"; it has {', '.join(own)}" if own else "")
        )
    value = names[name]
    is_function = callable(value) and type(value).__name__ == "function"
    return value() if is_function else value


def complaint(error: TecompError, words: str) -> str:
    """What a command says of an error: with the lines of the script where it is in there."""
    at, path = error.location, words.rpartition(":")[0]
    return str(error) if at is not None and at.file == path else error.message


def scheduled(words: str) -> tuple[Schedule | Tensor | list[Tensor], Sequence[Any]]:
    """A schedule or results, and the arguments of the kernel, as `tecomp.build` takes them.

    Raises:
        click.ClickException: the name stands for something else.
    """
    value = defined(words)
    match value:
        case (Schedule() | Tensor() | list() as results, list() | tuple() as arguments):
            return results, arguments
    raise click.BadParameter(
        f"{words} is {type(value).__name__}; it has to be a pair: a schedule or a tensor, and the "
        "list of arguments, as tecomp.build takes them, or a function that gives one"
    )
