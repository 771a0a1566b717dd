"""Numbers of isl as Python's."""

from __future__ import annotations

import islpy as isl


def python_int(value: isl.Val) -> int:
    """A number of isl's.

    Raises:
        isl.Error: isl has no operation left to write it with, which islpy takes for no text.
    """
    try:
        return int(value.to_python())
    except TypeError:
        raise isl.Error("maximal number of operations exceeded") from None
