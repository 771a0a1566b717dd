"""Element-wise operations with one, two or three operands."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import ClassVar

from tecomp.errors import ArrayTypeError
from tecomp.operations.elementwise import elementwise_in
from tecomp.operations.rows import TO_BOOL, TO_FLOAT, TO_PART
from tecomp.ptensor.operation import PTensorOp
from tecomp.ptensor.types import (
    BOOLEAN,
    COMPLEX,
    FLOATS,
    INTEGERS,
    PART,
    PTensorType,
    broadcast_shapes,
    check_same_device_and_team,
    promote_types,
)

_ROWS = elementwise_in("array")


def _functions(arity: int, *, is_test: bool) -> Mapping[str, Sequence[str]]:
    """Return the supported dtypes of each function with or without results of dtype bool."""
    return {
        name: row.takes.dtypes
        for name, row in _ROWS.items() if row.arity == arity and (row.gives == TO_BOOL) == is_test
    }


POWERS: Mapping[str, float] = {
    "half": 0.5, "three_halves": 1.5, "minus_half": -0.5, "minus_three_halves": -1.5
}
"""Exponents that can be computed with square roots."""

_TO_FLOAT = frozenset([name for name, row in _ROWS.items() if row.gives == TO_FLOAT])
_TO_PART = frozenset([name for name, row in _ROWS.items() if row.gives == TO_PART])


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
        supported = self.functions[self.kind]
        dtype = promote_types(dtypes)
        if dtype in supported and all(d in supported for d in dtypes):
            return "float64" if dtype in INTEGERS and self.kind in _TO_FLOAT else dtype
        dtype_text = " and ".join(dtypes)
        raise ArrayTypeError(
            "{where}: unsupported dtype {dtype}; supported dtypes: {supported}; convert with "
            "xp.astype(x, dtype)",
            where=self.kind, dtype=dtype_text, supported=", ".join(supported),
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
    functions = _functions(1, is_test=False)
    arity = 1

    def result_dtype(self, dtype: str) -> str:
        """Return `dtype`, or its real dtype for functions such as `abs` and `real`."""
        return PART.get(dtype, dtype) if self.kind in _TO_PART else dtype


class ElementwiseUnaryTest(_Test):
    """Unary element-wise predicate."""

    name = "elementwise_unary_test"
    functions = _functions(1, is_test=True)
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
    functions = _functions(2, is_test=False)
    arity = 2


class ElementwiseBinaryTest(_Test):
    """Binary element-wise predicate."""

    name = "elementwise_binary_test"
    takes = (2, 2)
    functions = _functions(2, is_test=True)
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
