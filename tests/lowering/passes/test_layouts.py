"""`apply_buffer_transforms` and `fill_padding`, in the order of the pipeline."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

from tecomp.errors import LayoutError, LowerError
from tecomp.ir import Buffer, PrimFunc, evaluate, parse, parse_index_map, verify
from tecomp.lowering import apply_buffer_transforms, fill_padding, lower_storage
from tecomp.poly import IndexMap
from tests.messages import Diagnostic, diagnostic

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


def interpreted(func: PrimFunc, *arrays: np.ndarray[Any, Any]) -> list[np.ndarray[Any, Any]]:
    """Run a function on copies of the arrays and return the copies."""
    copies = [array.copy() for array in arrays]
    evaluate(func, copies)
    return copies


def test_a_view_of_equal_shape_is_rewritten_with_its_memory() -> None:
    """A view equal to its memory except for its name is rewritten, and so is the memory itself."""
    text = """
@layout_transform_map(A=[lambda i, j: [j, i]])
def f(A: Buffer("float32", (4, 8)), O: Buffer("float32", (1,))):
    with DeclBuffer(Buffer("float32", (4, 8), data=A.data)) as V:
        O[0] = V[1, 2] + A[1, 2]
"""
    func = applied(text)

    assert str(func) == """\
def f(A: Buffer("float32", (8, 4)), O: Buffer("float32", (1,))):
    with DeclBuffer(Buffer("float32", (8, 4), data=A.data)) as V:
        O[0] = V[2, 1] + A[2, 1]"""
    a, o = np.arange(32, dtype=np.float32).reshape(4, 8), np.zeros(1, np.float32)
    assert interpreted(parse(text), a, o)[1] == interpreted(func, a.T.copy(), o)[1] == 20.0


@pytest.mark.parametrize(
    ("view", "store", "rewritten"),
    [
        # Elements are in row-major order: element 21 is A[2, 5].
        ('"float32", (32,)', "V[21]", "V[5, 2]"),
        ('"float32", (2, 16)', "V[1, 5]", "V[5, 2]"),
        ('"int32", (8, 4)', "V[5, 1]", "V[5, 2]"),
        # Views of a prefix, and of every second element.
        ('"float32", (3, 8)', "V[2, 5]", "V[5, 2]"),
        ('"float32", (16,), strides=(2,)', "V[11]", "V[6, 2]"),
    ],
)
def test_a_view_of_another_shape_is_rewritten_through_that_of_its_memory(
    view: str, store: str, rewritten: str
) -> None:
    kind = view[1:view.index('"', 1)]
    text = f"""
@layout_transform_map(A=[lambda i, j: [j, i]])
def f(A: Buffer("float32", (4, 8))):
    with DeclBuffer(Buffer({view}, data=A.data)) as V:
        {store} = {kind}(7)
"""
    func = applied(text)

    assert str(func) == f"""\
def f(A: Buffer("float32", (8, 4))):
    with DeclBuffer(Buffer("{kind}", (8, 4), data=A.data)) as V:
        {rewritten} = {kind}({7.0 if kind == "float32" else 7})"""
    a = np.arange(32, dtype=np.float32).reshape(4, 8)
    np.testing.assert_array_equal(
        interpreted(parse(text), a)[0], interpreted(func, a.T.copy())[0].T)


def test_views_of_symbolic_extents_and_of_allocated_memory() -> None:
    text = """
