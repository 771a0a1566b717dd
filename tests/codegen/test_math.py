"""Math functions: error bounds, special values, and equal results for every lane count."""

from __future__ import annotations

import re
from typing import Any

import numpy as np
import pytest
from scipy import optimize, special

from tecomp.codegen import emit_assembly, has_fma
from tecomp.codegen.llvm import jit
from tecomp.ir import DType
from tests.strategies.functions import (
    BOUNDS,
    REFLECTED,
    SLACK,
    Array,
    arguments,
    compiled,
    exact,
    terms,
    ulps,
)

NAMES = sorted(BOUNDS["float32"])
COUNTS = {"float32": 1 << 18, "float64": 1 << 16}  # long doubles are slow


def run(name: str, operands: list[Array], lanes: int, **options: Any) -> Array:
    count, dtype = operands[0].size, operands[0].dtype
    result = np.empty(count, dtype)
    compiled(name, count, lanes, dtype=dtype.name, **options)(*operands, result)
    return result


def check_errors(name: str, dtype: str) -> None:
    count = COUNTS[dtype] // (8 if name in REFLECTED else 1)  # mpmath is slow
    operands = arguments(name, count, sum(map(ord, name)), dtype)
    wanted = exact(name, operands)

    error, odd = ulps(run(name, operands, 16), wanted, terms(name, operands))

    strange = [operand[odd][:5] for operand in operands]
    assert not odd.any(), f"{name} of {strange}: {wanted[odd][:5]} is right"
    worst = int(np.argmax(error))
    bound = BOUNDS[dtype][name] + SLACK[dtype]
    assert error[worst] <= bound, f"{name} of {[operand[worst] for operand in operands]}"


@pytest.mark.exhaustive(keep=6)
@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_bounded(name: str, dtype: str) -> None:
    check_errors(name, dtype)


