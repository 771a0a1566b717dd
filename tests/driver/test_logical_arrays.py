"""Arrays in layouts: how calls distinguish them, and calls with logical arrays."""

from __future__ import annotations

import contextlib
import gc
import operator
import pickle
import subprocess
import sys
import weakref
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from threading import Barrier, BrokenBarrierError
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import IndexMap, Layout, relayout, te
from tecomp.codegen import layout_tag_of, with_layout_tag
from tecomp.driver import ScheduledKernel
from tecomp.errors import CallError
from tecomp.layout import LayoutTag, layout_tag, layout_tag_of_maps
from tests.messages import Diagnostic, diagnostic

Array = np.ndarray[Any, Any]

KNOWN = ", or pass np.asarray(...) of it if the packing is intended"

A = te.placeholder((6,), name="A")
B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
S = te.placeholder((8, 8), name="S")
T = te.compute((8, 8), lambda i, j: S[i, j] + 1.0, name="T")


def halves() -> ScheduledKernel:
    s = te.create_schedule(B.op)
    s[A].transform_layout(lambda i: [i // 4, i % 4])
    s[B].transform_layout(lambda i: [i // 2, i % 2])
    return tecomp.build(s, [A, B])


def turned() -> ScheduledKernel:
    s = te.create_schedule(T.op)
    s[S].transform_layout(lambda i, j: [j, i])
    return tecomp.build(s, [S, T])


def plain() -> ScheduledKernel:
    return tecomp.build(te.create_schedule(T.op), [S, T])


def numbers(*shape: int) -> Array:
    return np.arange(np.prod(shape), dtype="float32").reshape(shape)


def refusal_of(call: Callable[[], object]) -> Diagnostic:
    with pytest.raises(CallError) as error:
        call()
    return diagnostic(error.value)


def test_logical_arrays_for_packed_parameters_suggest_pack() -> None:
    kernel, a, b = halves(), numbers(6), np.zeros(6, "float32")

    assert refusal_of(lambda: kernel(a, kernel.empty(B))) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (A) of main", name="A", parameter="float32[2, 4]",
            got="float32[6]", also="pass kernel.pack(A, a), or a itself with layouts='logical'",
        )
    )
    assert refusal_of(lambda: kernel(kernel.pack(A, a), b)) == (
        Diagnostic(
            "argument-mismatch", where="argument 1 (B) of main", name="B", parameter="float32[3, 2]",
            got="float32[6]", also="pass it with layouts='logical'",
        )
    )
    assert refusal_of(lambda: kernel(numbers(2, 2, 2), b)) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (A) of main", rank=2, parameter="float32[2, 4]",
            got_count=3, got="float32[2, 2, 2]",
            remedy="pass kernel.pack(A, a) of an array of float32[6]",
        )
    )
    assert (b == 0).all()


def test_an_array_of_the_computation_is_no_flattened_one() -> None:
    """If the shapes are equal, logical elements would be taken for elements of the layout."""
    X = te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] + 1.0, name="Y")
    s = te.create_schedule(Y.op)
    s[X].transform_layout(lambda i: [i % 4, i // 4])
    kernel = tecomp.build(s, [X, Y])

    assert refusal_of(lambda: kernel(numbers(8), np.empty(8, "float32"))) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (X) of main", name="X", parameter="float32[4, 2]",
            got="float32[8]", also="pass kernel.pack(X, a), or a itself with layouts='logical'",
        )
    )


