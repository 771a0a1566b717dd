"""Whether iterations of a loop that run at the same time meet in one element."""

from __future__ import annotations

import islpy as isl

from tecomp.ir.language.expr import Var
from tecomp.poly.loops.scopes import Scope
from tecomp.poly.sets.affine import Space
from tecomp.poly.sets.numbers import python_int

_IN = isl.dim_type.in_
_OUT = isl.dim_type.out
_PARAM = isl.dim_type.param
_SET = isl.dim_type.set


def shared_point(
    points: isl.Set, scope: Scope, loop: Var
) -> tuple[int, int, tuple[int, ...]] | None:
    """Two iterations of `loop` whose `points` meet, and a point where they do; None if none do.

    Args:
        points: a set that depends on the loops of `scope`.
        scope: the loops around; those outside of `loop` have one value.
        loop: one of them.
    """
    position = scope.params.index(loop) - scope.n_sizes
    count = len(scope.params) - scope.n_sizes
    known = points.intersect_params(scope.context)
    known = known.align_params(Space((), scope.params).isl)
    touched = isl.Map.from_range(known).move_dims(_IN, 0, _PARAM, scope.n_sizes, count)
    # The loops inside of `loop` may have any values.
    touched = touched.project_out(_IN, position + 1, count - position - 1)
    clashes = touched.apply_range(touched.reverse())
    for k in range(position):
        clashes = clashes.equate(_IN, k, _OUT, k)
    clashes = clashes.order_lt(_IN, position, _OUT, position)
    if clashes.is_empty():
        return None
    pair = clashes.lexmin().sample()
    one, other = (isl.Set.from_basic_set(side) for side in (pair.domain(), pair.range()))
    meeting = one.apply(touched).intersect(other.apply(touched)).lexmin().sample_point()
    rank = touched.dim(_OUT)
    element = tuple(python_int(meeting.get_coordinate_val(_SET, k)) for k in range(rank))
    return _coordinate(one, position), _coordinate(other, position), element


def _coordinate(point: isl.Set, position: int) -> int:
    return python_int(point.dim_max_val(position))
