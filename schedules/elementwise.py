"""Element-wise operators whose operands are broadcast as in NumPy.

Chains of element-wise operators are fused into one loop nest, which reads and writes each element
once.
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
    """Apply `function` element-wise to broadcast inputs.

    Args:
        function: Scalar function with one argument per input.
        inputs: Input tensors, whose axes are aligned from the last one. Axes that are missing or
            have extent 1 are broadcast. An extent that is known only at call time is taken to match
            any other.
        name: Name of the result.

    Raises:
        ValueError: If the shapes are not broadcast-compatible.

    >>> A, b = te.placeholder((4, 8), name="A"), te.placeholder((8,), name="b")
    >>> define(lambda x, y: x + y, A, b).shape
    (4, 8)
    """
    shape = broadcast_shape([x.shape for x in inputs])

    def value(*axes: te.Expr) -> te.Expr:
        return function(*(x(*_corresponding_index(x, axes)) for x in inputs))

    return te.compute(shape, value, name=name)


def broadcast_shape(shapes: Sequence[Sequence[Size]]) -> tuple[Size, ...]:
    """Return the common shape to which tensors are broadcast.

    Raises:
        ValueError: If the shapes are not broadcast-compatible.

    >>> broadcast_shape([(4, 1, 3), (5, 1), ()])
    (4, 5, 3)
    """
    result: list[Size] = []
    for dim in range(1, max((len(shape) for shape in shapes), default=0) + 1):
        extents = [shape[-dim] for shape in shapes if len(shape) >= dim]
        numbers = {extent for extent in extents if isinstance(extent, int) and extent != 1}
        if len(numbers) > 1:
            texts = ", ".join(str(tuple(shape)) for shape in shapes)
            sizes = ", ".join(map(str, sorted(numbers)))
            raise ValueError(
                f"shapes {texts} do not broadcast: axis -{dim} has extents {sizes}; make them "
                "equal, or 1"
            )
        symbols = [extent for extent in extents if not isinstance(extent, int)]
        result.append(next(iter([*numbers, *symbols]), 1))
    return tuple(reversed(result))


def _corresponding_index(x: te.Tensor, axes: Sequence[te.Expr]) -> list[te.Expr]:
    """Return the index into `x` that corresponds to the index `axes` of the result."""
    last = axes[len(axes) - len(x.shape) :]
    return [
        te.const(0) if is_one(extent) else axis for extent, axis in zip(x.shape, last, strict=True)
    ]


def schedule(output: te.Tensor, target: str | Path | Target) -> te.Schedule:
    """Return a schedule for the result of `define`, or for a chain of such results."""
    target = Target.of(target)
    s = te.create_schedule(output)
    inline_chain(s, output)
    if output.shape:
        row = run_length(output)
        stream(s, output, target, row)
        stream_large(s, output, target, row)
    return s


