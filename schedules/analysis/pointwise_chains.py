"""Chains of pointwise stages, and subexpressions worth materializing."""

from __future__ import annotations

from collections.abc import Container, Iterator, Mapping, Sequence
from dataclasses import dataclass
from types import MappingProxyType
from typing import TypeAlias

from tecomp import Access, Affine, accesses, computes_terms, te
from tecomp.schedules.analysis.stages import is_pointwise, is_same
from tecomp.schedules.common import Size, is_one, product, same_shape

Strides: TypeAlias = "Mapping[te.Tensor, Sequence[Size]]"
"""For tensors of which a caller passes arrays with strides: those, in elements."""
NO_STRIDES: Strides = MappingProxyType({})


@dataclass(frozen=True)
class Moved:
    """A read of a chain of formulas, in the axes of its result.

    Attributes:
        tensor: what is read.
        dims: for each of its dimensions the axis of the result that it is; None for another index.
        used: all axes that move it.
        strides: of the dimensions, in elements; None where memory has no gaps.
    """

    tensor: te.Tensor
    dims: tuple[int | None, ...]
    used: frozenset[int]
    strides: tuple[Size, ...] | None = None

    @property
    def along(self) -> int | None:
        """The axis of the result that its memory runs along; None if there is none, or several."""
        if self.strides is None:
            return self.dims[-1] if self.dims else None
        dims = [dim for dim, step in zip(self.dims, self.strides, strict=True) if is_one(step)]
        return dims[0] if len(dims) == 1 else None


def inline_chain(s: te.Schedule, output: te.Tensor) -> None:
    """Compute what leads to `output` where it is used, but for stages of another shape.

    The elements of those are needed several times; they are computed once.
    """
    for stage in s.stages:
        if stage.op is not output.op and _is_link(stage.op.output(0), output):
            stage.compute_inline()


def _is_link(x: te.Tensor, output: te.Tensor) -> bool:
    return bool(is_pointwise(x) and same_shape(x.shape, output.shape))


def run_length(
    output: te.Tensor, apart: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES
) -> int:
    """How many of the last axes can be walked through as one.

    Along those, each place that is read either moves on with the result or stays where it is. What
    is computed `apart` is in memory.
    """
    reads = reads_of_chain(output, apart, strides)
    rank = len(output.shape)
    if output in strides:
        return 1

    def moving(back: int) -> list[bool] | None:
        """Whether each read moves on along an axis; None if one moves in another way."""
        found = [_moves(read, rank - back, back) for read in reads]
        return None if None in found else [each is True for each in found]

    length = 1
    while length < rank and (next_ := moving(length + 1)) is not None and next_ == moving(1):
        length += 1
    return length


def lies_apart(
    output: te.Tensor, apart: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES
) -> bool:
    """Whether neighbours of the result are none in its memory, or in that of what it reads.

    They are where the last stride of an array is the number 1.

    >>> A, B = (te.placeholder((4, 8), name=name) for name in "AB")
    >>> C = te.compute((4, 8), lambda i, j: A[i, j] + B[i, j], name="C")
    >>> s = te.var("s")
    >>> lies_apart(C, None, {A: (s, s)}), lies_apart(C, None, {A: (s, 1), B: (s, 0)})
    (True, False)
    """
    last = len(output.shape) - 1
    if output in strides and not is_one(strides[output][-1]):
        return True
    reads = reads_of_chain(output, apart, strides) if strides else []
    return any(
        read.strides is not None and last in read.used and read.along != last for read in reads
    )


def reads_of_chain(
    output: te.Tensor, apart: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES
) -> list[Moved]:
    """What `output` reads, also through stages that are computed where they are used.

    Args:
        output: the result of the chain.
        apart: formulas that are not computed where they are used, as all others are; None where
            those of another shape, or that are read elsewhere, are not.
        strides: of what has gaps in memory.

    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> B = te.compute((6, 5, 4), lambda i, j, k: A[k, j, i], name="B")
    >>> C = te.compute((5, 6, 4), lambda i, j, k: B[j, i, k], name="C")
    >>> [(read.tensor.name, read.dims) for read in reads_of_chain(C, apart=[])]
    [('A', (2, 0, 1))]
    >>> D = te.compute((120,), lambda i: A[i // 5 % 4, i % 5, i // 20], name="D")
    >>> E = te.compute((6, 20), lambda i, j: D[20 * i + j], name="E")
    >>> [(read.tensor.name, read.dims) for read in reads_of_chain(E, apart=[])]
    [('A', (None, None, 0))]
    """
    place = {axis: k for k, axis in enumerate(output.op.axis)}
    found: list[Moved] = []
    for x, own in _links(output, apart):
        for read in accesses(x).reads:
            if not _is_here(read, x, output, apart):
                index = read.at(own).index if own else read.index
                found.append(_moved(read.tensor, index, place, strides.get(read.tensor)))
    return found


