"""Reductions: reducers with identity elements, `Reduce` nodes, and sum, prod, min and max."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, TypeGuard, overload

from tecomp.compute.expr_like import ExprLike, Value, value_of, values_with_dtypes
from tecomp.compute.float_bits import lower_bound, upper_bound
from tecomp.compute.iter_var import IterKind, IterVar
from tecomp.compute.shape_validation import name_of
from tecomp.compute.tensor import TensorLoad
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import check_function
from tecomp.ir.nodes.dtype import BOOL, DType
from tecomp.ir.nodes.expr import (
    BinOp,
    Const,
    Expr,
    Var,
    binary,
    condition_of,
    const,
    if_then_else,
    is_const,
    logical_and,
)
from tecomp.ir.nodes.printer import (
    ParenthesizedOperand,
    Pieces,
    PrintedName,
    comma,
    format_count,
    operands,
    tuple_of,
)
from tecomp.ir.traversal.rewrite import children, contains, substitute, top_down, walk
from tecomp.operations.reductions import COMBINERS, Combiner
from tecomp.source_locations import Location, user_location

Axes = IterVar | Sequence[IterVar]
_IDENTITY = "pass a function of the dtype of each value"


@dataclass(frozen=True, slots=True, eq=False)
class CommReducer:
    """Commutative reducer of one value or of a tuple: `result` combines `lhs` and `rhs`.

    Attributes:
        lhs: Variables of the accumulated values.
        rhs: Variables of the new values.
        result: Combined values, as expressions of `lhs`, `rhs` and `invariants`.
        identity: Identity element of the combination, one value per component.
        name: Name in printed text.
        invariants: Variables of reduction-invariant values that `result` or `identity` uses.
    """

    lhs: tuple[Var, ...]
    rhs: tuple[Var, ...]
    result: tuple[Expr, ...]
    identity: tuple[Expr, ...]
    name: str = "reduce"
    invariants: tuple[Var, ...] = ()

    def bound(self) -> tuple[Var, ...]:
        """Return the variables that this node binds."""
        return (*self.lhs, *self.rhs, *self.invariants)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Reduce(Expr):
    """Component `value_index` of a reduction of `source` over `axis` where `condition` holds.

    Attributes:
        combiner: Reducer.
        source: Reduced values, one per component.
        axis: Reduction axes.
        condition: Condition for a point to take part in the reduction.
        init: Initial values in place of the identity; empty for the identity.
        value_index: Component that this expression represents.
        location: Source location of the reduction.
        invariants: Reduction-invariant values, bound to `combiner.invariants`.
        dtype: Dtype of the component.
    """

    # The reduction binds its axes, and does not read them from an enclosing scope.
    bound_fields: ClassVar[tuple[str, ...]] = ("axis",)

    combiner: CommReducer
    source: tuple[Expr, ...]
    axis: tuple[IterVar, ...]
    condition: Expr
    init: tuple[Expr, ...] = ()
    value_index: int = 0
    location: Location | None = field(default=None, compare=False)
    invariants: tuple[Expr, ...] = ()
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.source[self.value_index].dtype)

    @property
    def identity(self) -> tuple[Expr, ...]:
        """Identity values of the reducer, with `invariants` substituted."""
        known = dict(zip(self.combiner.invariants, self.invariants, strict=True))
        return tuple([substitute(value, known) for value in self.combiner.identity])

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text."""
        yield from self.call_pieces()
        if len(self.source) > 1:
            yield f"[{self.value_index}]"

    def call_pieces(self) -> Pieces:
        """Yield the printed text of the reduction without the selection of a component."""
        yield f"{self.combiner.name}("
        yield from _one_or_tuple(self.source)
        yield ", axis=["
        yield from comma(PrintedName(axis) for axis in self.axis)
        yield "]"
        if not (isinstance(self.condition, Const) and self.condition.value is True):
            yield ", where="
            yield ParenthesizedOperand(self.condition)
        if self.init:
            yield ", init="
            yield from _one_or_tuple(self.init)
        if self.invariants:
            yield ", given="
            yield from _one_or_tuple(self.invariants)
        yield ")"


def _one_or_tuple(values: tuple[Expr, ...]) -> Pieces:
    return operands(values) if len(values) == 1 else tuple_of(values)


