"""Run tensors on arrays, interpreted or compiled, and compare the results with NumPy."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, TypeAlias

import numpy as np
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.ir import DType, integer_range
from tecomp.operations import ELEMENT_TYPES
from tests import numerics
from tests.strategies.dtypes import FLOATS

Array: TypeAlias = NDArray[Any]
SHAPES: tuple[tuple[int, ...], ...] = (
    (), (0,), (1,), (5,), (2, 3), (3, 0), (1, 4), (2, 1, 3), (2, 3, 2, 2))
_AT_ONCE = 12
"""Number of results per function; more stages would nest too deep for the interpreter."""
_PRECISION = {
    "float16": 2e-3, "bfloat16": 2e-2, "float32": 2e-5, "float64": 1e-11,
    **{row.name: 2.0**-row.fraction_bits for row in ELEMENT_TYPES if not row.in_arrays},
}


def numpy_type(dtype: str) -> np.dtype[Any]:
    """Return the NumPy dtype of an array for a tensor dtype."""
    return DType(dtype).numpy


def values(shape: Sequence[int], dtype: str, *, seed: int = 0, low: int = -9, high: int = 9) -> Array:
    """Return small integers, or multiples of 1/4 for floating-point dtypes, exact in all dtypes."""
    draw = np.random.default_rng(seed)
    if dtype not in FLOATS:
        least, most = (0, 1) if dtype == "bool" else integer_range(DType(dtype))
        low, high = max(low, least), min(high, most + 1)
        return np.asarray(draw.integers(low, high, shape)).astype(numpy_type(dtype))
    return np.asarray(draw.integers(4 * low, 4 * high, shape) / 4).astype(numpy_type(dtype))


def given(array: Array, name: str = "A") -> te.Tensor:
    """Return a placeholder for an array."""
    return te.placeholder(array.shape, str(array.dtype), name=name)


def arrays_of(*shapes: tuple[int, ...], dtype: str = "float32") -> dict[te.Tensor, Array]:
    """Return placeholders A, B, ... of the given shapes, with an array for each."""
    arrays = [values(shape, dtype, seed=k) for k, shape in enumerate(shapes)]
    return {given(a, name): a for a, name in zip(arrays, "ABCDE", strict=False)}


def interpreted(outputs: Sequence[te.Tensor], arrays: Mapping[te.Tensor, Array]) -> list[Array]:
    """Return the results of unscheduled loops, computed by the interpreter."""
    schedule = te.create_schedule([output.op for output in outputs])
    read = _read(outputs, arrays)
    func = tecomp.lower(schedule, [*read, *outputs], stop_after="nest")
    results = [_result(output) for output in outputs]
    tecomp.evaluate(func, [*(arrays[x].copy() for x in read), *results])
    return results


def compiled(outputs: Sequence[te.Tensor], arrays: Mapping[te.Tensor, Array]) -> list[Array]:
    """Return the results of a program that is compiled for the host."""
    read = _read(outputs, arrays)
    program = tecomp.compile(list(outputs), read)
    results = program(*(arrays[x] for x in read))
    return list(results) if isinstance(results, list | tuple) else [results]


def _read(outputs: Sequence[te.Tensor], arrays: Mapping[te.Tensor, Array]) -> list[te.Tensor]:
    """Return the inputs that the outputs depend on; some results depend on a shape only."""
    seen, worklist = set(outputs), list(outputs)
    while worklist:
        new = [x for x in worklist.pop().op.input_tensors if x not in seen]
        seen.update(new)
        worklist += new
    return [x for x in arrays if x in seen]


def _result(output: te.Tensor) -> Array:
    # A value that no result has by chance.
    return np.full([int(n) for n in output.shape], 77, numpy_type(str(output.dtype)))


def assert_results(
    expected: Mapping[te.Tensor, Any], arrays: Mapping[te.Tensor, Array], *, run: Any = interpreted,
    rtol: float | None = None,
) -> None:
    """Check that each tensor has the expected shape, dtype and elements."""
    outputs = list(expected)
    for first in range(0, len(outputs), _AT_ONCE):
        part = outputs[first : first + _AT_ONCE]
        for output, actual in zip(part, run(part, arrays), strict=True):
            assert_close(actual, expected[output], str(output), rtol=rtol)


def assert_close(actual: Array, expected: Any, subject: str = "", *, rtol: float | None = None) -> None:
    """Check equal shape and dtype, and equal elements: exactly for integers."""
    expected = np.asarray(expected)
    assert actual.dtype == expected.dtype, f"{subject}: {actual.dtype}, not {expected.dtype}"
    if not DType(actual.dtype.name).is_float:
        if actual.dtype.kind == "V":  # integers of less than 8 bits
            actual, expected = actual.astype("int64"), expected.astype("int64")
        np.testing.assert_array_equal(actual, expected, err_msg=subject, strict=True)
        return
    tolerance = _PRECISION[str(actual.dtype)] if rtol is None else rtol
    numerics.assert_close(
        actual.astype("float64"), expected.astype("float64"), tolerance, tolerance, err_msg=subject,
        strict=True,
    )
