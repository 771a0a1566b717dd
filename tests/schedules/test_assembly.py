"""Assembly of schedules for pinned CPUs: tiles stay in registers."""

from __future__ import annotations

import re

import pytest

import tecomp
from tecomp import te
from tecomp.codegen import emit_assembly
from tecomp.schedules import conv2d, matmul

CPU = tecomp.Target.load("cpu")
DOTS = ("uint8*int8", "bfloat16*bfloat16")
CORES = {
    "haswell": tecomp.Core(2, 32, 16, (32 * 1024, 256 * 1024)),
    "znver3": tecomp.Core(2, 32, 16, (32 * 1024, 512 * 1024)),
    "skylake-avx512": tecomp.Core(2, 64, 32, (32 * 1024, 1024 * 1024)),
    "znver4": tecomp.Core(2, 64, 32, (32 * 1024, 1024 * 1024), dots=DOTS),
    "znver5": tecomp.Core(2, 64, 32, (48 * 1024, 1024 * 1024), dots=DOTS),
}
LABEL = re.compile(r"^\.?\w+:", re.MULTILINE)


def innermost(assembly: str, word: str) -> list[str]:
    """Return the instructions of the loop that has most instructions `word`."""
    blocks = LABEL.split(assembly)
    block = max(blocks, key=lambda text: text.count(word))
    lines = [line.strip() for line in block.splitlines()]
    end = next(k for k, line in enumerate(lines) if re.match(r"j[a-z]+\s|b\.[a-z]+\s", line))
    return [line for line in lines[: end + 1] if line and not line.startswith((".", "#"))]