@dataclass(frozen=True, slots=True)
class Reducer:
    """Reducer made by `comm_reducer`; calling it returns a reduction.

    Attributes:
        fcombine: Function that combines two values, or two tuples of values.
        fidentity: Function from dtypes to the identity element.
        name: Name in printed text.
        prefix: Prefix of the name in error messages, such as `te.`.
    """

    fcombine: Callable[[Any, Any], Any]
    fidentity: Callable[..., Any]
    name: str
    prefix: str = ""

    @overload
    def __call__(
        self, expr: Value, axis: Axes, where: Value | None = None, init: Value | None = None
    ) -> Expr: ...

    @overload
    def __call__(
        self,
        expr: Sequence[Value],
        axis: Axes,
        where: Value | None = None,
        init: Sequence[Value] | None = None,
    ) -> tuple[Expr, ...]: ...

    # Without an axis, all given expressions are combined, in any number.
    @overload
    def __call__(self, expr: Any, axis: Any, where: Any = None, init: Any = None, *args: Any
                 ) -> Any: ...

    def __call__(
        self, expr: Any, axis: Any = None, where: Any = None, init: Any = None, *args: Any
    ) -> Any:
        """Return the reduction of `expr` over `axis`: one expression, or one per tuple component.

        If `axis` is an expression, the call combines all given expressions from left to right.

        Args:
            expr: Expression to reduce; a tuple for a reducer of several values.
            axis: Reduction axis made by `te.reduce_axis`, or a list of axes; or a second operand.
            where: Condition for a point to take part in the reduction; or a third operand.
            init: Initial value in place of the identity; or a fourth operand.
            args: Further operands.

        Raises:
            DefinitionError: If an axis is not a reduction axis or is given twice, or the number of
                values or arguments does not match the reducer.
            TypeMismatchError: If the reducer does not support the dtype of a value, or an axis is
                not an axis object.
        """
        name = f"{self.prefix}{self.name}"
        if _is_operand(axis):
            return self._pairwise(name, expr, axis, where, init, *args)
        if args:
            raise DefinitionError(
                "{caller}: there {verb} {arguments} too many; pass the expression, axis, where and "
                "init",
                kind="reduction", caller=name, verb="is" if len(args) == 1 else "are",
                arguments=format_count(len(args), "argument"),
            )
        axes = _axes(axis, name)
        is_tuple = isinstance(expr, list | tuple)
        source = tuple(value_of(value) for value in (expr if is_tuple else (expr,)))
        if not source:
            raise DefinitionError(
                "{caller}: no values to combine; pass at least one",
                kind="missing-input", caller=name,
            )
        condition = _combine_with_bounds(
            axes, condition_of(True if where is None else value_of(where), f"{name}(where=)"))
        combiner, invariants = _combiner(
            self, tuple(value.dtype for value in source), is_tuple=is_tuple)
        start = () if init is None else _initial_values(name, init, source, axes)
        location = user_location()
        reductions = tuple(
            Reduce(combiner, source, axes, condition, start, k, location, invariants)
            for k in range(len(source))
        )
        return reductions[0] if len(reductions) == 1 else reductions

    def _pairwise(self, name: str, *operands: Any) -> Any:
        """Combine operands from left to right; each is a value, or a tuple as long as the first."""
        is_tuple = isinstance(operands[0], list | tuple)
        result, *others = [
            tuple(map(value_of, operand if is_tuple else (operand,)))
            for operand in operands if operand is not None
        ]
        for other in others:
            if len(other) != len(result):
                raise DefinitionError(
                    "{caller}: cannot combine {result_count} values with {other_count}; pass "
                    "tuples of the same length",
                    kind="reduction", caller=name, result_count=len(result), other_count=len(other),
                )
            types = tuple(value.dtype for value in result)
            if is_tuple:
                result = values_with_dtypes(
                    self.fcombine(result, other), types, f"{name}: the combination", is_tuple=True)
            else:
                result = (value_of(self.fcombine(result[0], other[0])),)
        return result if is_tuple else result[0]


