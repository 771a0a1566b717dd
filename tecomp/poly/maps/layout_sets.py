"""Decide layout properties with integer sets."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import islpy as isl

from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.poly.sets.from_isl import set_to_condition, to_expr
from tecomp.poly.sets.isl_expressions import python_int
from tecomp.poly.sets.to_isl import (
    Products,
    Space,
    condition,
    first_point,
    index_relation,
    products_of,
    pw_aff,
)

_DIM = isl.dim_type.set


@dataclass(frozen=True)
class LayoutSet:
    """Map `exprs` of the indices `axes`, which range over the box `[0, extents)`.

    All properties raise NotAffine if an expression is not quasi-affine. A non-affine part of an
    extent, such as a product of sizes, is treated as a number of unknown value.
    """

    exprs: tuple[Expr, ...]
    axes: tuple[Var, ...]
    extents: tuple[Extent, ...]

    @cached_property
    def _products(self) -> Products:
        symbolic = [extent for extent in self.extents if isinstance(extent, Expr)]
        return products_of(symbolic, (v for extent in symbolic for v in free_variables(extent)))

    @cached_property
    def _sizes(self) -> tuple[Extent, ...]:
        return self._named(self.extents)

    def _named(self, extents: Sequence[Extent]) -> tuple[Extent, ...]:
        named = self._products.named
        return tuple(n if isinstance(n, int) else named(n) for n in extents)

    def _in_sizes(self, expr: Expr) -> Expr:
        return substitute(expr, dict(self._products.values))

    @cached_property
    def space(self) -> Space:
        """Space of the indices, with every other variable as a parameter."""
        others: dict[Var, None] = {}
        for expr in (*self._sizes, *self.exprs):
            if isinstance(expr, Expr):
                others.update(free_variables(expr))
        return Space(self.axes, tuple(var for var in others if var not in set(self.axes)))

    @cached_property
    def _box(self) -> isl.Set:
        return self.space.box([(0, size) for size in self._sizes])

    @cached_property
    def relation(self) -> isl.Map:
        """Relation `{ index -> physical index }`."""
        return index_relation(self.exprs, self.space).intersect_domain(self._box)

    def is_injective(self) -> bool:
        """Return whether the map is injective for all values of the parameters."""
        return bool(self.relation.is_injective())

    def first_collision(self) -> tuple[tuple[int, ...], tuple[int, ...]] | None:
        """Return the first two indices with the same image, for the least such parameters."""
        if self.is_injective():
            return None
        pairs = self.relation.apply_range(self.relation.reverse())
        clashes = pairs.subtract(isl.Map.identity(pairs.get_space()))
        twins = tuple(Var(axis.name) for axis in self.axes)
        space = Space((*self.axes, *twins), self.space.params)
        found = first_point(clashes.wrap().flatten(), space)
        return tuple(found[a] for a in self.axes), tuple(found[a] for a in twins)

    def inverse(self, index: Sequence[Var]) -> tuple[Expr, ...]:
        """Return each index in terms of the physical index, for an injective map."""
        found = isl.PwMultiAff.from_map(self.relation.reverse()).coalesce()
        names = {**Space(tuple(index), self.space.params).names}
        exprs = (to_expr(found.get_at(k), names) for k in range(len(self.axes)))
        return tuple(self._in_sizes(expr) for expr in exprs)

    def misses(self, index: Sequence[Var], ends: Sequence[Extent]) -> Expr:
        """Return the condition under which a physical index in `[0, ends)` has no element."""
        space = Space(tuple(index), self.space.params)
        box = space.box([(0, end) for end in self._named(ends)])
        occupied = self.relation.range()
        empty = box.subtract(occupied).coalesce().gist(box)
        return self._in_sizes(set_to_condition(empty, {**space.names}))

    def is_never(self, conditions: Sequence[Expr], index: Sequence[Var],
                 ends: Sequence[Extent]) -> bool:
        """Return whether none of `conditions` is satisfiable in the box `[0, ends)` of `index`."""
        space = Space(tuple(index), self.space.params)
        box = space.box([(0, end) for end in self._named(ends)])
        named = self._products.named
        return all(condition(named(c), space).intersect(box).is_empty() for c in conditions)

    def count_places(self) -> int:
        """Return the number of physical indices with an element; the extents must be constants."""
        return python_int(self.relation.range().count_val())

    def greatest(self, k: int) -> Extent | None:
        """Return the greatest value of expression k, or None if there is no index."""
        if self._box.is_empty():
            return None
        top = self.relation.range().dim_max(k)
        found = to_expr(top.coalesce(), {**self.space.names})
        return int(found.value) if isinstance(found, Const) else self._in_sizes(found)

    def first_below_zero(self, k: int) -> dict[Var, int] | None:
        """Return the first index, with the least parameters, where expression k is negative."""
        value = pw_aff(self.exprs[k], self.space)
        zero = pw_aff(0, self.space)
        negative = value.lt_set(zero).intersect(self._box)
        if negative.is_empty():
            return None
        return first_point(negative, self.space)

    def same_as(self, exprs: Sequence[Expr]) -> bool:
        """Return whether `exprs`, of the same axes, have equal values on the whole box."""
        other = LayoutSet(tuple(exprs), self.axes, self.extents)
        space = Space(self.axes, tuple(dict.fromkeys((*self.space.params, *other.space.params))))
        box = space.box([(0, size) for size in self._sizes])
        return all(
            pw_aff(a, space).ne_set(pw_aff(b, space)).intersect(box).is_empty()
            for a, b in zip(self.exprs, exprs, strict=True)
        )
