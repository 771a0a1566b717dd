"""Every operator on every pair of dtypes and on literals: kernel and interpreter against NumPy."""

from __future__ import annotations

import operator
from collections.abc import Callable, Sequence
from typing import Any

import ml_dtypes
import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir import SCALARS, DType, Expr, evaluate, integer_range, promote
from tests.strategies.dtypes import in_dtype

Array = NDArray[Any]
Operator = Callable[[Any, Any], Any]

COMPARISONS: tuple[Operator, ...] = (
    operator.eq, operator.ne, operator.lt, operator.le, operator.gt, operator.ge,
)
ARITHMETIC: tuple[Operator, ...] = (
    operator.add, operator.sub, operator.mul, operator.floordiv, operator.mod,
)
BITS: tuple[Operator, ...] = (
    operator.and_, operator.or_, operator.xor, operator.lshift, operator.rshift,
)
EXTREMES = {te.max: np.maximum, te.min: np.minimum}
WHOLE = (True, 0, 1, 2, 3, -1, -7, 127, 128, 255, 2**31 - 1, 2**31, 2**40, 2**63 - 1, 2**63)
FRACTIONS = (0.0, 0.1, -2.5, 1e-3, 65504.0, 65520.0, 1e38, 1e39)


def edges(name: str) -> Array:
    """Return 0, 1 and the limits of the range of a dtype and of narrower dtypes."""
    dtype = DType(name)
    if dtype.is_bool:
        return np.array([False, True, True, False])
    if dtype.is_float:
        numbers = [0.0, -0.0, 1.0, -1.5, 2.5, 3.0, 255.0, -129.0, 1e4, np.inf, -np.inf, np.nan]
        return np.array(numbers, dtype.numpy)
    low, high = integer_range(dtype)
    numbers = [low, low + 1, -1, 0, 1, 2, 7, 8, 31, 127, 128, 255, 2**31, high - 1, high]
    return np.array([n for n in numbers if low <= n <= high], dtype.numpy)


def pairs(a: str, b: str) -> tuple[Array, Array]:
    x, y = edges(a), edges(b)
    return np.repeat(x, len(y)), np.tile(y, len(x))


def is_saturated(dtype: DType, value: float) -> bool:
    """Return whether a value rounds beyond the largest number of a dtype without infinity and NaN.

    ml_dtypes converts such values to the largest number. Codes of ties are even.
    """
    finfo: Any = ml_dtypes.finfo
    limits = finfo(dtype.numpy)
    if not np.isfinite(np.array(np.inf).astype(dtype.numpy)):
        return False
    half_unit = 2.0 ** (np.frexp(float(limits.max))[1] - 2 - limits.nmant)
    return bool(abs(value) >= float(limits.max) + half_unit)


def operators_of(dtype: DType) -> list[tuple[Operator, Operator]]:
    """Return operators of tensors with their NumPy equivalents for one dtype."""
    found = [(op, op) for op in COMPARISONS]
    if dtype.is_bool:
        # Sums of booleans are int32.
        return [*found, *((op, op) for op in BITS[:3]),
                *((op, lambda x, y, op=op: op(x.astype("int32"), y.astype("int32")))
                  for op in ARITHMETIC)]
    found += [(op, op) for op in ARITHMETIC]
    found += EXTREMES.items()
    return found + ([(operator.truediv, operator.truediv)] if dtype.is_float else
                    [(op, op) for op in BITS])


def check(inputs: Sequence[Array], bodies: Sequence[Callable[..., Expr]],
          wanted: Sequence[Array]) -> None:
    """Compute all bodies in one vectorized kernel, and check kernel and interpreter."""
    (count,) = inputs[0].shape
    tensors = [te.placeholder(x.shape, x.dtype.name, name=f"A{k}") for k, x in enumerate(inputs)]
    made = te.compute((count,), lambda i: [body(*(t[i] for t in tensors)) for body in bodies])
    outputs = list(made) if isinstance(made, tuple) else [made]
    assert [t.dtype for t in outputs] == [w.dtype.name for w in wanted]
    s = te.create_schedule(outputs[0].op)
    s[outputs[0]].vectorize(s[outputs[0]].split(outputs[0].op.axis[0], 4)[1])
    kernel = tecomp.build(s, [*tensors, *outputs])
    runs: list[Callable[[list[Array]], object]] = [
        lambda arrays: kernel(*arrays), lambda arrays: evaluate(kernel.lowered.final, arrays),
    ]
    for run in runs:
        results = [np.zeros(count, w.dtype) for w in wanted]
        run([*(x.copy() for x in inputs), *results])
        for k, (result, right) in enumerate(zip(results, wanted, strict=True)):
            same = (result == right) | ((result != result) & (right != right))
            assert same.all(), (k, *(x[~same] for x in inputs), result[~same], right[~same])


