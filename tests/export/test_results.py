"""Results of exported kernels, called with ctypes, against NumPy and calls from Python."""

from __future__ import annotations

import ctypes
import json
import subprocess
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import ml_dtypes
import numpy as np
import pytest

import tecomp
from tecomp import te, tir
from tecomp.driver import ScheduledKernel

pytestmark = pytest.mark.usefixtures("cc")
Array = np.ndarray[Any, np.dtype[Any]]
RANDOM = np.random.default_rng(0)


def load(kernel: ScheduledKernel, folder: Path, **options: Any) -> Any:
    """Export a kernel to a shared library, and return its C function."""
    path = folder / f"{kernel.name}.so"
    kernel.export(path, **options)
    library = ctypes.CDLL(str(path))
    function = getattr(library, kernel.name)
    text = getattr(library, f"{kernel.name}_error_text")
    text.restype = ctypes.c_char_p
    function.text = lambda status: text(status).decode()
    return function


def words(arguments: Sequence[Any]) -> list[Any]:
    return [
        ctypes.c_void_p(item.ctypes.data) if isinstance(item, np.ndarray) else item
        for item in arguments
    ]


def int64(*values: int) -> list[ctypes.c_int64]:
    return [ctypes.c_int64(value) for value in values]


def values(shape: tuple[int, ...], dtype: str) -> Array:
    kind = np.dtype(dtype if hasattr(np, dtype) else getattr(ml_dtypes, dtype))
    random = np.random.default_rng(len(dtype)).integers(0, 5, shape)
    return random.astype(bool if dtype == "bool" else kind)


DTYPES = [
    "float64", "float32", "float16", "bfloat16", "float8_e4m3fn", "int8", "int32", "int64", "uint8",
    "uint16", "bool",
]


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("cpu", [None, "x86-64-v2", ["x86-64-v3", "x86-64-v2"]])
@pytest.mark.parametrize("dtype", DTYPES)
def test_elements_of_each_dtype(dtype: str, cpu: Any, tmp_path: Path) -> None:
    A, B = (te.placeholder((9, 37), dtype, name) for name in "AB")
    C = te.compute(A.shape, lambda i, j: te.if_then_else(B[i, j] < A[i, j], B[i, j], A[i, j]), name="C")
    kernel = tecomp.build(C, [A, B, C], name="least")
    a, b = values((9, 37), dtype), values((9, 37), dtype)[::-1].copy()
    expected, c = np.empty_like(a), np.zeros_like(a)
    kernel(a, b, expected)

    assert load(kernel, tmp_path, cpu=cpu)(*words([a, b, c])) == 0
    np.testing.assert_array_equal(c, expected)
    np.testing.assert_array_equal(c, np.minimum(a, b))


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("dtype", ["float32", "float64", "int32"])
def test_products_that_pack_operands(dtype: str, tmp_path: Path) -> None:
    n = 200
    A, B = (te.placeholder((n, n), dtype, name) for name in "AB")
    k = te.reduce_axis((0, n), name="k")
    C = te.compute((n, n), lambda i, j: te.sum(A[i, k] * B[k, j], axis=k), name="C")
    kernel = tecomp.build(C, [A, B, C], name="product")
    a, b, c = values((n, n), dtype), values((n, n), dtype), np.empty((n, n), dtype)

    assert load(kernel, tmp_path)(*words([a, b, c])) == 0
    np.testing.assert_array_equal(c, a @ b)


def sized() -> ScheduledKernel:
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, m), name="X")
    k = te.reduce_axis((0, m), name="k")
    Y = te.compute((n,), lambda i: te.sum(X[i, k], axis=k), name="Y")
    return tecomp.build(Y, [X, Y], name="sums")


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("shape", [(1, 1), (7, 0), (0, 5), (33, 129), (500, 300)])
def test_symbolic_sizes_follow_the_arguments(shape: tuple[int, int], tmp_path: Path) -> None:
    x, y = values(shape, "float32"), np.full(shape[0], -1, np.float32)

    assert load(sized(), tmp_path)(*words([x, y]), *int64(*shape)) == 0
    np.testing.assert_array_equal(y, x.sum(1))


def test_sizes_among_the_arguments_keep_their_position(tmp_path: Path) -> None:
    n, alpha = te.var("n"), te.var("alpha", "float32")
    X = te.placeholder((n,), name="X")
    Y = te.compute((n,), lambda i: X[i] * alpha, name="Y")
    function = load(tecomp.build(Y, [n, X, alpha, Y], name="scale"), tmp_path)
    x, y = values((40,), "float32"), np.empty(40, np.float32)

    assert function(*int64(40), *words([x]), ctypes.c_float(2.5), *words([y])) == 0
    np.testing.assert_array_equal(y, x * 2.5)


