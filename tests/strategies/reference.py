"""Reference evaluation of te definitions with NumPy on the index grid, without lowering."""

from __future__ import annotations

import itertools
import math
from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

from tecomp.compute import ComputeOp, Operation, Reduce, ScanOp, Tensor, TensorLoad, post_order
from tecomp.ir import (
    Binary,
    BinOp,
    Call,
    Cast,
    CmpOp,
    Compare,
    Const,
    DType,
    Expr,
    Extent,
    Not,
    Select,
    Var,
    integer_range,
)

Array: TypeAlias = NDArray[Any]
Values: TypeAlias = "Mapping[Var, Array]"
Tensors: TypeAlias = "dict[tuple[Operation, int], Array]"

_BINARY: dict[BinOp, Any] = {
    BinOp.ADD: np.add, BinOp.SUB: np.subtract, BinOp.MUL: np.multiply, BinOp.DIV: np.divide,
    BinOp.FLOORDIV: np.floor_divide, BinOp.MOD: np.remainder,
    BinOp.MIN: np.minimum, BinOp.MAX: np.maximum,
    BinOp.AND: np.logical_and, BinOp.OR: np.logical_or,
    BinOp.BITAND: np.bitwise_and, BinOp.BITOR: np.bitwise_or, BinOp.BITXOR: np.bitwise_xor,
    BinOp.SHL: np.left_shift, BinOp.SHR: np.right_shift,
}
_COMPARE: dict[CmpOp, Any] = {
    CmpOp.EQ: np.equal, CmpOp.NE: np.not_equal, CmpOp.LT: np.less, CmpOp.LE: np.less_equal,
    CmpOp.GT: np.greater, CmpOp.GE: np.greater_equal,
}


def half_away(x: Array) -> Array:
    """Round to the nearest integer; ties go away from 0."""
    whole = np.trunc(x)
    return np.where(np.abs(x - whole) < 0.5, whole, whole + np.sign(x))


_CALLS: dict[str, Any] = {
    "floor": np.floor, "ceil": np.ceil, "round": half_away, "nearbyint": np.rint,
    "trunc": np.trunc, "fabs": np.fabs, "abs": np.abs,
}


def number(extent: Extent, sizes: Mapping[Var, int]) -> int:
    """Evaluate an extent for the given sizes."""
    if isinstance(extent, int):
        return extent
    one = np.ones(1, bool)
    values = {var: np.full(1, size, var.dtype.numpy) for var, size in sizes.items()}
    return int(_Points({}, values, one).value(extent)[0])


def compute(
    outputs: Sequence[Operation], inputs: Mapping[Operation, Array], sizes: Mapping[Var, int]
) -> Tensors:
    """Compute every tensor that `outputs` depend on, by operation and output number."""
    tensors: Tensors = {(op, 0): array for op, array in inputs.items()}
    with np.errstate(all="ignore"):
        steps = {tensor.op for op in post_order(outputs) if isinstance(op, ScanOp)
                 for tensor in _rules(op)}  # fmt: skip
        for op in post_order(outputs):
            if isinstance(op, ScanOp):
                for k, array in enumerate(_scan(op, tensors, sizes)):
                    tensors[op, k] = array
            elif isinstance(op, ComputeOp) and op not in steps:
                for k, array in enumerate(_compute(op, tensors, sizes)):
                    tensors[op, k] = array
    return tensors


def _compute(op: ComputeOp, tensors: Tensors, sizes: Mapping[Var, int]) -> list[Array]:
    shape = [number(extent, sizes) for extent in op.shape]
    count = math.prod(shape)
    grid = np.indices(shape).reshape(len(shape), count)
    values = {var: np.full(count, size, var.dtype.numpy) for var, size in sizes.items()}
    values |= {axis: g.astype(axis.dtype.numpy) for axis, g in zip(op.axis, grid, strict=True)}
    points = _Points(tensors, values, np.ones(count, bool))
    first = op.body[0]
    results = points.reduction(first, sizes) if isinstance(first, Reduce) else [
        points.value(expr) for expr in op.body
    ]
    return [result.reshape(shape) for result in results]


def _rules(op: ScanOp) -> list[Tensor]:
    """Return the tensors that define a step of a scan."""
    return [expr.tensor for expr in op.body if isinstance(expr, TensorLoad)]


def _scan(op: ScanOp, tensors: Tensors, sizes: Mapping[Var, int]) -> list[Array]:
    """Evaluate a scan step by step."""
    shape = [number(extent, sizes) for extent in op.shape]
    first = min(number(op.scan_axis.dom.min, sizes), shape[0])
    states = [np.zeros(shape, dtype.numpy) for dtype in op.dtypes]
    for state, start in zip(states, op.start, strict=True):
        assert isinstance(start, TensorLoad)
        state[:first] = tensors[start.tensor.op, start.tensor.value_index][:first]
    known = {**tensors, **{(t.op, 0): s for t, s in zip(op.states, states, strict=True)}}
    grid = np.indices(shape[1:]).reshape(len(shape) - 1, math.prod(shape[1:]))
    for step in range(first, shape[0]):
        for state, rule in zip(states, _rules(op), strict=True):
            places = (np.full(grid.shape[1:] or 1, step), *grid)
            values: dict[Var, Array] = {
                axis: place.astype(axis.dtype.numpy)
                for axis, place in zip(rule.op.axis, places, strict=True)
            }
            values |= {v: np.full(places[0].shape, n, v.dtype.numpy) for v, n in sizes.items()}
            points = _Points(known, values, np.ones(places[0].shape, bool))
            assert isinstance(rule.op, ComputeOp)
            state[step] = points.value(rule.op.body[rule.value_index]).reshape(shape[1:])
    return states


