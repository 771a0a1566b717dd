"""Programs with narrow dtypes: saved and loaded, reported in bytes, and with checked bounds."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS, DType
from tecomp.operations import element_type

NARROW = [name for name in SCALARS if not element_type(name).in_arrays]


def data(name: str, shape: tuple[int, ...]) -> np.ndarray[Any, Any]:
    codes = np.random.default_rng(0).integers(0, 1 << DType(name).bits, shape)
    return codes.astype(np.uint8).view(DType(name).numpy)


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("name", NARROW)
def test_programs_are_saved_and_loaded(name: str, tmp_path: Path) -> None:
    a = data(name, (6, 10))
    A = te.placeholder((6, 10), name, name="A")
    program = tecomp.compile([topi.cast(A, "float32"), topi.transpose(A)], [A])
    program.save(tmp_path / "program")

    numbers, turned = tecomp.load(tmp_path / "program")(a)

    assert np.array_equal(numbers, a.astype(np.float32), equal_nan=True)
    assert np.array_equal(turned.view(np.uint8), a.T.view(np.uint8))


@pytest.mark.parametrize("name", NARROW)
def test_the_cost_model_counts_a_byte_per_element(name: str) -> None:
    A = te.placeholder((64, 64), name, name="A")
    B = te.compute((64, 64), lambda i, j: te.cast(A[i, j], "float32"), name="B")

    report = tecomp.build(te.create_schedule(B.op), [A, B]).report()

    assert report.compulsory_bytes == 64 * 64 + 4 * 64 * 64


@pytest.mark.parametrize("name", NARROW)
def test_bounds_are_checked(name: str) -> None:
    A = te.placeholder((8,), name, name="A")
    place = te.placeholder((8,), "int32", name="place")
    B = te.compute((8,), lambda i: A[place[i]], name="B")
    kernel = tecomp.build(te.create_schedule(B.op), [A, place, B], check_bounds=True)
    a, b = data(name, (8,)), data(name, (8,))

    kernel(a, np.arange(7, -1, -1, dtype="int32"), b)

    assert np.array_equal(b.view(np.uint8), a[::-1].view(np.uint8))
    with pytest.raises(tecomp.CallError) as error:
        kernel(a, np.full(8, 8, "int32"), b)
    assert error.value.kind == "out-of-bounds"


@pytest.mark.parametrize("shape", [(4, 9), (9,), (4, 4)])
@pytest.mark.parametrize("name", NARROW)
def test_arrays_of_another_shape_are_refused(name: str, shape: tuple[int, ...]) -> None:
    A = te.placeholder((4, 8), name, name="A")
    program = tecomp.compile(topi.cast(A, "float32"), [A])

    with pytest.raises(tecomp.CallError) as error:
        program(data(name, shape))

    assert error.value.kind == "argument-mismatch"
