"""Forks while other threads compile, evaluate, write and record."""

from __future__ import annotations

import ast
import os
import signal
import subprocess
import sys
import threading
import time
import warnings
from collections.abc import Callable
from importlib import import_module
from pathlib import Path
from typing import Any

import pytest

from tecomp import fork_gate
from tecomp.codegen.llvm import jit
from tecomp.fork_gate import ForkGate, WorkLock, leaf_lock, no_fork

PACKAGE = Path(fork_gate.__file__).parent

if not hasattr(os, "fork"):
    pytest.skip("this system has no fork", allow_module_level=True)

PRELUDE = """
import faulthandler, os, random, sys, threading, time, warnings
import numpy as np
import tecomp, tecomp.array as xp
from tecomp import te
warnings.simplefilter("ignore", DeprecationWarning)  # forks of processes with threads

def arrays(k):
    given = np.arange(3 + k, dtype=np.float64)
    y, expected = xp.asarray(given), given
    for j in range(k % 5 + 1):
        if (k >> j) & 1:
            y, expected = y * 2 + j, expected * 2 + j
        else:
            y, expected = xp.sin(y) - k, np.sin(expected) - k
    assert np.allclose(np.asarray(xp.sum(y)), expected.sum(), rtol=1e-9, atol=1e-9)

def writes(k):
    x, expected = xp.zeros((4, 3 + k)), np.zeros((4, 3 + k))
    for j in range(4):
        x[j, :j + 1] = xp.asarray(float(k)) * j
        expected[j, :j + 1] = float(k) * j
    y = x.T
    y[0] = k
    expected.T[0] = k
    assert (np.asarray(x) == expected).all()

def builds(k):
    A = te.placeholder((2 + k,), name="A")
    B = te.compute((2 + k,), lambda i: A[i] * k + 1, name="B")
    kernel = tecomp.build(te.create_schedule(B.op), [A, B])
    a, b = np.arange(2 + k, dtype=np.float32), np.zeros(2 + k, np.float32)
    kernel(a, b)
    assert (b == a * k + 1).all()

def programs(k):
    A = te.placeholder((4 + k, 8), name="A")
    B = te.compute((4 + k, 8), lambda i, j: A[i, j] + k, name="B")
    C = te.compute((8, 4 + k), lambda i, j: B[j, i] * 2, name="C")
    program = tecomp.compile(C, [A], "cpu")
    a = np.arange((4 + k) * 8, dtype=np.float32).reshape(4 + k, 8)
    assert (np.asarray(program(a)) == (a + k).T * 2).all()

def maps(k):
    layout = tecomp.StickLayout((64 * (k % 3 + 1), 32 + k), "float32")
    x = np.arange(64 * (k % 3 + 1) * (32 + k), dtype=np.float32).reshape(-1, 32 + k)
    assert (layout.unpack(layout.pack(x)) == x).all()

WORK = {each.__name__: each for each in (arrays, writes, builds, programs, maps)}
"""
FORKS = PRELUDE + """
names, seed, forks = sys.argv[1].split(","), int(sys.argv[2]), int(sys.argv[3])
rng = random.Random(seed)
stop, failed = False, []

def work(name):
    k = 0
    try:
        while not stop:
            k += 1
            WORK[name](k)
    except BaseException as error:
        failed.append(error)
        raise

threads = [threading.Thread(target=work, args=(name,), daemon=True) for name in names]
for thread in threads:
    thread.start()
for generation in range(forks):
    time.sleep(rng.random() * 0.1)
    chosen = rng.sample(sorted(WORK), 2)
    child = os.fork()
    if child == 0:
        # Nothing but the tracebacks of a child that hangs.
        faulthandler.dump_traceback_later(20, exit=True)
        for name in chosen:
            WORK[name](1000 + generation)
        os._exit(0)
    if status := os.waitpid(child, 0)[1]:
        print("child", generation, chosen, status)
stop = True
for thread in threads:
    thread.join()
print("done", failed)
"""


@pytest.mark.exhaustive
@pytest.mark.parametrize(
    "names", ["arrays", "writes", "builds", "programs", "maps", "arrays,builds,programs"]
)
def test_fork_while_threads_work(names: str, tmp_path: Path) -> None:
    done = subprocess.run(
        [sys.executable, "-c", FORKS, names, "1", "8"], capture_output=True, text=True,
        check=False, timeout=280, env={**os.environ, "TECOMP_CACHE_DIR": str(tmp_path)},
    )

    assert (done.stdout, done.stderr, done.returncode) == ("done []\n", "", 0)


def in_thread(function: Any) -> threading.Thread:
    thread = threading.Thread(target=function, daemon=True)
    thread.start()
    return thread


def test_a_thread_enters_after_the_fork() -> None:
    gate = ForkGate()
    order: list[str] = []
    inside = threading.Event()

    def work() -> None:
        with gate:
            inside.set()
            time.sleep(0.1)
            with gate:  # nested: it does not wait, although the gate is closed
                order.append("first")
        with gate:
            order.append("second")

    thread = in_thread(work)
    assert inside.wait(10)
    assert gate.close(time.monotonic() + 10)
    order.append("fork")
    time.sleep(0.05)
    gate.open()
    thread.join(10)

    assert order == ["first", "fork", "second"]


