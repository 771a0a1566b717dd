"""Substitute known sizes into functions."""

from __future__ import annotations

from collections.abc import Mapping

from tecomp.errors import CallError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.expr import Const, Expr, Var, index_value
from tecomp.ir.nodes.printer import identifier
from tecomp.ir.nodes.stmt import Buffer, Extent, PrimFunc
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.lowering.stages.index_expressions import index_of


def extent_at(extent: Extent, sizes: Mapping[str, int]) -> int | None:
    """Return the value of an extent for sizes given by name, or None if a size is missing.

    Variables are found by their names in functions, which are identifiers.

    >>> n = Var("sequence length")
    >>> extent_at(n * n, {"sequence_length": 1 << 20})
    1099511627776
    """
    if isinstance(extent, int):
        return extent
    names = {var: identifier(var.name) for var in free_variables(extent)}
    known = {var: index_value(sizes[name]) for var, name in names.items() if name in sizes}
    value = simplify(index_of(extent, known))
    return int(value.value) if isinstance(value, Const) else None


def check_sizes(func: PrimFunc, sizes: Mapping[str, int], where: str) -> dict[str, int]:
    """Return the validated sizes that a function depends on.

    Args:
        func: Function; its integer scalar parameters count as sizes.
        sizes: Sizes by name.
        where: Call for error messages; its last component is the name of the method.

    Raises:
        CallError: If a size is missing, is not a non-negative integer, or is unknown.
    """
    scalars = [*func.sizes, *(p for p in func.params if isinstance(p, Var))]
    names = [var.name for var in scalars if var.dtype.is_integer]
    for name in names:
        if name not in sizes:
            raise CallError(
                "{where}: {func} depends on {name}, which is unknown; pass it as a keyword, e.g. "
                "kernel.{function}({name}=8)",
                kind="unbound-size", where=where, func=func.name, name=name,
                function=where.rpartition(".")[2],
            )
        size = sizes[name]
        if isinstance(size, bool) or not isinstance(size, int) or size < 0:
            raise CallError(
                "{where}: {name} must be an integer >= 0, got {size!r}",
                kind="invalid-value", where=where, name=name, size=size,
            )
    for key in sizes:
        if key not in names:
            raise CallError(
                "{where}: {func} has no size variable {size}; its size variables are {names}",
                kind="unbound-size", where=where, func=func.name, size=key,
                names=", ".join(names) or "none",
            )
    return {name: sizes[name] for name in names}


def in_numbers(func: PrimFunc, sizes: Mapping[str, int]) -> PrimFunc:
    """Return `func` with constants substituted for its size variables, by name."""
    scalars = {p for p in func.params if isinstance(p, Var)}
    values = {
        var: Const(sizes[var.name], var.dtype) for var in (*func.sizes, *scalars)
        if var.name in sizes and var.dtype.is_integer
    }
    if not values:
        return func
    params = tuple(_with_sizes(p, values) if isinstance(p, Buffer) else p for p in func.params)
    # Import lazily: kernels from the cache are not lowered.
    from tecomp.lowering.storage.buffer_rewrite import replace_variables
    body = replace_variables(func.body, values)
    remaining = tuple(var for var in func.sizes if var not in values and var not in scalars)
    return simplify(PrimFunc(func.name, params, body, remaining, sites=func.sites))


def _with_sizes(buffer: Buffer, values: Mapping[Var, Expr]) -> Buffer:
    return buffer.with_entries([
        n if isinstance(n, int) else simplify(substitute(n, dict(values))) for n in buffer.entries
    ])
