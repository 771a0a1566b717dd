"""Lanes with known constant offsets are shuffled from contiguous loads."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, LaneRun, compile_function, runs_of
from tecomp.ir import BufferLoad, BufferStore, For, PrimFunc, parse
from tecomp.schedules import auto
from tests.strategies.fenced import call_fenced

ROUNDS = 3


def function(index: str, elements: int, dtype: str, lanes: int) -> PrimFunc:
    return parse(f'''def f(A: Buffer("{dtype}", ({elements},)), B: Buffer("{dtype}", ({ROUNDS * lanes},))):
    for i in range({ROUNDS}):
        B[ramp(i * {lanes}, 1, {lanes})] = A[{index}]
''')


def runs(index: str, lanes: int = 8, count: int = 8) -> tuple[LaneRun, ...] | None:
    loop = function(index, 1000, "float32", lanes).body
    assert isinstance(loop, For)
    assert isinstance(loop.body, BufferStore)
    assert isinstance(loop.body.value, BufferLoad)
    found = runs_of(loop.body.value.indices[0], count)
    return None if found is None else found.runs


HALF, PARITY = "ramp(0, 1, 8) // broadcast(2, 8)", "ramp(0, 1, 8) % broadcast(2, 8)"
FOUND: dict[str, tuple[str, tuple[LaneRun, ...] | None]] = {
    "two rows": (f"{HALF} + {PARITY} * broadcast(100, 8)", (LaneRun(0, 4), LaneRun(100, 4))),
    "one row": (f"broadcast(i, 8) + {HALF} + {PARITY} * broadcast(3, 8)", (LaneRun(0, 7),)),
    "twice the same": (f"broadcast(7 * i, 8) + {HALF}", (LaneRun(0, 4),)),
    "a factor": (f"(broadcast(i, 8) + {HALF}) * broadcast(9, 8)", tuple(LaneRun(9 * k, 1) for k in range(4))),
    "backwards": (f"broadcast(50, 8) - {HALF}", (LaneRun(-3, 4),)),
    "a single step": ("ramp(i, 5, 8)", None),
    "a sum of single steps": ("ramp(0, 2, 8) + ramp(i, 1, 8)", None),
    "too many": (f"{HALF} * broadcast(9, 8) + {PARITY} * broadcast(100, 8)", None),
    "unknown numbers": ("ramp(i, 1, 8) // broadcast(2, 8)", None),
    "an unknown factor": (f"{HALF} * broadcast(i, 8)", None),
}


@pytest.mark.parametrize("name", FOUND)
def test_runs(name: str) -> None:
    index, expected = FOUND[name]

    assert runs(index) == expected


def test_lanes_that_take_no_part_are_in_no_run() -> None:
    assert runs(f"{HALF} + {PARITY} * broadcast(100, 8)", count=3) == (LaneRun(0, 2), LaneRun(100, 1))


@pytest.mark.exhaustive(keep=18)
@pytest.mark.parametrize("seed", range(40))
def test_random_lanes(seed: int) -> None:
    """Random index formulas of any dtype and length agree, and read nothing out of bounds."""
    dice = Random(seed)
    lanes, dtype = dice.choice([2, 4, 6, 8, 16, 24]), dice.choice(["float32", "int8", "float64", "bool"])
    parts = []
    for _ in range(dice.randint(1, 2)):
        part = f"ramp({dice.randint(0, 3)}, {dice.randint(1, 2)}, {lanes})"
        part = f"({part}) {dice.choice(['//', '%'])} broadcast({dice.randint(2, 5)}, {lanes})"
        parts.append(f"({part}) * broadcast({dice.choice([1, 1, 3, 40])}, {lanes})")
    index = " + ".join(parts) + f" + broadcast(i * {dice.randint(0, 7)}, {lanes})"
    loop = function(index, 1, dtype, lanes)
    each = [eval_index(index, lanes, i) for i in range(ROUNDS)]
    first, last = min(map(min, each)), max(map(max, each))
    loop = function(f"{index} - broadcast({first}, {lanes})", last - first + 1, dtype, lanes)
    a = np.random.default_rng(seed).integers(0, 2 if dtype == "bool" else 100, last - first + 1).astype(dtype)
    b = np.zeros(ROUNDS * lanes, dtype)

    call_fenced(Kernel(loop), a, b)

    np.testing.assert_array_equal(b, np.concatenate([a[np.array(row) - first] for row in each]))


def eval_index(index: str, lanes: int, i: int) -> list[int]:
    def ramp(base: int, step: int, count: int) -> np.ndarray:
        return base + step * np.arange(count)

    def broadcast(value: int, count: int) -> np.ndarray:
        return np.full(count, value)

    found: list[int] = eval(index, {"ramp": ramp, "broadcast": broadcast, "i": i}).tolist()
    return found


@pytest.mark.parametrize("block", [2, 4])
def test_channels_as_places_of_blocks(block: int) -> None:
    """Rows of interleaved channels are read contiguously, without gathers."""
    A = te.placeholder((block, 5, 48), name="A")
    B = te.compute((5, 48 * block), lambda y, x: A[x % block, y, x // block], name="B")
    a = np.random.default_rng(0).standard_normal((block, 5, 48)).astype(np.float32)
    b = np.zeros((5, 48 * block), np.float32)

    tecomp.build(B, [A, B])(a, b)

    np.testing.assert_array_equal(b, a.transpose(1, 2, 0).reshape(5, -1))
    assert "gather" not in compile_function(tecomp.lower(auto(B, "cpu"), [A, B])).llvm_ir