def test_packed_arrays_of_equal_shape_are_distinguished() -> None:
    kernel, other = turned(), plain()
    x, out = numbers(8, 8), np.zeros((8, 8), "float32")
    packed = kernel.pack(S, x)

    kernel(packed, out)

    assert (out == x + 1).all()
    out[:] = 0
    assert refusal_of(lambda: other(packed, out)) == (
        Diagnostic(
            "packed", where="argument 0 (S) of main", formula="(i0, i1) -> (i1, i0)", name="S",
            wanted_formula="(i0, i1) -> (i0, i1)", advice="unpack it with the layout that packed it",
        )
    )
    assert refusal_of(lambda: kernel(other.pack(S, x), out)) == (
        Diagnostic(
            "packed", where="argument 0 (S) of main", formula="(i0, i1) -> (i0, i1)", name="S",
            wanted_formula="(i0, i1) -> (i1, i0)", advice="pass kernel.pack(S, a)",
        )
    )
    assert refusal_of(lambda: kernel(x, packed)) == (
        Diagnostic(
            "packed", where="argument 1 (T) of main", formula="(i0, i1) -> (i1, i0)", name="T",
            wanted_formula="(i0, i1) -> (i0, i1)", advice="unpack it with the layout that packed it",
        )
    )
    assert refusal_of(lambda: kernel.pack(S, packed)) == (
        Diagnostic(
            "packed", caller="pack", formula="(i0, i1) -> (i1, i0)", tensor="S", how="given",
            wanted_formula="(i0, i1) -> (i0, i1)",
        )
    )
    assert refusal_of(lambda: other.unpack(S, packed)) == (
        Diagnostic(
            "packed", caller="unpack", formula="(i0, i1) -> (i1, i0)", tensor="S", how="stored",
            wanted_formula="(i0, i1) -> (i0, i1)",
        )
    )
    assert (out == 0).all()
    assert (kernel.unpack(S, packed) == x).all()


def test_named_layouts_mark_arrays_as_kernels_do() -> None:
    kernel, x, out = turned(), numbers(8, 8), np.zeros((8, 8), "float32")
    columns = Layout.of((8, 8), "float32", lambda a, b: [b, a])
    rows = Layout.row_major((8, 8), "float32")

    kernel(columns.pack(x), out)

    assert (out == x + 1).all()
    assert (columns.unpack(kernel.pack(S, x)) == x).all()
    assert refusal_of(lambda: kernel(rows.pack(x), out)) == (
        Diagnostic(
            "packed", where="argument 0 (S) of main", formula="(i0, i1) -> (i0, i1)", name="S",
            wanted_formula="(i0, i1) -> (i1, i0)", advice="pass kernel.pack(S, a)",
        )
    )
    assert refusal_of(lambda: relayout(rows, columns)(columns.pack(x))) == (
        Diagnostic(
            "packed", subject="relayout: the array", formula="(i0, i1) -> (i1, i0)",
            mark_formula="(i0, i1) -> (i0, i1)",
        )
    )
    assert refusal_of(lambda: relayout(rows, columns)(x, rows.pack(x))) == (
        Diagnostic(
            "packed", subject="relayout: out", formula="(i0, i1) -> (i0, i1)",
            mark_formula="(i0, i1) -> (i1, i0)",
        )
    )
    assert refusal_of(lambda: columns.pack(columns.pack(x))) == (
        Diagnostic("packed", formula="(i0, i1) -> (i1, i0)")
    )


