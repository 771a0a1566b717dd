"""Error codes of exported functions, and exports that are rejected."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.driver import ScheduledKernel
from tecomp.errors import CallError
from tests.messages import Diagnostic, diagnostic

NULL_POINTER, MISALIGNED, SIZE, OVERLAP, MEMORY, INDEX, PROCESSOR, THREADS = range(1, 9)
ARM = "aarch64-linux-gnu"
A = te.placeholder((8,), name="A")
B = te.compute((8,), lambda i: A[i] + 1.0, name="B")


def plain(name: str = "plain", target: str = "cpu") -> ScheduledKernel:
    return tecomp.build(B, [A, B], target=target, name=name)


def library(kernel: ScheduledKernel, folder: Path, **options: Any) -> Callable[..., tuple[int, str]]:
    """Return a function that calls an exported kernel and describes its error code."""
    path = folder / f"{kernel.name}.so"
    kernel.export(path, **options)
    code = ctypes.CDLL(str(path))
    function, text = getattr(code, kernel.name), getattr(code, f"{kernel.name}_error_text")
    text.restype = ctypes.c_char_p

    def call(*arguments: Any) -> tuple[int, str]:
        status = function(*[ctypes.c_int64(x) for x in arguments])
        return status, text(status).decode()

    return call


@pytest.mark.usefixtures("cc")
def test_sizes_out_of_their_bounds(tmp_path: Path) -> None:
    n = te.size_var("n", minimum=8, maximum=64, multiple=8)
    X = te.placeholder((n, 4), name="X")
    Y = te.compute(X.shape, lambda i, j: X[i, j] + 1.0, name="Y")
    call = library(tecomp.build(Y, [X, Y], name="bounded"), tmp_path)
    x, y = np.ones((64, 4), "f4"), np.zeros((64, 4), "f4")
    places = x.ctypes.data, y.ctypes.data

    for size in (0, 4, 12, 72, -8):
        assert call(*places, size) == (
            SIZE + 3 * 256, "argument 3 (n) must be >= 8 and <= 64 and a multiple of 8"), size
    assert (y == 0).all()
    assert call(*places, 16) == (0, "no error")
    assert (y[:16] == 2).all()
    assert (y[16:] == 0).all()


@pytest.mark.usefixtures("cc")
def test_sizes_of_arrays_that_exceed_the_address_space(tmp_path: Path) -> None:
    n, m = te.var("n"), te.var("m")
    X = te.placeholder((n, m), name="X")
    Y = te.compute(X.shape, lambda i, j: X[i, j] + 1.0, name="Y")
    call = library(tecomp.build(Y, [X, Y], name="large"), tmp_path)
    problem = SIZE + 256, "the sizes give argument 1 (X) an invalid extent"

    assert call(64, 128, 1 << 32, 1 << 32) == problem
    assert call(64, 128, -1, 5) == problem
    assert call(0, 0, 0, 5) == (0, "no error")  # empty arrays may be null pointers


@pytest.mark.usefixtures("cc")
def test_arrays_that_overlap_or_are_misaligned(tmp_path: Path) -> None:
    call = library(plain(), tmp_path)
    x = np.ones(17, "f4")
    start = x.ctypes.data

    assert call(start, start + 32) == (0, "no error")
    assert call(start, start + 28) == (
        OVERLAP + 2 * 256, "argument 2 (B) is written and overlaps another argument")
    assert call(start + 2, start + 32) == (
        MISALIGNED + 256, "argument 1 (A) is not aligned to 4 bytes")
    assert call(start, 0) == (NULL_POINTER + 2 * 256, "argument 2 (B) is a null pointer")


@pytest.mark.usefixtures("cc")
def test_indices_out_of_bounds_and_missing_memory(tmp_path: Path) -> None:
    X, J = te.placeholder((8,), name="X"), te.placeholder((4,), "int64", name="J")
    Y = te.compute((4,), lambda i: X[J[i]], name="Y")
    call = library(tecomp.build(Y, [X, J, Y], name="gather"), tmp_path)
    x, i, y = np.arange(8, dtype="f4"), np.array([1, 7, 0, 9]), np.zeros(4, "f4")
    status, text = call(x.ctypes.data, i.ctypes.data, y.ctypes.data)

    assert status & 255 == INDEX
    assert text.startswith("an index is out of bounds: ")

    n = te.var("n", "int64")
    Z = te.placeholder((1,), name="Z")
    T = te.compute((n,), lambda i: Z[0] + i.astype("float32"), name="T")
    k = te.reduce_axis((0, n), name="k")
    S = te.compute((1,), lambda i: te.sum(T[k], axis=k), name="S")
    kernel = tecomp.build(te.create_schedule(S), [Z, S, n], name="huge")
    call = library(kernel, tmp_path)

    assert call(x.ctypes.data, y.ctypes.data, 1 << 50) == (
        MEMORY + 256, "out of memory: T")
    assert call(x.ctypes.data, y.ctypes.data, 5) == (0, "no error")
    assert y[0] == 10


@pytest.mark.usefixtures("cc")
def test_levels_that_the_processor_lacks(tmp_path: Path) -> None:
    x = np.ones(16, "f4")
    levels = ["x86-64-v2", "x86-64-v4", "x86-64-v3", "x86-64"]
    assert library(plain("any"), tmp_path, cpu=levels)(x.ctypes.data, x.ctypes.data + 32)[0] == 0
    flags = Path("/proc/cpuinfo").read_text(encoding="ascii", errors="ignore")
    found = library(plain("four"), tmp_path, cpu="x86-64-v4")(x.ctypes.data, x.ctypes.data + 32)

    assert found[0] == (0 if "avx512vl" in flags else PROCESSOR)


def python_function() -> None:
    tecomp.register_func("export.twice", lambda x, y: None, override=True)
    C = te.extern(
        (8,), [A], lambda ins, outs: te.call_packed("export.twice", ins[0], outs[0]),
        dtype="float32", name="C")
    tecomp.build(te.create_schedule(C.op), [A, C], name="calls").export("calls.o")


HERE = "x86_64-unknown-linux-gnu"
LEVELS = "x86-64, x86-64-v2, x86-64-v3, x86-64-v4"
MAC = "arm64-apple-darwin23.0.0"
REJECTED: dict[str, tuple[Callable[[], None], Diagnostic]] = {
    "suffix": (
        lambda: plain().export("plain.xyz"),
        Diagnostic("unknown-choice", path="plain.xyz", suffixes=".o, .a, .so, .h, .ll, .s")),
    "name": (
        lambda: plain("main").export("main.o", name="double"),
        Diagnostic("invalid-value", name="double")),
    "main": (lambda: plain("main").export("main.o"), Diagnostic("invalid-value", name="main")),
    "C library": (lambda: plain("free").export("free.o"), Diagnostic("invalid-value", name="free")),
    "target": (
        lambda: plain("sticks", "stick128").export("sticks.o"),
        Diagnostic("unsupported-by-target", kernel="sticks", target="stick128")),
    "python": (
        python_function,
        Diagnostic("external-function", name="calls", functions="export.twice")),
    "cpu": (
        lambda: plain().export("plain.o", cpu="pentium9", triple=HERE),
        Diagnostic("unknown-choice", cpu="pentium9", triple=HERE, examples="x86-64-v3 or znver4")),
    "triple": (
        lambda: plain().export("plain.o", triple="z81-none"),
        Diagnostic("unknown-choice", cpu="generic", triple="z81-none",
                   examples="x86-64-v3 or znver4")),
    "levels": (
        lambda: plain().export("plain.o", cpu=["x86-64-v2", "znver4"], triple=HERE),
        Diagnostic("invalid-value", levels=LEVELS, cpus=["x86-64-v2", "znver4"], triple=HERE)),
    "native": (
        lambda: plain().export("plain.o", cpu="native", triple=ARM),
        Diagnostic("conflicting-options", triple=ARM)),
    "linker": (
        lambda: plain().export("plain.so", triple="riscv64-unknown-linux-gnu", cpu="generic-rv64"),
        Diagnostic("missing-library", triple="riscv64-unknown-linux-gnu",
                   compiler="the package gcc-riscv64-linux-gnu")),
    "archive": (
        lambda: plain().export("plain.a", triple=MAC),
        Diagnostic("unsupported-by-target", triple=MAC, path="plain.a")),
    "folder": (
        lambda: plain().export("missing/plain.o"),
        Diagnostic("invalid-value", path="missing/plain.o", reason="No such file or directory")),
}


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("case", REJECTED)
def test_rejected_exports(
    case: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    call, expected = REJECTED[case]
    monkeypatch.chdir(tmp_path)
    monkeypatch.setattr("tecomp.export.artifacts.find_spec", lambda name: None)
    with pytest.raises(CallError) as found:
        call()

    assert diagnostic(found.value) == expected
    assert os.listdir(tmp_path) == []


@pytest.mark.usefixtures("cc")
def test_a_failing_linker_is_reported(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    compiler = tmp_path / "cc"
    compiler.write_text("#!/bin/sh\necho broken >&2\nexit 1\n", encoding="utf-8")
    compiler.chmod(0o755)
    monkeypatch.setenv("PATH", str(tmp_path))
    with pytest.raises(CallError) as found:
        plain().export(tmp_path / "plain.so")

    assert found.value.code == "TE0002"
    assert "broken" in found.value.message
    assert os.listdir(tmp_path) == ["cc"]


def test_a_failed_write_keeps_the_old_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    path = tmp_path / "plain.o"
    path.write_bytes(b"old")

    def fail(descriptor: int) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "fsync", fail)
    with pytest.raises(CallError, match="No space left"):
        plain().export(path)

    assert path.read_bytes() == b"old"
    assert os.listdir(tmp_path) == ["plain.o"]
