"""Device buffers and their layouts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np

from tecomp.array.graph.node import Buffer, Node, looking
from tecomp.array.graph.pending import Step, pending_graph_of, placing
from tecomp.array.statistics import costs_of
from tecomp.caches import memoize
from tecomp.compute.define import placeholder
from tecomp.errors import ArrayTypeError, ArrayValueError, LayoutError
from tecomp.graph.layout_candidates import candidates, layout_along
from tecomp.graph.layout_demands import check_demanded_layout
from tecomp.ir.nodes.dtype import DType
from tecomp.layout.core.layout import Layout
from tecomp.layout.core.stick_layout import with_tensor_shape
from tecomp.layout.formats.format import Format
from tecomp.ptensor.devices import is_apart, target_of
from tecomp.ptensor.operations.elementwise import CastOp, Elementwise, WhereOp
from tecomp.ptensor.types import PART, PTensorType, Shape, numpy_dtype
from tecomp.schedules.scratchpad.placement import device_of


class DeviceBuffer:
    """Elements in device memory.

    Attributes:
        type: Type of the array.
        layout: Layout as device programs use it.
        data: Memory, in the physical order of the layout.
        program: Program that computed the elements; None if they came from the host.
    """

    __slots__ = ("_host", "data", "layout", "program", "type")

    def __init__(
        self, ptype: PTensorType, layout: Layout, data: Buffer, program: Any = None
    ) -> None:
        self.type = ptype
        self.layout = layout
        self.data = data
        self.program = program
        self._host: Buffer | None = None

    @property
    def shown(self) -> Layout:
        """Layout as users see it; its `pack` produces these bytes."""
        return host_layout(self.layout, self.type.device)

    def elements(self) -> Buffer:
        """Return the elements in read-only host memory."""
        if self._host is None:
            costs_of(self.type.device).to_host(self.data.nbytes)
            found = self.shown.unpack(self.data)
            if self.type.dtype in PART:
                found = found.view(numpy_dtype(self.type.dtype))[..., 0]
            found.flags.writeable = False
            self._host = found
        return self._host


@memoize("array.host_layouts")
def host_layout(layout: Layout, device: str | None) -> Layout:
    """Return a layout in the host formats of elements, as programs exchange them."""
    return replace(
        _plain(layout), memory=device_of(target_of(str(device)))
    )


def _plain(layout: Layout) -> Layout:
    return Layout(
        layout.shape, layout.dtype, layout.index_map, Format.plain(layout.dtype),
        layout.pad_value, layout.memory, layout.grid_axes,
    )


def parts_of(ptype: PTensorType) -> tuple[Shape, str]:
    """Return shape and dtype of the memory of an array; complex numbers are pairs."""
    part = PART.get(ptype.dtype)
    return (ptype.shape, ptype.dtype) if part is None else ((*ptype.shape, 2), part)


@memoize("array.device_layouts")
def default_layout(ptype: PTensorType) -> Layout:
    """Return the layout in which a device stores arrays by default."""
    shape, dtype = parts_of(ptype)
    target = target_of(str(ptype.device))
    if ptype.dtype in PART and ptype.shape:
        return layout_along(target, shape, DType(dtype), len(shape) - 2)
    return candidates(target, shape, DType(dtype))[0]


def layout_along_axis(ptype: PTensorType, axis: int) -> Layout:
    """Return the device layout of an array with an axis along the lanes."""
    shape, dtype = parts_of(ptype)
    return layout_along(target_of(str(ptype.device)), shape, DType(dtype), axis)


def device_storage_layout(ptype: PTensorType, layout: Layout) -> Layout:
    """Return a layout with the storage format that the machine uses for these elements."""
    shape, dtype = parts_of(ptype)
    for candidate in candidates(target_of(str(ptype.device)), shape, DType(dtype)):
        host_form = host_layout(candidate, ptype.device)
        if layout in (candidate, host_form) and layout.pad_value is None:
            return candidate
    return layout


def inherited_layouts(
    leaves: Sequence[tuple[PTensorType, Layout | None]], steps: Sequence[Step],
    types: Sequence[PTensorType],
) -> list[Layout | None]:
    """Return the layouts that results of element-wise operations inherit from their operands.

    A result inherits the layout of an operand of equal shape and dtype, directly or through further
    element-wise operations. The default layout of the device is not inherited, because the compiler
    considers it anyway.

    Args:
        leaves: Types and layouts of the evaluated operands.
        steps: Operations.
        types: Types of their results.
    """
    custom = [None if at in (None, default_layout(ptype)) else (ptype, at) for ptype, at in leaves]
    shapes = [ptype.shape for ptype, _ in leaves]
    inherited: list[tuple[PTensorType, Layout | None] | None] = []
    for (op, positions), ptype in zip(steps, types, strict=True):
        found = None
        if isinstance(op, Elementwise | WhereOp | CastOp):
            for k in positions:
                shape = types[k].shape if k >= 0 else shapes[-1 - k]
                if shape == ptype.shape:
                    found = found or (inherited[k] if k >= 0 else custom[-1 - k])
        inherited.append(found)
    return [
        entry[1] if entry is not None and entry[0].dtype == ptype.dtype else None
        for entry, ptype in zip(inherited, types, strict=True)
    ]


def inherited_layout(node: Node) -> Layout | None:
    """Return the layout that arrays created like a node inherit; None for the device's default."""
    layout = node.home if node.stored is None else node.stored.layout
    if layout is not None:
        return None if layout == default_layout(node.type) else layout
    with looking:
        work = pending_graph_of((node,))
    if node not in work.nodes:
        return None
    leaves = [(x.type, x.stored.layout if x.stored else x.home) for x in work.leaves]
    types = [member.type for member in work.nodes]
    return inherited_layouts(leaves, work.steps, types)[work.nodes.index(node)]