def test_arrays_with_equivalent_layouts_are_accepted() -> None:
    X = te.placeholder((8,), name="X")
    Y = te.compute((8,), lambda i: X[i] + 1.0, name="Y")
    s = te.create_schedule(Y.op)
    s[X].transform_layout(lambda i: [i // 4, i % 4])
    kernel, x, y = tecomp.build(s, [X, Y]), numbers(8), np.zeros(8, "float32")
    wrapped = Layout.of((8,), "float32", lambda i: [i // 4 % 2, i % 4])
    other = Layout.of((8,), "float32", lambda i: [i % 2, i // 2])

    kernel(wrapped.pack(x), y)

    assert (y == x + 1).all()
    assert (kernel.unpack(X, wrapped.pack(x)) == x).all()
    assert (wrapped.unpack(kernel.pack(X, x)) == x).all()
    assert refusal_of(lambda: kernel(other.pack(x), y)) == (
        Diagnostic(
            "packed", where="argument 0 (X) of main", formula="(i0) -> (i0 % 2, i0 // 2)",
            name="X", wanted_formula="(i0) -> (i0 // 4, i0 % 4)", advice="pass kernel.pack(X, a)",
        )
    )
    kernel(np.asarray(other.pack(x)), y)


def test_a_number_in_a_layout_fits() -> None:
    X = te.placeholder((), name="X")
    Y = te.compute((), lambda: X[()] + 1.0, name="Y")
    kernel = tecomp.build(te.create_schedule(Y.op), [X, Y])
    y = np.zeros((), "float32")

    kernel(Layout.row_major((), "float32").pack(np.float32(3)), y)

    assert y == 4


def test_a_program_about_places_takes_packed_arrays() -> None:
    X = te.placeholder((2, 4), name="X")
    Y = te.compute((2, 4), lambda i, j: X[i, j] + 1.0, name="Y")
    kernel = tecomp.build(te.create_schedule(Y.op), [X, Y])
    halved = Layout.of((8,), "float32", lambda i: [i % 2, i // 2])
    turned = Layout.of((4, 2), "float32", lambda i, j: [j, i])
    y = np.zeros((2, 4), "float32")

    for packed in halved.pack(numbers(8)), turned.pack(numbers(4, 2)):
        kernel(packed, y)
        assert (y == np.asarray(packed) + 1).all()


def test_results_from_packed_arrays_are_plain_arrays() -> None:
    packed = turned().pack(S, numbers(8, 8))

    result = (packed + 1, packed[:4], packed.T, packed.copy(), packed.reshape(-1), np.asarray(packed),
            packed.astype("float64"), np.sin(packed), pickle.loads(pickle.dumps(packed)))

    assert layout_tag_of(packed) is not None
    assert [layout_tag_of(item) for item in result] == [None] * len(result)
    assert repr(packed) == repr(np.asarray(packed))
    assert repr(result[0]) == repr(np.asarray(result[0]))


@pytest.mark.exhaustive
def test_marks_are_forgotten_with_their_arrays() -> None:
    formula = "(i0) -> (i0 * 12345)"
    array = with_layout_tag(numbers(2), layout_tag(formula))
    removed = weakref.ref(layout_tag(formula))

    assert layout_tag_of(array) is removed() is layout_tag(formula)
    del array
    gc.collect()
    assert removed() is None


def test_unpickled_marks_are_identical() -> None:
    layout = Layout.of((8, 8), "float32", lambda i, j: [j, i])
    assert layout.mark is pickle.loads(pickle.dumps(layout)).mark
    program = f"""
import pickle
import numpy as np
import tecomp
from tecomp import te

layout = pickle.loads({pickle.dumps(layout)!r})
S = te.placeholder((8, 8), name="S")
T = te.compute((8, 8), lambda i, j: S[i, j] + 1.0, name="T")
s = te.create_schedule(T.op)
s[S].transform_layout(lambda i, j: [j, i])
x, out = np.arange(64, dtype="float32").reshape(8, 8), np.zeros((8, 8), "float32")
tecomp.build(s, [S, T])(layout.pack(x), out)
assert (out == x + 1).all()
"""

    subprocess.run([sys.executable, "-c", program], check=True)


class Late(str):
    """Formula whose second hash waits, so that another thread looks it up before it is stored."""

    asked: int
    others: Barrier

    def __new__(cls, text: str, others: Barrier) -> Late:
        result = super().__new__(cls, text)
        result.asked, result.others = 0, others
        return result

    def __hash__(self) -> int:
        self.asked += 1
        if self.asked == 2:
            with contextlib.suppress(BrokenBarrierError):
                self.others.wait(0.2)
        return super().__hash__()


def test_threads_share_the_mark_of_a_layout() -> None:
    others = Barrier(2)

    with ThreadPoolExecutor(2) as pool:
        first, second = pool.map(layout_tag, [Late("(i0) -> (i0 * 54321)", others) for _ in range(2)])

    assert first is second


def test_two_marks_of_one_formula_are_one_layout() -> None:
    kernel, x, out = turned(), numbers(8, 8), np.zeros((8, 8), "float32")
    columns = Layout.of((8, 8), "float32", lambda i, j: [j, i])
    other = with_layout_tag(np.ascontiguousarray(x.T), LayoutTag(columns.mark.formula))

    kernel(other, out)

    assert (out == x + 1).all()
    assert (kernel.unpack(S, other) == x).all()
    assert (columns.unpack(other) == x).all()


def test_maps_of_one_formula_that_pad_otherwise_have_marks_of_their_own() -> None:
    there = IndexMap.from_func(lambda i: [i // 4, i % 4])
    back = IndexMap.from_func(lambda a, b: [a * 4 + b])

    padded, unpadded = layout_tag_of_maps(1, [there, back]), layout_tag_of_maps(1, [])

    assert padded.formula == unpadded.formula
    assert padded.index_map is not None
    assert unpadded.index_map is not None
    assert padded.index_map.map_shape((6,)) == (8,)
    assert unpadded.index_map.map_shape((6,)) == (6,)
    assert layout_tag_of_maps(1, [there, back]) is padded


@pytest.mark.parametrize("rows", [2, 3])
def test_arrays_of_equal_places_fit_for_the_sizes_of_a_call(rows: int) -> None:
    n = te.var("n")
    X = te.placeholder((n, 8), name="X")
    Y = te.compute((n, 8), lambda i, j: X[i, j] + 1.0, name="Y")
    s, other = te.create_schedule(Y.op), te.create_schedule(Y.op)
    s[X].transform_layout(lambda i, j: [j, i])
    other[X].transform_layout(lambda i, j: [j % 8, i])
    kernel, values = tecomp.build(s, [X, Y]), numbers(rows, 8)
    packed, same = kernel.pack(X, values), tecomp.build(other, [X, Y]).pack(X, values)
    turned = with_layout_tag(np.asarray(packed), layout_tag("(i0, i1) -> (i0, i1)"))

    assert (kernel.unpack(X, packed, n=rows) == values).all()
    assert (kernel.unpack(X, same, n=rows) == values).all()
    assert refusal_of(lambda: kernel.unpack(X, turned, n=rows)) == Diagnostic(
        "packed", caller="unpack", formula="(i0, i1) -> (i0, i1)", tensor="X", how="stored",
        wanted_formula="(i0, i1) -> (i1, i0)",
    )


def test_calls_with_arrays_of_the_computation() -> None:
    kernel, b = halves(), np.zeros(6, "float32")

    for factor in (1, 3):
        kernel(numbers(6) * factor, b, layouts="logical")
        assert (b == 2 * factor * numbers(6)).all()

    kernel(kernel.pack(A, numbers(6)), out := kernel.empty(B), layouts="physical")
    assert (kernel.unpack(B, out) == 2 * numbers(6)).all()


def test_calls_with_arrays_of_the_computation_of_any_size() -> None:
    n, f = te.size_var("n"), te.var("f", "float32")
    X = te.placeholder((n, 5), name="X")
    Y = te.compute((n, 5), lambda i, j: X[i, j] * f, name="Y")
    Z = te.compute((n,), lambda i: Y[i, 0] + 1.0, name="Z")
    s = te.create_schedule(Z.op)
    s[X].transform_layout(lambda i, j: [j // 2, i, j % 2])
    s[Y].transform_layout(lambda i, j: [i // 4, j, i % 4])
    kernel = tecomp.build(s, [X, Y, Z, f])

    def call(size: int) -> None:
        x, y, z = numbers(size, 5), np.zeros((size, 5), "float32"), np.zeros(size, "float32")
        kernel(x, y, z, 3.0, layouts="logical")
        assert (y == 3 * x).all()
        assert (z == 3 * x[:, 0] + 1).all()

    sizes = [0, 1, 4, 7, 30] * 10
    for size in sizes[:5]:
        call(size)
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(call, sizes)) == [None] * len(sizes)


def of_shape(shape: tuple[Any, ...], *sizes: Any) -> tuple[ScheduledKernel, Any, Any]:
    X = te.placeholder(shape, name="X")
    Y = te.compute(shape, lambda *i: X[i] + 1.0, name="Y")
    s = te.create_schedule(Y.op)
    s[X].transform_layout(lambda i, *rest: [i // 4, *rest, i % 4])
    s[Y].transform_layout(lambda i, *rest: [i // 2, *rest, i % 2])
    return tecomp.build(s, [X, Y, *sizes]), X, Y


def test_passed_sizes_describe_logical_arrays() -> None:
    n = te.var("n")
    kernel, _, Y = of_shape((n,), n)
    x, y = numbers(7), np.zeros(7, "float32")

    assert refusal_of(lambda: kernel(x, y, 5, layouts="logical")) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (X) of main",
            problem="axis 0 is 7, but n is 5 from argument 2; pass an array of float32[5]",
        )
    )
    assert (y == 0).all()
    kernel(x, y, 7, layouts="logical")
    assert (y == x + 1).all()
    assert refusal_of(lambda: kernel(x, kernel.empty(Y, n=7), 7)) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (X) of main", name="X",
            parameter="float32[(n + 3) // 4, 4]", got="float32[7]",
            also="pass kernel.pack(X, a), or a itself with layouts='logical'",
        )
    )


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("extent", [operator.mul, operator.floordiv])
@pytest.mark.parametrize("names", [("n", "m"), ("n", "n")], ids=["nm", "nn"])
@pytest.mark.parametrize("sizes", [(6, 1), (3, 2), (12, 4), (0, 3)], ids=str)
def test_extents_that_are_computed_from_sizes(
    extent: Callable[[Any, Any], Any], names: tuple[str, str], sizes: tuple[int, int]
) -> None:
    n, m = (te.var(name) for name in names)
    kernel, X, Y = of_shape((extent(n, m), m), n, m)
    shape = extent(*sizes), sizes[1]
    x, y = numbers(*shape), np.zeros(shape, "float32")

    kernel(x, y, *sizes, layouts="logical")

    assert (y == x + 1).all()
    packed_x, packed_y = kernel.pack(X, x), kernel.pack(Y, y * 0)
    kernel(packed_x, packed_y, *sizes)
    assert all(packed_y[i // 2, j, i % 2] == y[i, j] for i, j in np.ndindex(shape))
    wrong = numbers(shape[0] + 1, shape[1])
    text = f"n {'*' if extent is operator.mul else '//'} {'m' if names[1] == 'm' else 'n_1'}"
    assert refusal_of(lambda: kernel(wrong, y, *sizes, layouts="logical")) == Diagnostic(
        "argument-mismatch", where="argument 0 (X) of main",
        problem=f"axis 0 is {shape[0] + 1}, but {text} is {shape[0]}; pass an array of "
                f"float32[{shape[0]}, {shape[1]}]",
    )


def test_two_sizes_of_one_name_are_two() -> None:
    shape = te.size_var("n"), te.size_var("n")
    X = te.placeholder(shape, name="X")
    Y = te.compute(shape, lambda i, j: X[i, j] + 1.0, name="Y")
    s = te.create_schedule(Y.op)
    s[X].transform_layout(lambda i, j: [i // 4, j, i % 4])
    kernel = tecomp.build(s, [X, Y])
    x, y = numbers(3, 5), np.zeros((3, 5), "float32")

    kernel(x, y, layouts="logical")

    assert (y == x + 1).all()
    packed = kernel.pack(X, x)
    assert packed.shape == (1, 5, 4)
    for name, call in (
        ("unpack", lambda: kernel.unpack(X, packed, n=3)), ("empty", lambda: kernel.empty(X, n=3)),
    ):  # fmt: skip
        assert refusal_of(call) == (
            Diagnostic("unbound-size", caller=name, tensor="X", count=2, name="n")
        )


def test_packed_arrays_of_a_computed_extent_are_unpacked_for_its_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    kernel, X, _ = of_shape((n * m,), n, m)

    packed = kernel.pack(X, numbers(6))

    assert packed.shape == (2, 4)
    assert (kernel.unpack(X, packed, n=3, m=2) == numbers(6)).all()


def test_calls_with_arrays_of_the_computation_are_checked_before_anything_is_written() -> None:
    kernel, b = halves(), np.zeros(6, "float32")
    frozen = np.zeros(6, "float32")
    frozen.flags.writeable = False
    both = np.zeros(9, "float32")

    assert refusal_of(lambda: kernel(numbers(7), b, layouts="logical")) == (
        Diagnostic(
            "argument-mismatch", where="argument 0 (A) of main",
            problem="axis 0 is 7, expected 6; pass an array of float32[6]",
        )
    )
    assert refusal_of(lambda: kernel(numbers(6), frozen, layouts="logical")) == (
        Diagnostic(
            "unsupported-memory", where="argument 1 (B) of main", reason="the array is read-only",
            advice="pass a copy of it",
        )
    )
    assert refusal_of(lambda: kernel(both[:6], both[3:], layouts="logical")) == (
        Diagnostic("unsupported-memory", where="argument 1 (B) of main", position=0, buffer="A")
    )
    assert refusal_of(lambda: kernel(kernel.pack(A, numbers(6)), b, layouts="logical")) == (
        Diagnostic(
            "packed", where="argument 0 (A) of main", formula="(i0) -> (i0 // 4, i0 % 4)",
            name="A", wanted_formula="(i0) -> (i0)", advice="unpack it with the layout that packed it",
        )
    )
    assert refusal_of(lambda: kernel(numbers(6), layouts="logical")) == (
        Diagnostic(
            "argument-count", name="main", signature_count=2, names="A, B", count=1,
            note="; B must also be passed, to be written in place",
        )
    )
    assert refusal_of(lambda: kernel(numbers(6), b, layouts="packed")) == (
        Diagnostic("unknown-choice", name="main", layouts="packed")
    )
    assert (b == 0).all()
    assert (both == 0).all()
