"""Iterations of an operation that read a given element of a tensor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import prod
from typing import Any

from tecomp.compute.affine_index import Affine, simplify_affine
from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Cast,
    Compare,
    Const,
    Expr,
    Var,
    binary,
    cast,
    compare,
    const,
    index_value,
    match_types,
)
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import children, fold, replace_children, substitute

_UNKNOWN = 1 << 20
"""Number of iterations that a symbolic extent counts as."""


@dataclass(frozen=True)
class Preimage:
    """Iterations that read an element.

    Attributes:
        axes: Reduction axes over all candidates.
        values: Value of each axis of the operation at a candidate.
        conditions: Conditions for a candidate to be an iteration, and to read the element.
        compared: Further conditions, which may read tensors at an iteration of the operation.
    """

    axes: tuple[IterVar, ...]
    values: dict[Var, Expr]
    conditions: tuple[Expr, ...]
    compared: tuple[Expr, ...] = ()


def preimage(
    indices: Sequence[Expr], axes: Sequence[IterVar], element: Sequence[Var],
    shape: Sequence[Extent],
) -> Preimage:
    """Solve index equations for the axes of an operation.

    Affine equations determine as many axes as possible; reduction axes iterate over the values of
    the others. Digits, which are quotients and remainders by constants, are further unknowns. All
    other indices, such as values of tensors, are compared with the index of the element.

    Args:
        indices: Index expressions of a read.
        axes: All axes of the operation that reads.
        element: Variables of the indices of the element.
        shape: Shape of the tensor.
    """
    affines = [simplify_affine(index) for index in indices]
    solved: list[int] = []
    system = _System(axes)
    for k in range(len(indices)):
        tried = _System(axes)
        chosen = [*solved, k]
        if all(tried.find_digits(affines[j]) for j in chosen) and tried.define_digits():
            system, solved = tried, chosen
    if not solved:
        system = _System(axes)
    for k in solved:
        system.add(affines[k], system.wide(element[k], 0, shape[k]))
    found = system.solve()
    compared = tuple([
        substitute(indices[k], found.values).equal(element[k])
        for k in range(len(indices)) if k not in solved
    ])
    return replace(found, compared=compared)


@dataclass
class _Equation:
    """Equation `sum of coefficient times unknown == total`."""

    terms: dict[IterVar, int]
    total: Expr


@dataclass
class _Digits:
    """Digits of an expression of which indices are quotients and remainders.

    Attributes:
        base: Expression.
        weights: Weights of the digits, ascending from 1.
        unknowns: Digits, the last of which is the quotient by the greatest weight.
    """

    base: Affine
    weights: set[int]
    unknowns: dict[int, IterVar] = field(default_factory=dict)


@dataclass
class _System:
    axes: Sequence[IterVar]
    names: dict[Var, Var] = field(default_factory=dict)
    ranges: dict[Var, Any] = field(default_factory=dict)
    equations: list[_Equation] = field(default_factory=list)
    digits: dict[object, _Digits] = field(default_factory=dict)
    values: dict[IterVar, Expr] = field(default_factory=dict)
    free: list[IterVar] = field(default_factory=list)
    conditions: list[Expr] = field(default_factory=list)

    def wide(self, variable: Var, low: Extent, extent: Extent) -> Var:
        """Return a variable of the dtype of index arithmetic in place of another one."""
        found = Var(variable.name, INT64)
        self.names[found] = variable
        self.ranges[found] = (low, low + extent - 1)
        return found

    def find_digits(self, affine: Affine) -> bool:
        """Collect the quotients and remainders in an index; return if it has no other terms."""
        for term, _ in affine.terms:
            if isinstance(term, Var):
                continue
            digit = _digit(term)
            if digit is None:
                return False
            base, low, high = digit
            if not self.find_digits(base):
                return False
            known = self.digits.setdefault(_key(base), _Digits(base, {1}))
            known.weights |= {low, *([high] if high else [])}
        return True

    def define_digits(self) -> bool:
        """Define the digits of expressions, and the equations of their sums.

        Returns:
            Whether all divisors of an expression are multiples of each other, and its bounds are
            constant.
        """
        for digits in self.digits.values():
            weights = sorted(digits.weights)
            bounds = self._bounds(digits.base)
            if bounds is None or any(b % a for a, b in pairwise(weights)):
                return False
            first, last = bounds
            for weight, following in zip(weights, [*weights[1:], None], strict=True):
                low: Extent = 0 if following else first // weight
                extent = following // weight if following else last // weight - low + 1
                digits.unknowns[weight] = make_axis("digit", low, extent, IterKind.REDUCE)
        for digits in self.digits.values():
            equation = self._equation(digits.base, index_value(0))
            for weight, digit in digits.unknowns.items():
                equation.terms[digit] = -weight
            self.equations.append(equation)
        return True

    def _bounds(self, base: Affine) -> tuple[Extent, Extent] | None:
        """Return the minimum and the maximum of an expression; symbolic only for a single axis."""
        axis = base.axis
        if axis is not None and axis in self.axes:
            return axis.low, axis.low + axis.extent - 1
        first = last = base.const
        for term, factor in base.terms:
            ends = self._ends(term)
            if ends is None:
                return None
            first += min(end * factor for end in ends)
            last += max(end * factor for end in ends)
        return first, last

    def _ends(self, term: Expr) -> tuple[int, int] | None:
        """Return the minimum and the maximum of a term, if they are constant."""
        if isinstance(term, IterVar) and term in self.axes:
            low, extent = term.low, term.extent
            if not isinstance(low, int) or not isinstance(extent, int):
                return None
            return low, low + extent - 1
        digit = None if isinstance(term, Var) else _digit(term)
        if digit is None:
            return None
        base, weight, following = digit
        if following is not None:
            return 0, following // weight - 1
        bounds = self._bounds(base)
        if bounds is None:
            return None
        first, last = bounds
        if not isinstance(first, int) or not isinstance(last, int):
            return None
        return first // weight, last // weight

    def add(self, affine: Affine, variable: Var) -> None:
        """Add the equation of an index and the index variable of the element."""
        self.equations.append(self._equation(affine, variable))

    def _equation(self, affine: Affine, total: Expr) -> _Equation:
        terms: dict[IterVar, int] = {}
        total = total - affine.const if affine.const else total
        for term, coefficient in affine.terms:
            parts = self._parts(term)
            if parts is None:
                total = total - cast("int64", term) * coefficient
                continue
            for unknown, factor in parts:
                terms[unknown] = terms.get(unknown, 0) + factor * coefficient
        return _Equation({v: c for v, c in terms.items() if c}, total)

    def _parts(self, term: Expr) -> list[tuple[IterVar, int]] | None:
        """Return the unknowns of a term with their factors; None for a size."""
        if isinstance(term, Var):
            if isinstance(term, IterVar) and term in self.axes:
                return [(term, 1)]
            return None
        digit = _digit(term)
        assert digit is not None
        base, low, high = digit
        unknowns = self.digits[_key(base)].unknowns
        return [(unknown, weight // low) for weight, unknown in unknowns.items()
                if weight >= low and (high is None or weight < high)]

    def solve(self) -> Preimage:
        """Solve the equations, those with the fewest unknowns first."""
        while self.equations:
            for equation in self.equations:
                self._substitute(equation)
            self.equations.sort(key=lambda equation: len(equation.terms))
            self._solve(self.equations.pop(0))
        for axis in self.axes:
            if axis not in self.values:
                self._iterate(axis)
        values: dict[Var, Expr] = {
            axis: self._restored(simplify(self.values[axis], self.ranges)) for axis in self.axes
        }
        return Preimage(tuple(self.free), values, tuple(map(self._restored, self.conditions)))

    def _restored(self, value: Expr) -> Expr:
        """Return a value with the original variables, in their dtypes."""
        result: Expr = fold(value, self._restore)
        return result

    def _restore(self, node: Any, parts: list[Expr]) -> Expr:
        if isinstance(node, Const) and not node.dtype.is_bool:
            is_narrow = -(1 << 31) <= node.value < 1 << 31
            return const(node.value, "int32" if is_narrow else "int64")
        if isinstance(node, Binary) and node.dtype.is_integer and not node.dtype.is_bool:
            a, b = parts
            return binary(node.op, *match_types(a, b, "te.gradient"))
        if isinstance(node, Compare):
            return compare(node.op, *parts)
        if isinstance(node, Cast):
            return parts[0]
        if isinstance(node, Var):
            return self.names.get(node, node)
        new = {id(child): part for child, part in zip(children(node), parts, strict=True)}
        result: Expr = replace_children(node, new)
        return result

    def _substitute(self, equation: _Equation) -> None:
        for unknown in [unknown for unknown in equation.terms if unknown in self.values]:
            equation.total = equation.total - self.values[unknown] * equation.terms.pop(unknown)

    def _solve(self, equation: _Equation) -> None:
        terms, total = equation.terms, equation.total
        if not terms:
            self._require(total.equal(0))
            return
        first = max(terms, key=lambda unknown: abs(terms[unknown]))
        factor = terms.pop(first)
        if factor < 0:
            terms, total, factor = {v: -c for v, c in terms.items()}, -total, -factor
        if self._is_below(terms, factor):
            # The other terms are the remainder of the division by the largest coefficient.
            self._set(first, total // factor if factor > 1 else total)
            if factor > 1:
                self.equations.append(_Equation(terms, total % factor))
            return
        pivot, coefficient, unit = self._pivot({first: factor, **terms})
        terms = {first: factor, **terms}
        del terms[pivot]
        if coefficient < 0:
            terms, total, coefficient = {v: -c for v, c in terms.items()}, -total, -coefficient
        for unknown, c in terms.items():
            if unknown is not unit:
                self._iterate(unknown)
                total = total - self.values[unknown] * c
        if unit is not None:
            # One of `coefficient` adjacent values of this axis leaves a multiple of `coefficient`.
            sign, extent = terms[unit], unit.extent
            outer = make_axis(
                f"{unit.name}_outer", 0, (extent + (coefficient - 1)) // coefficient,
                IterKind.REDUCE)
            self._iterate(outer)
            low = index_value(unit.low)
            offset = (total if sign > 0 else -total) - low
            self._set(unit, self.values[outer] * coefficient + offset % coefficient + low)
            self._set(pivot, (offset // coefficient - self.values[outer]) * sign)
            return
        if coefficient > 1:
            self._require((total % coefficient).equal(0))
        self._set(pivot, total // coefficient if coefficient > 1 else total)

    def _is_below(self, terms: dict[IterVar, int], factor: int) -> bool:
        """Return whether the sum of terms is from 0 to `factor` - 1."""
        sizes = [c * (v.extent - 1) if isinstance(v.extent, int) else _UNKNOWN * factor
                 for v, c in terms.items()]
        is_counted = all(not _is_nonzero(v.low) and terms[v] > 0 for v in terms)
        return is_counted and sum(sizes) < factor

    def _pivot(self, terms: dict[IterVar, int]) -> tuple[IterVar, int, IterVar | None]:
        """Return the unknown to solve for, its coefficient, and the unknown to divide into groups.

        The choice has the fewest candidates.
        """
        found: list[tuple[int, IterVar, int, IterVar | None]] = []
        for pivot, coefficient in terms.items():
            others = [v for v in terms if v is not pivot]
            found.append((prod(map(_count, others)), pivot, coefficient, None))
            units = [v for v in others if abs(terms[v]) == 1
                     and not any(v in equation.terms for equation in self.equations)]
            for unit in units if abs(coefficient) > 1 else []:
                rest = prod(_count(v) for v in others if v is not unit)
                count = rest * -(-_count(unit) // abs(coefficient))
                found.append((count, pivot, coefficient, unit))
        return min(found, key=lambda choice: choice[0])[1:]

    def _set(self, unknown: IterVar, value: Expr) -> None:
        """Determine an unknown; its value must be in its domain."""
        self.values[unknown] = value
        self._require(value >= index_value(unknown.low))
        self._require(value < index_value(unknown.low + unknown.extent))

    def _iterate(self, unknown: IterVar) -> None:
        """Add a reduction axis over the values of an unknown."""
        if isinstance(unknown.extent, int) and unknown.extent == 1:
            self.values[unknown] = index_value(unknown.low)
            return
        axis = make_axis(unknown.name, unknown.low, unknown.extent, IterKind.REDUCE)
        self.values[unknown] = self.wide(axis, unknown.low, unknown.extent)
        self.free.append(axis)

    def _require(self, condition: Expr) -> None:
        short = simplify(condition, self.ranges)
        if not (isinstance(short, Const) and short.value):
            self.conditions.append(short)


def _digit(term: Expr) -> tuple[Affine, int, int | None] | None:
    """Return the base of a quotient or remainder, and the weights from which and below which.

    `x // 4 % 3` has the digits of `x` with weights from 4 to below 12, and `x // 4` those from 4.
    """
    if not isinstance(term, Binary) or term.op not in (BinOp.FLOORDIV, BinOp.MOD):
        return None
    if not isinstance(term.b, Const) or int(term.b.value) < 1:
        return None
    divisor, inner = int(term.b.value), term.a
    inner = inner.value if isinstance(inner, Cast) else inner
    found = _digit(inner)
    if found is None:
        base = simplify_affine(inner)
        return (base, divisor, None) if term.op is BinOp.FLOORDIV else (base, 1, divisor)
    base, low, high = found
    if term.op is BinOp.MOD:
        return (base, low, low * divisor) if high is None else None
    is_inside = high is None or high % (low * divisor) == 0
    return (base, low * divisor, high) if is_inside else None


def _key(base: Affine) -> object:
    """Return a key that is equal for equal expressions."""
    terms = [(id(term) if isinstance(term, Var) else str(term), c) for term, c in base.terms]
    return tuple(terms), base.const


def _is_nonzero(low: Extent) -> bool:
    return not isinstance(low, int) or low != 0


def _count(axis: IterVar) -> int:
    return axis.extent if isinstance(axis.extent, int) else _UNKNOWN
