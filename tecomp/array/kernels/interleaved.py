"""Complex results of a stage, whose parts lie side by side in memory."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any, TypeAlias

from tecomp import te
from tecomp.ir.language.dtype import DType
from tecomp.ptensor.values import Complex, Element

Elements: TypeAlias = Callable[..., list[Element]]
"""The elements of all results at an index."""

Program: TypeAlias = tuple[Any, Sequence[te.Tensor]]
"""What is built, a schedule or tensors, and its results."""

_BLOCK = 256
"""Elements whose parts are in memory of their own, near enough to be read again."""
_LANES = 8
"""Numbers of float64 in a vector of the widest processors, which functions are computed in."""


def in_pairs(sizes: Sequence[Any], elements: Elements) -> Program:
    """Both parts of an element one after the other."""

    def parts(*index: te.Expr) -> Any:
        *i, part = index
        return tuple([te.select(part == 0, z.re, z.im) for z in _complex(elements(*i))])

    results = _tuple(te.compute([*sizes, 2], parts, name="y"))
    return results, results


def in_blocks(sizes: Sequence[Any], elements: Elements) -> Program:
    """The parts of some elements by themselves, as vectors, and then these in pairs."""
    if not sizes:
        return in_pairs(sizes, elements)

    def parts(*i: te.Expr) -> Any:
        return tuple([part for z in _complex(elements(*i)) for part in (z.re, z.im)])

    apart = te.compute(sizes, parts, name="parts")

    def joined(*index: te.Expr) -> Any:
        *i, part = index
        pairs = zip(apart[::2], apart[1::2], strict=True)
        return tuple([te.select(part == 0, re(*i), im(*i)) for re, im in pairs])

    results = _tuple(te.compute([*sizes, 2], joined, name="y"))
    return _scheduled(apart, results), results


def _scheduled(apart: Sequence[te.Tensor], results: Sequence[te.Tensor]) -> te.Schedule:
    s = te.create_schedule(results[0].op)
    stage, block = s[results[0]], s[apart[0]]
    *_, last, pair = stage.op.axis
    outer, inner = stage.split(last, _BLOCK)
    _, few = stage.split(inner, _LANES * 4 // DType(results[0].dtype).bytes)
    stage.vectorize(stage.fuse(few, pair))
    block.compute_at(stage, outer)
    block.vectorize(block.split(block.op.axis[-1], _LANES)[1])
    stage.parallel(stage.op.axis[0] if len(stage.op.axis) > 2 else outer)
    return s


def _complex(values: Sequence[Element]) -> list[Complex]:
    return [value for value in values if isinstance(value, Complex)]


def _tuple(made: Any) -> tuple[te.Tensor, ...]:
    return made if isinstance(made, tuple) else (made,)
