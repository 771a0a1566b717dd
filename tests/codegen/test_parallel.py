"""Parallel loops: each iteration once, captured values, several callers, forks, thread counts."""

from __future__ import annotations

import subprocess
import sys
import threading
from collections.abc import Callable

import numpy as np
import pytest

from tecomp.codegen import Kernel
from tecomp.errors import CallError
from tecomp.ir import parse
from tests.messages import Diagnostic, diagnostic

Both = Callable[..., Kernel]

CAPTURING = '''def f(A: Buffer("float32", (n, 8), axis_separators=(0,)), \
O: Buffer("float32", (n * 8,)), s: "float32", *, n: "int64"):
    with Allocate(Buffer("float32", (16,))) as scale:
        scale[ramp(0, 1, 8)] = broadcast(s, 8)
        with Let(scale[ramp(0, 1, 8)]) as v:
            for i in parallel(0, extent=n):
                for j in parallel(1):
                    O[ramp(8 * i, 1, 8)] = A[i, ramp(0, 1, 8)] * v + scale[ramp(0, 1, 8)]
'''
COUNTING = '''def f(O: Buffer("int64", (n,)), *, n: "int64"):
    for i in parallel(n):
        for j in range(100):
            O[i] = O[i] + 1
'''


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("threads", ["1", "2", "3", "16", ""])
@pytest.mark.parametrize("n", [0, 1, 2, 5, 1000])
def test_captured_values(
    both: Both, monkeypatch: pytest.MonkeyPatch, threads: str, n: int
) -> None:
    monkeypatch.setenv("TECOMP_NUM_THREADS", threads)
    values = np.arange(n * 8, dtype=np.float32).reshape(n, 8)
    both(CAPTURING, values, np.zeros(n * 8, np.float32), 2.5)


@pytest.mark.parametrize("kind", ["int32", "int16"])
def test_loop_variable_of_another_type(both: Both, kind: str) -> None:
    both(f'''def f(O: Buffer("int64", (9,))):
    for i in parallel(0, extent=9):
        with Let(cast("{kind}", i)) as k:
            O[i] = cast("int64", k)
''', np.zeros(9, np.int64))


def test_calls_from_several_threads(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TECOMP_NUM_THREADS", "3")
    kernel = Kernel(parse(COUNTING))
    outputs = [np.zeros(500, np.int64) for _ in range(8)]

    def work(out: np.ndarray[tuple[int], np.dtype[np.int64]]) -> None:
        for _ in range(20):
            kernel(out)

    threads = [threading.Thread(target=work, args=(out,)) for out in outputs]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()

    assert all((out == 2000).all() for out in outputs)


FORKING = f"""
import os, numpy as np
from tecomp.codegen import Kernel
from tecomp.ir import parse
kernel = Kernel(parse({COUNTING!r}))
out = np.zeros(100, np.int64)
kernel(out)
child = os.fork()
if child == 0:
    kernel(out)
    os._exit(0 if (out == 200).all() else 1)
kernel(out)
print(os.waitpid(child, 0)[1], (out == 200).all())
"""


def test_fork() -> None:
    # Python 3.12 and later warn of any fork in a multi-threaded process.
    command = [sys.executable, "-W", "ignore::DeprecationWarning", "-c", FORKING]
    done = subprocess.run(command, capture_output=True, text=True, check=False, timeout=60)

    assert (done.stdout, done.stderr, done.returncode) == ("0 True\n", "", 0)


@pytest.mark.parametrize("value", ["0", "-1", "two", "1.5"])
def test_wrong_number_of_threads(monkeypatch: pytest.MonkeyPatch, value: str) -> None:
    kernel, out = Kernel(parse(COUNTING)), np.zeros(10, np.int64)
    monkeypatch.setenv("TECOMP_NUM_THREADS", value)

    with pytest.raises(CallError) as error:
        kernel(out)

    assert diagnostic(error.value) == (
        Diagnostic("invalid-value", variable="TECOMP_NUM_THREADS", text=value)
    )
    assert not out.any()
