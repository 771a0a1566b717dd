"""Whether two index maps give every element the same place."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import is_empty
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import Expr, Var
from tecomp.ir.language.stmt import Extent
from tecomp.ir.traversal.rewrite import free_variables
from tecomp.poly.maps import enumerate as elements
from tecomp.poly.maps.extents import bounds_of
from tecomp.poly.maps.layout_sets import LayoutSet
from tecomp.poly.sets.affine import NotAffine, Space, pw_aff
from tecomp.poly.sets.context import isl_work
from tecomp.poly.sets.reader import Reader


def are_equal(
    ours: Sequence[Expr], theirs: Sequence[Expr], axes: Sequence[Var],
    shape: Sequence[Extent] | None,
) -> bool:
    """Whether both have equal values for every index of `shape`, or for all if it is None."""
    numbers = {axis: k for k, axis in enumerate(axes)}
    if shape is not None and is_empty(shape):
        return True
    reader = Reader(numbers, bounds_of(shape) if shape is not None else [(None, None)] * len(axes))
    for a, b in zip(ours, theirs, strict=True):
        first, second = reader.form(a), reader.form(b)
        if first is not None and first == second:
            continue
        if same(a, b):
            continue
        with isl_work("index map", LayoutError):
            if not _is_equal(a, b, axes, shape):
                return False
    return True


def _is_equal(
    a: Expr, b: Expr, axes: Sequence[Var], shape: Sequence[Extent] | None
) -> bool:
    used = {*free_variables(a), *free_variables(b)}
    kept = [k for k, axis in enumerate(axes) if axis in used]
    some = tuple(axes[k] for k in kept)
    if shape is None:
        return _is_equal_everywhere(a, b)
    sizes = tuple(shape[k] for k in kept)
    if not elements.is_small([a, b], some, sizes):
        try:
            return LayoutSet((a,), some, sizes).same_as((b,))
        except NotAffine:
            pass
    constant = elements.few_enough([a, b], some, sizes)
    first, second = elements.over_box([a, b], some, constant)
    return bool(np.array_equal(first, second))


def _is_equal_everywhere(a: Expr, b: Expr) -> bool:
    space = Space(tuple({**free_variables(a), **free_variables(b)}))
    try:
        return bool(pw_aff(a, space).ne_set(pw_aff(b, space)).is_empty())
    except NotAffine as error:
        raise LayoutError(
            f"index map: whether `{a}` and `{b}` are equal for all integers cannot be decided, "
            f"because of `{error.expr}`; give the shape of the tensor",
            kind="too-much",
        ) from None