@layout_transform_map(T=[lambda i, j: [j // 2, i, j % 2]])
def f(A: Buffer("float32", (n, m)), *, n: "int64", m: "int64"):
    with Allocate(Buffer("float32", (n, m))) as T:
        with DeclBuffer(Buffer("float32", (n * m,), data=T.data)) as V:
            for k in range(n * m):
                V[k] = cast("float32", k)
            for i in range(n):
                for j in range(m):
                    A[i, j] = T[i, j]
"""
    func = applied(text)

    for n, m in ((3, 5), (1, 4), (4, 1), (0, 3), (3, 0)):
        a = np.zeros((n, m), np.float32)
        expected = np.arange(n * m, dtype=np.float32).reshape(n, m)
        np.testing.assert_array_equal(interpreted(parse(text), a)[0], expected)
        np.testing.assert_array_equal(interpreted(func, a)[0], expected)


def test_a_view_of_a_realized_buffer_has_all_of_it_realized() -> None:
    """Positions that no element maps to are realized too, because the view starts at address 0."""
    text = """
@layout_transform_map(T=[lambda i: [i // 4, i % 6]])
def f(A: Buffer("float32", (8,))):
    with BufferRealize(Buffer("float32", (8,)), bounds=((0, 8),)) as T:
        with DeclBuffer(Buffer("float32", (2, 4), data=T.data)) as V:
            for i in range(8):
                T[i] = A[7 - i]
            for i in range(2):
                for j in range(4):
                    A[i * 4 + j] = V[i, j]
"""
    func = applied(text)

    assert 'BufferRealize(Buffer("float32", (2, 6)), bounds=((0, 2), (0, 6)))' in str(func)
    a = np.arange(8, dtype=np.float32)
    np.testing.assert_array_equal(interpreted(func, a)[0], a[::-1])
    np.testing.assert_array_equal(interpreted(lower_storage(func), a)[0], a[::-1])


MAPPED = "apply_buffer_transforms: `V` is a view of `A`, which has a layout map, but "


@pytest.mark.parametrize(
    ("view", "statement", "expected"),
    [
        ('"float32x2", (16,)', "V[0] = broadcast(float32(0.0), 2)",
         Diagnostic(
             "lower", buffer="V", memory="A",
             problem="its float32x2 elements take 8 bytes, not 4; declare a view of elements of 4 bytes",
         )),
        ('"float32", (33,)', "V[0] = float32(0.0)",
         Diagnostic(
             "lower", buffer="V", memory="A",
             problem="its shape (33,) has more elements than (4, 8); declare a smaller view",
         )),
        ('"float32", (4, 8), axis_separators=(0,)', "V[0, 0] = float32(0.0)",
         Diagnostic(
             "lower", buffer="V", memory="A",
             problem="its axis_separators are (0,), not (); give it those of `A`",
         )),
        ('"float32", (4, 8)', "V[0, ramp(0, 1, 4)] = broadcast(float32(0.0), 4)",
         Diagnostic("lower", buffer="V", index="ramp(0, 1, 4)")),
    ],
)
def test_views_that_maps_cannot_rewrite_are_refused_by_name(
    view: str, statement: str, expected: Diagnostic
) -> None:
    with pytest.raises(LowerError) as error:
        apply_buffer_transforms(parse(f"""
@layout_transform_map(A=[lambda i, j: [j, i]])
def f(A: Buffer("float32", (4, 8))):
    with DeclBuffer(Buffer({view}, data=A.data)) as V:
        {statement}
"""))

    assert diagnostic(error.value) == expected


@pytest.mark.parametrize("more", ["bounds=((0, 3),)", "bounds=((0, 8),), aligns=((0, 4, 0),)"])
def test_a_view_of_a_region_is_refused_by_name(more: str) -> None:
    with pytest.raises(LowerError) as error:
        apply_buffer_transforms(parse(f"""
@layout_transform_map(T=[lambda i: [7 - i]])
def f(A: Buffer("float32", (8,))):
    with BufferRealize(Buffer("float32", (8,)), {more}) as T:
        with DeclBuffer(Buffer("float32", (3,), data=T.data)) as V:
            A[0] = V[1]
"""))

    assert diagnostic(error.value) == (
        Diagnostic("lower", step="apply_buffer_transforms", view="V", buffer="T")
    )


@pytest.mark.parametrize(("shape", "index"), [("()", "()"), ("(4, 8)", "1, 2")])
def test_an_empty_map_is_the_identity(shape: str, index: str) -> None:
    text = f'def f(A: Buffer("float32", {shape})):\n    A[{index}] = float32(1.0)'

    assert str(applied(f"@layout_transform_map(A=[lambda: []])\n{text}\n")) == text


@pytest.mark.parametrize(
    ("index_map", "kind", "expected"),
    [
        ("lambda i: [i]", "layout-shape-mismatch",
         Diagnostic("layout-shape-mismatch", index_map="lambda i: [i]", memory="A", count=1, rank=2)),
        ("lambda: [0]", "layout-shape-mismatch",
         Diagnostic("layout-shape-mismatch", index_map="lambda: [0]", memory="A", count=0, rank=2)),
        ("lambda i, j: []", "not-injective",
         Diagnostic(
             "not-injective", pair=(0, 0), other_pair=(0, 1), memory="A", index_map="lambda i, j: []",
         )),
        ("lambda i, j: [j]", "not-injective",
         Diagnostic(
             "not-injective", pair=(0, 0), other_pair=(1, 0), memory="A", index_map="lambda i, j: [j]",
         )),
    ],
)
def test_maps_that_do_not_fit_their_buffer(index_map: str, kind: str, expected: Diagnostic) -> None:
    with pytest.raises(LayoutError) as error:
        apply_buffer_transforms(parse(f"""
@layout_transform_map(A=[{index_map}])
def f(A: Buffer("float32", (4, 8))):
    A[1, 2] = float32(1.0)
"""))

    assert diagnostic(error.value) == expected
    assert error.value.kind == kind


def test_separators_of_a_map_match_its_buffer() -> None:
    text = """
@layout_transform_map(A=[lambda i, j: [i, AXIS_SEPARATOR, j], lambda i, j: [j // 4, i, j % 4]])
def f(A: Buffer("float32", (4, 8){separators})):
    A[1, 2] = float32(1.0)
"""
    (parameter,) = apply_buffer_transforms(
        parse(text.format(separators=", axis_separators=(0,)"))
    ).params

    assert isinstance(parameter, Buffer)
    assert parameter.shape == (2, 4, 4)
    assert parameter.axis_separators == (0,)
    for separators, found in (("", ()), (", axis_separators=(1,)", (1,))):
        with pytest.raises(LayoutError) as error:
            apply_buffer_transforms(parse(text.format(separators=separators)))
        assert diagnostic(error.value) == (
            Diagnostic(
                "layout-shape-mismatch", description="lambda i, j: [i, AXIS_SEPARATOR, j]", memory="A",
                axis_separators=(0,), memory_axis_separators=found,
            )
        )


def test_maps_and_pad_values_of_no_buffer_are_refused() -> None:
    func = parse("""
@layout_transform_map(Z=[lambda i: [i]])
@pad_value(Y=lambda i: float32(0.0))
def f(A: Buffer("float32", (4,)), n: "int64"):
    A[1] = float32(1.0)
""")
    with pytest.raises(LowerError) as error:
        apply_buffer_transforms(func)
    with pytest.raises(LowerError) as of_pad:
        fill_padding(func)

    assert diagnostic(error.value) == (
        Diagnostic(
            "lower", step="apply_buffer_transforms", subject="layout map", data="Z", func="f",
            names="A",
        )
    )
    assert diagnostic(of_pad.value) == (
        Diagnostic("lower", step="fill_padding", subject="pad value", data="Y", func="f", names="A")
    )


def test_padding_of_a_parameter_is_written_first() -> None:
    """14 elements in 4 rows of 4 leave two positions of padding."""
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
    """The second map applies to all positions of the first map, including its padding."""
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
    """Each region fills the padding that it covers; here only the last region covers any."""
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
    """The positions are not an affine set: element 6 is at position 7; position 6 is padding."""
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
    """If no expression describes the padding, all positions are filled before the stores."""
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
    expected = np.broadcast_to(np.arange(4, dtype=np.float32)[:, None, None], b.shape).copy()
    i, j = np.indices(a.shape)
    expected[j ^ i % 4, i // 3, i % 3] = a

    evaluate(func, [a, b])

    np.testing.assert_array_equal(b, expected)


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
    assert diagnostic(error.value) == (
        Diagnostic("lower", data="A"))
    with pytest.raises(LowerError) as error:
        apply_buffer_transforms(strided)
    assert diagnostic(error.value) == (
        Diagnostic("conflicting-options", memory="A", strides=(9, 1)))
