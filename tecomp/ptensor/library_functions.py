"""Library implementations of operations."""

from __future__ import annotations

from functools import singledispatch
from typing import Any

import numpy as np

from tecomp.errors import ArrayIndexError, ArrayValueError
from tecomp.ptensor.operations.base import LibraryOperation
from tecomp.ptensor.operations.library_ops import (
    FourierTransformOp,
    Matrices,
    PseudoInverse,
    Rank,
    Solve,
)
from tecomp.ptensor.operations.manipulation import ScatterAdd
from tecomp.ptensor.operations.sorting import (
    Argsort,
    IsIn,
    SearchSorted,
    Sort,
    UniqueAll,
    UniqueCounts,
    UniqueInverse,
    UniqueValues,
)

Buffer = np.ndarray[Any, Any]


def compute(op: LibraryOperation, *operands: Buffer) -> tuple[Buffer, ...]:
    """Compute an operation with the library that it names.

    Args:
        op: Operation.
        operands: Operands in memory.

    Raises:
        ArrayIndexError: If an operand has indices that are out of bounds.
        ArrayValueError: If there is no result, for example for the inverse of a singular matrix.
    """
    try:
        # Infinities and NaN are valid results, so suppress NumPy's warnings, e.g. about overflow.
        with np.errstate(all="ignore"):
            found = _compute(op, *operands)
    except np.linalg.LinAlgError as error:
        shapes = " and ".join(str(operand.shape) for operand in operands)
        raise ArrayValueError(
            "{where}: {library} failed for shape {shapes}: {reason}; check the values, or use "
            "pinv or svd, which support singular matrices",
            where=op.where, library=op.library, shapes=shapes, reason=error,
        ) from error
    results = found if isinstance(found, tuple) else (found,)
    return tuple([np.asarray(result) for result in results])


@singledispatch
def _compute(op: LibraryOperation, *operands: Buffer) -> Any:
    raise NotImplementedError(f"{op.name} has no function")


def _order(stable: bool) -> Any:
    return "stable" if stable else None


def _order_of_values(stable: bool, x: Buffer) -> Any:
    """Return the algorithm for sorting values alone; most equal values are indistinguishable."""
    if not stable or x.dtype.kind in "biu":
        return None
    # 0.0 and -0.0 are equal but distinguishable, so they require a stable sort.
    return "stable" if x.dtype.kind == "c" or (x == 0).any() else None


@_compute.register
def _(op: Sort, x: Buffer) -> Any:
    # Flip before and after sorting, so that a descending sort is stable: 0.0 and -0.0 are equal.
    if not op.descending:
        return np.sort(x, op.axis, kind=_order_of_values(op.stable, x))
    order = _order_of_values(op.stable, x)
    return np.flip(np.sort(np.flip(x, op.axis), op.axis, kind=order), op.axis)


@_compute.register
def _(op: Argsort, x: Buffer) -> Any:
    if not op.descending:
        return np.argsort(x, op.axis, kind=_order(op.stable))
    order = np.argsort(np.flip(x, op.axis), op.axis, kind=_order(op.stable))
    return x.shape[op.axis] - 1 - np.flip(order, op.axis)


@_compute.register
def _(op: SearchSorted, x: Buffer, values: Buffer, sorter: Buffer | None = None) -> Any:
    side: Any = op.kind
    if sorter is not None:
        outside = sorter[(sorter < 0) | (sorter >= x.size)]
        if outside.size:
            raise find_invalid_sorter(int(outside[0]), x.size)
        sorter = sorter.astype(np.int64, copy=False)  # NumPy rejects uint64 sorters
    return np.searchsorted(x, values, side, sorter)


def find_invalid_sorter(index: int, size: int) -> ArrayIndexError:
    """Return the error for a sorter index that is out of bounds."""
    return ArrayIndexError(
        "searchsorted: sorter index {index} is out of bounds for x1 with {size} elements; pass "
        "xp.argsort(x1)",
        index=index, size=size,
    )


@_compute.register
def _(op: ScatterAdd, terms: Buffer, *indices: Buffer) -> Any:
    found = np.zeros(op.shape, terms.dtype)
    count = np.broadcast_shapes(*[index.shape for index in indices])
    first = terms if not count else np.moveaxis(
        terms, [*range(op.place, op.place + len(count))], [*range(len(count))])
    np.add.at(np.moveaxis(found, op.axis, [*range(len(op.axis))]), indices, first)
    return found


@_compute.register
def _(op: IsIn, x: Buffer, among: Buffer) -> Any:
    return np.isin(x, among, invert=op.invert)


@_compute.register
def _(op: UniqueAll, x: Buffer) -> Any:
    return tuple(np.unique_all(x))


@_compute.register
def _(op: UniqueCounts, x: Buffer) -> Any:
    return tuple(np.unique_counts(x))


@_compute.register
def _(op: UniqueInverse, x: Buffer) -> Any:
    return tuple(np.unique_inverse(x))


@_compute.register
def _(op: UniqueValues, x: Buffer) -> Any:
    return np.unique(x, equal_nan=False)


@_compute.register
def _(op: FourierTransformOp, x: Buffer) -> Any:
    function = getattr(np.fft, op.kind)
    if op.kind.endswith("n"):
        shape = [x.shape[axis] for axis in op.axes]
        if op.kind == "irfftn":
            shape[-1] = 2 * (shape[-1] - 1)
        sizes = [n if size is None else size for size, n in zip(op.sizes, shape, strict=True)]
        return function(x, sizes, op.axes, op.norm)
    return function(x, op.sizes[0], op.axes[0], op.norm)


@_compute.register
def _(op: Matrices, x: Buffer) -> Any:
    options: dict[str, Any] = {}
    if op.kind == "cholesky":
        options["upper"] = op.full
    if op.kind == "qr":
        options["mode"] = "complete" if op.full else "reduced"
    if op.kind == "svd":
        options["full_matrices"] = op.full
    found = getattr(np.linalg, op.kind)(x, **options)
    if op.kind in ("eig", "eigvals"):
        return _as_complex(found, x)
    return tuple(found) if isinstance(found, tuple) else found


def _as_complex(found: Any, x: Buffer) -> Any:
    """Return eigenvalues and eigenvectors as complex numbers, also if all of them are real."""
    dtype = np.result_type(x.dtype, np.complex64)
    if isinstance(found, tuple):
        return tuple([array.astype(dtype) for array in found])
    return found.astype(dtype)


@_compute.register
def _(op: Solve, a: Buffer, b: Buffer) -> Any:
    return np.linalg.solve(a, b)


@_compute.register
def _(op: PseudoInverse, x: Buffer, tolerance: Any = None) -> Any:
    return np.linalg.pinv(x, rtol=tolerance)


@_compute.register
def _(op: Rank, x: Buffer, tolerance: Any = None) -> Any:
    return np.linalg.matrix_rank(x, rtol=tolerance)
