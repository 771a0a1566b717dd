"""What `binds` asks of the arguments of a kernel: the strides that their arrays have."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TypeAlias

from tecomp.compute.tensor import Tensor
from tecomp.errors import LowerError
from tecomp.ir.algebra.extents import product
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import index_value
from tecomp.ir.language.given import dictionary_of
from tecomp.ir.language.stmt import Buffer, Extent

Strides: TypeAlias = "tuple[tuple[Extent, ...] | None, ...]"
"""Of each argument, in elements; None where its array has no gaps, and () if none has any."""


def strides_of(
    binds: Mapping[Tensor, Buffer] | None, args: Sequence[object], where: str
) -> Strides:
    """The strides that `te.decl_buffer`s in `binds` say for some of the arguments.

    Strides that arrays without gaps have in any case are not listed.

    Raises:
        LowerError: a buffer is for no argument, or declares something else than it is.
    """
    asked = dictionary_of(
        binds, Tensor, Buffer, f"{where}: binds", "give a te.decl_buffer for each tensor",
        LowerError,
    )
    if not asked or not isinstance(args, list | tuple):
        return ()
    for tensor, buffer in asked.items():
        if not any(tensor == arg for arg in args if isinstance(arg, Tensor)):
            raise LowerError(
                f"{where}: binds has {tensor.name}, which is no argument; leave it out, or add it "
                "to the arguments",
                kind="argument-list",
            )
        _check_alike(tensor, buffer, f"{where}: binds: {tensor.name}")
    found = tuple(
        _gaps(asked[arg]) if isinstance(arg, Tensor) and arg in asked else None for arg in args
    )
    return found if any(strides is not None for strides in found) else ()


def _check_alike(tensor: Tensor, buffer: Buffer, where: str) -> None:
    """Refuse a buffer that is not one of the tensor.

    Raises:
        LowerError: its shape, type or memory are others.
    """
    alike = len(tensor.shape) == len(buffer.shape) and all(map(_same, tensor.shape, buffer.shape))
    if not alike or buffer.dtype != tensor.dtype or buffer.scope not in ("", "global"):
        raise LowerError(
            f"{where}: `{buffer}` is declared for {tensor!r}; declare its shape and type, and "
            "leave its memory to set_scope",
            kind="contrary-options",
        )
    if buffer.strides is not None and buffer.dtype.lanes > 1:
        raise LowerError(
            f"{where}: strides count numbers, and an element is a {buffer.dtype}; declare a tensor "
            f"of {buffer.dtype.scalar} with an axis more, or leave the strides out"
        )


def _gaps(buffer: Buffer) -> tuple[Extent, ...] | None:
    """The strides of a buffer, if they are not those of an array without gaps."""
    compact = [product(buffer.shape[axis + 1 :]) for axis in range(len(buffer.shape))]
    if buffer.strides is None or all(map(_same, buffer.strides, compact)):
        return None
    return buffer.strides


def _same(a: Extent, b: Extent) -> bool:
    return same(index_value(a), index_value(b))
