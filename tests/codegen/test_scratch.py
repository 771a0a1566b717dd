"""Scratch memory of kernels: reused between calls, one block per thread, bounded, in order."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
from itertools import pairwise
from resource import RUSAGE_SELF, getrusage
from statistics import median
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import ALIGNMENT, CALLERS, LIMIT, Kernel, use_threads
from tecomp.ir import parse
from tests.strategies.native import Inside, as_kernel

MEGABYTE = 2**20


def addresses(*sizes: int) -> list[int]:
    """Return the addresses of buffers of these sizes that are live at the same time."""
    found: list[int] = []

    def kernel(inside: Inside) -> None:
        found.extend(inside.allocate(size) for size in sizes)
        for address in filter(None, reversed(found)):
            inside.release(address)

    as_kernel(kernel)
    return found


def settled(*sizes: int) -> list[int]:
    for _ in range(3):
        addresses(*sizes)
    return addresses(*sizes)


def test_scratch_memory_grows_to_the_peak() -> None:
    sizes = (3 * MEGABYTE, 1, 200, 5 * MEGABYTE)
    first = settled(*sizes)

    assert addresses(*sizes) == first
    assert [b - a for a, b in pairwise(first)] == [3 * MEGABYTE, 128, 256]


@pytest.mark.parametrize("size", [0, 1, 127, 129, 100_000, 70 * MEGABYTE])
def test_alignment_and_order(size: int) -> None:
    found = addresses(size, 1, size, 64, size)
    ends = sorted((address, address + max(size, 1)) for address, size in
                  zip(found, (size, 1, size, 64, size), strict=True))

    assert all(address and address % ALIGNMENT == 0 for address in found)
    assert all(end <= start for (_, end), (start, _) in pairwise(ends))


def test_memory_is_used_again_inside_a_call() -> None:
    rounds: list[set[int]] = []

    def kernel(inside: Inside) -> None:
        outer = inside.allocate(1000)
        seen = set()
        for _ in range(5):
            inner = inside.allocate(5000)
            seen.add(inner)
            inside.release(inner)
        inside.release(outer)
        rounds.append(seen)

    for _ in range(3):
        as_kernel(kernel)

    assert len(rounds[-1]) == 1
    assert rounds[-1] == rounds[-2]


def test_large_pieces_start_where_large_pages_do() -> None:
    assert settled(8 * MEGABYTE)[0] % (2 * MEGABYTE) == 0


def test_large_scratch_memory_is_released() -> None:
    small = settled(MEGABYTE)[0]
    large, inner = addresses(LIMIT + 1, MEGABYTE)

    assert large % (2 * MEGABYTE) == 0
    assert not small <= large < small + MEGABYTE
    # The block has grown to its limit.
    first, second, third = settled(LIMIT // 2, LIMIT // 2, MEGABYTE)
    assert second - first == LIMIT // 2
    assert not first <= third < first + LIMIT
    assert inner


def test_mostly_unused_pieces_are_released() -> None:
    settled(32 * MEGABYTE)
    large = addresses(32 * MEGABYTE)
    for _ in range(255):
        assert addresses(100) == large
    addresses(100)
    first, second = addresses(100, MEGABYTE)

    assert second - first != 128  # the block has no free space
    assert addresses(100, MEGABYTE)[0] % ALIGNMENT == 0


def test_no_memory() -> None:
    assert addresses(2**62, 2**60) == [0, 0]
    assert all(addresses(100, 100))


def test_scratch_memory_is_thread_local(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TECOMP_NUM_THREADS", "3")
    use_threads()
    meeting = threading.Barrier(3, timeout=60)
    found: list[tuple[int, int]] = []

    def body(inside: Inside, start: int, stop: int) -> None:
        address = inside.allocate(1000)
        found.append((address, threading.get_ident()))
        meeting.wait()
        inside.release(address)

    as_kernel(lambda inside: inside.parallel(0, 3, body))
    first = dict(found)
    found.clear()
    as_kernel(lambda inside: inside.parallel(0, 3, body))

    assert len(first) == 3
    assert dict(found) == first


def test_more_callers_than_pieces() -> None:
    count = CALLERS + 4
    meeting = threading.Barrier(count, timeout=60)
    found: list[int] = []

    def kernel(inside: Inside) -> None:
        low, high = inside.allocate(1000), inside.allocate(MEGABYTE)
        found.extend((low, high))
        meeting.wait()
        inside.release(high)
        inside.release(low)

    callers = [threading.Thread(target=as_kernel, args=(kernel,)) for _ in range(count)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert len(set(found)) == 2 * count
    assert all(address % ALIGNMENT == 0 for address in found)


ROWS = '''def f(A: Buffer("float32", (n,)), O: Buffer("float32", (n,)), m: "int64", *, n: "int64"):
    with Allocate(Buffer("float32", (n,))) as T:
        for i in range(n):
            T[i] = A[i] + float32(1.0)
        for i in parallel(n):
            with Allocate(Buffer("float32", (m, 3), axis_separators=(0,))) as R:
                with Allocate(Buffer("float32", (m * 5000,))) as S:
                    for j in range(m):
                        R[j, 1] = T[i]
                        S[j * 5000] = R[j, 1]
                    O[i] = S[(m - 1) * 5000] * float32(2.0)
'''


@pytest.mark.parametrize("count", ["1", "2", "7"])
def test_kernels_in_several_threads(monkeypatch: pytest.MonkeyPatch, count: str) -> None:
    monkeypatch.setenv("TECOMP_NUM_THREADS", count)
    kernel = Kernel(parse(ROWS))
    wrong: list[Any] = []

    def work(n: int) -> None:
        random = np.random.default_rng(n)
        for _ in range(40):
            a, out = random.standard_normal(n).astype(np.float32), np.zeros(n, np.float32)
            kernel(a, out, int(random.integers(1, 30)))
            if not (out == (a + np.float32(1)) * 2).all():
                wrong.append((a, out))

    callers = [threading.Thread(target=work, args=(n,)) for n in (1, 3, 20, 100)]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert wrong == []


FORKING = f"""
import os, threading, warnings, numpy as np
from tecomp.codegen import Kernel
from tecomp.ir import parse
warnings.simplefilter("ignore", DeprecationWarning)
kernel = Kernel(parse({ROWS!r}))
stop = False
def check(n, m):
    a, out = np.arange(n, dtype=np.float32), np.zeros(n, np.float32)
    kernel(a, out, m)
    return bool((out == (a + 1) * 2).all())
