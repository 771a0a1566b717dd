"""The flattening examples of the transform_layout RFC, and its example of typed buffers."""

from __future__ import annotations

from collections.abc import Callable

import pytest

from tecomp.ir import (
    Allocate,
    Buffer,
    BufferLoad,
    BufferStore,
    DeclBuffer,
    DType,
    IndexMapNode,
    LayoutMaps,
    PrimFunc,
    Ramp,
    Stmt,
    Var,
    const,
    index_value,
    seq,
    walk,
)
from tecomp.lowering import apply_buffer_transforms, flatten_buffer
from tecomp.poly import AXIS_SEPARATOR
from tecomp.poly import IndexMap as Layout

OUT = Buffer("out", (1,))


def program(x: Buffer, *maps: IndexMapNode, read: list[int], write: list[int]) -> PrimFunc:
    """Return `with Allocate(x): val = BufferLoad(x, read); BufferStore(x, 7, write)`."""
    val = BufferLoad(x, tuple(map(index_value, read)))
    body: Stmt = seq(
        BufferStore(OUT, val, (index_value(0),)),
        BufferStore(x, const(7.0), tuple(map(index_value, write))),
    )
    layouts: LayoutMaps = ((x.data, maps),) if maps else ()
    return PrimFunc("f", (OUT,), Allocate(x, body), layout_maps=layouts)


def buffer_of(func: PrimFunc) -> Buffer:
    allocate = func.body
    assert isinstance(allocate, Allocate)
    return allocate.buffer


def accesses(func: PrimFunc) -> tuple[list[int], list[int]]:
    """Return the indices of the read and of the write of `x`."""
    found: dict[type[object], list[int]] = {}
    for node in walk(func.body):
        if isinstance(node, BufferLoad | BufferStore) and node.buffer.name == "x":
            found[type(node)] = [int(str(index)) for index in node.indices]
    return found[BufferLoad], found[BufferStore]


def check_idempotent(step: Callable[[PrimFunc], PrimFunc], done: PrimFunc) -> None:
    assert step(done) == done


def test_first_example_no_layout() -> None:
    """Without a layout, the flat buffer is row-major, and the function has no attribute."""
    func = program(Buffer("x", (64, 128)), read=[10, 15], write=[20, 23])
    assert "layout_transform_map" not in func.attrs

    assert apply_buffer_transforms(func) == func
    flat = flatten_buffer(func)

    assert buffer_of(flat).shape == (64 * 128,)
    assert buffer_of(flat).axis_separators == ()
    assert accesses(flat) == ([10 * 128 + 15], [20 * 128 + 23])
    check_idempotent(flatten_buffer, flat)


def test_second_example_transposed() -> None:
    swapped = Layout.from_func(lambda i, j: [j, i])
    x = Buffer("x", (64, 128))
    func = program(x, swapped, read=[10, 15], write=[20, 23])
    assert func.attrs["layout_transform_map"][x.data] == (swapped,)

    applied = apply_buffer_transforms(func)
    flat = flatten_buffer(applied)

    assert "layout_transform_map" not in applied.attrs
    assert buffer_of(applied).shape == (128, 64)
    assert accesses(applied) == ([15, 10], [23, 20])
    check_idempotent(apply_buffer_transforms, applied)
    assert buffer_of(flat).shape == (128 * 64,)
    assert accesses(flat) == ([15 * 64 + 10], [23 * 64 + 20])
    check_idempotent(flatten_buffer, flat)


