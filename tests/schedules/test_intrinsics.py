"""CPU dot-product instructions: matched in matrix products and present in the assembly."""

from __future__ import annotations

import tomllib
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import emit_assembly
from tecomp.schedules import intrinsics
from tests.messages import Diagnostic, diagnostic
from tests.strategies.fenced import call_fenced

KINDS = {"uint8": "int32", "int8": "int32", "bfloat16": "float32"}


def product(m: int, n: int, depth: int, first: str, second: str, lanes: int = 16) -> Any:
    """Return a product with a right operand packed in groups, tiled for an instruction."""
    total, group = KINDS[first], 2 if first == "bfloat16" else 4
    A = te.placeholder((m, depth), first, name="A")
    B = te.placeholder((depth, n), second, name="B")
    k = te.reduce_axis((0, depth), name="k")
    C = te.compute(
        (m, n),
        lambda i, j: te.sum(A[i, k].astype(total) * B[k, j].astype(total), axis=k), name="C",
    )
    s = te.create_schedule(C)
    packed = s.cache_read(B, "global", [C])
    s[packed].transform_layout(lambda k, j: [k // group, j, k % group], pad_value=0)
    left = s.cache_read(A, "global", [C])
    s[left].transform_layout(lambda i, k: [i, k // group, k % group], pad_value=0)
    i, j = C.op.axis
    local = s.cache_write(C, "local")
    io, jo, ii, _ = s[C].tile(i, j, 4, lanes)
    s[local].compute_at(s[C], jo)
    ko, ki = s[local].split(s[local].op.reduce_axis[0], group)
    i, j = s[local].op.axis
    s[local].reorder(ko, i, j, ki)
    s[local].unroll(i)
    used = intrinsics.bf16_dot(lanes) if group == 2 else intrinsics.vnni(lanes, first, second)
    s[local].tensorize(j, used)
    del io, ii
    return s, [A, B, C]


def numbers(shape: tuple[int, ...], dtype: str, seed: int) -> Any:
    random = np.random.default_rng(seed)
    if dtype == "bfloat16":
        return random.integers(-8, 9, shape).astype(ml_dtypes.bfloat16)
    kind = np.iinfo(dtype)
    return random.integers(kind.min, kind.max, shape, dtype, endpoint=True)


@pytest.mark.exhaustive(keep=1, most=7)
@pytest.mark.parametrize(
    ("shape", "check_bounds"),
    [((8, 32, 16), False), ((7, 40, 18), False), ((3, 5, 3), False), ((3, 5, 3), True)],
)
@pytest.mark.parametrize(
    ("first", "second"),
    [("uint8", "int8"), ("int8", "int8"), ("int8", "uint8"), ("bfloat16", "bfloat16")],
)
def test_products_equal_numpy(
    shape: tuple[int, int, int], check_bounds: bool, first: str, second: str
) -> None:
    m, n, depth = shape
    s, args = product(m, n, depth, first, second)
    a, b = numbers((m, depth), first, 1), numbers((depth, n), second, 2)
    wide = np.float64 if first == "bfloat16" else np.int64
    expected = (a.astype(wide) @ b.astype(wide)).astype(KINDS[first])
    kernel = tecomp.build(s, args, check_bounds=check_bounds)
    c = np.zeros((m, n), KINDS[first])

    call_fenced(kernel, a, b, c)

    np.testing.assert_array_equal(c, expected)
    for name in ("fill_padding", "flatten_buffer", "pack_reads", "simplify"):
        c[:] = 0
        is_flat = name in ("flatten_buffer", "pack_reads", "simplify")
        arrays = [x.reshape(-1) if is_flat else x for x in (a, b, c)]
        tecomp.evaluate(kernel.lowered.functions[name], arrays)
        np.testing.assert_array_equal(c, expected, name)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize(
    ("cpu", "first", "second", "word"),
    [
        ("znver4", "uint8", "int8", "vpdpbusd"),
        ("sapphirerapids", "uint8", "int8", "vpdpbusd"),
        ("znver4", "bfloat16", "bfloat16", "vdpbf16ps"),
        ("sapphirerapids", "bfloat16", "bfloat16", "vdpbf16ps"),
    ],
)
def test_the_instruction_is_used(cpu: str, first: str, second: str, word: str) -> None:
    s, args = product(64, 64, 64, first, second)
    text = emit_assembly(tecomp.lower(s, args), triple="x86_64-linux-gnu", cpu=cpu)
    used = [line for line in text.splitlines() if word in line]

    assert len(used) >= 4
    assert all("%zmm" in line for line in used)


def test_intrinsics_of_vector_targets() -> None:
    core = tecomp.Target("small", "narrow vectors", {}, tecomp.Core(1, 16, 16, (1024,)))
    found = intrinsics.intrinsics(core)

    assert [(item.name, item.op.output(0).shape) for item in found] == [
        ("vnni_uint8_int8", (4,)), ("vnni_int8_int8", (4,)), ("bf16_dot", (4,)),
    ]
    assert intrinsics.intrinsics(tecomp.Target("none", "no vectors", {})) == []
    declared = Path(__file__).parents[2] / "pyproject.toml"
    points = tomllib.loads(declared.read_text(encoding="utf-8"))["project"]["entry-points"]
    assert points["tecomp.intrinsics"]["cpu"] == "tecomp.schedules.intrinsics:intrinsics"


def test_operands_that_are_not_packed_are_refused() -> None:
    A = te.placeholder((16,), "uint8", name="A")
    B = te.placeholder((16, 16), "int8", name="B")
    k = te.reduce_axis((0, 16), name="k")
    C = te.compute(
        (16,), lambda j: te.sum(A[k].astype("int32") * B[k, j].astype("int32"), axis=k), name="C"
    )
    s = te.create_schedule(C)
    ko, ki = s[C].split(k, 4)
    s[C].reorder(ko, C.op.axis[0], ki)
    s[C].tensorize(C.op.axis[0], intrinsics.vnni(16))

    with pytest.raises(tecomp.LowerError) as caught:
        tecomp.lower(s, [A, B, C])
    assert diagnostic(caught.value) == (
        Diagnostic(
            "lower",
            problem="`B[k_outer * 64 + j]` and `B[k_outer * 64 + j + 16]` are read together, but are not contiguous; give B a layout whose last axis holds these elements",
        )
    )
