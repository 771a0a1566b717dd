"""What somebody says of memory and storage with a layout: followed, or refused with what there is."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

import numpy as np
import pytest

import tecomp
from tecomp import Layout, te
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


@pytest.mark.parametrize("memory", ["ddr", "global"])
def test_the_memory_of_the_device_is_used(memory: str) -> None:
    A, B, C = chain()
    layout = Layout.of(SIZE, "float32", sticks, memory=memory)
    a = np.random.default_rng(0).standard_normal(SIZE).astype("float32")

    program = tecomp.compile(C, [A], "stick128", layouts={B: layout})

    assert_close(program(a), np.exp(a + a), rtol=1e-5)
    (value,) = (each for each in program.memory.values if each.tensor.name == "B")
    made = next(call for call in program.kernels if call.group.result is value.tensor.op)
    params = made.part.lowered.final.params
    assert params[-1].scope == "ddr"


@pytest.mark.parametrize(("machine", "memory", "message"), [
    ("stick128", "nowhere",
     "layouts: B is to be in memory `nowhere`, and target stick128 has none of that name; its "
     "memories are global, ddr, lx, and values of programs are in `ddr`"),
    ("stick128", "lx",
     "layouts: B is to be in memory `lx` of target stick128, and values of programs are in "
     "`ddr`; give memory='ddr', or none"),
    ("cpu", "nowhere",
     "layouts: B is to be in memory `nowhere`, and target cpu has none of that name; its memories "
     "are global, global.texture, global.stream, shared, local, and values of programs are in "
     "`global`"),
])
def test_another_memory_is_refused(machine: str, memory: str, message: str) -> None:
    A, B, C = chain()
    layout = Layout.of(SIZE, "float32", sticks, memory=memory)

    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(C, [A], machine, layouts={B: layout})

    assert error.value.message == message


def test_another_memory_of_a_copy_is_refused() -> None:
    A, _, _ = chain()
    layout = Layout.of(SIZE, "float32", sticks, memory="lx")
    copied = tecomp.relayout_to(A, layout)
    Y = te.compute(SIZE, lambda i, j: copied[i, j] * 2.0, name="Y")

    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(Y, [A], "stick128")

    assert error.value.message == (
        "layouts: A_relaid is to be in memory `lx` of target stick128, and values of programs are "
        "in `ddr`; give memory='ddr', or none"
    )


@pytest.mark.parametrize(("machine", "dtype", "storage", "message"), [
    ("tensix_wh", "float32", "bfp8",
     "layouts: B is to be stored as bfp8, and programs for target tensix_wh keep float32 as "
     "float32; give a layout that stores it so"),
    ("stick128", "float16", "float8_e4m3fn",
     "layouts: B is to be stored as float8_e4m3fn, and programs for target stick128 keep float16 "
     "as dlfloat16 or float16; give a layout that stores it so"),
    ("cpu", "float32", "dlfloat16",
     "layouts: B is to be stored as dlfloat16, and programs for target cpu keep float32 as "
     "float32; give a layout that stores it so"),
])
def test_another_storage_is_refused(
    machine: str, dtype: str, storage: str, message: str
) -> None:
    A, B, C = chain(dtype)

    with pytest.raises(tecomp.LayoutError) as error:
        tecomp.compile(C, [A], machine, layouts={B: stored(dtype, storage)})

    assert error.value.message == message


def test_the_storage_of_the_machine_is_followed() -> None:
    A, B, C = chain("float16")
    layout = tecomp.StickLayout.for_target(tecomp.Target.load("stick128"), SIZE, "float16")
    assert layout.storage.name == "dlfloat16"

    program = tecomp.compile(C, [A], "stick128", layouts={B: layout})

    assert program.layouts[B].device_layout == layout


def test_rows_in_the_memory_of_the_device() -> None:
    """They are copied there like sticks; without a memory they stay where the caller has them."""
    A, B, C = chain()
    a = np.random.default_rng(0).standard_normal(SIZE).astype("float32")
    rows = Layout.row_major(SIZE, "float32")
    near = replace(rows, memory="ddr")

    outside = tecomp.compile(C, [A], "stick128", layouts={A: rows, B: rows, C: rows})
    program = tecomp.compile(C, [A], "stick128", layouts={A: near, B: near, C: near})

    for each in (outside, program):
        assert_close(each(a), np.exp(a + a), rtol=1e-5)
    assert {kernel.bound_by for kernel in program.report().kernels} >= {"host_in", "host_out"}
    kernels = [call.group.result.name for call in program.kernels]
    assert (kernels[0], kernels[-1]) == ("A", "C")
    assert len(kernels) == len(outside.kernels) + 2
    scopes = {param.scope for param in program.kernels[1].part.lowered.final.params}
    assert scopes == {"ddr"}
