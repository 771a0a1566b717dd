"""Which compiler this is: what is kept for later was made by the same one, or is made again."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache
from hashlib import sha256
from importlib.util import find_spec
from pathlib import Path

PACKAGE = Path(__file__).parents[1]


def fingerprint(package: Path) -> str:
    """A name for the source files below a folder as they are now: where, how long, how old.

    A version would not do: a checkout changes without it.
    """
    return sha256("\n".join(_files(str(package), "")).encode()).hexdigest()


@cache
def schedules() -> str:
    """A name for the source files of the library of schedules, which are part of the compiler."""
    found = find_spec("tecomp.schedules")
    assert found is not None
    return fingerprint(Path(str(found.origin)).parent)


def _files(folder: str, place: str) -> Iterator[str]:
    with os.scandir(folder) as found:
        for item in sorted(found, key=lambda item: item.name):
            name = f"{place}/{item.name}"
            if item.name.endswith(".py"):
                state = item.stat()
                yield f"{name} {state.st_size} {state.st_mtime_ns}"
            elif item.is_dir() and item.name != "__pycache__":
                yield from _files(item.path, name)


# Taken when the compiler is loaded: the files may have changed since when it is first used.
SOURCES = fingerprint(PACKAGE)
