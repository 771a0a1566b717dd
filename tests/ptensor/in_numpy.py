"""NumPy reference results of all ptensor operations."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np

from tecomp.operations import elementwise_in
from tecomp.ptensor import POWERS, LibraryOperation, PTensorOp, compute
from tests.operations.references import numpy_reduction
from tests.strategies.functions import reference

Made = Callable[..., Any]

def in_numpy(op: PTensorOp, *args: Any) -> tuple[Any, ...]:
    """Return the results of an operation on arrays, numbers and buffers."""
    with np.errstate(all="ignore"):
        if isinstance(op, LibraryOperation):
            return compute(op, *args)
        found = ORACLES[op.name](op, *args)
    return tuple(found) if isinstance(found, tuple | list) and op.name != "shape" else (found,)


_ROWS = elementwise_in("array")


def _elementwise(op: Any, *args: Any) -> Any:
    return reference(_ROWS[op.kind], *args)


def _spans(op: Any) -> tuple[slice, ...]:
    ends = [(first, first + count * step, step) for first, step, count in op.slice]
    return tuple([slice(a, b if b >= 0 else None, step) for a, b, step in ends])


def _inserted(op: Any, x: Any, part: Any) -> Any:
    result = x.copy()
    result[_spans(op)] = part
    return result


def _reduced(op: Any, x: Any) -> Any:
    how = {"ddof": op.correction} if op.kind in ("var", "std") else {}
    widened = x.astype(op.dtype) if op.dtype else x
    return numpy_reduction(op.row)(widened, axis=op.axis, keepdims=op.keepdims, **how)


def _running(op: Any, x: Any) -> Any:
    function = np.cumulative_sum if op.kind == "sum" else np.cumulative_prod
    return function(x, axis=op.axis, dtype=op.dtype, include_initial=op.include_initial)


def _taken(op: Any, x: Any, *indices: Any) -> Any:
    found = np.moveaxis(x, op.axis, range(len(op.axis)))[indices]
    rank = np.broadcast(*indices).ndim
    return np.moveaxis(found, range(rank), range(op.place, op.place + rank))


def _linspace(op: Any) -> Any:
    return np.linspace(op.start, op.stop, op.n, endpoint=op.endpoint, dtype=op.dtype)


ORACLES: Mapping[str, Made] = {
    **dict.fromkeys((
        "elementwise_unary_op", "elementwise_unary_test", "elementwise_binary_op", "elementwise_binary_test",
    ), _elementwise),
    "cast": lambda op, x: x.astype(op.dtype),
    "where": lambda op, *given: np.where(*given),
    "arange": lambda op: np.arange(op.start, op.stop, op.step, dtype=op.dtype),
    "create": lambda op, value: np.full(op.shape, value, op.dtype),
    "create_like": lambda op, x, value: np.full_like(x, value, dtype=op.dtype),
    "eye": lambda op: np.eye(op.n_rows, op.n_cols, op.k, dtype=op.dtype),
    "linspace": _linspace,
    "extract_triangle": lambda op, x: (np.tril if op.kind == "lower" else np.triu)(x, op.k),
    "asarray": lambda op, given: np.asarray(given).astype(op.dtype),
    "from_dlpack": lambda op, given: np.from_dlpack(given),
    "meshgrid": lambda op, *given: np.meshgrid(*given, indexing=op.indexing),
    "shape": lambda op, x: x.shape,
    "rank": lambda op, x: x.ndim,
    "size": lambda op, x: x.size,
    "result_type": lambda op, *given: np.result_type(*[each.dtype for each in given]).name,
    "broadcast": lambda op, x: np.broadcast_to(x, op.shape),
    "combine": lambda op, *given: (np.concat if op.kind == "concat" else np.stack)(given, axis=op.axis),
    "expand_dims": lambda op, x: np.expand_dims(x, op.axis),
    "flip": lambda op, x: np.flip(x, op.axis),
    "permute_dims": lambda op, x: np.transpose(x, op.axis),
    "reshape": lambda op, x: np.reshape(x, op.shape),
    "roll": lambda op, x: np.roll(x, op.shift, op.axis),
    "squeeze": lambda op, x: np.squeeze(x, op.axis),
    "repeat": lambda op, x: np.repeat(x, op.repeats, op.axis),
    "tile": lambda op, x: np.tile(x, op.repetitions),
    "reduce": _reduced,
    "test": lambda op, x: getattr(np, op.kind)(x, axis=op.axis, keepdims=op.keepdims),
    "count_nonzero": lambda op, x: np.count_nonzero(x, axis=op.axis, keepdims=op.keepdims),
    "diff": lambda op, x: np.diff(x, axis=op.axis),
    "cumulative": _running,
    "find_index": lambda op, x: getattr(np, op.kind)(x, axis=op.axis, keepdims=op.keepdims),
    "extract_slice": lambda op, x: x[_spans(op)],
    "extract_mask": lambda op, x, mask: x[mask],
    "elementwise_power": lambda op, x: np.power(x, POWERS[op.kind], dtype=x.dtype),
    "nonzero": lambda op, x: np.nonzero(x),
    "insert_slice": _inserted,
    "take": _taken,
    "take_along_axis": lambda op, x, indices: np.take_along_axis(x, indices, op.axis),
    "matmul": lambda op, a, b: a @ b,
    "matrix_transpose": lambda op, x: np.matrix_transpose(x),
    "vecdot": lambda op, a, b: (a.conj() * b).sum(axis=op.axis),
    "tensor_dot": lambda op, a, b: np.tensordot(a, b, op.axes),
    "outer": lambda op, a, b: np.outer(a, b),
    "diagonal": lambda op, x: np.diagonal(x, op.offset, -2, -1),
    "trace": lambda op, x: np.trace(x, op.offset, -2, -1, dtype=op.dtype),
    "cross": lambda op, a, b: np.cross(a, b, axis=op.axis),
}
