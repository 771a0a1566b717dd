"""NumPy, with preallocated results and a given OpenBLAS core type."""

from __future__ import annotations

import ctypes
import math
from functools import partial
from pathlib import Path

import numpy as np

from tests.bench.case import Array, Case, NoFormError
from tests.bench.cases.functions import EPSILON
from tests.bench.chains import in_numpy
from tests.bench.programs.in_arrays import Library, function
from tests.bench.worker import Bind, Call, importing, serve


def matmul(case: Case) -> Bind:
    """Multiply into a preallocated array."""
    if case.dtype != "float32":
        raise NoFormError("NumPy has no fast product of this type")

    def bind(a: Array, b: Array) -> Call:
        out = np.empty((*a.shape[:-1], b.shape[-1]), np.float32)
        return lambda: np.matmul(a, b, out=out)

    return bind


def softmax(_: Case) -> Bind:
    """Compute each step in place."""

    def bind(x: Array) -> Call:
        out = np.empty_like(x)

        def call() -> Array:
            np.subtract(x, x.max(axis=-1, keepdims=True), out=out)
            np.exp(out, out=out)
            np.divide(out, out.sum(axis=-1, keepdims=True), out=out)
            return out

        return call

    return bind


def layer_norm(_: Case) -> Bind:
    """Compute each step in place."""

    def bind(x: Array, scale: Array, shift: Array) -> Call:
        out = np.empty_like(x)

        def call() -> Array:
            np.subtract(x, x.mean(axis=-1, keepdims=True), out=out)
            variance = np.einsum("ij,ij->i", out, out)[:, None] / x.shape[-1]
            np.multiply(out, 1.0 / np.sqrt(variance + np.float32(EPSILON)), out=out)
            np.multiply(out, scale, out=out)
            return np.add(out, shift, out=out)

        return call

    return bind


def rms_norm(_: Case) -> Bind:
    """Compute each step in place."""

    def bind(x: Array, scale: Array) -> Call:
        out = np.empty_like(x)

        def call() -> Array:
            squares = np.einsum("ij,ij->i", x, x)[:, None] / x.shape[-1]
            np.multiply(x, 1.0 / np.sqrt(squares + np.float32(EPSILON)), out=out)
            return np.multiply(out, scale, out=out)

        return call

    return bind


def reduce(case: Case) -> Bind:
    """Call the reduction of the same name."""
    function, axis = getattr(np, case.options["op"]), case.options["axis"]
    return lambda x: lambda: function(x, axis=axis)


def attention(_: Case) -> Bind:
    """Compute two products with a softmax in between, in place."""

    def bind(q: Array, k: Array, v: Array) -> Call:
        heads, tokens, features = q.shape
        weights = np.empty((heads, tokens, tokens), np.float32)
        out = np.empty_like(q)
        scale = np.float32(1 / math.sqrt(features))

        def call() -> Array:
            np.matmul(q, k.swapaxes(-1, -2), out=weights)
            np.multiply(weights, scale, out=weights)
            np.subtract(weights, weights.max(axis=-1, keepdims=True), out=weights)
            np.exp(weights, out=weights)
            np.divide(weights, weights.sum(axis=-1, keepdims=True), out=weights)
            return np.matmul(weights, v, out=out)

        return call

    return bind


def blur(_: Case) -> Bind:
    """Compute two passes over slices."""

    def bind(x: Array) -> Call:
        rows = np.empty((x.shape[0] - 2, x.shape[1]), np.float32)
        out = np.empty((x.shape[0] - 2, x.shape[1] - 2), np.float32)
        ninth = np.float32(1 / 9)

        def call() -> Array:
            np.add(x[:-2], x[1:-1], out=rows)
            np.add(rows, x[2:], out=rows)
            np.add(rows[:, :-2], rows[:, 1:-1], out=out)
            np.add(out, rows[:, 2:], out=out)
            return np.multiply(out, ninth, out=out)

        return call

    return bind


def add(_: Case) -> Bind:
    """Add into a preallocated array."""

    def bind(a: Array, b: Array) -> Call:
        out = np.empty_like(a)
        return lambda: np.add(a, b, out)

    return bind


def relayout(case: Case) -> Bind:
    """Copy a view with permuted axes into a preallocated array."""
    axes = case.options["axes"]

    def bind(x: Array) -> tuple[Call, Array]:
        out = np.empty([x.shape[k] for k in axes], x.dtype)
        return lambda: np.copyto(out, x.transpose(axes)), out

    return bind


def program(case: Case) -> Bind:
    """Call NumPy function by function."""
    run = function(case.options["program"], Library())
    return lambda *inputs: partial(run, *inputs)


def chain(case: Case) -> Bind:
    """Compute in place, without new memory."""
    return in_numpy.IN_PLACE[case.options["chain"]]


def one_operation(_: Case) -> Bind:
    """Allocate the result, as tecomp does."""
    return lambda x, y: lambda: x + y


def blas_core() -> str:
    """Return the core type of the OpenBLAS in NumPy's wheels, if NumPy uses it."""
    folder = Path(np.__file__).parent.parent / "numpy.libs"
    for path in sorted(folder.glob("*openblas*")):
        name = getattr(ctypes.CDLL(str(path)), "scipy_openblas_get_corename64_", None)
        if name is not None:
            name.restype = ctypes.c_char_p
            return str(name().decode())
    return ""


if __name__ == "__main__":
    serve(
        {
            "matmul": matmul, "softmax": softmax, "layer_norm": layer_norm, "rms_norm": rms_norm,
            "reduce": reduce, "attention": attention, "blur": blur, "add": add,
            "relayout": relayout, "program": program, "chain": chain,
            "one-operation": one_operation, "import": importing("numpy"),
        },
        "numpy", detail=blas_core(),
    )
