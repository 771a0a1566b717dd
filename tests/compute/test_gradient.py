"""Gradients of tensors agree with finite differences of NumPy functions in float64."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, NamedTuple, TypeAlias

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.operations import elementwise_in
from tests.messages import Diagnostic, diagnostic
from tests.strategies.functions import reference

Array: TypeAlias = np.ndarray[Any, Any]

ROWS = {name: row for name, row in elementwise_in("te").items() if row.derivative}
WITHOUT = {"digamma", "isfinite", "isinf", "isnan"}
"""Functions without a derivative, and with a formula in place of an intrinsic."""


def differences(function: Callable[..., Any], arrays: list[Array], head: Array) -> list[Array]:
    """Return the derivatives of the product of `head` with a function, by central differences."""
    found = []
    for position, array in enumerate(arrays):
        gradient = np.zeros(array.shape)
        for index in np.ndindex(array.shape):
            values = []
            for step in (1e-6, -1e-6):
                moved = [x.copy() for x in arrays]
                moved[position][index] += step
                values.append(np.sum(head * function(*moved)))
            gradient[index] = (values[0] - values[1]) / 2e-6
        found.append(gradient)
    return found


def check(
    define: Callable[..., te.Tensor], function: Callable[..., Any], *arrays: Array,
    rtol: float = 1e-5,
) -> list[te.Tensor]:
    """Compare gradients of a definition with differences of a NumPy function."""
    inputs = [te.placeholder(x.shape, "float64", name=name)
              for x, name in zip(arrays, "ABCD", strict=False)]
    output = define(*inputs)
    np.testing.assert_allclose(
        tecomp.compile(output, inputs)(*arrays), function(*arrays), rtol=1e-10, atol=1e-12)
    weights = np.random.default_rng(1).uniform(0.5, 1.5, tuple(map(int, output.shape)))
    head = te.placeholder(output.shape, "float64", name="head")
    gradients = te.gradient(output, inputs, head)
    # A gradient may be independent of an operand, which is then no argument.
    for x, gradient, expected in zip(
        inputs, gradients, differences(function, [*arrays], weights), strict=True
    ):
        assert gradient.shape == x.shape
        values = dict(zip([*inputs, head], [*arrays, weights], strict=True))
        used = [tensor for tensor in values if tensor in leaves(gradient)]
        actual = tecomp.compile(gradient, used)(*[values[tensor] for tensor in used])
        np.testing.assert_allclose(actual, expected, rtol=rtol, atol=1e-7, err_msg=x.name)
    return gradients


def leaves(tensor: te.Tensor) -> set[te.Tensor]:
    """Return the placeholders that a tensor depends on."""
    if not tensor.op.input_tensors:
        return {tensor}
    return set().union(*map(leaves, tensor.op.input_tensors))


def uniform(*shape: int, seed: int = 0, low: float = 0.2, high: float = 0.9) -> Array:
    return np.random.default_rng(seed).uniform(low, high, shape)


def test_rows_of_floats_have_derivatives() -> None:
    assert {*elementwise_in("te")} - {*ROWS} == WITHOUT


@pytest.mark.exhaustive(keep=9)
@pytest.mark.parametrize("name", ROWS)
def test_elementwise(name: str) -> None:
    row = ROWS[name]
    values = uniform(7) + (1.0 if name == "acosh" else 0.0)
    if row.numpy is None:
        exact = {"rsqrt": lambda x: 1 / np.sqrt(x), "round": lambda x: np.floor(x + 0.5)}[name]
    else:
        exact = lambda *x: reference(row, *x)  # noqa: E731
    function = getattr(te, name)
    if row.arity == 2:
        check(lambda A, B: te.compute((7,), lambda i: function(A[i], B[i])),
              exact, values, uniform(7, seed=3))
        return
    signed = name not in ("acosh", "lgamma", "log", "log2", "log10", "log1p", "rsqrt", "sqrt")
    values = values * np.array([1, -1, 1, -1, 1, -1, 1]) if signed else values
    check(lambda A: te.compute((7,), lambda i: function(A[i])), exact, values)


class Case(NamedTuple):
    """Definition with its NumPy function.

    Attributes:
        define: Function of tensors.
        function: Function of arrays.
        shapes: Shapes of the operands.
    """

    define: Callable[..., te.Tensor]
    function: Callable[..., Any]
    shapes: tuple[tuple[int, ...], ...]


def axis(extent: int, name: str = "k") -> Any:
    return te.reduce_axis((0, extent), name)


def total(source: Callable[..., Any], reducer: Any, extents: tuple[int, ...]) -> te.Tensor:
    axes = [axis(extent, f"k{n}") for n, extent in enumerate(extents)]
    found: te.Tensor = te.compute((), lambda: reducer(source(*axes), axis=axes), name="total")
    return found


def conv(X: te.Tensor, W: te.Tensor) -> te.Tensor:
    """Convolve with stride 2 and padding 1."""
    c, r, q = axis(2, "c"), axis(3, "r"), axis(3, "q")

    def padded(i: Any, y: Any, x: Any) -> Any:
        inside = te.all(y >= 1, y < 8, x >= 1, x < 8)
        return te.if_then_else(inside, X[i, y - 1, x - 1], te.const(0, "float64"))

    P = te.compute((2, 9, 9), padded, name="P")
    Y: te.Tensor = te.compute((3, 4, 4), lambda o, y, x: te.sum(
        P[c, 2 * y + r, 2 * x + q] * W[o, c, r, q], axis=[c, r, q]), name="Y")
    return Y


def numpy_conv(x: Array, w: Array) -> Array:
    padded = np.pad(x, ((0, 0), (1, 1), (1, 1)))
    return np.array([[[np.sum(padded[:, 2 * i:2 * i + 3, 2 * j:2 * j + 3] * w[o]) for j in range(4)]
                      for i in range(4)] for o in range(3)])


def dilated(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    k = axis(3)
    return te.compute((5,), lambda i: te.sum(A[3 * i + 2 * k + 1] * B[k], axis=k))


def softmax(A: te.Tensor) -> te.Tensor:
    k, j = axis(5), axis(5, "j")
    most = te.compute((4,), lambda i: te.max(A[i, k], axis=k), name="most")
    power = te.compute((4, 5), lambda i, j: te.exp(A[i, j] - most[i]), name="power")
    norm = te.compute((4,), lambda i: te.sum(power[i, j], axis=j), name="norm")
    return te.compute((4, 5), lambda i, j: power[i, j] / norm[i], name="softmax")


def numpy_softmax(a: Array) -> Array:
    power = np.exp(a - a.max(1, keepdims=True))
    quotient: Array = power / power.sum(1, keepdims=True)
    return quotient


def matmul(A: te.Tensor, B: te.Tensor) -> te.Tensor:
    k = axis(4)
    return te.compute((3, 5), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k))


def windows(A: te.Tensor, reducer: Any) -> te.Tensor:
    k = axis(3)
    found: te.Tensor = te.compute((4,), lambda i: reducer(A[2 * i + k], axis=k))
    return found


def triangle(A: te.Tensor) -> te.Tensor:
    k = axis(5)
    return te.compute((5,), lambda i: te.sum(A[i, k] * A[i, k], axis=k, where=k <= i))


CASES = {
    "matmul": Case(matmul, np.matmul, ((3, 4), (4, 5))),
    "conv2d": Case(conv, numpy_conv, ((2, 7, 7), (3, 2, 3, 3))),
    "dilated": Case(dilated, lambda a, b: np.array(
        [np.sum(a[3 * i + 1:3 * i + 6:2] * b) for i in range(5)]), ((20,), (3,))),
    "transpose": Case(lambda A: te.compute((5, 4), lambda i, j: A[j, i] * A[j, i]),
                      lambda a: a.T * a.T, ((4, 5),)),
    "flatten": Case(lambda A: te.compute((20,), lambda i: te.exp(A[i // 5, i % 5])),
                    lambda a: np.exp(a).ravel(), ((4, 5),)),
    "unflatten": Case(lambda A: te.compute((2, 3, 4), lambda i, j, k: te.exp(A[i * 12 + j * 4 + k])),
                      lambda a: np.exp(a).reshape(2, 3, 4), ((24,),)),
    "interleave": Case(lambda A: te.compute((5, 2), lambda i, j: te.exp(A[i + j * 5])),
                       lambda a: np.exp(a).reshape(2, 5).T, ((10,),)),
    "reshape": Case(lambda A: te.compute(
        (4, 6), lambda i, j: te.exp(A[(i * 6 + j) // 8, (i * 6 + j) // 2 % 4, (i * 6 + j) % 2])),
                    lambda a: np.exp(a).reshape(4, 6), ((3, 4, 2),)),
    "upsampling": Case(lambda A: te.compute((9,), lambda i: te.exp(A[(i + 1) // 2])),
                       lambda a: np.exp(a[(np.arange(9) + 1) // 2]), ((6,),)),
    "repeat": Case(lambda A: te.compute((13,), lambda i: te.exp(A[i // 3])),
                   lambda a: np.exp(a.repeat(3))[:13], ((5,),)),
    "tile": Case(lambda A: te.compute((13,), lambda i: te.exp(A[i % 5])),
                 lambda a: np.exp(np.tile(a, 3))[:13], ((5,),)),
    "slice": Case(lambda A: te.compute((4,), lambda i: te.exp(A[8 - 2 * i])),
                  lambda a: np.exp(a[8:0:-2]), ((10,),)),
    "diagonal": Case(lambda A: te.compute((4,), lambda i: te.exp(A[i, i])),
                     lambda a: np.exp(np.diagonal(a)), ((4, 5),)),
    "constant": Case(lambda A: te.compute((4,), lambda i: A[2, i] * A[i, 3]),
                     lambda a: a[2] * a[:, 3], ((4, 4),)),
    "palindrome": Case(lambda A: te.compute((6,), lambda i: A[i] * A[5 - i]),
                       lambda a: a * a[::-1], ((6,),)),
    "skew": Case(lambda A: te.compute((3, 4), lambda i, j: te.exp(A[i + j, i])),
                 lambda a: np.exp(np.array([[a[i + j, i] for j in range(4)] for i in range(3)])),
                 ((6, 3),)),
    "strided sum": Case(lambda A: te.compute((3, 4), lambda i, j: te.exp(A[2 * i + 3 * j])),
                        lambda a: np.exp(np.array([[a[2 * i + 3 * j] for j in range(4)]
                                                   for i in range(3)])), ((14,),)),
    "reversed window": Case(lambda A: te.compute((3, 4), lambda i, j: te.exp(A[2 * i - j + 3])),
                            lambda a: np.exp(np.array([[a[2 * i - j + 3] for j in range(4)]
                                                       for i in range(3)])), ((9,),)),
    "concatenate": Case(
        lambda A, B: te.compute((9,), lambda i: te.if_then_else(
            i < 4, te.exp(A[i]), te.sin(B[i - 4]))),
        lambda a, b: np.concatenate([np.exp(a), np.sin(b)]), ((4,), (5,))),
    "select": Case(
        lambda A, B: te.compute((9,), lambda i: te.Select(A[i] > B[i], A[i] * B[i], B[i])),
        lambda a, b: np.where(a > b, a * b, b), ((9,), (9,))),
    "broadcast": Case(lambda A, B: te.compute((3, 4), lambda i, j: A[i] * te.exp(B[j])),
                      lambda a, b: a[:, None] * np.exp(b), ((3,), (4,))),
    "softmax": Case(softmax, numpy_softmax, ((4, 5),)),
    "windows of maxima": Case(lambda A: windows(A, te.max), lambda a: np.array(
        [a[2 * i:2 * i + 3].max() for i in range(4)]), ((9,),)),
    "windows of minima": Case(lambda A: windows(A, te.min), lambda a: np.array(
        [a[2 * i:2 * i + 3].min() for i in range(4)]), ((9,),)),
    "windows of products": Case(lambda A: windows(A, te.prod), lambda a: np.array(
        [a[2 * i:2 * i + 3].prod() for i in range(4)]), ((9,),)),
    "largest of all": Case(lambda A: total(lambda i, j: A[i, j], te.max, (3, 4)),
                           np.max, ((3, 4),)),
    "triangle": Case(triangle, lambda a: np.tril(a * a).sum(1), ((5, 5),)),
    "unrelated": Case(lambda A, B: te.compute((3,), lambda i: A[i] * 2.0),
                      lambda a, b: a * 2, ((3,), (4,))),
    "integers": Case(
        lambda A: te.compute((4,), lambda i: A[i] * te.cast(te.cast(3.0 * A[i], "int32"), "float64")),
        lambda a: a * np.trunc(3 * a), ((4,),)),
    "remainder": Case(lambda A, B: te.compute((4,), lambda i: te.fmod(3.0 * A[i], B[i])),
                      lambda a, b: np.fmod(3 * a, b), ((4,), (4,))),
    "floor division": Case(lambda A, B: te.compute((4,), lambda i: 9.0 * A[i] // B[i] + A[i] % B[i]),
                           lambda a, b: 9 * a // b + a % b, ((4,), (4,))),
    "logaddexp": Case(lambda A, B: te.compute((4,), lambda i: te.logaddexp(A[i], B[i])),
                      np.logaddexp, ((4,), (4,))),
    "shared": Case(lambda A: te.compute((4,), lambda i: shared(A[i])),
                   lambda a: a ** 64, ((4,),)),
    "layer norm": Case(lambda A: topi.nn.layer_norm(A, None, None, (1,), 1e-3), lambda a: (
        (a - a.mean(1, keepdims=True)) / np.sqrt(a.var(1, keepdims=True) + 1e-3)), ((3, 6),)),
}


ROWS_OF_TABLE = np.array([3, 0, 3], "int32")
TAKEN = te.placeholder((3,), "int32", name="taken")
OPERATORS: dict[str, tuple[Callable[..., Any], tuple[tuple[int, ...], ...]]] = {
    "conv2d": (lambda A, W: topi.nn.conv2d_nchw(A, W, 2, 1, 1), ((1, 2, 5, 5), (3, 2, 3, 3))),
    "conv2d_transpose": (lambda A, W: topi.nn.conv2d_transpose_nchw(
        A, W, (2, 2), (1, 1), "float64", (0, 0)), ((1, 2, 3, 3), (2, 2, 3, 3))),
    "depthwise": (lambda A, W: topi.nn.depthwise_conv2d_nchw(A, W, 1, 1, 1), ((1, 2, 4, 4), (2, 1, 3, 3))),
    "max pool": (lambda A: topi.nn.pool2d(A, (2, 2), (2, 2), (1, 1), (1, 1, 1, 1), "max"), ((1, 2, 5, 5),)),
    "average pool": (lambda A: topi.nn.pool2d(A, (3, 3), (2, 2), (1, 1), (1, 1, 1, 1), "avg"), ((1, 2, 5, 5),)),
    "adaptive pool": (lambda A: topi.nn.adaptive_pool(A, (3, 3), "avg"), ((1, 2, 5, 5),)),
    "dense": (lambda A, W: topi.nn.dense(A, W), ((3, 4), (2, 4))),
    "batch_matmul": (lambda A, B: topi.nn.batch_matmul(A, B), ((2, 3, 4), (2, 2, 4))),
    "log_softmax": (lambda A: topi.nn.log_softmax(A), ((3, 4),)),
    "lrn": (lambda A: topi.nn.lrn(A, 3), ((1, 4, 2, 2),)),
    "resize": (lambda A: topi.image.resize2d(A, (0.0, 0.0, 0.0, 0.0), (5, 5)), ((1, 1, 3, 3),)),
    "cumsum": (lambda A: topi.cumsum(A, axis=1), ((3, 4),)),
    "logsumexp": (lambda A: topi.logsumexp(A, axis=1), ((3, 4),)),
    "prod": (lambda A: topi.prod(A, axis=0), ((3, 4),)),
    "pad": (lambda A: topi.nn.pad(A, (1, 1), (2, 0)), ((3, 4),)),
    "strided_slice": (lambda A: topi.strided_slice(A, [0, 1], [3, 4], [1, 2]), ((3, 4),)),
    "concatenate": (lambda A, B: topi.concatenate([A, B], axis=1), ((3, 4), (3, 2))),
    "tile": (lambda A: topi.tile(A, (2, 2)), ((3, 4),)),
    "take": (lambda A: topi.take(A, TAKEN, axis=0), ((4, 3),)),
}


@pytest.mark.exhaustive(keep=4)
@pytest.mark.parametrize("name", OPERATORS)
def test_operators_of_topi(name: str) -> None:
    define, shapes = OPERATORS[name]
    arrays = [uniform(*shape, seed=k) for k, shape in enumerate(shapes)]
    inputs = [te.placeholder(x.shape, "float64", name=label)
              for x, label in zip(arrays, "AB", strict=False)]
    output = define(*inputs)
    head = te.placeholder(output.shape, "float64", name="head")
    gradients = te.gradient(output, inputs, head)
    further = {TAKEN: ROWS_OF_TABLE} if TAKEN in leaves(output) else {}
    forward = tecomp.compile(output, [*inputs, *further])

    def function(*moved: Array) -> Array:
        result: Array = forward(*moved, *further.values())
        return result

    weights = uniform(*map(int, output.shape), seed=9)
    for gradient, expected in zip(gradients, differences(function, arrays, weights), strict=True):
        values = dict(zip([*inputs, head], [*arrays, weights], strict=True)) | further
        used = [tensor for tensor in values if tensor in leaves(gradient)]
        actual = tecomp.compile(gradient, used)(*[values[tensor] for tensor in used])
        np.testing.assert_allclose(actual, expected, rtol=1e-5, atol=1e-7)


def shared(x: Any) -> Any:
    for _ in range(6):
        x = x * x
    return x


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("name", CASES)
def test_programs(name: str) -> None:
    case = CASES[name]
    arrays = [uniform(*shape, seed=k) for k, shape in enumerate(case.shapes)]

    check(case.define, case.function, *arrays)


@pytest.mark.parametrize(("reducer", "pick"), [(te.max, np.argmax), (te.min, np.argmin)])
def test_the_first_of_equal_terms_is_selected(reducer: Any, pick: Callable[..., Any]) -> None:
    k, j = axis(3), axis(2, "j")
    A = te.placeholder((4, 3, 2), "float64", name="A")
    B = te.compute((4,), lambda i: reducer(A[i, k, j], axis=[k, j]), name="B")
    head = te.placeholder((4,), "float64", name="head")
    (gradient,) = te.gradient(B, [A], head)
    a = np.random.default_rng(0).integers(0, 2, (4, 3, 2)).astype("float64")

    found = tecomp.compile(gradient, [A, head])(a, np.arange(1.0, 5.0))

    expected = np.zeros((4, 6))
    expected[np.arange(4), pick(a.reshape(4, 6), 1)] = np.arange(1.0, 5.0)
    np.testing.assert_array_equal(found, expected.reshape(4, 3, 2))


def test_products_with_zeros() -> None:
    k = axis(3)
    A = te.placeholder((4, 3), "float64", name="A")
    B = te.compute((4,), lambda i: te.prod(A[i, k], axis=k), name="B")
    head = te.placeholder((4,), "float64", name="head")
    (gradient,) = te.gradient(B, [A], head)
    a = np.array([[2.0, 3, 5], [2, 0, 5], [0, 0, 5], [0, 0, 0]])

    found = tecomp.compile(gradient, [A, head])(a, np.ones(4))

    np.testing.assert_array_equal(found, [[15, 10, 6], [0, 10, 0], [0, 0, 0], [0, 0, 0]])


def test_jacobians_and_heads_with_a_prefix() -> None:
    A = te.placeholder((4,), "float64", name="A")
    B = te.compute((3,), lambda i: A[i] * A[i + 1], name="B")
    heads = te.placeholder((2, 3), "float64", name="heads")
    (jacobian,), (products,) = te.gradient(B, [A]), te.gradient(B, [A], heads)
    a, rows = uniform(4), uniform(2, 3)

    whole, part = tecomp.compile([jacobian, products], [A, heads])(a, rows)

    expected = np.zeros((3, 4))
    for i in range(3):
        expected[i, i], expected[i, i + 1] = a[i + 1], a[i]
    np.testing.assert_allclose(whole, expected, rtol=1e-14)
    np.testing.assert_allclose(part, rows @ expected, rtol=1e-14)


def test_gradients_by_stages_and_by_the_output() -> None:
    A = te.placeholder((4,), "float64", name="A")
    B = te.compute((4,), lambda i: te.exp(A[i]), name="B")
    C = te.compute((4,), lambda i: B[i] * B[i] * A[i], name="C")
    head = te.placeholder((4,), "float64", name="head")
    of_c, of_b, of_a = te.gradient(C, [C, B, A], head)
    a, h = uniform(4), uniform(4, seed=1)

    found = tecomp.compile([of_b, of_a], [A, head])(a, h)

    assert of_c is head
    np.testing.assert_allclose(found[0], h * 2 * np.exp(a) * a, rtol=1e-14)
    # B is an input of its own, and A an input of B.
    np.testing.assert_allclose(found[1], h * np.exp(2 * a) * (1 + 2 * a), rtol=1e-14)


def test_symbolic_sizes() -> None:
    n, m = te.var("n"), te.var("m")
    A, W = te.placeholder((n, m), "float64", name="A"), te.placeholder((m,), "float64", name="W")
    head = te.placeholder((n,), "float64", name="head")
    k = te.reduce_axis((0, m), name="k")
    B = te.compute((n,), lambda i: te.sum(A[i, k] * W[k], axis=k), name="B")
    kernel = tecomp.compile(te.gradient(B, [A, W], head), [A, W, head])
    for rows, columns in ((1, 1), (3, 5), (7, 2)):
        a, w, h = uniform(rows, columns), uniform(columns, seed=1), uniform(rows, seed=2)

        by_matrix, by_vector = kernel(a, w, h)

        np.testing.assert_allclose(by_matrix, np.outer(h, w), rtol=1e-14)
        np.testing.assert_allclose(by_vector, h @ a, rtol=1e-14)


@pytest.mark.parametrize(("stride", "dilation", "taps"), [(1, 1, 3), (2, 1, 2), (3, 1, 1), (4, 1, 1)])
def test_adjoints_visit_only_taps_that_read_an_element(stride: int, dilation: int, taps: int) -> None:
    A, W = te.placeholder((40,), name="A"), te.placeholder((3,), name="W")
    r = axis(3, "r")
    B = te.compute((8,), lambda i: te.sum(A[stride * i + dilation * r] * W[r], axis=r), name="B")

    by_data, by_taps = te.gradient(B, [A, W], te.placeholder((8,), name="head"))

    assert [k.extent for k in by_data.op.reduce_axis] == ([taps] if taps > 1 else [])
    assert [k.extent for k in by_taps.op.reduce_axis] == [8]


@pytest.mark.parametrize("name", ["conv2d", "dilated", "slice", "concatenate", "tile", "triangle"])
def test_adjoints_read_in_bounds(name: str) -> None:
    case = CASES[name]
    arrays = [uniform(*shape, seed=k) for k, shape in enumerate(case.shapes)]
    inputs = [te.placeholder(x.shape, "float64", name=label)
              for x, label in zip(arrays, "AB", strict=False)]
    output = case.define(*inputs)
    head = te.placeholder(output.shape, "float64", name="head")
    for x, gradient in zip(arrays, te.gradient(output, inputs, head), strict=True):
        values = dict(zip([*inputs, head], [*arrays, uniform(*map(int, output.shape))], strict=True))
        used = [tensor for tensor in values if tensor in leaves(gradient)]
        kernel = tecomp.build(te.create_schedule(gradient), [*used, gradient], check_bounds=True)
        kernel(*[values[tensor] for tensor in used], np.empty(x.shape))


STEPS = te.placeholder((5, 3), name="A")
PLACES = te.placeholder((4,), "int32", name="places")


def _gather(A: te.Tensor) -> te.Tensor:
    j = axis(3, "j")
    rows = te.compute((4, 3), lambda i, j: te.exp(A[PLACES[i], j]), name="rows")
    return te.compute((4,), lambda i: te.sum(te.if_then_else(
        i < 3, rows[i, j] * A[PLACES[i + 1], PLACES[i] % 3], 0.0), axis=j), name="G")


def test_reads_at_indices_that_depend_on_data() -> None:
    A = te.placeholder((5, 3), "float64", name="A")
    head = te.placeholder((4,), "float64", name="head")
    (gradient,) = te.gradient(_gather(A), [A], head)
    places = np.array([4, 1, 4, 0], "int32")

    def function(a: Array) -> Array:
        total = [np.sum(np.exp(a[places[i]])) * a[places[i + 1], places[i] % 3] for i in range(3)]
        return np.array([*total, 0.0])

    a, h = uniform(5, 3), uniform(4, seed=1)
    schedule = te.create_schedule(gradient)
    kernel = tecomp.build(schedule, [A, PLACES, head, gradient], check_bounds=True)
    found = np.empty((5, 3))
    kernel(a, places, h, found)

    np.testing.assert_allclose(found, differences(function, [a], h)[0], rtol=1e-6, atol=1e-8)


def test_reads_at_indices_without_inverse() -> None:
    check(lambda A: te.compute((4,), lambda i: te.exp(A[i * i])), lambda a: np.exp(a[[0, 1, 4, 9]]),
          uniform(10))
    check(lambda A: te.compute((7,), lambda i: te.exp(A[i // 2, i // 3])),
          lambda a: np.exp(a[np.arange(7) // 2, np.arange(7) // 3]), uniform(4, 3))


def _scan() -> te.Tensor:
    state = te.placeholder((5, 3), name="state")
    first = te.compute((1, 3), lambda t, i: STEPS[0, i], name="first")
    step = te.compute((5, 3), lambda t, i: state[t - 1, i] + STEPS[t, i], name="step")
    result: te.Tensor = te.scan(first, step, state, [STEPS], name="sums")
    return result


def _custom() -> te.Tensor:
    last = te.comm_reducer(lambda x, y: y, lambda dtype: te.const(0, dtype), name="last")
    k = axis(5)
    found: te.Tensor = te.compute((3,), lambda i: last(STEPS[k, i], axis=k), name="last")
    return found


REFUSED: dict[str, tuple[Callable[[], object], type[Exception], Diagnostic]] = {
    "scan": (lambda: te.gradient(_scan(), [STEPS]), DefinitionError,
             Diagnostic("not-differentiable", where="te.gradient: sums")),
    "custom reducer": (lambda: te.gradient(_custom(), [STEPS]), DefinitionError,
                       Diagnostic("not-differentiable", where="te.gradient: last")),
    "no derivative": (
        lambda: te.gradient(te.compute((3,), lambda i: te.digamma(STEPS[0, i]), name="D"), [STEPS]),
        DefinitionError,
        Diagnostic("not-differentiable", where="te.gradient: D", value="digamma(A[int32(0), i])")),
    "integers": (
        lambda: te.gradient(te.compute((3,), lambda i: STEPS[0, i], name="D"), [PLACES]),
        TypeMismatchError, Diagnostic("dtype", where="te.gradient", tensor="places", dtype="int32")),
    "head": (
        lambda: te.gradient(te.compute((3,), lambda i: STEPS[0, i], name="D"), [STEPS],
                            te.placeholder((2,), name="head")),
        DefinitionError,
        Diagnostic("shapes", where="te.gradient", shape="(2,)", expected="(3,)")),
    "no tensor": (lambda: te.gradient(STEPS, [3]), TypeMismatchError,  # type: ignore[list-item]
                  Diagnostic("invalid-type", where="te.gradient: inputs", value=[3],
                             remedy="pass a list of tensors")),
}


@pytest.mark.parametrize("name", REFUSED)
def test_refusals(name: str) -> None:
    call, kind, expected = REFUSED[name]

    with pytest.raises(kind) as error:
        call()

    assert diagnostic(error.value) == expected
