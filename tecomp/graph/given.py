"""Layouts that somebody gives for values of a program: what they say is followed or refused."""

from __future__ import annotations

from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.graph.candidates import candidates
from tecomp.graph.sizes import sizes_of
from tecomp.layout.descriptions.layout import Layout
from tecomp.machine.descriptor import Target
from tecomp.schedules.scratchpads.placement import HOST, device_of


def check_given(tensor: Tensor, layout: Layout, target: Target) -> None:
    """Refuse a layout that a value cannot have.

    Raises:
        LayoutError: it is for another shape or type, in a memory where programs have no values, or
            stored in another way than these.
    """
    if layout.shape != tensor.shape or layout.dtype != tensor.dtype:
        raise LayoutError(
            f"layouts: {tensor.name} is {tensor.dtype}{list(tensor.shape)}, and its layout is "
            f"for {layout.dtype}{list(layout.shape)}; give one of its shape and type",
            kind="other-shape",
        )
    _check_memory(tensor, layout.memory, target)
    _check_storage(tensor, layout.storage.name, target)


def _check_memory(tensor: Tensor, memory: str, target: Target) -> None:
    device = device_of(target)
    if memory in (device, HOST):
        return  # A layout that names no memory is in that of the host.
    if memory not in target.memories:
        raise LayoutError(
            f"layouts: {tensor.name} is to be in memory `{memory}`, and target {target.name} has "
            f"none of that name; its memories are {', '.join(target.memories)}, and values of "
            f"programs are in `{device}`",
            kind="target-lacks",
        )
    raise LayoutError(
        f"layouts: {tensor.name} is to be in memory `{memory}` of target {target.name}, and values "
        f"of programs are in `{device}`; give memory={device!r}, or none",
        kind="demand",
    )


def _check_storage(tensor: Tensor, storage: str, target: Target) -> None:
    plain = str(tensor.dtype)
    if storage == plain:
        return
    usual = candidates(target, sizes_of(tensor), tensor.dtype)[0].storage.name
    if storage != usual:
        kept = " or ".join(dict.fromkeys((usual, plain)))
        raise LayoutError(
            f"layouts: {tensor.name} is to be stored as {storage}, and programs for target "
            f"{target.name} keep {plain} as {kept}; give a layout that stores it so",
            kind="demand",
        )
