"""`apply_buffer_transforms` and `fill_padding`, together as they are in the pipeline."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np
import pytest

from tecomp.errors import LowerError
from tecomp.ir.interpreter.evaluate import evaluate
from tecomp.ir.nodes.stmt import PrimFunc
from tecomp.ir.parser.func_parser import parse, parse_index_map
from tecomp.ir.traversal.verify import verify
from tecomp.lowering.storage.physical_layout import apply_buffer_transforms, fill_padding
from tecomp.poly.maps.index_map import IndexMap

Check = Callable[..., PrimFunc]


def applied(text: str) -> PrimFunc:
    func = parse(text)
    verify(func)
    done = apply_buffer_transforms(func)
    verify(done)
    assert apply_buffer_transforms(done) == done
    assert parse(str(done)) == done
    return done


def filled(text: str) -> PrimFunc:
    done = fill_padding(applied(text))
    verify(done)
    assert fill_padding(done) == done
    return done


def test_parameters_and_loops_over_them() -> None:
    func = applied("""
@layout_transform_map(A=[lambda i, j: [j // 4, i, j % 4]], B=[lambda i: [i // 3, i % 3], lambda a, b: [b, a]])
def f(A: Buffer("float32", (6, 8)), B: Buffer("float32", (6,))):
    for i in range(6):
        B[i] = float32(0.0)
        for jo in range(2):
            for ji in range(4):
                B[i] = B[i] + A[i, jo * 4 + ji]
""")

    assert str(func) == """\
def f(A: Buffer("float32", (2, 6, 4)), B: Buffer("float32", (3, 2))):
    for i in range(6):
        B[i % 3, i // 3] = float32(0.0)
        for jo in range(2):
            for ji in range(4):
                B[i % 3, i // 3] = B[i % 3, i // 3] + A[jo, i, ji]"""
    a = np.arange(48.0, dtype=np.float32).reshape(6, 8)
    b = np.zeros((3, 2), np.float32)
    evaluate(func, [a.reshape(6, 2, 4).transpose(1, 0, 2).copy(), b])
    np.testing.assert_array_equal(b, a.sum(1).reshape(2, 3).T)


def test_a_realized_region_becomes_the_box_of_its_places() -> None:
    func = applied("""
@layout_transform_map(T=[lambda i, j: [i // 4, j, i % 4]])
def f(A: Buffer("float32", (32, 8))):
    for io in range(4):
        with BufferRealize(Buffer("float32", (32, 8)), bounds=((io * 8, 8), (2, 3))) as T:
            for ii in range(8):
                for j in range(2, extent=3):
                    T[io * 8 + ii, j] = A[io * 8 + ii, j]
            for ii in range(8):
                for j in range(2, extent=3):
                    A[io * 8 + ii, j] = T[io * 8 + ii, 6 - j]
""")

    assert str(func) == """\
def f(A: Buffer("float32", (32, 8))):
    for io in range(4):
        with BufferRealize(Buffer("float32", (8, 8, 4)), bounds=((io * 2, 2), (2, 3), (0, 4))) as T:
            for ii in range(8):
                for j in range(2, extent=3):
                    T[io * 2 + ii // 4, j, ii % 4] = A[io * 8 + ii, j]
            for ii in range(8):
                for j in range(2, extent=3):
                    A[io * 8 + ii, j] = T[io * 2 + ii // 4, 6 - j, ii % 4]"""


def test_a_view_keeps_what_it_declares() -> None:
    func = applied("""
@layout_transform_map(A=[lambda i, j: [j, i]])
def f(A: Buffer("float32", (4, 8))):
    with DeclBuffer(Buffer("float32", (32,), data=A.data)) as flat:
        flat[5] = A[1, 2]
""")

    assert str(func) == """\
def f(A: Buffer("float32", (8, 4))):
    with DeclBuffer(Buffer("float32", (32,), data=A.data)) as flat:
        flat[5] = A[2, 1]"""


def test_padding_of_a_parameter_is_written_first() -> None:
    """14 elements in 4 rows of 4: two places are left."""
    text = """
@layout_transform_map(B=[lambda i: [i // 4, i % 4]])
@pad_value(B=lambda p, q: cast("float32", p * 100 + q))
def f(A: Buffer("float32", (14,)), B: Buffer("float32", (14,))):
    for i in range(14):
        B[i] = A[i]
"""

    assert str(applied(text)) == """\
@pad_value(B=lambda p, q: cast("float32", p * 100 + q) if p * 4 + q >= 14 else None)
def f(A: Buffer("float32", (14,)), B: Buffer("float32", (4, 4))):
    for i in range(14):
        B[i // 4, i % 4] = A[i]"""
    func = filled(text)
    assert str(func) == """\
def f(A: Buffer("float32", (14,)), B: Buffer("float32", (4, 4))):
    for q in range(2, extent=2):
        B[3, q] = cast("float32", q + 300)
    for i in range(14):
        B[i // 4, i % 4] = A[i]"""
    a, b = np.arange(14, dtype=np.float32), np.full((4, 4), np.nan, np.float32)
    evaluate(func, [a, b])
    np.testing.assert_array_equal(b.reshape(-1), [*range(14), 302, 303])


def test_padding_of_padding() -> None:
    """A second map starts from the places of the first, empty ones included."""
    func = filled("""
@layout_transform_map(B=[lambda i: [i // 4, i % 4], lambda a, b: [a // 2, b, a % 2]])
@pad_value(B=lambda p, q, r: float32(-1.0))
def f(A: Buffer("float32", (9,)), B: Buffer("float32", (9,))):
    for i in range(9):
        B[i] = A[i]
""")
    a, b = np.arange(9, dtype=np.float32), np.full((2, 4, 2), np.nan, np.float32)

    evaluate(func, [a, b])

    rows = np.concatenate([a, np.full(7, -1, np.float32)]).reshape(2, 2, 4)
    np.testing.assert_array_equal(b, rows.transpose(0, 2, 1))


def test_padding_inside_a_region() -> None:
    """Each region fills the part of the padding that it reaches: here only the last one any."""
    func = filled("""
@layout_transform_map(T=[lambda i: [i // 4, i % 4]])
@pad_value(T=lambda p, q: float32(7.0))
def f(A: Buffer("float32", (14,)), B: Buffer("float32", (16,))):
    for io in range(4):
        with BufferRealize(Buffer("float32", (14,)), bounds=((io * 4, 4),)) as T:
            for ii in range(min(4, 14 - io * 4)):
                T[io * 4 + ii] = A[io * 4 + ii]
            for ii in range(min(4, 14 - io * 4)):
                B[io * 4 + ii] = T[io * 4 + ii]
""")

    assert str(func) == """\
def f(A: Buffer("float32", (14,)), B: Buffer("float32", (16,))):
    for io in range(4):
        with BufferRealize(Buffer("float32", (4, 4)), bounds=((io, 1), (0, 4))) as T:
            for q in range(14 - io * 4, extent=io * 4 - 10):
                T[io, q] = float32(7.0)
            for ii in range(min(4, 14 - io * 4)):
                T[io, ii] = A[io * 4 + ii]
            for ii in range(min(4, 14 - io * 4)):
                B[io * 4 + ii] = T[io, ii]"""


@pytest.mark.parametrize("n", [0, 1, 7, 8, 9])
def test_symbolic_padding(n: int) -> None:
    func = filled("""
@layout_transform_map(B=[lambda i: [i // 4, i % 4]])
@pad_value(B=lambda p, q: float32(5.0))
def f(A: Buffer("float32", (n,)), B: Buffer("float32", (n,)), *, n: "int64"):
    for i in range(n):
        B[i] = A[i]
""")
    a, b = np.arange(n, dtype=np.float32), np.full((-(-n // 4), 4), np.nan, np.float32)

    evaluate(func, [a, b])

    np.testing.assert_array_equal(b.reshape(-1), [*range(n), *[5] * (-n % 4)])


def test_a_swizzle_has_no_padding() -> None:
    func = filled("""
@layout_transform_map(B=[lambda i, j: [i, j ^ i % 4]])
@pad_value(B=lambda p, q: float32(5.0))
def f(A: Buffer("float32", (8, 4)), B: Buffer("float32", (8, 4))):
    for i in range(8):
        for j in range(4):
            B[i, j] = A[i, j]
""")

    assert str(func) == """\
def f(A: Buffer("float32", (8, 4)), B: Buffer("float32", (8, 4))):
    for i in range(8):
        for j in range(4):
            B[i, j ^ i % 4] = A[i, j]"""


def test_a_swizzle_with_padding() -> None:
    """The places are not an affine set: 7 elements in 8 places, the last two exchanged."""
    func = filled("""
@layout_transform_map(B=[lambda i: [i ^ 1]])
@pad_value(B=lambda p: float32(5.0))
def f(A: Buffer("float32", (7,)), B: Buffer("float32", (7,))):
    for i in range(7):
        B[i] = A[i]
""")
    a, b = np.arange(7, dtype=np.float32), np.full(8, np.nan, np.float32)

    evaluate(func, [a, b])

    np.testing.assert_array_equal(b, [1, 0, 3, 2, 5, 4, 5, 6])


def test_padding_that_no_expression_describes() -> None:
    """Every place is filled, and then the elements are written."""
    text = "lambda i, j: [j ^ i % 4, i // 3, i % 3]"
    assert IndexMap.lift(parse_index_map(text)).inverse_or_none([7, 2]) is None
    func = filled(f"""
@layout_transform_map(B=[{text}])
@pad_value(B=lambda p, q, r: cast("float32", p))
def f(A: Buffer("float32", (7, 2)), B: Buffer("float32", (7, 2))):
    for i in range(7):
        for j in range(2):
            B[i, j] = A[i, j]
""")
    a, b = np.arange(14, dtype=np.float32).reshape(7, 2) + 4, np.empty((4, 3, 3), np.float32)
    wanted = np.broadcast_to(np.arange(4, dtype=np.float32)[:, None, None], b.shape).copy()
    i, j = np.indices(a.shape)
    wanted[j ^ i % 4, i // 3, i % 3] = a

    evaluate(func, [a, b])

    np.testing.assert_array_equal(b, wanted)


def test_refusals() -> None:
    pending = parse("""
@layout_transform_map(A=[lambda i: [i // 4, i % 4]])
@pad_value(A=lambda p, q: float32(0.0))
def f(A: Buffer("float32", (14,))):
    pass
""")
    strided = parse("""
@layout_transform_map(A=[lambda i, j: [j, i]])
def f(A: Buffer("float32", (4, 8), strides=(9, 1))):
    pass
""")

    with pytest.raises(LowerError) as error:
        fill_padding(pending)
    assert error.value.message == (
        "fill_padding: `A` still has layout maps; run apply_buffer_transforms first")
    with pytest.raises(LowerError) as error:
        apply_buffer_transforms(strided)
    assert error.value.message == (
        "apply_buffer_transforms: `A` has strides (9, 1) and a layout map; a map says where each "
        "element lies, so give one of the two")
