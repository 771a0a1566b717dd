"""Exported programs: results, constants in code and in files, and rejected exports."""

from __future__ import annotations

import ctypes
import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te, topi
from tecomp.codegen import object_code
from tecomp.errors import CallError
from tecomp.export import elf_symbols
from tests.messages import Diagnostic, diagnostic

Array = np.ndarray[Any, np.dtype[Any]]
Run = Callable[..., str]
NOT_OPEN, INVALID_FILE = 9, 10
RANDOM = np.random.default_rng(0)
WEIGHTS = RANDOM.standard_normal((64, 96)).astype(np.float32)
BIAS = RANDOM.standard_normal(96).astype(np.float32)


def perceptron(rows: Any = 32) -> Any:
    A, W = te.placeholder((rows, 64), name="A"), te.placeholder((64, 96), name="W")
    b = te.placeholder((96,), name="b")
    hidden = topi.nn.relu(topi.add(topi.matmul(A, W), b))
    return tecomp.compile(
        topi.nn.softmax(hidden), [A], constants={W: WEIGHTS, b: BIAS}, name="mlp")


def expected(a: Array) -> Array:
    hidden = np.maximum(a @ WEIGHTS + BIAS, 0)
    powers = np.exp(hidden - hidden.max(1, keepdims=True))
    return np.asarray(powers / powers.sum(1, keepdims=True))


def library(folder: Path) -> Any:
    loaded = ctypes.CDLL(str(folder / "mlp.so"))
    loaded.mlp_error_text.restype = ctypes.c_char_p
    return loaded


def pointers(*arrays: Array) -> list[ctypes.c_void_p]:
    return [ctypes.c_void_p(array.ctypes.data) for array in arrays]


@pytest.mark.exhaustive(keep=1)
@pytest.mark.usefixtures("cc")
@pytest.mark.parametrize("cpu", [None, ["x86-64-v2", "x86-64-v3"]])
def test_a_program_equals_numpy(cpu: Any, tmp_path: Path) -> None:
    program = perceptron()
    program.export(tmp_path / "out", formats=[".so", ".h", ".o"], cpu=cpu)
    a, out = RANDOM.standard_normal((32, 64)).astype("f4"), np.zeros((32, 96), "f4")

    assert sorted(os.listdir(tmp_path / "out")) == ["mlp.h", "mlp.o", "mlp.so"]
    assert library(tmp_path / "out").mlp(*pointers(a, out)) == 0
    np.testing.assert_allclose(out, expected(a), rtol=1e-4, atol=1e-6)
    if cpu is None:
        np.testing.assert_array_equal(out, program(a))


@pytest.mark.usefixtures("cc")
def test_symbolic_sizes_follow_the_arrays(tmp_path: Path) -> None:
    perceptron(te.var("n")).export(tmp_path / "out", formats=[".so", ".h"])
    code = library(tmp_path / "out")
    text = (tmp_path / "out" / "mlp.h").read_text(encoding="utf-8")

    assert "int mlp(const float *A, float *T_softmax, int64_t n);" in text
    for rows in (1, 7, 200):
        a, out = RANDOM.standard_normal((rows, 64)).astype("f4"), np.zeros((rows, 96), "f4")
        assert code.mlp(*pointers(a, out), ctypes.c_int64(rows)) == 0
        np.testing.assert_allclose(out, expected(a), rtol=1e-4, atol=1e-6)
    status = code.mlp(*pointers(a, out), ctypes.c_int64(-1))
    assert code.mlp_error_text(status) == b"the sizes give argument 1 (A) an invalid extent"


