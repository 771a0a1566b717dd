"""Storage formats: the dtype in memory, and blocks of elements that share bytes."""

from __future__ import annotations

import math
from dataclasses import dataclass
from math import prod
from typing import Any, Protocol, TypeAlias

import numpy as np

from tecomp.compute.define import compute
from tecomp.compute.expr_like import value_of
from tecomp.compute.intrinsics import cast
from tecomp.compute.shape_validation import dtype_of
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError, safe_str
from tecomp.ir.nodes.argument_checks import as_int, as_ints, check_kind
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.operators import holds
from tecomp.lazy_imports import load_upward

Array: TypeAlias = np.ndarray[Any, Any]


# Referenced by name to avoid an upward import.


class FormatCompiler(Protocol):
    """Interface of the compiler of format conversions, implemented by `tecomp.driver.relayout`.

    The implementation depends on the driver, while formats are below the compiler.
    """

    def encode_array(self, storage: Format, array: Array) -> Array:
        """Implement `Format.encode_array`."""

    def decode_array(self, storage: Format, array: Array, dtype: DType) -> Array:
        """Implement `Format.decode_array`."""


def _converter() -> FormatCompiler:
    """Load the implementation of `encode_array` and `decode_array`."""
    compiler: FormatCompiler = load_upward("layout.copies")
    return compiler