def alternatives(ptype: PTensorType, layout: Layout) -> list[Layout]:
    """Return a layout, then those of the machine; none if the machine has the layout."""
    shape, dtype = parts_of(ptype)
    known = (default_layout(ptype), *candidates(target_of(str(ptype.device)), shape, DType(dtype)))
    return [] if layout in known else [layout, *dict.fromkeys(known)]


def device_buffer_of(node: Node) -> DeviceBuffer:
    """Return the device memory of a computed node; copy its elements there if necessary."""
    with placing:
        if node.stored is None:
            assert node.data is not None
            node.placed(
                copy_to_device(node.data, node.type, node.home or default_layout(node.type)))
        assert isinstance(node.stored, DeviceBuffer)
        return node.stored


def layout_for(ptype: PTensorType, layout: Layout | None) -> Layout:
    """Return the requested layout, or the default layout of the device."""
    return default_layout(ptype) if layout is None else device_storage_layout(ptype, layout)


def empty(ptype: PTensorType, layout: Layout) -> DeviceBuffer:
    """Return zero-filled device memory for an uninitialized array."""
    return DeviceBuffer(
        ptype,
        device_storage_layout(ptype, layout),
        np.zeros(layout.physical_shape, layout.dtype.numpy),
    )


def copy_to_device(data: Buffer, ptype: PTensorType, layout: Layout) -> DeviceBuffer:
    """Copy elements from the host to device memory in a layout."""
    contiguous = np.ascontiguousarray(data).reshape(data.shape)
    if ptype.dtype in PART:
        contiguous = contiguous[..., None].view(contiguous.real.dtype)
    packed = np.asarray(host_layout(layout, ptype.device).pack(contiguous))
    if np.may_share_memory(packed, data):  # the owner can write this memory
        packed = packed.copy()
    costs_of(ptype.device).from_host(packed.nbytes)
    return DeviceBuffer(ptype, layout, packed)


def layout_of(ptype: PTensorType, layout: Any, where: str) -> Layout:
    """Validate a layout argument for an array on its device.

    A `StickLayout` without a size takes the size of the array.

    Raises:
        ArrayTypeError: If `layout` is not a layout.
        ArrayValueError: If the device has no layouts or does not support this layout.
    """
    if not isinstance(layout, Layout):
        raise ArrayTypeError(
            "{where}: layout must be a tecomp.Layout, got {class_}; pass a layout such as x.layout",
            where=where, class_=layout.__class__.__name__,
        )
    if not is_apart(ptype.device):
        raise ArrayValueError(
            "{where}: layout is not supported on device {device!r}, which stores arrays in "
            "row-major order; use a device with layouts, device='stick128'",
            where=where, device=ptype.device,
        )
    shape, dtype = parts_of(ptype)
    resolved = with_tensor_shape(layout, shape)
    try:
        target = target_of(str(ptype.device))
        check_demanded_layout(placeholder(shape, dtype, "x"), resolved, target)
    except LayoutError as error:
        raise ArrayValueError(
            "{where}: {reason}",
            kind=error.kind, where=where, reason=error.message,
        ) from None
    return resolved
