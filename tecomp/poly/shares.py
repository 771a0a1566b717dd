"""Which elements of a buffer belong to which core: two cores that use the same one, if any do."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import islpy as isl

from tecomp.ir.expr import Expr, Var
from tecomp.poly.affine import Space, condition_hull, index_relation

_OUT = isl.dim_type.out


@dataclass(frozen=True, slots=True)
class Use:
    """An access inside of loops.

    Attributes:
        loops: variable, first value and number of values of each loop, outermost first.
        conditions: that hold where it is made.
        core: which core makes it: a variable or 0 for each axis of the grid.
        indices: the element.
    """

    loops: tuple[tuple[Var, Expr, Expr], ...]
    conditions: tuple[Expr, ...]
    core: tuple[Expr, ...]
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class Shared:
    """Two cores that use one element, or what each core has where there are none.

    Attributes:
        cores: the coordinates of two cores; None where no element is used by two.
        index: the element.
        span: for each axis, the most elements from the first to the last that one core uses.
    """

    cores: tuple[tuple[int, ...], tuple[int, ...]] | None
    index: tuple[int, ...]
    span: tuple[int, ...]


def shared(uses: Sequence[Use]) -> Shared:
    """What cores share among `uses`, and what each has.

    Raises:
        NotAffine: an index or a bound is no affine function of the loops.
    """
    owned: isl.Map | None = None
    for use in uses:
        each = _elements_by_core(use)
        owned = each if owned is None else owned.union(each)
    assert owned is not None
    meeting = owned.apply_range(owned.reverse())
    identity = isl.Map.identity(meeting.get_space())
    clash = meeting.subtract(identity)
    if not clash.is_empty():
        return _witness(owned, clash)
    spans = []
    for k in range(owned.dim(_OUT)):
        width = _extreme(owned, k, most=True).sub(_extreme(owned, k, most=False))
        spans.append(int(width.max_val().to_python()) + 1)
    return Shared(None, (), tuple(spans))


def _extreme(owned: isl.Map, axis: int, *, most: bool) -> isl.PwAff:
    """The greatest or least index along an axis, for each core."""
    count = owned.dim(_OUT)
    alone = owned.project_out(_OUT, axis + 1, count - axis - 1).project_out(_OUT, 0, axis)
    found = alone.lexmax_pw_multi_aff() if most else alone.lexmin_pw_multi_aff()
    return found.get_pw_aff(0)


def _elements_by_core(use: Use) -> isl.Map:
    variables = tuple(var for var, _, _ in use.loops)
    space = Space(variables)
    points = space.box([(low, extent) for _, low, extent in use.loops])
    for condition in use.conditions:
        points = points.intersect(condition_hull(condition, space)[0])
    core = index_relation(use.core, space).intersect_domain(points)
    elements = index_relation(use.indices, space).intersect_domain(points)
    return core.reverse().apply_range(elements)


def _witness(owned: isl.Map, clash: isl.Map) -> Shared:
    pair = clash.sample()
    one, other = (_coordinates(part.sample_point()) for part in (pair.domain(), pair.range()))
    least, most = sorted((one, other))
    both = owned.intersect_domain(_point(owned, least)).range().intersect(
        owned.intersect_domain(_point(owned, most)).range()
    )
    return Shared((least, most), _coordinates(both.lexmin().sample_point()), ())


def _point(owned: isl.Map, values: tuple[int, ...]) -> isl.Set:
    points = owned.domain()
    for k, value in enumerate(values):
        points = points.fix_val(isl.dim_type.set, k, value)
    return points


def _coordinates(point: isl.Point) -> tuple[int, ...]:
    count = point.get_space().dim(isl.dim_type.set)
    return tuple(
        int(point.get_coordinate_val(isl.dim_type.set, k).to_python()) for k in range(count)
    )