def test_layouts_with_padding(tmp_path: Path) -> None:
    A = te.placeholder((10, 13), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="B")
    s = te.create_schedule(B)
    s[A].transform_layout(lambda i, j: [j // 4, i, j % 4])
    s[B].transform_layout(lambda i, j: [i // 4, j, i % 4])
    kernel = tecomp.build(s, [A, B], name="padded")
    a, b = values((10, 13), "float32"), kernel.empty(B)

    assert load(kernel, tmp_path)(*words([kernel.pack(A, a), b])) == 0
    np.testing.assert_array_equal(kernel.unpack(B, b), a + 1)


@pytest.mark.parametrize("is_symbolic", [False, True])
def test_arrays_of_several_physical_axes(is_symbolic: bool, tmp_path: Path) -> None:
    n: Any = te.var("n") if is_symbolic else 6
    X = te.placeholder((n, 9, 16), name="X")
    Y = te.compute(X.shape, lambda i, j, c: te.max(X[i, j, c], 1.0), name="Y")
    s = te.create_schedule(Y)
    for tensor in (X, Y):
        s[tensor].transform_layout(lambda i, j, c: [i, c // 4, te.AXIS_SEPARATOR, j, c % 4])
        s[tensor].set_scope("global.texture")
    kernel = tecomp.build(s, [X, Y], name="texture")
    x = values((6, 9, 16), "float32")
    packed, out = kernel.pack(X, x), kernel.empty(Y, **({"n": 6} if is_symbolic else {}))

    assert load(kernel, tmp_path)(*words([packed, out]), *int64(*[6] * is_symbolic)) == 0
    sizes = {"n": 6} if is_symbolic else {}
    np.testing.assert_array_equal(kernel.unpack(Y, out, **sizes), np.maximum(x, 1))


def test_declared_strides_and_offsets(tmp_path: Path) -> None:
    A = te.placeholder((5, 6), name="A")
    B = te.compute(A.shape, lambda i, j: A[i, j] * 2.0, name="B")
    outer = te.var("outer")
    binds = {
        A: tir.decl_buffer(A.shape, A.dtype, strides=[outer, 1]),
        B: te.decl_buffer(B.shape, elem_offset=3),
    }
    kernel = tecomp.build(B, [A, B], binds=binds, name="strided")
    a, b = values((5, 10), "float32"), np.zeros(33, np.float32)

    assert load(kernel, tmp_path)(*words([a, b]), *int64(10)) == 0
    np.testing.assert_array_equal(b[3:].reshape(5, 6), 2 * a[:, :6])


def test_relayouts_and_programs_with_stages(tmp_path: Path) -> None:
    A = te.placeholder((64, 48), name="A")
    T = te.compute((48, 64), lambda i, j: A[j, i], name="T")
    k = te.reduce_axis((0, 64), name="k")
    B = te.compute((48,), lambda i: te.max(te.exp(T[i, k]), axis=k), name="B")
    kernel = tecomp.build([T, B], [A, T, B], name="stages")
    a, t, b = values((64, 48), "float32"), np.empty((48, 64), "f4"), np.empty(48, "f4")

    assert load(kernel, tmp_path)(*words([a, t, b])) == 0
    np.testing.assert_array_equal(t, a.T)
    np.testing.assert_allclose(b, np.exp(a.T.max(1)), rtol=1e-6)


def test_parallel_kernels_with_scratch_memory(tmp_path: Path) -> None:
    A = te.placeholder((64, 20_000), name="A")
    T = te.compute(A.shape, lambda i, j: A[i, j] + 1.0, name="T")
    k = te.reduce_axis((0, 20_000), name="k")
    B = te.compute((64,), lambda i: te.sum(T[i, k], axis=k), name="B")
    s = te.create_schedule(B)
    s[B].parallel(B.op.axis[0])
    s[T].compute_at(s[B], B.op.axis[0])
    kernel = tecomp.build(s, [A, B], name="scratch")
    a, b = values((64, 20_000), "float32"), np.empty(64, np.float32)
    function = load(kernel, tmp_path)

    for _ in range(20):
        assert function(*words([a, b])) == 0
        np.testing.assert_array_equal(b, (a + 1).sum(1))


@pytest.mark.parametrize("cpu", ["x86-64-v2", "x86-64-v3"])
def test_conversions_to_half_precision(cpu: str, tmp_path: Path) -> None:
    A = te.placeholder((37,), name="A")
    H = te.compute(A.shape, lambda i: (A[i] * 0.1).astype("float16"), name="H")
    a, h = RANDOM.standard_normal(37).astype("f4"), np.zeros(37, np.float16)
    function = load(tecomp.build(H, [A, H], name="half"), tmp_path, cpu=cpu)

    assert function(*words([a, h])) == 0
    np.testing.assert_array_equal(h, (a * np.float32(0.1)).astype(np.float16))


def test_functions_of_libm(tmp_path: Path) -> None:
    A = te.placeholder((37,), "float64", name="A")
    R = te.compute(A.shape, lambda i: te.fmod(A[i], 0.75) + te.tan(A[i]), name="R")
    kernel = tecomp.build(R, [A, R], name="remainders")
    kernel.export(tmp_path / "remainders.h")
    a, r = RANDOM.standard_normal(37), np.zeros(37)

    assert "Links with: libm (-lm)\n" in (tmp_path / "remainders.h").read_text(encoding="utf-8")
    assert load(kernel, tmp_path)(*words([a, r])) == 0
    np.testing.assert_allclose(r, np.fmod(a, 0.75) + np.tan(a), rtol=1e-12)


WITHOUT_TECOMP = """
import ctypes, json, sys
import numpy as np
job = json.loads(sys.argv[1])
x = np.arange(21, dtype=np.float32).reshape(3, 7)
y = np.empty(3, np.float32)
function = ctypes.CDLL(job["path"]).sums
status = function(ctypes.c_void_p(x.ctypes.data), ctypes.c_void_p(y.ctypes.data),
                  ctypes.c_int64(3), ctypes.c_int64(7))
print(status, y.tolist() == x.sum(1).tolist(), "tecomp" in sys.modules, "llvmlite" in sys.modules)
"""


def test_a_process_without_tecomp_calls_a_kernel(tmp_path: Path) -> None:
    path = tmp_path / "sums.so"
    sized().export(path)
    done = subprocess.run(
        [sys.executable, "-c", WITHOUT_TECOMP, json.dumps({"path": str(path)})],
        check=True, capture_output=True, text=True,
    )

    assert done.stdout.split() == ["0", "True", "False", "False"]