def test_a_helper_thread_is_not_blocked() -> None:
    gate, started, closed = ForkGate(), threading.Event(), threading.Event()
    done: list[bool] = []

    def help_() -> None:
        done.append(gate.is_inside)

    def work() -> None:
        with gate:
            started.set()
            while not gate._forking:
                time.sleep(0.001)
            in_thread(gate.guard_thread(help_)).join(10)

    thread = in_thread(work)
    assert started.wait(10)
    assert gate.close(time.monotonic() + 10)
    closed.set()
    gate.open()
    thread.join(10)

    assert done == [True]
    assert gate._depths == {}


def test_concurrent_forks_do_not_deadlock() -> None:
    gate, barrier = ForkGate(), threading.Barrier(2)
    quiet: list[bool] = []

    def work() -> None:
        with gate:
            barrier.wait(10)
            quiet.append(gate.close(time.monotonic() + 10))
            gate.open()

    threads = [in_thread(work) for _ in range(2)]
    begin = time.monotonic()
    for thread in threads:
        thread.join(20)

    # The thread that waits for its turn counts as inside; the other one has left the gate.
    assert quiet == [True, True]
    assert time.monotonic() - begin < 5


def test_a_fork_gives_the_holder_of_a_leaf_lock_way() -> None:
    leaf, owner, entered = leaf_lock(), threading.Event(), threading.Event()

    def work() -> None:
        with leaf:
            owner.set()
            time.sleep(0.1)
            with no_fork:  # wrong order: the gate is closed
                entered.set()

    thread = in_thread(work)
    assert owner.wait(10)
    begin = time.monotonic()

    def use() -> bool:
        with leaf:
            return True

    assert status_of_child(use) == 0
    thread.join(10)

    assert entered.is_set()
    assert time.monotonic() - begin < 10


@pytest.mark.exhaustive
def test_locks_are_free_in_the_child() -> None:
    """All lock types are free in the child, although a thread acquires them continuously."""
    work, leaf, stop = WorkLock(), leaf_lock(), threading.Event()

    def use() -> None:
        while not stop.is_set():
            with work, leaf:
                time.sleep(0.0005)
            with leaf:
                time.sleep(0.0005)

    thread = in_thread(use)

    def is_free() -> bool:
        is_mine = leaf.acquire(timeout=1) and work._lock.acquire(timeout=1)
        return bool(is_mine) and not no_fork.is_inside

    assert [status_of_child(is_free) for _ in range(50)] == [0] * 50
    stop.set()
    thread.join(10)


def test_a_fork_does_not_wait_for_ever(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fork_gate, "_MAX_WAIT_SECONDS", 0.1)
    inside, leave = threading.Event(), threading.Event()

    def work() -> None:
        with no_fork:
            inside.set()
            leave.wait(10)

    thread = in_thread(work)
    assert inside.wait(10)
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter("always")
        status = status_of_child(lambda: True)
    leave.set()
    thread.join(10)

    assert status == 0
    assert [str(item.message) for item in caught if item.category is RuntimeWarning] == [
        "fork: another thread has been compiling or evaluating for 0.1 seconds, and the child "
        "process may hang if it does the same; fork before such threads start"
    ]


def test_a_fork_waits_for_imports(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "tecomp_slow.py").write_text("import time; time.sleep(0.3); DONE = True")
    monkeypatch.syspath_prepend(str(tmp_path))
    thread = in_thread(lambda: import_module("tecomp_slow"))
    time.sleep(0.1)
    status = status_of_child(lambda: bool(import_module("tecomp_slow").DONE))
    thread.join(10)

    assert status == 0


def status_of_child(check: Callable[[], bool]) -> int:
    """Return the status of a forked process: 0 if its check passes within 10 seconds."""
    warnings.filterwarnings("ignore", category=DeprecationWarning)  # the process has threads
    child = os.fork()
    if child == 0:
        signal.alarm(10)
        try:
            os._exit(0 if check() else 1)
        finally:
            os._exit(2)
    return os.waitpid(child, 0)[1]


def test_llvmlite_has_the_lock_that_forks_take() -> None:
    jit.host()

    assert any(type(leave()).__name__ == "RLock" for leave in fork_gate._leaves)
    assert jit._lock_of(sys.modules["llvmlite.binding.ffi"]) in [e() for e in fork_gate._leaves]


@pytest.mark.exhaustive
def test_all_locks_of_the_package_are_known_to_forks() -> None:
    """All locks are created by `fork_gate`, including the locks of conditions."""
    found = [
        f"{path.relative_to(PACKAGE)}:{node.lineno}"
        for path in sorted(PACKAGE.rglob("*.py")) if path.name != "fork_gate.py"
        for node in ast.walk(ast.parse(path.read_text(encoding="utf-8")))
        if isinstance(node, ast.Call)
        and ast.unparse(node.func).split(".")[-1] in ("Lock", "RLock", "Semaphore", "Condition")
        and not (ast.unparse(node.func) == "Condition" and node.args)
    ]

    assert found == []
