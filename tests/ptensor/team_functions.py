"""Functions on tensors of team 1: fixed ones with NumPy results, and random ones."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from random import Random
from typing import Any

import numpy as np

from tecomp.ptensor import (
    FUNCTIONS as CALLS,
)
from tecomp.ptensor import (
    Apply,
    Combine,
    CountNonzero,
    Cumulative,
    ExpandDims,
    Flip,
    Function,
    MatMul,
    Parameter,
    PermuteDims,
    PTensorOp,
    PTensorType,
    ReduceOp,
    Sort,
    Squeeze,
    TruthTest,
)

Oracle = Callable[..., list[Any]]


def text_of(head: str, *lines: str) -> str:
    """Return a function whose tensor types are of team 1; `<4x5xfloat32>` abbreviates a type."""
    text = "\n".join([f"func @f({head} {{", *[f"  {line}" for line in lines], "}"])
    return re.sub(r"<([\dx]*\w+)>", r"ptensor<\1, team=1>", text)


TABLE = np.random.default_rng(0).normal(size=(7, 3))
CHAIN = text_of(
    "%x: <7x3xfloat64>) -> <7x3xfloat64>",
    "%m = ptensor.reduce{'sum'}(%x, axis=(0,), keepdims=False, correction=0, dtype=None): (<7x3xfloat64>) -> <3xfloat64>",
    "%y = ptensor.elementwise_binary_op{'subtract'}(%x, %m): (<7x3xfloat64>, <3xfloat64>) -> <7x3xfloat64>",
    "%z = ptensor.elementwise_unary_op{'exp'}(%y): (<7x3xfloat64>) -> <7x3xfloat64>",
    "return %z",
)
PRODUCT = text_of(
    "%x: <7x3xfloat64>) -> (<3x3xfloat64>, <7xfloat64>, <7x3xfloat64>)",
    "%t = ptensor.permute_dims(%x, axis=(1, 0)): (<7x3xfloat64>) -> <3x7xfloat64>",
    "%p = ptensor.matmul(%t, %x): (<3x7xfloat64>, <7x3xfloat64>) -> <3x3xfloat64>",
    "%r = ptensor.reduce{'max'}(%x, axis=(1,), keepdims=False, correction=0, dtype=None): (<7x3xfloat64>) -> <7xfloat64>",
    "%s = ptensor.sort(%x, axis=0, descending=False, stable=True): (<7x3xfloat64>) -> <7x3xfloat64>",
    "return %p, %r, %s",
)
RANGE = """func @f(%1: int64, %2: int64, %3: int64) -> ptensor<?xint64, team=1> {
  %a = ptensor.arange(start=%1, stop=%2, step=%3, dtype='int64', device=None, team=1): () -> ptensor<?xint64, team=1>
  %b = ptensor.elementwise_binary_op{'multiply'}(%a, %a): (ptensor<?xint64, team=1>, ptensor<?xint64, team=1>) -> ptensor<?xint64, team=1>
  return %b
}"""

SEVERAL = """\
func @g(%x: ptensor<4xfloat64, team=1>) -> (ptensor<4xfloat64, team=1>, ptensor<2xfloat64, team=1>) {
  %y = ptensor.extract_slice(%x, slice=((0, 2, 2),)): (ptensor<4xfloat64, team=1>) -> ptensor<2xfloat64, team=1>
  return %x, %y
}

func @f(%a: ptensor<3x4xfloat64, team=1>) -> (ptensor<4xfloat64, team=1>, ptensor<2xfloat64, team=1>) {
  %s = ptensor.reduce{'sum'}(%a, axis=(0,), keepdims=False, correction=0, dtype=None): (ptensor<3x4xfloat64, team=1>) -> ptensor<4xfloat64, team=1>
  %b, %c = func.call @g(%s): (ptensor<4xfloat64, team=1>) -> (ptensor<4xfloat64, team=1>, ptensor<2xfloat64, team=1>)
  return %b, %c
}"""
"""Module with a function that calls another one, which also returns its argument."""

FUNCTIONS: Mapping[str, tuple[str, list[Any], Oracle]] = {
    "chain": (CHAIN, [TABLE], lambda x: [np.exp(x - x.sum(axis=0))]),
    "product": (PRODUCT, [TABLE], lambda x: [x.T @ x, x.max(axis=1), np.sort(x, axis=0)]),
    "range": (RANGE, [3, 20, 4], lambda *given: [np.arange(*given) ** 2]),
}


def drawn_function(dice: Random) -> tuple[Function, list[Any]]:
    """Return a function of random operations on matrices that returns all of its values.

    Returns:
        The function, and its arguments.
    """
    shape = dice.choice([(7, 3), (2, 3), (1, 4), (5, 5), (4, 1)])
    types = [PTensorType(shape, "float64", None, 1), PTensorType(shape[1:], "float64", None, 1)]
    known = {f"x{k}": type for k, type in enumerate(types)}
    parameters = tuple(Parameter(name, type) for name, type in known.items())
    body: list[Apply] = []
    while len(body) < 8:
        op, operands = drawn_operation(dice, known)
        inputs = tuple(known[name] for name in operands)
        try:
            (result,) = op.results(*inputs)
        except (ValueError, TypeError, IndexError):
            continue
        name = f"y{len(body)}"
        body.append(Apply(name, op, operands, inputs, result))
        assert isinstance(result, PTensorType)
        known[name] = result
    numbers = np.random.default_rng(dice.randrange(1000))
    arguments = [numbers.normal(size=type.shape) for type in types]
    return Function("f", parameters, tuple(body), tuple(apply.result or "" for apply in body)), arguments


def drawn_operation(dice: Random, known: Mapping[str, PTensorType]) -> tuple[PTensorOp, tuple[str, ...]]:
    """Return an operation with operands, whose types may be invalid."""
    one, two = (dice.choice(list(known)) for _ in range(2))
    axis = dice.randrange(2)
    keep = dice.random() < 0.5
    kinds: list[tuple[PTensorOp, int]] = [
        (CALLS[dice.choice(["add", "multiply", "subtract", "less", "maximum"])], 2),
        (CALLS[dice.choice(["tanh", "negative", "abs"])], 1),
        (ReduceOp(dice.choice(["sum", "max", "min", "mean", "var"]), dice.choice([None, (axis,)]), keep), 1),
        (TruthTest(dice.choice(["any", "all"]), (axis,), keep), 1),
        (CountNonzero(dice.choice([None, (axis,)]), keep), 1),
        (PermuteDims((1, 0)), 1), (MatMul(), 2), (Combine("concat", axis), 2), (ExpandDims((axis,)), 1),
        (Squeeze((axis,)), 1), (Flip((axis,)), 1), (Cumulative("sum", axis, False, None), 1), (Sort(axis), 1),
    ]
    op, count = dice.choice(kinds)
    return op, (one, two)[:count]