def comm_reducer(
    fcombine: Callable[[Any, Any], Any], fidentity: Callable[..., Any], name: str = "reduce"
) -> Reducer:
    """Define a custom reducer, which must be commutative and associative; this is not checked.

    A reducer that keeps the first of several equal elements is not commutative. `rfactor` preserves
    its result if one of the values is an index; `reorder` of reduction loops may change it.

    Args:
        fcombine: Function that combines two values into one, or two tuples into one tuple.
        fidentity: Function from the dtype of the value (the dtypes of a tuple) to the identity.
        name: Name in printed text.

    Returns:
        A function `(expr, axis, where=None, init=None)`, where `expr` is a value or a tuple.

    Raises:
        TypeMismatchError: If `fcombine` or `fidentity` is not a function, or `name` is not a
            string.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4, 9), name="A")
        >>> k = te.reduce_axis((0, 9), name="k")
        >>> argmax = te.comm_reducer(
        ...     lambda x, y: [te.Select(x[1] >= y[1], x[n], y[n]) for n in (0, 1)],
        ...     lambda index, value: [te.const(-1, index), te.min_value(value)],
        ...     name="argmax",
        ... )
        >>> index, value = te.compute((4,), lambda i: argmax((k, A[i, k]), axis=k), name="M")
        >>> print(index.op)
        M_v0[i], M_v1[i] = argmax((k, A[i, k]), axis=[k])
    """
    name = name_of(name, "te.comm_reducer")
    where = f"te.comm_reducer {name}"
    check_function(
        fcombine, 2, f"{where}: fcombine",
        "pass a function of two values, or of two tuples of values", TypeMismatchError,
    )
    if not callable(fidentity):
        raise TypeMismatchError(
            "{where}: fidentity is {fidentity!r}; {identity}",
            kind="reduction", where=where, fidentity=fidentity, identity=_IDENTITY,
        )
    return Reducer(fcombine, fidentity, name)


def _axes(axis: object, name: str) -> tuple[IterVar, ...]:
    candidates: tuple[object, ...] = tuple(axis) if isinstance(axis, list | tuple) else (axis,)
    if not candidates:
        raise DefinitionError(
            "{caller}: axis=[] contains no axis; pass at least one te.reduce_axis",
            kind="missing-input", caller=name,
        )
    axes: list[IterVar] = []
    for item in candidates:
        if not isinstance(item, IterVar):
            raise TypeMismatchError(
                "{caller}: axis must be a reduction axis, got {item!r} ({type}); create one with "
                "te.reduce_axis((low, high))",
                kind="reduction", caller=name, item=item, type=type(item).__name__,
            )
        if item.kind is not IterKind.REDUCE:
            raise DefinitionError(
                "{caller}: {item} is an axis of the result and cannot be reduced over; create one "
                "with te.reduce_axis((low, high))",
                kind="reduction", caller=name, item=item.name,
            )
        if any(item is other for other in axes):
            raise DefinitionError(
                "{caller}: duplicate axis {item}; pass each axis once",
                kind="duplicate-argument", caller=name, item=item.name,
            )
        axes.append(item)
    return tuple(axes)


def _combine_with_bounds(axes: Sequence[IterVar], condition: Expr) -> Expr:
    """Combine `condition` with the bounds of axes whose domains depend on other axes."""
    inside = [
        part for axis in axes for part in (
            None if axis.inside[0] is None else axis >= axis.inside[0],
            None if axis.inside[1] is None else axis < axis.inside[1],
        ) if part is not None
    ]
    if not inside:
        return condition
    # The loads of a user condition may be in bounds only where the other conditions hold;
    # `logical_and` does not guard its operands, so use `if_then_else`.
    if contains(TensorLoad, condition):
        condition = if_then_else(logical_and(*inside), condition, const(False, BOOL))
    elif is_const(condition, True):
        return logical_and(*inside)
    return logical_and(*inside, condition)


