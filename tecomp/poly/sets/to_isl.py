"""Conversion of expressions to isl sets and functions; sample points; products of sizes."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cache, cached_property
from operator import is_
from typing import Any, TypeAlias

import islpy
from islpy import Aff, BasicSet, Constraint, LocalSpace, Map, PwAff, Set, Val, dim_type

from tecomp.caches import memoize
from tecomp.ir.nodes.expr import Binary, BinOp, Const, Expr, Not, Var
from tecomp.ir.nodes.printer import take_name
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import bottom_up, free_variables, post_order, substitute
from tecomp.poly.sets.from_isl import ast_expr, set_to_condition, to_expr
from tecomp.poly.sets.isl_context import CONTEXT, cached_question, within_budget
from tecomp.poly.sets.isl_expressions import (
    AND,
    OR,
    Function,
    NotAffine,
    add,
    number,
    piecewise,
    python_int,
    truth,
)

__all__ = [
    "NotAffine",
    "Points",
    "Products",
    "Space",
    "ast_expr",
    "condition",
    "condition_hull",
    "first_point",
    "index_relation",
    "products_of",
    "pw_aff",
    "set_to_condition",
    "to_expr",
]


@dataclass(frozen=True, slots=True)
class _Named:
    """isl space of a given number of parameters and dimensions, with its coordinates and universe.

    The isl binding leaks a few bytes for each new space or set, so equal objects are built once.
    """

    space: islpy.Space
    local: LocalSpace
    affs: tuple[Aff, ...]
    universe: Set


@cache
def _named_space(n_params: int, n_dims: int) -> _Named:
    # Names are positional, so all spaces of one size are equal; naming dimensions is slow in isl.
    space = islpy.Space.set_alloc(CONTEXT, n_params, n_dims)
    for k in range(n_params):
        space = space.set_dim_name(dim_type.param, k, f"p{k}")
    for k in range(n_dims):
        space = space.set_dim_name(dim_type.set, k, f"d{k}")
    local = LocalSpace.from_space(space)
    coords = (*((dim_type.param, k) for k in range(n_params)),
              *((dim_type.set, k) for k in range(n_dims)))
    affs = tuple(Aff.var_on_domain(local, *coord) for coord in coords)
    return _Named(space, local, affs, Set.universe(space))


@cache
def _space_with_named_params(n_params: int, n_dims: int) -> islpy.Space:
    """Return the space of a result as `_named_space` does, with names for the parameters only."""
    space = islpy.Space.set_alloc(CONTEXT, n_params, n_dims)
    for k in range(n_params):
        space = space.set_dim_name(dim_type.param, k, f"p{k}")
    return space


@dataclass(frozen=True)
class Space:
    """Integer points with one coordinate for each of `dims`, parametrized by `params`.

    >>> i, n = Var("i"), Var("n")
    >>> Space((i,), (n,)).box([(0, n)])
    Set("[p0] -> { [d0] : 0 <= d0 < p0 }")
    """

    dims: tuple[Var, ...]
    params: tuple[Var, ...] = ()

    @property
    def isl(self) -> islpy.Space:
        """Space in isl, with dimensions named `d0, d1, ...` and parameters named `p0, p1, ...`."""
        return _named_space(len(self.params), len(self.dims)).space

    @cached_property
    def names(self) -> Mapping[str, Expr]:
        """Variables by their isl names, in the form that `tecomp.poly.sets.from_isl` expects."""
        dims = {f"d{k}": var for k, var in enumerate(self.dims)}
        return {**dims, **{f"p{k}": var for k, var in enumerate(self.params)}}

    @property
    def _local(self) -> LocalSpace:
        return _named_space(len(self.params), len(self.dims)).local

    @cached_property
    def _affs(self) -> dict[Var, Aff]:
        named = _named_space(len(self.params), len(self.dims))
        return dict(zip((*self.params, *self.dims), named.affs, strict=True))

    def var(self, var: Var) -> Aff:
        """Return the coordinate or parameter `var` as a function on the space.

        Raises:
            NotAffine: If `var` is not a variable of the space.
        """
        found = self._affs.get(var)
        if found is None:
            raise NotAffine(var)
        return found

    def const(self, value: int) -> Aff:
        """Return the constant function `value`."""
        return Aff.val_on_domain(self._local, Val.int_from_si(CONTEXT, value))

    def sum(self, const: int, factors: Mapping[Var, int]) -> Aff:
        """Return the function `const + factor * variable + ...`.

        Raises:
            NotAffine: If a variable does not belong to the space.
        """
        terms = [(var, factor) for var, factor in factors.items() if factor]
        if not const and len(terms) == 1 and terms[0][1] == 1:
            return self.var(terms[0][0])
        total = self.const(const)
        for var, factor in terms:
            kind, position = self._place(var)
            total = total.set_coefficient_val(kind, position, factor)
        return total

    def _place(self, var: Var) -> tuple[dim_type, int]:
        for kind, names in ((dim_type.in_, self.dims), (dim_type.param, self.params)):
            for k, name in enumerate(names):
                if name is var:
                    return kind, k
        raise NotAffine(var)

    def universe_set(self) -> Set:
        """Return the set of all points."""
        return _named_space(len(self.params), len(self.dims)).universe

    def empty_set(self) -> Set:
        """Return the empty set."""
        return Set.empty(self.isl)

    def box(self, ranges: Sequence[tuple[Extent, Extent]]) -> Set:
        """Return the points whose coordinate k is in `[low, low + extent)` of the k-th range.

        Args:
            ranges: (low, extent) of each dimension; affine in the parameters. For a set that is
                not a box, bounds may also depend on other dimensions.

        Raises:
            NotAffine: If a bound is not affine.
        """
        bounds = [(_plain(start), _plain(extent)) for start, extent in ranges]
        numbers = tuple([
            (low, extent) if isinstance(low, int) and isinstance(extent, int) else None
            for low, extent in bounds
        ])
        points = _box_set(len(self.params), numbers)
        for k, (low, extent) in enumerate(bounds):
            if numbers[k] is None:
                first = number(low, self)
                end = add(first, number(extent, self))
                points = points.intersect(_between(self._affs[self.dims[k]], first, end))
        return points


def _plain(extent: Extent) -> Extent:
    return int(extent.value) if isinstance(extent, Const) else extent


@memoize("poly.boxes")
def _box_set(n_params: int, ranges: tuple[tuple[int, int] | None, ...]) -> Set:
    """Return the points with coordinates in the (low, extent) ranges; None means unbounded."""
    points = _named_space(n_params, len(ranges)).universe
    for k, span in enumerate(ranges):
        if span is not None:
            low, extent = span
            points = points.lower_bound_val(dim_type.set, k, low)
            points = points.upper_bound_val(dim_type.set, k, low + extent - 1)
    return points


def _between(value: Aff, first: Function, end: Function) -> Set:
    """Return the points where `first <= value < end`."""
    if isinstance(first, Aff) and isinstance(end, Aff):
        lower = Constraint.inequality_from_aff(value.sub(first))
        upper = Constraint.inequality_from_aff(end.sub(value).add_constant_val(-1))
        universe = BasicSet.universe(value.get_domain_space())
        return Set.from_basic_set(universe.add_constraint(lower).add_constraint(upper))
    axis = piecewise(value)
    return axis.ge_set(piecewise(first)).intersect(axis.lt_set(piecewise(end)))


def pw_aff(expr: Extent, space: Space) -> PwAff:
    """Return an integer expression as a function on `space`.

    Supported are `+ - min max abs`, `*` by a constant, `//` and `%` by a constant, shifts by and
    masks with constants that are equivalent to these, Select and if_then_else, and conversions
    between integer dtypes (assumed to be lossless where the target has 32 bits or more).

    Raises:
        NotAffine: If `expr` contains any other operation.

    >>> i = Var("i")
    >>> pw_aff(i // 4 + 1, Space((i,)))
    PwAff("{ [d0] -> [(1 + floor((d0)/4))] }")
    """
    return piecewise(number(expr, space))


def condition(cond: Expr, space: Space) -> Set:
    """Return the points of `space` that satisfy `cond`.

    Raises:
        NotAffine: If a part of `cond` is not affine.
    """
    return truth(cond, space)


def condition_hull(cond: Expr, space: Space) -> tuple[Set, bool]:
    """Return a superset of the points where `cond` may hold, and whether the superset is exact.

    A part of `cond` that is not affine in the variables of `space` is taken as true or as false,
    whichever gives more points.
    """
    exact = True
    done: dict[tuple[int, bool], Set] = {}

    def inside(item: _Signed) -> list[_Signed]:
        return _logic_parts(*item)

    for node, negated in post_order((cond, False), parts=inside, key=_name_of):
        parts = [done[_name_of(part)] for part in _logic_parts(node, negated)]
        if len(parts) == 2 and isinstance(node, Binary):
            is_and = (node.op in AND) != negated
            hull = parts[0].intersect(parts[1]) if is_and else parts[0].union(parts[1])
        elif parts:
            hull = parts[0]
        else:
            try:
                hull = truth(node, space)
                hull = hull.complement() if negated else hull
            except NotAffine:
                hull, exact = space.universe_set(), False
        done[id(node), negated] = hull
    return done[id(cond), False], exact


_Signed: TypeAlias = "tuple[Expr, bool]"


def _name_of(item: _Signed) -> tuple[int, bool]:
    return id(item[0]), item[1]


def _logic_parts(node: Expr, negated: bool) -> list[_Signed]:
    if isinstance(node, Not):
        return [(node.a, not negated)]
    if isinstance(node, Binary) and node.op in (*AND, *OR) and node.dtype.is_bool:
        return [(node.a, negated), (node.b, negated)]
    return []


def index_relation(exprs: Sequence[Extent], space: Space) -> Map:
    """Return the relation `{ [dims] -> [exprs] }` on all points of `space`.

    Raises:
        NotAffine: If one of `exprs` is not affine.
    """
    return _relation([number(expr, space) for expr in exprs], space)


def relation_unless_identity(exprs: Sequence[Extent], space: Space) -> Map | None:
    """Return `index_relation`, or None if `exprs` are the dimensions of `space` in order.

    Raises:
        NotAffine: If one of `exprs` is not affine.
    """
    return _unless_identity(tuple(exprs), space)


@cached_question
def _unless_identity(exprs: tuple[Extent, ...], space: Space) -> Map | None:
    values = [number(expr, space) for expr in exprs]
    variables = [space.var(dim) for dim in space.dims]
    if len(values) == len(variables) and all(map(is_, values, variables)):
        return None
    return _relation(values, space)


def _relation(values: Sequence[Function], space: Space) -> Map:
    map_space = space.isl.map_from_domain_and_range(
        _space_with_named_params(len(space.params), len(values)))
    affs = [value for value in values if isinstance(value, Aff)]
    if len(affs) == len(values):
        single = islpy.AffList.alloc(CONTEXT, len(affs))
        for aff in affs:
            single = single.add(aff)
        return Map.from_multi_aff(islpy.MultiAff.from_aff_list(map_space, single))
    pieces = islpy.PwAffList.alloc(CONTEXT, len(values))
    for value in values:
        pieces = pieces.add(piecewise(value))
    return Map.from_multi_pw_aff(islpy.MultiPwAff.from_pw_aff_list(map_space, pieces))


Points: TypeAlias = "Set"
"""Points of loops, indices or elements, with the enclosing variables as parameters."""


_DIM = islpy.dim_type.set
_PARAM = islpy.dim_type.param


def first_point(points: islpy.Set, space: Space) -> dict[Var, int]:
    """Return the lexicographically first point, parameters first; `points` must not be empty.

    Parameters are nonnegative if such a point exists; otherwise any point is returned, because a
    parameter that is not an extent may have no least value. If the search for the first point
    exceeds its share of the budget, any point with nonnegative parameters is returned.

    >>> i = Var("i")
    >>> line = Space((i,))
    >>> first_point(line.box([(3, 4)]), line)
    {i: 3}
    """
    count = len(space.params)
    # Align first: parameters that the set does not mention become 0.
    points = points.align_params(space.isl)
    combined = points.move_dims(_DIM, 0, _PARAM, 0, count)
    natural = combined
    for k in range(count):
        natural = natural.lower_bound_val(_DIM, k, 0)
    minimum = None if natural.is_empty() else within_budget(natural.lexmin)
    any_of = combined if natural.is_empty() else natural
    first = (any_of if minimum is None else minimum).sample_point()
    variables = (*space.params, *space.dims)
    return {
        var: python_int(first.get_coordinate_val(_DIM, k)) for k, var in enumerate(variables)
    }


_BY_CONSTANTS = (BinOp.MUL, BinOp.FLOORDIV, BinOp.MOD)
_BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR, BinOp.SHL, BinOp.SHR)


@dataclass(frozen=True, slots=True)
class Products:
    """Variables for the non-affine parts of extents, such as `n * m`.

    A set knows nothing about such a variable except that its value is the same everywhere.

    Attributes:
        parts: Variable -> its part, in terms of sizes and of earlier variables.
        values: Variable -> its part, in terms of sizes only.
    """

    parts: Mapping[Var, Expr] = field(default_factory=dict)
    values: Mapping[Var, Expr] = field(default_factory=dict)

    @property
    def variables(self) -> tuple[Var, ...]:
        """All variables."""
        return tuple(self.parts)

    def named(self, extent: Expr) -> Expr:
        """Replace the parts in `extent` by their variables."""
        return bottom_up(extent, self._named) if self.parts else extent

    def _named(self, node: Any) -> Expr | None:
        if not _is_product(node):
            return None
        found = (var for var, part in self.parts.items() if _same_product(part, node))
        return next(found, None)


def products_of(extents: Iterable[Expr], sizes: Iterable[Var]) -> Products:
    """Return variables for the non-affine parts of `extents`, which are in terms of `sizes`.

    >>> n, m = Var("n"), Var("m")
    >>> products = products_of([n * m // 4, m * n], [n, m])
    >>> products.values
    {size: n * m}
    """
    taken = {var.name for var in sizes}
    products = Products()

    def rule(node: Any) -> Expr | None:
        nonlocal products
        if not _is_product(node):
            return None
        if (known := products.named(node)) is not node:
            return known
        var = Var(take_name("size", taken), node.dtype)
        value = substitute(node, dict(products.values))
        products = Products({**products.parts, var: node}, {**products.values, var: value})
        return var

    for extent in extents:
        bottom_up(extent, rule)
    return products


def _is_product(node: Any) -> bool:
    """Return whether an integer node is a non-affine product, quotient or bitwise operation."""
    if not isinstance(node, Binary) or not node.dtype.is_integer:
        return False
    if node.op in _BITS:
        return not _is_affine(node)
    if node.op not in _BY_CONSTANTS:
        return False
    constant = [isinstance(operand, Const) for operand in (node.a, node.b)]
    return not (any(constant) if node.op is BinOp.MUL else constant[1])


def _is_affine(node: Expr) -> bool:
    try:
        pw_aff(node, Space((), tuple(free_variables(node))))
    except NotAffine:
        return False
    return True


def _same_product(a: Expr, b: Expr) -> bool:
    assert isinstance(a, Binary)
    assert isinstance(b, Binary)
    swapped = (
        a.op is b.op is BinOp.MUL and structural_equal(a.a, b.b) and structural_equal(a.b, b.a)
    )
    return swapped or structural_equal(a, b)
