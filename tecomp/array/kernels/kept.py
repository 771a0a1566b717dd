"""Kernels and programs that are made when they are first asked for."""

from __future__ import annotations

from collections.abc import Callable
from typing import ParamSpec, TypeVar

from tecomp.array.counters import counters
from tecomp.array.graph.waiting import compiling
from tecomp.array.recent import Recent

Key = TypeVar("Key")
Made = TypeVar("Made")
P = ParamSpec("P")


def made_once(
    kept: Recent[Key, Made], key: Key, make: Callable[P, Made], *args: P.args, **kwargs: P.kwargs
) -> Made:
    """What is kept for a key; it is made and counted if there is nothing yet.

    Args:
        kept: what was made.
        key: equal for equal kernels.
        make: compiles one.
        args: what `make` takes.
        kwargs: what it takes by name.
    """
    found = kept.get(key, None)
    if found is None:
        with compiling:
            found = kept.get(key, None)
            if found is None:  # no other thread was faster
                found = kept.keep(key, make(*args, **kwargs))
                counters.compiled += 1
    return found
