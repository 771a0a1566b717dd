"""Transformations of functions: arguments, results, nesting, recording and errors."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pytest

import tecomp.array as xp
from tecomp.errors import ArrayTypeError, ArrayValueError
from tests.array.numpy_kernels import numpy_kernels as numpy_kernels
from tests.messages import Diagnostic, diagnostic

X = np.array([0.5, -1.0, 2.0])


class Layer(NamedTuple):
    """Parameters of a layer."""

    weights: Any
    bias: Any


def test_structures_and_positions(numpy_kernels: None) -> None:
    def loss(scale: Any, layers: Any, options: Any) -> Any:
        first, second = layers["a"], layers["b"][0]
        return scale * xp.sum(first.weights * first.bias + second) * options["factor"]

    w, b, c = (xp.asarray(X + k) for k in range(3))
    layers = {"a": Layer(w, b), "b": [c, None]}
    found = xp.grad(loss, argnums=(0, 1))(2.0, layers, {"factor": 3.0})

    assert isinstance(found, tuple)
    assert isinstance(found[1]["a"], Layer)
    assert found[1]["b"][1] is None
    np.testing.assert_allclose(np.asarray(found[0]), 3 * np.sum(X * (X + 1) + X + 2))
    np.testing.assert_allclose(np.asarray(found[1]["a"].weights), 6 * (X + 1))
    np.testing.assert_allclose(np.asarray(found[1]["b"][0]), 6 * np.ones(3))
    alone = xp.grad(loss, argnums=-2)(2.0, layers, {"factor": 3.0})
    np.testing.assert_allclose(np.asarray(alone["a"].bias), 6 * X)


def test_auxiliary_results(numpy_kernels: None) -> None:
    def loss(x: Any) -> Any:
        return xp.sum(x * x), {"twice": 2 * x}

    x = xp.asarray(X)
    (value, aux), slope = xp.value_and_grad(loss, has_aux=True)(x)
    np.testing.assert_allclose([float(value), *np.asarray(slope)], [np.sum(X * X), *2 * X])
    np.testing.assert_allclose(np.asarray(aux["twice"]), 2 * X)
    np.testing.assert_allclose(np.asarray(xp.grad(loss, has_aux=True)(x)[1]["twice"]), 2 * X)
    value, pull, aux = xp.vjp(loss, x, has_aux=True)
    np.testing.assert_allclose(np.asarray(pull(xp.asarray(3.0))[0]), 6 * X)
    _, tangent, _ = xp.jvp(loss, (x,), (xp.ones(3),), has_aux=True)
    assert float(tangent) == 2 * X.sum()


def test_nesting(numpy_kernels: None) -> None:
    derivative = xp.sin
    for expected in (np.cos, lambda x: -np.sin(x), lambda x: -np.cos(x), np.sin):
        derivative = xp.grad(derivative)
        np.testing.assert_allclose(float(derivative(0.7)), expected(0.7), rtol=1e-12)

    def outer(x: Any) -> Any:  # the inner derivative is taken at a fixed value of the outer variable
        return x * xp.grad(lambda y: x * y * y)(2.0)

    np.testing.assert_allclose(float(xp.grad(outer)(3.0)), 24.0)


def test_hessians_agree_with_jacobians_of_tangents(numpy_kernels: None) -> None:
    def function(x: Any) -> Any:
        return xp.prod(x) + xp.sum(xp.exp(x[1:] * x[:-1]))

    x = xp.asarray(X)
    hessian = np.asarray(xp.hessian(function)(x))
    columns = [
        np.asarray(xp.jvp(xp.grad(function), (x,), (xp.asarray(row),))[1]) for row in np.eye(3)
    ]
    np.testing.assert_allclose(hessian, np.stack(columns, axis=-1), rtol=1e-12)
    np.testing.assert_allclose(hessian, hessian.T, rtol=1e-12)


def test_jacobians_of_structures(numpy_kernels: None) -> None:
    def function(x: Any, y: Any) -> Any:
        return {"p": xp.stack([x * y, x]), "q": y @ x}

    x, y = xp.asarray(X), xp.asarray(X + 1)
    found = xp.jacobian(function, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(np.asarray(found["p"][0]), np.stack([np.diag(X + 1), np.eye(3)]))
    np.testing.assert_allclose(np.asarray(found["q"][1]), X)


def test_values_at_kinks_and_ties(numpy_kernels: None) -> None:
    def slopes(function: Any, *values: float) -> list[float]:
        found = xp.grad(lambda x: xp.sum(function(x)))(xp.asarray(values))
        return [float(slope) for slope in found]

    assert slopes(abs, 0.0) == slopes(xp.sign, 0.0) == [0.0]
    assert slopes(xp.max, 1.0, 3.0, 3.0) == [0.0, 1.0, 0.0]
    assert slopes(xp.min, 3.0, 1.0, 1.0) == [0.0, 1.0, 0.0]
    assert slopes(lambda x: xp.clip(x, 0.0, 1.0), 0.0, 0.5, 1.0, 2.0) == [1.0, 1.0, 1.0, 0.0]
    assert slopes(lambda x: xp.maximum(x, xp.zeros(1)), 0.0) == [1.0]
    assert slopes(lambda x: xp.maximum(xp.zeros(1), x), 0.0) == [0.0]
    assert slopes(xp.prod, 0.0, 2.0, 3.0) == [6.0, 0.0, 0.0]
    assert slopes(lambda x: xp.cumulative_prod(x), 0.0, 2.0, 3.0) == [9.0, 0.0, 0.0]
    assert slopes(lambda x: xp.where(x > 0, xp.sqrt(xp.where(x > 0, x, 1.0)), 0.0), 0.0) == [0.0]
    assert slopes(lambda x: x[xp.asarray([1, 1, -1])], 1.0, 2.0) == [0.0, 3.0]


def test_the_last_value_of_an_element_counts(numpy_kernels: None) -> None:
    def function(values: Any) -> Any:
        x = xp.zeros(3)
        x[xp.asarray([0, 2, 0])] = values
        return xp.sum(x * xp.asarray([1.0, 10.0, 100.0]))

    assert np.asarray(xp.grad(function)(xp.asarray(X))).tolist() == [0.0, 100.0, 1.0]


def test_stopped_and_custom_derivatives(numpy_kernels: None) -> None:
    @xp.custom_vjp
    def scaled(pair: Any, power: Any) -> Any:
        return pair[0] * pair[1] ** 2, power

    def forward(pair: Any, power: Any) -> Any:
        return scaled(pair, power), (pair[1], {"p": power})

    def backward(residuals: Any, cotangents: Any) -> Any:
        y, rest = residuals
        return (cotangents[0] * y, None), 100.0 * cotangents[1] * rest["p"]

    scaled.defvjp(forward, backward)

    def function(x: Any, y: Any) -> Any:
        one, two = scaled((x, y), y)
        return xp.sum(one + xp.stop_gradient(two) + two)

    x, y = xp.asarray(X), xp.asarray(X + 1)
    np.testing.assert_allclose(np.asarray(function(x, y)), np.sum(X * (X + 1) ** 2 + 2 * (X + 1)))
    got = xp.grad(function, argnums=(0, 1))(x, y)
    np.testing.assert_allclose(np.asarray(got[0]), X + 1)
    np.testing.assert_allclose(np.asarray(got[1]), 100 * (X + 1))
    rows = xp.vmap(xp.grad(lambda x: scaled((x, 3.0 * x), x)[0]))(x)
    np.testing.assert_allclose(np.asarray(rows), 3 * X)
    batch = xp.grad(lambda x: xp.sum(xp.vmap(lambda z: scaled((z, 3.0 * z), z)[0])(x)))(x)
    np.testing.assert_allclose(np.asarray(batch), 3 * X)


@pytest.mark.exhaustive
def test_gradients_are_on_the_device_of_the_arguments() -> None:
    random = np.random.default_rng(0)
    w, x = random.random((64, 64)).astype("float16"), random.random((70, 64)).astype("float16")

    def loss(w: Any, x: Any) -> Any:
        return xp.sum(xp.tanh(x @ w / 32))

    found = xp.grad(loss)(xp.asarray(w, device="stick128"), xp.asarray(x, device="stick128"))

    assert found.device == "stick128"
    wide = x.astype(float)
    expected = wide.T @ (1 - np.tanh(wide @ w.astype(float) / 32) ** 2) / 32
    np.testing.assert_allclose(np.asarray(found).astype(float), expected, rtol=2e-2)


def digits(random: np.random.Generator, count: int) -> tuple[Any, Any]:
    """Return images of 8 x 8 points of ten patterns with noise, and their numbers."""
    patterns = random.integers(0, 2, (10, 64))
    numbers = random.integers(0, 10, count)
    images = patterns[numbers] + 0.3 * random.standard_normal((count, 64))
    return images.astype("float32"), numbers


@pytest.mark.exhaustive
def test_a_training_step_is_recorded_once() -> None:
    random = np.random.default_rng(0)
    images, numbers = digits(random, 200)
    layers = [
        [xp.asarray((random.standard_normal((m, n)) / m**0.5).astype("float32")),
         xp.zeros(n, dtype=xp.float32)]
        for m, n in ((64, 32), (32, 10))
    ]
    first, second = ([[xp.zeros_like(p) for p in layer] for layer in layers] for _ in range(2))
    count, calls = xp.zeros((), dtype=xp.float32), []

    def loss(layers: Any, x: Any, y: Any) -> Any:
        (w, b), (v, c) = layers
        z = xp.maximum(x @ w + b, xp.zeros_like(b)) @ v + c
        return -xp.mean(xp.sum(y * (z - xp.logsumexp(z, axis=1, keepdims=True)), axis=1))

    @xp.jit
    def step(layers: Any, first: Any, second: Any, count: Any, x: Any, y: Any) -> Any:
        """Make a step of Adam in place."""
        calls.append(1)
        value, slopes = xp.value_and_grad(loss)(layers, x, y)
        count += 1.0
        for rows in zip(layers, slopes, first, second, strict=True):
            for p, g, m, v in zip(*rows, strict=True):
                m *= 0.9
                m += 0.1 * g
                v *= 0.999
                v += 0.001 * g * g
                p -= 0.01 * (m / (1 - 0.9**count)) / (xp.sqrt(v / (1 - 0.999**count)) + 1e-8)
        return value

    x, y = xp.asarray(images), xp.asarray(np.eye(10, dtype="float32")[numbers])
    values = [float(step(layers, first, second, count, x, y)) for _ in range(60)]

    assert len(calls) == 1
    assert values[-1] < 0.05 * values[0]
    (w, b), (v, c) = [[np.asarray(p) for p in layer] for layer in layers]
    tested, answers = digits(np.random.default_rng(0), 200)
    found = np.argmax(np.maximum(tested @ w + b, 0) @ v + c, axis=1)
    assert np.mean(found == answers) > 0.95


def test_axes_of_batches(numpy_kernels: None) -> None:
    x, y = xp.asarray(np.arange(6.0).reshape(2, 3)), xp.asarray(X)
    found = xp.vmap(lambda p: {"sum": p["x"] + p["y"], "y": p["y"]}, in_axes=({"x": 0, "y": None},),
                    out_axes={"sum": 1, "y": None})({"x": x, "y": y})
    np.testing.assert_allclose(np.asarray(found["sum"]), (np.asarray(x) + X).T)
    np.testing.assert_allclose(np.asarray(found["y"]), X)
    table = xp.vmap(lambda a: xp.vmap(lambda b: a * b)(y))(y)
    np.testing.assert_allclose(np.asarray(table), np.outer(X, X))
    assert xp.vmap(lambda: xp.ones(2), axis_size=3)().shape == (3, 2)
    mapped = xp.vmap(lambda a, b: a * b, in_axes=(0, None))(x, 2.0)
    np.testing.assert_allclose(np.asarray(mapped), 2 * np.asarray(x))


def test_arguments_without_derivatives() -> None:
    x = xp.asarray(X)
    with pytest.raises(ArrayTypeError) as error:
        xp.grad(lambda x: xp.sum(x))(xp.asarray([1, 2]))
    assert diagnostic(error.value) == Diagnostic("not-differentiable", where="grad", dtype="int64")
    with pytest.raises(ArrayTypeError) as error:
        xp.grad(lambda x: x)(x)
    assert diagnostic(error.value).kind == "not-differentiable"
    with pytest.raises(ArrayTypeError) as error:
        xp.grad(lambda x: xp.sum(x * 1j))(x)
    assert diagnostic(error.value).kind == "not-differentiable"
    with pytest.raises(ArrayValueError) as problem:
        xp.grad(xp.sin, argnums=1)(0.5)
    assert diagnostic(problem.value) == Diagnostic(
        "array-value", where="grad", argnum=1, count=1)
    with pytest.raises(ArrayTypeError) as error:
        xp.grad(lambda x: 1.0)(x)
    assert diagnostic(error.value) == Diagnostic("not-an-array", where="grad", type="float")
    with pytest.raises(ArrayTypeError) as error:
        xp.vjp(xp.sin, x)[1](xp.ones(2))
    assert diagnostic(error.value).parameters["where"] == "vjp"


def test_operations_without_derivatives_are_named_with_their_line() -> None:
    x = xp.asarray(X)

    def function(x: Any) -> Any:
        y = xp.nextafter(x, 2.0 * x)
        return xp.sum(y)

    with pytest.raises(ArrayTypeError) as error:
        xp.grad(function)(x)
    assert diagnostic(error.value) == Diagnostic(
        "not-differentiable", where="grad", operation="nextafter")
    assert error.value.location is not None
    assert error.value.location.text == "xp.nextafter(x, 2.0 * x)"
    with pytest.raises(ArrayTypeError) as error:
        xp.grad(lambda x: xp.sum(xp.linalg.qr(x, mode="complete").Q))(xp.ones((3, 2)))
    assert diagnostic(error.value) == Diagnostic("not-differentiable", where="grad", operation="qr")


def test_side_effects_and_values_are_rejected() -> None:
    total = xp.zeros(3)

    def add(x: Any) -> Any:
        total[1:] += x[1:]
        return xp.sum(x)

    def change(x: Any) -> Any:
        x += 1.0
        return xp.sum(x)

    x = xp.asarray(X)
    for function in (add, change):
        for transformed in (xp.grad(function), xp.jit(xp.grad(function))):
            with pytest.raises(ArrayTypeError) as error:
                transformed(x)
            assert diagnostic(error.value) == Diagnostic("recording", where="grad", shape=(3,))
    assert np.asarray(total).tolist() == [0.0, 0.0, 0.0]
    with pytest.raises(ArrayTypeError) as error:
        xp.grad(lambda x: xp.sum(x[x > 0]))(x)
    assert diagnostic(error.value).kind == "recording"
    with pytest.raises(ArrayTypeError) as error:
        xp.vmap(lambda x: x if x[0] > 0 else -x)(xp.ones((2, 2)))
    assert diagnostic(error.value) == Diagnostic("recording", where="vmap")


def test_arrays_of_the_function_may_change(numpy_kernels: None) -> None:
    def function(x: Any) -> Any:
        y = xp.zeros(3)
        y += x * x
        view = y[1:]
        view *= 2.0
        return xp.sum(y * x)

    expected = 3 * X**2 * np.array([1, 2, 2])
    np.testing.assert_allclose(np.asarray(xp.grad(function)(xp.asarray(X))), expected)


def test_batches_need_equal_sizes_and_structures() -> None:
    with pytest.raises(ArrayValueError) as problem:
        xp.vmap(lambda x, y: x + y)(xp.ones(2), xp.ones(3))
    assert diagnostic(problem.value) == Diagnostic("array-shapes", sizes=(2, 3))
    with pytest.raises(ArrayTypeError) as error:
        xp.vmap(lambda x, y: x + y, in_axes=(0,))(xp.ones(2), xp.ones(3))
    assert diagnostic(error.value).parameters["where"] == "vmap"
    with pytest.raises(ArrayValueError):
        xp.vmap(lambda x: x, out_axes=None)(xp.ones(2))
    with pytest.raises(ArrayTypeError) as error:
        xp.vmap(lambda x: x)(2.0)
    assert diagnostic(error.value) == Diagnostic("not-an-array", where="vmap", type="float")
