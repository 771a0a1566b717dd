"""Elements that several iterations or cores access."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise

import islpy as isl

from tecomp.ir.arith.extents import round_up
from tecomp.ir.nodes.expr import CmpOp, Compare, Expr, Var, index_value, logical_and
from tecomp.poly.loops.regions import LoopScope
from tecomp.poly.sets.from_isl import set_to_condition
from tecomp.poly.sets.isl_context import cached_set_question
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.to_isl import Space, condition_hull, index_relation

_IN = isl.dim_type.in_
_OUT = isl.dim_type.out
_PARAM = isl.dim_type.param
_SET = isl.dim_type.set


def find_shared_point(
    points: isl.Set, scope: LoopScope, loop: Var
) -> tuple[int, int, tuple[int, ...]] | None:
    """Return two iterations of `loop` with a common point of `points`, and that point, or None.

    The two iterations agree in the loops outside `loop`.

    Args:
        points: Set that depends on the loops of `scope`.
        scope: Enclosing loops.
        loop: One of the loops of `scope`.

    Returns:
        The two values of `loop`, the smaller first, and the coordinates of the common point.
    """
    position = scope.params.index(loop) - scope.n_sizes
    count = len(scope.params) - scope.n_sizes
    known = points.intersect_params(scope.context)
    known = known.align_params(Space((), scope.params).isl)
    touched = isl.Map.from_range(known).move_dims(_IN, 0, _PARAM, scope.n_sizes, count)
    # The loops inside `loop` may have different values in the two iterations.
    touched = touched.project_out(_IN, position + 1, count - position - 1)
    clashes = touched.apply_range(touched.reverse())
    for k in range(position):
        clashes = clashes.equate(_IN, k, _OUT, k)
    clashes = clashes.order_lt(_IN, position, _OUT, position)
    if clashes.is_empty():
        return None
    pair = clashes.lexmin().sample()
    first, second = (isl.Set.from_basic_set(part) for part in (pair.domain(), pair.range()))
    common = first.apply(touched).intersect(second.apply(touched)).lexmin().sample_point()
    rank = touched.dim(_OUT)
    element = tuple(python_int(common.get_coordinate_val(_SET, k)) for k in range(rank))
    return _coordinate(first, position), _coordinate(second, position), element


def _coordinate(point: isl.Set, position: int) -> int:
    return python_int(point.dim_max_val(position))


@dataclass(frozen=True, slots=True)
class CoreAccess:
    """Access inside loops.

    Attributes:
        loops: Variable, first value and extent of each loop, outermost first.
        conditions: Guards of the access.
        core: Core that makes the access: a variable or 0 for each grid axis.
        indices: Indices of the element.
    """

    loops: tuple[tuple[Var, Expr, Expr], ...]
    conditions: tuple[Expr, ...]
    core: tuple[Expr, ...]
    indices: tuple[Expr, ...]


@dataclass(frozen=True, slots=True)
class CoreSharing:
    """Result of `find_shared_element`: a conflict between two cores, or the span of each core.

    Attributes:
        cores: Coordinates of two cores that use one element; None if no element is shared.
        index: Index of the shared element; empty if no element is shared.
        span: For each axis, the maximum over the cores of the number of elements from the first to
            the last one that a core uses; empty if an element is shared.
    """

    cores: tuple[tuple[int, ...], tuple[int, ...]] | None
    index: tuple[int, ...]
    span: tuple[int, ...]


def find_shared_element(
    uses: Sequence[CoreAccess], copies: Sequence[CoreAccess] = ()
) -> CoreSharing:
    """Find an element that two cores use, or compute the index span of each core.

    Args:
        uses: Accesses that make their elements private to the core.
        copies: Accesses that may use elements of any core. Elements that no access in `uses`
            touches belong to the copying core.

    Raises:
        NotAffine: If an index or a bound is not an affine function of the loops.
    """
    owned = _ownership_map(uses, copies)
    core_pairs = owned.apply_range(owned.reverse())
    identity = isl.Map.identity(core_pairs.get_space())
    conflicts = core_pairs.subtract(identity)
    if not conflicts.is_empty():
        pair = conflicts.sample()
        left, right = (_coordinates(part.sample_point()) for part in (pair.domain(), pair.range()))
        first, second = sorted((left, right))
        shared = owned.intersect_domain(_point(owned, first)).range().intersect(
            owned.intersect_domain(_point(owned, second)).range()
        )
        return CoreSharing((first, second), _coordinates(shared.lexmin().sample_point()), ())
    return CoreSharing(None, (), _spans(owned))


def spans(uses: Sequence[CoreAccess]) -> tuple[int, ...]:
    """Return the number of elements from the first to the last one that a core uses, by axis.

    Each number is the maximum over the cores, which may share elements.

    Args:
        uses: Accesses; all sizes must be numbers.

    Raises:
        NotAffine: If an index or a bound is not an affine function of the loops.
    """
    return _spans(_join(uses))


def _spans(elements: isl.Map) -> tuple[int, ...]:
    found = []
    for k in range(elements.dim(_OUT)):
        width = _extreme(elements, k, is_max=True).sub(_extreme(elements, k, is_max=False))
        found.append(python_int(width.max_val()) + 1)
    return tuple(found)


def by_owner(
    copy: CoreAccess, uses: Sequence[CoreAccess], copies: Sequence[CoreAccess]
) -> Iterator[tuple[tuple[int, ...], Expr]]:
    """Yield each core that owns elements which a copy accesses, and the condition of access.

    Args:
        copy: One of `copies`.
        uses: Accesses without a conflict according to `find_shared_element`.
        copies: Copies as passed to `find_shared_element`; all sizes must be numbers.

    Yields:
        The coordinates of a core, and a condition on the loops around the copy.
    """
    owned = _ownership_map(uses, copies)
    accessed = _elements_by_core(copy).range()
    names: Mapping[str, Expr] = {f"d{k}": index for k, index in enumerate(copy.indices)}
    found: list[isl.Point] = []
    owned.intersect_range(accessed).domain().foreach_point(found.append)
    cores = sorted(map(_coordinates, found))
    bounds = _separate_bounds(owned, cores)
    if bounds is not None:
        axis, ends = bounds
        for core in cores:
            yield core, _in_interval(copy.indices[axis], *ends[core])
        return
    # `gist` takes minutes for quotients of several loops; a superset of the elements is as valid.
    superset = accessed.remove_divs()
    for core in cores:
        elements = owned.intersect_domain(_point(owned, core)).range()
        yield core, set_to_condition(elements.coalesce().gist(superset), names)


def _separate_bounds(
    owned: isl.Map, cores: Sequence[tuple[int, ...]]
) -> tuple[int, dict[tuple[int, ...], tuple[int | None, int | None]]] | None:
    """Return an axis along which cores own disjoint intervals, and the interval of each core.

    An interval has an inclusive lower and an exclusive upper bound. None as a bound of the first or
    the last core is unbounded. No core owns the elements between two intervals, so the bound there
    can be a multiple of a large power of two.
    """
    parts = {core: owned.intersect_domain(_point(owned, core)).range() for core in cores}
    rank = owned.dim(_OUT)
    for axis in range(rank) if cores else ():
        extremes: list[tuple[int, int, tuple[int, ...]]] = []
        for core, part in parts.items():
            line = part.project_out(_SET, axis + 1, rank - axis - 1).project_out(_SET, 0, axis)
            # `dim_min_val` ignores that some elements are multiples of a number.
            first, last = (end.sample_point() for end in (line.lexmin(), line.lexmax()))
            extremes.append((_coordinates(first)[0], _coordinates(last)[0], core))
        extremes.sort()
        gaps = [(last, first) for (_, last, _), (first, *_) in pairwise(extremes)]
        if all(last < first for last, first in gaps):
            between = [_most_even(last + 1, first) for last, first in gaps]
            ends = pairwise([None, *between, None])
            ordered = (core for *_, core in extremes)
            return axis, dict(zip(ordered, ends, strict=True))
    return None


def _most_even(low: int, high: int) -> int:
    """Return the number from `low` to `high` that is divisible by the largest power of two.

    >>> _most_even(3057, 3072), _most_even(2000, 2100), _most_even(5, 5)
    (3072, 2048, 5)
    """
    if low <= 0 <= high:
        return 0
    power = 1
    while round_up(low, 2 * power) <= high:
        power *= 2
    return round_up(low, power)


def _in_interval(index: Expr, low: int | None, end: int | None) -> Expr:
    """Return the condition that an index is in an interval with an exclusive end."""
    conditions = []
    if low is not None:
        conditions.append(Compare(CmpOp.GE, index, index_value(low)))
    if end is not None:
        conditions.append(Compare(CmpOp.LT, index, index_value(end)))
    return logical_and(*conditions)


def _ownership_map(uses: Sequence[CoreAccess], copies: Sequence[CoreAccess]) -> isl.Map:
    """Return the elements owned by each core."""
    owned = _join(uses or copies)
    if not (uses and copies):
        return owned
    unowned = _outside(_join(copies), owned.range().coalesce())
    return owned.union(unowned) if not unowned.is_empty() else owned


@cached_set_question
def _outside(accesses: isl.Map, elements: isl.Set) -> isl.Map:
    """Return the accesses to other elements than `elements`."""
    # Subtraction takes four times as long as inclusion if the shards of two grids are ragged.
    if accesses.range().coalesce().is_subset(elements):
        return isl.Map.empty(accesses.get_space())
    return accesses.subtract_range(elements)


def _join(uses: Sequence[CoreAccess]) -> isl.Map:
    first, *others = map(_elements_by_core, uses)
    for relation in others:
        first = first.union(relation)
    return first


def _extreme(owned: isl.Map, axis: int, *, is_max: bool) -> isl.PwAff:
    """Return the maximum or minimum index along an axis for each core."""
    count = owned.dim(_OUT)
    along_axis = owned.project_out(_OUT, axis + 1, count - axis - 1).project_out(_OUT, 0, axis)
    found = along_axis.lexmax_pw_multi_aff() if is_max else along_axis.lexmin_pw_multi_aff()
    return found.get_pw_aff(0)


def _elements_by_core(use: CoreAccess) -> isl.Map:
    variables = tuple(var for var, _, _ in use.loops)
    space = Space(variables)
    points = space.box([(low, extent) for _, low, extent in use.loops])
    for condition in use.conditions:
        points = points.intersect(condition_hull(condition, space)[0])
    core = index_relation(use.core, space).intersect_domain(points)
    elements = index_relation(use.indices, space).intersect_domain(points)
    return core.reverse().apply_range(elements)


def _point(owned: isl.Map, values: tuple[int, ...]) -> isl.Set:
    points = owned.domain()
    for k, value in enumerate(values):
        points = points.fix_val(_SET, k, value)
    return points


def _coordinates(point: isl.Point) -> tuple[int, ...]:
    count = point.get_space().dim(_SET)
    return tuple(python_int(point.get_coordinate_val(_SET, k)) for k in range(count))
