"""Affine forms of index expressions and dependent reduction domains."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.shape_validation import extent_of
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import DefinitionError
from tecomp.ir.arith.simplify import simplify
from tecomp.ir.nodes.dtype import INT64, represents_all
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    Const,
    Expr,
    Var,
    as_expr,
    binary,
    cast,
    index_value,
)
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import contains, fold, nodes_of, substitute, walk


@dataclass(frozen=True, slots=True, eq=False)
class Affine:
    """Linear combination: `const` plus the sum of coefficient times term.

    Attributes:
        terms: Pairs (term, coefficient); a term is an axis, a size, or an opaque non-linear
            expression such as `i // 4` or `I[i]`.
        const: Constant.

    >>> import tecomp
    >>> from tecomp import te
    >>> A = te.placeholder((20,), name="A")
    >>> B = te.compute((4, 6), lambda i, j: A[i * 2 + j + 1], name="B")
    >>> (index,) = tecomp.accesses(B).reads[0].index
    >>> index.terms, index.const, index.axes, index.value
    (((i, 2), (j, 1)), 1, (i, j), 1 + cast("int64", i * int32(2)) + cast("int64", j))
    >>> index.axis, index.is_affine, index.is_window
    (None, True, True)
    """

    terms: tuple[tuple[Expr, int], ...] = ()
    const: int = 0

    @property
    def axis(self) -> IterVar | None:
        """Axis that this combination equals, or None."""
        if len(self.terms) != 1 or self.const:
            return None
        ((term, coefficient),) = self.terms
        return term if isinstance(term, IterVar) and coefficient == 1 else None

    @property
    def is_affine(self) -> bool:
        """Whether each term is an axis or a size, so that no term is opaque."""
        return all(isinstance(term, Var) for term, _ in self.terms)

    @property
    def axes(self) -> tuple[IterVar, ...]:
        """Axes that the combination depends on, including axes in opaque terms."""
        return tuple(dict.fromkeys([axis for term, _ in self.terms for axis in axes_of(term)]))

    def quotient(self, axis: IterVar) -> tuple[int, int] | None:
        """Return divisor and coefficient of the only term `axis // divisor` with `axis`, or None.

        A linear term of the axis has the divisor 1.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((20,), name="A")
        >>> B = te.compute((8, 6), lambda i, j: A[i // 4 * 6 + j], name="B")
        >>> (index,) = tecomp.accesses(B).reads[0].index
        >>> [index.quotient(axis) for axis in B.op.axis]
        [(4, 6), (1, 1)]
        """
        found = [(_divisor(term, axis), c) for term, c in self.terms if axis in axes_of(term)]
        if len(found) != 1 or found[0][0] is None:
            return None
        return found[0][0], found[0][1]

    def at(self, places: Mapping[IterVar, Affine]) -> Affine:
        """Substitute linear combinations for axes, and simplify.

        Args:
            places: Replacement of each substituted axis; other axes are unchanged.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((20,), name="A")
        >>> B = te.compute((10,), lambda i: A[i + 1], name="B")
        >>> (index,), (i,) = tecomp.accesses(B).reads[0].index, B.op.axis
        >>> index.at({i: Affine(((i, 2),), 3)}).value
        4 + cast("int64", i * int32(2))
        """
        if (axis := self.axis) is not None and axis in places:
            return places[axis]
        exprs = {axis: affine.value for axis, affine in places.items()}
        return simplify_affine(substitute(self.value, exprs))

    @property
    def value(self) -> Expr:
        """The linear combination as an expression."""
        total: Expr = index_value(self.const)
        for term, coefficient in self.terms:
            total = total + (term if coefficient == 1 else term * coefficient)
        return total

    @property
    def is_window(self) -> bool:
        """Whether this is a sum of several axes that is not injective, as in a sliding window."""
        axes = [(axis, self.coefficient(axis)) for axis in self.axes]
        if not self.is_affine or len(axes) < 2:
            return False
        span = 1
        for axis, step in sorted(axes, key=lambda term: abs(term[1] or 0)):
            if not isinstance(axis.extent, int) or abs(step or 0) < span:
                return True
            span += abs(step or 0) * (axis.extent - 1)
        return False

    def coefficient(self, axis: IterVar) -> int | None:
        """Return the coefficient of an axis, or None if an opaque term contains the axis.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((20,), name="A")
        >>> B = te.compute((4, 6), lambda i, j: A[i * 2 + j], name="B")
        >>> (index,) = tecomp.accesses(B).reads[0].index
        >>> [index.coefficient(axis) for axis in B.op.axis]
        [2, 1]
        """
        if any(term is not axis and axis in axes_of(term) for term, _ in self.terms):
            return None
        return next((c for term, c in self.terms if term is axis), 0)


def axes_of(term: Expr) -> dict[IterVar, None]:
    """Return the axes in a term, in textual order, as keys of a dictionary."""
    return {node: None for node in nodes_of(IterVar, term)}


def affine_of(index: Expr) -> Affine:
    """Convert an integer expression to a linear combination of terms."""
    return fold(index, _affine)


def simplify_affine(index: Expr) -> Affine:
    """Simplify an index with the ranges of its axes, and convert it to a linear combination.

    An index that depends on data is converted without simplification.
    """
    repl = {axis: Var(axis.name, INT64) for axis in axes_of(index)}
    if not all(_is_arithmetic(node) for node in walk(index)):
        return affine_of(index)
    ends = ((axis.dom.min, axis.dom.extent) for axis in repl)
    ranges = {
        var: (low, low + extent - 1) for var, (low, extent) in zip(repl.values(), ends, strict=True)
    }
    found = affine_of(simplify(fold(index, lambda node, parts: _wide(node, parts, repl)), ranges))
    axis_of: dict[Var, Expr] = {var: axis for axis, var in repl.items()}
    return Affine(tuple((_put_back(term, axis_of), c) for term, c in found.terms), found.const)


def _put_back(term: Expr, axes: Mapping[Var, Expr]) -> Expr:
    return axes[term] if isinstance(term, Var) and term in axes else substitute(term, axes)


def _is_arithmetic(node: object) -> bool:
    if isinstance(node, Cast):
        return node.dtype.is_integer and node.value.dtype.is_integer
    return isinstance(node, Var | Const | Binary)


def _wide(node: Any, parts: list[Expr], repl: Mapping[IterVar, Var]) -> Expr:
    """Rebuild a node of an index in the index dtype."""
    if isinstance(node, Const):
        return index_value(int(node.value))
    if isinstance(node, Binary):
        return binary(node.op, *parts)
    if isinstance(node, Cast):
        return parts[0]
    return repl[node] if node in repl else cast("int64", node)


def _divisor(term: Expr, axis: IterVar) -> int | None:
    """Return the divisor of a term `axis // divisor`, or None for other terms."""
    if term is axis:
        return 1
    if isinstance(term, Binary) and term.op is BinOp.FLOORDIV and term.a is axis:
        return int(term.b.value) if isinstance(term.b, Const) else None
    return None


def _affine(node: Any, parts: list[Affine]) -> Affine:
    if isinstance(node, Const):
        return Affine((), int(node.value))
    if isinstance(node, Cast) and node.value.dtype.is_integer and (
        represents_all(node.dtype, node.value.dtype)
    ):
        return parts[0]
    if isinstance(node, Binary):
        a, b = parts
        if node.op is BinOp.ADD:
            return add_scaled(a, b, 1)
        if node.op is BinOp.SUB:
            return add_scaled(a, b, -1)
        if node.op is BinOp.MUL and not (a.terms and b.terms):
            return add_scaled(Affine(), a, b.const) if a.terms else add_scaled(Affine(), b, a.const)
    return Affine(((node, 1),))


def add_scaled(a: Affine, b: Affine, factor: int) -> Affine:
    """Return `a + factor * b`."""
    terms = dict(a.terms)
    for term, coefficient in b.terms:
        terms[term] = terms.get(term, 0) + factor * coefficient
    left = tuple((term, c) for term, c in terms.items() if c)
    return Affine(left, a.const + factor * b.const)


def key_of(index: Affine) -> tuple[object, int]:
    """Return a key that is equal for equal linear combinations."""
    return frozenset([(id(term), factor) for term, factor in index.terms]), index.const


def dependent_axis(
    name: str, low: Any, high: Any, where: str, thread_tag: str
) -> IterVar | None:
    """Return a reduction axis whose bounds depend on other axes, or None if no bound does.

    The domain of the axis is the bounding interval over all values of the other axes. Reductions
    over the axis mask the values outside of the actual bounds.

    Raises:
        DefinitionError: If the range of a bound is unknown, or a bound depends on elements of
            tensors.
    """
    if not any(map(_has_axes, (low, high))):
        return None
    lower = _end(low, f"{where}: the low end", greatest=False)
    upper = _end(high, f"{where}: the high end", greatest=True)
    extent = upper if isinstance(lower, int) and lower == 0 else as_expr(upper) - lower
    count = extent_of(max(extent, 0) if isinstance(extent, int) else extent, where)
    first, last = (as_expr(end) if _has_axes(end) else None for end in (low, high))
    return make_axis(name, lower, count, IterKind.REDUCE, thread_tag, (first, last))


def _has_axes(end: object) -> bool:
    return isinstance(end, Expr) and contains(IterVar, end)


def _end(end: object, where: str, *, greatest: bool) -> Extent:
    """Return the minimum or maximum of a bound over all values of its axes."""
    if not isinstance(end, Expr) or not _has_axes(end):
        return extent_of(end, where, least=-(2**63))
    if contains((Call, TensorLoad), end) or not end.dtype.is_integer:
        raise DefinitionError(
            "{where} is {end}, which is not arithmetic on axes and sizes; reduce over all values, "
            "and select them with where=",
            kind="reduction", where=where, end=end,
        )
    found = affine_of(end)
    total: Extent = found.const
    for term, factor in found.terms:
        if isinstance(term, IterVar):
            last = (factor > 0) is greatest
            value: Extent = term.low if not last else term.low + term.extent - 1
        elif _has_axes(term):
            return _numeric_end(end, where, greatest=greatest)
        else:
            value = term
        total = total + value * factor
    return extent_of(total, where, least=-(2**63))


def _numeric_end(end: Expr, where: str, *, greatest: bool) -> int:
    found = fold(end, _interval)
    if found is None:
        raise DefinitionError(
            "{where} is {end}, whose {extremum} value cannot be inferred; reduce over all values, "
            "and select them with where=",
            kind="reduction", where=where, end=end, extremum="greatest" if greatest else "least",
        )
    return found[greatest]


def _interval(node: object, parts: list[tuple[int, int] | None]) -> tuple[int, int] | None:
    """Return an interval that contains the values of an expression, or None if unknown."""
    if isinstance(node, Const):
        return int(node.value), int(node.value)
    if isinstance(node, IterVar):
        if not (isinstance(node.low, int) and isinstance(node.extent, int)):
            return None
        return node.low, node.low + max(node.extent, 1) - 1
    known = [part for part in parts if part is not None]
    if len(known) < len(parts) or not known:
        return None
    if isinstance(node, Cast):
        return known[0]
    if not isinstance(node, Binary):
        return None
    (a, b), (c, d) = known
    if node.op in (BinOp.FLOORDIV, BinOp.MOD):
        if c < 1:
            return None
        ends = [a // c, a // d, b // c, b // d] if node.op is BinOp.FLOORDIV else [0, d - 1]
        return min(ends), max(ends)
    return _OPERATIONS[node.op](a, b, c, d) if node.op in _OPERATIONS else None


def _product(a: int, b: int, c: int, d: int) -> tuple[int, int]:
    ends = (a * c, a * d, b * c, b * d)
    return min(ends), max(ends)


_OPERATIONS: dict[BinOp, Callable[[int, int, int, int], tuple[int, int]]] = {
    BinOp.ADD: lambda a, b, c, d: (a + c, b + d),
    BinOp.SUB: lambda a, b, c, d: (a - d, b - c),
    BinOp.MUL: _product,
    BinOp.MIN: lambda a, b, c, d: (min(a, c), min(b, d)),
    BinOp.MAX: lambda a, b, c, d: (max(a, c), max(b, d)),
}
