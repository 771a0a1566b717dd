"""Whether the statements of an intrinsic do what it declares: both are run on random values."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from importlib import import_module
from typing import Any

import numpy as np
from numpy.typing import NDArray

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import ComputeOp
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Tensor, TensorLoad
from tecomp.errors import InternalError
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.expr import BufferLoad, Expr, Var, index_value, integer_range
from tecomp.ir.language.stmt import Buffer, BufferStore, For, ForKind, PrimFunc, Stmt, seq
from tecomp.ir.traversal.rewrite import bottom_up, substitute, walk

Array = NDArray[Any]

# Bits of the fraction, and one more: what a rounding may lose.
_PRECISION = {"float16": 2.0**-10, "bfloat16": 2.0**-7, "float32": 2.0**-23, "float64": 2.0**-52}
# So many roundings two forms of a function may differ by, in types that functions are computed in.
_LEAST_ROUNDINGS = {"float32": 80, "float64": 80}


def difference(
    op: ComputeOp,
    buffers: Sequence[Buffer],
    scalars: Sequence[Var],
    parts: Mapping[str, Stmt | None],
) -> str | None:
    """Where the statements of an intrinsic do something else than they are for, in words.

    Args:
        op: what they are to compute, of extents that are numbers.
        buffers: stand for its inputs, and then for its output.
        scalars: numbers that it takes.
        parts: `body`, which computes the output from nothing, `reset`, which stores what a
            reduction starts from, and `update`, which combines the reduction with what is there.

    Returns:
        The first element that differs, with both values and the inputs it is made from; None if
        there is none.
    """
    # Loaded with the first intrinsic: other definitions do not wait for the interpreter.
    run = import_module("tecomp.ir.interpreter.evaluate").evaluate
    draw = np.random.default_rng(20)
    numbers = [_random(draw, (), var.dtype).item() for var in scalars]
    *inputs, before = (_random(draw, _shape(b), b.dtype) for b in buffers)
    for name, statement in parts.items():
        meant = _meaning(op, buffers, name) if statement is not None else None
        if statement is None or meant is None:
            continue
        results = []
        for stmt in (meant, statement):
            result = before.copy()
            try:
                run(PrimFunc(name, (*scalars, *buffers), stmt),
                    [*numbers, *(a.copy() for a in inputs), result])
            except InternalError as error:
                who = "the definition" if stmt is meant else f"the {name}"
                return f"{who} cannot be run: {error.message}"
            results.append(result)
        wanted, got = results
        if (place := _first_difference(wanted, got, _terms(op))) is not None:
            return (
                f"the {name} stores {got[place]} at {_at(op.name, place)}, where the definition "
                f"gives {wanted[place]}, for {_given(op, inputs, scalars, numbers, place)}"
            )
    return None


def _meaning(op: ComputeOp, buffers: Sequence[Buffer], part: str) -> Stmt | None:
    """What a part of an intrinsic is for, as statements; None for parts that only sums have."""
    *inputs, out = buffers
    held = dict(zip(op.input_tensors, inputs, strict=True))
    axes: dict[IterVar, Expr] = {
        axis: Var(axis.name, axis.dtype) for axis in (*op.axis, *op.reduce_axis)
    }
    place = tuple(axes[axis] for axis in op.axis)
    value = op.body[0]
    if not isinstance(value, Reduce):
        once = _over(op.axis, axes, BufferStore(out, _read(value, held, axes), place))
        return once if part == "body" else None
    reset = BufferStore(out, value.combiner.identity[0], place)
    combiner = value.combiner
    combined = substitute(combiner.result[0], {
        combiner.lhs[0]: BufferLoad(out, place),
        combiner.rhs[0]: _read(value.source[0], held, axes),
    })
    update = _over(op.reduce_axis, axes, BufferStore(out, combined, place))
    steps = {"body": seq(reset, update), "reset": reset, "update": update}
    return _over(op.axis, axes, steps[part])


def _over(loops: Sequence[IterVar], axes: Mapping[IterVar, Expr], body: Stmt) -> Stmt:
    for axis in reversed(loops):
        var = axes[axis]
        assert isinstance(var, Var)
        low, count = axis.dom.min, index_value(axis.extent)
        body = For(var, low, count, ForKind.SERIAL, body)
    return body


def _read(value: Expr, held: Mapping[Tensor, Buffer], axes: Mapping[IterVar, Expr]) -> Expr:
    """An expression of tensors and axes as one of buffers and loops."""

    def rule(node: object) -> Expr | None:
        return BufferLoad(held[node.tensor], node.indices) if isinstance(node, TensorLoad) else None

    return substitute(bottom_up(value, rule), axes)


def _shape(buffer: Buffer) -> tuple[int, ...]:
    shape = tuple(n for n in buffer.shape if isinstance(n, int))
    return shape if buffer.dtype.lanes == 1 else (*shape, buffer.dtype.lanes)


def _random(draw: np.random.Generator, shape: tuple[int, ...], dtype: DType) -> Array:
    """Numbers with few bits, so that the order in which they are added hardly matters."""
    if dtype.is_float:
        quarters = draw.integers(1, 17, shape) * draw.choice([-0.25, 0.25], shape)
        return np.asarray(quarters).astype(dtype.numpy)
    if dtype.is_bool:
        return np.asarray(draw.integers(0, 2, shape)).astype(bool)
    low, high = integer_range(dtype)
    return draw.integers(max(low, -1000), min(high, 1000), shape, endpoint=True).astype(dtype.numpy)


def _terms(op: ComputeOp) -> int:
    return int(np.prod([n for n in (a.extent for a in op.reduce_axis) if isinstance(n, int)]))


def _first_difference(wanted: Array, got: Array, terms: int) -> tuple[int, ...] | None:
    kind = wanted.dtype.name
    if kind not in _PRECISION:
        differs = wanted != got
    else:
        x, y = wanted.astype(np.float64), got.astype(np.float64)
        with np.errstate(all="ignore"):
            tolerance = _PRECISION[kind] * max(terms + 4, _LEAST_ROUNDINGS.get(kind, 0))
            near = np.abs(x - y) <= np.maximum(np.abs(x), 1.0) * tolerance
            differs = ~((x == y) | (np.isnan(x) & np.isnan(y)) | near)
    places = np.argwhere(differs)
    return tuple(map(int, places[0])) if len(places) else None


def _at(name: str, place: Sequence[object]) -> str:
    return f"{name}[{', '.join(map(str, place))}]"


def _given(
    op: ComputeOp, inputs: Sequence[Array], scalars: Sequence[Var], numbers: Sequence[Any],
    place: Sequence[int],
) -> str:
    """The numbers that an element is made from, where they are read at axes."""
    told = [f"{var.name} = {number}" for var, number in zip(scalars, numbers, strict=True)]
    for tensor, array in zip(op.input_tensors, inputs, strict=True):
        at = _read_at(op, tensor, place)
        if at is None:
            told.append(f"random values of {tensor.name}")
            continue
        shown = _at(tensor.name, [":" if isinstance(n, slice) else n for n in at])
        told.append(f"{shown} = {np.array2string(array[at], threshold=16, separator=', ')}")
    return ", ".join(told) or "no input"


def _read_at(
    op: ComputeOp, tensor: Tensor, place: Sequence[int]
) -> tuple[int | slice, ...] | None:
    """Where a tensor is read for an element, if it is at axes; along those of a reduction all."""
    known: dict[Expr, int | slice] = {axis: slice(None) for axis in op.reduce_axis}
    known.update(zip(op.axis, place, strict=False))
    for node in walk(*op.body):
        if isinstance(node, TensorLoad) and node.tensor == tensor:
            at = [known.get(index) for index in node.indices]
            return None if None in at else tuple(n for n in at if n is not None)
    return None
