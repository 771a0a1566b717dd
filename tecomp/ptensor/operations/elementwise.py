"""Element-wise operations with one, two or three operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.types import (
    ALL,
    BOOLEAN,
    COMPLEX,
    FLOATING,
    FLOATS,
    INTEGERS,
    NUMERIC,
    PART,
    REAL,
    PTensorType,
    broadcast_shapes,
    check_same_device_and_team,
    promote_types,
)

_BITS = (*BOOLEAN, *INTEGERS)

UNARY: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(
        ("acos", "acosh", "asin", "asinh", "atan", "atanh", "cos", "cosh", "exp", "expm1", "log",
         "log1p", "log2", "log10", "reciprocal", "sin", "sinh", "sqrt", "tan", "tanh"), FLOATING),
    **dict.fromkeys(
        ("abs", "conj", "negative", "positive", "real", "round", "sign", "square"), NUMERIC),
    **dict.fromkeys(("ceil", "floor", "trunc"), REAL),
    "imag": NUMERIC,
    "bitwise_invert": _BITS,
}
"""Supported dtypes of each unary function."""

UNARY_TESTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("isfinite", "isinf", "isnan"), NUMERIC),
    "signbit": FLOATS,
    "logical_not": BOOLEAN,
}

POWERS: Mapping[str, float] = {
    "half": 0.5, "three_halves": 1.5, "minus_half": -0.5, "minus_three_halves": -1.5
}
"""Exponents that can be computed with square roots."""

BINARY: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("add", "subtract", "multiply", "pow"), NUMERIC),
    "divide": NUMERIC,
    **dict.fromkeys(("floor_divide", "remainder", "maximum", "minimum"), REAL),
    **dict.fromkeys(("atan2", "copysign", "hypot", "logaddexp", "nextafter"), FLOATS),
    **dict.fromkeys(("bitwise_and", "bitwise_or", "bitwise_xor"), _BITS),
    **dict.fromkeys(("bitwise_left_shift", "bitwise_right_shift"), INTEGERS),
}

BINARY_TESTS: Mapping[str, Sequence[str]] = {
    **dict.fromkeys(("equal", "not_equal"), ALL),
    **dict.fromkeys(("greater", "greater_equal", "less", "less_equal"), REAL),
    **dict.fromkeys(("logical_and", "logical_or", "logical_xor"), BOOLEAN),
}

_OF_FLOATS = frozenset(("divide",))
"""Functions that convert integers to floating-point numbers."""

_TO_PART = frozenset(("abs", "real", "imag"))


@dataclass(frozen=True)
class Elementwise(PTensorOp):
    """Element-wise function; shapes are broadcast, dtypes are promoted.

    Attributes:
        kind: Name of the function.
    """

    kind: str

    functions: ClassVar[Mapping[str, Sequence[str]]]
    arity: ClassVar[int]

    def __post_init__(self) -> None:
        if self.kind not in self.functions:
            raise ArrayTypeError(
                "{name}: unknown function {form!r}; valid functions: {functions}",
                kind="unknown-choice", name=self.name, form=self.kind,
                functions=", ".join(sorted(self.functions)),
            )

    @cached_property
    def _hash(self) -> int:
        return hash((self.name, self.kind))

    def __hash__(self) -> int:
        return self._hash

    @property
    def where(self) -> str:
        """Name for error messages."""
        return self.kind

    def computed_in(self, dtypes: Sequence[str]) -> str:
        """Return the dtype to which the operands are cast before the computation.

        Raises:
            ArrayTypeError: If the function does not support the dtypes.
        """
        taken = self.functions[self.kind]
        dtype = promote_types(dtypes)
        if dtype in taken and all(d in taken for d in dtypes):
            return "float64" if dtype in INTEGERS and self.kind in _OF_FLOATS else dtype
        given = " and ".join(dtypes)
        raise ArrayTypeError(
            "{form}: unsupported dtype {given}; supported dtypes: {taken}; convert with "
            "xp.astype(x, dtype)",
            form=self.kind, given=given, taken=", ".join(taken),
        )

    def result_dtype(self, dtype: str) -> str:
        """Return the dtype of the result of a computation in `dtype`."""
        return dtype

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the broadcast shape and the result dtype."""
        if len(operands) > 1:
            check_same_device_and_team(operands, self.kind)
        dtype = self.computed_in([operand.dtype for operand in operands])
        shape = broadcast_shapes([operand.shape for operand in operands], self.kind)
        return operands[0].like(shape, self.result_dtype(dtype))