def are_counted(output: te.Tensor, last: int, apart: Container[te.Tensor] | None = None) -> bool:
    """Whether numbers of some of its last axes are values of `output`, or of what leads to it.

    What is computed `apart` does not count.

    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.compute((4, 8), lambda i, j: te.select(i < j, A[i, j], 0.0), name="B")
    >>> are_counted(B, 2), are_counted(te.compute((4, 8), lambda i, j: A[i, j] + 1.0), 2)
    (True, False)
    """
    axes = {*output.op.axis[len(output.op.axis) - last :]}
    for x, own in _links(output, apart):
        for axis in accesses(x).counted:
            if not axes.isdisjoint(own[axis].axes if own else (axis,)):
                return True
    return False


def _links(
    output: te.Tensor, apart: Container[te.Tensor] | None
) -> Iterator[tuple[te.Tensor, Mapping[te.IterVar, Affine]]]:
    """What is computed with `output`, and where: its axes, of others than `output` itself."""
    todo: list[tuple[te.Tensor, Mapping[te.IterVar, Affine]]] = [(output, {})]
    seen: set[tuple[te.Tensor, tuple[str, ...]]] = set()
    while todo:
        x, own = todo.pop()
        yield x, own
        for read in accesses(x).reads:
            if _is_here(read, x, output, apart):
                index = read.at(own).index if own else read.index
                key = read.tensor, tuple(str(each.value) for each in index)
                if key not in seen:
                    seen.add(key)
                    todo.append((read.tensor, dict(zip(read.tensor.op.axis, index, strict=True))))


def _moved(
    x: te.Tensor, index: Sequence[Affine], place: Mapping[te.IterVar, int],
    strides: Sequence[Size] | None,
) -> Moved:
    """A read of `x` at an index; a dimension with a stride of 0 is not moved by anything."""
    still = [isinstance(step, int) and step == 0 for step in strides or ()] or [False] * len(index)
    dims = tuple(
        None if each.axis is None or is_still else place.get(each.axis)
        for each, is_still in zip(index, still, strict=True)
    )
    used = {
        place[axis] for each, is_still in zip(index, still, strict=True) if not is_still
        for axis in each.axes if axis in place
    }
    return Moved(x, dims, frozenset(used), None if strides is None else tuple(strides))


def _is_here(
    read: Access, x: te.Tensor, output: te.Tensor, apart: Container[te.Tensor] | None
) -> bool:
    """Whether what `x` reads is computed where it is used."""
    if apart is not None:
        return bool(is_pointwise(read.tensor) and read.tensor not in apart)
    return _is_link(read.tensor, output) and is_same(read.axes, x.op.axis)


def work_of_chain(output: te.Tensor, apart: Container[te.Tensor] | None = None) -> int:
    """Operations of a chain, each formula once; see `reads_of_chain`.

    >>> A = te.placeholder((9, 8), name="A")
    >>> B = te.compute((9, 8), lambda i, j: A[i, j] * 2.0 + 1.0, name="B")
    >>> C = te.compute((9, 8), lambda i, j: te.exp(B[i, j]), name="C")
    >>> work_of_chain(C, apart=[]), work_of_chain(C, apart=[B])
    (12, 10)
    """
    links, todo = {output}, [output]
    while todo:
        x = todo.pop()
        here = {read.tensor for read in accesses(x).reads if _is_here(read, x, output, apart)}
        todo += here - links
        links |= here
    return sum(accesses(x).work for x in links)


