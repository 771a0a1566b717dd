"""`TECOMP_CPU` limits generated code to a level of x86-64."""

from __future__ import annotations

import os
import platform
import subprocess
import sys
from collections.abc import Iterator

import pytest

from tecomp.errors import TargetError
from tecomp.machine import host
from tests.messages import Diagnostic, diagnostic

SUM_OF_FLOATS = """
import numpy as np
import tecomp
from tecomp import te

A = te.placeholder((1000,), name="A")
B = te.compute((1000,), lambda i: A[i] * 2.0 + 1.0, name="B")
kernel = tecomp.build(B, [A, B])
a, b = np.arange(1000, dtype="float32"), np.empty(1000, "float32")
kernel(a, b)
np.testing.assert_array_equal(b, 2 * a + 1)
print(tecomp.Target.load("cpu").core.vector_bytes, "%zmm" in kernel.source("asm"),
      "%ymm" in kernel.source("asm"))
"""


@pytest.fixture(autouse=True)
def _levels_are_read_again() -> Iterator[None]:
    host.cpu_level.cache_clear()
    yield
    host.cpu_level.cache_clear()


@pytest.mark.exhaustive
@pytest.mark.skipif(platform.machine() != "x86_64", reason="levels of x86-64")
@pytest.mark.parametrize(("level", "expected"), [
    ("x86-64", "16 False False"), ("x86-64-v2", "16 False False"), ("x86-64-v3", "32 False True"),
])
def test_code_uses_the_vectors_of_the_level(level: str, expected: str) -> None:
    if level == "x86-64-v3" and "avx2" not in host._host_flags():
        pytest.skip("the host has no AVX2")
    environment = {**os.environ, host.CPU_VARIABLE: level, "TECOMP_CACHE": "off"}
    done = subprocess.run([sys.executable, "-c", SUM_OF_FLOATS], env=environment, text=True,
                          capture_output=True, check=True)

    assert done.stdout.split() == expected.split()


@pytest.mark.parametrize("level", ["", "host"])
def test_the_default_is_the_host(level: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host.CPU_VARIABLE, level)

    assert host.cpu_level() is None


def test_unknown_levels_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host.CPU_VARIABLE, "avx9")

    with pytest.raises(TargetError) as caught:
        host.cpu_level()
    assert diagnostic(caught.value) == (
        Diagnostic(
            "unknown-choice", cpu_variable="TECOMP_CPU", level="avx9",
            levels="x86-64, x86-64-v2, x86-64-v3, x86-64-v4",
        )
    )


def test_levels_above_the_host_are_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv(host.CPU_VARIABLE, "x86-64-v4")
    monkeypatch.setattr(host, "_host_flags", lambda: host._LEVELS["x86-64-v4"] - {"avx512bw"})
    monkeypatch.setattr(platform, "machine", lambda: "x86_64")

    with pytest.raises(TargetError) as caught:
        host.cpu_level()
    assert diagnostic(caught.value) == (
        Diagnostic("unsupported-by-target", cpu_variable="TECOMP_CPU", level="x86-64-v4", missing="avx512bw")
    )
