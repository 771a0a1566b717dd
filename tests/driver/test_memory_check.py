"""Memories of a target: placement, capacity and ownership of buffers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from textwrap import indent
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import Kernel
from tecomp.driver import ScheduledKernel, plan
from tecomp.errors import CallError, CapacityError, TargetError
from tecomp.ir import Allocate, For, evaluate, parse, verify, walk
from tecomp.lowering import lower_all, place_buffers, plan_arenas
from tecomp.machine import Target, read_target
from tests.messages import Diagnostic, diagnostic
from tests.strategies.machines import scratchpads

TOY = read_target(scratchpads(
    "toy", '''
[memory.rows]
scope = "core"
rank = 2
alignment_bytes = 64
capacity_bytes = 1024
source = "assumed"
''',
    grid="core.x = 64",
), "toy.toml")
VALUES = np.arange(4096, dtype="float32").reshape(64, 64)


def toy(lx: int = 1 << 20, ddr: int = 1 << 30) -> Target:
    return TOY.overridden(memory={
        "ddr": {"capacity_bytes": ddr}, "lx": {"capacity_bytes": lx, "alignment_bytes": 128},
    })


def doubled(factor: int = 8, scope: str = "global") -> tuple[te.Schedule, list[te.Tensor]]:
    """Build B = 2 A with `factor` rows per core, which are copied to and from lx."""
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    s[A].set_scope(scope)
    i, _ = s[B].op.axis
    copy = s.cache_read(A, "lx", [B])
    result = s.cache_write(B, "lx")
    outer, _ = s[B].split(i, factor=factor)
    s[B].bind(outer, te.thread_axis("core.x"))
    s[copy].compute_at(s[B], outer)
    s[result].compute_at(s[B], outer)
    s[result].vectorize(s[result].op.axis[1])
    return s, [A, B]


def in_chain(count: int) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build a chain of tensors of 1024 bytes in lx; each reads the previous one backwards."""
    A = te.placeholder((256,), name="A")
    results = [A]
    for k in range(count):
        before = results[-1]
        results.append(te.compute((256,), lambda i, t=before: t[255 - i] + 1.0, name=f"T{k}"))
    B = te.compute((256,), lambda i: results[-1][255 - i], name="B")
    s = te.create_schedule(B)
    for tensor in results[1:]:
        s[tensor].set_scope("lx")
    return s, [A, B]


def between(scope: str, turned: bool) -> tuple[te.Schedule, list[te.Tensor]]:
    """Build B in `scope`, stored by cores row by row; `turned` reads columns instead of rows."""
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    C = te.compute((64, 64), lambda i, j: B[j, i] if turned else B[i, j], name="C")
    s = te.create_schedule(C)
    s[B].set_scope(scope)
    for tensor in (B, C):
        s[tensor].bind(s[tensor].op.axis[0], te.thread_axis("core.x"))
    return s, [A, C]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("check_bounds", [False, True])
def test_numbers(agrees: Callable[..., ScheduledKernel], check_bounds: bool) -> None:
    s, (A, B) = doubled()

    kernel = agrees(s, [A, B], {A: VALUES, B: VALUES * 2}, target=toy(), check_bounds=check_bounds)

    loops = [n for n in walk(kernel.func.body) if isinstance(n, For) and n.thread == "core.x"]
    assert len(loops) == 1
    results = [node.buffer for node in walk(loops[0].body) if isinstance(node, Allocate)]
    margin = 128 if check_bounds else 0
    assert [(b.name, b.shape, b.dtype) for b in results] == [
        ("lx.arena", (2048 + 2 * margin,), "uint8")
    ]


def test_the_placed_program(golden: Callable[[object], None]) -> None:
    s, args = doubled()

    golden(tecomp.build(s, args, target=toy(), check_bounds=True).func)


def test_exactly_the_capacity_fits() -> None:
    s, args = doubled()
    tecomp.build(s, args, target=toy(2048))

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, args, target=toy(2047))

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="lx", scope=" of each core", target="toy", limit=2047,
            need=2048, named="A_lx: float32[8, 64], 2048 bytes",
            remedy="s[B].split(i, factor=4) instead of 8 needs 1024",
        )
    )


