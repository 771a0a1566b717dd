"""Code is linked within reach of its constants, also if the address space is fragmented."""

from __future__ import annotations

import subprocess
import sys

import pytest

CROWDED = '''
"""Compile in a process whose free memory lies in pages far apart from each other."""
import ctypes
import mmap

import numpy as np

import tecomp
from tecomp import te

RESERVED, PAGE = 8 << 30, mmap.PAGESIZE
MAP_NORESERVE = 0x4000

libc = ctypes.CDLL(None)
libc.mmap.restype = ctypes.c_void_p
libc.mmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t, *[ctypes.c_int] * 3, ctypes.c_long]
libc.munmap.argtypes = [ctypes.c_void_p, ctypes.c_size_t]


def reserve(size):
    kind = mmap.MAP_PRIVATE | mmap.MAP_ANONYMOUS | MAP_NORESERVE
    return libc.mmap(None, size, 0, kind, -1, 0)


X = np.linspace(0, 1, 1000, dtype="float32")


def formula(n, scale):
    A = te.placeholder((n,), "float32", "A")
    B = te.compute((n,), lambda i: te.exp(te.sin(A[i] * te.const(scale, "float32"))), name="B")
    C = te.compute((n,), lambda i: B[i] + 1, name="C")
    return A, B, C, np.exp(np.sin(X * np.float32(scale))) + 1


def check_kernel(scale, unrolled):
    A, B, C, wanted = formula(te.var("n"), scale)
    s = te.create_schedule(C)
    s[B].compute_inline()
    blocks, block = s[C].split(C.op.axis[0], factor=16 * unrolled)
    vectors, lanes = s[C].split(block, factor=16)
    s[C].unroll(vectors)
    s[C].vectorize(lanes)
    found = np.zeros_like(X)
    tecomp.build(s, [A, C])(X, found)
    np.testing.assert_allclose(found, wanted, rtol=1e-5)


def check_program(scale):
    A, B, C, wanted = formula(1000, scale)
    np.testing.assert_allclose(tecomp.compile([B, C], [A])(X)[1], wanted, rtol=1e-5)


check_kernel(2, 1)
check_program(2)
below = reserve(RESERVED)
holes = []
for size in (2**24, 2**20, 2**16, 4 * PAGE, PAGE):
    while (at := reserve(size)) > below:
        holes.append((at, size))
    libc.munmap(at, size)
for at, size in holes[::5]:
    libc.munmap(at, PAGE)
for scale in range(3, 11):
    check_kernel(scale, 8 * scale)
    check_program(scale)
'''


@pytest.mark.exhaustive
def test_code_and_constants_are_adjacent_in_fragmented_memory() -> None:
    done = subprocess.run(
        [sys.executable, "-c", CROWDED], capture_output=True, text=True, check=False, timeout=300
    )

    assert (done.returncode, done.stderr) == (0, "")
