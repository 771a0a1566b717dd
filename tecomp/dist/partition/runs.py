"""Contiguous runs of what is sent: elements that follow each other in both local memories."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

import numpy as np

from tecomp.dist.partition.places import Numbers, Places, count_of, listed
from tecomp.poly.transfers.counted_runs import joined

Runs: TypeAlias = tuple[Numbers, Numbers, Numbers]
"""First offsets in the one and in the other memory, in elements, and lengths."""


def runs_of(
    sent: Sequence[Places], sent_shape: Sequence[int],
    received: Sequence[Places], received_shape: Sequence[int],
) -> Runs:
    """The fewest runs of a box of elements, in the order of the first memory.

    Args:
        sent: where the elements are along each axis of the first array.
        sent_shape: its extents; the last axis is the innermost.
        received: the same for the second array.
        received_shape: its extents.

    >>> columns = runs_of([slice(0, 2), slice(0, 3)], (2, 6), [slice(0, 2), slice(3, 6)], (2, 6))
    >>> [part.tolist() for part in columns]
    [[0, 6], [3, 9], [3, 3]]
    """
    first, second, lengths = np.zeros(1, np.int64), np.zeros(1, np.int64), np.ones(1, np.int64)
    here = there = 1
    for axis in reversed(range(len(sent))):
        a, b, n = _along(sent[axis], received[axis])
        if len(first) != 1 or not lengths[0] == here == there:
            # What lies further in is not all there is, so a step along this axis begins anew.
            a, b, n = _apart(a, n), _apart(b, n), np.ones(int(n.sum()), np.int64)
        first = (a[:, None] * here + first).ravel()
        second = (b[:, None] * there + second).ravel()
        lengths = (n[:, None] * lengths).ravel()
        here, there = here * sent_shape[axis], there * received_shape[axis]
    return joined(first, second, lengths)


def _along(sent: Places, received: Places) -> Runs:
    """The runs along one axis."""
    if isinstance(sent, slice) and isinstance(received, slice) and sent.step == received.step == 1:
        whole = np.array([count_of(sent)])
        return np.array([sent.start]), np.array([received.start]), whole
    a, b = listed(sent), listed(received)
    follows = (np.diff(a) == 1) & (np.diff(b) == 1)
    starts = np.flatnonzero(np.concatenate([np.ones(min(len(a), 1), bool), ~follows]))
    return a[starts], b[starts], np.diff(np.append(starts, len(a)))


def _apart(starts: Numbers, lengths: Numbers) -> Numbers:
    """Every element of the runs."""
    before = np.cumsum(lengths) - lengths
    return np.repeat(starts - before, lengths) + np.arange(int(lengths.sum()))
