"""Integers of less than 8 bits: arrays of ml_dtypes, layouts, formats and DLPack."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from numpy.typing import NDArray

import tecomp
from tecomp import te, topi
from tecomp.ir import SCALARS, DType, integer_range
from tests.codegen.test_dlpack import Handmade
from tests.messages import Diagnostic, diagnostic
from tests.strategies.dtypes import WITH_ZERO, in_dtype

NARROW = [name for name in SCALARS if DType(name).bits < 8 and not DType(name).is_bool]
INTEGERS = [name for name in NARROW if DType(name).is_integer]

Array = NDArray[Any]


def values(shape: tuple[int, ...], name: str) -> Array:
    """Return random values of a dtype."""
    codes = np.random.default_rng(len(shape)).integers(0, 1 << DType(name).bits, shape)
    return codes.astype(np.uint8).view(DType(name).numpy)


def as_numbers(array: Array) -> Array:
    return array.astype(np.float64)


@pytest.mark.exhaustive(keep=19)
@pytest.mark.parametrize("shape", [(7,), (3, 5), (2, 3, 17), (1, 1), (0, 4)])
@pytest.mark.parametrize("name", NARROW)
def test_arrays_have_an_element_per_byte(name: str, shape: tuple[int, ...]) -> None:
    """Odd extents and transposed reads give the elements of NumPy, and canonical bytes."""
    a = values(shape, name)
    A = te.placeholder(shape, name, name="A")
    B = topi.transpose(A)
    program = tecomp.compile(B, [A])

    found = program(a)

    assert found.dtype == a.dtype
    assert np.array_equal(found.view(np.uint8), a.T.view(np.uint8))


@pytest.mark.parametrize("name", NARROW)
def test_bits_beyond_the_value_are_ignored(name: str) -> None:
    """Only the lowest bits of a byte count, as in integers of ml_dtypes."""
    codes = np.arange(256, dtype=np.uint8)
    canonical = (codes & (1 << DType(name).bits) - 1).view(DType(name).numpy)
    a = codes.view(DType(name).numpy)
    A = te.placeholder((256,), name, name="A")
    program = tecomp.compile([topi.cast(A, "float32"), topi.identity(A)], [A])

    numbers, copied = program(a)

    assert np.array_equal(numbers, canonical.astype(np.float32))
    assert np.array_equal(copied.view(np.uint8), canonical.view(np.uint8))


@pytest.mark.exhaustive(keep=13)
@pytest.mark.parametrize("source", ["float32", "float64", "int8", "uint16", "int64"])
@pytest.mark.parametrize("name", INTEGERS)
def test_casts_saturate_floats_and_wrap_integers(name: str, source: str) -> None:
    low, high = integer_range(DType(name))
    data = np.arange(-40, 41).astype(source)
    if DType(source).is_float:
        data = np.concatenate([data / 4, np.array([np.nan, np.inf, -np.inf, 1e30], source)])
        expected = np.clip(np.nan_to_num(np.trunc(data), posinf=99, neginf=-99), low, high)
    else:
        expected = (data.astype(np.int64) - low) % (high - low + 1) + low
    A = te.placeholder(data.shape, source, name="A")

    found = tecomp.compile(topi.cast(A, name), [A])(data)

    assert np.array_equal(found.astype(np.int64), expected.astype(np.int64))


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("is_texture", [False, True])
@pytest.mark.parametrize("name", NARROW)
def test_index_maps_move_elements(name: str, is_texture: bool) -> None:
    """Layouts with padding and axis separators store one element per byte."""
    a = values((5, 13), name)
    A = te.placeholder((5, 13), name, name="A")
    B = te.compute((5, 13), lambda i, j: A[i, j], name="B")
    C = te.compute((5, 13), lambda i, j: B[i, 12 - j], name="C")
    schedule = te.create_schedule(C.op)
    if is_texture:
        schedule[B].set_scope("global.texture")
        schedule[B].transform_layout(lambda i, j: [j // 4, te.AXIS_SEPARATOR, i, j % 4])
    else:
        schedule[B].transform_layout(lambda i, j: [j // 4, i, j % 4], pad_value=1)
    compiled, interpreted = np.empty_like(a), np.empty_like(a)

    tecomp.evaluate(tecomp.lower(schedule, [A, C]), [a.reshape(-1), interpreted.reshape(-1)])
    if not is_texture:
        tecomp.build(schedule, [A, C])(a, compiled)
        assert np.array_equal(compiled.view(np.uint8), a[:, ::-1].view(np.uint8))

    assert np.array_equal(interpreted.view(np.uint8), a[:, ::-1].view(np.uint8))


@pytest.mark.parametrize("name", [name for name in NARROW if DType(name).bits == 4])
def test_formats_pack_two_elements_into_a_byte(name: str) -> None:
    """A weight of 4 bits is unpacked and multiplied as ONNX stores it: the first in the low bits."""
    a = values((6, 10), name)
    packed = (a[:, ::2].view(np.uint8) & 15) | (a[:, 1::2].view(np.uint8) << 4)
    storage = tecomp.storage_format(name)
    W = te.placeholder((6, 5), "uint8", name="W")
    whole = storage.decode(W, name)
    A = te.placeholder((6, 10), name, name="A")

    unpacked = tecomp.compile([whole, topi.cast(whole, "float32")], [W])(packed)
    stored = tecomp.compile(storage.encode(A), [A])(a)

    assert np.array_equal(unpacked[0].view(np.uint8), a.view(np.uint8))
    assert np.array_equal(unpacked[1], a.astype(np.float32))
    assert np.array_equal(stored, packed)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("name", NARROW)
def test_packed_weights_of_products_are_unpacked_tile_by_tile(name: str) -> None:
    """A kernel takes the packed bytes, and holds the weights of one tile in memory."""
    storage = tecomp.storage_format(name)
    per_byte = 8 // DType(name).bits
    weights = values((48, 64), name)
    x = np.random.default_rng(1).integers(-3, 4, (5, 64)).astype("float32")
    packed = storage.encode_array(weights.astype("float32"))
    X, W = te.placeholder((5, 64), name="X"), te.placeholder((48, 64 // per_byte), "uint8", name="W")
    unpacked = storage.decode(W, "float32")
    k = te.reduce_axis((0, 64), name="k")
    Y = te.compute((5, 48), lambda i, j: te.sum(X[i, k] * unpacked[j, k], axis=k), name="Y")
    s = te.create_schedule(Y)
    i, j = s[Y].op.axis
    tile, column = s[Y].split(j, 8)
    s[Y].reorder(tile, i, column, k)
    s[unpacked].compute_at(s[Y], tile)
    y = np.empty((5, 48), "float32")

    kernel = tecomp.build(s, [X, W, Y])
    kernel(x, packed, y)

    assert packed.nbytes == weights.size // per_byte
    assert re.findall(r"Allocate\((.*?)\) as", str(kernel.lowered.final)) == [
        f'Buffer("float32", ({8 * 64},))'
    ]
    assert np.array_equal(y, x @ weights.astype("float32").T)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", INTEGERS)
def test_products_are_summed_in_a_wider_dtype(name: str) -> None:
    a, b = values((9, 33), name), values((33, 7), name)
    A, B = te.placeholder((9, 33), name, name="A"), te.placeholder((33, 7), name, name="B")
    k = te.reduce_axis((0, 33), name="k")
    C = te.compute((9, 7), lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"),
                                               axis=k), name="C")

    found = tecomp.compile(C, [A, B])(a, b)

    assert np.array_equal(found, a.astype(np.int32) @ b.astype(np.int32))


@pytest.mark.parametrize("name", NARROW)
def test_bits_are_reinterpreted_lane_by_lane(name: str) -> None:
    dtype = DType(name)
    bits = f"uint{dtype.bits}"
    a = values((32,), name)
    A = te.placeholder((32,), name, name="A")
    B = te.compute((32,), lambda i: te.reinterpret(bits, A[i]), name="B")
    C = te.compute((32,), lambda i: te.reinterpret(name, B[i]), name="C")
    func = tecomp.lower(te.create_schedule(C.op), [A, B, C])
    compiled = [np.zeros(32, DType(bits).numpy), np.zeros_like(a)]
    interpreted = [x.copy() for x in compiled]

    tecomp.build(te.create_schedule(C.op), [A, B, C])(a, *compiled)
    tecomp.evaluate(func, [a, *interpreted])

    for raw, back in (compiled, interpreted):
        assert np.array_equal(raw.view(np.uint8), a.view(np.uint8))
        assert np.array_equal(back.view(np.uint8), a.view(np.uint8))


@pytest.mark.parametrize("name", [name for name in WITH_ZERO if DType(name).numpy_module == "ml_dtypes"])
def test_scalars_of_ml_dtypes_are_numbers(name: str) -> None:
    a = values((5,), name) if name in NARROW else np.arange(5).astype(DType(name).numpy)
    x, A = te.var("x", name), te.placeholder((5,), name, name="A")
    B = te.compute((5,), lambda i: A[i] + x, name="B")
    kernel = tecomp.build(te.create_schedule(B.op), [x, A, B])
    by_scalar, by_number = np.empty_like(a), np.empty_like(a)

    kernel(a[3], a, by_scalar)
    kernel(a[3].item(), a, by_number)

    expected = in_dtype(np.add)(a, np.full_like(a, a[3]))
    assert np.array_equal(as_numbers(by_scalar), as_numbers(expected))
    assert np.array_equal(as_numbers(by_number), as_numbers(expected))


@pytest.mark.parametrize("flags", [None, 0, 4])
def test_packed_dlpack_tensors_are_refused(flags: int | None) -> None:
    """A tensor shares bytes between elements unless it has the flag of padded elements."""
    a = values((8,), "int4")
    A = te.placeholder((8,), "int4", name="A")
    program = tecomp.compile(topi.cast(A, "int32"), [A])
    source = Handmade(a.view(np.uint8), 0, 4, flags=flags)

    if flags == 4:
        assert np.array_equal(program(source), a.astype(np.int32))
        return
    with pytest.raises(tecomp.CallError) as error:
        program(source)
    assert diagnostic(error.value) == Diagnostic(
        "argument-mismatch", where="argument 0 (A) of program", parameter="int4[8]",
        shape="packed int4[8]", scalar="ml_dtypes.int4",
    )
