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
"""Strides in elements of the tensors for which a caller passes strided arrays."""
NO_STRIDES: Strides = MappingProxyType({})


@dataclass(frozen=True)
class ChainRead:
    """Read of a chain of pointwise stages, in terms of the axes of its result.

    Attributes:
        tensor: Tensor that is read.
        dims: Axis of the result for each dimension of the tensor; None for any other index.
        used: All axes that the index depends on.
        strides: Strides of the dimensions in elements; None if the tensor is dense in memory.
    """

    tensor: te.Tensor
    dims: tuple[int | None, ...]
    used: frozenset[int]
    strides: tuple[Size, ...] | None = None

    @property
    def contiguous_axis(self) -> int | None:
        """Axis of the result along which the memory is contiguous; None if not exactly one."""
        if self.strides is None:
            return self.dims[-1] if self.dims else None
        dims = [dim for dim, step in zip(self.dims, self.strides, strict=True) if is_one(step)]
        return dims[0] if len(dims) == 1 else None


def inline_chain(s: te.Schedule, output: te.Tensor) -> None:
    """Inline the pointwise stages that lead to `output` and have its shape.

    Elements of stages of another shape are used several times, so they are computed once.
    """
    for stage in s.stages:
        if stage.op is not output.op and _is_chain_stage(stage.op.output(0), output):
            stage.compute_inline()


def _is_chain_stage(x: te.Tensor, output: te.Tensor) -> bool:
    return bool(is_pointwise(x) and same_shape(x.shape, output.shape))


def run_length(
    output: te.Tensor, roots: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES
) -> int:
    """Return the number of trailing axes that can be fused into one loop.

    Along these axes, each read either advances with the result or is invariant. Stages in `roots`
    are in memory.
    """
    reads = reads_of_chain(output, roots, strides)
    rank = len(output.shape)
    if output in strides:
        return 1

    def moving(from_end: int) -> list[bool] | None:
        """Return whether each read advances along an axis; None if one moves in another way."""
        found = [_moves(read, rank - from_end, from_end) for read in reads]
        return None if None in found else [flag is True for flag in found]

    length = 1
    while length < rank and (next_ := moving(length + 1)) is not None and next_ == moving(1):
        length += 1
    return length


def is_strided(
    output: te.Tensor, roots: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES
) -> bool:
    """Return whether the result or an input is strided along the last axis.

    An array is contiguous along the last axis if its stride there is the int 1.

    >>> A, B = (te.placeholder((4, 8), name=name) for name in "AB")
    >>> C = te.compute((4, 8), lambda i, j: A[i, j] + B[i, j], name="C")
    >>> s = te.var("s")
    >>> is_strided(C, None, {A: (s, s)}), is_strided(C, None, {A: (s, 1), B: (s, 0)})
    (True, False)
    """
    last = len(output.shape) - 1
    if output in strides and not is_one(strides[output][-1]):
        return True
    reads = reads_of_chain(output, roots, strides) if strides else []
    return any(
        read.strides is not None and last in read.used and read.contiguous_axis != last
        for read in reads
    )


def reads_of_chain(
    output: te.Tensor, roots: Container[te.Tensor] | None = None, strides: Strides = NO_STRIDES
) -> list[ChainRead]:
    """Return the reads of `output`, including those through stages that are inlined.

    Args:
        output: Result of the chain.
        roots: Pointwise stages that are not inlined, whereas all others are. If None, stages of
            another shape or with other indices are not inlined.
        strides: Strides of the tensors that are not dense in memory.

    >>> A = te.placeholder((4, 5, 6), name="A")
    >>> B = te.compute((6, 5, 4), lambda i, j, k: A[k, j, i], name="B")
    >>> C = te.compute((5, 6, 4), lambda i, j, k: B[j, i, k], name="C")
    >>> [(read.tensor.name, read.dims) for read in reads_of_chain(C, roots=[])]
    [('A', (2, 0, 1))]
    >>> D = te.compute((120,), lambda i: A[i // 5 % 4, i % 5, i // 20], name="D")
    >>> E = te.compute((6, 20), lambda i, j: D[20 * i + j], name="E")
    >>> [(read.tensor.name, read.dims) for read in reads_of_chain(E, roots=[])]
    [('A', (None, None, 0))]
    """
    dim_of = {axis: k for k, axis in enumerate(output.op.axis)}
    found: list[ChainRead] = []
    for x, axis_index in _chain_stages(output, roots):
        for read in accesses(x).reads:
            if not _is_inlined(read, x, output, roots):
                index = read.at(axis_index).index if axis_index else read.index
                found.append(_read_at(read.tensor, index, dim_of, strides.get(read.tensor)))
    return found