def work():
    k = 0
    while not stop:
        check(5 + k % 7, 1 + k % 50)
        k += 1
check(10, 3)
threads = [threading.Thread(target=work) for _ in range(2)]
for thread in threads:
    thread.start()
for m in range(1, 40):
    child = os.fork()
    if child == 0:
        os._exit(0 if all(check(10 * m, m + k) for k in range(5)) else 1)
    if status := os.waitpid(child, 0)[1]:
        print("child", status)
stop = True
for thread in threads:
    thread.join()
print(check(100, 7))
"""


@pytest.mark.exhaustive
def test_fork_while_memory_is_in_use() -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKING], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "TECOMP_NUM_THREADS": "3"},
    )

    assert (done.stdout, done.stderr, done.returncode) == ("True\n", "", 0)


def test_pages_are_there_at_the_next_call() -> None:
    kernel = Kernel(parse('''def f(O: Buffer("float32", (4,))):
    with Allocate(Buffer("float32", (4000000,))) as T:
        for i in range(4000000):
            T[i] = float32(3.0)
        O[0] = T[3999999]
'''))
    out = np.zeros(4, np.float32)
    faults = [getrusage(RUSAGE_SELF).ru_minflt]
    for _ in range(15):
        kernel(out)
        faults.append(getrusage(RUSAGE_SELF).ru_minflt)

    assert out[0] == 3
    # 16 MB are 3906 small pages or 7 huge pages. The previous block may be released once.
    assert median(b - a for a, b in pairwise(faults)) < 4
