"""The thread pool runs every iteration once, on any thread and under concurrent events."""

from __future__ import annotations

import os
import subprocess
import sys
import threading
import time
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.codegen import Kernel, pool_text
from tecomp.ir import parse
from tests.strategies.native import Inside, as_kernel

COUNTING = '''def f(O: Buffer("int64", (n,)), first: "int64", *, n: "int64"):
    for i in parallel(first, extent=n - first):
        O[i] = O[i] + 1
'''
KERNEL = Kernel(parse(COUNTING))
Run = Callable[[str, str], tuple[str, str, int]]


def ranges_of(begin: int, extent: int) -> list[tuple[int, int]]:
    """Return the chunks of a parallel job."""
    found: list[tuple[int, int]] = []

    def body(_: Inside, start: int, stop: int) -> None:
        found.append((start, stop))

    as_kernel(lambda inside: inside.parallel(begin, extent, body))
    return sorted(found)


@pytest.mark.parametrize("count", [1, 2, 3, 5, 32])
def test_chunks_cover_every_round_once(threads: Callable[[int], None], count: int) -> None:
    threads(count)
    for extent in [*range(70), 100, 1000, 4099, 2**40 + 7]:
        chunks = ranges_of(-5, extent)

        assert all(start < stop for start, stop in chunks)
        assert [start for start, _ in chunks[1:]] == [stop for _, stop in chunks[:-1]]
        assert (chunks[0][0], chunks[-1][1]) == (-5, extent - 5) if extent else not chunks


def test_chunks_get_smaller(threads: Callable[[int], None]) -> None:
    threads(2)

    sizes = [stop - start for start, stop in ranges_of(0, 64)]

    assert sizes == [16, 16, 8, 8, 4, 4, 2, 2, 1, 1, 1, 1]


