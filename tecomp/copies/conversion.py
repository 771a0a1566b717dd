"""Arrays to storage formats and back: one kernel for arrays of any length, in rows of blocks."""

from __future__ import annotations

from functools import lru_cache

import numpy as np

from tecomp.compute.define import placeholder, size_var
from tecomp.compute.tensor import Tensor
from tecomp.driver.build import ScheduledKernel, build
from tecomp.errors import LayoutError
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.dtype import DType
from tecomp.layout.formats.format import Array, Format
from tecomp.scheduling.schedule import create_schedule

_LANES = 16
_ROW = 1024


def encoded(storage: Format, array: Array) -> Array:
    """`array` as `storage` keeps it; its last axis holds whole blocks.

    Raises:
        LayoutError: it does not.
    """
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
