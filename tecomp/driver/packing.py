"""Arrays into the layout of a tensor and back, by compiled kernels."""

from __future__ import annotations

from collections.abc import Mapping
from functools import cached_property
from typing import Any

import numpy as np

from tecomp.codegen.call import Kernel
from tecomp.compute.define import compute, placeholder
from tecomp.compute.tensor import Tensor
from tecomp.errors import CallError
from tecomp.ir.expr import Const, Expr, Var, const, index_value
from tecomp.ir.rewrite import substitute, walk
from tecomp.ir.simplify import simplify
from tecomp.ir.stmt import Extent
from tecomp.lowering.pipeline import lower_all
from tecomp.scheduling.layout import stored_shape
from tecomp.scheduling.schedule import Schedule, create_schedule
from tecomp.scheduling.state import StageState


class Packing:
    """How one tensor of a schedule is stored.

    Attributes:
        tensor: it, in the shape of the computation.
    """

    def __init__(self, stage: StageState, output: int) -> None:
        self._stage = stage
        self.tensor = stage.op.output(output)

    def pack(self, array: Any) -> np.ndarray[Any, Any]:
        """`array`, in the shape of the computation, in the tensor's layout."""
        source = np.asarray(array, order="C")
        self._check(source, self.tensor.shape, "pack")
        stored = self.empty(self._sizes(source))
        self._packer(source, stored)
        return stored

    def unpack(self, array: Any, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """The elements of `array`, in the tensor's layout, in the shape of the computation."""
        sizes = self._sizes_of_stored(array, sizes)
        shape = tuple(_number(extent, sizes) for extent in self.tensor.shape)
        result = np.empty(shape, self.tensor.dtype.numpy)
        self._unpacker(array, result)
        return result

    def empty(self, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """An array in the tensor's layout, contents undefined."""
        shape = tuple(_number(extent, sizes) for extent in stored_shape(self._stage))
        return np.empty(shape, self.tensor.dtype.numpy)

    def _check(self, array: np.ndarray[Any, Any], shape: tuple[Extent, ...], who: str) -> None:
        expected = f"{self.tensor.dtype}[{', '.join(map(str, shape))}]"
        got = f"{array.dtype}[{', '.join(map(str, array.shape))}]"
        fits = array.ndim == len(shape) and all(
            not isinstance(extent, int) or extent == found
            for extent, found in zip(shape, array.shape, strict=True)
        )
        if not fits or array.dtype != self.tensor.dtype.numpy:
            raise CallError(
                f"{who}: {self.tensor.name} is {expected} in the computation, got {got}"
            )

    def _sizes(self, array: np.ndarray[Any, Any]) -> dict[str, int]:
        return {
            extent.name: found
            for extent, found in zip(self.tensor.shape, array.shape, strict=True)
            if isinstance(extent, Var)
        }

    def _sizes_of_stored(self, array: Any, given: Mapping[str, int]) -> dict[str, int]:
        sizes = dict(given) | {
            extent.name: found
            for extent, found in zip(stored_shape(self._stage), array.shape, strict=False)
            if isinstance(extent, Var)
        }
        needed = {
            node.name
            for extent in self.tensor.shape
            if not isinstance(extent, int)
            for node in walk(extent)
            if isinstance(node, Var)
        }
        if missing := sorted(needed - set(sizes)):
            raise CallError(
                f"unpack: {missing[0]} does not follow from the shape in which {self.tensor.name} "
                f"is stored; pass it by name, as in kernel.unpack(tensor, array, {missing[0]}=8)"
            )
        return sizes

    @cached_property
    def _packer(self) -> Kernel:
        source = placeholder(self.tensor.shape, self.tensor.dtype, f"{self.tensor.name}_logical")
        copy = _copy(source, self.tensor.name)
        schedule = create_schedule(copy)
        pad = self._stage.layout.pad_value
        for k, index_map in enumerate(self._stage.layout.maps):
            last = k == len(self._stage.layout.maps) - 1
            value: Any = None
            if last:
                value = const(0, self.tensor.dtype) if pad is None else _as_function(pad)
            schedule[copy].transform_layout(index_map, pad_value=value, loops="logical")
        return _compiled(schedule, [source, copy], f"pack_{self.tensor.name}")

    @cached_property
    def _unpacker(self) -> Kernel:
        stored = placeholder(self.tensor.shape, self.tensor.dtype, f"{self.tensor.name}_stored")
        copy = _copy(stored, self.tensor.name)
        schedule = create_schedule(copy)
        for index_map in self._stage.layout.maps:
            schedule[stored].transform_layout(index_map)
        return _compiled(schedule, [stored, copy], f"unpack_{self.tensor.name}")


def _copy(source: Tensor, name: str) -> Tensor:
    made = compute(source.shape, lambda *i: source[i if i else ()], name=name)
    assert isinstance(made, Tensor)
    return made


def _compiled(schedule: Schedule, args: list[Tensor], name: str) -> Kernel:
    lowered = lower_all(schedule, args, name if name.isidentifier() else "convert")
    return Kernel(lowered.final, lowered.signature.params)


def _as_function(pad: Any) -> Any:
    def value(*indices: Expr) -> Expr:
        filled: Expr = substitute(pad.value, dict(zip(pad.indices, indices, strict=True)))
        return filled

    return value


def _number(extent: Extent, sizes: Mapping[str, int]) -> int:
    if isinstance(extent, int):
        return extent
    values = {
        node: Const(sizes[node.name], node.dtype)
        for node in walk(extent)
        if isinstance(node, Var) and node.name in sizes
    }
    number = simplify(index_value(substitute(extent, values)))
    if not isinstance(number, Const):
        raise CallError(f"the extent {extent} is not known; pass the sizes in it by name")
    return int(number.value)


