"""Compilation of whole programs: results, memory, shared kernels and errors."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from copy import copy
from dataclasses import replace
from math import prod
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import CompiledProgram
from tecomp.errors import CallError, DefinitionError
from tecomp.graph import Program
from tecomp.schedules import cumsum
from tests.messages import Diagnostic, diagnostic
from tests.numerics import assert_close, assert_product

SIZE = 24


def product_of(x: te.Tensor, y: te.Tensor, name: str) -> te.Tensor:
    k = te.reduce_axis((0, x.shape[1]), name="k")
    return te.compute(
        (x.shape[0], y.shape[1]), lambda i, j: te.sum(x[i, k] * y[k, j], axis=k), name=name
    )


def layers(count: int) -> tuple[te.Tensor, te.Tensor, te.Tensor]:
    """Return the input, the weights shared by all layers, and the output of `count` layers."""
    X, W = (te.placeholder((SIZE, SIZE), name=name) for name in "XW")
    value = X
    for number in range(count):
        sums = product_of(value, W, f"sums{number}")
        value = te.compute(
            sums.shape, lambda i, j, sums=sums: te.max(sums[i, j], 0.0), name=f"layer{number}"
        )
    return X, W, value


def arrays(*shapes: tuple[int, ...]) -> list[np.ndarray[Any, np.dtype[np.float32]]]:
    rng = np.random.default_rng(0)
    return [rng.uniform(-0.2, 0.3, shape).astype("float32") for shape in shapes]


MACHINE = replace(
    tecomp.Target.load("cpu"), core=tecomp.Core(4, 32, 16, (32768, 1 << 18)), clock_hz=3e9
)


def assert_layers(found: Any, x: Any, w: Any, count: int) -> None:
    """Check the output of `count` layers against float64."""
    value, terms = x.astype("float64"), np.abs(x).astype("float64")
    for _ in range(count):
        value, terms = np.maximum(value @ w, 0), terms @ np.abs(w)
    assert_close(found, value, rtol=1e-5, magnitude=terms)


def perceptron(
    count: int = 3, target: str | tecomp.Target = "cpu"
) -> tuple[CompiledProgram, Callable[[Any, Any], None]]:
    """Return compiled layers and a function that checks their output for an input."""
    X, W, Y = layers(count)
    (w,) = arrays((SIZE, SIZE))
    program = tecomp.compile(Y, [X], target, constants={W: w})
    return program, lambda found, x: assert_layers(found, x, w, count)


def test_equal_layers_share_one_kernel() -> None:
    program, check = perceptron(5)
    (x,) = arrays((SIZE, SIZE))

    assert len(program.kernels) == 5
    assert len({id(call.kernel) for call in program.kernels}) == 1
    assert [op.name for op in program.kernels[1].group.operations] == ["sums1", "layer1"]
    check(program(x), x)


def test_kernels_are_shared_across_source_locations() -> None:
    X = te.placeholder((200, 200), name="X")
    first = product_of(X, X, "first")
    k = te.reduce_axis((0, 200), name="k")
    last = te.compute((200, 200), lambda i, j: te.sum(first[i, k] * first[k, j], axis=k), name="last")
    calls = tecomp.compile(last, [X]).kernels

    # These kernels allocate temporary memory while they run; the program plan does not contain it.
    assert [bool(call.kernel.module.sites) for call in calls] == [True] * 2
    assert calls[0].kernel is calls[1].kernel


def test_values_take_turns_in_memory() -> None:
    program, _ = perceptron(9)

    # At most two of the eight values are live at any time.
    assert len(program.memory.values) == 8
    assert program.memory.bytes == program.memory.lower_bound == 2 * -(-SIZE * SIZE * 4 // 128) * 128


def test_results_are_written_to_out_arrays() -> None:
    program, check = perceptron()
    (x,) = arrays((SIZE, SIZE))
    out = np.zeros((SIZE, SIZE), "float32")

    assert program(x, out=out) is out
    check(out, x)


def test_calls_from_several_threads() -> None:
    program, check = perceptron()
    inputs = [x * k for k, x in enumerate(arrays((SIZE, SIZE)) * 32)]
    with ThreadPoolExecutor(8) as pool:
        results = list(pool.map(program, inputs))

    for source, result in zip(inputs, results, strict=True):
        check(result, source)


def test_several_outputs() -> None:
    X, W, Y = layers(2)
    first = Y.op.input_tensors[0].op.input_tensors[0]
    x, w = arrays((SIZE, SIZE), (SIZE, SIZE))
    last, before = tecomp.compile([Y, first], [X, W])(x, w)

    assert_layers(before, x, w, 1)
    assert_layers(last, before, w, 1)


def test_program_calls_raise_the_error_of_the_kernel() -> None:
    X, R = te.placeholder((SIZE, SIZE), name="X"), te.placeholder((8,), "int32", name="R")
    Z = product_of(X, X, "Z")
    first = te.compute((8, SIZE), lambda i, j: Z[R[i], j], name="first")
    line = int(first.op.location.line) if first.op.location else 0
    P = product_of(first, X, "P")
    Y = te.compute((8, SIZE), lambda i, j: P[R[i] - 20, j], name="Y")
    program = tecomp.compile(Y, [X, R])
    (x,) = arrays((SIZE, SIZE))
    rows = np.arange(16, 24, dtype="int32")

    for wrong, index, place, text, tensor in (
        (rows + 4, 24, line, "Z[R[i], j]", f"Z[{SIZE}, {SIZE}]"),
        (rows, -4, line + 3, "P[R[i] - 20, j]", f"P[8, {SIZE}]"),
    ):
        with pytest.raises(CallError) as error:
            program(x, wrong)
        assert diagnostic(error.value) == Diagnostic(
            "out-of-bounds", value=index, text=f"{__file__}:{place}: {text} (axis 0 of {tensor})",
        )
    assert_product(program(x, np.full(8, 20, "int32")), np.tile(x[20], (8, 1)), x, x)


A = te.placeholder((4,), name="A")
B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
ONE = te.placeholder((), name="O")
N = te.var("n")
S = te.placeholder((N,), name="S")
T = te.compute((N,), lambda i: S[i] + 1.0, name="T")


@pytest.mark.parametrize(
    ("make", "expected"),
    [
        (
            lambda: tecomp.compile(B, []),
            Diagnostic("program", op="A"),
        ),
        (lambda: tecomp.compile(B, [A, A]), Diagnostic("duplicate-argument", tensor="A")),
        (
            lambda: tecomp.compile(B, [A, B]),
            Diagnostic("program", tensor="B"),
        ),
        (
            lambda: tecomp.compile([B, A], [A]),
            Diagnostic("program", tensor="A"),
        ),
        (
            lambda: tecomp.compile([B, te.placeholder((4,), name="P")], [A]),
            Diagnostic("program", tensor="P"),
        ),
        (lambda: tecomp.compile([B, B], [A]), Diagnostic("duplicate-argument", tensor="B", count=2)),
        (lambda: tecomp.compile([], [A]), Diagnostic("missing-input")),
        (
            lambda: tecomp.compile("B", [A]),  # type: ignore[arg-type]
            Diagnostic(
                "invalid-type", where="compile: outputs", value="B",
                remedy="give a list of tensors",
            ),
        ),
        (
            lambda: tecomp.compile(B, [A, 3]),  # type: ignore[list-item]
            Diagnostic(
                "invalid-type", where="compile: inputs",
                value="[Tensor(A, shape=(4,), dtype=float32), 3]",
                remedy="give a list of tensors",
            ),
        ),
        (
            lambda: tecomp.compile(B, [A], name="no name"),
            Diagnostic("invalid-type", name="no name"),
        ),
        (
            lambda: tecomp.compile(B, [], constants={"A": 1.0}),  # type: ignore[dict-item]
            Diagnostic(
                "invalid-type", where="compile: constants", value=['A'],
                remedy="pass one array per placeholder",
            ),
        ),
        (
            lambda: tecomp.compile(B, [A], relayouts="no"),  # type: ignore[arg-type]
            Diagnostic(
                "invalid-type", where="compile: relayouts", value="no",
                remedy="give True or False",
            ),
        ),
        (
            lambda: tecomp.compile(T, [], constants={S: np.zeros(3, "float32")}),
            Diagnostic("unbound-size", name="S", extent="n"),
        ),
    ],
)
def test_programs_that_are_refused(make: Callable[[], CompiledProgram], expected: Diagnostic) -> None:
    with pytest.raises(DefinitionError) as error:
        make()

    assert diagnostic(error.value) == expected


def in_the_body(n: te.Var) -> te.Tensor:
    return te.compute((4,), lambda i: A[i] * te.cast(n, "float32"), name="D")


def in_the_reduction(n: te.Var) -> te.Tensor:
    k = te.reduce_axis((0, n), name="k")
    return te.compute((4,), lambda i: te.sum(A[te.min(k, 3)], axis=k), name="D")


def in_the_statement(n: te.Var) -> te.Tensor:
    result: te.Tensor = te.extern(
        (4,), [A], lambda ins, outs: te.for_range(0, n, lambda i: outs[0].store(i, ins[0][i])),
        name="D")
    return result


@pytest.mark.parametrize("target", ["cpu", "stick128"])
@pytest.mark.parametrize("make", [in_the_body, in_the_reduction, in_the_statement])
def test_variables_in_definitions_are_refused(
    make: Callable[[te.Var], te.Tensor], target: str
) -> None:
    with pytest.raises(DefinitionError) as error:
        tecomp.compile(make(te.var("n")), [A], target)

    assert diagnostic(error.value) == (
        Diagnostic("unbound-size", op="D", var="n")
    )


@pytest.mark.parametrize(
    ("call", "expected"),
    [
        (
            lambda: tecomp.compile(B, [], constants={A: np.zeros(5, "float32")}),
            Diagnostic(
                "argument-mismatch", tensor="A", dtype="float32", shape=(5,),
                remedy="give an array of float32 of shape (4,)",
            ),
        ),
        (
            lambda: tecomp.compile(ONE, [], constants={ONE: np.zeros(3, "float32")}),
            Diagnostic(
                "argument-mismatch", tensor="O", dtype="float32", shape=(3,),
                remedy="give an array of float32 of shape ()",
            ),
        ),
        (
            lambda: tecomp.compile(B, [], constants={A: [[1.0], [1.0, 2.0]]}),
            Diagnostic(
                "argument-mismatch", tensor="A",
                reason="setting an array element with a sequence. The requested array has an inhomogeneous shape after 1 dimensions. The detected shape was (2,) + inhomogeneous part.",
                remedy="give an array of float32 of shape (4,)",
            ),
        ),
        (
            lambda: tecomp.compile(B, [A])(),
            Diagnostic("argument-mismatch", kernel="program", expected="1 input", names="A", array_count=0),
        ),
        (
            lambda: tecomp.compile(B, [A])(np.zeros(4, "float32"), out=[]),
            Diagnostic(
                "argument-count", kernel="program", arrays="1 array", names="B", given_count=0,
            ),
        ),
        (
            lambda: tecomp.compile(B, [A]).report(measured="x"),  # type: ignore[arg-type]
            Diagnostic(
                "invalid-type", where="program: measured", value="x",
                remedy="give True or False",
            ),
        ),
        (
            lambda: tecomp.compile(B, [A]).timeline(measured=1),  # type: ignore[arg-type]
            Diagnostic(
                "invalid-type", where="program: measured", value=1, remedy="give True or False",
            ),
        ),
    ],
)
def test_calls_that_are_refused(call: Callable[[], object], expected: Diagnostic) -> None:
    with pytest.raises(CallError) as error:
        call()

    assert diagnostic(error.value) == expected


def test_an_array_of_another_shape_is_refused_before_anything_is_written() -> None:
    program = tecomp.compile(B, [A])
    out = np.zeros(4, "float32")
    with pytest.raises(tecomp.CallError):
        program(np.zeros(5, "float32"), out=out)

    assert not out.any()


def with_memory(capacity: int) -> tecomp.Target:
    """Return the host target with the given memory capacity in bytes."""
    memory = replace(MACHINE.memories["global"], capacity_bytes=capacity)
    return replace(MACHINE, memories={**MACHINE.memories, "global": memory})


def three_values() -> tuple[te.Tensor, te.Tensor]:
    """Return a program whose last kernel reads values of 2,048 and 1,024 bytes in full."""
    X = te.placeholder((16, 16), name="X")
    k = te.reduce_axis((0, 16), name="k")
    P = te.compute((16, 32), lambda i, j: te.sum(X[i, k] * X[k, j // 2], axis=k), name="P")
    Q = product_of(X, X, "Q")
    return X, product_of(Q, P, "R")


@pytest.mark.parametrize(
    ("capacity", "expected"),
    [
        (
            6143,
            Diagnostic(
                "capacity",
                message="compile: program needs 6144 bytes of global, which has 6143: 3072 for inputs, outputs and constants, 3072 between kernels; P (2048), Q (1024) are live at the peak",
                remedy="without Q it fits: reduce its size by 128 bytes, or recompute it where it is read",
            ),
        ),
        (
            5119,
            Diagnostic(
                "capacity",
                message="compile: program needs 6144 bytes of global, which has 5119: 3072 for inputs, outputs and constants, 3072 between kernels; P (2048), Q (1024) are live at the peak",
                remedy="without P it fits: reduce its size by 1152 bytes, or recompute it where it is read",
            ),
        ),
        (
            4095,
            Diagnostic(
                "capacity",
                message="compile: program needs 6144 bytes of global, which has 4095: 3072 for inputs, outputs and constants, 3072 between kernels; P (2048), Q (1024) are live at the peak",
                remedy="without P, Q it fits: reduce their sizes, or recompute them where they are read",
            ),
        ),
        (
            3071,
            Diagnostic(
                "capacity",
                message="compile: program needs 6144 bytes of global, which has 3071: 3072 for inputs, outputs and constants, 3072 between kernels; P (2048), Q (1024) are live at the peak",
                remedy="reduce the size of the arguments by 1 byte",
            ),
        ),
    ],
)
def test_programs_that_do_not_fit(capacity: int, expected: Diagnostic) -> None:
    X, R = three_values()
    with pytest.raises(tecomp.errors.CapacityError) as error:
        tecomp.compile(R, [X], with_memory(capacity))

    assert diagnostic(error.value) == expected


def chain_of_products(count: int, size: int = 16) -> tuple[te.Tensor, te.Tensor]:
    """Return a chain of matrix products of equal size."""
    X = te.placeholder((size, size), name="X")
    value = X
    for number in range(count):
        value = product_of(value, value, f"P{number}")
    return X, value


@pytest.mark.parametrize(
    ("count", "remedy"),
    [
        (4, "without P1 it fits: recompute it where it is read"),
        (6, "without P1, P3 it fits: recompute them where they are read"),
        (40, "more than 16 values would have to be removed: split the program into several"),
    ],
)
def test_programs_that_are_too_large_at_many_moments(count: int, remedy: str) -> None:
    X, Y = chain_of_products(count)
    with pytest.raises(tecomp.errors.CapacityError) as error:
        tecomp.compile(Y, [X], with_memory(2048 + 1024))

    assert diagnostic(error.value) == Diagnostic(
        "capacity", message="compile: program needs 4096 bytes of global, which has 3072: 2048 for "
        "inputs, outputs and constants, 2048 between kernels; P0 (1024), P1 (1024) are live at "
        "the peak", remedy=remedy,
    )


def test_a_program_that_just_fits() -> None:
    X, R = three_values()
    (x,) = arrays((16, 16))
    found = tecomp.compile(R, [X], with_memory(6144))(x)

    assert_product(found, x, x, x, np.repeat(x, 2, axis=1))


def test_user_statements_cannot_modify_shared_inputs() -> None:
    """Extern statements cannot store to their inputs, so no program has a cyclic dependence."""
    with pytest.raises(DefinitionError) as error:
        te.extern((4,), B, lambda ins, outs: ins[0].store(0, outs[0][0]), name="E")

    assert diagnostic(error.value) == (
        Diagnostic("statements", where="te.extern E", buffer="B")
    )


def test_constant_expressions_are_computed_once() -> None:
    X, W, Y = layers(1)
    scale = te.placeholder((SIZE,), name="scale")
    wide = te.compute((SIZE, SIZE), lambda i, j: W[i, j] * te.exp(scale[j]), name="wide")
    P = product_of(X, wide, "P")
    x, w, s = arrays((SIZE, SIZE), (SIZE, SIZE), (SIZE,))
    program = tecomp.compile([P, Y], [X], constants={W: w, scale: s})
    by_product = next(call for call in program.kernels if call.group.result.name == "P")

    wide_product, layer = program(x)
    assert_product(wide_product, x, w * np.exp(s.astype("float64")))
    assert_layers(layer, x, w, 1)
    # The remaining kernel reads nothing that was precomputed from constants at compile time.
    assert "exp" not in str(by_product.kernel.lowered.final)


def test_kernels_of_constants_alone_run_once() -> None:
    X, W, _ = layers(0)
    squares = product_of(W, W, "squares")
    cubes = product_of(product_of(W, W, "hidden"), W, "cubes")
    x, w = arrays((SIZE, SIZE), (SIZE, SIZE))
    program = tecomp.compile([product_of(X, cubes, "P"), squares], [X], constants={W: w})
    found, repeated = program(x)

    # Outputs are written in each call.
    assert [call.group.result.name for call in program.kernels] == ["P", "squares"]
    assert_product(found, x, w, w, w)
    assert_product(repeated, w, w)


def test_constants_may_have_any_alignment() -> None:
    X, W, Y = layers(1)
    x, w = arrays((SIZE, SIZE), (SIZE, SIZE))
    shifted = np.frombuffer(b"." + w.T.tobytes(), "float32", offset=1).reshape(w.shape).T
    assert not shifted.flags.aligned
    assert not shifted.flags.c_contiguous

    found = tecomp.compile(Y, [X], constants={W: shifted})(x)
    assert_layers(found, x, w, 1)


def test_heads_of_a_row_are_factors_of_products() -> None:
    Q, K = te.placeholder((8, 12), name="Q"), te.placeholder((9, 12), name="K")
    e = te.reduce_axis((0, 4), name="e")
    S = te.compute(
        (3, 8, 9), lambda h, i, j: te.sum(Q[i, h * 4 + e] * K[j, h * 4 + e], axis=e), name="S"
    )
    q, k = arrays((8, 12), (9, 12))
    program = tecomp.compile(S, [Q, K])

    assert [op.name for op in program.kernels[0].group.operations] == ["Q_view", "K_view", "S"]
    heads = q.reshape(8, 3, 4).transpose(1, 0, 2), k.reshape(9, 3, 4).transpose(1, 2, 0)
    assert_product(program(q, k), *heads)


@pytest.mark.parametrize("low", [0, 2, -3])
def test_products_over_ranges_that_begin_anywhere(low: int) -> None:
    """Reduction ranges with any lower bound are supported; the axes of a view start at 0."""
    A, W = te.placeholder((7, 5), "int32", name="A"), te.placeholder((5, 7), "int32", name="W")
    k = te.reduce_axis((low, 7 + low), name="k")
    C = te.compute(
        (8, 5), lambda i, j: te.sum(A[6 - (k - low), j] * W[j, k - low], axis=k), name="C")
    numbers = np.random.default_rng(0)
    a, w = (numbers.integers(-9, 9, x.shape).astype("int32") for x in (A, W))

    program = tecomp.compile(C, [A, W])(a, w)

    np.testing.assert_array_equal(program, np.tile(np.einsum("kj,jk->j", a[::-1], w), (8, 1)))


def test_windows_are_no_views() -> None:
    X, W = te.placeholder((64,), name="X"), te.placeholder((5, 3), name="W")
    r = te.reduce_axis((0, 5), name="r")
    Y = te.compute((60, 3), lambda i, c: te.sum(X[i + r] * W[r, c], axis=r), name="Y")
    x, w = arrays((64,), (5, 3))
    program = tecomp.compile(Y, [X, W])

    assert [op.name for op in program.kernels[0].group.operations] == ["Y"]
    assert_product(program(x, w), np.lib.stride_tricks.sliding_window_view(x, 5), w)


def test_report(golden: Callable[[object], None]) -> None:
    program, _ = perceptron(3, MACHINE)

    golden(str(program.report()))


def test_a_measured_report_has_times() -> None:
    program, _ = perceptron(2)
    report = program.report(measured=True)

    assert all(kernel.seconds is not None and kernel.seconds > 0 for kernel in report.kernels)
    assert report.copy_rate is not None
    head = str(report).splitlines()[3].split()
    assert head[-2:] == ["measured", "achieved"]
    first = report.kernels[0]
    # Kernels whose data fit into caches are compute-bound.
    assert first.seconds is not None
    assert first.bound is not None
    assert first.limit == ("compute", first.bound)
    assert str(report).splitlines()[4].split()[-1] == f"{100 * first.bound / first.seconds:.0f}%"


def test_a_table_of_one_row_is_measured() -> None:
    X, R = te.placeholder((1, 8), name="X"), te.placeholder((8,), "int32", name="R")
    Y = te.compute((8, 8), lambda i, j: X[R[i], j] * 2.0, name="Y")
    (kernel,) = tecomp.compile(Y, [X, R]).report(measured=True).kernels

    assert kernel.seconds is not None


def test_kernels_beyond_the_caches_are_compared_with_copy_bandwidth() -> None:
    assert MACHINE.core is not None
    small = replace(MACHINE, core=replace(MACHINE.core, cache_bytes=(1024,)))
    X = te.placeholder((1 << 18,), name="X")
    report = tecomp.compile(te.compute(X.shape, lambda i: -X[i], name="Y"), [X], small).report(
        measured=True
    )
    (kernel,) = report.kernels

    assert report.copy_rate is not None
    assert kernel.limit == ("memory", (1 << 21) / report.copy_rate)
    assert kernel.seconds is not None
    assert kernel.achieved == kernel.limit[1] / kernel.seconds
    row = str(report).splitlines()[4].split()
    assert (row[6], row[-1]) == ("memory", f"{100 * kernel.achieved:.0f}%")


def test_a_report_shows_packed_constants() -> None:
    X, W = te.placeholder((100, 300), name="X"), te.placeholder((300, 200), name="W")
    (w,) = arrays((300, 200))
    program = tecomp.compile(product_of(X, W, "product"), [X], constants={W: w})
    source, packed, result = program.report().edges
    (folded,) = program.kernels[0].packed

    assert (packed.name, packed.kind, packed.read_by) == ("W", "constant", ("product",))
    assert packed.layout == f"packed at build time, as {list(folded.shape)}"
    assert packed.bytes == 4 * prod(folded.shape) == program.report().constants
    assert [(x.name, x.kind, x.layout) for x in (source, result)] == [
        ("X", "input", "row-major"), ("product", "output", "row-major"),
    ]


@pytest.mark.parametrize("side", [0, 1])
def test_constant_factors_are_packed_at_build_time(side: int) -> None:
    """A call reads a packed copy of a constant factor, however few rows or columns reuse it."""
    shapes = ((96, 160), (160, 40))
    factors = [te.placeholder(shape, name=name) for shape, name in zip(shapes, "XY", strict=True)]
    arrays = [np.random.default_rng(k).random(shape, "float32") for k, shape in enumerate(shapes)]
    constant, argument = factors[side], factors[1 - side]
    program = tecomp.compile(
        product_of(factors[0], factors[1], "Z"), [argument], constants={constant: arrays[side]}, target="cpu"
    )
    (packed,) = program.kernels[0].packed
    assert packed.source.name == constant.name
    assert_product(program(arrays[1 - side]), *arrays)


def test_scans_are_kernels_of_their_own() -> None:
    X, W = te.placeholder((6, SIZE), name="X"), te.placeholder((SIZE, SIZE), name="W")
    P = product_of(X, W, "P")
    state = te.placeholder((6, SIZE), name="state")
    start = te.compute((1, SIZE), lambda _, j: P[0, j] * 0.5, name="start")
    half = te.compute((6, SIZE), lambda t, j: state[t - 1, j] * 0.5, name="half")
    step = te.compute((6, SIZE), lambda t, j: half[t, j] + P[t, j], name="step")
    S = te.scan(start, step, state, inputs=[P], name="S")
    Y = te.compute((6, SIZE), lambda t, j: te.tanh(S[t, j]), name="Y")
    x, w = arrays((6, SIZE), (SIZE, SIZE))
    expected = [(x @ w)[0] * 0.5]
    for row in (x @ w)[1:]:
        expected.append(expected[-1] * 0.5 + row)

    program = tecomp.compile(Y, [X], constants={W: w})
    by_scan = next(call.group for call in program.kernels if call.group.result is S.op)
    assert {op.name for op in by_scan.operations} >= {"half", "step", "S"}
    terms = 2 * (np.abs(x) @ np.abs(w)).max()  # of a state, which adds half of each previous state
    assert_close(program(x), np.tanh(expected), rtol=1e-5, magnitude=terms)


def test_results_of_several_values_are_read_one_by_one() -> None:
    X = te.placeholder((5, SIZE), name="X")
    k = te.reduce_axis((0, SIZE), name="k")
    larger = te.comm_reducer(
        lambda x, y: (te.if_then_else(x[1] >= y[1], x[0], y[0]), te.max(x[1], y[1])),
        lambda i, v: (te.const(-1, i), te.min_value(v)), name="larger",
    )
    place, most = te.compute((5,), lambda i: larger((k, X[i, k]), axis=k), name="most")
    Y = te.compute((5,), lambda i: most[i] * 2.0, name="Y")
    (x,) = arrays((5, SIZE))
    doubled, where = tecomp.compile([Y, place], [X])(x)

    np.testing.assert_array_equal(where, x.argmax(1))
    np.testing.assert_array_equal(doubled, x.max(1) * 2)


def test_common_operands_of_reductions_are_fused() -> None:
    X = te.placeholder((4, 100), "float32", name="X")
    shifted = te.compute(X.shape, lambda i, j: te.exp(X[i, j]) - 2.0, name="shifted")
    k = te.reduce_axis((0, 100), name="k")
    last = te.comm_reducer(
        lambda x, y: (te.max(x[0], y[0]), x[1] + y[1]),
        lambda place, total: (te.const(0, place), te.const(0, total)))
    end, total = te.compute(
        (4,), lambda i: last((te.cast(k, "int32"), shifted[i, k]), axis=k), name="ends")

    program = tecomp.compile([end, total], [X], "cpu")

    (kernel,) = program.kernels
    assert [op.name for op in kernel.group.operations] == ["shifted", "ends"]
    assert "as shifted" not in str(kernel.kernel.lowered.final)
    (x,) = arrays((4, 100))
    np.testing.assert_array_equal(program(x)[0], np.full(4, 99))
    assert_close(program(x)[1], np.sum(np.exp(x) - 2, axis=1), rtol=1e-5,
                 magnitude=np.sum(np.exp(x) + 2, axis=1))


@pytest.mark.parametrize("name", ["layer1_0", "sums1_0", "größe"])
def test_a_program_may_have_any_name(name: str) -> None:
    X, W, Y = layers(2)
    x, w = arrays((SIZE, SIZE), (SIZE, SIZE))
    found = tecomp.compile(Y, [X, W], name=name)(x, w)

    assert_layers(found, x, w, 2)


def test_operations_may_carry_anything() -> None:
    X = [te.placeholder((4,), name=name) for name in "ABC"]
    notes = [object(), np.zeros(3), lambda: 0]
    Y = [
        te.compute((4,), lambda i, x=x: x[i] + 1.0, name="Y", attrs={"note": note})
        for x, note in zip(X, notes, strict=True)
    ]
    program = tecomp.compile(Y, X)

    assert len({id(call.kernel) for call in program.kernels}) == 3
    np.testing.assert_array_equal(program(*np.zeros((3, 4), "float32")), np.ones((3, 4)))


@pytest.mark.parametrize("name", ["1st sum", "a.b", "größe", "lambda"])
def test_operations_may_have_any_name(name: str) -> None:
    (x,) = arrays((SIZE, SIZE))
    X = te.placeholder(x.shape, name=name)

    assert_product(tecomp.compile(product_of(X, X, name), [X])(x), x, x)


@pytest.mark.parametrize("dtype", ["bool", "int8", "uint16", "int64", "float16", "bfloat16"])
def test_constants_of_any_type_and_shape(dtype: str) -> None:
    kind = te.placeholder((), dtype, name="x").dtype.numpy
    one, many = te.placeholder((), dtype, name="one"), te.placeholder((3, 0), dtype, name="many")
    few = te.placeholder((3,), dtype, name="few")
    X = te.placeholder((3,), "float32", name="X")
    Y = te.compute(
        (3,), lambda i: X[i] + te.cast(few[i], "float32") * te.cast(one(), "float32"), name="Y"
    )
    Z = te.compute((3, 0), lambda i, j: many[i, j], name="Z")
    values = {one: np.array(1, kind), few: np.array([1, 0, 1], kind), many: np.zeros((3, 0), kind)}
    found, empty = tecomp.compile([Y, Z], [X], constants=values)(np.full(3, 2.0, "float32"))

    np.testing.assert_array_equal(found, [3.0, 2.0, 3.0])
    assert (empty.shape, empty.dtype) == ((3, 0), kind)


def test_programs_return_the_requested_outputs() -> None:
    Q, K = te.placeholder((8, 12), name="Q"), te.placeholder((9, 12), name="K")
    e = te.reduce_axis((0, 4), name="e")
    S = te.compute(
        (3, 8, 9), lambda h, i, j: te.sum(Q[i, h * 4 + e] * K[j, h * 4 + e], axis=e), name="S"
    )
    V = te.compute((9, 8, 3), lambda j, i, h: S[h, i, j], name="V")
    program = tecomp.compile([V, S], [Q, K])
    turned, scores = program(*arrays((8, 12), (9, 12)))

    assert program.outputs == (V, S)
    np.testing.assert_array_equal(turned, scores.transpose(2, 1, 0))


def test_programs_go_through_pickle() -> None:
    program, check = perceptron(2)
    (x,) = arrays((SIZE, SIZE))

    check(pickle.loads(pickle.dumps(program))(x), x)
    assert copy(program) is program


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(4096,), (3, 5000), (2, 4096)])
@pytest.mark.parametrize("is_followed", [False, True])
def test_scans_inside_of_groups_of_rows_are_one_kernel(
    shape: tuple[int, ...], is_followed: bool
) -> None:
    X = te.placeholder(shape, name="X")
    Y = cumsum.define(X)
    Z = te.compute(shape, lambda *i: Y(*i) * X(*i), name="Z") if is_followed else Y
    x = np.random.default_rng(0).integers(-9, 9, shape).astype(np.float32)

    program = tecomp.compile(Z, [X])

    np.testing.assert_array_equal(program(x), x.cumsum(-1) * (x if is_followed else 1))
    of_sums = next(
        call.group for call in program.kernels if any(op is Y.op for op in call.group.operations))
    names = {op.name for op in of_sums.operations}
    assert names >= {"cumsum_transposed", "cumsum_sums", "cumsum_totals", "cumsum_before"}


def test_scans_with_external_readers_are_separate_kernels() -> None:
    X = te.placeholder((3, 4096), name="X")
    Y = cumsum.define(X)
    sums = next(x for x in Y.op.input_tensors if x.shape[0] == 16)
    x = np.random.default_rng(0).integers(-9, 9, (3, 4096)).astype(np.float32)

    program = tecomp.compile([sums, Y], [X])
    inside, whole = program(x)

    np.testing.assert_array_equal(whole, x.cumsum(1))
    np.testing.assert_array_equal(inside, x.reshape(3, 256, 16).cumsum(2).transpose(2, 0, 1))


def test_program_attributes_are_annotated() -> None:
    def names(cls: type) -> set[str]:
        return {n for item in cls.__mro__[:-1] for n in vars(item) if not n.startswith("_")}

    def told(program: Program) -> CompiledProgram:
        return program

    A = te.placeholder((4,), name="A")
    program = tecomp.compile(te.compute((4,), lambda i: A[i] + 1.0, name="B"), [A])

    assert isinstance(program, Program)
    assert told(program) is program
    assert names(Program) == names(CompiledProgram)
