"""Compiled pack, unpack, relayout and format conversion of arrays."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, ClassVar, Literal

import numpy as np

from tecomp.codegen.dispatch.array_interop import as_array, empty, is_in_layout, mark_of
from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.compute.define import placeholder, size_var
from tecomp.compute.tensor import Tensor
from tecomp.drawing.drawable import Pictured
from tecomp.driver.build import ScheduledKernel, build
from tecomp.errors import CallError, LayoutError
from tecomp.ir.arith.extents import ceil_div
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.addressing.layout_tags import plain_mark
from tecomp.layout.addressing.stored_tensor import check_layout
from tecomp.layout.core.layout import Layout, formula
from tecomp.layout.formats.format import Format
from tecomp.relayout_kernels.box_copy import Copy, Side, bit_pattern
from tecomp.relayout_kernels.kernel import kernel_of
from tecomp.scheduling.schedule import create_schedule

_LANES = 16
_ROW = 1024


def encoded(storage: Format, array: Array) -> Array:
    """`array` as `storage` keeps it; its last axis holds whole blocks.

    Raises:
        LayoutError: it does not.
    """
    array = as_array(array, f"format {storage.name}: encode_array")
    shape = _resized(storage, array, storage.elements, storage.units, "elements")
    out = np.empty(shape, storage.stored.numpy)
    if array.size:
        count = _blocks_in_a_row(storage)
        kernel = _encoder(storage, DType(array.dtype.name))
        _run(kernel, array, count * storage.elements, out, count * storage.units)
    return out


def decoded(storage: Format, array: Array, dtype: DType) -> Array:
    """The values of what `storage` keeps in `array`.

    Raises:
        LayoutError: the last axis holds no whole blocks, or units of another type.
    """
    array = as_array(array, f"format {storage.name}: decode_array")
    if array.dtype.name != storage.stored:
        raise LayoutError(
            f"format {storage.name}: memory is {storage.stored}, the array is {array.dtype}; "
            f"give what encode_array returned, or view it as {storage.stored}",
            kind="storage-format",
        )
    shape = _resized(storage, array, storage.units, storage.elements, "units")
    out = np.empty(shape, dtype.numpy)
    if array.size:
        count = _blocks_in_a_row(storage)
        kernel = _decoder(storage, dtype)
        _run(kernel, array, count * storage.units, out, count * storage.elements)
    return out


def _run(kernel: ScheduledKernel, array: Array, row: int, out: Array, new_row: int) -> None:
    """Whole rows where they are; what is left in a row of its own, with zeros behind it."""
    flat, result = np.ascontiguousarray(array).reshape(-1), out.reshape(-1)
    rows = len(flat) // row
    if rows:
        kernel(
            flat[: rows * row].reshape(rows, row), result[: rows * new_row].reshape(rows, new_row)
        )
    if rest := len(flat) - rows * row:
        last, its_result = np.zeros((1, row), flat.dtype), np.empty((1, new_row), out.dtype)
        last[0, :rest] = flat[rows * row :]
        kernel(last, its_result)
        result[rows * new_row :] = its_result[0, : len(result) - rows * new_row]


def _resized(storage: Format, array: Array, old: int, new: int, what: str) -> tuple[int, ...]:
    shape: tuple[int, ...] = array.shape
    if old == new == 1:
        return shape
    if not shape or shape[-1] % old:
        raise LayoutError(
            f"format {storage.name}: the last axis of the array, {list(shape)}, is no whole "
            f"number of blocks of {old} {what}; pad it, or merge the last axes",
            kind="storage-format",
        )
    return (*shape[:-1], shape[-1] // old * new)


def _blocks_in_a_row(storage: Format) -> int:
    return ceil_div(_ROW, storage.elements)


@lru_cache(maxsize=64)
def _encoder(storage: Format, dtype: DType) -> ScheduledKernel:
    row = _blocks_in_a_row(storage) * storage.elements
    values = placeholder((size_var("rows", "int64"), row), dtype, name="values")
    return _built(values, storage.encode(values), "encode")


@lru_cache(maxsize=64)
def _decoder(storage: Format, dtype: DType) -> ScheduledKernel:
    row = _blocks_in_a_row(storage) * storage.units
    units = placeholder((size_var("rows", "int64"), row), storage.stored, name="units")
    return _built(units, storage.decode(units, dtype), "decode")


def _built(given: Tensor, result: Tensor, name: str) -> ScheduledKernel:
    s = create_schedule(result)
    for stage in s.stages:
        if stage.op.input_tensors:
            row, along = stage.op.axis
            _, lane = stage.split(along, factor=_LANES)
            stage.vectorize(lane)
            stage.parallel(row)
    return build(s, [given, result], name=name)


Array = np.ndarray[Any, Any]


class Relayout(Pictured):
    """A copy of a tensor from one layout to another; call it with an array.

    Arrays have the `storage_shape` of their layout. Places that hold no element get the pad value
    of `dst`, or 0. Where both layouts store elements alike they are moved as they are; else they
    are read as values of the tensor's type and stored again, which may round them.

    Attributes:
        src: the layout that elements come from.
        dst: the layout that they go to.
        kernel: moves them. It takes both arrays; if the layouts store elements differently, arrays
            of values in the physical shapes.

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
        """Compile the kernel, or reuse that of equal layouts.

        Raises:
            LayoutError: they are no layouts of one tensor.
        """
        for given in (src, dst):
            check_layout(given, "relayout")
        if src.shape != dst.shape or src.dtype != dst.dtype:
            raise LayoutError(
                f"relayout: the source is of {src.dtype}{list(src.shape)}, the result of "
                f"{dst.dtype}{list(dst.shape)}; give two layouts of one tensor",
                kind="other-shape",
            )
        self.src, self.dst = src, dst
        self._is_direct = _is_direct(src, dst)
        self.kernel = _relayout_kernel(src, dst)

    def __call__(self, array: Any, out: Any = None) -> Array:
        """The elements of `array` in the other layout.

        Args:
            array: in the layout `src`.
            out: where they are written to; a new array if None.

        Returns:
            `out`, or the new array.

        Raises:
            CallError: an array does not fit its layout.
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
        for name, given, layout in (("array", array, src), ("out", out, dst)):
            check_array(f"relayout: {name}", given, layout.storage.stored, layout.storage_shape)
        check_writable("relayout: out", out)
        values = array
        if not _is_plain(src):
            values = src.storage.decode_array(array.reshape(-1), src.dtype)
        placed = np.empty(dst.physical_shape, dst.dtype.numpy)
        self.kernel(np.ascontiguousarray(values).reshape(src.physical_shape), placed)
        if not _is_plain(dst):
            placed = dst.storage.encode_array(placed.reshape(-1))
        out[...] = placed.reshape(dst.storage_shape)

    def source(self, kind: Literal["ir", "llvm", "asm"] = "ir") -> str:
        """The kernel as text.

        Args:
            kind: `ir`, as it is lowered; `llvm`, as it is given to LLVM; `asm`, what runs.

        Raises:
            CallError: there is no such text.

        >>> rows, columns = (Layout.row_major((2, 6), "int32", order) for order in ([0, 1], [1, 0]))
        >>> relayout(rows, columns).source().splitlines()[0]
        'def relayout(source: Buffer("int32", (12,)), result: Buffer("int32", (12,))):'
        """
        return self.kernel.source(kind)

    def __repr__(self) -> str:
        src, dst = self.src, self.dst
        return f"<Relayout of {src.dtype}{list(src.shape)}: {formula(src)} to {formula(dst)}>"


def relayout(src: Layout, dst: Layout) -> Relayout:
    """The compiled copy from one layout of a tensor to another.

    Args:
        src: the layout of what it is called with.
        dst: the layout of what that becomes.

    Raises:
        LayoutError: they are no layouts of one tensor.

    >>> rows = Layout.row_major((2, 6), "int32")
    >>> sticks = Layout.of((2, 6), "int32", lambda i, j: [j // 4, i, j % 4], pad_value=-1)
    >>> relayout(rows, sticks)(np.arange(12, dtype="int32").reshape(2, 6)).reshape(4, 4)
    array([[ 0,  1,  2,  3],
           [ 6,  7,  8,  9],
           [ 4,  5, -1, -1],
           [10, 11, -1, -1]], dtype=int32)
    """
    return Relayout(src, dst)


# Equal layouts may differ in the names of their axes, so only the kernel is shared.
@lru_cache(maxsize=256)
def _relayout_kernel(src: Layout, dst: Layout) -> Kernel:
    """Return the kernel that copies from one layout to another."""
    is_direct = _is_direct(src, dst)
    return kernel_of(
        Copy(
            src.shape,
            src.storage.stored if is_direct else src.dtype,
            Side(src.index_map, src.physical_shape),
            Side(dst.index_map, dst.physical_shape),
            _padding(dst, is_stored=is_direct),
        ),
        "relayout",
    )


def _is_direct(src: Layout, dst: Layout) -> bool:
    """Return whether elements are copied without conversion."""
    return src.storage == dst.storage and src.storage.elements == 1


def packed(layout: Layout, array: Any, out: Any) -> Array:
    """An array of NumPy in a layout.

    Places that hold no element get the pad value, or 0.

    Args:
        layout: the layout.
        array: in the shape and type of the tensor, with any strides.
        out: where it is written to, in `storage_shape`; a new array if None.

    Raises:
        CallError: an array does not fit.
    """
    found = mark_of(array)
    shape = layout.shape
    if found is not None and not is_in_layout(array, plain_mark(len(shape)), shape, shape):
        raise CallError(
            f"pack: the array is packed already, as {found.formula}; pass the one that it was "
            "packed from, use relayout, or pass np.asarray(...) of it if it is right",
            kind="packed",
        )
    given = as_array(array, "pack")
    check_array("pack: the array", given, layout.dtype, layout.shape)
    order = _dense_order(given)
    if order is None:
        given, order = np.ascontiguousarray(given), tuple(range(given.ndim))
    host = _row_major(layout.shape, layout.dtype, order)
    return relayout(host, layout)(given.transpose(order).reshape(host.physical_shape), out)


def unpacked(layout: Layout, array: Any, out: Any) -> Array:
    """The elements of an array in a layout as an array of NumPy.

    Args:
        layout: the layout.
        array: in its `storage_shape`.
        out: where they are written to, with any strides; a new array if None.

    Raises:
        CallError: an array does not fit.
    """
    if out is None:
        out = np.empty(layout.shape, layout.dtype.numpy)
    check_array("unpack: out", out, layout.dtype, layout.shape)
    check_writable("unpack: out", out)
    result: Array = out
    order = _dense_order(out)
    if order is None:
        np.copyto(out, unpacked(layout, array, None))
        return result
    host = _row_major(layout.shape, layout.dtype, order)
    relayout(layout, host)(array, out.transpose(order).reshape(host.physical_shape))
    return result


@lru_cache(maxsize=256)
def _row_major(shape: tuple[int, ...], dtype: DType, order: tuple[int, ...]) -> Layout:
    """Return the cached layout of a NumPy array: analysing a new one costs more than a copy."""
    return Layout.row_major(shape, dtype, order)


def _dense_order(array: Array) -> tuple[int, ...] | None:
    """The axes of an array from the slowest to the fastest, if it has no gaps and no repeats."""
    if array.flags.c_contiguous:
        return tuple(range(array.ndim))
    order = tuple(sorted(range(array.ndim), key=lambda axis: -array.strides[axis]))
    return order if array.transpose(order).flags.c_contiguous else None


def check_array(what: str, array: Any, dtype: str, shape: tuple[int, ...]) -> None:
    """Refuse an array of another type or shape.

    Raises:
        CallError: it is one.
    """
    found = getattr(array, "dtype", None)
    if not isinstance(array, np.ndarray) or array.shape != shape or found != DType(dtype).numpy:
        is_shaped = hasattr(array, "shape") and isinstance(array.shape, tuple)
        text = f"{found}{list(array.shape)}" if is_shaped else type(array).__name__
        raise CallError(
            f"{what} is {text}, but {dtype}{list(shape)} belongs there; convert it first",
            kind="other-array",
        )


def check_mark(what: str, array: Any, layout: Layout) -> None:
    """Refuse an array that is known to be in another layout.

    Raises:
        CallError: it is.
    """
    found = mark_of(array)
    if found is not None and not is_in_layout(
        array, layout.mark, layout.shape, layout.physical_shape
    ):
        raise CallError(
            f"{what} is packed as {found.formula}, but it is to be as {layout.mark.formula}; pass "
            "one of that layout, or np.asarray(...) of it if it is right",
            kind="packed",
        )


def check_writable(what: str, array: Array) -> None:
    """Refuse an array that cannot be written to.

    Raises:
        CallError: it cannot.
    """
    if not array.flags.writeable:
        raise CallError(
            f"{what} is written to, but it is read-only; pass a copy of it", kind="memory-of-array"
        )


def _is_plain(layout: Layout) -> bool:
    """Whether each element is stored as it is."""
    storage = layout.storage
    return storage.name == layout.dtype == storage.stored and storage.elements == 1


def _padding(layout: Layout, *, is_stored: bool) -> int:
    """The bits of what places without an element hold: in memory, or as a value of the tensor."""
    value = np.asarray([layout.pad_value or 0]).astype(layout.dtype.numpy)
    return bit_pattern(layout.storage.encode_array(value) if is_stored and not _is_plain(layout)
                       else value)
