"""Masked loads of narrow elements, also on processors without instructions for them."""

from __future__ import annotations

import ctypes
import mmap
import os
import platform
import subprocess
import sys
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import LlvmTarget, Options, host, module_text
from tecomp.driver import ScheduledKernel
from tecomp.machine.host import CPU_VARIABLE
from tecomp.schedules import reduce

LENGTHS = [1, 2, 15, 31, 32, 33, 63, 127, 129]
LEVEL = "x86-64-v3"

pytestmark = pytest.mark.skipif(
    sys.platform != "linux" or platform.machine() != "x86_64",
    reason="memory is fenced by mprotect, and code is for processors of this family",
)


def row_maximum(dtype: str) -> ScheduledKernel:
    """Build the maximum of rows of symbolic length, whose last vector is masked."""
    A = te.placeholder((te.size_var("m"), te.size_var("n")), dtype, name="A")
    B = reduce.define(A, 1, "max")
    return tecomp.build(reduce.schedule(B, "cpu"), [A, B])


def check_rows_at_ends_of_pages(dtype: str) -> None:
    """Compare with NumPy for rows that cross pages, or end before a page that cannot be read."""
    page, kernel = mmap.PAGESIZE, row_maximum(dtype)
    memory = mmap.mmap(-1, 3 * page)
    whole: Any = np.frombuffer(memory, dtype, count=2 * page // np.dtype(dtype).itemsize)
    libc = ctypes.CDLL(None, use_errno=True)
    fence = ctypes.c_void_p(whole.ctypes.data + 2 * page)
    assert libc.mprotect(fence, ctypes.c_size_t(page), 0) == 0
    whole[:] = np.random.default_rng(0).integers(-100, 100, whole.size)
    starts = [(length, whole.size - length) for length in LENGTHS]
    starts += [(length, whole.size // 2 - 40 + k) for length in LENGTHS for k in range(48)]
    for length, start in starts:
        row, result = whole[start : start + length].reshape(1, length), np.zeros(1, dtype)
        kernel(row, result)
        assert result[0] == row.max(), (length, start)


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_rows_at_ends_of_pages(dtype: str) -> None:
    check_rows_at_ends_of_pages(dtype)


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["int8", "uint16"])
def test_rows_at_ends_of_pages_without_masked_loads(dtype: str) -> None:
    if "avx2" not in host().features:
        pytest.skip(f"the host is below {LEVEL}")
    name = check_rows_at_ends_of_pages.__name__
    code = f"from tests.codegen.test_masked_loads import {name}; {name}({dtype!r})"
    environment = {**os.environ, CPU_VARIABLE: LEVEL, "TECOMP_CACHE": "off"}

    done = subprocess.run(
        [sys.executable, "-c", code], env=environment, text=True, capture_output=True, check=False
    )

    assert done.returncode == 0, done.stderr


@pytest.mark.parametrize("dtype", ["int8", "int16"])
def test_lanes_in_one_page_are_loaded_together(dtype: str) -> None:
    func = row_maximum(dtype).lowered.final

    text = module_text(func, Options(), LlvmTarget(host().triple, "haswell")).source.text

    assert ", 4095" in text


def test_lanes_in_guarded_copies_are_known_to_be_active() -> None:
    """A copy for one of several vectors is executed only if its first lane is active."""
    text = module_text(
        row_maximum("int8").lowered.final, Options(), LlvmTarget(host().triple, "haswell")
    ).source.text

    assert "llvm.masked.load" in text
    assert "bitcast <32 x i1>" not in text
