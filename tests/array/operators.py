"""Operators of arrays, by their names in `operator`."""

from __future__ import annotations

import operator

from tecomp.array import Array


def _method(name: str) -> str:
    return f"__{name.rstrip('_')}__"


_NAMES = [name for name in dir(operator) if not name.startswith("_")]
COMPARISONS = tuple(name for name in _NAMES if _method(name) in vars(object).keys() & vars(Array).keys()
                    and callable(getattr(operator, name)) and len(name) == 2)
"""Rich comparisons."""
BINARY = tuple(name for name in _NAMES if hasattr(Array, f"__r{name.rstrip('_')}__"))
"""Arithmetic and bitwise operators, which have a reflected method."""
INPLACE = tuple(
    name for name in _NAMES
    if hasattr(Array, _method(name)) and name.startswith("i") and hasattr(Array, f"__r{name[1:]}__")
)
"""Augmented assignments."""
BITWISE = tuple(name for name in (*BINARY, *INPLACE)
                if name.rstrip("_").removeprefix("i") in ("and", "or", "xor", "lshift", "rshift"))