@pytest.mark.parametrize("count", [2, 3, 4, 8])
def test_threads_end_together(threads: Callable[[int], None], count: int) -> None:
    """Each thread takes the next chunk when it is free; each iteration takes one time unit."""
    threads(count)
    for extent in range(1, 100):
        busy_until = [0] * count
        for start, stop in ranges_of(0, extent):
            first = min(range(count), key=lambda k: busy_until[k])
            busy_until[first] += stop - start

        assert max(busy_until) == -(-extent // count)


def test_absurd_extents_run_alone(threads: Callable[[int], None]) -> None:
    threads(2)

    assert ranges_of(0, 2**62) == [(0, 2**62)]
    assert ranges_of(0, -3) == []


@pytest.mark.parametrize("count", [2, 4])
def test_all_threads_take_part(threads: Callable[[int], None], count: int) -> None:
    threads(count)
    meeting = threading.Barrier(count, timeout=60)
    names: set[int] = set()

    def body(_: Inside, start: int, stop: int) -> None:
        names.add(threading.get_ident())
        if start < count:
            meeting.wait()

    # Each thread gets one iteration, so that no thread waits for a chunk that it must run itself.
    as_kernel(lambda inside: inside.parallel(0, count, body))

    assert len(names) == count
    assert {f"tecomp-{k + 1}" for k in range(count - 1)} <= {
        thread.name for thread in threading.enumerate()
    }


def test_nested_loops_stay_in_their_thread(threads: Callable[[int], None]) -> None:
    threads(3)
    wrong: list[tuple[int, int]] = []
    seen: list[int] = []

    def outer(inside: Inside, start: int, stop: int) -> None:
        here = threading.get_ident()

        def inner(_: Inside, low: int, high: int) -> None:
            seen.extend(range(low, high))
            if threading.get_ident() != here or (low, high) != (100 * start, 100 * stop):
                wrong.append((low, high))

        inside.parallel(100 * start, 100 * (stop - start), inner)

    as_kernel(lambda inside: inside.parallel(0, 40, outer))

    assert wrong == []
    assert sorted(seen) == list(range(4000))


def test_whoever_finds_the_pool_busy_runs_alone(threads: Callable[[int], None]) -> None:
    threads(2)
    found: list[list[tuple[int, int]]] = []

    def other() -> None:
        found.append(ranges_of(0, 64))

    def body(_: Inside, start: int, _stop: int) -> None:
        if start == 0:
            thread = threading.Thread(target=other)
            thread.start()
            thread.join()

    as_kernel(lambda inside: inside.parallel(0, 64, body))

    assert found == [[(0, 64)]]


@pytest.mark.parametrize("count", [2, 3, 16, 200])
def test_random_numbers_of_rounds(threads: Callable[[int], None], count: int) -> None:
    threads(count)
    random = np.random.default_rng(count)
    for _ in range(1500 if count < 100 else 150):
        n, first = (int(x) for x in random.integers(0, 3 * count + 40, 2))
        out = np.zeros(max(n, first), np.int64)

        KERNEL(out, first)

        assert (out == (np.arange(out.size) >= first)).all()


def test_sleeping_workers_wake(threads: Callable[[int], None]) -> None:
    threads(3)
    random = np.random.default_rng(1)
    for _ in range(150):
        out = np.zeros(50, np.int64)
        time.sleep(random.choice([0, 30e-6, 60e-6, 1e-3]))

        KERNEL(out, 0)

        assert (out == 1).all()


@pytest.mark.parametrize("count", [2, 5])
def test_several_callers(threads: Callable[[int], None], count: int) -> None:
    threads(count)
    outputs = [np.zeros(40 + 3 * k, np.int64) for k in range(6)]

    def work(out: np.ndarray[Any, Any]) -> None:
        for _ in range(300):
            KERNEL(out, 0)

    callers = [threading.Thread(target=work, args=(out,)) for out in outputs]
    for caller in callers:
        caller.start()
    for caller in callers:
        caller.join()

    assert [out.tolist() for out in outputs] == [[300] * out.size for out in outputs]


def test_number_of_threads_follows_the_environment(monkeypatch: pytest.MonkeyPatch) -> None:
    for count in ("2", "1", "4", "2"):
        monkeypatch.setenv("TECOMP_NUM_THREADS", count)
        KERNEL(np.zeros(8, np.int64), 0)

        # With one iteration per thread, there are as many chunks as threads.
        assert len(ranges_of(0, int(count))) == int(count)


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Run:
    """Return a function that runs a program in a process of its own, with a shared code cache."""
    environment = {"TECOMP_CACHE": "on", "TECOMP_CACHE_DIR": str(tmp_path_factory.mktemp("code"))}

    def run_program(program: str, threads: str) -> tuple[str, str, int]:
        done = subprocess.run(
            [sys.executable, "-c", PRELUDE + program], capture_output=True, text=True, check=False,
            timeout=120, env={**os.environ, **environment, "TECOMP_NUM_THREADS": threads},
        )
        return done.stdout, done.stderr, done.returncode

    return run_program


PRELUDE = f"""
import os, threading, time, warnings, numpy as np
from tecomp.codegen import Kernel
from tecomp.ir import parse
warnings.simplefilter("ignore", DeprecationWarning)
kernel = Kernel(parse({COUNTING!r}))
out = np.zeros(100, np.int64)
kernel(out, 0)
"""
FORKING = """
for generation in range(30):
    child = os.fork()
    if child == 0:
        before = out.copy()
        for _ in range(50):
            kernel(out, 0)
        grandchild = os.fork()
        if grandchild == 0:
            kernel(out, 0)
            os._exit(0 if (out == before + 51).all() else 1)
        status = os.waitpid(grandchild, 0)[1]
        workers = [t for t in threading.enumerate() if t.name.startswith("tecomp")]
        os._exit(0 if (out == before + 50).all() and not status and len(workers) == 2 else 1)
    kernel(out, 0)
    if status := os.waitpid(child, 0)[1]:
        print("child", status)
print((out == 31).all())
"""
FORKED_WHILE_BUSY = """
stop = False
def work():
    mine = np.zeros(1000, np.int64)
    while not stop:
        kernel(mine, 0)
thread = threading.Thread(target=work)
thread.start()
for _ in range(25):
    child = os.fork()
    if child == 0:
        for _ in range(20):
            kernel(out, 0)
        os._exit(0 if (out == 21).all() else 1)
    if status := os.waitpid(child, 0)[1]:
        print("child", status)
stop = True
thread.join()
print("done")
"""


FIRST_CALLS = """
kernel = Kernel(parse(COUNTING))
barrier = threading.Barrier(12)
outputs = [np.zeros(50 + k, np.int64) for k in range(12)]
def work(mine):
    barrier.wait()
    for _ in range(200):
        kernel(mine, 0)
threads = [threading.Thread(target=work, args=(mine,)) for mine in outputs]
for thread in threads:
    thread.start()
for thread in threads:
    thread.join()
child = os.fork()
if child == 0:
    kernel(outputs[0], 0)
    os._exit(0 if (outputs[0] == 201).all() else 1)
names = [t.name for t in threading.enumerate() if "tecomp" in t.name]
print(os.waitpid(child, 0)[1], all((mine == 200).all() for mine in outputs), names)
"""


def test_first_calls_at_the_same_time() -> None:
    program = PRELUDE.replace("kernel(out, 0)", f"COUNTING = {COUNTING!r}") + FIRST_CALLS
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False, timeout=120,
        env={**os.environ, "TECOMP_NUM_THREADS": "3"},
    )

    assert (done.stdout, done.stderr) == ("0 True ['tecomp-1', 'tecomp-2']\n", "")


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize(
    ("program", "message"), [(FORKING, "True\n"), (FORKED_WHILE_BUSY, "done\n")]
)
def test_forks(run: Run, program: str, message: str) -> None:
    assert run(program, "3") == (message, "", 0)


