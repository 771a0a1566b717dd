"""Target descriptions that installed packages offer, through entry points `tecomp.targets`.

An entry point is a function of no arguments that returns paths of TOML files; the target of
`cpu.toml` is called `cpu`.
"""

from __future__ import annotations

import os
import sys
from collections.abc import Callable
from difflib import get_close_matches
from functools import lru_cache
from importlib.metadata import EntryPoints, entry_points
from pathlib import Path

from tecomp.errors import TargetError

GROUP = "tecomp.targets"


def list_targets() -> tuple[str, ...]:
    """Names of the targets that are installed, in alphabetical order."""
    return tuple(sorted(_descriptions()))


def find_description(name: str) -> Path:
    """The file that describes the target `name`.

    Raises:
        TargetError: no installed package has one.
    """
    found = _descriptions()
    if name in found:
        return found[name]
    near = get_close_matches(name, found, n=1)
    hint = f"did you mean `{near[0]}`? " if near else ""
    known = ", ".join(sorted(found)) or "none (is tecomp installed? `pip install -e .`)"
    raise TargetError(
        f"there is no target `{name}`; {hint}installed targets: {known}; or pass the path of a "
        "TOML file"
    )


def _descriptions() -> dict[str, Path]:
    found: dict[str, Path] = {}
    owner: dict[str, str] = {}
    for name, path in _offers(entry_points, tuple(map(_state, sys.path))):
        # A package that is installed twice, such as from a checkout, is one package.
        if found.get(path.stem, path) != path:
            raise TargetError(
                f"target `{path.stem}` is offered by `{owner[path.stem]}` and by "
                f"`{name}`; uninstall one of them, or pass the path of the TOML file"
            )
        found[path.stem], owner[path.stem] = path, name
    return found


@lru_cache(maxsize=8)
def _offers(
    find: Callable[..., EntryPoints], places: tuple[tuple[str, int], ...]
) -> tuple[tuple[str, Path], ...]:
    """Entry points and the paths that they give, found once for each state of `sys.path`.

    Looking through all that is installed takes milliseconds.
    """
    del places
    entries = sorted(find(group=GROUP), key=lambda entry: (entry.name, entry.value))
    return tuple((entry.name, Path(path)) for entry in entries for path in entry.load()())


def _state(folder: str) -> tuple[str, int]:
    """A folder and when something was last installed there, or removed."""
    try:
        return folder, os.stat(folder or ".").st_mtime_ns
    except OSError:
        return folder, -1