@pytest.mark.parametrize("name", ["digamma", "lgamma"])
def test_functions_of_gamma_are_accurate_in_float32_near_zeros(name: str) -> None:
    """Each interval between poles has zeros, where the terms of the reflection cancel."""
    function = {"digamma": special.digamma, "lgamma": special.gammaln}[name]
    x = np.concatenate([np.linspace(-k - 1, -k, 1002)[1:-1] for k in range(2, 12)])
    signs = np.sign(function(x))
    crossings = x[:-1][(signs[:-1] != signs[1:]) & (np.floor(x[:-1]) == np.floor(x[1:]))]
    zeros = [optimize.brentq(function, zero, zero + x[1] - x[0]) for zero in crossings]
    patterns = np.array(zeros, "float32").view("int32")[:, None] + np.arange(-32, 32, dtype="int32")
    near = patterns.view("float32").ravel()

    error, odd = ulps(run(name, [near], 16), exact(name, [near]))

    assert len(zeros) >= 9
    assert not odd.any()
    assert error.max() <= BOUNDS["float32"][name]


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_errors_are_bounded_without_fused_operations(
    name: str, dtype: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    here = jit.host()
    features = re.sub(r"\+(fma4?|avx2|avx512\w+)\b", r"-\1", here.features)
    monkeypatch.setattr(jit, "host", lambda: jit.LlvmTarget(here.triple, "", features))

    check_errors(name, dtype)


@pytest.mark.exhaustive(keep=3)
@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("name", NAMES)
def test_lanes_are_independent(name: str, dtype: str) -> None:
    """Vector tails and scalar loops give bitwise equal results."""
    operands = arguments(name, 3 * 7 * 16 * 17, 5, dtype)

    single = run(name, operands, 1)

    for lanes in (2, 3, 7, 8, 16, 17, 48):
        np.testing.assert_array_equal(run(name, operands, lanes), single, f"{lanes} lanes")


@pytest.mark.exhaustive(keep=15)
@pytest.mark.parametrize("name", NAMES)
@pytest.mark.parametrize("options", [{"fast_math": True}, {"fp_contract": False}], ids=str)
def test_options_do_not_change_functions(name: str, options: dict[str, bool]) -> None:
    operands = arguments(name, 4096, seed=6)

    np.testing.assert_array_equal(run(name, operands, 8, **options), run(name, operands, 8))


MACHINES = {
    "x86-64-v2": ("x86_64-unknown-linux-gnu", "xmm"),
    "haswell": ("x86_64-unknown-linux-gnu", "ymm"),
    "znver4": ("x86_64-unknown-linux-gnu", "zmm"),
    "skylake-avx512": ("x86_64-unknown-linux-gnu", "zmm"),
    "neoverse-v1": ("aarch64-linux-gnu", r"v\d+\.4s"),
}


FAR = {
    "float32": {"fmod": {"fmod"}},
    "float64": {"sin": {"sin"}, "cos": {"cos"}, "tan": {"tan"}, "fmod": {"fmod"}},
}
"""Functions of the C library that are called for angles above a million and long quotients."""

FUSED = {"float32": {"fma", "fmaf"}, "float64": {"fma"}}
"""Functions of the C library that exact functions call on CPUs without fused multiply-add."""


@pytest.mark.exhaustive(keep=8)
@pytest.mark.parametrize("dtype", COUNTS)
@pytest.mark.parametrize("cpu", MACHINES)
@pytest.mark.parametrize("name", NAMES)
def test_functions_stay_vectors_on_every_machine(name: str, cpu: str, dtype: str) -> None:
    triple, register = MACHINES[cpu]
    if dtype == "float64":
        register = register.replace("4s", "2d")

    text = emit_assembly(compiled(name, 64, 16, dtype=dtype).func, triple=triple, cpu=cpu)

    called = re.findall(r"^\s+(?:callq|jmp|bl?)\s+(?!\.?L)([\w.]+)", text, re.M)
    # A function of the C library would be called for each lane.
    far = FAR[dtype].get(name, set())
    fused = FUSED[dtype] if name == "fmod" and cpu == "x86-64-v2" else set()
    assert {target for target in called if not target.startswith(("f.", "tecomp."))} == far | fused
    assert re.search(register, text)


@pytest.mark.parametrize("cpu", MACHINES)
def test_machines_with_fused_multiply_add(cpu: str) -> None:
    triple, _ = MACHINES[cpu]

    assert has_fma(jit.LlvmTarget(triple, cpu)) == (cpu != "x86-64-v2")


@pytest.mark.parametrize("dtype", COUNTS)
def test_an_odd_power_does_not_affect_other_lanes(dtype: str) -> None:
    """The result that a vector computes out of line for one lane does not replace other lanes."""
    random = np.random.default_rng(0)
    x, y = random.uniform(0.1, 10, 4096).astype(dtype), random.uniform(-9, 9, 4096).astype(dtype)
    alone = run("pow", [x, y], 16)
    x[::16] = np.resize(np.array([-2, 0, np.inf, np.nan, 1e-40], dtype), 256)
    beside = run("pow", [x, y], 16)

    for lane in range(1, 16):
        np.testing.assert_array_equal(beside[lane::16], alone[lane::16])


@pytest.mark.parametrize("kind", ["float16", "bfloat16"])
@pytest.mark.parametrize("name", ["exp", "tanh", "erf", "sin", "pow"])
def test_narrow_types_are_computed_in_float32(name: str, kind: str) -> None:
    narrow = DType(kind).numpy
    with np.errstate(all="ignore"):
        operands = [values.astype(narrow) for values in arguments(name, 4096, seed=7)]
    wide = run(name, [values.astype(np.float32) for values in operands], 8)
    result = np.empty(4096, narrow)

    compiled(name, 4096, 8, dtype=kind)(*operands, result)

    with np.errstate(all="ignore"):
        rounded = wide.astype(narrow)
    np.testing.assert_array_equal(result.astype(np.float32), rounded.astype(np.float32))
