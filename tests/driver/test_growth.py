"""Memory that a process retains for kernels that are no longer referenced."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

# The programs have serial loops, vectorized math and threads, and constants of their own.
# The cache keeps fewer kernels in memory than by default, so that kernels are evicted soon.
PROGRAM = """
import gc, os
import numpy as np
import tecomp
from tecomp import te
from tecomp.codegen.llvm.code_cache import LINKED
from tecomp.driver.build_cache import COMPILED

LINKED.limit = COMPILED.limit = 32

def pages():
    with open("/proc/self/statm") as status:
        return int(status.read().split()[1]) * os.sysconf("SC_PAGE_SIZE")

def run(number):
    A = te.placeholder((64,), name="A")
    B = te.compute((64,), lambda i: A[i] * (number + 0.25), name="B")
    C = te.compute((64,), lambda i: te.exp(B[i]) + number, name="C")
    s = te.create_schedule(C.op)
    outer, inner = s[C].split(C.op.axis[0], 16)
    s[C].vectorize(inner)
    if number % 2:
        s[C].parallel(outer)
    a, c = np.zeros(64, np.float32), np.zeros(64, np.float32)
    tecomp.build(s, [A, C])(a, c)
    assert c[0] == number + 1

sizes = []
for number in range({first} + {count}):
    if number in ({first}, {first} + {count} - 1):
        gc.collect()
        sizes.append(pages())
    run(number)
print((sizes[1] - sizes[0]) // {count})
"""


@pytest.mark.exhaustive(most=1)
@pytest.mark.skipif(not os.path.exists("/proc/self/statm"), reason="no such file")
@pytest.mark.parametrize(("cache", "first"), [("off", 64), ("on", 96)])
def test_unreferenced_kernels_are_freed(cache: str, first: int, tmp_path: object) -> None:
    environment = {**os.environ, "TECOMP_CACHE": cache, "TECOMP_CACHE_DIR": str(tmp_path)}
    text = PROGRAM.format(first=first, count=64)
    done = subprocess.run(
        [sys.executable, "-c", text], capture_output=True, text=True, env=environment, check=True)

    # The binding of isl leaks 32 bytes per set from which another is made, about a hundred here.
    assert int(done.stdout) < 5500
