"""Define the functions of the namespace from the tables of operations."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from functools import partial
from itertools import accumulate
from operator import add, mul
from typing import Any, SupportsIndex

from tecomp.array.array_object import Array, apply_binary, from_node, node_of, nodes_of_pair
from tecomp.array.graph.node import Node, record
from tecomp.array.indexing.getitem import truth_of
from tecomp.array.validation import check_bool, dtype_name, float64_of
from tecomp.array.weak_scalars import Scalar
from tecomp.caches import memoize
from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.parameters import (
    CUMULATIVE_PARAMETERS,
    DUPLICATES,
    arguments,
    parameters_in,
)
from tecomp.operations.reductions import (
    COMBINERS,
    CUMULATIVE,
    TO_WIDE,
    Reduction,
    reductions_in,
)
from tecomp.operations.rows import ALL, FLOATING, TRUTH, Op, with_name
from tecomp.ptensor.devices import default_dtype
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.operations.elementwise import FUNCTIONS, CastOp
from tecomp.ptensor.operations.reduction import (
    CountNonzero,
    Cumulative,
    FindIndex,
    ReduceOp,
    TruthTest,
)
from tecomp.ptensor.types import COMPLEX, Axes, axes_of, axis_of


def elementwise_functions(module: str) -> dict[str, Callable[..., Array]]:
    """Return the element-wise functions by name, as functions of a module.

    >>> elementwise_functions("tecomp.array")["negative"].__module__
    'tecomp.array'
    """
    found = {}
    for name, row in sorted(elementwise_in("array").items()):
        function = (_define_unary if row.arity == 1 else _define_binary)(row)
        found[name] = with_name(function, name, module, _docstring(row))
    return found


def _define_unary(row: Op) -> Callable[[Array], Array]:
    kind, op = row.name, FUNCTIONS[row.name]

    def apply(x: Array, /) -> Array:
        return from_node(record(op, node_of(x, kind)))

    def apply_to_truth(x: Array, /) -> Array:
        return from_node(record(op, truth_of(node_of(x, kind))))

    return apply_to_truth if row.takes is TRUTH else apply


def _define_binary(row: Op) -> Callable[[Array | Scalar, Array | Scalar], Array]:
    kind, op = row.name, FUNCTIONS[row.name]

    def apply(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
        return apply_binary(op, x1, x2)

    def apply_to_truth(x1: Array | Scalar, x2: Array | Scalar, /) -> Array:
        left, right = nodes_of_pair(x1, x2, kind)
        return from_node(record(op, truth_of(left), truth_of(right)))

    return apply_to_truth if row.takes is TRUTH else apply


_UNARY = """{text}

Args:
    x: Input array of {words}.{note}
{raises}
>>> import tecomp.array as xp
>>> xp.{name}(xp.asarray({example}))
{shown}
"""
_UNARY_RAISES = """
Raises:
    ArrayTypeError: If `x` has an unsupported dtype.
"""
_BINARY = """{text}

Args:
    x1: Array{words}, or a Python scalar if `x2` is an array.{note}
    x2: Array{words}, or a Python scalar if `x1` is an array.{note}

Raises:
    ArrayTypeError: If {problem}.
    ArrayValueError: If the shapes are not broadcast-compatible.