@pytest.mark.exhaustive(keep=1, most=5)
@pytest.mark.parametrize(
    "program",
    [
        "",
        "time.sleep(0.01)",
        "threading.Thread(target=lambda: [kernel(out, 0) for _ in range(10**9)], daemon=True)"
        ".start(); time.sleep(0.05)",
        "import atexit; atexit.register(kernel, out, 0)",
        "del kernel; import gc; gc.collect()",
        "import sys; sys.exit(0)",
    ],
    ids=["at-once", "asleep", "inside", "atexit", "collected", "sys-exit"],
)
@pytest.mark.parametrize("count", ["2", "9"])
def test_clean_exit(run: Run, program: str, count: str) -> None:
    assert run(program, count) == ("", "", 0)


IDLE = """
def work():
    for _ in range(40):
        kernel(out, 0)
callers = [threading.Thread(target=work) for _ in range(4)]
for caller in callers:
    caller.start()
for caller in callers:
    caller.join()
def used():
    before = time.process_time()
    time.sleep(0.1)
    return time.process_time() - before
print(any(used() < 0.01 for _ in range(20)))
"""


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("more", [0, 1, 5])
def test_workers_without_a_job_sleep(run: Run, more: int) -> None:
    """Workers sleep also if they outnumber the CPUs: they sleep at once and wake one another."""
    count = len(os.sched_getaffinity(0)) + more

    assert run(IDLE, str(count)) == ("True\n", "", 0)


def test_workers_leave_the_callers_processor_alone() -> None:
    program = """
here = os.sched_getaffinity(0)
pinned = [os.sched_getaffinity(t.native_id) for t in threading.enumerate() if "tecomp" in t.name]
free = max(len(here) - len(pinned), 0)
print(here == before, all(len(p) == 1 and p <= here for p in pinned), len(set.union(*pinned)) ==
      len(pinned))
"""
    start = "before = os.sched_getaffinity(0)"
    allowed = len(os.sched_getaffinity(0))
    if allowed == 1:
        program = program.replace("len(p) == 1", "p == here").replace("len(set.union(*pinned)) ==\n"
            "      len(pinned)", "True")
    script = PRELUDE.replace("kernel(out, 0)", f"{start}\nkernel(out, 0)") + program
    done = subprocess.run(
        [sys.executable, "-c", script], capture_output=True, text=True, check=False, timeout=60,
        env={**os.environ, "TECOMP_NUM_THREADS": "2"},
    )

    assert (done.stdout, done.stderr) == ("True True True\n", "")


@pytest.mark.parametrize(
    ("triple", "pause", "moves"),
    [
        ("x86_64-unknown-linux-gnu", "@llvm.x86.sse2.pause()", True),
        ("aarch64-unknown-linux-gnu", "@llvm.aarch64.hint(i32 1)", True),
        ("arm64-apple-darwin23.0.0", "@llvm.aarch64.hint(i32 1)", False),
        ("riscv64-unknown-linux-gnu", "", True),
    ],
)
def test_other_machines(triple: str, pause: str, moves: bool) -> None:
    text = pool_text(triple)

    assert pause in text
    assert ("@sched_setaffinity" in text) == moves
    assert ("i32 6, ptr %time" in text) == ("darwin" in triple)
    assert "PAUSE" not in text
    assert "FOLLOW" not in text