def test_suggested_schedules_fit() -> None:
    tecomp.build(*doubled(4), target=toy(1024))


def test_programs_without_tiles_are_reported() -> None:
    s, args = in_chain(1)

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, args, target=toy(1023))

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="lx", scope=" of each core", target="toy", limit=1023,
            need=1024, named="T0: float32[256], 1024 bytes",
            remedy="use smaller tiles, or compute it closer to where it is used",
        )
    )


@pytest.mark.parametrize("count", [1, 2, 3, 6])
def test_buffers_that_are_not_needed_together_share_their_place(
    agrees: Callable[..., ScheduledKernel], count: int
) -> None:
    s, (A, B) = in_chain(count)
    a = np.arange(256, dtype="float32")

    agrees(s, [A, B], {A: a, B: a[:: (-1) ** (count + 1)] + count},
           target=toy(min(count, 2) * 1024))

    with pytest.raises(CapacityError):
        tecomp.build(s, [A, B], target=toy(min(count, 2) * 1024 - 1))


def test_arguments_count() -> None:
    s, args = doubled(scope="ddr")
    tecomp.build(s, args, target=toy(ddr=64 * 64 * 4))

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, args, target=toy(ddr=64 * 64 * 4 - 1))

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="ddr", scope="", target="toy", limit=16383,
            need=16384, named="A: float32[64, 64], 16384 bytes",
            remedy="use smaller tiles, or compute it closer to where it is used",
        )
    )


def test_live_buffers_are_named() -> None:
    """Only adjacent tensors of a chain are live at the same time."""
    s, args = in_chain(4)

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, args, target=toy(2047))

    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="lx", scope=" of each core", target="toy", limit=2047,
            need=2048, named="T0: float32[256], 1024 bytes; T1: float32[256], 1024 bytes",
            remedy="use smaller tiles, or compute it closer to where it is used",
        )
    )


def test_offsets_are_aligned() -> None:
    func = parse('''def main(A: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", (3,), scope="lx")) as X:
        with Allocate(Buffer("float32", (5,), scope="lx")) as Y:
            for i in range(3):
                X[i] = A[i]
                Y[i] = X[i]
                A[i] = Y[i] + X[i]
''')

    (arena,) = plan_arenas(func, toy().memories)

    assert {item.buffer.name: (item.offset, item.end) for item in arena.placed} == {
        "X": (128, 140), "Y": (0, 20),
    }


def test_arena_and_enclosing_allocations_are_added() -> None:
    func = parse('''def main(A: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", (64,), scope="lx")) as X:
        with Allocate(Buffer("float32", (32,), scope="lx")) as Y:
            X[0] = A[0]
            Y[0] = X[1]
            for i in parallel(8, thread="core.x"):
                with Allocate(Buffer("float32", (16,), scope="lx")) as Z:
                    Z[0] = A[i]
                    A[i] = Z[0]
            A[0] = Y[0]
''')

    whole, core = plan_arenas(func, toy().memories)

    assert {item.buffer.name: item.end for item in whole.placed} == {"X": 256, "Y": 384}
    # X is dead, but Y is placed after it.
    assert (core.outside, core.peak) == (384, 448)


def shared(formula: str) -> bool:
    """Return whether Y reuses the memory of X in a program that computes Y from X."""
    func = parse(f'''def main(A: Buffer("float32", (8, 64))):
    for o in range(8):
        with Allocate(Buffer("float32", (64,), scope="lx")) as X:
            with Allocate(Buffer("float32", (64,), scope="lx")) as Y:
                for i in range(64):
                    X[i] = A[o, i]
{indent(formula, " " * 16)}
                for i in range(64):
                    A[o, i] = Y[i]
''')
    (arena,) = plan_arenas(func, toy().memories)
    x, y = arena.placed
    assert arena.bytes == (256 if x.offset == y.offset else 512)
    before, after = VALUES[:8].copy(), VALUES[:8].copy()
    evaluate(func, [before])
    evaluate(place_buffers(func, [arena]), [after])
    stored = ~np.isnan(before)  # elements of Y that are not stored are NaN
    assert stored.any()
    np.testing.assert_array_equal(after[stored], before[stored])
    return x.offset == y.offset


