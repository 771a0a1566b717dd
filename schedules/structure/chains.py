"""Chains of formulas: what they read, and how many of their axes memory has in one run."""

from __future__ import annotations

from collections.abc import Container, Mapping
from dataclasses import dataclass
from typing import TypeAlias

from tecomp import Access, Affine, accesses, te
from tecomp.schedules.structure.sizes import same_shape
from tecomp.schedules.structure.stages import is_pointwise, is_same

_Place: TypeAlias = "tuple[int | None, frozenset[int]]"


@dataclass(frozen=True)
class Moved:
    """A read of a chain of formulas, in the axes of its result.

    Attributes:
        tensor: what is read.
        dims: for each of its dimensions the axis of the result that it is; None for another index.
        used: all axes that move it.
    """

    tensor: te.Tensor
    dims: tuple[int | None, ...]
    used: frozenset[int]


def inline_chain(s: te.Schedule, output: te.Tensor) -> None:
    """Compute what leads to `output` where it is used, but for stages of another shape.

    The elements of those are needed several times; they are computed once.
    """
    for stage in s.stages:
        if stage.op is not output.op and _is_link(stage.op.output(0), output):
            stage.compute_inline()


def _is_link(x: te.Tensor, output: te.Tensor) -> bool:
    return bool(is_pointwise(x) and same_shape(x.shape, output.shape))


def run_length(output: te.Tensor, apart: Container[te.Tensor] | None = None) -> int:
    """How many of the last axes can be walked through as one.

    Along those, each place that is read either moves on with the result or stays where it is. What
    is computed `apart` is in memory.
    """
    reads = reads_of_chain(output, apart)
    rank = len(output.shape)

    def moving(back: int) -> list[bool] | None:
        """Whether each read moves on along an axis; None if one moves in another way."""
        found = [_moves(read, rank - back, back) for read in reads]
        return None if None in found else [each is True for each in found]

    length = 1
    while length < rank and (next_ := moving(length + 1)) is not None and next_ == moving(1):
        length += 1
    return length


def reads_of_chain(
    output: te.Tensor, apart: Container[te.Tensor] | None = None
) -> list[Moved]:
    """What `output` reads, also through stages that are computed where they are used.

    Args:
        output: the result of the chain.
        apart: formulas that are not computed where they are used, as all others are; None where
            those of another shape, or that are read elsewhere, are not.

    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> B = te.compute((6, 5, 4), lambda i, j, k: A[k, j, i], name="B")
    >>> C = te.compute((5, 6, 4), lambda i, j, k: B[j, i, k], name="C")
    >>> [(read.tensor.name, read.dims) for read in reads_of_chain(C, apart=[])]
    [('A', (2, 0, 1))]
    """
    whole: tuple[_Place, ...] = tuple((k, frozenset({k})) for k in range(len(output.shape)))
    found: list[Moved] = []
    todo = [(output, whole)]
    seen = set(todo)
    while todo:
        x, places = todo.pop()
        own = dict(zip(x.op.axis, places, strict=True))
        for read in accesses(x).reads:
            at = tuple(_place(index, own) for index in read.index)
            if _is_here(read, x, output, apart):
                if (read.tensor, at) not in seen:
                    seen.add((read.tensor, at))
                    todo.append((read.tensor, at))
                continue
            dims = tuple(dim for dim, _ in at)
            used = frozenset[int]().union(*(axes for _, axes in at))
            found.append(Moved(read.tensor, dims, used))
    return found


def _is_here(
    read: Access, x: te.Tensor, output: te.Tensor, apart: Container[te.Tensor] | None
) -> bool:
    """Whether what `x` reads is computed where it is used."""
    if apart is not None:
        return bool(is_pointwise(read.tensor) and read.tensor not in apart)
    return _is_link(read.tensor, output) and is_same(read.axes, x.op.axis)


def _place(index: Affine, own: Mapping[te.IterVar, _Place]) -> _Place:
    """Which axis of a result an index is, and all that move it."""
    dim = None if index.axis is None or index.axis not in own else own[index.axis][0]
    used = (own[axis][1] for axis in index.axes if axis in own)
    return dim, frozenset[int]().union(*used)


def repeated_work(output: te.Tensor, axis: int, apart: Container[te.Tensor] | None = None) -> int:
    """Operations of a chain that give the same for each value of an axis of its result.

    What is computed `apart` does not count.

    >>> A, b = te.placeholder((9, 8), name="A"), te.placeholder((8,), name="b")
    >>> B = te.compute((9, 8), lambda i, j: A[i, j] * te.exp(b[j]), name="B")
    >>> repeated_work(B, 0), repeated_work(B, 1)
    (10, 0)
    """
    links, todo = {output}, [output]
    while todo:
        x = todo.pop()
        found = {
            read.tensor for read in accesses(x).reads
            if (apart is None or read.tensor not in apart) and _is_link(read.tensor, output)
            and is_same(read.axes, x.op.axis)
        }
        todo += found - links
        links |= found
    return sum(accesses(x).repeated[axis] for x in links)


def _moves(read: Moved, axis: int, back: int) -> bool | None:
    """Whether a read moves on as an axis of the result does; None if it moves in another way."""
    if axis not in read.used:
        return False
    return True if len(read.dims) >= back and read.dims[-back] == axis else None
