"""Define the functions of the namespace from the tables of operations."""

from __future__ import annotations

import re
from collections.abc import Callable

from tecomp.array.array_object import Array, apply_binary, from_node, node_of, nodes_of_pair
from tecomp.array.graph.node import record
from tecomp.array.indexing.getitem import truth_of
from tecomp.array.weak_scalars import Scalar
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.functions import with_name
from tecomp.operations.rows import TRUTH, Op
from tecomp.ptensor.operations.elementwise import FUNCTIONS
from tecomp.ptensor.types import COMPLEX


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
        one, other = nodes_of_pair(x1, x2, kind)
        return from_node(record(op, truth_of(one), truth_of(other)))

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
