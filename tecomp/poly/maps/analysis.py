"""Injectivity, inverse, padding, equivalence and strided digits of index maps."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from math import prod

import numpy as np

from tecomp.errors import LayoutError
from tecomp.ir.arith.extents import ceil_div, constant_shape, is_empty
from tecomp.ir.arith.quasi_affine import Digit, QuasiAffine
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import BOOL, INT64
from tecomp.ir.nodes.expr import CmpOp, Compare, Const, Expr, Var, index_value, logical_or
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.nodes.structural_equality import structural_equal
from tecomp.ir.traversal.rewrite import free_variables, substitute
from tecomp.poly.maps import bit_matrix, brute_force
from tecomp.poly.maps.digit_solver import Solution, solve
from tecomp.poly.maps.image_extents import LayoutSet, bounds_of, extent_of
from tecomp.poly.sets.isl_context import isl_work
from tecomp.poly.sets.quasi_affine_reader import IndexReader
from tecomp.poly.sets.to_isl import NotAffine, Space, pw_aff

Index = tuple[int, ...]


@dataclass(frozen=True)
class IndependentAxes:
    """Axes, and the results of a map that depend on these axes only.

    Attributes:
        axes: Positions of the axes.
        variables: Variables of the axes.
        extents: Extents of the axes; none is 0.
        results: Results, in which other axes may occur without an effect on the value.
        all_axes: All axes of the map.
        forms: Forms of the results, with periods.
        reader: Reader of forms without periods.
        result_variables: Variable for each result.
        ends: Extent of each result.
    """

    axes: tuple[int, ...]
    variables: tuple[Var, ...]
    extents: tuple[Extent, ...]
    results: tuple[Expr, ...]
    all_axes: tuple[Var, ...]
    forms: tuple[QuasiAffine | None, ...]
    reader: IndexReader
    result_variables: tuple[Var, ...]
    ends: tuple[Extent, ...]

    @cached_property
    def solution(self) -> Solution | None:
        """Indices and conditions found digit by digit; None if the digit solver does not apply."""
        forms = []
        for form, expr in zip(self.forms, self.results, strict=True):
            exact = self.reader.exact(form, expr)
            if exact is None:
                return None
            forms.append(exact)
        extents = dict(zip(self.axes, self.extents, strict=True))
        return solve(forms, self.result_variables, self.reader, extents, self.ends)

    @cached_property
    def exprs(self) -> tuple[Expr, ...]:
        """Results in terms of the axes of this group only."""
        variables = set(self.variables)
        zeros = {var: Const(0, INT64) for var in self.all_axes if var not in variables}
        return tuple(substitute(expr, zeros) for expr in self.results)

    @cached_property
    def set(self) -> LayoutSet:
        """Map of this group as an integer set."""
        return LayoutSet(self.exprs, self.variables, self.extents)

    @cached_property
    def _is_affine(self) -> bool:
        try:
            return bool(self.set.relation.get_ctx())
        except NotAffine:
            return False

    @cached_property
    def _is_small(self) -> bool:
        return brute_force.is_small(self.exprs, self.variables, self.extents)

    @cached_property
    def _elements(self) -> tuple[Index, list[brute_force.Array]]:
        shape = brute_force.is_enumerable(self.exprs, self.variables, self.extents)
        return shape, brute_force.evaluate_over_box(self.exprs, self.variables, shape)

    @cached_property
    def collision(self) -> tuple[Index, Index] | None:
        """First two indices of this group with the same physical index; None if it is injective."""
        if self.solution is not None:
            if not self.solution.free:
                return None
            # Take elements that differ in a free digit only; the last axis varies fastest.
            number, unit = self.solution.free[-1]
            axis = self.axes.index(number)
            origin = (0,) * len(self.axes)
            return origin, (*origin[:axis], unit, *origin[axis + 1 :])
        if not self._is_small:
            if self._is_affine:
                return self.set.first_collision()
            if self._bit_indices is not None:
                return None
        shape, indices = self._elements
        return brute_force.first_collision(indices, shape)

    @cached_property
    def _bit_indices(self) -> tuple[Expr, ...] | None:
        """Indices as exclusive ors of bits of the physical index, or None; implies injectivity."""
        shape = constant_shape(self.extents)
        if shape is None or self._depends_on_more:
            return None
        return bit_matrix.invert(self.exprs, self.variables, shape, self.result_variables)

    @property
    def _depends_on_more(self) -> bool:
        variables = set(self.variables)
        return any(var not in variables for expr in self.exprs for var in free_variables(expr))

    def count_places(self) -> int:
        """Return the number of physical indices with an element, for constant extents."""
        shape = constant_shape(self.extents)
        if shape is not None and self.collision is None:
            return prod(shape)
        if not self._is_small and self._is_affine:
            return self.set.count_places()
        shape, indices = self._elements
        return brute_force.count_places(indices, prod(shape))

    @cached_property
    def inverse(self) -> tuple[tuple[Expr, ...], tuple[Expr, ...]] | None:
        """Each index in terms of `result_variables`, and conditions for padding.

        None if no expression was found. The group must be injective.
        """
        is_full = self._is_full
        if self.solution is not None and self.solution.indices is not None:
            indices = self.solution.indices
            return indices, () if is_full else self._possible(self.solution.misses)
        if self._is_affine:
            indices = self.set.inverse(self.result_variables)
            if is_full:
                return indices, ()
            return indices, self._possible((self.set.misses(self.result_variables, self.ends),))
        found = self._bit_indices
        if found is None:
            return None
        return found, () if is_full else self._misses(found)

    @property
    def _is_full(self) -> bool:
        shape, ends = constant_shape(self.extents), constant_shape(self.ends)
        return shape is not None and ends is not None and prod(shape) == prod(ends)

    def _possible(self, misses: tuple[Expr, ...]) -> tuple[Expr, ...]:
        """Return `misses`, or nothing if none of them is satisfiable for any symbolic size."""
        if not misses or constant_shape((*self.extents, *self.ends)) is not None:
            return misses
        try:
            return () if self.set.is_never(misses, self.result_variables, self.ends) else misses
        except NotAffine:
            return misses

    def _misses(self, indices: Sequence[Expr]) -> tuple[Expr, ...]:
        """Return conditions for padding: the inverse is out of bounds or does not map back."""
        ranges = {
            p: (0, index_value(n) - 1)
            for p, n in zip(self.result_variables, self.ends, strict=True)
        }
        bindings = dict(zip(self.variables, indices, strict=True))
        conditions = [
            Compare(CmpOp.GE, index, index_value(extent))
            for index, extent in zip(indices, self.extents, strict=True)
        ]
        conditions += [
            Compare(CmpOp.NE, substitute(expr, bindings), var)
            for expr, var in zip(self.exprs, self.result_variables, strict=True)
        ]
        short = (simplify(condition, ranges) for condition in conditions)
        return tuple(c for c in short if not (isinstance(c, Const) and not c.value))

    def is_bijective(self) -> bool:
        """Return whether the group is bijective, for all values of its symbolic extents."""
        if self.collision is not None:
            return False
        if constant_shape((*self.extents, *self.ends)) is not None:
            return self._is_full
        return self.inverse is not None and not self.inverse[1]


class Analysis:
    """Answers about an index map on a shape, each computed on first use."""

    def __init__(
        self,
        variables: tuple[Var, ...],
        exprs: tuple[Expr, ...],
        shape: tuple[Extent, ...],
        ends: tuple[Extent, ...] | None = None,
    ) -> None:
        """Initialize the analysis.

        Args:
            variables: Axes of the map.
            exprs: Results of the map, quasi-affine or with bit operations.
            shape: Extent of each axis.
            ends: Extents of the results, if the parts of a composed map declare more than `exprs`.
        """
        self._given_ends = ends
        self.variables = variables
        self.exprs = exprs
        self.shape = shape
        self.places = tuple(Var(f"p{k}") for k in range(len(exprs)))

    @cached_property
    def _numbers(self) -> dict[Var, int]:
        return {var: k for k, var in enumerate(self.variables)}

    @cached_property
    def forms(self) -> tuple[QuasiAffine | None, ...]:
        """Each result as a sum of digits with their periods; None for a result without a form."""
        return tuple(self._reader.form(expr) for expr in self.exprs)

    @cached_property
    def _reader(self) -> IndexReader:
        return IndexReader(self._numbers, bounds_of(self.shape), keeps_periods=True)

    @cached_property
    def ends(self) -> tuple[Extent, ...]:
        """Shape of the image of the map."""
        return self._given_ends or tuple(
            extent_of(expr, form, self._reader, self.variables, self.shape)
            for expr, form in zip(self.exprs, self.forms, strict=True)
        )

    @property
    def is_empty(self) -> bool:
        """Whether the tensor has no elements."""
        return is_empty(self.shape)

    @cached_property
    def groups(self) -> tuple[IndependentAxes, ...]:
        """Independent parts of the map, in which extents of 0 are replaced by 1."""
        parts = [([k], list[int]()) for k in range(len(self.variables))]
        for result, (expr, form) in enumerate(zip(self.exprs, self.forms, strict=True)):
            unknowns = form.unknowns if form is not None else self._axes_in(expr)
            joined = [part for part in parts if not unknowns.isdisjoint(part[0])]
            if len(joined) != 1:
                parts = [part for part in parts if unknowns.isdisjoint(part[0])]
                joined = [([k for p in joined for k in p[0]], [k for p in joined for k in p[1]])]
                parts += joined
            joined[0][1].append(result)
        shape = tuple(1 if is_empty((n,)) else n for n in self.shape)
        reader = IndexReader(self._numbers, bounds_of(shape))
        return tuple(
            self._group(sorted(axes), sorted(results), shape, reader) for axes, results in parts
        )

    def _axes_in(self, expr: Expr) -> frozenset[int]:
        numbers = self._numbers
        return frozenset(numbers[var] for var in free_variables(expr) if var in numbers)

    def _group(
        self, axes: list[int], results: list[int], shape: tuple[Extent, ...], reader: IndexReader
    ) -> IndependentAxes:
        return IndependentAxes(
            tuple(axes),
            tuple(self.variables[k] for k in axes),
            tuple(shape[k] for k in axes),
            tuple(self.exprs[k] for k in results),
            self.variables,
            tuple(self.forms[k] for k in results),
            reader,
            tuple(self.places[k] for k in results),
            tuple(self.ends[k] for k in results),
        )

    @cached_property
    def collision(self) -> tuple[Index, Index] | None:
        """First two indices with the same physical index; None if the map is injective."""
        if self.is_empty:
            return None
        pairs: list[tuple[Index, Index]] = []
        with isl_work("index map", LayoutError):
            for group in self.groups:
                if group.collision is not None:
                    first, second = (self._spread(group, index) for index in group.collision)
                    pairs.append((first, second))
        if not pairs:
            return None
        # Among groups that collide at the same first index, select the least partner.
        return min(pairs)

    def _spread(self, group: IndependentAxes, index: Index) -> Index:
        full_index = [0] * len(self.shape)
        for axis, n in zip(group.axes, index, strict=True):
            full_index[axis] = n
        return tuple(full_index)

    @cached_property
    def is_bijective(self) -> bool:
        """Whether every physical index of the resulting shape has exactly one element."""
        if self.is_empty:
            return is_empty(self.ends)
        with isl_work("index map", LayoutError):
            return all(group.is_bijective() for group in self.groups)

    @cached_property
    def n_places(self) -> int:
        """Number of physical indices with an element, for a constant shape."""
        if self.is_empty:
            return 0
        with isl_work("index map", LayoutError):
            return prod(group.count_places() for group in self.groups)

    @cached_property
    def inverse(self) -> tuple[tuple[Expr, ...], Expr] | None:
        """Each index in terms of `places`, and the condition for padding.

        None if no expression was found. The map must be injective.
        """
        indices: list[Expr] = [Const(0, INT64)] * len(self.shape)
        misses: list[Expr] = []
        with isl_work("index map", LayoutError):
            for group in self.groups:
                if self.is_empty and group.collision is not None:
                    continue  # no physical index has an element, so any index is valid
                if group.inverse is None:
                    return None
                for axis, index in zip(group.axes, group.inverse[0], strict=True):
                    indices[axis] = index
                misses += group.inverse[1]
        if self.is_empty:
            return tuple(indices), Const(True, BOOL)
        return tuple(indices), logical_or(*misses)


def are_equal(
    left: Sequence[Expr], right: Sequence[Expr], axes: Sequence[Var],
    shape: Sequence[Extent] | None,
) -> bool:
    """Return whether both maps agree for every index of `shape`, or for all integers if None."""
    numbers = {axis: k for k, axis in enumerate(axes)}
    if shape is not None and is_empty(shape):
        return True
    reader = IndexReader(numbers, bounds_of(shape) if shape is not None else [(None, None)]
        * len(axes))
    for a, b in zip(left, right, strict=True):
        first, second = reader.form(a), reader.form(b)
        if first is not None and first == second:
            continue
        if structural_equal(a, b):
            continue
        with isl_work("index map", LayoutError):
            if not _is_equal(a, b, axes, shape):
                return False
    return True


def _is_equal(
    a: Expr, b: Expr, axes: Sequence[Var], shape: Sequence[Extent] | None
) -> bool:
    used = {*free_variables(a), *free_variables(b)}
    positions = [k for k, axis in enumerate(axes) if axis in used]
    used_axes = tuple(axes[k] for k in positions)
    if shape is None:
        return _is_equal_everywhere(a, b)
    sizes = tuple(shape[k] for k in positions)
    if not brute_force.is_small([a, b], used_axes, sizes):
        try:
            return LayoutSet((a,), used_axes, sizes).same_as((b,))
        except NotAffine:
            pass
    constant = brute_force.is_enumerable([a, b], used_axes, sizes)
    first, second = brute_force.evaluate_over_box([a, b], used_axes, constant)
    return bool(np.array_equal(first, second))


def _is_equal_everywhere(a: Expr, b: Expr) -> bool:
    space = Space(tuple({**free_variables(a), **free_variables(b)}))
    try:
        return bool(pw_aff(a, space).ne_set(pw_aff(b, space)).is_empty())
    except NotAffine as error:
        raise LayoutError(
            "index map: cannot decide whether `{a}` and `{b}` are equal for all integers, because "
            "of `{expr}`; specify the shape of the tensor",
            kind="limit-exceeded", a=a, b=b, expr=error.expr,
        ) from None


@dataclass(frozen=True, slots=True)
class StridedDigit:
    """Digit `(x // low) % size` of an index x, with its stride in memory.

    Attributes:
        axis: Position of the index.
        low: Weight of the digit in the index.
        size: Number of values of the digit, including values that the index does not reach.
        stride: Distance of consecutive values in memory, in elements.
    """

    axis: int
    low: int
    size: int
    stride: int


def strided_digits(analysis: Analysis) -> tuple[StridedDigit, ...] | None:
    """Return the digits whose strided sum is the memory offset, or None if there is no such sum.

    The digits of the first result come first; within a result, the greater strides come first.

    >>> from tecomp import IndexMap
    >>> index_map = IndexMap.from_func(lambda i, j: [j // 64, i, j % 64])
    >>> strided_digits(index_map.on((10, 200)))[0]
    StridedDigit(axis=1, low=64, size=4, stride=640)
    """
    found: list[StridedDigit] = []
    stride = 1
    for form, size in reversed(list(zip(analysis.forms, analysis.ends, strict=True))):
        digits = None if form is None else _digits(form, analysis.shape, stride)
        if digits is None or not isinstance(size, int):
            return None
        if len(digits) == 1 and digits[0].stride == stride:
            # The period of a whole result declares its physical extent.
            (only,) = digits
            digits = [StridedDigit(only.axis, only.low, size, stride)]
        found[:0] = digits
        stride *= size
    return tuple(found)


def _digits(form: QuasiAffine, shape: Sequence[Extent], stride: int) -> list[StridedDigit] | None:
    digits: list[StridedDigit] = []
    for part, factor in form.terms.items():
        if not isinstance(part, Digit) or not isinstance(part.of, int):
            return None
        extent = shape[part.of]
        if not isinstance(extent, int):
            return None
        size = part.size or ceil_div(extent, part.low)
        digits.append(StridedDigit(part.of, part.low, size, factor * stride))
    return None if form.const else sorted(digits, key=lambda digit: -digit.stride)
