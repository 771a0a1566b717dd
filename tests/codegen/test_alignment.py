"""Loads and stores state the alignment that follows from their memory and index, and no more."""

from __future__ import annotations

import re
from collections.abc import Callable

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel, Options, divisor, emit_assembly, module_text
from tecomp.ir import BinOp, Const, Expr, Select, Var, binary, cast, parse

X, Y = Var("i"), Var("j")

COPY = '''def copy(A: Buffer("float32", (64, 40), axis_separators=(0,)), B: Buffer("float32", (4096,))):
    for i in {loop}(64):
        with Allocate(Buffer("float32", {shape}{more})) as T:
            T[{row}{first}] = A[i, ramp(0, 1, 8)]
            B[ramp(i * 8, 1, 8)] = T[{row}{first}]
'''


def text(loop: str, size: int, first: str, rows: int = 0) -> str:
    shape, more, row = f"({size},)", "", ""
    if rows:
        shape, more, row = f"({rows}, {size})", ", axis_separators=(0,)", "i % 2, "
    return COPY.format(loop=loop, shape=shape, more=more, row=row, first=first)


def alignments(function: str) -> tuple[set[int], set[int]]:
    """Return the alignments of vector loads and of vector stores."""
    result = module_text(parse(function), Options()).text
    vector = r"<8 x float>[^,\n]*, ptr [^,\n]*, align (\d+)"
    return (
        {int(n) for n in re.findall(rf"= load {vector}", result)},
        {int(n) for n in re.findall(rf"store {vector}", result)},
    )


@pytest.mark.parametrize("loop", ["range", "parallel"])
@pytest.mark.parametrize(
    ("size", "rows", "first", "expected"),
    [
        (512, 0, "ramp(i * 8, 1, 8)", 32),  # on the stack
        (512, 0, "ramp(0, 1, 8)", 64),
        (512, 0, "ramp(i % 60 + 4, 1, 8)", 4),
        (512, 0, "ramp(i * 4 + 64, 1, 8)", 16),
        (8000, 0, "ramp(i * 32, 1, 8)", 128),  # on the heap
        (8000, 0, "ramp(i * 96 + 40, 1, 8)", 32),
        (100, 2, "ramp(i * 1, 1, 8)", 4),  # rows
        (100, 2, "ramp(16, 1, 8)", 64),
    ],
)
def test_scratch(loop: str, size: int, rows: int, first: str, expected: int) -> None:
    loads, stores = alignments(text(loop, size, first, rows))

    # Arguments are aligned to their element size.
    assert stores == {4, expected}
    assert loads == {4, expected}


@pytest.mark.parametrize(
    ("index", "expected"),
    [
        (Const(0), 128),
        (Const(-24), 8),
        (X, 1),
        (X * 48 + Y * 8, 8),
        (X * 16 - 4, 4),
        (X * 16 * (Y * 32), 1),
        (1 / cast("float32", X), 1),
        (X * 16 * 32, 128),
        (X * Y, 1),
        (X * 0, 128),
        ((X * 64) % 24, 8),
        (X * 8 // 8, 1),
        (binary(BinOp.MIN, X * 8, Const(20)), 4),
        (binary(BinOp.MAX, X * 8, Y * 16), 8),
        (Select(X < Y, X * 32, Const(64)), 32),
        (cast("int32", X * 8), 8),
    ],
)
def test_divisor_of_an_index(index: Expr, expected: int) -> None:
    assert divisor(index) == expected


def test_shared_subexpressions_are_analysed_once() -> None:
    """Each choice uses the previous one twice, so there are 2**100 paths through the graph."""
    index: Expr = X * 128
    for k in range(100):
        index = Select(Y * k < X, index * 2 + 64, index)

    assert divisor(index) == 64


@pytest.mark.parametrize("loop", ["range", "parallel"])
@pytest.mark.parametrize("size", [512, 8000, 100000])
def test_addresses_have_the_declared_alignment(
    loop: str, size: int, both: Callable[..., Kernel]
) -> None:
    """Aligned vector instructions fault at any other address."""
    a = np.random.default_rng(1).random((64, 40), "float32")

    both(text(loop, size, "ramp(i * 8, 1, 8)").replace(", axis_separators=(0,)", "")
         .replace("(64, 40)", "(2560,)").replace("A[i, ramp(0, 1, 8)]", "A[ramp(i * 40, 1, 8)]"),
         a.reshape(-1), np.zeros(4096, "float32"))


def test_masked_accesses_of_different_alignment(both: Callable[..., Kernel]) -> None:
    mask = "ramp(i, 1, 8) < broadcast(5, 8)"

    both(f'''def f(A: Buffer("float32", (64,))):
    for i in range(8):
        with Allocate(Buffer("float32", (128,))) as T:
            for j in range(128):
                T[j] = float32(2.0)
            store(T[ramp(i * 8, 1, 8)], A[ramp(i * 8, 1, 8)], where={mask})
            store(T[ramp(i * 2, 1, 8)], T.load(ramp(i * 16, 1, 8), where={mask}), where={mask})
            store(A[ramp(i * 8, 1, 8)], T.load(ramp(i * 2, 1, 8), where={mask}), where={mask})''',
         np.arange(64, dtype="float32"))


def test_packed_operands_are_read_by_aligned_instructions() -> None:
    n = 64
    A = te.placeholder((n, n), name="A")
    B = te.placeholder((n, n), name="B")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    s = te.create_schedule(C)
    packed = s.cache_read(B, "global", [C])
    s[packed].transform_layout(lambda k, j: [j // 16, k, j % 16])
    jo, ji = s[C].split(C.op.axis[1], factor=16)
    s[C].reorder(jo, C.op.axis[0], k, ji)
    s[C].vectorize(ji)

    result = emit_assembly(
        tecomp.lower(s, [A, B, C]), triple="x86_64-unknown-linux-gnu", cpu="x86-64"
    )

    # Without AVX, a memory operand must be aligned; otherwise a separate load is needed.
    assert re.search(r"mulps\s+-?\d*\(%r|movaps\s+-?\d*\(%r", result)
