"""The number that an extent is once sizes are known."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.ir.expr import Const, index_value
from tecomp.ir.rewrite import free_variables, substitute
from tecomp.ir.simplify import simplify
from tecomp.ir.stmt import Extent


def extent_at(extent: Extent, sizes: Mapping[str, int]) -> int | None:
    """What an extent is for sizes given by name; None where one of them is missing."""
    if isinstance(extent, int):
        return extent
    known = [var for var in free_variables(extent) if var.name in sizes]
    from_names = {var: Const(sizes[var.name], var.dtype) for var in known}
    value = simplify(index_value(substitute(extent, from_names)))
    return int(value.value) if isinstance(value, Const) else None
