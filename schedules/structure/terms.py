"""Terms of reductions along rows that other stages of these rows compute as well."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import accesses, computes_terms, te

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
