"""How numbers are stored: the type in memory, and blocks of them that share bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from importlib.metadata import EntryPoint
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np

from tecomp.compute.define import compute
from tecomp.compute.expr_like import value_of
from tecomp.compute.intrinsics import cast
from tecomp.compute.shape_validation import dtype_of
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.nodes.argument_checks import check_kind, whole_number, whole_numbers_of
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.operators import holds

Array: TypeAlias = np.ndarray[Any, Any]


# Known by its name, as an entry point has it: it stands above.
_CONVERTER = EntryPoint("converter", "tecomp.compiled_copies", "tecomp.compilers")


class Converter(Protocol):
    """What compiles conversions of arrays; `tecomp.compiled_copies` is what there is.

    It stands above the driver, and formats, which only describe, below the compiler.
    """

    def encoded(self, storage: Format, array: Array) -> Array:
        """See `Format.encode_array`."""

    def decoded(self, storage: Format, array: Array, dtype: DType) -> Array:
        """See `Format.decode_array`."""


def _converter() -> Converter:
    """What compiles `encode_array` and `decode_array`."""
    made: Converter = _CONVERTER.load()
    return made


@dataclass(frozen=True)
class Format:
    """How the elements of a tensor are stored.

    This class stores each element by itself, converted to the type in memory as `te.cast` does.
    The classes below it pack, round or share exponents.

    Attributes:
        name: such as `float32` or `bfp8`.
        stored: type of one unit of memory.
        elements: how many elements make a block.
        units: how many units of memory a block takes.

    >>> half = Format.plain("float16")
    >>> half.name, half.stored, half.elements, half.units, half.values
    ('float16', 'float16', 1, 1, 'float16')
    >>> nibbles = Format("int4", DType("uint8"), elements=2)
    >>> nibbles.elements, nibbles.bytes((8, 64))
    (2, 256)
    """

    name: str
    stored: DType
    elements: int = 1
    units: int = 1

    def __post_init__(self) -> None:
        check_kind(self.name, str, "format: the name", "give a text", LayoutError)
        object.__setattr__(self, "stored", dtype_of(self.stored, f"format {self.name}"))
        for what in ("elements", "units"):
            self._check_number(what, 1)

    def _check_number(self, what: str, low: int, high: float = math.inf) -> None:
        """Refuse a field that is no whole number within bounds."""
        given = getattr(self, what)
        number = whole_number(given)
        if number is None or not low <= number <= high:
            bounds = f"from {low} on" if high == math.inf else f"from {low} to {high}"
            raise LayoutError(
                f"format {self.name}: {what} is {given!r}; give a whole number {bounds}",
                kind="storage-format",
            )

    @classmethod
    def plain(cls, dtype: str) -> Format:
        """Each element by itself, as `dtype`.

        Raises:
            TypeMismatchError: there is no such type.

        >>> Format.plain("bfloat16").stored
        'bfloat16'
        """
        return Format(str(dtype), DType(dtype))

    @property
    def values(self) -> DType:
        """A type that holds every value of the format, which is what `decode` gives."""
        return self.stored

    def holds(self, value: float) -> bool:
        """Whether a number stays what it is when it is stored, but for a float's rounding.

        Raises:
            LayoutError: it is no number.

        >>> Format.plain("int8").holds(127), Format.plain("int8").holds(128)
        (True, False)
        """
        return self._holds(self._number(value))

    def _holds(self, value: float) -> bool:
        """See `holds`."""
        return holds(self.values, value)

    def nearest(self, value: float) -> float:
        """The number that there is in place of one that the format does not have: the greatest.

        Raises:
            LayoutError: it is no number.

        >>> from tecomp import storage_format
        >>> storage_format("float8_e4m3fn").nearest(float("inf"))
        448.0
        """
        return self._nearest(self._number(value))

    def _nearest(self, value: float) -> float:
        """See `nearest`."""
        return value

    def _number(self, value: float) -> float:
        number = value.item() if isinstance(value, np.generic) else value
        check_kind(
            number, int | float, f"format {self.name}: the value", "give a number", LayoutError
        )
        return number

    def storage_shape(self, physical_shape: tuple[int, ...]) -> tuple[int, ...]:
        """The shape of memory in units: the last axes, which make whole blocks, become one.

        Raises:
            LayoutError: the places are no whole blocks.

        >>> Format("int4", DType("uint8"), elements=2).storage_shape((8, 64))
        (8, 32)
        """
        shape = whole_numbers_of(physical_shape)
        if shape is None or min(shape, default=0) < 0:
            raise LayoutError(
                f"format {self.name}: the shape is {physical_shape!r}; give integers from 0 on, "
                "one for each axis, such as (8, 64)",
                kind="storage-format",
            )
        if (self.elements, self.units) == (1, 1):
            return shape
        for axis in reversed(range(len(shape))):
            places = prod(shape[axis:])
            if places % self.elements == 0:
                return (*shape[:axis], places // self.elements * self.units)
        raise LayoutError(
            f"format {self.name}: a block holds {self.elements} elements, and the last axes of "
            f"{list(shape)} make no whole blocks; pad them to a multiple",
            kind="storage-format",
        )

    def bytes(self, physical_shape: tuple[int, ...]) -> int:
        """Bytes in memory of a tensor with this physical shape.

        Raises:
            LayoutError: the places are no whole blocks.

        >>> Format.plain("float16").bytes((8, 64))
        1024
        """
        return prod(self.storage_shape(physical_shape)) * self.stored.bytes

    def encoded(self, value: Expr) -> Expr:
        """One element as it is stored, where a block is one element.

        Raises:
            LayoutError: elements are stored in blocks.
            TypeMismatchError: it is no expression.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> te.compute((8,), lambda i: Format.plain("float16").encoded(A[i]), name="B").dtype
        'float16'
        """
        self._refuse_blocks("encode")
        return self._encoded(value_of(value))

    def _encoded(self, value: Expr) -> Expr:
        """See `encoded`."""
        return cast(value, self.stored)

    def decoded(self, unit: Expr) -> Expr:
        """The element that a unit of memory holds, where a block is one element.

        Raises:
            LayoutError: elements are stored in blocks.
            TypeMismatchError: it is no expression.

        >>> from tecomp import storage_format, te
        >>> A = te.placeholder((8,), "uint16", name="A")
        >>> te.compute((8,), lambda i: storage_format("dlfloat16").decoded(A[i]), name="B").dtype
        'float32'
        """
        self._refuse_blocks("decode")
        return self._decoded(value_of(unit))

    def _decoded(self, unit: Expr) -> Expr:
        """See `decoded`."""
        return unit

    def encode(self, values: Tensor) -> Tensor:
        """Memory that holds `values`; the last axis becomes units of whole blocks.

        Raises:
            LayoutError: the last axis has no whole number of blocks, or it is no tensor.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 64), name="A")
        >>> Format.plain("float16").encode(A).dtype
        'float16'
        """
        self._check_tensor(values, "encode")
        return self._encode(values)

    def _encode(self, values: Tensor) -> Tensor:
        """See `encode`."""
        return compute(
            values.shape, lambda *i: self.encoded(values[i]), name=f"{values.name}_{self.name}"
        )

    def decode(self, stored: Tensor, dtype: str | None = None) -> Tensor:
        """The values that memory holds, as `dtype`, else as `self.values`.

        Raises:
            LayoutError: the last axis has no whole number of blocks, or it is no tensor of the
                type in memory.
            TypeMismatchError: there is no such type.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 64), "float16", name="A")
        >>> Format.plain("float16").decode(A, "float32").dtype
        'float32'
        """
        self._check_tensor(stored, "decode")
        if stored.dtype != self.stored:
            raise LayoutError(
                f"format {self.name}: memory is {self.stored}, {stored.name} is {stored.dtype}; "
                f"give what encode returned, or convert it with te.reinterpret",
                kind="storage-format",
            )
        return self._decode(stored, self._target(dtype))

    def _decode(self, stored: Tensor, dtype: DType) -> Tensor:
        """See `decode`."""
        return compute(
            stored.shape, lambda *i: cast(self.decoded(stored[i]), dtype),
            name=f"{stored.name}_values",
        )

    def quantise(self, values: Tensor) -> Tensor:
        """What becomes of `values` when they are stored and read again, in their own type.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> Format.plain("bfloat16").quantise(A).dtype
        'float32'
        """
        return self.decode(self.encode(values), values.dtype)

    def encode_array(self, array: Any) -> np.ndarray[Any, Any]:
        """An array as it is stored, by a compiled kernel.

        Args:
            array: the values, as arrays of NumPy.

        Returns:
            What memory holds, of the type in memory.

        Raises:
            LayoutError: the last axis has no whole number of blocks.
            TypeMismatchError: the values are of no element type.

        >>> Format.plain("int8").encode_array(np.float32([1.5, -300, np.nan]))
        array([   1, -128,    0], dtype=int8)
        """
        return _converter().encoded(self, array)

    def decode_array(self, array: Any, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """The values of an array in memory, by a compiled kernel.

        Args:
            array: what memory holds, of the type in memory.
            dtype: of the result; that of `values` if None.

        Raises:
            LayoutError: the last axis has no whole number of blocks, or the array is of another
                type.
            TypeMismatchError: there is no such type.

        >>> Format.plain("int8").decode_array(np.int8([1, -128]), "float32")
        array([   1., -128.], dtype=float32)
        """
        return _converter().decoded(self, array, self._target(dtype))

    def _target(self, dtype: str | None) -> DType:
        """The type of what is decoded."""
        return self.values if dtype is None else dtype_of(dtype, f"format {self.name}.decode")

    def _check_tensor(self, given: object, what: str) -> None:
        check_kind(
            given, Tensor, f"format {self.name}.{what}: the tensor",
            f"give what te.placeholder or te.compute makes, or use {what}_array", LayoutError,
        )

    def _refuse_blocks(self, what: str) -> None:
        if (self.elements, self.units) != (1, 1):
            raise LayoutError(
                f"format {self.name}: {self.elements} elements are stored together, so none has "
                f"a place of its own; {what} a tensor",
                kind="storage-format",
            )

    def _blocks(self, tensor: Tensor, size: int, what: str) -> Any:
        """How many runs of `size` the last axis of a tensor has.

        Raises:
            LayoutError: it is no whole number, or there is no axis.
        """
        if not tensor.shape:
            raise LayoutError(
                f"format {self.name}: {tensor.name} has no axis, and elements are stored "
                f"{self.elements} together; give it one",
                kind="storage-format",
            )
        last = tensor.shape[-1]
        if isinstance(last, int) and last % size:
            raise LayoutError(
                f"format {self.name}: the last axis of {tensor.name}{list(tensor.shape)} is no "
                f"whole number of blocks of {size} {what}; pad it, or merge the last axes",
                kind="storage-format",
            )
        return last // size
