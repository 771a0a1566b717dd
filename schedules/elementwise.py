"""A function of the elements of tensors, which are broadcast as NumPy broadcasts arrays.

Chains of such functions become one loop: each value is read, changed and written once.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path

from tecomp import Target, te
from tecomp.schedules.analysis.pointwise_chains import inline_chain, run_length
from tecomp.schedules.common import Size, is_one
from tecomp.schedules.tiling.traversal import stream, stream_large


def define(
    function: Callable[..., te.Expr], *inputs: te.Tensor, name: str = "elementwise"
) -> te.Tensor:
    """`function` of the elements of `inputs`.

    Args:
        function: takes an element of each input.
        inputs: tensors; the last axes belong together. An axis of extent 1, or one that a tensor
            lacks, is repeated. An extent that is only known at the call counts as equal to others.
        name: of the result.

    Raises:
        ValueError: two extents differ.

    >>> A, b = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="b")
    >>> define(lambda x, y: x + y, A, b).shape
    (4, 8)
    """
    shape = broadcast_shape([x.shape for x in inputs])

    def value(*axes: te.Expr) -> te.Expr:
        return function(*(x(*_own(x, axes)) for x in inputs))

    return te.compute(shape, value, name=name)


def broadcast_shape(shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """The shape that tensors of several shapes are broadcast to.

    Raises:
        ValueError: two extents differ.

    >>> broadcast_shape([(4, 1, 3), (5, 1), ()])
    (4, 5, 3)
    """
    result: list[Size] = []
    for back in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        extents = [shape[-back] for shape in shapes if len(shape) >= back]
        numbers = {extent for extent in extents if isinstance(extent, int) and extent != 1}
        if len(numbers) > 1:
            listed = ", ".join(str(tuple(shape)) for shape in shapes)
            several = ", ".join(map(str, sorted(numbers)))
            raise ValueError(
                f"shapes {listed} do not broadcast: axis -{back} has extents {several}; make them "
                "equal, or 1"
            )
        symbols = [extent for extent in extents if not isinstance(extent, int)]
        result.append(next(iter([*numbers, *symbols]), 1))
    return tuple(reversed(result))


def _own(x: te.Tensor, axes: Sequence[te.Expr]) -> list[te.Expr]:
    """The index of `x` at `axes` of the result."""
    last = axes[len(axes) - len(x.shape) :]
    return [
        te.const(0) if is_one(extent) else axis for extent, axis in zip(x.shape, last, strict=True)
    ]


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """A schedule for the result of `define`, and for chains of such results."""
    target = Target.of(target)
    s = te.create_schedule(output)
    inline_chain(s, output)
    if output.shape:
        row = run_length(output)
        stream(s, output, target, row)
        stream_large(s, output, target, row)
    return s