>>> import tecomp.array as xp
>>> xp.{name}(xp.asarray({first}), xp.asarray({second}))
{shown}
"""


def _docstring(row: Op) -> str:
    is_truth = row.takes is TRUTH
    note = " Nonzero numbers count as True." if is_truth else ""
    words, text = row.takes.words, row.text_in("array")
    if row.arity == 1:
        has_complex = COMPLEX[0] in row.takes.dtypes
        return _UNARY.format(
            text=text, words=f"{words}, real or complex" if has_complex else words, note=note,
            raises="" if is_truth else _UNARY_RAISES, name=row.name, example=row.example,
            shown=row.shown,
        )
    first, second = re.findall(r"\[.*?\]", row.example)
    unsupported = "an operand has an unsupported dtype, or "
    return _BINARY.format(
        text=text, words="" if is_truth else f" of {words}", note=note,
        problem=f"{'' if is_truth else unsupported}neither operand is an array",
        name=row.name, first=first, second=second, shown=row.shown,
    )


def reductions(module: str) -> dict[str, Callable[..., Array]]:
    """Return the reductions by name, as functions of a module.

    >>> reductions("tecomp.array")["mean"].__name__
    'mean'
    """
    rows = reductions_in("array")
    functions = {name: (_define_reduction(row), _reduction_docstring(row))
                 for name, row in rows.items()}
    for kind in CUMULATIVE:
        name, text = f"cumulative_{kind}", _cumulative_docstring(rows[kind])
        functions[name] = (_define_cumulative(kind), text)
    return {
        name: with_name(function, name, module, text)
        for name, (function, text) in sorted(functions.items())
    }


def _define_reduction(row: Reduction) -> Callable[..., Array]:
    kind, operation = row.name, _operation(row)

    def apply(x: Array, /, *, axis: Axes = None, keepdims: bool = False) -> Array:
        node = node_of(x, kind)
        axes = axes_of(axis, node.type.rank, kind)
        return from_node(record(operation(axes, check_bool(keepdims, kind, "keepdims")), node))

    def apply_to_axis(
        x: Array, /, *, axis: SupportsIndex | None = None, keepdims: bool = False
    ) -> Array:
        node = node_of(x, kind)
        axes = None if axis is None else axis_of(axis, node.type.rank, kind)
        return from_node(record(operation(axes, check_bool(keepdims, kind, "keepdims")), node))

    def apply_with_dtype(
        x: Array, /, *, axis: Axes = None, dtype: Any = None, keepdims: bool = False
    ) -> Array:
        node = node_of(x, kind)
        axes = axes_of(axis, node.type.rank, kind)
        result_dtype = None if dtype is None else dtype_name(dtype, kind)
        keeps = check_bool(keepdims, kind, "keepdims")
        if kind == "sum" and result_dtype is None and node.type.dtype == "bool":
            return from_node(record(CountNonzero(axes, keeps), node))
        number = number_of(node, result_dtype)
        return from_node(record(operation(axes, keeps, 0, result_dtype), number))

    def apply_with_correction(
        x: Array, /, *, axis: Axes = None, correction: float = 0.0, keepdims: bool = False
    ) -> Array:
        node = node_of(x, kind)
        if not isinstance(correction, int | float):
            raise ArrayTypeError(
                "{where}: correction must be a Python number, got {correction!r}",
                where=kind, correction=correction,
            )
        float64_of(correction, kind, "correction")
        axes = axes_of(axis, node.type.rank, kind)
        keeps = check_bool(keepdims, kind, "keepdims")
        return from_node(record(operation(axes, keeps, correction), node))

    if row.op == "find_index":
        return apply_to_axis
    options: Mapping[str, Callable[..., Array]] = {
        "dtype": apply_with_dtype, "correction": apply_with_correction,
    }
    return next((options[param.name] for param in row.params if param.name in options), apply)


def _define_cumulative(kind: str) -> Callable[..., Array]:
    where = f"cumulative_{kind}"

    def apply(
        x: Array,
        /,
        *,
        axis: SupportsIndex | None = None,
        dtype: Any = None,
        include_initial: bool = False,
    ) -> Array:
        node = node_of(x, where)
        rank = node.type.rank
        if rank == 0:
            raise ArrayValueError(
                "{where}: x must have at least 1 axis, got 0; reshape it: xp.reshape(x, (1,))",
                kind="array-shapes", where=where,
            )
        if axis is None and rank > 1:
            raise ArrayValueError(
                "{where}: axis must be specified, because x has shape {shape} with {rank} axes; "
                "for example, pass axis=0",
                kind="array-shapes", where=where, shape=node.type.shape, rank=rank,
            )
        dim = 0 if axis is None else axis_of(axis, rank, where)
        requested = None if dtype is None else dtype_name(dtype, where)
        initial = check_bool(include_initial, where, "include_initial")
        operation = Cumulative(kind, dim, initial, requested)
        return from_node(record(operation, number_of(node, requested)))

    return apply


_reduce = memoize("array.reductions", typed=True)(ReduceOp)
"""Cached `ReduceOp` operations: lookups keyed by an identical object are faster."""


def _operation(row: Reduction) -> Callable[..., PTensorOp]:
    """Return a function that makes the operation of a row from axes and further attributes."""
    if row.op == CountNonzero.name:
        return CountNonzero
    kinds: Mapping[str, Callable[..., PTensorOp]] = {
        ReduceOp.name: _reduce, TruthTest.name: TruthTest, FindIndex.name: FindIndex,
    }
    return partial(kinds[row.op], row.name)


def number_of(node: Node, dtype: str | None) -> Node:
    """Cast booleans to the dtype of their sum: `dtype`, or the default integer dtype if None."""
    if node.type.dtype != "bool" or dtype == "bool":
        return node
    return record(CastOp(dtype or default_dtype("int64", node.type.device)), node)


_REDUCTION = """{text}

