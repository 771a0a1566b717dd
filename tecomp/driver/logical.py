"""Calls with arrays in the shape of the computation, for kernels that store them in layouts."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from tecomp.codegen.calls.parameter import Parameter, Shape, Stored, make_parameter
from tecomp.codegen.calls.sizes import Size, shape_value
from tecomp.compute.tensor import Tensor
from tecomp.driver.packing import Packing
from tecomp.ir.language.expr import Var
from tecomp.ir.language.stmt import Buffer
from tecomp.layout.placement.marks import mark_of_maps, plain_mark
from tecomp.scheduling.state import State


def stored_arguments(
    state: State, args: Sequence[object], shapes: Sequence[Shape | None]
) -> dict[int, Stored]:
    """How each tensor among the arguments of a schedule's kernel is stored, by position.

    `shapes` are those of the computation, in the variables of the kernel's function.
    """
    found = {}
    for position, tensor in enumerate(args):
        stage = state.find(tensor.op) if isinstance(tensor, Tensor) else None
        if stage is None or not isinstance(tensor, Tensor):
            continue
        maps = stage.layout.maps
        found[position] = Stored(
            mark_of_maps(len(tensor.shape), maps), shapes[position] if maps else None
        )
    return found


def plain_arguments(args: Sequence[object]) -> dict[int, Stored]:
    """The same where no tensor has a layout."""
    return {
        position: Stored(plain_mark(len(tensor.shape)), None)
        for position, tensor in enumerate(args) if isinstance(tensor, Tensor)
    }


def logical_parameter(parameter: Parameter) -> Parameter:
    """The same parameter for an array in the shape of the computation."""
    if parameter.logical is None:
        return parameter
    buffer = Buffer(parameter.buffer.name, parameter.logical, parameter.buffer.dtype)
    return make_parameter(
        parameter.position, parameter.kernel, buffer, buffer, is_written=parameter.is_written,
        stored=Stored(plain_mark(len(parameter.logical)), None),
    )


def run_logical(
    run: Callable[..., None],
    parameters: Sequence[Parameter],
    arguments: Sequence[Any],
    packings: Callable[[Parameter], Packing],
    sizes: Mapping[Var, Size],
) -> None:
    """Run a kernel on arrays of its own in place of those that have a layout.

    Args:
        run: takes arrays in their layouts.
        parameters: of the kernel.
        arguments: arrays in the shape of the computation, which fit.
        packings: how the tensor of a parameter is stored.
        sizes: the size variables of the kernel's function.
    """
    given = list(arguments)
    mapped = [(p, packings(p)) for p in parameters if p.logical is not None]
    for parameter, packing in mapped:
        stored = packing.empty_of(shape_value(parameter.shape, sizes))
        if not parameter.is_written:
            packing.copy_in(arguments[parameter.position], stored)
        given[parameter.position] = stored
    run(*given)
    for parameter, packing in mapped:
        if parameter.is_written:
            packing.copy_out(given[parameter.position], arguments[parameter.position])