def test_third_example_nchwc() -> None:
    blocked = Layout.from_func(lambda n, h, w, c: [n, c // 4, h, w, c % 4])
    x = Buffer("x", (16, 64, 64, 128))
    func = program(x, blocked, read=[11, 37, 23, 101], write=[0, 0, 0, 0])

    applied = apply_buffer_transforms(func)
    flat = flatten_buffer(applied)

    assert buffer_of(applied).shape == (16, 128 // 4, 64, 64, 4)
    assert buffer_of(applied).axis_separators == ()
    assert accesses(applied)[0] == [11, 101 // 4, 37, 23, 101 % 4]
    check_idempotent(apply_buffer_transforms, applied)
    assert buffer_of(flat).shape == (16 * (128 // 4) * 64 * 64 * 4,)
    assert accesses(flat)[0] == [
        (128 // 4) * 64 * 64 * 4 * 11 + 64 * 64 * 4 * (101 // 4) + 64 * 4 * 37 + 4 * 23 + 101 % 4
    ]
    check_idempotent(flatten_buffer, flat)


def test_fourth_example_two_physical_axes() -> None:
    """The separator is known before the map is applied, though it counts physical axes."""
    blocked = Layout.from_func(lambda n, h, w, c: [n, c // 4, h, AXIS_SEPARATOR, w, c % 4])
    x = Buffer("x", (16, 64, 64, 128), axis_separators=blocked.axis_separators)
    assert x.axis_separators == (2,)
    func = program(x, blocked, read=[11, 37, 23, 101], write=[0, 0, 0, 0])

    applied = apply_buffer_transforms(func)
    flat = flatten_buffer(applied)

    assert buffer_of(applied).shape == (16, 128 // 4, 64, 64, 4)
    assert buffer_of(applied).axis_separators == (2,)
    assert accesses(applied)[0] == [11, 101 // 4, 37, 23, 101 % 4]
    check_idempotent(apply_buffer_transforms, applied)
    assert buffer_of(flat).shape == (16 * (128 // 4) * 64, 64 * 4)
    assert buffer_of(flat).axis_separators == (0,)
    assert accesses(flat)[0] == [(128 // 4) * 64 * 11 + 64 * (101 // 4) + 37, 4 * 23 + 101 % 4]
    check_idempotent(flatten_buffer, flat)


def test_2d_and_flattened_buffers_are_distinguished() -> None:
    """A buffer is flattened once: "The list shouldn't be deleted entirely"."""
    logical, physical = Buffer("x", (8, 4)), Buffer("x", (8, 4), axis_separators=(0,))

    plain = flatten_buffer(program(logical, read=[1, 2], write=[0, 0]))
    flat = flatten_buffer(program(physical, read=[1, 2], write=[0, 0]))

    assert (buffer_of(plain).shape, accesses(plain)[0]) == ((32,), [6])
    assert (buffer_of(flat).shape, accesses(flat)[0]) == ((8, 4), [1, 2])


def test_several_maps_are_applied_in_order() -> None:
    first = Layout.from_func(lambda i, j: [j, i])
    second = Layout.from_func(lambda a, b: [a // 4, b, a % 4])
    func = program(Buffer("x", (8, 6)), first, second, read=[5, 3], write=[7, 5])

    applied = apply_buffer_transforms(func)

    assert buffer_of(applied).shape == (2, 8, 4)
    assert accesses(applied) == ([0, 5, 3], [1, 7, 1])


ZERO = index_value(0)
FLOAT32X4 = DType("float32x4")


@pytest.mark.parametrize(
    ("buffer", "index", "dtype"),
    [
        (Buffer("A", (64,)), ZERO, "float32"),
        (Buffer("A", (16,), FLOAT32X4), ZERO, "float32x4"),
        (Buffer("A", (64,)), Ramp(ZERO, index_value(1), 4), "float32x4"),
        (Buffer("A", (16,), FLOAT32X4), Ramp(ZERO, index_value(1), 2), "float32x8"),
    ],
    ids=["scalar from scalar", "vector from vector", "vector from scalar", "both"],
)
def test_type_of_an_access(buffer: Buffer, index: Var, dtype: str) -> None:
    """Option 1: the lanes of an access are the lanes of buffer times those of the index."""
    assert BufferLoad(buffer, (index,)).dtype == dtype


@pytest.mark.parametrize(("shape", "dtype"), [((32,), "float32x2"), ((64,), "float32")])
def test_views_of_another_type(shape: tuple[int, ...], dtype: str) -> None:
    """Views on the same data read a vector buffer as half vectors or as scalars."""
    A = Buffer("A", (16,), FLOAT32X4)
    view = Buffer("A_view", shape, DType(dtype), data=A.data)
    load, zero = BufferLoad(view, (ZERO,)), BufferLoad(A, (ZERO,))
    func = PrimFunc("f", (A,), DeclBuffer(view, BufferStore(view, load, (ZERO,))))

    assert zero.dtype == "float32x4"
    assert load.dtype == dtype
    assert flatten_buffer(func) == func
    assert apply_buffer_transforms(func) == func
