"""Compiled pack, unpack, relayout and format conversion of arrays."""

from __future__ import annotations

from typing import Any, ClassVar, Literal

import numpy as np

from tecomp.caches import memoize
from tecomp.codegen.dispatch.array_interop import as_array, empty, is_in_layout, layout_tag_of
from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.compute.define import placeholder, size_var
from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured
from tecomp.driver.build import ScheduledKernel, build
from tecomp.errors import CallError, LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.core.layout import Layout, formula
from tecomp.layout.formats.format import Format
from tecomp.layout.formats.layout_tags import row_major_tag
from tecomp.layout.formats.stored_tensor import check_layout
from tecomp.relayout_kernels.box_copy import CopyEndpoint, CopySpec, bit_pattern
from tecomp.relayout_kernels.kernel import kernel_of
from tecomp.scheduling.schedule import create_schedule

_LANES = 16
"""Vector lanes of the conversion kernels."""
_ROW = 1024
"""Minimum number of elements in a row of the conversion kernels."""


def encode_array(storage: Format, array: Array) -> Array:
    """Return `array` encoded in a storage format.

    Args:
        storage: Storage format.
        array: Values; the last axis must hold whole blocks of the format.

    Returns:
        New array of storage units with dtype `storage.stored`.

    Raises:
        LayoutError: If the last axis of `array` is not a whole number of blocks.
    """
    array = as_array(array, f"format {storage.name}: encode_array")
    shape = _resize(storage, array, storage.elements, storage.units, "elements")
    out = np.empty(shape, storage.stored.numpy)
    if array.size:
        count = _blocks_in_a_row(storage)
        kernel = _encoder(storage, DType(array.dtype.name))
        _run(kernel, array, count * storage.elements, out, count * storage.units)
    return out


def decode_array(storage: Format, array: Array, dtype: DType) -> Array:
    """Return the values that `array` encodes in a storage format.

    Args:
        storage: Storage format.
        array: Storage units of dtype `storage.stored`; the last axis must hold whole blocks.
        dtype: dtype of the values.

    Returns:
        New array of values of the given dtype.

    Raises:
        LayoutError: If the last axis of `array` is not a whole number of blocks, or `array` has
            another dtype than the storage units.
    """
    array = as_array(array, f"format {storage.name}: decode_array")
    if array.dtype.name != storage.stored:
        raise LayoutError(
            "format {storage}: expected an array of {stored}, got {dtype}; pass the result of "
            "encode_array, or view it as {stored}",
            kind="storage-format", storage=storage.name, stored=storage.stored, dtype=array.dtype,
        )
    shape = _resize(storage, array, storage.units, storage.elements, "units")
    out = np.empty(shape, dtype.numpy)
    if array.size:
        count = _blocks_in_a_row(storage)
        kernel = _decoder(storage, dtype)
        _run(kernel, array, count * storage.units, out, count * storage.elements)
    return out


def _run(kernel: ScheduledKernel, array: Array, row: int, out: Array, new_row: int) -> None:
    """Run a conversion kernel on all whole rows in place, and on a zero-padded copy of the rest.

    Args:
        kernel: Kernel that converts rows of `row` elements to rows of `new_row` elements.
        array: Input array.
        row: Length of an input row.
        out: Output array.
        new_row: Length of an output row.
    """
    flat, result = np.ascontiguousarray(array).reshape(-1), out.reshape(-1)
    rows = len(flat) // row
    if rows:
        kernel(
            flat[: rows * row].reshape(rows, row), result[: rows * new_row].reshape(rows, new_row)
        )
    if tail := len(flat) - rows * row:
        last, last_result = np.zeros((1, row), flat.dtype), np.empty((1, new_row), out.dtype)
        last[0, :tail] = flat[rows * row :]
        kernel(last, last_result)
        result[rows * new_row :] = last_result[0, : len(result) - rows * new_row]