@pytest.mark.exhaustive(keep=1, most=3)
@pytest.mark.parametrize("a", SCALARS)
def test_every_operator_of_every_pair_of_types(a: str) -> None:
    """Each unordered pair of dtypes is tested once."""
    first = SCALARS.index(a)
    for k in range(len(SCALARS) // 2 + 1):
        b = SCALARS[(first + k) % len(SCALARS)]
        common = promote(DType(a), DType(b))
        x, y = pairs(a, b)
        if common is None:
            with pytest.raises(TypeMismatchError):
                te.placeholder((1,), a)[0] + te.placeholder((1,), b)[0]
            continue
        known = operators_of(common)
        with np.errstate(all="ignore"):
            u, v = (z.astype("float64") if z.dtype.kind == "V" else z for z in (x, y))
            u, v = u.astype(common.numpy), v.astype(common.numpy)
            wanted = [in_dtype(reference)(u, v) for _, reference in known]
        check([x, y], [op for op, _ in known], wanted)


@pytest.mark.parametrize(
    ("op", "literal"),
    [(operator.floordiv, 2), (operator.gt, 0), (operator.mod, 1000), (operator.rshift, 3)],
)
@pytest.mark.parametrize("name", ["uint32", "uint64"])
def test_unsigned_numbers_beyond_the_signed(name: str, op: Operator, literal: int) -> None:
    x = np.iinfo(name).max - np.arange(8, dtype=name)
    check([x], [lambda a: op(a, literal)], [op(x, np.dtype(name).type(literal))])


def test_signed_becomes_unsigned_of_as_many_bits() -> None:
    x, y = np.array([200, 1], "uint8"), np.array([-1, -2], "int8")
    check([x, y], [operator.add, operator.lt], [x + y.astype("uint8"), x < y.astype("uint8")])


@pytest.mark.exhaustive(keep=1, most=2)
@pytest.mark.parametrize("name", SCALARS)
def test_every_operator_of_literals(name: str) -> None:
    """A literal keeps its value or is rejected."""
    bodies: list[Callable[..., Expr]] = []
    wanted: list[Array] = []
    x = edges(name)
    for value in (*WHOLE, *FRACTIONS):
        common = promote(DType(name), te.const(value).dtype)
        assert common is not None
        with np.errstate(all="ignore"):
            held = np.array(value).astype(common.numpy)
        kept = held.astype(object) == value if common.is_integer or common.is_bool else (
            np.isfinite(held) and not is_saturated(common, value))
        if not kept:
            with pytest.raises(TypeMismatchError):
                te.placeholder((1,), name)[0] + value
            continue
        for op, reference in operators_of(common):
            if op in BITS[3:] and value < 0:
                continue
            with np.errstate(all="ignore"):
                wide = x.astype("float64") if x.dtype.kind == "V" else x
                u, v = wide.astype(common.numpy), np.full(x.shape, held)
                left, right = in_dtype(reference)(u, v), in_dtype(reference)(v, u)
            wanted.append(right)
            bodies.append(lambda a, op=op, value=value: op(value, a))
            if op in (operator.floordiv, operator.mod) and value == 0 and not common.is_float:
                with pytest.raises(DefinitionError) as error:
                    op(te.placeholder((1,), name)[0], value)
                assert error.value.kind == "division-by-zero"
                assert set(error.value.parameters) == {"op", "a"}
                continue
            wanted.append(left)
            bodies.append(lambda a, op=op, value=value: op(a, value))
    check([x], bodies, wanted)
