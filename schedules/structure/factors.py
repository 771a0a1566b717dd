"""Formulas inside of a sum of products that are worth a stage: each element is used many times."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import Access, accesses, te
from tecomp.schedules.structure.sizes import product

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