@pytest.mark.parametrize(
    ("formula", "is_shared"),
    [
        ("for i in range(64):\n    Y[i] = X[i] * X[i]", True),
        ("for i in range(8):\n    for j in range(8):\n        Y[j * 8 + i] = X[j * 8 + i]", True),
        ("for i in range(8):\n    Y[ramp(i * 8, 1, 8)] = X[ramp(i * 8, 1, 8)]", True),
        ("for i in range(64):\n    Y[63 - i] = X[63 - i]", True),
        ("for i in range(64):\n    Y[i] = X[63 - i]", False),
        ("for i in range(63):\n    Y[i] = X[i] + X[i + 1]", False),
        # Each element is stored several times.
        ("for i in range(64):\n    for j in range(4):\n        Y[i] = X[i] + float32(1.0)", False),
        ("for i in range(8):\n    for j in range(9):\n        Y[i * 7 + j] = X[i * 7 + j]", False),
        ("for i in range(64):\n    Y[i // 2] = X[i // 2] + float32(1.0)", False),
        # X is used by another statement of the loop, or after the loop.
        ("for i in range(63):\n    A[o, i] = X[i + 1]\n    Y[i] = X[i]", False),
        ("for i in range(64):\n    Y[i] = X[i]\nfor i in range(64):\n    A[o, i] = X[i]", False),
        ("for i in range(64):\n    Y[i] = float32(0.0)\n"
         "for i in range(64):\n    Y[i] = Y[i] + X[i]", False),
    ],
)
def test_memory_is_reused_after_the_last_read(formula: str, is_shared: bool) -> None:
    """A statement may overwrite its last input: one index, and each element stored once."""
    assert shared(formula) == is_shared


def test_memory_is_live_across_iterations() -> None:
    func = parse('''def main(A: Buffer("float32", (64,))):
    with Allocate(Buffer("float32", (64,), scope="lx")) as X:
        for i in range(64):
            X[i] = A[i]
        for o in range(8):
            with Allocate(Buffer("float32", (64,), scope="lx")) as Y:
                for i in range(64):
                    Y[i] = X[i] + float32(1.0)
                for i in range(64):
                    A[i] = Y[i] + A[i]
''')
    (arena,) = plan_arenas(func, toy().memories)

    assert {item.offset for item in arena.placed} == {0, 256}


def test_a_chain_of_formulas_has_one_place() -> None:
    A = te.placeholder((256,), name="A")
    results = [A]
    for k in range(5):
        results.append(te.compute((256,), lambda i, t=results[-1]: t[i] + 1.0, name=f"T{k}"))
    B = te.compute((256,), lambda i: results[-1][255 - i], name="B")
    s = te.create_schedule(B)
    for tensor in results[1:]:
        s[tensor].set_scope("lx")

    (arena,) = plan(tecomp.build(s, [A, B], target=toy()).lowered, toy()).arenas

    assert {item.offset for item in arena.placed} == {0}
    assert arena.peak == 1024