class _Points:
    """Evaluation of expressions at many points at once.

    Attributes:
        tensors: Tensors that expressions can read.
        values: Value of each variable at each point.
        active: Mask of the points to evaluate; results at other points are arbitrary.
    """

    def __init__(self, tensors: Tensors, values: Values, active: Array) -> None:
        self.tensors = tensors
        self.values = values
        self.active = active

    def where(self, condition: Array) -> _Points:
        return _Points(self.tensors, self.values, self.active & condition)

    def reduction(self, reduce: Reduce, sizes: Mapping[Var, int]) -> list[Array]:
        """Evaluate a reduction term by term."""
        start = reduce.init or reduce.combiner.identity
        result = [self.value(expr) for expr in start]
        if not self.active.size:
            return result
        ranges = [
            range(low := number(axis.dom.min, sizes), low + number(axis.extent, sizes))
            for axis in reduce.axis
        ]
        for term in itertools.product(*ranges):
            here: dict[Var, Array] = {
                axis: np.full(self.active.shape, value, axis.dtype.numpy)
                for axis, value in zip(reduce.axis, term, strict=True)
            }
            inside = _Points(self.tensors, {**self.values, **here}, self.active)
            counts = inside.value(reduce.condition)
            inside = inside.where(counts)
            new = [inside.value(expr) for expr in reduce.source]
            operands = dict(zip(reduce.combiner.lhs, result, strict=True))
            operands |= dict(zip(reduce.combiner.rhs, new, strict=True))
            combiner = _Points({}, operands, self.active)
            combined = [combiner.value(expr) for expr in reduce.combiner.result]
            result = [np.where(counts, x, old) for x, old in zip(combined, result, strict=True)]
        return result

    def value(self, expr: Expr) -> Array:
        """Evaluate an expression at each point."""
        match expr:
            case Var():
                return self.values[expr]
            case Const(value, dtype):
                return np.full(self.active.shape, value).astype(dtype.numpy)
            case Cast(dtype, inner):
                return _cast(self.value(inner), inner.dtype, dtype)
            case Binary(op, a, b):
                return self._binary(op, self.value(a), self.value(b))
            case Compare(op, a, b):
                compared: Array = _COMPARE[op](self.value(a), self.value(b))
                return compared
            case Not(a):
                return ~self.value(a)
            case Select(condition, a, b) | Call("if_then_else", (condition, a, b)):
                holds = self.value(condition)
                return np.where(holds, self.where(holds).value(a), self.where(~holds).value(b))
            case Call(name, (a,)):
                return _called(name, self.value(a))
            case TensorLoad(tensor, indices):
                return self._load(self.tensors[tensor.op, tensor.value_index], indices)
        raise AssertionError(f"no rule for {expr!r}")

    def _binary(self, op: BinOp, a: Array, b: Array) -> Array:
        result: Array = _BINARY[op](a, b)
        if a.dtype.kind in "iu":
            if op in (BinOp.FLOORDIV, BinOp.MOD):
                result = np.where(b == 0, np.zeros_like(result), result)
            if op is BinOp.SHL:
                result = np.where((b < 0) | (b >= 8 * b.itemsize), np.zeros_like(result), result)
        return result.astype(a.dtype)

    def _load(self, array: Array, indices: Sequence[Expr]) -> Array:
        places = [self.value(index).astype(np.int64) for index in indices]
        for place, extent in zip(places, array.shape, strict=True):
            wrong = self.active & ((place < 0) | (place >= extent))
            assert not wrong.any(), "the strategy made a read outside of its tensor"
        if array.size == 0:
            return np.zeros(self.active.shape, array.dtype)
        inside = [np.where(self.active, place, 0) for place in places]
        read: Array = np.broadcast_to(array[tuple(inside)], self.active.shape)
        return read


def _called(name: str, value: Array) -> Array:
    if name == "popcount":
        mask = 2 ** (8 * value.itemsize) - 1
        return np.array([(int(x) & mask).bit_count() for x in value], value.dtype)
    called: Array = _CALLS[name](value)
    return called.astype(value.dtype)


def _cast(value: Array, source: DType, target: DType) -> Array:
    if target.is_bool:
        truth: Array = value != 0
        return truth
    if source.is_float and target.is_integer:
        low, high = integer_range(target)
        clipped = [min(max(x, low), high) for x in np.trunc(value.astype(np.float64)).tolist()]
        return np.array([0 if math.isnan(x) else int(x) for x in clipped], target.numpy)
    converted: Array = value.astype(target.numpy)
    return converted