class _Test(Elementwise):
    def result_dtype(self, dtype: str) -> str:
        """Return bool."""
        return "bool"


class ElementwiseUnaryOp(Elementwise):
    """Unary element-wise function.

    >>> ElementwiseUnaryOp("exp").infer(PTensorType((4,), "float32")).dtype
    'float32'
    """

    name = "elementwise_unary_op"
    functions = UNARY
    arity = 1

    def result_dtype(self, dtype: str) -> str:
        """Return `dtype`, or its real dtype for functions such as `abs` and `real`."""
        return PART.get(dtype, dtype) if self.kind in _TO_PART else dtype


class ElementwiseUnaryTest(_Test):
    """Unary element-wise predicate."""

    name = "elementwise_unary_test"
    functions = UNARY_TESTS
    arity = 1


class ElementwisePower(Elementwise):
    """Element-wise power with a constant half-integer exponent.

    >>> ElementwisePower("three_halves").infer(PTensorType((4,), "float32")).dtype
    'float32'
    """

    name = "elementwise_power"
    functions = dict.fromkeys(POWERS, FLOATS)
    arity = 1


class ElementwiseBinaryOp(Elementwise):
    """Binary element-wise function.

    >>> a, b = PTensorType((4, 1), "float32"), PTensorType((3,), "float64")
    >>> print(ElementwiseBinaryOp("add").infer(a, b))
    ptensor<4x3xfloat64>
    """

    name = "elementwise_binary_op"
    takes = (2, 2)
    functions = BINARY
    arity = 2


class ElementwiseBinaryTest(_Test):
    """Binary element-wise predicate."""

    name = "elementwise_binary_test"
    takes = (2, 2)
    functions = BINARY_TESTS
    arity = 2


FUNCTIONS: Mapping[str, Elementwise] = {
    kind: group(kind)
    for group in (
        ElementwiseUnaryOp, ElementwiseUnaryTest, ElementwiseBinaryOp, ElementwiseBinaryTest
    )
    for kind in group.functions
}
"""Element-wise functions of the standard, by name."""


@dataclass(frozen=True)
class CastOp(PTensorOp):
    """Cast to another dtype.

    Attributes:
        dtype: Target dtype.
        copy: Whether the result is a new value even if the dtype is unchanged.
    """

    name = "cast"
    dtype: str
    copy: bool = True

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the target dtype."""
        (x,) = operands
        if x.dtype in COMPLEX and self.dtype not in (*COMPLEX, *BOOLEAN):
            raise ArrayTypeError(
                "cast: cannot cast dtype {dtype} to {subject_dtype}; convert to real values "
                "first: real(x), imag(x) or abs(x)",
                dtype=x.dtype, subject_dtype=self.dtype,
            )
        return x.like(x.shape, self.dtype)


@dataclass(frozen=True)
class WhereOp(PTensorOp):
    """Selection of the second operand where the first is True, and of the third elsewhere."""

    name = "where"
    takes = (3, 3)

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the broadcast shape."""
        check_same_device_and_team(operands, "where")
        condition, one, other = operands
        if condition.dtype != "bool":
            raise ArrayTypeError(
                "where: the condition must have dtype bool, got {dtype}; use a comparison, x != 0",
                dtype=condition.dtype,
            )
        shape = broadcast_shapes([operand.shape for operand in operands], "where")
        return condition.like(shape, promote_types([one.dtype, other.dtype]))