def test_rows_of_a_memory_with_two_axes_are_aligned() -> None:
    func = parse('''def main(A: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", (3, 5), scope="rows", axis_separators=(0,))) as X:
        for i in range(3):
            X[i, 4] = A[i]
            A[i] = X[i, 4]
''')

    (arena,) = plan_arenas(func, toy().memories)

    assert arena.peak == 3 * 64
    assert f"{place_buffers(func, [arena])}\n" == '''def main(A: Buffer("float32", (8,))):
    with Allocate(Buffer("uint8", (192,), scope="rows")) as rows_arena:
        with DeclBuffer(Buffer("float32", (48,), scope="rows", data=rows_arena.data)) as X:
            for i in range(3):
                X[i * 16 + 4] = A[i]
                A[i] = X[i * 16 + 4]
'''


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("guards", [False, True])
@pytest.mark.parametrize("lanes", [1, 4])
def test_tables_of_rows(agrees: Callable[..., ScheduledKernel], lanes: int, guards: bool) -> None:
    """Two tensors in a memory of rank 2 are placed side by side, each with its own row length."""
    A = te.placeholder((4, 3, 20), name="A")
    B = te.compute((4, 3, 20), lambda i, j, k: A[i, j, k] + 1.0, name="B")
    C = te.compute((4, 3, 12), lambda i, j, k: B[i, j, k + 4] * 2.0, name="C")
    D = te.compute((4, 3, 12), lambda i, j, k: C[3 - i, 2 - j, 11 - k] + B[i, j, k], name="D")
    s = te.create_schedule(D)
    for tensor in (B, C):
        s[tensor].set_scope("rows")
        s[tensor].transform_layout(lambda i, j, k: [i, j, te.AXIS_SEPARATOR, k])
    for tensor in (B, C, D):
        if lanes > 1:
            s[tensor].vectorize(s[tensor].split(s[tensor].leaf_iter_vars[-1], factor=lanes)[1])
    a = np.arange(240, dtype="float32").reshape(4, 3, 20)
    b = a + 1
    c = b[:, :, 4:16] * 2
    # Rows of 80 bytes take 128 bytes, and rows of 48 bytes take 64 bytes.
    target = toy().overridden(memory={"rows": {"capacity_bytes": 12 * (128 + 64)}})

    kernel = agrees(s, [A, D], {A: a, D: c[::-1, ::-1, ::-1] + b[:, :, :12]}, target=target,
                    check_bounds=guards)

    arenas = [n.buffer for n in walk(kernel.func.body) if isinstance(n, Allocate)]
    assert [(b.name, b.scope) for b in arenas] == [("rows.arena", "rows")]
    small = toy().overridden(memory={"rows": {"capacity_bytes": 12 * (128 + 64) - 1}})
    with pytest.raises(CapacityError) as error:
        tecomp.build(s, [A, D], target=small)
    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="rows", scope=" of each core", target="toy",
            limit=2303, need=2304,
            named="B: float32[4, 3, 20], 1536 bytes; C: float32[4, 3, 12], 768 bytes",
            remedy="use smaller tiles, or compute it closer to where it is used",
        )
    )


