"""Ids of distributed tensors, and errors for unknown ids."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from tecomp import TecompError, dist
from tests.messages import diagnostic


def refused(call: Callable[..., Any], *arguments: Any, **named: Any) -> None:
    try:
        call(*arguments, **named)
    except TecompError as error:
        print(diagnostic(error))
    else:
        raise AssertionError(call)


first = dist.init_dtensor(1, (3,))
kept = dist.init_dtensor(1, (6,))
print(first, kept)
dist.fini_dtensor(1, first)
refused(dist.fini_dtensor, 1, first)
refused(dist.local_shape, 1, first)
refused(dist.local_shape, 1, 77)
refused(dist.local_shape, 9, kept)
refused(dist.local_slice, dist.world().split(0), kept)
other = dist.init_dtensor(1, (6,), placements=[dist.Replicate()])
refused(dist.copy, 1, kept, other, np.ones(6), np.ones(4, "float32"))
refused(dist.copy, 1, kept, other, [1.0], np.ones(6))
half = dist.init_view(1, kept, [slice(4, None)])
refused(dist.copy, 1, kept, half, np.ones(6), np.ones(2))
refused(dist.finalize_reduce, 1, kept, np.ones(6))
refused(dist.init_dtensor, 1, (6,), mesh=dist.Mesh((2,)))
refused(dist.allreduce, 1, np.ones(2), "mean")
refused(dist.allreduce_all, 1, [np.ones(2)], "mean")
refused(dist.reduce, 1, np.ones(2), "mean")
refused(dist.exscan, 1, np.ones(2), "mean")
ring = dist.halo(dist.partition_of(1, kept), [1], periodic=True)
refused(dist.start_halo, 1, ring, np.ones(4))
refused(dist.start_halos, 1, [(ring, np.ones(4))])
refused(dist.update_halo, 1, ring, np.ones(4))
refused(dist.alltoall, 1, [np.ones(2), np.ones(1)])
dist.fini_dtensor(1, kept)
assert dist.local_shape(1, half) == (2,)  # a view stays valid until it is finalized itself
same = np.arange(6.0)
dist.copy(1, other, other, same, same)
np.testing.assert_array_equal(same, np.arange(6.0))