def are_counted(output: te.Tensor, last: int, roots: Container[te.Tensor] | None = None) -> bool:
    """Return whether the chain uses the values of some of the last `last` axes of `output`.

    Stages in `roots` do not count.

    >>> A = te.placeholder((4, 8), name="A")
    >>> B = te.compute((4, 8), lambda i, j: te.select(i < j, A[i, j], 0.0), name="B")
    >>> are_counted(B, 2), are_counted(te.compute((4, 8), lambda i, j: A[i, j] + 1.0), 2)
    (True, False)
    """
    axes = {*output.op.axis[len(output.op.axis) - last :]}
    for x, axis_index in _chain_stages(output, roots):
        for axis in accesses(x).counted:
            if not axes.isdisjoint(axis_index[axis].axes if axis_index else (axis,)):
                return True
    return False


def _chain_stages(
    output: te.Tensor, roots: Container[te.Tensor] | None
) -> Iterator[tuple[te.Tensor, Mapping[te.IterVar, Affine]]]:
    """Yield the stages computed with `output`, each with its index; empty for `output`."""
    stack: list[tuple[te.Tensor, Mapping[te.IterVar, Affine]]] = [(output, {})]
    visited: set[tuple[te.Tensor, tuple[str, ...]]] = set()
    while stack:
        x, axis_index = stack.pop()
        yield x, axis_index
        for read in accesses(x).reads:
            if _is_inlined(read, x, output, roots):
                index = read.at(axis_index).index if axis_index else read.index
                key = read.tensor, tuple(str(entry.value) for entry in index)
                if key not in visited:
                    visited.add(key)
                    stack.append((read.tensor, dict(zip(read.tensor.op.axis, index, strict=True))))


def _read_at(
    x: te.Tensor, index: Sequence[Affine], dim_of: Mapping[te.IterVar, int],
    strides: Sequence[Size] | None,
) -> ChainRead:
    """Return a read of `x` at an index; a dimension of stride 0 depends on no axis."""
    fixed = [isinstance(step, int) and step == 0 for step in strides or ()] or [False] * len(index)
    dims = tuple([
        None if affine.axis is None or is_fixed else dim_of.get(affine.axis)
        for affine, is_fixed in zip(index, fixed, strict=True)
    ])
    used_dims = {
        dim_of[axis] for affine, is_fixed in zip(index, fixed, strict=True) if not is_fixed
        for axis in affine.axes if axis in dim_of
    }
    return ChainRead(x, dims, frozenset(used_dims), None if strides is None else tuple(strides))


def _is_inlined(
    read: Access, x: te.Tensor, output: te.Tensor, roots: Container[te.Tensor] | None
) -> bool:
    """Return whether the tensor that `x` reads is inlined."""
    if roots is not None:
        return bool(is_pointwise(read.tensor) and read.tensor not in roots)
    return _is_chain_stage(read.tensor, output) and is_same(read.axes, x.op.axis)


def work_of_chain(output: te.Tensor, roots: Container[te.Tensor] | None = None) -> int:
    """Return the operations of a chain, counting each stage once; see `reads_of_chain`.

    >>> A = te.placeholder((9, 8), name="A")
    >>> B = te.compute((9, 8), lambda i, j: A[i, j] * 2.0 + 1.0, name="B")
    >>> C = te.compute((9, 8), lambda i, j: te.exp(B[i, j]), name="C")
    >>> work_of_chain(C, roots=[]), work_of_chain(C, roots=[B])
    (12, 10)
    """
    links, worklist = {output}, [output]
    while worklist:
        x = worklist.pop()
        inputs = {read.tensor for read in accesses(x).reads if _is_inlined(read, x, output, roots)}
        worklist += inputs - links
        links |= inputs
    return sum([accesses(x).work for x in links])


def longest_path(output: te.Tensor, roots: Container[te.Tensor] | None = None) -> int:
    """Return the operations on the longest dependence path of a chain; see `reads_of_chain`.

    >>> A = te.placeholder((9, 8), name="A")
    >>> B = te.compute((9, 8), lambda i, j: te.exp(A[i, j]), name="B")
    >>> C = te.compute((9, 8), lambda i, j: te.log(B[i, j]) + te.tanh(A[i, j]), name="C")
    >>> longest_path(C, roots=[]), longest_path(C, roots=[B])
    (21, 11)
    """
    found: dict[te.Tensor, int] = {}
    worklist = [output]
    while worklist:
        x = worklist[-1]
        inputs = {read.tensor for read in accesses(x).reads if _is_inlined(read, x, output, roots)}
        if missing := inputs - found.keys():
            worklist += missing
            continue
        paths = accesses(x).paths
        lengths = [length + found[read] for read, length in paths.items() if read in inputs]
        found[worklist.pop()] = max([paths[None], *lengths])
    return found[output]