def test_more_parts_are_smaller() -> None:
    A = te.placeholder((64, 64), name="A")
    B = te.compute((64, 64), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    copy = s.cache_read(A, "lx", [B])
    outer, _ = s[B].split(B.op.axis[0], nparts=4)
    s[B].bind(outer, te.thread_axis("core.x"))
    s[copy].compute_at(s[B], outer)

    with pytest.raises(CapacityError) as error:
        tecomp.build(s, [A, B], target=toy(1100))
    assert diagnostic(error.value) == (
        Diagnostic(
            "capacity", final="main", memory="lx", scope=" of each core", target="toy", limit=1100,
            need=4096, named="A_lx: float32[16, 64], 4096 bytes",
            remedy="s[B].split(i, nparts=16) instead of 4 needs 1024",
        )
    )

    # The grid has only these cores.
    few = toy(1100).overridden(grid={"core.x": 8})
    with pytest.raises(CapacityError) as error:
        tecomp.build(s, [A, B], target=few)
    assert diagnostic(error.value) == Diagnostic(
        "capacity", final="main", memory="lx", scope=" of each core", target="toy", limit=1100,
        need=4096, named="A_lx: float32[16, 64], 4096 bytes",
        remedy="use smaller tiles, or compute it closer to where it is used",
    )


def _call(kernel: Kernel, args: Sequence[Any]) -> None:
    kernel(*args)


def test_views_of_rows_in_an_arena() -> None:
    """Rows are adjacent and aligned in the arena; a view has its own number of rows."""
    func = parse('''def main(A: Buffer("float32", (8,)), O: Buffer("float32", (12,))):
    with Allocate(Buffer("float32", (4, 3, 5), scope="lx", axis_separators=(0, 1))) as X:
        with DeclBuffer(Buffer("float32", (3, 4, 4), scope="lx", axis_separators=(0, 1), data=X.data)) as V:
            with DeclBuffer(Buffer("float32x2", (2, 6, 2), axis_separators=(0, 1), data=X.data)) as W:
                for i in range(4):
                    for j in range(3):
                        for k in range(5):
                            X[i, j, k] = cast("float32", i * 100 + j * 10 + k)
                V[2, 3, 3] = A[1]
                W[0, 4, 1] = broadcast(A[2], 2)
                for i in range(3):
                    for j in range(4):
                        O[i * 4 + j] = V[i, j, 3] + X[j, i, 3]
''')
    placed = place_buffers(func, plan_arenas(func, toy().memories))
    verify(placed, flat=True)
    a = np.arange(8, dtype="float32") + 1000
    rows = np.add.outer(np.arange(4) * 100, np.arange(3) * 10).reshape(12, 1) + np.arange(5.0)
    rows[11, 3], rows[4, 2:4] = a[1], a[2]
    expected = rows[:, 3] + rows[:, 3].reshape(4, 3).T.ravel()

    for run in (
        partial(evaluate, func), partial(evaluate, placed), partial(_call, Kernel(placed))
    ):
        found = np.zeros(12, "float32")
        run([a, found])
        np.testing.assert_array_equal(found, expected)


@pytest.mark.parametrize(("index", "shown"), [(32, 128), (63, 252), (-1, -4), (-32, -128)])
def test_a_write_around_an_arena_is_found(index: int, shown: int) -> None:
    func = parse(f'''def main(A: Buffer("float32", (8,))):
    with Allocate(Buffer("float32", (32,), scope="lx")) as X:
        X[{index}] = A[0]  # no byte of 1.0 is a guard
''')
    kernel = Kernel(place_buffers(func, plan_arenas(func, toy().memories), guards=True))

    with pytest.raises(CallError) as error:
        kernel(np.ones(8, "float32"))

    assert diagnostic(error.value) == (
        Diagnostic("out-of-bounds", value=shown, text="the 128 bytes of the arena in memory `lx`")
    )


def test_cores_may_have_parts_of_a_buffer_in_their_memories(
    agrees: Callable[..., ScheduledKernel],
) -> None:
    s, (A, C) = between("lx", turned=False)

    kernel = agrees(s, [A, C], {A: VALUES, C: VALUES * 2}, target=toy(256))

    assert plan(kernel.lowered, toy(256)).peak("lx") == 256
    with pytest.raises(CapacityError):
        tecomp.build(s, [A, C], target=toy(255))


def test_cores_cannot_read_memory_of_other_cores() -> None:
    s, args = between("lx", turned=True)

    with pytest.raises(TargetError) as error:
        tecomp.build(s, args, target=toy())

    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", where="B: memory `lx` of target toy is private to each core",
            buffer="element [0, 63] of B is used by core.x=0 and by core.x=63",
            remedy="copy it to a memory of the chip first, or compute it inside the loop bound to core.x",
        )
    )


def test_cores_share_memories_of_the_chip(agrees: Callable[..., ScheduledKernel]) -> None:
    s, (A, C) = between("ddr", turned=True)

    agrees(s, [A, C], {A: VALUES, C: VALUES.T * 2}, target=toy())


def test_cores_of_accesses_must_be_known() -> None:
    A = te.placeholder((64,), name="A")
    index = te.placeholder((64,), "int32", name="index")
    B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
    C = te.compute((64,), lambda i: B[index[i]], name="C")
    s = te.create_schedule(C)
    s[B].set_scope("lx")
    s[C].bind(s[C].op.axis[0], te.thread_axis("core.x"))

    with pytest.raises(TargetError) as error:
        tecomp.build(s, [A, index, C], target=toy())

    assert diagnostic(error.value) == (
        Diagnostic(
            "cores", where="B: memory `lx` of target toy is private to each core", expr="index[i]",
            remedy="copy it to a memory of the chip first, or compute it inside the loop bound to core.x",
        )
    )


def test_a_loop_over_cores_is_printed_and_parsed() -> None:
    s, args = doubled()
    func = tecomp.lower(s, args)

    assert 'in parallel(8, thread="core.x"):' in str(func)
    assert parse(str(func)) == func
    assert parse(str(func).replace("core.x", "core.y")) != func


