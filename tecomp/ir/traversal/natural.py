"""Which variables of a function are never negative: extents of arrays, and not their strides."""

from __future__ import annotations

from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import Buffer, PrimFunc
from tecomp.ir.traversal.rewrite import free_variables


def natural_variables(func: PrimFunc) -> tuple[Var, ...]:
    """The sizes and the extents that are never negative: not those that are strides alone."""
    params = [param for param in func.params if isinstance(param, Buffer)]
    extents = [n for p in params for n in p.shape if isinstance(n, Expr)]
    strides = [n for p in params for n in p.strides or () if isinstance(n, Expr)]
    signed: set[Var] = set()
    if strides:
        signed.update(var for n in strides for var in free_variables(n))
        signed.difference_update(var for n in extents for var in free_variables(n))
    plain = (n for n in extents if isinstance(n, Var))
    return tuple(dict.fromkeys((*(var for var in func.sizes if var not in signed), *plain)))
