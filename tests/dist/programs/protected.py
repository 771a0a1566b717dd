"""Fault-tolerant loops with invalid arguments, and one without a rank failure."""

from __future__ import annotations

import numpy as np

from tecomp import TeamError, dist
from tests.messages import diagnostic

one = dist.Partition((4,), "float64", dist.Mesh((1,)), [dist.Shard(0)])

for steps, every in ((-1, 2), (3, 0)):
    try:
        dist.protect(steps, every=every)
    except TeamError as error:
        print(diagnostic(error))

loop = dist.protect(3, every=2)
try:
    loop.field(one, np.zeros(4, "float32"))
except TeamError as error:
    print(diagnostic(error))

try:
    for _ in loop:
        pass
except TeamError as error:
    print(diagnostic(error))

loop = dist.protect(3, every=2)
try:
    for _ in loop:
        with loop.step():
            raise ValueError("the user's own")
except ValueError as own:
    print(own)

loop = dist.protect(3, every=2)
u = loop.field(one, np.zeros(4))
seen = []
for step in loop:
    with loop.step():
        seen.append(step)
        u.local = u.local + 1
print(seen, u.local.max(), u.whole)