@pytest.mark.usefixtures("cc")
def test_large_constants_are_mapped(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tecomp.export.program_export.EMBEDDED_BYTES", 1000)
    perceptron().export(tmp_path / "out", formats=[".so", ".h", ".o"])
    code = library(tmp_path / "out")
    a, out = RANDOM.standard_normal((32, 64)).astype("f4"), np.zeros((32, 96), "f4")
    wrong = tmp_path / "wrong"
    content = (tmp_path / "out" / "mlp.weights").read_bytes()

    header = (tmp_path / "out" / "mlp.h").read_text(encoding="utf-8")
    assert "int mlp_open(const char *path);" in header
    assert "definitions of" not in header
    assert len(content) > WEIGHTS.nbytes > 1000
    assert (tmp_path / "out" / "mlp.o").stat().st_size < WEIGHTS.nbytes + 20_000
    assert code.mlp(*pointers(a, out)) == NOT_OPEN
    assert code.mlp_error_text(NOT_OPEN) == b"the constants are not loaded; call mlp_open first"
    for damaged in (content[:-1], content[:-1] + b"?", b""):
        wrong.write_bytes(damaged)
        assert code.mlp_open(str(wrong).encode()) == INVALID_FILE
    for path in (None, str(tmp_path / "missing").encode(), str(tmp_path).encode()):
        assert code.mlp_open(path) == INVALID_FILE
    for _ in range(2):
        assert code.mlp_open(str(tmp_path / "out" / "mlp.weights").encode()) == 0
    assert code.mlp(*pointers(a, out)) == 0
    np.testing.assert_allclose(out, expected(a), rtol=1e-4, atol=1e-6)


def test_a_program_is_compiled_once_for_all_formats(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    calls: list[object] = []

    def counted(*arguments: Any, **options: Any) -> bytes:
        calls.append(arguments)
        return object_code(*arguments, **options)

    monkeypatch.setattr("tecomp.export.kernel_export.object_code", counted)
    perceptron().export(tmp_path / "out", formats=[".o", ".a", ".h"])

    assert len(calls) == 1
    assert len([*(tmp_path / "out").iterdir()]) == 3


def test_a_c_program_calls_a_program_and_a_kernel(run_c: Run, tmp_path: Path) -> None:
    perceptron().export(tmp_path / "out")
    X = te.placeholder((32, 96), name="X")
    k = te.reduce_axis((0, 96), name="k")
    Y = te.compute((32,), lambda i: te.sum(X[i, k], axis=k), name="Y")
    kernel = tecomp.build(Y, [X, Y], name="total")
    for suffix in (".o", ".h"):
        kernel.export(tmp_path / f"total{suffix}")
    source = """
#include "out/mlp.h"
#include "total.h"
#include <math.h>
static float a[32 * 64], out[32 * 96], sums[32];
int main(void) {
  for (int i = 0; i < 32 * 64; i++) a[i] = (float)(i % 13) / 13;
  if (mlp(a, out) || total(out, sums)) return 1;
  for (int i = 0; i < 32; i++) if (fabs(sums[i] - 1.0) > 1e-5) return 2;
  return mlp(a, 0) != 2 * 256 + MLP_NULL_POINTER;
}
"""

    assert run_c(source, tmp_path / "out" / "mlp.a", tmp_path / "total.o") == ""


def test_programs_for_aarch64(tmp_path: Path) -> None:
    perceptron().export(tmp_path, triple="aarch64-linux-gnu", formats=[".s", ".o"])
    image = (tmp_path / "mlp.o").read_bytes()

    assert image[18:20] == b"\xb7\0"
    assert "mlp" in elf_symbols(image).defined
    assert ".4s" in (tmp_path / "mlp.s").read_text(encoding="utf-8")


A = te.placeholder((8,), name="A")


def plus(target: str = "cpu") -> Any:
    return tecomp.compile(te.compute((8,), lambda i: A[i] + 1, name="B"), [A], target, name="plus")


def python_function(folder: Path) -> None:
    tecomp.register_func("export.host", lambda x, y: None, override=True)
    C = te.extern(
        (8,), [A], lambda ins, outs: te.call_packed("export.host", ins[0], outs[0]),
        dtype="float32", name="C")
    tecomp.compile(C, [A], name="calls").export(folder)


def foreign_folder(folder: Path) -> None:
    folder.mkdir()
    (folder / "other.txt").write_text("keep", encoding="utf-8")
    plus().export(folder)


REJECTED: dict[str, tuple[Callable[[Path], None], Diagnostic]] = {
    "python": (python_function, Diagnostic(
        "external-function", name="calls", functions="export.host")),
    "target": (lambda folder: plus("stick128").export(folder), Diagnostic(
        "unsupported-by-target", kernel="plus", target="stick128")),
    "formats": (lambda folder: plus().export(folder, formats=[".exe"]), Diagnostic(
        "unknown-choice", formats=".exe", suffixes=".o, .a, .so, .h, .ll, .s")),
    "folder": (foreign_folder, Diagnostic("invalid-value", path="out", name="plus")),
}


@pytest.mark.parametrize("case", REJECTED)
def test_rejected_exports(case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    call, problem = REJECTED[case]
    monkeypatch.chdir(tmp_path)
    with pytest.raises(CallError) as found:
        call(Path("out"))

    assert diagnostic(found.value) == problem
    assert os.listdir(tmp_path) == (["out"] if case == "folder" else [])


def test_an_exported_program_is_replaced_and_a_failure_keeps_the_old_one(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    folder = tmp_path / "out"
    plus().export(folder, formats=[".o", ".ll"])
    plus().export(folder, formats=[".o"])
    assert os.listdir(folder) == ["plus.o"]

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CallError, match="No space left"):
        plus().export(folder, formats=[".h"])
    assert os.listdir(folder) == ["plus.o"]
    assert os.listdir(tmp_path) == ["out"]


@pytest.mark.exhaustive
def test_a_cached_program_is_exported(tmp_path: Path) -> None:
    code = (
        "import sys, tecomp; from tecomp import te\n"
        "A = te.placeholder((8,), name='A')\n"
        "B = te.compute((8,), lambda i: A[i] + 1, name='B')\n"
        "tecomp.compile(B, [A], name='plus').export(sys.argv[1], formats=['.o'])\n"
    )
    environment = {**os.environ, "TECOMP_CACHE": "on", "TECOMP_CACHE_DIR": str(tmp_path / "cache")}
    images = []
    for name in ("first", "second"):
        command = [sys.executable, "-c", code, str(tmp_path / name)]
        subprocess.run(command, check=True, env=environment)
        images.append((tmp_path / name / "plus.o").read_bytes())

    assert images[0] == images[1]
