"""User-requested layouts, memories and storage formats: applied, or rejected with alternatives."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import Layout, ShardLayout, StickLayout, te, topi
from tecomp.driver import CompiledProgram
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close

SIZE = (64, 64)


def sticks(i: te.Expr, j: te.Expr) -> Sequence[te.Expr]:
    return [j // 32, i, j % 32]


def chain(dtype: str = "float32") -> list[te.Tensor]:
    A = te.placeholder(SIZE, dtype, name="A")
    B = te.compute(SIZE, lambda i, j: A[i, j] + A[i, j], name="B")
    return [A, B, te.compute(SIZE, lambda i, j: te.exp(B[i, j]), name="C")]


def stored(dtype: str, storage: str) -> Layout:
    plain = Layout.of(SIZE, dtype, sticks)
    return replace(plain, storage=tecomp.storage_format(storage))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("memory", ["ddr", "global"])
def test_the_memory_of_the_device_is_used(memory: str) -> None:
    A, B, C = chain()
    layout = Layout.of(SIZE, "float32", sticks, memory=memory)
    a = np.random.default_rng(0).standard_normal(SIZE).astype("float32")

    program = tecomp.compile(C, [A], "stick128", layouts={B: layout})

    assert_close(program(a), np.exp(a + a), rtol=1e-5)
    (value,) = (item for item in program.memory.values if item.tensor.name == "B")
    result = next(call for call in program.kernels if call.group.result is value.tensor.op)
    params = result.kernel.lowered.final.params
    assert params[-1].scope == "ddr"


@pytest.mark.parametrize(("machine", "memory", "expected"), [
    ("stick128", "nowhere",
     Diagnostic(
         "unsupported-by-target", tensor="B", memory="nowhere", target="stick128",
         memories="global, ddr, lx", device="ddr",
     )),
    ("stick128", "lx",
     Diagnostic("layout-requirement", tensor="B", memory="lx", target="stick128", device="ddr")),
    ("cpu", "nowhere",
     Diagnostic(
         "unsupported-by-target", tensor="B", memory="nowhere", target="cpu",
         memories="global, global.texture, global.stream, shared, local", device="global",
     )),
])
def test_another_memory_is_refused(machine: str, memory: str, expected: Diagnostic) -> None:
    A, B, C = chain()
    layout = Layout.of(SIZE, "float32", sticks, memory=memory)

    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(C, [A], machine, layouts={B: layout})

    assert diagnostic(error.value) == expected


def test_another_memory_of_a_copy_is_refused() -> None:
    A, _, _ = chain()
    layout = Layout.of(SIZE, "float32", sticks, memory="lx")
    copied = tecomp.relayout_to(A, layout)
    Y = te.compute(SIZE, lambda i, j: copied[i, j] * 2.0, name="Y")

    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(Y, [A], "stick128")

    assert diagnostic(error.value) == (
        Diagnostic("layout-requirement", tensor="A_relaid", memory="lx", target="stick128", device="ddr")
    )


@pytest.mark.parametrize(("machine", "dtype", "storage", "expected"), [
    ("tensix_wh", "float32", "bfp8",
     Diagnostic(
         "layout-requirement", tensor="B", storage="bfp8", target="tensix_wh", plain="float32",
         target_storage="float32",
     )),
    ("stick128", "float16", "float8_e4m3fn",
     Diagnostic(
         "layout-requirement", tensor="B", storage="float8_e4m3fn", target="stick128", plain="float16",
         target_storage="dlfloat16 or float16",
     )),
    ("cpu", "float32", "dlfloat16",
     Diagnostic(
         "layout-requirement", tensor="B", storage="dlfloat16", target="cpu", plain="float32", target_storage="float32",
     )),
])
def test_another_storage_is_refused(
    machine: str, dtype: str, storage: str, expected: Diagnostic
) -> None:
    A, B, C = chain(dtype)

    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(C, [A], machine, layouts={B: stored(dtype, storage)})

    assert diagnostic(error.value) == expected


def test_the_storage_of_the_machine_is_followed() -> None:
    A, B, C = chain("float16")
    layout = tecomp.StickLayout.for_target(tecomp.Target.load("stick128"), SIZE, "float16")
    assert layout.storage.name == "dlfloat16"

    program = tecomp.compile(C, [A], "stick128", layouts={B: layout})

    assert program.layouts[B].device_layout == layout


def test_rows_in_the_memory_of_the_device() -> None:
    """Row-major layouts in device memory need a copy; without a memory, arrays stay on the host."""
    A, B, C = chain()
    a = np.random.default_rng(0).standard_normal(SIZE).astype("float32")
    rows = Layout.row_major(SIZE, "float32")
    near = replace(rows, memory="ddr")

    outside = tecomp.compile(C, [A], "stick128", layouts={A: rows, B: rows, C: rows})
    program = tecomp.compile(C, [A], "stick128", layouts={A: near, B: near, C: near})

    for item in (outside, program):
        assert_close(item(a), np.exp(a + a), rtol=1e-5)
    assert {kernel.bound_by for kernel in program.report().kernels} >= {"host_in", "host_out"}
    kernels = [call.group.result.name for call in program.kernels]
    assert (kernels[0], kernels[-1]) == ("A", "C")
    assert len(kernels) == len(outside.kernels) + 2
    scopes = {param.scope for param in program.kernels[1].kernel.lowered.final.params}
    assert scopes == {"ddr"}


SIDE = 256


def shards(*grid: int, **fields: Any) -> ShardLayout:
    return ShardLayout((SIDE, SIDE), "float32", grid=grid, **{"tile": (32, 32)} | fields)


def chain_and_product() -> tuple[list[te.Tensor], list[te.Tensor]]:
    """Return Z = exp(X) * 2 and Y = exp(X) @ W, which share exp(X)."""
    X, W = (te.placeholder((SIDE, SIDE), name=name) for name in "XW")
    T = te.compute(X.shape, lambda i, j: te.exp(X[i, j]), name="T")
    k = te.reduce_axis((0, SIDE), name="k")
    Y = te.compute(X.shape, lambda i, j: te.sum(T[i, k] * W[k, j], axis=k), name="Y")
    Z = te.compute(X.shape, lambda i, j: T[i, j] * 2.0, name="Z")
    return [X, W], [T, Y, Z]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["tensix_wh", "tensix_bh"])
@pytest.mark.parametrize("grid", [(8, 8), (8, 1), (1, 8), (2, 4), (4, 2)])
def test_shards_in_scratchpads(machine: str, grid: tuple[int, int]) -> None:
    """A value stays in the scratchpads in the shards of its requested layout."""
    (X, _), (T, _, Z) = chain_and_product()
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")

    program = tecomp.compile(Z, [X], machine, layouts={T: shards(*grid)})

    assert_close(program(x), np.exp(x) * 2, rtol=1e-5)
    assert [(resident.tensor.name, resident.parts) for resident in program.memory.residents] == [("T", grid)]
    (kernel,) = (k for k in program.report().kernels if not k.bound_by.startswith("host"))
    # No part of T is in device memory.
    assert (kernel.reads, kernel.writes) == (x.nbytes, x.nbytes)
    assert kernel.cores == grid[0] * grid[1]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("rows", [2, 4, 8])
def test_a_factor_in_shards_of_rows(rows: int) -> None:
    (X, W), (T, Y, _) = chain_and_product()
    random = np.random.default_rng(0)
    x, w = (random.uniform(-1, 1, (SIDE, SIDE)).astype("float32") for _ in range(2))

    program = tecomp.compile(Y, [X, W], "tensix_wh", layouts={T: shards(rows, 1)})

    assert_close(program(x, w), np.exp(x) @ w, rtol=1e-4, atol=1e-4)
    assert [resident.parts for resident in program.memory.residents] == [(rows, 1)]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["tensix_wh", "tensix_bh"])
def test_inputs_in_shards(machine: str) -> None:
    """An input is copied to its shards once, and all readers read these shards."""
    (X, _), (T, _, _) = chain_and_product()
    Y = te.compute(X.shape, lambda i, j: T[i, j] * 2.0 + X[i, j], name="Y")
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")

    program = tecomp.compile(Y, [X], machine, layouts={X: shards(8, 8), T: shards(8, 8)})

    assert_close(program(x), 2 * np.exp(x) + x, rtol=1e-5, magnitude=2 * np.exp(x) + abs(x))
    found = {resident.tensor.name: resident.parts for resident in program.memory.residents}
    assert found == {"X_shards": (8, 8), "T": (8, 8)}
    (kernel,) = (k for k in program.report().kernels if not k.bound_by.startswith("host"))
    assert (kernel.reads, kernel.writes) == (x.nbytes, x.nbytes)


def test_from_pages_to_shards() -> None:
    """A relayout copies pages of device memory into shards that two operations read."""
    X = te.placeholder((SIDE, SIDE), name="X")
    C = tecomp.relayout_to(X, shards(8, 8), name="C")
    U = te.compute(X.shape, lambda i, j: te.exp(C[i, j]), name="U")
    V = te.compute(X.shape, lambda i, j: U[i, j] + C[i, j], name="V")
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")

    program = tecomp.compile(V, [X], "tensix_wh", layouts={U: shards(8, 8)})

    assert_close(program(x), np.exp(x) + x, rtol=1e-5, magnitude=np.exp(x) + abs(x))
    found = {resident.tensor.name: resident.parts for resident in program.memory.residents}
    assert found == {"C": (8, 8), "U": (8, 8)}
    (kernel,) = (k for k in program.report().kernels if not k.bound_by.startswith("host"))
    assert (kernel.reads, kernel.writes) == (x.nbytes, x.nbytes)


@pytest.mark.parametrize(("layout", "message"), [
    (shards(8, 8, tile=None),
     Diagnostic(
         "layout-requirement", tensor="T", memory="l1", linear="lambda d0, d1: [d0, d1]", tile=None,
         target="tensix_wh",
     )),
    (shards(3, 1),
     Diagnostic("layout-requirement", tensor="T", memory="l1", scalar_shard_shape="86 x 256", units="32 x 32")),
    (shards(8, 1, element="bfp_bf8"),
     Diagnostic(
         "layout-requirement", tensor="T", storage="bfp_bf8", target="tensix_wh", plain="float32",
         target_storage="float32",
     )),
    (ShardLayout((SIDE, 64), "float32", grid=(8, 1), tile=(32, 32)),
     Diagnostic(
         "layout-shape-mismatch", tensor="T", dtype="float32", shape="[256, 256]", layout_dtype="float32",
         layout_shape=[256, 64],
     )),
    ([shards(8, 8), "default"],
     Diagnostic("layout-requirement", x="T", memory="l1")),
])
def test_impossible_shards(layout: Any, message: Diagnostic) -> None:
    (X, W), (T, Y, _) = chain_and_product()

    with pytest.raises(tecomp.LayoutError) as caught:
        tecomp.compile(Y, [X, W], "tensix_wh", layouts={T: layout})

    assert diagnostic(caught.value) == message


@pytest.mark.parametrize(("shape", "grid", "message"), [
    ((1024, 1024), (1, 1),
     Diagnostic(
         "layout-requirement", tensor="T", shard_nbytes=4194304, memory="l1", target="tensix_wh",
         capacity_bytes=1498112,
     )),
    ((4096, 64), (128, 1),
     Diagnostic("layout-requirement", tensor="T", cores=128, target="tensix_wh", target_cores=64)),
    ((8192, 2048), (8, 8),
     Diagnostic(
         "layout-requirement", x="T", scratchpad="l1", count="8 x 8",
         reason="its 1_048_576 bytes per core and 1_048_576 bytes of other values leave no space for its readers in l1, which has 1_498_112 bytes per core",
     )),
])
def test_shards_that_do_not_fit(
    shape: tuple[int, int], grid: tuple[int, int], message: Diagnostic
) -> None:
    X = te.placeholder(shape, name="X")
    T = te.compute(shape, lambda i, j: te.exp(X[i, j]), name="T")
    U = te.compute(shape, lambda i, j: T[i, j] * 2.0, name="U")
    Y = te.compute(shape, lambda i, j: T[i, j] + U[i, j], name="Y")
    layout = ShardLayout(shape, "float32", grid=grid, tile=(32, 32))

    with pytest.raises(tecomp.LayoutError) as caught:
        tecomp.compile([U, Y], [X], "tensix_wh", layouts={T: layout, U: layout})

    assert diagnostic(caught.value) == message


def moves(program: Any) -> dict[str, tuple[int, int]]:
    """Return the bytes that each kernel reads and writes, without host transfers."""
    kernels = program.report().kernels
    return {
        k.name: (k.reads, k.writes) for k in kernels if not k.bound_by.startswith("host")
    }


@pytest.mark.exhaustive
def test_readers_of_other_parts_read_a_copy() -> None:
    """A product reads rows and T is sharded in rows and columns, so T is copied once."""
    (X, W), (T, Y, Z) = chain_and_product()
    random = np.random.default_rng(0)
    x, w = (random.uniform(-1, 1, (SIDE, SIDE)).astype("float32") for _ in range(2))

    alone = tecomp.compile(Y, [X, W], "tensix_wh", layouts={T: shards(8, 8)})
    program = tecomp.compile([Y, Z], [X, W], "tensix_wh", layouts={T: shards(8, 8)})

    assert_close(alone(x, w), np.exp(x) @ w, rtol=1e-4, atol=1e-4)
    for actual, want in zip(program(x, w), (np.exp(x) @ w, np.exp(x) * 2), strict=True):
        assert_close(actual, want, rtol=1e-4, atol=1e-4)
    assert [item.parts for item in alone.memory.residents] == [(8, 8)]
    for item in (alone, program):
        (copy,) = item.layouts.reshards
        assert (copy.source, copy.elements) == (shards(8, 8), SIDE * SIDE)
        assert [op.name for op in copy.readers] == ["Y"]
        assert [item.name for item in item.report().relayouts] == ["T"]
        assert item.layouts[T].device_layout == shards(8, 8)
        assert "T for Y: FixedTiledLayout" in str(item.layouts)
    # Z reads T in the scratchpads and loads nothing.
    (last,) = (k for k in program.report().kernels if k.name.startswith("Z") and k.cores == 64)
    (copied,) = (k for k in program.report().kernels if k.name == "T_copy")
    assert (last.bound_by, copied.bound_by) == ("dram write", "dram write")
    scopes = {
        param.name: param.scope for call in program.kernels
        for param in call.kernel.lowered.final.params if "T" in param.name
    }
    assert scopes == {"T": "l1", "T_copy": "dram"}


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["tensix_wh", "tensix_bh"])
def test_outputs_in_shards(machine: str) -> None:
    """An output in the scratchpads is copied to device memory for the host."""
    (X, _), (T, _, Z) = chain_and_product()
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")

    program = tecomp.compile(Z, [X], machine, layouts={Z: shards(8, 4), T: shards(8, 4)})

    assert_close(program(x), np.exp(x) * 2, rtol=1e-5)
    found = {resident.tensor.name: resident.parts for resident in program.memory.residents}
    assert found == {"T": (8, 4), "Z": (8, 4)}
    assert moves(program) == {"Z_copy": (x.nbytes, x.nbytes)}
    assert program.layouts[Z].device_layout == shards(8, 4)


def test_packed_arguments_in_shards() -> None:
    """Packed arguments in the scratchpads are neither loaded nor stored."""
    (X, _), (_, _, Z) = chain_and_product()
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")
    near = shards(8, 8)

    program = tecomp.compile(Z, [X], "tensix_wh", layouts={X: near, Z: near}, packed=[X, Z])

    assert_close(near.unpack(program(near.pack(x))), np.exp(x) * 2, rtol=1e-5)
    assert dict(program.packed) == {X: near, Z: near}
    (call,), (kernel,) = program.kernels, program.report().kernels
    assert {param.scope for param in call.kernel.lowered.final.params} == {"l1"}
    assert kernel.bound_by == "compute"


def test_from_shards_to_shards_of_another_grid() -> None:
    (X, _), (T, _, _) = chain_and_product()
    C = tecomp.relayout_to(T, shards(4, 2), name="C")
    Y = te.compute(X.shape, lambda i, j: C[i, j] + 1.0, name="Y")
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")

    program = tecomp.compile(Y, [X], "tensix_wh", layouts={T: shards(8, 8)})

    assert_close(program(x), np.exp(x) + 1, rtol=1e-5)
    found = {resident.tensor.name: resident.parts for resident in program.memory.residents}
    assert found == {"T": (8, 8), "C": (4, 2)}
    assert not program.layouts.reshards


def test_shards_that_cores_do_not_compute() -> None:
    """A core sorts complete rows, so shards of columns need a relayout."""
    X = te.placeholder((SIDE, SIDE), name="X")
    T = topi.sort(X, axis=1)
    Y = te.compute(X.shape, lambda i, j: T[i, j] * 2.0, name="Y")
    x = np.random.default_rng(0).uniform(-1, 1, (SIDE, SIDE)).astype("float32")

    program = tecomp.compile(Y, [X], "tensix_wh", layouts={T: shards(2, 4)})

    np.testing.assert_array_equal(program(x), np.sort(x, axis=1) * 2)  # exact
    copy, _ = program.layouts.reshards
    assert copy.layout == shards(2, 4)
    assert [resident.parts for resident in program.memory.residents] == [(2, 4)]


@pytest.mark.parametrize("grid", [(1, 2), (2, 2)])
def test_gaps_between_collapsed_axes_in_shards(grid: tuple[int, int]) -> None:
    """Batches start at whole tiles, with gaps in between, as in the document on tiles."""
    shape = (2, 8, 64)
    X = te.placeholder(shape, name="X")
    T = te.compute(shape, lambda *i: te.exp(X[i]), name="T")
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    layout = ShardLayout(
        shape, "float32", lambda b, i, j: [b * 32 + i, j], grid=grid, tile=(32, 32))

    program = tecomp.compile(T, [X], "tensix_wh", layouts={T: layout}, packed=[T])

    assert_close(layout.unpack(program(x)), np.exp(x), rtol=1e-5)


def test_collapsed_axes_in_shards() -> None:
    """One grid axis partitions collapsed batch and row axes, as in the document on tiles."""
    shape = (2, 3, 64, 128)
    X = te.placeholder(shape, name="X")
    T = te.compute(shape, lambda *i: te.exp(X[i]), name="T")
    Y = te.compute(shape, lambda *i: T[i] * 2.0, name="Y")
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype("float32")
    layout = ShardLayout(shape, "float32", grid=(12, 4), tile=(32, 32))

    program = tecomp.compile(Y, [X], "tensix_wh", layouts={T: layout})

    assert_close(program(x), np.exp(x) * 2, rtol=1e-5)
    assert [resident.parts for resident in program.memory.residents] == [(2, 3, 2, 4)]


def test_shards_of_a_constant() -> None:
    (X, W), (_, Y, _) = chain_and_product()

    with pytest.raises(tecomp.LayoutError) as caught:
        tecomp.compile(
            Y, [X], "tensix_wh", constants={W: np.zeros((SIDE, SIDE), "float32")},
            layouts={W: shards(8, 8)},
        )

    assert diagnostic(caught.value) == (
        Diagnostic("layout-requirement", x="W", memory="l1")
    )


def test_shards_of_constants() -> None:
    X = te.placeholder((SIDE, SIDE), name="X")
    K = te.placeholder((SIDE, SIDE), name="K")
    T = te.compute(X.shape, lambda i, j: te.exp(K[i, j]), name="T")
    Y = te.compute(X.shape, lambda i, j: X[i, j] + T[i, j], name="Y")

    with pytest.raises(tecomp.LayoutError) as caught:
        tecomp.compile(
            Y, [X], "tensix_wh", constants={K: np.zeros((SIDE, SIDE), "float32")},
            layouts={T: shards(8, 8)},
        )

    assert diagnostic(caught.value) == (
        Diagnostic("layout-requirement", x="T")
    )


def relaid_result(
    Y: te.Tensor, inputs: dict[te.Tensor, np.ndarray], T: te.Tensor, layout: Layout,
    machine: str = "stick128",
) -> tuple[np.ndarray, CompiledProgram]:
    """Return the result of a program that stores T in a layout, read from its physical addresses if T is Y."""
    packed = [Y] if Y is T else []
    program = tecomp.compile([Y], [*inputs], machine, layouts={T: layout}, packed=packed)
    found = program(*inputs.values())
    assert program.layouts[T].device_layout == layout
    certificate = program.layouts.certificate
    assert certificate.cost == certificate.lower_bound
    return (found.reshape(-1)[layout.offsets()] if packed else found), program


def test_a_result_in_faces_is_relaid() -> None:
    """Operations of the machine work on whole tiles, so a copy moves the elements to faces."""
    A = te.placeholder(SIZE, "float32", name="A")
    B = te.compute(SIZE, lambda i, j: A[i, j] + A[i, j], name="B")
    layout = ShardLayout(SIZE, "float32", tile=(32, 32), face=(16, 16), memory_space="dram")
    a = np.random.default_rng(0).standard_normal(SIZE).astype("float32")

    found, program = relaid_result(B, {A: a}, B, layout, "tensix_wh")

    np.testing.assert_array_equal(found, a + a)
    assert program.layouts.certificate.cost == a.size
    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(B, [A], "tensix_wh", layouts={B: layout}, relayouts=False)
    assert diagnostic(error.value).kind == "layout-requirement"


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(64, 128), (60, 100), (5, 60, 100)])
@pytest.mark.parametrize("dtype", ["float16", "float32"])
def test_results_in_sticks_of_two_dimensions(dtype: str, shape: tuple[int, ...]) -> None:
    """Lanes run along one axis in operations of stick128, so a copy writes blocks."""
    X = te.placeholder(shape, dtype, name="X")
    T = te.compute(shape, lambda *i: X(*i) + X(*i), name="T")
    Y = te.compute(shape, lambda *i: T(*i) * X(*i), name="Y")
    M = te.compute((shape[-1], *shape[:-1]), lambda j, *i: T(*i, j), name="M")
    x = np.random.default_rng(0).uniform(-1, 1, shape).astype(dtype)

    def blocks(tensor: te.Tensor, order: Sequence[int]) -> Layout:
        extents = [int(n) for n in tensor.shape]
        padded = [-(-n // 8) * 8 for n in extents]
        return StickLayout(padded, dtype, order, num_stick_dims=2, size=extents)

    order = range(len(shape))
    for result, expected in ((T, x + x), (M, np.moveaxis(x + x, -1, 0))):
        for dims in (list(order), list(order)[::-1]):
            found, program = relaid_result(result, {X: x}, result, blocks(result, dims))
            np.testing.assert_array_equal(found, expected)
            assert program.layouts.certificate.cost == x.size
    # An intermediate value is relaid for its layout, and again for its reader.
    found, program = relaid_result(Y, {X: x}, T, blocks(T, list(order)))
    assert_close(found, (x + x) * x, rtol=1e-3)
    assert program.layouts.certificate.cost == 2 * x.size


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("machine", ["cpu", "stick128"])
def test_results_of_operations_without_rules_are_relaid(machine: str) -> None:
    """Scans and operations with several results write row-major order."""
    X = te.placeholder(SIZE, "float32", name="X")
    S = te.placeholder(SIZE, "float32", name="S")
    init = te.compute((1, 64), lambda _, j: X[0, j], name="init")
    update = te.compute(SIZE, lambda t, j: te.max(S[t - 1, j], X[t, j]), name="update")
    scan = te.scan(init, update, S, name="scan")
    _, second = te.compute(SIZE, lambda i, j: (X[i, j] * 2, X[i, j] + 1), name="two")
    x = np.random.default_rng(0).standard_normal(SIZE).astype("float32")
    layouts = {"cpu": tecomp.column_major(SIZE, "float32"), "stick128": StickLayout(SIZE, "float32", [1, 0])}

    found, _ = relaid_result(scan, {X: x}, scan, layouts[machine], machine)
    np.testing.assert_array_equal(found, np.maximum.accumulate(x))
    found, _ = relaid_result(second, {X: x}, second, layouts[machine], machine)
    np.testing.assert_array_equal(found, x + 1)

    def body(ins: Any, outs: Any) -> Any:
        builder = te.ir_builder.create()
        with builder.for_range(0, 64, name="i") as i, builder.for_range(0, 64, name="j") as j:
            builder.buffer_ptr(outs[0])[i, j] = builder.buffer_ptr(ins[0])[j, i]
        return builder.get()

    extern = te.extern(SIZE, [X], body, dtype="float32", name="extern")
    found, _ = relaid_result(extern, {X: x}, extern, layouts[machine], machine)
    np.testing.assert_array_equal(found, x.T)
    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile([scan], [X], machine, layouts={scan: layouts[machine]}, relayouts=False)
    assert diagnostic(error.value).kind == "layout-requirement"
