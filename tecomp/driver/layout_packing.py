"""Conversion of arrays to and from layouts, and kernel calls with logical arrays."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any

import numpy as np

from tecomp.codegen.dispatch.array_interop import as_array, empty, is_in_layout, layout_tag_of
from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.dispatch.parameter import (
    ArgumentStorage,
    KernelParameter,
    Shape,
    array_text,
    make_parameter,
)
from tecomp.codegen.dispatch.shape_binding import Size, shape_value
from tecomp.codegen.llvm.ir_builder import Options
from tecomp.compute.define import copy_of, placeholder
from tecomp.compute.tensor import Tensor
from tecomp.driver.build_cache import BuildRequest, build_kernel
from tecomp.driver.static_shapes import extent_at
from tecomp.errors import CallError
from tecomp.ir.nodes.expr import Const, Expr, Var, const
from tecomp.ir.nodes.stmt import Buffer, Extent, IndexMapNode
from tecomp.ir.traversal.rewrite import nodes_of
from tecomp.layout.formats.layout_tags import LayoutTag, layout_tag_of_maps, row_major_tag
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.schedule import Schedule, create_schedule
from tecomp.scheduling.state import ScheduleState, StageState
from tecomp.scheduling.transform_layout import pad_function, physical_shape_of

if TYPE_CHECKING:
    from tecomp.relayout_kernels.box_copy import CopyEndpoint


class LayoutPacker:
    """Conversion between the logical shape and the layout of one tensor of a schedule.

    Attributes:
        tensor: Tensor with its logical shape.
    """

    def __init__(self, stage: StageState, output: int) -> None:
        self._stage = stage
        self.tensor = stage.op.output(output)

    def pack(self, array: Any) -> np.ndarray[Any, Any]:
        """Convert an array of logical shape to the layout of the tensor.

        Raises:
            CallError: If the array does not match the tensor, or is already in another layout.
        """
        self._check_mark(array, row_major_tag(len(self.tensor.shape)), "pack", {})
        source = np.asarray(as_array(array, "pack"), order="C")
        self._check_logical(source, "pack")
        if not self._stage.layout.maps:
            result = self.empty_of(source.shape)
            result[...] = source
            return result
        sizes = {
            extent: Size(number, f"axis {axis} of {self.tensor.name}")
            for axis, (extent, number) in enumerate(zip(self._shape, source.shape, strict=True))
            if isinstance(extent, Var)
        }
        shape = self._shape
        for index_map in self._stage.layout.maps:
            shape = index_map.map_shape(shape)
        stored = self.empty_of(shape_value(shape, sizes))
        self.copy_in(source, stored)
        return stored

    def copy_in(self, array: Any, stored: np.ndarray[Any, Any]) -> None:
        """Copy an array of logical shape into an array in the layout."""
        self._packer(array, stored)

    def copy_out(self, stored: np.ndarray[Any, Any], array: Any) -> None:
        """Copy an array in the layout into an array of logical shape."""
        self._unpacker(stored, array)

    def _check_mark(
        self, array: Any, expected: LayoutTag, call: str, sizes: Mapping[str, int]
    ) -> None:
        """Raise if an array is tagged with a layout that differs from `expected` for these sizes.

        Raises:
            CallError: If the layouts differ.
        """
        found = layout_tag_of(array)
        if found is None or found.formula == expected.formula:
            return
        shape = stored = tuple(array.shape)
        if call == "unpack":
            shape, stored = (self._numbers(extents, sizes, call)
                             for extents in (self.tensor.shape, physical_shape_of(self._stage)))
        if not is_in_layout(array, expected, shape, stored):
            raise CallError(
                "{caller}: the array is packed as {formula}, but {tensor} is {how} as "
                "{wanted_formula}; unpack it with the layout that packed it, or pass "
                "np.asarray(...) of it if the packing is intended",
                kind="packed", caller=call, formula=found.formula, tensor=self.tensor.name,
                how="given" if call == "pack" else "stored", wanted_formula=expected.formula,
            )

    def unpack(self, array: Any, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """Convert an array in the layout of the tensor to its logical shape.

        Raises:
            CallError: If the array does not match the layout, or a size is missing.
        """
        known = {**sizes, **_sizes_in(physical_shape_of(self._stage), array)}
        self._check_mark(array, self._mark, "unpack", known)
        if not self._stage.layout.maps:
            data = as_array(array, "unpack")
            if all(isinstance(extent, int) for extent in self.tensor.shape):
                self._check_logical(data, "unpack")
            if self._fits(data):
                return data.copy(order="C")
        result = np.empty(
            self._numbers(self.tensor.shape, known, "unpack"), self.tensor.dtype.numpy)
        self._unpacker(array, result)
        return result

    def empty(self, sizes: Mapping[str, int]) -> np.ndarray[Any, Any]:
        """Return an uninitialized array in the layout of the tensor, for sizes by name."""
        return self.empty_of(self._numbers(physical_shape_of(self._stage), sizes, "empty"))

    def empty_of(self, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
        """Return an uninitialized array of a physical shape, tagged with the layout."""
        return empty(shape, self.tensor.dtype.numpy, self._mark)

    @cached_property
    def _shape(self) -> tuple[Extent, ...]:
        """Logical shape; extents that are expressions of sizes are replaced by size variables."""
        return tuple(
            extent if isinstance(extent, int | Var) else Var(f"extent{axis}", extent.dtype)
            for axis, extent in enumerate(self.tensor.shape)
        )

    @cached_property
    def _mark(self) -> LayoutTag:
        return layout_tag_of_maps(len(self.tensor.shape), self._stage.layout.maps)

    def _fits(self, array: np.ndarray[Any, Any]) -> bool:
        """Return whether an array has the dtype and the logical shape of the tensor."""
        shape = self.tensor.shape
        return array.dtype == self.tensor.dtype.numpy and array.ndim == len(shape) and all(
            not isinstance(extent, int) or extent == found
            for extent, found in zip(shape, array.shape, strict=True)
        )

    def _check_logical(self, array: np.ndarray[Any, Any], call: str) -> None:
        if not self._fits(array):
            raise CallError(
                "{caller}: expected an array of {shape} for {tensor}, got {value_shape}; pass an "
                "array with that dtype and shape",
                kind="argument-mismatch", caller=call, tensor=self.tensor.name,
                shape=array_text(self.tensor.dtype, self.tensor.shape),
                value_shape=array_text(str(array.dtype), array.shape),
            )

    def _numbers(
        self, shape: tuple[Extent, ...], sizes: Mapping[str, int], call: str
    ) -> tuple[int, ...]:
        """Return the values of the extents of `shape` for `sizes`.

        Raises:
            CallError: If a size is missing or ambiguous, or is not a non-negative integer.
        """
        found = sorted(var.name for var in _sizes_of(shape))
        for name in found:
            if found.count(name) > 1:
                raise CallError(
                    "{caller}: the shape of {tensor} depends on {count} size variables named "
                    "{name}; use unique names",
                    kind="unbound-size", caller=call, tensor=self.tensor.name,
                    count=found.count(name), name=name,
                )
            if name not in sizes:
                params = "tensor, array" if call == "unpack" else "tensor"
                raise CallError(
                    "{caller}: the shape of {tensor} depends on {name}, which is unknown; pass it "
                    "as a keyword, e.g. kernel.{caller}({arguments}, {name}=8)",
                    kind="unbound-size", caller=call, tensor=self.tensor.name, name=name,
                    arguments=params,
                )
            size = sizes[name]
            if isinstance(size, bool) or not isinstance(size, int | np.integer) or size < 0:
                raise CallError(
                    "{caller}: {name} must be an integer >= 0, got {size!r}",
                    kind="invalid-value", caller=call, name=name, size=size,
                )
        known = {name: int(size) for name, size in sizes.items()}
        return tuple(extent_at(extent, known) or 0 for extent in shape)

    @cached_property
    def _sides(self) -> tuple[tuple[int, ...], CopyEndpoint, CopyEndpoint] | None:
        """Shape, logical side and stored side of the copy, or None for symbolic shapes."""
        shape = tuple(n for n in self.tensor.shape if isinstance(n, int))
        stored = tuple(n for n in physical_shape_of(self._stage) if isinstance(n, int))
        if len(shape) < len(self.tensor.shape):
            return None
        first, *others = self._stage.layout.maps
        index_map = IndexMap.lift(first)
        for other in others:
            index_map = index_map.then(other)
        axes = index_map.initial_indices
        from tecomp.relayout_kernels.box_copy import CopyEndpoint

        return (
            shape, CopyEndpoint(IndexMapNode(axes, axes), shape), CopyEndpoint(index_map, stored))

    def _copy(self, *, packs: bool, fill: int) -> Kernel | None:
        """Return the specialized copy kernel of a constant shape, or None for symbolic shapes."""
        if self._sides is None:
            return None
        shape, logical, stored = self._sides
        sides = (logical, stored) if packs else (stored, logical)
        # Import lazily: a kernel without layouts does not need copies.
        from tecomp.relayout_kernels.box_copy import CopySpec
        from tecomp.relayout_kernels.kernel import kernel_of

        copy = CopySpec(shape, self.tensor.dtype, *sides, fill)
        return kernel_of(copy, "pack" if packs else "unpack")

    @cached_property
    def _packer(self) -> Kernel:
        pad = self._stage.layout.pad_value
        if pad is None or isinstance(pad.value, Const):
            number = pad.value.value if pad and isinstance(pad.value, Const) else 0
            from tecomp.relayout_kernels.box_copy import bit_pattern

            fill = bit_pattern(np.array([number]).astype(self.tensor.dtype.numpy))
            if (kernel := self._copy(packs=True, fill=fill)) is not None:
                return kernel
        source, copy = self._copied()
        schedule = create_schedule(copy)
        for k, index_map in enumerate(self._stage.layout.maps):
            last = k == len(self._stage.layout.maps) - 1
            value: Any = None
            if last:
                value = const(0, self.tensor.dtype) if pad is None else pad_function(pad)
            schedule[copy].transform_layout(index_map, pad_value=value, loops="logical")
        return _compile(schedule, [source, copy], "pack")

    @cached_property
    def _unpacker(self) -> Kernel:
        if (kernel := self._copy(packs=False, fill=0)) is not None:
            return kernel
        stored, copy = self._copied()
        schedule = create_schedule(copy)
        for index_map in self._stage.layout.maps:
            schedule[stored].transform_layout(index_map)
        return _compile(schedule, [stored, copy], "unpack")

    def _copied(self) -> tuple[Tensor, Tensor]:
        """Return a placeholder like the tensor, and a tensor that copies the placeholder."""
        source = placeholder(self._shape, self.tensor.dtype, self.tensor.name)
        return source, copy_of(source)


def _compile(schedule: Schedule, args: list[Tensor], name: str) -> Kernel:
    request = BuildRequest(schedule, args, name, None, Options())
    return build_kernel(request, lambda compiled, _: Kernel(compiled))


def _sizes_in(shape: tuple[Extent, ...], array: Any) -> dict[str, int]:
    """Return the sizes that the shape of an array determines, without validating the shape."""
    found = getattr(array, "shape", ())
    if len(found) != len(shape):
        return {}
    return {
        extent.name: number
        for extent, number in zip(shape, found, strict=True)
        if isinstance(extent, Var)
    }


def _sizes_of(shape: tuple[Extent, ...]) -> set[Var]:
    extents = [extent for extent in shape if isinstance(extent, Expr)]
    return {node for e in extents for node in nodes_of(Var, e)}


def argument_storage(
    state: ScheduleState, args: Sequence[object], shapes: Sequence[Shape | None]
) -> dict[int, ArgumentStorage]:
    """Return the storage of each tensor argument of a scheduled kernel, by position.

    Args:
        state: State of the schedule.
        args: Arguments of the kernel.
        shapes: Logical shapes of the arguments, in terms of the variables of the function.
    """
    found = {}
    for position, tensor in enumerate(args):
        stage = state.find(tensor.op) if isinstance(tensor, Tensor) else None
        if stage is None or not isinstance(tensor, Tensor):
            continue
        maps = stage.layout.maps
        found[position] = ArgumentStorage(
            layout_tag_of_maps(len(tensor.shape), maps), shapes[position] if maps else None
        )
    return found


def row_major_argument_storage(args: Sequence[object]) -> dict[int, ArgumentStorage]:
    """Return the storage of each tensor argument of a kernel without layouts, by position."""
    return {
        position: ArgumentStorage(row_major_tag(len(tensor.shape)), None)
        for position, tensor in enumerate(args) if isinstance(tensor, Tensor)
    }


def logical_parameter(parameter: KernelParameter) -> KernelParameter:
    """Return the parameter that accepts an array of logical shape."""
    if parameter.logical is None:
        return parameter
    buffer = Buffer(parameter.buffer.name, parameter.logical, parameter.buffer.dtype)
    return make_parameter(
        parameter.position, parameter.kernel, buffer, buffer, is_written=parameter.is_written,
        stored=ArgumentStorage(row_major_tag(len(parameter.logical)), None),
    )


def call_with_logical_arrays(
    run: Callable[..., None],
    parameters: Sequence[KernelParameter],
    arguments: Sequence[Any],
    packings: Callable[[KernelParameter], LayoutPacker],
    sizes: Mapping[Var, Size],
) -> None:
    """Run a kernel on logical arrays, through temporary arrays in the layouts of the kernel.

    Args:
        run: Function that runs the kernel on arrays in their layouts.
        parameters: Parameters of the kernel.
        arguments: Validated arrays of logical shape.
        packings: Function from a parameter to the packing of its tensor.
        sizes: Values of the size variables of the kernel.
    """
    actual_args = list(arguments)
    mapped = [(p, packings(p)) for p in parameters if p.logical is not None]
    for parameter, packing in mapped:
        stored = packing.empty_of(shape_value(parameter.shape, sizes))
        if not parameter.is_written:
            packing.copy_in(arguments[parameter.position], stored)
        actual_args[parameter.position] = stored
    run(*actual_args)
    for parameter, packing in mapped:
        if parameter.is_written:
            packing.copy_out(actual_args[parameter.position], arguments[parameter.position])