def _resize(storage: Format, array: Array, old: int, new: int, unit: str) -> tuple[int, ...]:
    shape: tuple[int, ...] = array.shape
    if old == new == 1:
        return shape
    if not shape or shape[-1] % old:
        raise LayoutError(
            "format {storage}: the last axis of the array, shape {shape}, is not a multiple of "
            "the block of {old} {subject}; pad it, or merge the last axes",
            kind="storage-format", storage=storage.name, shape=list(shape), old=old, subject=unit,
        )
    return (*shape[:-1], shape[-1] // old * new)


def _blocks_in_a_row(storage: Format) -> int:
    return ceil_div(_ROW, storage.elements)


@memoize("copies.encoders")
def _encoder(storage: Format, dtype: DType) -> ScheduledKernel:
    row = _blocks_in_a_row(storage) * storage.elements
    values = placeholder((size_var("rows", "int64"), row), dtype, name="values")
    return _build(values, storage.encode(values), "encode")


@memoize("copies.decoders")
def _decoder(storage: Format, dtype: DType) -> ScheduledKernel:
    row = _blocks_in_a_row(storage) * storage.units
    units = placeholder((size_var("rows", "int64"), row), storage.stored, name="units")
    return _build(units, storage.decode(units, dtype), "decode")


def _build(source: Tensor, result: Tensor, name: str) -> ScheduledKernel:
    s = create_schedule(result)
    for stage in s.stages:
        if stage.op.input_tensors:
            row, axis = stage.op.axis
            _, lane = stage.split(axis, factor=_LANES)
            stage.vectorize(lane)
            stage.parallel(row)
    return build(s, [source, result], name=name)


Array = np.ndarray[Any, Any]


class Relayout(Pictured):
    """Compiled copy of a tensor from one layout to another; call it with an array.

    Arrays have the `storage_shape` of their layout. Padding positions of the result get the pad
    value of `dst`, or 0. If both layouts have the same storage format with one element per block,
    elements are copied bit by bit. Otherwise they are decoded to the dtype of the tensor and
    encoded again, which may round them.

    Attributes:
        src: Layout of the source array.
        dst: Layout of the result array.
        kernel: Compiled kernel that copies the elements. It takes the source and the result array;
            if the elements are converted, arrays of values in the physical shapes.

    >>> rows = Layout.row_major((2, 6), "int32")
    >>> sticks = Layout.of((2, 6), "int32", lambda i, j: [j // 4, i, j % 4])
    >>> copy = relayout(rows, sticks)
    >>> copy
    <Relayout of int32[2, 6]: (index0, index1) -> (index0, index1) to (i, j) -> (j // 4, i, j % 4)>
    >>> copy.src is rows, copy.dst is sticks, copy.kernel is not None
    (True, True, True)
    """

    _drawn_by: ClassVar[str] = "copies:draw_relayout"

    __slots__ = ("_is_direct", "dst", "kernel", "src")

    kernel: Kernel

    def __init__(self, src: Layout, dst: Layout) -> None:
        """Compile the kernel, or reuse the kernel of equal layouts.

        Args:
            src: Layout of the source array.
            dst: Layout of the result array.

        Raises:
            LayoutError: If `src` and `dst` differ in shape or dtype, or one is not a layout.
        """
        for layout in (src, dst):
            check_layout(layout, "relayout")
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise LayoutError(
                "relayout: source {dtype}{shape} and result {dst_dtype}{dst_shape} do not match; "
                "pass two layouts of one tensor",
                kind="layout-shape-mismatch", dtype=src.dtype, shape=list(src.shape),
                dst_dtype=dst.dtype,
                dst_shape=list(dst.shape),
            )
        self.src, self.dst = src, dst
        self._is_direct = _is_direct(src, dst)
        self.kernel = _relayout_kernel(src, dst)

    def __call__(self, array: Any, out: Any = None) -> Array:
        """Copy `array` to the layout `dst`.

        Args:
            array: Array in the layout `src`.
            out: Array in the layout `dst` that receives the result. Default: a new array.

        Returns:
            `out`, or the new array.

        Raises:
            CallError: If the dtype, shape or layout tag of an array does not match its layout, or
                `out` is read-only.
        """
        check_mark("relayout: the array", array, self.src)
        if out is None:
            out = empty(self.dst.storage_shape, self.dst.storage.stored.numpy, self.dst.mark)
        check_mark("relayout: out", out, self.dst)
        if self._is_direct:
            self.kernel(array, out)
        else:
            self._convert(array, out)
        result: Array = out
        return result

    def _convert(self, array: Any, out: Any) -> None:
        src, dst = self.src, self.dst
        for name, operand, layout in (("array", array, src), ("out", out, dst)):
            check_array(f"relayout: {name}", operand, layout.storage.stored, layout.storage_shape)
        check_writable("relayout: out", out)
        values = array
        if not _is_plain(src):
            values = src.storage.decode_array(array.reshape(-1), src.dtype)
        packed = np.empty(dst.physical_shape, dst.dtype.numpy)
        self.kernel(np.ascontiguousarray(values).reshape(src.physical_shape), packed)
        if not _is_plain(dst):
            packed = dst.storage.encode_array(packed.reshape(-1))
        out[...] = packed.reshape(dst.storage_shape)

    def source(self, kind: Literal["ir", "llvm", "asm"] = "ir") -> str:
        """Return the kernel as text: lowered IR, LLVM IR or assembly.

        Args:
            kind: "ir", "llvm" or "asm". Default: "ir".

        Raises:
            CallError: If `kind` is unknown.

        >>> rows, columns = (Layout.row_major((2, 6), "int32", order) for order in ([0, 1], [1, 0]))
        >>> relayout(rows, columns).source().splitlines()[0]
        'def relayout(source: Buffer("int32", (12,)), result: Buffer("int32", (12,))):'
        """
        return self.kernel.source(kind)

    def __repr__(self) -> str:
        src, dst = self.src, self.dst
        return f"<Relayout of {src.dtype}{list(src.shape)}: {formula(src)} to {formula(dst)}>"


def relayout(src: Layout, dst: Layout) -> Relayout:
    """Compile a copy from one layout of a tensor to another.

    Args:
        src: Layout of the source array.
        dst: Layout of the result array.

    Returns:
        Compiled copy; call it with an array in the layout `src`.

    Raises:
        LayoutError: If `src` and `dst` differ in shape or dtype, or one is not a layout.

    >>> rows = Layout.row_major((2, 6), "int32")
    >>> sticks = Layout.of((2, 6), "int32", lambda i, j: [j // 4, i, j % 4], pad_value=-1)
    >>> relayout(rows, sticks)(np.arange(12, dtype="int32").reshape(2, 6)).reshape(4, 4)
    array([[ 0,  1,  2,  3],
           [ 6,  7,  8,  9],
           [ 4,  5, -1, -1],
           [10, 11, -1, -1]], dtype=int32)
    """
    return Relayout(src, dst)


# Only the kernel is cached, because equal layouts may differ in the names of their axes.
@memoize("copies.relayouts")
def _relayout_kernel(src: Layout, dst: Layout) -> Kernel:
    """Return the kernel that copies from one layout to another."""
    is_direct = _is_direct(src, dst)
    return kernel_of(
        CopySpec(
            src.shape,
            src.storage.stored if is_direct else src.dtype,
            CopyEndpoint(src.index_map, src.physical_shape),
            CopyEndpoint(dst.index_map, dst.physical_shape),
            _padding(dst, is_stored=is_direct),
        ),
        "relayout",
    )


def _is_direct(src: Layout, dst: Layout) -> bool:
    """Return whether elements are copied without conversion."""
    return src.storage == dst.storage and src.storage.elements == 1


def pack_array(layout: Layout, array: Any, out: Any) -> Array:
    """Pack a NumPy array into a layout.

    Padding positions get the pad value of the layout, or 0.

    Args:
        layout: Layout of the result.
        array: Array with the shape and dtype of the tensor and any strides.
        out: Array of shape `layout.storage_shape` that receives the result; a new array if None.

    Returns:
        `out`, or the new array.

    Raises:
        CallError: If the dtype or shape of an array does not match the layout, `array` is already
            packed, or `out` is read-only.
    """
    found = layout_tag_of(array)
    shape = layout.shape
    if found is not None and not is_in_layout(array, row_major_tag(len(shape)), shape, shape):
        raise CallError(
            "pack: the array is already packed with layout {formula}; pass the array that it was "
            "packed from, use relayout, or pass np.asarray(...) of it to ignore its layout",
            kind="packed", formula=found.formula,
        )
    source = as_array(array, "pack")
    check_array("pack: the array", source, layout.dtype, layout.shape)
    order = _dense_order(source)
    if order is None:
        source, order = np.ascontiguousarray(source), tuple(range(source.ndim))
    host = _row_major(layout.shape, layout.dtype, order)
    return relayout(host, layout)(source.transpose(order).reshape(host.physical_shape), out)


def unpack_array(layout: Layout, array: Any, out: Any) -> Array:
    """Unpack an array in a layout to a NumPy array.

    Args:
        layout: Layout of `array`.
        array: Packed array of shape `layout.storage_shape`.
        out: Array with the shape and dtype of the tensor and any strides that receives the
            elements; a new array if None.

    Returns:
        `out`, or the new array.

    Raises:
        CallError: If the dtype or shape of an array does not match the layout, `array` is tagged
            with another layout, or `out` is read-only.
    """
    if out is None:
        out = np.empty(layout.shape, layout.dtype.numpy)
    check_array("unpack: out", out, layout.dtype, layout.shape)
    check_writable("unpack: out", out)
    result: Array = out
    order = _dense_order(out)
    if order is None:
        np.copyto(out, unpack_array(layout, array, None))
        return result
    host = _row_major(layout.shape, layout.dtype, order)
    relayout(layout, host)(array, out.transpose(order).reshape(host.physical_shape))
    return result


@memoize("copies.host_layouts")
def _row_major(shape: tuple[int, ...], dtype: DType, order: tuple[int, ...]) -> Layout:
    """Return the cached layout of a NumPy array: analysing a new layout costs more than a copy."""
    return Layout.row_major(shape, dtype, order)


def _dense_order(array: Array) -> tuple[int, ...] | None:
    """Return the axes by descending stride if the array is dense, otherwise None."""
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    order = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
    return order if array.transpose(order).flags.c_contiguous else None


def check_array(subject: str, array: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Check that an array has the given dtype and shape.

    Args:
        subject: Description of the array in the error message.
        array: Array to check.
        dtype: Expected dtype.
        shape: Expected shape.

    Raises:
        CallError: If `array` is not a NumPy array, or has another dtype or shape.
    """
    found = getattr(array, "dtype", None)
    if not isinstance(array, np.ndarray) or array.shape != shape or found != DType(dtype).numpy:
        is_shaped = hasattr(array, "shape") and isinstance(array.shape, tuple)
        text = f"{found}{list(array.shape)}" if is_shaped else type(array).__name__
        raise CallError(
            "{subject} is {text}, expected {dtype}{shape}; convert it first",
            kind="argument-mismatch", subject=subject, text=text, dtype=dtype, shape=list(shape),
        )


def check_mark(subject: str, array: Any, layout: Layout) -> None:
    """Check that an array is not tagged with another layout.

    Args:
        subject: Description of the array in the error message.
        array: Array to check; an array without a layout tag passes.
        layout: Expected layout.

    Raises:
        CallError: If `array` is tagged with another layout.
    """
    found = layout_tag_of(array)
    if found is not None and not is_in_layout(
        array, layout.mark, layout.shape, layout.physical_shape
    ):
        raise CallError(
            "{subject} is packed with layout {formula}, expected {mark_formula}; pass an array "
            "with that layout, or np.asarray(...) of it to ignore its layout",
            kind="packed", subject=subject, formula=found.formula, mark_formula=layout.mark.formula,
        )


def check_writable(subject: str, array: Array) -> None:
    """Check that an array is writable.

    Args:
        subject: Description of the array in the error message.
        array: Array to check.

    Raises:
        CallError: If `array` is read-only.
    """
    if not array.flags.writeable:
        raise CallError(
            "{subject} is written to, but it is read-only; pass a copy",
            kind="unsupported-memory", subject=subject,
        )


def _is_plain(layout: Layout) -> bool:
    """Return whether elements are stored without encoding, in the dtype of the tensor."""
    storage = layout.storage
    return storage.name == layout.dtype == storage.stored and storage.elements == 1


def _padding(layout: Layout, *, is_stored: bool) -> int:
    """Return the bit pattern of padding positions: encoded if `is_stored`, else in the dtype."""
    value = np.asarray([layout.pad_value or 0]).astype(layout.dtype.numpy)
    return bit_pattern(layout.storage.encode_array(value) if is_stored and not _is_plain(layout)
                       else value)
