"""Trace a user's index function and check its expressions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from enum import Enum
from inspect import Parameter, signature
from typing import Any

import numpy as np

from tecomp.errors import DefinitionError, LayoutError, TypeMismatchError, safe_repr
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Call,
    Cast,
    Compare,
    Const,
    Expr,
    Not,
    Select,
    Var,
    as_expr,
    index_value,
)
from tecomp.ir.nodes.stmt import check_separators
from tecomp.ir.traversal.rewrite import walk

_SUMS = (BinOp.ADD, BinOp.SUB, BinOp.MIN, BinOp.MAX)
_DIVISIONS = (BinOp.FLOORDIV, BinOp.MOD)
_BITS = (BinOp.BITAND, BinOp.BITOR, BinOp.BITXOR, BinOp.SHL, BinOp.SHR)
_LOGIC = (BinOp.AND, BinOp.OR)


def check_index_expression(root: Expr) -> Expr:
    """Return `root` after a check that it may be a result of an index map.

    Raises:
        LayoutError: If `root` contains an operation that layouts do not support.
    """
    for node in walk(root):
        if not _may_be(node):
            raise LayoutError(
                "`{node}` is not quasi-affine; in an index map, use addition of indices, "
                "multiplication, division and remainder by constants, min and max, and the bit "
                "operations ^ & | << >>",
                kind="invalid-index-map", node=node,
            )
    return root


def _may_be(node: Expr) -> bool:
    if node.dtype.lanes != 1 or not (node.dtype.is_integer or node.dtype.is_bool):
        return False
    match node:
        case Var() | Const() | Cast() | Compare() | Not() | Select():
            return True
        case Call(name):
            return name in ("if_then_else", "abs")
        case Binary(op, a, b):
            if op is BinOp.MUL:
                return isinstance(_strip(a), Const) or isinstance(_strip(b), Const)
            if op in _DIVISIONS:
                divisor = _strip(b)
                return isinstance(divisor, Const) and divisor.value != 0
            return op in (*_SUMS, *_BITS, *_LOGIC)
    return False


def _strip(node: Expr) -> Expr:
    while isinstance(node, Cast):
        node = node.value
    return node


class AxisSeparator(Enum):
    """Type of the marker `AXIS_SEPARATOR`."""

    AXIS_SEPARATOR = "AXIS_SEPARATOR"

    def __repr__(self) -> str:
        return self.value


AXIS_SEPARATOR = AxisSeparator.AXIS_SEPARATOR
"""Marker between two results of an index map; a new physical axis begins after the marker."""


def trace(
    function: Callable[..., Any], ndim: int | None
) -> tuple[tuple[Var, ...], tuple[Expr, ...], tuple[int, ...]]:
    """Return the index variables passed to `function`, its results and the axis separators.

    Raises:
        LayoutError: If `function` takes another number of indices or returns anything but indices.
    """
    if not callable(function):
        raise LayoutError(
            "index map: expected a function of the indices, got {function!r}; write e.g. lambda "
            "i, j: [j, i]",
            kind="invalid-index-map", function=function,
        )
    first, last = _arguments(function, ndim)
    returned = function(*first, **{var.name: var for var in last})
    if isinstance(returned, str | bytes) or not isinstance(returned, Sequence):
        raise LayoutError(
            "index map: the function must return a list of indices, got {value}; return e.g. [i // "
            "4, i % 4], or [i] for one axis",
            kind="invalid-index-map", value=_format_value(returned),
        )
    if not returned and not (*first, *last):
        return (), (), ()  # the identity of a tensor without axes
    results, separators = _results(returned)
    return (*first, *last), results, separators


def _results(returned: Sequence[Any]) -> tuple[tuple[Expr, ...], tuple[int, ...]]:
    results: list[Expr] = []
    separators: list[int] = []
    for result in returned:
        if result is AXIS_SEPARATOR:
            separators.append(len(results) - 1)
        else:
            results.append(_index(result, len(results)))
    if not results:
        raise LayoutError(
            "index map: the function returned an empty list; return at least one index, e.g. a "
            "constant 0",
            kind="invalid-index-map",
        )
    try:
        return tuple(results), check_separators(separators, len(results))
    except DefinitionError as error:
        raise LayoutError("index map: {reason}", kind=error.kind, reason=error.message) from None


def _index(result: Any, position: int) -> Expr:
    try:
        expr = as_expr(result)
    except TypeMismatchError:
        raise LayoutError(
            "index map: result {position} must be an index, got {result}; return only index "
            "expressions, integers and AXIS_SEPARATOR",
            kind="invalid-index-map", position=position, result=_format_value(result),
        ) from None
    if not expr.dtype.is_integer:
        raise LayoutError(
            "index map: result {position}, {result}, has dtype {dtype}, but an index must be an "
            "integer; use // to divide and .astype('int64') to convert",
            kind="invalid-index-map", position=position, result=_format_value(result),
            dtype=expr.dtype,
        )
    return index_value(expr)


def _format_value(value: Any) -> str:
    return f"`{value}`" if isinstance(value, Expr) else safe_repr(value)


def _arguments(
    function: Callable[..., Any], ndim: int | None
) -> tuple[tuple[Var, ...], tuple[Var, ...]]:
    """Return an index for each parameter; `*i` takes the remaining axes, defaults stay unset."""
    check_kind(
        ndim, int | np.integer | None, "index map: ndim", "give a number of axes", LayoutError
    )
    named, last, rest = _parameters(function)
    names = (*named, *([f"*{rest}"] if rest else []), *last)
    listed = f" ({', '.join(names)})" if names else ""
    if rest is None:
        if ndim is not None and len(names) != ndim:
            raise LayoutError(
                "index map: the function takes {given_count}{listed}, but the tensor has {ndim}; "
                "declare one parameter per axis, or accept all of them as *i",
                kind="invalid-index-map", given_count=_indices(len(names)), listed=listed,
                ndim=_axes(ndim),
            )
    elif ndim is None:
        raise LayoutError(
            "index map: the function takes any number of indices{listed}; specify the number with "
            "ndim=",
            kind="invalid-index-map", listed=listed,
        )
    elif len(named) + len(last) > ndim:
        raise LayoutError(
            "index map: the function takes at least {detail}{listed}, but the tensor has {ndim}; "
            "declare at most one parameter per axis",
            kind="invalid-index-map", detail=_indices(len(named) + len(last)), listed=listed,
            ndim=_axes(ndim),
        )
    count = 0 if rest is None or ndim is None else ndim - len(named) - len(last)
    middle = [f"{rest}{k}" for k in range(count)]
    return tuple(map(Var, (*named, *middle))), tuple(map(Var, last))


def _parameters(function: Callable[..., Any]) -> tuple[list[str], list[str], str | None]:
    """Return the names before `*rest`, the names after `*rest`, and the name of `rest`."""
    try:
        parameters = signature(function).parameters.values()
    except (TypeError, ValueError):
        raise LayoutError(
            "index map: the signature of {function!r} cannot be inspected; wrap it in a lambda "
            "with one parameter per axis",
            kind="invalid-index-map", function=function,
        ) from None
    named: list[str] = []
    last: list[str] = []
    rest: str | None = None
    for parameter in parameters:
        if parameter.kind is Parameter.VAR_POSITIONAL:
            rest = parameter.name
        elif parameter.kind is Parameter.VAR_KEYWORD:
            raise LayoutError(
                "index map: the function takes **{parameter}, but indices are passed as positional "
                "arguments; declare one parameter per axis, or accept all of them as *i",
                kind="invalid-index-map", parameter=parameter.name,
            )
        elif parameter.default is Parameter.empty:
            is_last = parameter.kind is Parameter.KEYWORD_ONLY
            (last if is_last else named).append(parameter.name)
    return named, last, rest


def _indices(count: int) -> str:
    return f"{count} {'index' if count == 1 else 'indices'}"


def _axes(count: int) -> str:
    return f"{safe_repr(count)} {'axis' if count == 1 else 'axes'}"
