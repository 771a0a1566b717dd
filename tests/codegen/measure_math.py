"""Print the tables of docs/vector-math.md: errors and times of math functions on this machine."""

from __future__ import annotations

import argparse
import ctypes
import ctypes.util
import re
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from unittest.mock import patch

import numpy as np

from tecomp.codegen import FloatVector, FunctionBuilder, Kernel, call_libm_per_lane, register_type
from tecomp.codegen.llvm import jit
from tecomp.ir import DType, parse
from tests.strategies.functions import BOUNDS, Array, arguments, compiled, exact, terms, ulps

SAMPLES = 1 << 20
NUMBERS = 1 << 20
CHUNK = 2048  # 16 KiB with the results, which fits the L1 data cache
ROUNDS = 25
GELU = "X * broadcast(float32(0.5), L) * (broadcast(float32(1.0), L) + erf(X * broadcast(float32(0.70710677), L)))"
EXPRESSIONS = {
    **{name: f"{name}(X)" for name in ("exp", "tanh", "erf", "sigmoid", "log", "sin", "cos")},
    "GELU": GELU,
    "pow": "pow(abs(X), broadcast(float32(2.5), L))".replace("abs", "fabs"),
}
NUMPY: dict[str, Callable[[Array, Array], object]] = {
    "exp": lambda x, o: np.exp(x, out=o),
    "tanh": lambda x, o: np.tanh(x, out=o),
    "sigmoid": lambda x, o: np.divide(1, 1 + np.exp(-x), out=o),
    "log": lambda x, o: np.log(x, out=o),
    "sin": lambda x, o: np.sin(x, out=o),
    "cos": lambda x, o: np.cos(x, out=o),
    "pow": lambda x, o: np.power(np.abs(x), x.dtype.type(2.5), out=o),
}


def worst_error(name: str, rounds: int, dtype: str) -> float:
    kernel = compiled(name, SAMPLES, 16, dtype=dtype)
    worst = 0.0
    for seed in range(rounds):
        operands = arguments(name, SAMPLES, seed, dtype)
        result = np.empty(SAMPLES, dtype)
        kernel(*operands, result)
        error, odd = ulps(result, exact(name, operands), terms(name, operands))
        worst = float(max(worst, error.max(), np.inf if odd.any() else 0.0))
    return worst


@contextmanager
def without_fused_operations() -> Iterator[None]:
    """Generate code for a CPU with 128-bit vectors and without fused multiply-add."""
    here = jit.host()
    features = re.sub(r"\+(fma4?|avx2|avx512\w+)\b", r"-\1", here.features)
    with patch.object(jit, "host", lambda: jit.LlvmTarget(here.triple, "", features)):
        yield


def print_errors(rounds: int, dtype: str) -> None:
    print("| function | with FMA | without | bound of the tests |\n| --- | --- | --- | --- |")
    for name, bound in BOUNDS[dtype].items():
        fused = worst_error(name, rounds, dtype)
        with without_fused_operations():
            plain = worst_error(name, rounds, dtype)
        print(f"| {name} | {fused:.2f} | {plain:.2f} | {bound} |", flush=True)


def kernel_of(expression: str, lanes: int, dtype: str) -> Kernel:
    """Build a kernel that evaluates the expression on one chunk of numbers repeatedly."""
    place = f"ramp({lanes} * i, 1, {lanes})"
    value = expression.replace("X", f"X[{place}]").replace("L)", f"{lanes})")
    value = value.replace("float32", dtype)
    return Kernel(parse(f'''def f(X: Buffer("{dtype}", ({CHUNK},)), O: Buffer("{dtype}", ({CHUNK},))):
    for again in range({NUMBERS // CHUNK}):
        for i in range({CHUNK // lanes}):
            O[{place}] = {value}
'''))


def of_libmvec(code: FunctionBuilder, name: str, dtype: DType, args: Sequence[str]) -> str:
    """Call the vector math library of glibc with 256-bit vectors."""
    kind, letter = register_type(dtype), "" if dtype.bits == 64 else "f"
    symbol = f"_ZGVdN{dtype.lanes}{'v' * len(args)}_{name}{letter}"
    return code.call(kind, symbol, [(kind, arg) for arg in args])


def lane_by_lane(code: FunctionBuilder, name: str, dtype: DType, args: Sequence[str]) -> str:
    """Call the C library for each lane; `sigmoid`, which it lacks, calls `exp`."""
    scalar = register_type(dtype.scalar)
    values = [FloatVector(code, arg, scalar, dtype.lanes) for arg in args]
    if name == "sigmoid":
        return (1.0 / (call_libm_per_lane("exp", -values[0]) + 1.0)).operand
    return call_libm_per_lane(name, *values).operand


def contenders(
    name: str, with_libmvec: bool, dtype: str
) -> dict[str, Callable[[Array, Array], object]]:
    expression, width = EXPRESSIONS[name], 512 // DType(dtype).bits
    result: dict[str, Callable[[Array, Array], object]] = {
        "tecomp": kernel_of(expression, width, dtype)
    }
    with patch("tecomp.codegen.ops.arithmetic.emit_formula", lane_by_lane):
        result["lane by lane"] = kernel_of(expression, width, dtype)
    if with_libmvec and name != "sigmoid":
        with patch("tecomp.codegen.ops.arithmetic.emit_formula", of_libmvec):
            result["libmvec"] = kernel_of(expression, width // 2, dtype)
    if name in NUMPY:
        function = NUMPY[name]

        def again(x: Array, o: Array) -> None:
            for _ in range(NUMBERS // CHUNK):
                function(x, o)

        result["NumPy"] = again
    return result


def print_times(dtype: str) -> None:
    found = ctypes.util.find_library("mvec")
    if found:
        ctypes.CDLL(found, ctypes.RTLD_GLOBAL)
    columns = ["tecomp", "lane by lane", "libmvec", "NumPy"]
    print(f"| ns per number | {' | '.join(columns)} |\n| --- |{' --- |' * len(columns)}")
    random = np.random.default_rng(0)
    for name in EXPRESSIONS:
        x = (random.standard_normal(CHUNK) * 2).astype(dtype)
        x = np.abs(x) if name == "log" else x
        result = np.empty_like(x)
        best: dict[str, float] = {}
        created = contenders(name, found is not None, dtype)
        for _ in range(ROUNDS):
            for column, function in created.items():
                start = time.perf_counter()
                function(x, result)
                spent = time.perf_counter() - start
                best[column] = min(best.get(column, np.inf), spent)
        cells = [f"{best[c] / NUMBERS * 1e9:.2f}" if c in best else "" for c in columns]
        print(f"| {name} | {' | '.join(cells)} |", flush=True)


def main() -> None:
    """Measure errors or times, as the command line selects."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("what", choices=["errors", "times"])
    parser.add_argument("--rounds", type=int, default=16, help="of a million arguments each")
    parser.add_argument("--dtype", choices=list(BOUNDS), default="float32")
    chosen = parser.parse_args()
    if chosen.what == "errors":
        print_errors(chosen.rounds, chosen.dtype)
    else:
        print_times(chosen.dtype)


if __name__ == "__main__":
    main()