def invariant_cost(output: te.Tensor, axis: int, roots: Container[te.Tensor] | None = None) -> int:
    """Return the operations of a chain that are invariant along an axis of its result.

    Stages in `roots` do not count.

    >>> A, b = te.placeholder((9, 8), name="A"), te.placeholder((8,), name="b")
    >>> B = te.compute((9, 8), lambda i, j: A[i, j] * te.exp(b[j]), name="B")
    >>> invariant_cost(B, 0), invariant_cost(B, 1)
    (10, 0)
    """
    links, worklist = {output}, [output]
    while worklist:
        x = worklist.pop()
        found = {
            read.tensor for read in accesses(x).reads
            if (roots is None or read.tensor not in roots) and _is_chain_stage(read.tensor, output)
            and is_same(read.axes, x.op.axis)
        }
        worklist += found - links
        links |= found
    return sum([accesses(x).repeated[axis] for x in links])


def _moves(read: ChainRead, axis: int, from_end: int) -> bool | None:
    """Return whether a read advances along an axis of the result; None if it moves otherwise."""
    if axis not in read.used:
        return False
    if read.strides is not None and from_end > 1:
        return None
    return True if len(read.dims) >= from_end and read.dims[-from_end] == axis else None


_USES = 4
"""Minimum uses of an element for which storing and loading it pays."""


def factors_to_materialize(x: te.Tensor) -> list[list[int]]:
    """Return the factors of a sum's terms to materialize: one list of numbers per stage.

    The factors are combined into two groups, so that the terms are products of two elements. The
    stages are created one after the other, and the numbers are valid at that time.

    >>> A, B = te.placeholder((8, 16), name="A"), te.placeholder((16, 9), name="B")
    >>> k = te.reduce_axis((0, 16), name="k")
    >>> C = te.compute((8, 9), lambda i, j: te.sum(te.tanh(A[i, k]) * B[k, j], axis=k), name="C")
    >>> factors_to_materialize(C)
    [[0]]
    """
    if not x.op.reduce_axis or x.op.num_outputs > 1:
        return []
    found = accesses(x)
    if not found.reducer or not found.is_plain or len(found.written) < 2:
        return []
    remaining, groups = list(range(len(found.written))), []
    for group in _split_factors_in_two([part.axes for part in found.written], found.axis):
        is_formula = len(group) > 1 or not _is_direct(found.written[group[0]].element)
        axes = frozenset[te.IterVar]().union(*(found.written[k].axes for k in group))
        uses = product(axis.extent for axis in found.axis if axis not in axes)
        if is_formula and axes and (not isinstance(uses, int) or uses >= _USES):
            groups.append([remaining.index(k) for k in group])
            remaining = [k for k in remaining if k == group[0] or k not in group]
    return groups


def _split_factors_in_two(
    parts: Sequence[frozenset[te.IterVar]], axes: Sequence[te.IterVar]
) -> list[list[int]]:
    """Partition factors into two groups that each depend on an axis the other group does not.

    The other factors join a group that already depends on all of their axes. Return an empty list
    if there is no such partition.
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
    """Return whether a factor is an element indexed by single axes or by windows of two axes."""
    return element is not None and all(
        index.is_window or (len(index.terms) == 1 and index.is_affine and index.terms[0][1] == 1)
        for index in element.index
    )


_MAX_FREE_OPERATIONS = 4
"""Maximum operations per element that cost no more than storing and loading it."""


def find_shared_terms(stages: Sequence[te.Tensor]) -> dict[te.Tensor, list[te.Tensor]]:
    """Return reductions with expensive terms, each with the other stages that compute them.

    Each stage occurs once: after it reads the terms of one reduction, it computes no terms.

    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    >>> C = te.compute((4,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
    >>> D = te.compute((4, 8), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
    >>> {x.name: [y.name for y in readers] for x, readers in find_shared_terms([C, D]).items()}
    {'C': ['D']}
    """
    found: dict[te.Tensor, list[te.Tensor]] = {}
    left = [x for x in stages if accesses(x).work > _MAX_FREE_OPERATIONS]
    for x in stages:
        if x not in left or accesses(x).reducer is None or not accesses(x).is_plain:
            continue
        readers = [y for y in left if y is not x and computes_terms(y, x)]
        if readers:
            found[x] = readers
            left = [y for y in left if y is not x and y not in readers]
    return found