def _combiner(
    reducer: Reducer, dtypes: tuple[DType, ...], *, is_tuple: bool
) -> tuple[CommReducer, tuple[Expr, ...]]:
    """Instantiate a reducer for dtypes; return it with the invariant values that it uses.

    Raises:
        DefinitionError: If the combination uses a reduction axis or another reduction, or has the
            wrong number of values.
        TypeMismatchError: If the combination or the identity has the wrong dtype.
    """
    name = f"{reducer.prefix}{reducer.name}"
    suffixes = [f"_{k}" for k in range(len(dtypes))] if is_tuple else [""]
    lhs = tuple(Var(f"x{suffix}", dtype) for suffix, dtype in zip(suffixes, dtypes, strict=True))
    rhs = tuple(Var(f"y{suffix}", dtype) for suffix, dtype in zip(suffixes, dtypes, strict=True))
    combined = reducer.fcombine(lhs, rhs) if is_tuple else reducer.fcombine(lhs[0], rhs[0])
    result = values_with_dtypes(combined, dtypes, f"{name}: the combination", is_tuple=is_tuple)
    check_function(
        reducer.fidentity, len(dtypes), f"{name}: the identity", _IDENTITY, TypeMismatchError)
    neutral = reducer.fidentity(*dtypes)
    identity = values_with_dtypes(neutral, dtypes, f"{name}: the identity", is_tuple=is_tuple)
    for node in walk(*result, *identity):
        is_reduced = isinstance(node, IterVar) and node.kind is IterKind.REDUCE
        if is_reduced or isinstance(node, Reduce):
            raise DefinitionError(
                "{caller}: the reducer uses {node}; it may use only the two values that it "
                "combines, and values that are the same for all of them: axes of the result, "
                "elements, sizes, numbers",
                kind="reduction", caller=name, node=node,
            )
    arguments = {*lhs, *rhs}
    invariants = [
        node for node in walk(
            *result, *identity,  # without the indices of tensors
            parts=lambda node: () if isinstance(node, TensorLoad) else children(node),
        )
        if isinstance(node, TensorLoad) or (isinstance(node, Var) and node not in arguments)
    ]
    params = tuple(Var(f"g_{k}", value.dtype) for k, value in enumerate(invariants))
    param_of = {id(value): var for value, var in zip(invariants, params, strict=True)}
    result, identity = (
        tuple(top_down(value, lambda node: param_of.get(id(node))) for value in values)
        for values in (result, identity)
    )
    return CommReducer(lhs, rhs, result, identity, reducer.name, params), tuple(invariants)


def _initial_values(
    name: str, init: object, source: tuple[Expr, ...], axes: tuple[IterVar, ...]
) -> tuple[Expr, ...]:
    dtypes = tuple(value.dtype for value in source)
    start = values_with_dtypes(init, dtypes, f"{name}: init=", is_tuple=len(source) > 1)
    for node in walk(*start):
        if isinstance(node, IterVar) and any(node is axis for axis in axes):
            raise DefinitionError(
                "{caller}: init= uses the reduction axis {node}; it must be one value for the "
                "whole reduction",
                kind="reduction", caller=name, node=node.name,
            )
    return start


def _reducer(row: Combiner) -> Reducer:
    """Return the reducer of an operator; infinities are the bounds of the values of a dtype."""
    operator, identity = BinOp(row.operator), row.identity

    def neutral(dtype: DType) -> Expr:
        if not math.isinf(identity):
            return const(identity, dtype)
        return upper_bound(dtype) if identity > 0 else lower_bound(dtype)

    return Reducer(lambda x, y: binary(operator, x, y), neutral, row.name, "te.")


_SUM, _PROD, _MIN, _MAX = [_reducer(COMBINERS[name]) for name in ("sum", "prod", "min", "max")]


def sum(
    expr: Value,
    axis: Axes | Value | None = None,
    where: Value | None = None,
    init: Value | None = None,
    *args: Value,
) -> Expr:
    """Compute the sum of `expr` over `axis`, in the dtype of `expr`; an empty sum is 0.

    If `axis` is an expression, the result is the sum of all given expressions.

    Args:
        expr: Expression to sum.
        axis: Reduction axis made by `te.reduce_axis`, or a list of axes; or a second operand.
        where: Condition for a point to take part in the sum; or a third operand.
        init: Initial value of the sum. Default: 0. Or a fourth operand.
        *args: Further operands.

    Example:
        >>> from tecomp import te
        >>> A = te.placeholder((4, 8), name="A")
        >>> k = te.reduce_axis((0, 8), name="k")
        >>> te.compute((4,), lambda i: te.sum(A[i, k], axis=k, where=k != i), name="B").shape
        (4,)
    """
    result: Expr = _SUM(_numeric_value(expr, "sum"), axis, where, init, *args)
    return result