def longest_path(output: te.Tensor, apart: Container[te.Tensor] | None = None) -> int:
    """Operations of a chain that wait for each other, at most; see `reads_of_chain`.

    >>> A = te.placeholder((9, 8), name="A")
    >>> B = te.compute((9, 8), lambda i, j: te.exp(A[i, j]), name="B")
    >>> C = te.compute((9, 8), lambda i, j: te.log(B[i, j]) + te.tanh(A[i, j]), name="C")
    >>> longest_path(C, apart=[]), longest_path(C, apart=[B])
    (21, 11)
    """
    found: dict[te.Tensor, int] = {}
    todo = [output]
    while todo:
        x = todo[-1]
        here = {read.tensor for read in accesses(x).reads if _is_here(read, x, output, apart)}
        if missing := here - found.keys():
            todo += missing
            continue
        paths = accesses(x).paths
        ways = [length + found[read] for read, length in paths.items() if read in here]
        found[todo.pop()] = max([paths[None], *ways])
    return found[output]


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
    if read.strides is not None and back > 1:
        return None
    return True if len(read.dims) >= back and read.dims[-back] == axis else None


_USES = 4
"""How often an element has to be used: it is stored and loaded once for all."""


def factors_to_keep(x: te.Tensor) -> list[list[int]]:
    """The numbers of factors of a sum's terms that are to be computed first: for each such stage.

    The factors are put together to two, so that the sum is one of products of two elements. The
    stages are made one after the other, and numbers are those at that time.

    >>> A, B = te.placeholder((8, 16), name="A"), te.placeholder((16, 9), name="B")
    >>> k = te.reduce_axis((0, 16), name="k")
    >>> C = te.compute((8, 9), lambda i, j: te.sum(te.tanh(A[i, k]) * B[k, j], axis=k), name="C")
    >>> factors_to_keep(C)
    [[0]]
    """
    if not x.op.reduce_axis or x.op.num_outputs > 1:
        return []
    found = accesses(x)
    if not found.reducer or not found.is_plain or len(found.written) < 2:
        return []
    left, kept = list(range(len(found.written))), []
    for group in _two([part.axes for part in found.written], found.axis):
        is_formula = len(group) > 1 or not _is_direct(found.written[group[0]].element)
        own = frozenset[te.IterVar]().union(*(found.written[k].axes for k in group))
        uses = product(axis.extent for axis in found.axis if axis not in own)
        if is_formula and own and (not isinstance(uses, int) or uses >= _USES):
            kept.append([left.index(k) for k in group])
            left = [k for k in left if k == group[0] or k not in group]
    return kept


def _two(parts: Sequence[frozenset[te.IterVar]], axes: Sequence[te.IterVar]) -> list[list[int]]:
    """The numbers of all parts in two groups, each of which moves along an axis of its own.

    The rest goes to where it makes no difference to what that depends on; where one depends on
    more, there are no two groups.
    """
    order = sorted(range(len(parts)), key=lambda k: -len(parts[k]))
    first = order[0]
    second = next(
        (k for k in order[1:] if any(axis in parts[k] - parts[first] for axis in axes)), None
    )
    if second is None or not any(axis in parts[first] - parts[second] for axis in axes):
        return []
    groups = [[first], [second]]
    for k in order:
        if k in (first, second):
            continue
        group = next((g for g in reversed(groups) if parts[k] <= parts[g[0]]), None)
        if group is None:
            return []
        group.append(k)
    return [sorted(group) for group in groups]


def _is_direct(element: Access | None) -> bool:
    """Whether something is an element with an index for each axis, or for a window of two."""
    return element is not None and all(
        index.is_window or (len(index.terms) == 1 and index.is_affine and index.terms[0][1] == 1)
        for index in element.index
    )


_FREE = 4
"""Operations for each element that are no more than storing and loading it."""


def shared_terms(stages: Sequence[te.Tensor]) -> dict[te.Tensor, list[te.Tensor]]:
    """The reductions whose terms take long, each with other stages that compute those, too.

    A stage is named once: what it reads of one reduction's terms, it computes no more.

    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    >>> C = te.compute((4,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
    >>> D = te.compute((4, 8), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
    >>> {x.name: [y.name for y in readers] for x, readers in shared_terms([C, D]).items()}
    {'C': ['D']}
    """
    found: dict[te.Tensor, list[te.Tensor]] = {}
    left = [x for x in stages if accesses(x).work > _FREE]
    for x in stages:
        if x not in left or accesses(x).reducer is None or not accesses(x).is_plain:
            continue
        readers = [y for y in left if y is not x and computes_terms(y, x)]
        if readers:
            found[x] = readers
            left = [y for y in left if y is not x and y not in readers]
    return found
