"""Groups of strided vectors are transposed in registers, and keep their values."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, emit_assembly
from tecomp.ir import DType, parse
from tecomp.machine import host_vector_bytes
from tecomp.schedules import argreduce
from tests.strategies.pairwise import pairwise

Both = Callable[..., Kernel]
RANDOM = np.random.default_rng(8)
ROW = 40


def some(name: str, *shape: int) -> np.ndarray[Any, Any]:
    return (RANDOM.standard_normal(shape) * 9).astype(DType(name).numpy)


def copies(lanes: int, source: str, target: str, order: list[int]) -> str:
    """Return one statement for each column of a square."""
    return "".join(
        f"        B[{target}] = A[{source}]\n".replace("COLUMN", str(column)).replace("V", str(lanes))
        for column in order
    )


@pytest.mark.exhaustive(keep=9)
@pairwise(
    lanes=[2, 4, 5, 8, 16, 32], name=["float32", "float64", "bfloat16", "int8", "bool"],
    stride=[str(ROW), "n", "3", "-40"],
)
def test_columns_that_are_read(both: Both, name: str, lanes: int, stride: str) -> None:
    first = 31 * ROW if stride == "-40" else 0
    body = copies(lanes, f"ramp(i + COLUMN + {first}, {stride}, V)", "ramp(i * 64 + COLUMN * V, 1, V)",
                  [*range(lanes)])
    text = f'''def f(A: Buffer("{name}", (2000,)), B: Buffer("{name}", (2000,)), n: "int64"):
    for i in range(3):
{body}'''
    kernel = both(text, some(name, 2000), some(name, 2000), ROW)

    is_square = lanes in (4, 5, 8, 16, 32)
    is_near = lanes >= 4 and stride == "3"
    one_by_one = stride == "n"
    assert ("gather" in kernel.source("llvm")) is not (is_square or is_near or one_by_one)


@pytest.mark.exhaustive(keep=7)
@pairwise(
    lanes=[2, 4, 5, 8, 16, 32], name=["float32", "float64", "bfloat16", "int8", "bool"],
    stride=[str(ROW), "n", "-40", "3"],
)
def test_columns_that_are_written(both: Both, name: str, lanes: int, stride: str) -> None:
    first = 31 * ROW if stride == "-40" else 0
    order = [*reversed(range(lanes))]
    body = copies(lanes, "ramp(i * 64 + COLUMN * V, 1, V)", f"ramp(i + COLUMN + {first}, {stride}, V)",
                  order)
    text = f'''def f(A: Buffer("{name}", (2000,)), B: Buffer("{name}", (2000,)), n: "int64"):
    for i in range(3):
{body}'''
    kernel = both(text, some(name, 2000), some(name, 2000), ROW)

    is_square = lanes in (4, 5, 8, 16, 32) and name != "bool" and (stride != "3")
    assert ("scatter" in kernel.source("llvm")) is not (is_square or stride == "n")


def test_columns_of_bool_may_be_negated(both: Both) -> None:
    """Bytes other than 0 and 1 are true, as in all loads of bool."""
    rows = "".join(
        f"        B[ramp({8 * k}, 1, 8)] = not A[ramp({k}, 9, 8)]\n" for k in range(8))
    text = f'''def f(A: Buffer("bool", (72,)), B: Buffer("bool", (64,)), n: "int64"):
    for i in range(n):
{rows}'''
    data = RANDOM.integers(0, 3, 72).astype("int8")
    kernel = both(text, data.view(bool), np.zeros(64, bool), 1)
    result = np.zeros(64, bool)
    kernel(data.view(bool), result, 1)

    assert "gather" not in kernel.source("llvm")
    np.testing.assert_array_equal(result.reshape(8, 8), (data.reshape(8, 9)[:, :8] == 0).T)


@pytest.mark.parametrize("change", [
    "A[ramp(3, 1, 4)] = B[ramp(0, 1, 4)]",
    "store(B[ramp(8, 1, 4)], B[ramp(0, 1, 4)], where=ramp(0, 1, 4) < broadcast(n, 4))",
    "B[5] = B[6]",
])
def test_memory_that_changes_in_between(both: Both, change: str) -> None:
    body = [f"B[ramp({4 * k}, 1, 4)] = A[ramp({k}, 4, 4)]" for k in range(4)]
    body += [f"B[ramp({k}, 5, 4)] = A[ramp({4 * k}, 1, 4)]" for k in range(4)]
    for place in (1, 3, 4, 6):
        lines = "\n    ".join([*body[:place], change, *body[place:]])
        both(f'''def f(A: Buffer("float32", (16,)), B: Buffer("float32", (24,)), n: "int64"):
    {lines}
''', some("float32", 16), some("float32", 24), 2)


def test_several_squares_with_gaps_and_repeated_columns(both: Both) -> None:
    columns = [0, 1, 2, 3, 5, 5, 6, 7, 8, 9, 11, 12]
    body = "\n".join(
        f"    B[ramp({8 * k}, 1, 4)] = A[ramp({c}, 20, 4)] + A[ramp({c} + 1, 20, 4)]"
        for k, c in enumerate(columns)
    )
    both(f'def f(A: Buffer("float32", (99,)), B: Buffer("float32", (99,))):\n{body}\n',
         some("float32", 99), some("float32", 99))


def test_columns_behind_a_condition_are_not_read_unasked(both: Both) -> None:
    """There is nothing to read after the end of A."""
    body = "\n".join(
        f"    B[ramp({4 * k}, 1, 4)] = "
        f"if_then_else(n > 2, A[ramp(n * {k}, 16, 4)], broadcast(float32(0.0), 4))"
        for k in range(4)
    )
    both(f'def f(A: Buffer("float32", (8,)), B: Buffer("float32", (16,)), n: "int64"):\n{body}\n',
         some("float32", 8), some("float32", 16), 1)


def test_checked_accesses_are_unchanged(both: Both) -> None:
    body = copies(8, "ramp(COLUMN, 8, V)", "ramp(COLUMN * V, 1, V)", [*range(8)])
    both(f'''def f(A: Buffer("float32", (64,)), B: Buffer("float32", (64,))):
    for i in range(1):
{body}''', some("float32", 64), some("float32", 64), check_bounds=True)


def test_eight_by_eight_takes_24_shuffles() -> None:
    body = copies(8, "ramp(COLUMN, 64, V)", "ramp(COLUMN * 64, 1, V)", [*range(8)])
    text = emit_assembly(parse(f'''def f(A: Buffer("float32", (512,)), B: Buffer("float32", (512,))):
    for i in range(1):
{body}'''), triple="x86_64-unknown-linux-gnu", cpu="haswell")
    shuffles = [line.split()[0] for line in text.splitlines() if line.startswith(
        ("\tvunpck", "\tvperm2f128", "\tvinsertf128", "\tvshuf", "\tvblend"))]

    assert "gather" not in text
    assert len(shuffles) == 24


def test_columns_of_bound_values(both: Both) -> None:
    body = "".join(f'''        with Let(A[ramp(i + {k}, {ROW}, 4)] + A[ramp(i + {k + 4}, {ROW}, 4)]) as t{k}:
            B[ramp(i * 16 + {4 * k}, 1, 4)] = t{k} * t{k}
''' for k in range(4))
    kernel = both(f'''def f(A: Buffer("float32", (2000,)), B: Buffer("float32", (2000,))):
    for i in range(3):
{body}''', some("float32", 2000), some("float32", 2000))

    assert "gather" not in kernel.source("llvm")


def test_columns_at_bound_indices(both: Both) -> None:
    body = "".join(f'''        with Let(I[i + {k}]) as t{k}:
            B[ramp(i * 16 + {4 * k}, 1, 4)] = A[ramp(t{k} + {k}, {ROW}, 4)]
''' for k in range(4))
    both(f'''def f(I: Buffer("int64", (8,)), A: Buffer("float32", (2000,)), B: Buffer("float32", (2000,))):
    for i in range(3):
{body}''', np.arange(8), some("float32", 2000), some("float32", 2000))


def test_columns_of_values_bound_in_several_statements(both: Both) -> None:
    body = "".join(f'''        with Let(A[ramp(i + {k}, {ROW}, 4)]) as t{k}:
            with Let(B[ramp(i * 16, 1, 4)]) as u{k}:
                B[ramp(i * 16, 1, 4)] = u{k} + t{k}
                C[ramp(i * 16, 1, 4)] = C[ramp(i * 16, 1, 4)] * t{k}
''' for k in range(4))
    kernel = both(f'''def f(
    A: Buffer("float32", (2000,)), B: Buffer("float32", (200,)), C: Buffer("float32", (200,))
):
    for i in range(3):
{body}''', some("float32", 2000), some("float32", 200), some("float32", 200))

    assert "gather" not in kernel.source("llvm")


@pytest.mark.exhaustive(keep=19)
@pairwise(
    lanes=[4, 8, 16, 32], name=["float32", "float64", "bfloat16", "int8"], columns=[4, 5, 7, 15, 31],
    rows=[1, 3, 5, 13, 32], gap=[0, 9], is_read=[True, False],
)
def test_squares_that_are_not_complete(
    both: Both, name: str, lanes: int, columns: int, rows: int, gap: int, is_read: bool
) -> None:
    """The last row ends with the memory, and no element outside of the columns is accessed."""
    columns, rows = min(columns, lanes), min(rows, lanes)
    stride = columns + gap
    size = stride * (rows - 1) + columns
    across = f"ramp(COLUMN, {stride}, V)"
    along = "ramp(COLUMN * V, 1, V)"
    where = f", where=ramp(0, 1, V) < broadcast({rows}, V)" if rows < lanes else ""
    here, there = (across, along) if is_read else (along, across)
    value = f"A.load({here}{where})" if where else f"A[{here}]"
    line = f"store(B[{there}], {value}{where})" if where else f"B[{there}] = {value}"
    body = "".join(
        f"        {line}\n".replace("COLUMN", str(k)).replace("V", str(lanes)) for k in range(columns)
    )
    sizes = (size, columns * lanes) if is_read else (columns * lanes, size)
    text = f'''def f(A: Buffer("{name}", ({sizes[0]},)), B: Buffer("{name}", ({sizes[1]},))):
    for i in range(1):
{body}'''
    kernel = both(text, some(name, sizes[0]), some(name, sizes[1]))

    # Three rows use four masked lanes; up to three columns may be left next to the squares.
    is_left = rows == 3 and columns % 4 in (1, 2, 3)
    assert is_left or not re.search("gather|scatter", kernel.source("llvm"))


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("columns", range(1, 40))
def test_rows_of_any_length_are_transposed_without_gathers(columns: int) -> None:
    """The last of two squares overlaps with the first; rows of two or three are shuffled.

    A loop over more squares is followed by up to three columns that are loaded element by element.
    """
    A = te.placeholder((64, columns), "float32", name="A")
    places = argreduce.define(A, op="argmax")

    kernel = tecomp.build(places, [A, places])

    a, found = some("float32", 64, columns), np.empty(64, np.int64)
    kernel(a, found)
    np.testing.assert_array_equal(found, a.argmax(axis=1))
    gathers = re.findall(r"= call .*llvm\.masked\.gather", kernel.source("llvm"))
    is_loop = columns > 2 * (host_vector_bytes() // 4)
    assert not gathers or (is_loop and columns % 4 and len(gathers) <= 3)


def test_columns_of_comparisons_are_transposed(both: Both) -> None:
    body = copies(8, f"ramp(i + COLUMN, {ROW}, V)", "ramp(i * 64 + COLUMN * V, 1, V)", [*range(8)])
    body = body.replace("\n", " < broadcast(float32(0), 8)\n")
    text = f'''def f(A: Buffer("float32", (2000,)), B: Buffer("bool", (2000,))):
    for i in range(3):
{body}'''
    kernel = both(text, some("float32", 2000), np.zeros(2000, np.bool_))

    assert "gather" not in kernel.source("llvm")


@pytest.mark.parametrize(("name", "lanes", "columns"), [
    ("int8", 32, 7), ("int8", 32, 11), ("int8", 32, 31), ("int16", 16, 15), ("float32", 8, 7),
])
def test_rows_without_masks_are_loaded_at_once(name: str, lanes: int, columns: int) -> None:
    """Rows are loaded with values of the next row, the last row with values of the previous one."""
    size = lanes * columns
    body = copies(lanes, f"ramp(COLUMN, {columns}, V)", "ramp(COLUMN * V, 1, V)", [*range(columns)])
    text = emit_assembly(parse(f'''def f(
    A: Buffer("{name}", ({size},)), B: Buffer("{name}", ({size},))
):
    for i in range(1):
{body}'''), triple="x86_64-unknown-linux-gnu", cpu="haswell")

    assert "vpinsr" not in text
    assert len(re.findall(r"\d*\(%rdx\), .*%[xy]mm", text)) == lanes