def test_a_loop_over_cores_stays_one_loop() -> None:
    """Core 7 has a tail, before which isl would end the loop."""
    A = te.placeholder((60,), name="A")
    B = te.compute((60,), lambda i: A[i] + 1.0, name="B")
    s = te.create_schedule(B)
    outer, inner = s[B].split(B.op.axis[0], factor=8)
    s[B].bind(outer, te.thread_axis("core.x"))
    s[B].vectorize(inner)

    loops: list[Any] = [
        node for node in walk(lower_all(s, [A, B]).final.body) if isinstance(node, For)
    ]

    assert [(loop.thread, loop.extent.value) for loop in loops] == [("core.x", 8)]


def test_sizes_of_a_call_have_to_fit(agrees: Callable[..., ScheduledKernel]) -> None:
    n = te.var("n")
    A = te.placeholder((8, n), name="A")
    B = te.compute((8, n), lambda i, j: A[i, j] * 2.0, name="B")
    s = te.create_schedule(B)
    copy = s.cache_read(A, "lx", [B])
    outer, _ = s[B].split(B.op.axis[0], factor=4)
    s[B].bind(outer, te.thread_axis("core.x"))
    s[copy].compute_at(s[B], outer)
    a = np.arange(800, dtype="float32").reshape(8, 100)

    kernel = agrees(s, [n, A, B], {n: 100, A: a, B: a * 2}, target=toy(4 * 100 * 4))

    assert kernel.report(n=100).memories[0].peak_bytes == 1600
    for _ in range(2):
        with pytest.raises(CapacityError) as error:
            kernel(101, np.ones((8, 101), "float32"), np.ones((8, 101), "float32"))
        assert diagnostic(error.value) == (
            Diagnostic(
                "capacity", final="main", memory="lx", scope=" of each core", target="toy",
                limit=1600, need=1616, named="A_lx: float32[4, n], 1616 bytes",
                remedy="s[B].split(i, factor=2) instead of 4 needs 808",
            )
        )
    b = np.empty((8, 50), "float32")
    kernel(50, a[:, :50].copy(), b)
    np.testing.assert_array_equal(b, a[:, :50] * 2)


def test_symbolic_sizes_keep_their_names_in_unrolled_code() -> None:
    n = te.var("n")
    A = te.placeholder((n * 2,), name="A")
    T = te.compute((n * 2,), lambda i: A[i] + 1.0, name="T")
    D = te.compute((2, n * 2), lambda i, j: T[j] * 2.0, name="D")
    s = te.create_schedule(D)
    row = D.op.axis[0]
    s[D].unroll(row)
    s[s.cache_read(A, "local", [T])].compute_at(s[D], row)
    s[T].compute_at(s[D], row)
    target = Target.load("cpu").overridden(memory={"local": {"capacity_bytes": 64}})
    kernel = tecomp.build(s, [A, D, n], target)
    a, d = np.arange(4, dtype="float32"), np.empty((2, 4), "float32")
    kernel(a, d, 2)

    np.testing.assert_array_equal(d, [(a + 1) * 2] * 2)


@pytest.mark.parametrize("rows", [False, True])
@pytest.mark.parametrize("at", [False, True])
def test_programs_keep_both_in_one_memory(rows: bool, at: bool, agrees: Any) -> None:
    A = te.placeholder((6, 40), "int32", name="A")
    B = te.compute((6, 40), lambda i, j: A[i, j] * 2, name="B")
    s = te.create_schedule(B.op)
    written = s.cache_write(B, "global.vtcm")
    read = s.cache_read(A, "global.vtcm", [written])
    if at:
        s[written].compute_at(s[B], B.op.axis[0])
    if rows:
        s[read].transform_layout(lambda i, j: [j // 8, te.AXIS_SEPARATOR, i, j % 8])
    a = np.arange(240, dtype="int32").reshape(6, 40)

    agrees(s, [A, B], {A: a, B: a * 2}, target="vtcm2d")