def target(cpu: str) -> tecomp.Target:
    return tecomp.Target(cpu, "a pinned processor", CPU.memories, CORES[cpu])


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("cpu", CORES)
def test_the_tile_of_a_product_has_no_spill_and_no_gather(cpu: str) -> None:
    A, B = te.placeholder((1000, 1000), name="A"), te.placeholder((1000, 1000), name="B")
    C = matmul.define(A, B)
    func = tecomp.lower(matmul.schedule(C, target(cpu)), [A, B, C])
    loop = innermost(emit_assembly(func, triple="x86_64-linux-gnu", cpu=cpu), "vfmadd")
    tile = matmul.plan(C, target(cpu)).tile
    vectors = tile.columns // tile.lanes

    assert sum(line.startswith("vfmadd") for line in loop) == tile.rows * vectors
    assert not [line for line in loop if "(%rsp" in line or "(%rbp" in line or "gather" in line]
    register = "%zmm" if CORES[cpu].vector_bytes == 64 else "%ymm"
    assert all(register in line for line in loop if line.startswith("vfmadd"))
    # Loads of columns, loads of rows that are not memory operands of a product, and loop control.
    assert len(loop) <= tile.rows * vectors + tile.rows + vectors + 6


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("cpu", CORES)
@pytest.mark.parametrize("size", [512, 1000])
def test_rows_are_packed_in_whole_vectors(cpu: str, size: int) -> None:
    A, B = te.placeholder((size, size), name="A"), te.placeholder((size, size), name="B")
    C = matmul.define(A, B)
    func = tecomp.lower(matmul.schedule(C, target(cpu)), [A, B, C])
    text = emit_assembly(func, triple="x86_64-linux-gnu", cpu=cpu)

    slow = ("vinsertps", "vunpck", "vpunpck", "gather", "vmovss")
    assert not [line for line in text.splitlines() if any(word in line for word in slow)]


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
def test_a_product_of_integers_takes_pairs(cpu: str) -> None:
    A, B = (te.placeholder((1000, 1000), "int8", name) for name in "AB")
    C = matmul.define(A, B, out_dtype="int32")
    func = tecomp.lower(matmul.schedule(C, target(cpu)), [A, B, C])
    loop = innermost(emit_assembly(func, triple="x86_64-linux-gnu", cpu=cpu), "vpmaddwd")
    tile = matmul.plan(C, target(cpu)).tile

    products = [line for line in loop if line.startswith("vpmaddwd")]
    assert len(products) == tile.rows * (tile.columns // tile.lanes)
    assert sum(line.startswith("vpaddd") for line in loop) == len(products)
    assert not [line for line in loop if "(%rsp" in line or "gather" in line]


@pytest.mark.exhaustive(keep=3, most=15)
@pytest.mark.parametrize("cpu", ["znver4", "znver5"])
@pytest.mark.parametrize(
    ("first", "second", "word"),
    [("int8", "int8", "vpdpbusd"), ("uint8", "int8", "vpdpbusd"), ("uint8", "uint8", "vpdpbusd"),
     ("bfloat16", "bfloat16", "vdpbf16ps")],
)
@pytest.mark.parametrize("turned", [False, True])
def test_a_product_of_narrow_numbers_adds_up_several_at_once(
    cpu: str, first: str, second: str, word: str, turned: bool
) -> None:
    A, B = te.placeholder((512, 512), first, "A"), te.placeholder((512, 512), second, "B")
    total = "float32" if first == "bfloat16" else "int32"
    C = matmul.define(A, B, out_dtype=total, transpose_b=turned)
    func = tecomp.lower(matmul.schedule(C, target(cpu)), [A, B, C])
    text = emit_assembly(func, triple="x86_64-linux-gnu", cpu=cpu)
    loop = innermost(text, word)
    tile = matmul.plan(C, target(cpu)).tile

    products = [line for line in loop if line.startswith(word)]
    rounds = len(products) // (tile.rows * tile.vectors)
    assert rounds in (1, 2)
    assert len(products) == rounds * tile.rows * tile.vectors
    assert all("%zmm" in line for line in products)
    # The offset of 128 is applied when the operand is packed, not in this loop.
    assert len(loop) <= rounds * (tile.vectors * (tile.rows + 1) + tile.rows) + 6
    slow = ("vpinsr", "vpextr", "gather")
    assert not [line for line in text.splitlines() if any(w in line for w in slow)]


@pytest.mark.parametrize("cpu", ["haswell", "skylake-avx512"])
def test_the_tile_of_a_convolution_has_no_spill_and_no_gather(cpu: str) -> None:
    X, W = te.placeholder((1, 28, 28, 64), name="X"), te.placeholder((3, 3, 64, 64), name="W")
    Y = conv2d.define(X, W, padding=1)
    func = tecomp.lower(conv2d.schedule(Y, target(cpu)), [X, W, Y])
    loop = innermost(emit_assembly(func, triple="x86_64-linux-gnu", cpu=cpu), "vfmadd")
    p = conv2d.plan(Y, target(cpu))

    assert sum(line.startswith("vfmadd") for line in loop) == p.tile.rows * p.tile.vectors
    assert not [line for line in loop if "(%rsp" in line or "(%rbp" in line or "gather" in line]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize(("dtype", "word"), [("int8", "vpdpbusd"), ("bfloat16", "vdpbf16ps")])
def test_a_convolution_of_narrow_numbers_adds_up_several_at_once(
    dtype: str, word: str, layout: conv2d.Layout
) -> None:
    first = layout == "NCHW"
    X = te.placeholder((1, 64, 28, 28) if first else (1, 28, 28, 64), dtype, name="X")
    W = te.placeholder((64, 64, 3, 3) if first else (3, 3, 64, 64), dtype, name="W")
    total = "float32" if dtype == "bfloat16" else "int32"
    Y = conv2d.define(X, W, padding=1, layout=layout, out_dtype=total)
    func = tecomp.lower(conv2d.schedule(Y, target("znver4")), [X, W, Y])
    text = emit_assembly(func, triple="x86_64-linux-gnu", cpu="znver4")
    loop = innermost(text, word)
    p = conv2d.plan(Y, target("znver4"))

    products = [line for line in loop if line.startswith(word)]
    assert products
    assert len(products) % (p.tile.rows * p.tile.vectors) == 0
    assert all("%zmm" in line for line in products)
    assert not [line for line in loop if "(%rsp" in line or "vpxor" in line or "vpsub" in line]


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("cpu", CORES)
@pytest.mark.parametrize("layout", ["NHWC", "NCHW"])
@pytest.mark.parametrize("stride", [1, 2])
def test_the_sums_of_a_depthwise_convolution_stay_in_registers(
    cpu: str, layout: conv2d.Layout, stride: int
) -> None:
    first = layout == "NCHW"
    X = te.placeholder((1, 128, 56, 56) if first else (1, 56, 56, 128), name="X")
    W = te.placeholder((128, 1, 3, 3) if first else (3, 3, 1, 128), name="W")
    Y = conv2d.define(X, W, padding=1, stride=stride, groups=128, layout=layout)
    func = tecomp.lower(conv2d.schedule(Y, target(cpu)), [X, W, Y])
    loop = innermost(emit_assembly(func, triple="x86_64-linux-gnu", cpu=cpu), "vfmadd")
    p = conv2d.plan(Y, target(cpu))

    assert p.tile.rows * p.tile.vectors >= 8
    assert sum(line.startswith("vfmadd") for line in loop) == 3 * p.tile.rows * p.tile.vectors
    register = "%zmm" if CORES[cpu].vector_bytes == 64 else "%ymm"
    spilled = [line for line in loop if "(%rsp" in line and register in line]
    assert not [line for line in spilled if line.startswith("vmov")]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize(("size", "padding"), [(28, 1), (30, 0), (14, 1), (13, 1)])
def test_rows_that_are_no_multiple_of_a_tile_have_no_masks(size: int, padding: int) -> None:
    X, W = te.placeholder((1, 16, size, size), name="X"), te.placeholder((16, 16, 3, 3), name="W")
    Y = conv2d.define(X, W, padding=padding, layout="NCHW")
    func = tecomp.lower(conv2d.schedule(Y, target("haswell")), [X, W, Y])
    loop = innermost(emit_assembly(func, triple="x86_64-linux-gnu", cpu="haswell"), "vfmadd")
    p = conv2d.plan(Y, target("haswell"))

    assert sum(line.startswith("vfmadd") for line in loop) == p.tile.rows * p.tile.vectors
    # Gathers of single values are expanded for CPUs with slow gather instructions.
    slow = ("vmaskmov", "vblendv", "gather", "vinsertps", "vpextr")
    assert not [line for line in loop if any(word in line for word in slow)]


def test_a_narrow_product_has_no_masks() -> None:
    A, B = te.placeholder((512, 512), name="A"), te.placeholder((512, 14), name="B")
    C = matmul.define(A, B)
    func = tecomp.lower(matmul.schedule(C, target("haswell")), [A, B, C])
    loop = innermost(emit_assembly(func, triple="x86_64-linux-gnu", cpu="haswell"), "vfmadd")
    tile = matmul.plan(C, target("haswell")).tile

    assert sum(line.startswith("vfmadd") for line in loop) == tile.rows * tile.columns // tile.lanes
    assert not [line for line in loop if "vmaskmov" in line or "vblendv" in line]


@pytest.mark.parametrize("features", ["+neon", "+sve"])
def test_the_tile_of_a_product_on_arm(features: str) -> None:
    arm = tecomp.Target("arm", "", CPU.memories, tecomp.Core(2, 16, 32, (65536, 1048576)))
    A, B = te.placeholder((256, 256), name="A"), te.placeholder((256, 256), name="B")
    C = matmul.define(A, B)
    func = tecomp.lower(matmul.schedule(C, arm), [A, B, C])
    loop = innermost(
        emit_assembly(func, triple="aarch64-linux-gnu", cpu="neoverse-v1", features=features),
        "fmla\t",
    )
    tile = matmul.plan(C, arm).tile

    assert sum(line.startswith("fmla") for line in loop) == tile.rows * tile.columns // tile.lanes
    assert not [line for line in loop if "[sp" in line]