Args:
    x: Input array{words}.{note}
{arguments}

Returns:
    {returns}

Raises:{unsupported}
    ArrayIndexError: If `axis` is out of bounds.
    ArrayValueError: If {problem}.

>>> import tecomp.array as xp
>>> xp.{name}(xp.asarray({example}){options})
{shown}
"""
_CUMULATIVE = """Compute the cumulative {noun} along an axis.

Args:
    x: Input array of numeric or boolean dtype. Booleans count as 0 and 1.
{arguments}

Returns:
    Array of the shape of `x`; with `include_initial`, the axis is longer by 1.

Raises:
    ArrayTypeError: If `x` has an unsupported dtype.
    ArrayIndexError: If `axis` is out of bounds.
    ArrayValueError: If `axis` is None and `x` does not have exactly one axis.

>>> import tecomp.array as xp
>>> xp.cumulative_{kind}(xp.asarray([1, 2, 3]), include_initial=True)
Array({shown}, dtype=int64)
"""

def _cumulative_docstring(row: Reduction) -> str:
    combiner = COMBINERS[row.combiner]
    function: Callable[[int, int], int] = add if combiner.operator == "+" else mul
    shown = [*accumulate([int(combiner.identity), 1, 2, 3], function)]
    lines = arguments("array", CUMULATIVE_PARAMETERS).format(initial=combiner.identity)
    return _CUMULATIVE.format(noun=row.noun, arguments=lines, kind=row.name, shown=shown)


def _reduction_docstring(row: Reduction) -> str:
    words, params = row.takes.words, parameters_in("array", row.params)
    if row.gives == TO_WIDE:
        words, note = "numeric or boolean dtype", " Booleans count as 0 and 1."
    else:
        words, note = f"{words}, real or complex" if row.takes is FLOATING else words, ""
    problems = []
    if row.needs_elements:
        is_index = row.op == FindIndex.name
        problems = ["there is no element to search" if is_index else "an axis has size 0"]
    problems += [f"`{param.name}` contains duplicates" for param in params
                 if DUPLICATES in param.wrong]
    data, options = re.findall(r"(\[.*\])(.*)", row.example)[0]
    return _REDUCTION.format(
        text=row.text_in("array"), words="" if row.takes is ALL else f" of {words}", note=note,
        arguments=arguments("array", params), returns=row.returns.replace("\n", "\n    "),
        unsupported="" if row.takes is ALL else (
            "\n    ArrayTypeError: If `x` has an unsupported dtype."),
        problem=", or ".join(problems), name=row.name, example=data, options=options,
        shown=row.shown,
    )
