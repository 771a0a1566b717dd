"""Map array axes and strides to kernel loops.

Adjacent axes that are contiguous with each other in all operands are merged into one loop.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from itertools import pairwise
from math import prod
from operator import methodcaller
from typing import Any

import numpy as np

from tecomp import te
from tecomp.array.graph.node import Buffer, Node
from tecomp.array.graph.pending import Step
from tecomp.ptensor.formulas.tables import element
from tecomp.ptensor.types import PART, PTensorType, Shape
from tecomp.ptensor.values import Complex, Element

Strides = tuple[int, ...]


@dataclass(frozen=True, slots=True)
class KernelOperand:
    """Description of how an array is passed to a kernel.

    Attributes:
        axes: Loops along which the array varies.
        index: Index that removes axes without a loop; None if there are none.
        shape: Extents along its loops; None if they equal the shape of the array.
        strided: Whether the elements are not contiguous.
        unit: Whether the elements along the last of its loops have stride 1.
        part: dtype of the adjacent real and imaginary parts; None for real numbers.
        order: Permutation of the remaining axes into the order of the loops; None if they are in
            this order.
    """

    axes: tuple[int, ...]
    index: tuple[Any, ...] | None
    shape: Shape | None
    strided: bool
    unit: bool
    part: np.dtype[Any] | None
    order: tuple[int, ...] | None = None

    @property
    def lies(self) -> object:
        """Properties on which the kernel depends."""
        return self.axes, self.strided, self.unit

    def view(self, data: Buffer) -> Buffer:
        """Return the array in the form in which it is passed."""
        if self.index is not None:
            data = data[self.index]
        if self.order is not None:
            data = data.transpose(self.order)
        if self.shape is not None:
            data = data.reshape(self.shape)
        return data if self.part is None else data[..., None].view(self.part)


@dataclass(frozen=True, slots=True)
class FixedView:
    """View of arrays of one shape and of fixed strides, applied by at most one NumPy call.

    Attributes:
        shape: Shape of the arrays.
        strides: Strides of the arrays in bytes.
        apply: Function that returns the view of an array; None if the array is its own view.
    """

    shape: Shape
    strides: Strides
    apply: Callable[[Buffer], Buffer] | None

    def matches(self, data: Buffer) -> bool:
        """Return whether the view applies to an array."""
        return bool(data.strides == self.strides and data.shape == self.shape)


def fixed_view(data: Buffer, make: Callable[[Buffer], Buffer]) -> FixedView:
    """Return the view that a function makes of an array, for arrays of equal shape and strides.

    Args:
        data: Array.
        make: Function that applies one or several view operations.
    """
    return FixedView(data.shape, data.strides, _single_call(data, make(data), make))


def _single_call(
    data: Buffer, view: Buffer, make: Callable[[Buffer], Buffer]
) -> Callable[[Buffer], Buffer] | None:
    """Return the shortest function with the effect of `make`; None for the identity."""
    if view.dtype != data.dtype or view.ctypes.data != data.ctypes.data:
        return make
    axes, required = [*zip(data.shape, data.strides, strict=True)], [
        *zip(view.shape, view.strides, strict=True)]
    if axes == required:
        return None
    if len(set(axes)) == len(axes) and sorted(axes) == sorted(required):
        return methodcaller("transpose", tuple([axes.index(axis) for axis in required]))
    if data.size == view.size and data.flags.c_contiguous and view.flags.c_contiguous:
        return methodcaller("reshape", view.shape)
    return make


def dense(shape: Sequence[int]) -> tuple[int, ...]:
    """Return the strides of a contiguous row-major array, in elements.

    No stride is 0, also for empty arrays, because 0 denotes broadcasting.
    """
    return tuple([prod([n or 1 for n in shape[axis + 1 :]]) for axis in range(len(shape))])


def strides_of(nodes: Sequence[Node], shape: Shape) -> list[Strides] | None:
    """Return the strides of arrays broadcast to a shape, in elements.

    Return None if a stride is not a multiple of the element size.
    """
    found = []
    for node in nodes:
        strides = _strides_of(node, shape)
        if strides is None:
            return None
        found.append(strides)
    return found


def _strides_of(node: Node, shape: Shape) -> Strides | None:
    data = node.data
    assert data is not None
    if any(stride % data.itemsize for stride in data.strides):
        return None
    missing = len(shape) - data.ndim
    # NumPy's strides of empty arrays are meaningless: some versions set all of them to 0.
    steps = [stride // data.itemsize for stride in data.strides] if data.size else dense(data.shape)
    result = [0 if extent == 1 else step for extent, step in zip(data.shape, steps, strict=True)]
    return (0,) * missing + tuple(result)


def merge_axes(
    shape: Shape, strides: Sequence[Strides], kinds: Sequence[object]
) -> tuple[tuple[int, ...], ...]:
    """Return the axes of each loop, outermost first; axes of size 1 are dropped.

    Args:
        shape: Extents of the axes.
        strides: Strides of all operands.
        kinds: Kind of each axis; axes of different kinds are not merged.
    """
    groups: list[list[int]] = []
    for axis, extent in enumerate(shape):
        if extent == 1:
            continue
        last = groups[-1][-1] if groups else None
        if last is not None and kinds[last] == kinds[axis] and all(
            s[last] == s[axis] * extent for s in strides
        ):
            groups[-1].append(axis)
        else:
            groups.append([axis])
    return tuple(map(tuple, groups))


def operand_of(
    node: Node,
    groups: Sequence[Sequence[int]],
    loops: Shape,
    strides: Strides,
    *,
    in_memory_order: bool = False,
) -> KernelOperand:
    """Return how an array is passed.

    Args:
        node: Node of the array.
        groups: Axes of each loop.
        loops: Extents of the loops.
        strides: Strides of the array along the axes.
        in_memory_order: Whether the axes are passed in the order of their strides instead of the
            order of the loops. Default: False.
    """
    data = node.data
    assert data is not None
    steps = [strides[group[-1]] for group in groups]
    loop_order = list(range(len(groups)))
    if in_memory_order:
        loop_order.sort(key=lambda k: -abs(steps[k]))
    axes = tuple([k for k in loop_order if steps[k]])
    extents = tuple([loops[k] for k in axes])
    entries = [0 if extent > 1 and stride == 0 else slice(None) for extent, stride in zip(
        data.shape, data.strides, strict=True)]
    index = (*entries, ...) if 0 in entries else None  # `...` keeps the result an array
    dims = [k for k, part in enumerate(entries) if part != 0]
    position = {axis: k for k, axis in enumerate([a for loop in loop_order for a in groups[loop]])}
    missing = len(strides) - data.ndim
    # Axes of size 1 have no loop and stay first.
    order = tuple(sorted(range(len(dims)), key=lambda k: position.get(dims[k] + missing, -1)))
    is_in_order = all(position.get(a + missing, -1) <= position.get(b + missing, -1)
                      for a, b in pairwise([k for k in dims if k + missing in position]))
    shape = tuple([data.shape[dims[k]] for k in (range(len(dims)) if is_in_order else order)])
    strided = tuple([steps[k] for k in axes]) != dense(extents)
    unit = not strided or not axes or steps[axes[-1]] == 1
    part = data.real.dtype if data.dtype.kind == "c" else None
    return KernelOperand(axes, index, None if shape == extents else extents, strided, unit, part,
                   None if is_in_order else order)


def argument(shape: list[te.Expr], dtype: str, name: str) -> te.Tensor:
    """Return the placeholder of an array; complex arrays have an additional axis of size 2."""
    part = PART.get(dtype)
    if part is None:
        return te.placeholder(shape, dtype, name=name)
    return te.placeholder([*shape, 2], part, name=name)


def read(tensor: te.Tensor, spec: KernelOperand, index: Sequence[te.Expr]) -> Element:
    """Return the element of an argument at an index of its loops."""
    if spec.part is None:
        return tensor(*index)
    return Complex(tensor(*index, 0), tensor(*index, 1))


def memory(tensor: te.Tensor, spec: KernelOperand) -> Any:
    """Declare a buffer whose strides are passed with the call."""
    strides: list[Any] = [te.var(f"{tensor.name}_s{k}") for k in range(len(spec.axes))]
    if spec.unit:
        strides[-1] = 1 if spec.part is None else 2
    if spec.part is not None:
        strides.append(1)
    return te.decl_buffer(tensor.shape, tensor.dtype, strides=strides)


def elements_of(
    steps: Sequence[Step], leaves: Sequence[Element], dtypes: Sequence[str]
) -> list[Element]:
    """Return the values of element-wise operations on elements of the leaves, one per step."""
    values: list[Element] = []
    kinds = dtypes_of(steps, dtypes)
    for op, positions in steps:
        operands = [values[k] if k >= 0 else leaves[-1 - k] for k in positions]
        types = [kinds[k] if k >= 0 else dtypes[-1 - k] for k in positions]
        values.append(element(op, operands, types))
    return values


def dtypes_of(steps: Sequence[Step], dtypes: Sequence[str]) -> list[str]:
    """Return the result dtypes of operations on leaves of given dtypes."""
    kinds: list[str] = []
    for op, positions in steps:
        types = [kinds[k] if k >= 0 else dtypes[-1 - k] for k in positions]
        kinds.append(op.infer(*[PTensorType((1,), dtype) for dtype in types]).dtype)
    return kinds
