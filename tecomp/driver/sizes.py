"""Extents and functions once sizes are known."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tecomp.ir.algebra.simplify import simplify
from tecomp.ir.language.expr import Const, Expr, Var, index_value
from tecomp.ir.language.stmt import Buffer, Extent, PrimFunc
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.lowering.storage.buffers import replace_variables


def extent_at(extent: Extent, sizes: Mapping[str, int]) -> int | None:
    """What an extent is for sizes given by name; None where one of them is missing."""
    if isinstance(extent, int):
        return extent
    known = [var for var in free_variables(extent) if var.name in sizes]
    from_names = {var: Const(sizes[var.name], var.dtype) for var in known}
    value = simplify(index_value(substitute(extent, from_names)))
    return int(value.value) if isinstance(value, Const) else None


def in_numbers(func: PrimFunc, sizes: Mapping[str, int]) -> PrimFunc:
    """`func` with its size variables, by name, replaced by numbers."""
    scalars = {p for p in func.params if isinstance(p, Var)}
    values = {
        var: Const(sizes[var.name], var.dtype) for var in (*func.sizes, *scalars)
        if var.name in sizes and var.dtype.is_integer
    }
    if not values:
        return func
    params = tuple(_sized(p, values) if isinstance(p, Buffer) else p for p in func.params)
    body = replace_variables(func.body, values)
    kept = tuple(var for var in func.sizes if var not in values and var not in scalars)
    return simplify(PrimFunc(func.name, params, body, kept, sites=func.sites))


def _sized(buffer: Buffer, values: Mapping[Var, Expr]) -> Buffer:
    def known(extents: Sequence[Extent]) -> tuple[Extent, ...]:
        return tuple(
            n if isinstance(n, int) else simplify(substitute(n, dict(values))) for n in extents
        )

    strides = None if buffer.strides is None else known(buffer.strides)
    return replace(buffer, shape=known(buffer.shape), strides=strides)
