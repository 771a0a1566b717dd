"""Instruction patterns of performance-critical idioms, for pinned CPUs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable
from typing import Any

import pytest

import tecomp
from tecomp import te
from tecomp.codegen import emit_assembly
from tecomp.schedules import (
    activations,
    argreduce,
    conv2d,
    cumsum,
    elementwise,
    matmul,
    reduce,
    transpose,
)

X86 = "x86_64-unknown-linux-gnu"
CPU = tecomp.Target.load("cpu")
CORES = {
    "haswell": tecomp.Core(1, 32, 16, (32 * 1024, 256 * 1024, 64 * 1024 * 1024)),
    "znver3": tecomp.Core(1, 32, 16, (32 * 1024, 512 * 1024, 64 * 1024 * 1024)),
    "skylake-avx512": tecomp.Core(1, 64, 32, (32 * 1024, 1024 * 1024, 64 * 1024 * 1024)),
    "znver4": tecomp.Core(1, 64, 32, (32 * 1024, 1024 * 1024, 64 * 1024 * 1024)),
}
REGISTER = {32: "%ymm", 64: "%zmm"}


def machine(cpu: str) -> tecomp.Target:
    return tecomp.Target(cpu, "a pinned processor", CPU.memories, CORES[cpu])


def code_of(s: te.Schedule, tensors: list[te.Tensor], cpu: str) -> str:
    return emit_assembly(tecomp.lower(s, tensors), triple=X86, cpu=cpu)


def loop_with(text: str, word: str) -> list[str]:
    """Return the instructions of the innermost loop that has most instructions `word`."""
    loops = re.findall(r"^(\.LBB\d+_\d+):.*\n((?:\s.*\n)*?)\s+j\w+\s+\1$", text, re.M)
    body = max((body for _, body in loops), key=lambda lines: lines.count(word))
    assert word in body
    lines = [line.strip() for line in body.splitlines()]
    return [line for line in lines if line and not line.startswith((".", "#"))]


def count(lines: list[str], pattern: str) -> int:
    return sum(bool(re.match(pattern, line)) for line in lines)


def elementwise_loop(cpu: str, function: Callable[[te.Expr], te.Expr], word: str, n: int) -> list[str]:
    X = te.placeholder((n,), name="X")
    Y = elementwise.define(function, X)
    return loop_with(code_of(elementwise.schedule(Y, machine(cpu)), [X, Y], cpu), word)


@pytest.mark.parametrize("cpu", CORES)
def test_a_sum_of_arrays_takes_two_vectors_a_round(cpu: str) -> None:
    lines = elementwise_loop(cpu, lambda x: x + x, "vaddps", 8192)

    assert count(lines, "vaddps") == 2
    assert count(lines, rf"vmovups\s+{REGISTER[CORES[cpu].vector_bytes]}") == 2
    # Two loads, adds and stores, and the loop control.
    assert len(lines) <= 10


@pytest.mark.parametrize("cpu", CORES)
def test_exp_is_inlined_into_its_loop(cpu: str) -> None:
    """The inlined exp uses two-part range reduction by ln 2, 5 polynomial terms and two scales."""
    lines = elementwise_loop(cpu, te.exp, "vfmadd", 8192)

    assert count(lines, "call") == 0
    assert count(lines, "vf(n)?m(add|sub)") == 1 + 2 + 4 + 2
    assert count(lines, "vdivps|vgather|vpextr|vextract") == 0


@pytest.mark.parametrize("cpu", CORES)
def test_gelu_is_a_quotient_of_polynomials(cpu: str) -> None:
    """A vectorized gelu is a quotient of two clamped polynomials of 6 terms."""
    lines = elementwise_loop(cpu, activations.gelu, "vfmadd", 8192)

    assert count(lines, "call|vgather|vcmp|vblend") == 0
    assert count(lines, "vf(n)?m(add|sub)") == 10
    assert count(lines, "vdivps") == 1
    assert count(lines, "vmulps") == 3
    assert count(lines, "vminps|vmaxps") == 4


def test_functions_of_functions_take_two_vectors_a_round() -> None:
    """Dependent functions are unrolled by two vectors, which hides their latency."""
    A, n = te.placeholder((8192,), "float64", name="A"), 8192
    first = te.compute((n,), lambda i: te.exp(A[i]), name="first")
    waits = te.compute((n,), lambda i: te.tanh(first[i]), name="waits")
    beside = te.compute((n,), lambda i: te.tanh(A[i]) + first[i], name="beside")
    found = []
    for result in (waits, beside):
        code = code_of(elementwise.schedule(result, machine("znver4")), [A, result], "znver4")
        found.append(count(loop_with(code, "vfmadd"), "vdivpd"))

    assert found == [2, 1]


@pytest.mark.parametrize("function", [te.log1p, te.atanh, te.tanh])
def test_constants_of_functions_stay_in_registers(function: Callable[[te.Expr], te.Expr]) -> None:
    """Function constants stay in registers: two vectors at a time would spill."""
    X = te.placeholder((te.size_var("n"),), "float64", name="X")
    Y = elementwise.define(function, X)
    text = code_of(elementwise.schedule(Y, machine("znver4")), [X, Y], "znver4")
    lines = loop_with(text, "vfmadd")

    assert not [line for line in lines if "zmm" in line and "(%rsp" in line]


@pytest.mark.parametrize("cpu", CORES)
def test_a_tail_of_a_symbolic_size_is_masked(cpu: str) -> None:
    """The tail of a symbolic size uses masked loads and stores, and no scalar loop."""
    X = te.placeholder((te.var("n"),), name="X")
    Y = elementwise.define(lambda x: x + x, X)
    text = code_of(elementwise.schedule(Y, machine(cpu)), [X, Y], cpu)

    masked = r"vmaskmovps" if CORES[cpu].vector_bytes == 32 else r"vmovups\s.*\{%k\d\}"
    # Two input and two output vectors at the end of the last chunk.
    assert len(re.findall(masked, text)) == 4
    assert len(re.findall(r"vpcmpgt[bwd]\s", text)) == 2
    assert not re.search(r"vaddss|vmovss", text)


@pytest.mark.parametrize("cpu", CORES)
def test_a_tail_of_a_known_size_is_a_shorter_vector(cpu: str) -> None:
    X = te.placeholder((8195,), name="X")
    Y = elementwise.define(lambda x: x + x, X)
    text = code_of(elementwise.schedule(Y, machine(cpu)), [X, Y], cpu)

    # One masked load and one masked store are used where masking is as fast as plain access.
    assert not re.search(r"vmaskmov|vaddss|vmovss", text)
    assert len(re.findall(r"\{%k\d\}", text)) == (2 if CORES[cpu].vector_bytes == 64 else 0)
    assert len(re.findall(r"vaddps\s+%xmm", text)) == 1


@pytest.mark.parametrize("cpu", ["haswell", "znver3"])
def test_a_transpose_turns_squares_in_registers(cpu: str) -> None:
    A = te.placeholder((512, 512), name="A")
    B = transpose.define(A)
    text = code_of(transpose.schedule(B, machine(cpu)), [A, B], cpu)
    lines = loop_with(text, "vunpck")
    words = Counter(line.split()[0] for line in lines)

    moves = re.compile("vunpck|vshuf|vperm|vinsert|vblend")
    shuffles = sum(words[word] for word in words if moves.match(word))
    stores = count(lines, r"vmov[au]p[sd]\s+%ymm\d+, .*\(")
    assert shuffles == 3 * stores
    assert count(lines, "vgather|vpextr|vextract|vmovss|vinsertps") == 0


@pytest.mark.parametrize("cpu", CORES)
def test_a_sum_over_all_has_several_accumulators(cpu: str) -> None:
    """A full sum has several accumulators: additions have latency 4, and two start per cycle."""
    A = te.placeholder((1 << 16,), name="A")
    B = reduce.define(A)
    lines = loop_with(code_of(reduce.schedule(B, machine(cpu)), [A, B], cpu), "vaddps")
    sums = [line.rpartition(", ")[2] for line in lines if line.startswith("vaddps")]

    assert len(set(sums)) == len(sums) >= 4
    assert all(total.startswith(REGISTER[CORES[cpu].vector_bytes]) for total in sums)
    assert count(lines, "vaddss") == 0
    assert not [line for line in lines if "(%rsp" in line]


@pytest.mark.parametrize("cpu", CORES)
@pytest.mark.parametrize("transposed", [False, True])
def test_a_transposed_matrix_times_a_vector_reads_rows(cpu: str, transposed: bool) -> None:
    """A transposed matrix-vector product adds eight scaled rows at a time to two sum vectors."""
    A = te.placeholder((512, 640), name="A")
    v = te.placeholder((1, 512) if transposed else (512, 1), name="v")
    C = matmul.define(A, v, transpose_a=True, transpose_b=transposed)
    text = code_of(matmul.schedule(C, machine(cpu)), [A, v, C], cpu)
    lines = loop_with(text, "vfmadd")

    assert count(lines, r"vfmadd\w+ps\s") == 2 * 8
    assert count(lines, "vgather|vinsert|vmovss|vfmadd\\w+ss") == 0


@pytest.mark.parametrize("cpu", ["haswell", "znver3"])
@pytest.mark.parametrize("operator", [argreduce, cumsum])
def test_short_rows_are_transposed(cpu: str, operator: Any) -> None:
    """Reductions of short rows use one lane per row: no gather and no scalar operation."""
    A = te.placeholder((512, 16), name="A")
    B = operator.define(A)
    text = code_of(operator.schedule(B, machine(cpu)), [A, B], cpu)
    word = "vcmp" if operator is argreduce else "vaddps"

    assert re.search(rf"{word}\w*\s.*%ymm", text)
    assert not re.search(r"vgather|vpextr|vinsertps|vaddss|vucomiss|vcmp\w+ss", text)


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("cpu", CORES)
def test_cumulative_sums_of_long_rows_are_transposed_in_registers(cpu: str) -> None:
    """Cumulative sums of long rows transpose 16 vectors in registers and add 15 of them."""
    A = te.placeholder((64, 2048), name="A")
    B = cumsum.define(A)
    text = code_of(cumsum.schedule(B, machine(cpu)), [A, B], cpu)
    lines = loop_with(text, "vunpck")

    assert "vgather" not in text
    assert count(lines, rf"vaddps\s.*{REGISTER[CORES[cpu].vector_bytes]}") == 15
    assert count(lines, "vaddss|vpextr|vmovss") == 0


@pytest.mark.exhaustive(keep=1)
@pytest.mark.parametrize("taps", [1, 3])
@pytest.mark.parametrize("cpu", ["haswell", "znver3"])
def test_filters_with_leading_output_channels_are_packed_in_squares(cpu: str, taps: int) -> None:
    X = te.placeholder((1, 64, 16, 16), name="X")
    W = te.placeholder((64, 64, taps, taps), name="W")
    C = conv2d.define(X, W, padding=taps // 2, layout="NCHW")
    s = conv2d.schedule(C, machine(cpu))

    assert "vgather" not in code_of(s, [X, W, C], cpu)


@pytest.mark.parametrize("cpu", ["haswell", "znver3"])
def test_strided_windows_read_contiguous_vectors(cpu: str) -> None:
    """Strided windows deinterleave even and odd columns once, and not for each tap."""
    X = te.placeholder((1, 8, 64, 64), name="X")
    W = te.placeholder((8, 1, 3, 3), name="W")
    C = conv2d.define(X, W, stride=2, groups=8, layout="NCHW")
    lines = loop_with(code_of(conv2d.schedule(C, machine(cpu)), [X, W, C], cpu), "vfmadd")

    assert count(lines, r"vfmadd\w+ps\s.*%ymm") >= 6
    assert count(lines, "vshuf|vperm|vgather|vmaskmov") == 0


@pytest.mark.parametrize("cpu", CORES)
def test_sums_of_few_columns_are_of_whole_vectors(cpu: str) -> None:
    """Sums of few columns use full vectors: as many rows as lanes fill one vector per column."""
    A = te.placeholder((4096, 3), name="A")
    B = reduce.define(A, 0)
    lines = loop_with(code_of(reduce.schedule(B, machine(cpu)), [A, B], cpu), "vaddps")

    assert count(lines, rf"vaddps\s.*{REGISTER[CORES[cpu].vector_bytes]}") % 3 == 0
    assert count(lines, "vaddss|vmaskmov|vmovss|vshuf|vperm") == 0


@pytest.mark.exhaustive(keep=2)
@pytest.mark.parametrize("cpu", ["skylake-avx512", "znver4"])
@pytest.mark.parametrize("op", ["sum", "mean"])
def test_short_rows_of_any_length_have_one_mask(cpu: str, op: reduce.Operation) -> None:
    """The remainder mask of short rows is hoisted, and lanes are combined by shuffles."""
    m, n = te.size_var("m"), te.size_var("n")
    A = te.placeholder((m, n), "float64", name="A")
    B = reduce.define(A, 1, op)
    s = reduce.schedule(B, machine(cpu), bounds={n: 64})
    text = code_of(s, [A, B], cpu)
    rows = loop_around(text, "vaddpd")

    assert count(rows, "vgather|kortest|vpcmpgt[dq].*zmm") == 0
    # Full vectors of four rows, and their remainders, once for four rows and once for fewer.
    assert len([line for line in rows if re.match(r"vaddpd.*\{%k\d\}", line)]) == 4 + 3


def loop_around(text: str, word: str) -> list[str]:
    """Return the instructions of the parallel loop body from the first `word` to the end."""
    body = text.partition("parallel.1.body:")[2]
    lines = [line.strip() for line in body[body.index(word):].splitlines()]
    return [line for line in lines if line and not line.startswith((".", "#"))]