def prod(
    expr: Value,
    axis: Axes | Value | None = None,
    where: Value | None = None,
    init: Value | None = None,
    *args: Value,
) -> Expr:
    """Compute the product of `expr` over `axis`, in the dtype of `expr`; an empty product is 1.

    If `axis` is an expression, the result is the product of all given expressions.

    Args:
        expr: Expression to multiply.
        axis: Reduction axis made by `te.reduce_axis`, or a list of axes; or a second operand.
        where: Condition for a point to take part in the product; or a third operand.
        init: Initial value of the product. Default: 1. Or a fourth operand.
        *args: Further operands.

    >>> from tecomp import te
    >>> k = te.reduce_axis((0, 4), name="k")
    >>> te.prod(te.placeholder((4,), name="A")[k], axis=k)
    prod(A[k], axis=[k])
    """
    result: Expr = _PROD(_numeric_value(expr, "prod"), axis, where, init, *args)
    return result


def min(
    expr: Value,
    axis: Axes | Value | None = None,
    where: Value | None = None,
    init: Value | None = None,
    *args: Value,
) -> Expr:
    """Compute the minimum of `expr` over `axis`, or the minimum of several expressions.

    NaN propagates. An empty minimum is the largest value of the dtype: infinity for floats.

    Args:
        expr: Expression to reduce, or the first operand.
        axis: Reduction axis made by `te.reduce_axis`, or a list of axes; or a second operand.
        where: Condition for a point to take part in the minimum; or a third operand.
        init: Initial value of the minimum; or a fourth operand.
        *args: Further operands.

    Example:
        >>> min(3, 4)
        int32(3)
    """
    if axis is None or _is_axes(axis):
        result: Expr = _MIN(expr, axis, where, init, *args)
        return result
    return _elementwise(BinOp.MIN, expr, axis, where, init, *args)


def max(
    expr: Value,
    axis: Axes | Value | None = None,
    where: Value | None = None,
    init: Value | None = None,
    *args: Value,
) -> Expr:
    """Compute the maximum of `expr` over `axis`, or the maximum of several expressions.

    NaN propagates. An empty maximum is the smallest value of the dtype: -infinity for floats.

    Args:
        expr: Expression to reduce, or the first operand.
        axis: Reduction axis made by `te.reduce_axis`, or a list of axes; or a second operand.
        where: Condition for a point to take part in the maximum; or a third operand.
        init: Initial value of the maximum; or a fourth operand.
        *args: Further operands.

    >>> from tecomp import te
    >>> te.max(te.var("a"), te.var("b"))
    max(a, b)
    """
    if axis is None or _is_axes(axis):
        result: Expr = _MAX(expr, axis, where, init, *args)
        return result
    return _elementwise(BinOp.MAX, expr, axis, where, init, *args)


def _is_axes(axis: object) -> TypeGuard[Axes]:
    # A data axis is an ordinary operand, as in `te.max(i - 1, i)`.
    if isinstance(axis, IterVar):
        return axis.kind is IterKind.REDUCE
    return isinstance(axis, list | tuple)


def _is_operand(axis: object) -> bool:
    """Return whether the `axis` argument is an operand to combine instead of axes."""
    if isinstance(axis, list | tuple):
        # For a reducer of tuples, the argument is a tuple of values, none of which is an axis and
        # at least one of which is an expression.
        return bool(axis) and not any(isinstance(item, IterVar) for item in axis) and any(
            isinstance(item, Expr | ExprLike) for item in axis
        )
    return isinstance(axis, Expr | ExprLike) and not isinstance(axis, IterVar)


def _elementwise(op: BinOp, a: Any, b: Any, *others: Any) -> Expr:
    """Return the minimum or maximum of expressions; the first two may have any dtypes.

    Operands of None are ignored.

    Raises:
        DefinitionError: If a later operand is a condition, which only a reduction accepts.
    """
    first = binary(op, value_of(a), value_of(b))
    for other in [value_of(value) for value in others if value is not None]:
        if other.dtype.is_bool and not first.dtype.is_bool:
            raise DefinitionError(
                "te.{op}: where= is not supported for elementwise operations; pass an axis from "
                "te.reduce_axis for a reduction",
                kind="reduction", op=op.value,
            )
        first = binary(op, first, other)
    return first


def _numeric_value(expr: Value, name: str) -> Expr:
    node = value_of(expr)
    if node.dtype.is_bool:
        raise TypeMismatchError(
            'te.{caller}: expression is {dtype}; convert it with .astype("int32") to count, or '
            "reduce with te.min (true everywhere) or te.max (true somewhere)",
            caller=name, dtype=node.dtype,
        )
    return node