@dataclass(frozen=True)
class Format:
    """Storage format of the elements of a tensor.

    This base class stores each element individually, converted to the dtype in memory as by
    `te.cast`. Subclasses pack elements, round them or share exponents between them.

    Attributes:
        name: Name, such as `float32` or `bfp8`.
        stored: Dtype of a storage unit.
        elements: Number of elements per block.
        units: Number of storage units per block.

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
        for field in ("elements", "units"):
            self._check_number(field, 1)

    def _check_number(self, field: str, low: int, high: float = math.inf) -> None:
        """Check that a field is an integer within bounds."""
        value = getattr(self, field)
        number = as_int(value)
        if number is None or not low <= number <= high:
            bounds = f"from {low} on" if high == math.inf else f"from {low} to {high}"
            raise LayoutError(
                "format {name}: {subject} must be an integer {bounds}, got {value!r}",
                kind="storage-format", name=self.name, subject=field, value=value, bounds=bounds,
            )

    @classmethod
    def plain(cls, dtype: str) -> Format:
        """Return the format that stores each element individually as `dtype`.

        Raises:
            TypeMismatchError: If the dtype does not exist.

        >>> Format.plain("bfloat16").stored
        'bfloat16'
        """
        return Format(safe_str(dtype), DType(dtype))

    @property
    def values(self) -> DType:
        """Dtype that represents all values of the format; result dtype of `decode`."""
        return self.stored

    def holds(self, value: float) -> bool:
        """Return whether a number is representable; rounding by a float format is permitted.

        Raises:
            LayoutError: If `value` is not a number.

        >>> Format.plain("int8").holds(127), Format.plain("int8").holds(128)
        (True, False)
        """
        return self._holds(self._number(value))

    def _holds(self, value: float) -> bool:
        """Implement `holds`."""
        return holds(self.values, value)

    def nearest(self, value: float) -> float:
        """Return the number, clamped to the range of the format if it is not representable.

        Raises:
            LayoutError: If `value` is not a number.

        >>> from tecomp import storage_format
        >>> storage_format("float8_e4m3fn").nearest(float("inf"))
        448.0
        """
        return self._nearest(self._number(value))

    def _nearest(self, value: float) -> float:
        """Implement `nearest`."""
        return value

    def _number(self, value: float) -> float:
        number = value.item() if isinstance(value, np.generic) else value
        check_kind(
            number, int | float, f"format {self.name}: the value", "give a number", LayoutError
        )
        return number

    def storage_shape(self, physical_shape: tuple[int, ...]) -> tuple[int, ...]:
        """Return the shape in storage units; the last axes, which form whole blocks, are merged.

        Raises:
            LayoutError: If the last axes do not form whole blocks.

        >>> Format("int4", DType("uint8"), elements=2).storage_shape((8, 64))
        (8, 32)
        """
        shape = as_ints(physical_shape)
        if shape is None or min(shape, default=0) < 0:
            raise LayoutError(
                "format {name}: the shape must be a sequence of non-negative integers, got "
                "{physical_shape!r}; pass one per axis, such as (8, 64)",
                kind="storage-format", name=self.name, physical_shape=physical_shape,
            )
        if (self.elements, self.units) == (1, 1):
            return shape
        for axis in reversed(range(len(shape))):
            count = prod(shape[axis:])
            if count % self.elements == 0:
                return (*shape[:axis], count // self.elements * self.units)
        raise LayoutError(
            "format {name}: the last axes of {shape} are not a whole number of blocks of "
            "{elements} elements; pad them to a multiple",
            kind="storage-format", name=self.name, elements=self.elements, shape=list(shape),
        )

    def bytes(self, physical_shape: tuple[int, ...]) -> int:
        """Return the size in bytes of a tensor with a given physical shape.

        Raises:
            LayoutError: If the last axes do not form whole blocks.

        >>> Format.plain("float16").bytes((8, 64))
        1024
        """
        return prod(self.storage_shape(physical_shape)) * self.stored.bytes

    def encoded(self, value: Expr) -> Expr:
        """Return the storage unit of one element, for formats with one element per block.

        Raises:
            LayoutError: If the format stores several elements per block.
            TypeMismatchError: If `value` is not an expression.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> te.compute((8,), lambda i: Format.plain("float16").encoded(A[i]), name="B").dtype
        'float16'
        """
        self._refuse_blocks("encode")
        return self._encoded(value_of(value))

    def _encoded(self, value: Expr) -> Expr:
        """Implement `encoded`."""
        return cast(value, self.stored)

    def decoded(self, unit: Expr) -> Expr:
        """Return the element in a storage unit, for formats with one element per block.

        Raises:
            LayoutError: If the format stores several elements per block.
            TypeMismatchError: If `unit` is not an expression.

        >>> from tecomp import storage_format, te
        >>> A = te.placeholder((8,), "uint16", name="A")
        >>> te.compute((8,), lambda i: storage_format("dlfloat16").decoded(A[i]), name="B").dtype
        'float32'
        """
        self._refuse_blocks("decode")
        return self._decoded(value_of(unit))

    def _decoded(self, unit: Expr) -> Expr:
        """Implement `decoded`."""
        return unit

    def encode(self, values: Tensor) -> Tensor:
        """Return the storage units of `values`; the last axis becomes the units of whole blocks.

        Raises:
            LayoutError: If `values` is not a tensor, or its last axis is not a multiple of blocks.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 64), name="A")
        >>> Format.plain("float16").encode(A).dtype
        'float16'
        """
        self._check_tensor(values, "encode")
        return self._encode(values)

    def _encode(self, values: Tensor) -> Tensor:
        """Implement `encode`."""
        return compute(
            values.shape, lambda *i: self.encoded(values[i]), name=f"{values.name}_{self.name}"
        )

    def decode(self, stored: Tensor, dtype: str | None = None) -> Tensor:
        """Return the values in storage units, as `dtype` or, by default, `self.values`.

        Raises:
            LayoutError: If `stored` is not a tensor of the dtype in memory, or its last axis is not
                a multiple of blocks.
            TypeMismatchError: If the dtype does not exist.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 64), "float16", name="A")
        >>> Format.plain("float16").decode(A, "float32").dtype
        'float32'
        """
        self._check_tensor(stored, "decode")
        if stored.dtype != self.stored:
            raise LayoutError(
                "format {name}: the stored tensor must have dtype {stored}, but {stored_name} has "
                "{dtype}; pass the result of encode, or convert it with te.reinterpret",
                kind="storage-format", name=self.name, stored=self.stored,
                stored_name=stored.name, dtype=stored.dtype,
            )
        return self._decode(stored, self._target(dtype))

    def _decode(self, stored: Tensor, dtype: DType) -> Tensor:
        """Implement `decode`."""
        return compute(
            stored.shape, lambda *i: cast(self.decoded(stored[i]), dtype),
            name=f"{stored.name}_values",
        )

    def quantise(self, values: Tensor) -> Tensor:
        """Return the values after a round trip through the format, in their own dtype.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> Format.plain("bfloat16").quantise(A).dtype
        'float32'
        """
        return self.decode(self.encode(values), values.dtype)

    def encode_array(self, array: Any) -> np.ndarray[Any, Any]:
        """Encode an array with a compiled kernel.

        Args:
            array: Values, as a NumPy array.

        Returns:
            The storage units, of the dtype in memory.

        Raises:
            LayoutError: If the last axis is not a multiple of blocks.
            TypeMismatchError: If the array has an unsupported dtype.

        >>> Format.plain("int8").encode_array(np.float32([1.5, -300, np.nan]))
        array([   1, -128,    0], dtype=int8)
        """
        return _converter().encode_array(self, array)

    def decode_array(self, array: Any, dtype: str | None = None) -> np.ndarray[Any, Any]:
        """Decode an array of storage units with a compiled kernel.

        Args:
            array: Storage units, of the dtype in memory.
            dtype: Result dtype. Default: `values`.

        Raises:
            LayoutError: If the last axis is not a multiple of blocks, or the array has another
                dtype.
            TypeMismatchError: If the dtype does not exist.

        >>> Format.plain("int8").decode_array(np.int8([1, -128]), "float32")
        array([   1., -128.], dtype=float32)
        """
        return _converter().decode_array(self, array, self._target(dtype))

    def _target(self, dtype: str | None) -> DType:
        """Return the result dtype of a decoding."""
        return self.values if dtype is None else dtype_of(dtype, f"format {self.name}.decode")

    def _check_tensor(self, value: object, method: str) -> None:
        check_kind(
            value, Tensor, f"format {self.name}.{method}: the tensor",
            f"give what te.placeholder or te.compute makes, or use {method}_array", LayoutError,
        )

    def _refuse_blocks(self, action: str) -> None:
        if (self.elements, self.units) != (1, 1):
            raise LayoutError(
                "format {name}: {elements} elements are stored together, so a single element has "
                "no address; {subject} a tensor",
                kind="storage-format", name=self.name, elements=self.elements, subject=action,
            )

    def _blocks(self, tensor: Tensor, size: int, unit: str) -> Any:
        """Return the number of blocks of `size` along the last axis of a tensor.

        Raises:
            LayoutError: If the last axis is not a multiple of `size`, or the tensor has no axes.
        """
        if not tensor.shape:
            raise LayoutError(
                "format {name}: {tensor} has no axes, but elements are stored in groups of "
                "{elements}; add an axis",
                kind="storage-format", name=self.name, tensor=tensor.name, elements=self.elements,
            )
        last = tensor.shape[-1]
        if isinstance(last, int) and last % size:
            raise LayoutError(
                "format {name}: the last axis of {tensor}{shape} is not a whole number of blocks "
                "of {size} {subject}; pad it, or merge the last axes",
                kind="storage-format", name=self.name, tensor=tensor.name,
                shape=list(tensor.shape), size=size, subject=unit,
            )
        return last // size
