"""Memory use of arrays: none for intermediate values, and constant over many evaluations."""

from __future__ import annotations

import random
import subprocess
import sys

import pytest

from tecomp.caches import LRUCache

PEAK = """
from pathlib import Path
import numpy as np
import tecomp.array as xp

def chain(x, y):
    for k in range(10):  # 20 operations
        y = xp.sqrt(x * y) if k % 2 else x - y
    return xp.abs(y) {behind}

def most():
    # Of this program alone: ru_maxrss begins with what the process that started it had.
    lines = Path("/proc/self/status").read_text().splitlines()
    return 1024 * int(next(line for line in lines if line.startswith("VmHWM")).split()[1])

small = [xp.asarray(np.ones({small})) for _ in range(2)]
for _ in range(40):  # so often that sizes are built in where they ever are
    xp.eval(chain(*small))
before = most()
given = [xp.asarray(np.full({shape}, 0.5), copy=False) for _ in range(2)]
result = chain(*given)
xp.eval(result)
print((most() - before) / (sum(x.nbytes for x in map(np.asarray, (*given, result)))))
"""

LEAK = """
import gc
import numpy as np
import tecomp.array as xp
from tecomp.array.kernels import data_movement_kernels, execution_plan, kernel

# All that is compiled is compiled before it is measured.
for module in (data_movement_kernels, execution_plan, kernel):
    module.specialization_threshold = lambda kernels, points: 16

def pages():
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1])

x, y = (xp.asarray(np.arange(60.0).reshape(6, 10) + k) for k in range(2))
step = xp.jit(lambda a, b: (a * b, xp.sum(a, axis=0)))

def evaluate(k):
    z = xp.exp(x * -0.01) + y * k
    xp.eval(z, xp.sum(z, axis=1))
    xp.eval(x @ y.T)
    z[k % 6] = 1.0
    z += x
    float(z[0, 0]), z[z > 20], z[xp.asarray([1, 0])]
    xp.eval(*step(z, y))
    np.from_dlpack(z)

def many():
    for k in range(1000):
        evaluate(k)
    gc.collect()
    return pages(), len(gc.get_objects())

many()
first = many()
for _ in range(8):
    last = many()
print((last[0] - first[0]) * 4096, last[1] - first[1])
"""


NEW = """
import ctypes
import gc
from tecomp.array.kernels.kernel import _kernels
from tecomp.array.kernels.execution_plan import _recipes
import tecomp.array as xp

FUNCTIONS = [xp.exp, xp.sin, xp.cos, xp.sqrt, xp.abs, xp.floor, xp.ceil, xp.square, xp.negative]
x = xp.ones(64)

def kilobytes():
    gc.collect()
    if hasattr(ctypes.CDLL(None), "malloc_trim"):
        ctypes.CDLL(None).malloc_trim(0)  # what is free is given back
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4

def many(start, count):
    for k in range(start, start + count):
        y = x
        for place in (1, 9, 81):
            y = FUNCTIONS[k // place % 9](y) + x
        xp.eval(y)
    _kernels.clear()
    _recipes.clear()
    return kilobytes()

many(0, 100)
first = many(100, 50)
print((many(150, 80) - first) / 80)
"""


STRUCTURES = """
import gc
import tecomp.array as xp
from tecomp.array.kernels.execution_plan import _recipes

x, y = xp.ones(2), xp.zeros(2)
xp.eval(x, y)

def many(first, last):
    for k in range(first, last):
        {join}
    gc.collect()
    with open("/proc/self/statm") as file:
        return int(file.read().split()[1]) * 4096 / 2**20

before = many(0, {few})
print(many({few}, {count}) - before)
"""


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize("join", [
    "xp.eval(xp.stack([x, y] * (1500 + k)))", "xp.eval(xp.concat([x] * (3000 + k)))",
], ids=["stack", "concat"])
def test_memory_over_large_structures_is_bounded(join: str) -> None:
    (megabytes,) = printed(STRUCTURES.format(join=join, few=50, count=80))

    assert megabytes < 16  # at least 29 MB if all structures are kept


def printed(program: str) -> list[float]:
    """Run a program in a fresh interpreter and return the numbers that it prints."""
    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stderr
    return [float(number) for number in done.stdout.split()]


@pytest.mark.exhaustive(most=1)
@pytest.mark.parametrize(("shape", "small", "behind"), [
    ((8_000_000,), (1000,), ""), ((2000, 4000), (30, 40), ""), ((8000, 1000), (30, 40), "[::-1, 1:]"),
])
def test_a_chain_allocates_only_its_result(
    shape: tuple[int, ...], small: tuple[int, ...], behind: str
) -> None:
    (ratio,) = printed(PEAK.format(shape=shape, small=small, behind=behind))

    assert 0.9 < ratio < 1.1


@pytest.mark.exhaustive
def test_ten_thousand_evaluations_leave_nothing() -> None:
    memory, objects = printed(LEAK)

    assert memory < 2**20
    assert objects < 100


@pytest.mark.exhaustive
def test_released_kernels_free_memory() -> None:
    (kilobytes,) = printed(NEW)

    assert kilobytes < 20  # each kernel takes at least 80 KB while it is kept


def test_large_keys_count_as_several() -> None:
    recent: LRUCache[object, int] = LRUCache("test", 64)
    for k in range(100):
        recent.keep((k, tuple(range(1000)), ((1, 2),) * 300), k)
    assert len(recent) <= 4
    for k in range(100):
        recent.keep(k, k)
    assert 32 < len(recent) <= 64


def test_recently_used_memory_is_retained() -> None:
    dice = random.Random(5)
    for most in (2, 3, 8, 64):
        recent: LRUCache[int, int] = LRUCache("test", most)
        used: list[int] = []
        for _ in range(2000):
            key = int(dice.gammavariate(2, most / 4))
            found = recent.get(key, None)
            last = used[-1 - used[::-1].index(key):] if key in used else []
            if found is None:
                assert not last or len(set(last)) > most // 2
                recent.keep(key, -key)
            else:
                assert found == -key
            assert len(recent) <= most
            used = [*used[-4 * most:], key]
        recent.clear()
        assert len(recent) == 0
        assert recent.get(used[-1], None) is None
