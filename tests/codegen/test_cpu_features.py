"""Instruction counts of common idioms on CPUs with 256-bit and 512-bit vectors."""

from __future__ import annotations

import re

import numpy as np
import pytest

from tecomp.codegen import Kernel, LlvmTarget, emit_assembly
from tecomp.codegen.llvm import jit
from tecomp.ir import PrimFunc, parse

CPUS = ("haswell", "znver3", "skylake-avx512", "znver4")


def loop_of(source: str, target: str, value: str) -> PrimFunc:
    return parse(f'''def f(X: Buffer("{source}", (64,)), Y: Buffer("{source}", (64,)), \
O: Buffer("{target}", (64,))):
    for i in range(8):
        with Let(X[ramp(8 * i, 1, 8)]) as x:
            with Let(Y[ramp(8 * i, 1, 8)]) as y:
                O[ramp(8 * i, 1, 8)] = {value}
''')


def instructions(func: PrimFunc, cpu: str, *, fast_math: bool = False) -> list[str]:
    """Return the vector instructions of the loop."""
    text = emit_assembly(
        func, triple="x86_64-unknown-linux-gnu", cpu=cpu, fast_math=fast_math
    )
    loop = re.search(r"^(\.LBB\d+_\d+):.*\n((?:\s.*\n)*?)\s+j\w+\s+\1$", text, re.M)
    assert loop is not None
    return re.findall(r"^\s+(v\w+)", loop.group(2), re.M)


@pytest.mark.parametrize("cpu", CPUS)
def test_maximum_with_a_constant_is_one_instruction(cpu: str) -> None:
    relu = loop_of("float32", "float32", "max(x, broadcast(float32(0.0), 8))")

    assert [word for word in instructions(relu, cpu) if "mov" not in word] == ["vmaxps"]


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("word", ["min", "max"])
def test_an_extreme_in_memory_is_stored_without_a_mask(word: str, cpu: str) -> None:
    func = parse(f'''def f(X: Buffer("float32", (64,)), O: Buffer("float32", (64,))):
    for i in range(8):
        O[ramp(8 * i, 1, 8)] = {word}(O[ramp(8 * i, 1, 8)], X[ramp(8 * i, 1, 8)] + X[ramp(0, 1, 8)])
''')

    loop = instructions(func, cpu)
    assert f"v{word}ps" in loop
    assert "vmaskmovps" not in loop


@pytest.mark.parametrize("cpu", ["haswell", "znver3"])
def test_a_choice_in_memory_is_stored_without_a_mask(cpu: str) -> None:
    old, new = "O[ramp(8 * i, 1, 8)]", "X[ramp(8 * i, 1, 8)]"
    func = parse(f'''def f(X: Buffer("float32", (64,)), O: Buffer("float32", (64,))):
    for i in range(8):
        {old} = select({new} > {old}, {new} + {new}, {old})
''')

    loop = instructions(func, cpu)
    assert "vblendvps" in loop
    assert "vmaskmovps" not in loop


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("word", ["min", "max"])
def test_extremes_take_three_instructions_and_one_with_fast_math(word: str, cpu: str) -> None:
    func = loop_of("float32", "float32", f"{word}(x, y)")

    exact, fast = instructions(func, cpu), instructions(func, cpu, fast_math=True)

    # Loads, stores and the masked move that AVX-512 uses for a blend count as moves.
    assert sorted(word for word in exact if "mov" not in word and "blend" not in word) == [
        "vcmpunordps", f"v{word}ps",
    ]
    assert len(exact) <= 6
    assert [word for word in fast if "mov" not in word] == [f"v{word}ps"]


@pytest.mark.parametrize("word", ["min", "max"])
def test_extremes_of_numbers_with_fast_math(word: str) -> None:
    x, y = np.random.default_rng(0).standard_normal((2, 64)).astype(np.float32)
    x[:4], y[:4] = [np.inf, -np.inf, 1, -1], [1, 1, np.inf, -np.inf]
    result = np.empty(64, np.float32)

    Kernel(loop_of("float32", "float32", f"{word}(x, y)"), fast_math=True)(x, y, result)

    np.testing.assert_array_equal(result, getattr(np, f"{word}imum")(x, y))


@pytest.mark.parametrize("cpu", CPUS)
@pytest.mark.parametrize("target", ["int8", "uint8", "int16", "uint16", "int32"])
def test_saturating_conversions_stay_short(target: str, cpu: str) -> None:
    words = instructions(loop_of("float32", target, f'cast("{target}x8", x)'), cpu)

    assert words.count("vcvttps2dq") == 1
    assert len(words) <= 13


@pytest.mark.parametrize("cpu", CPUS)
def test_halves_are_converted_in_vectors(cpu: str) -> None:
    words = instructions(loop_of("float16", "float16", "x * y"), cpu)

    assert words == ["vcvtph2ps", "vcvtph2ps", "vmulps", "vcvtps2ph"]


@pytest.mark.parametrize("cpu", CPUS)
def test_bfloats_are_read_by_shifts(cpu: str) -> None:
    words = instructions(loop_of("bfloat16", "float32", 'cast("float32x8", x)'), cpu)

    assert words == ["vpmovzxwd", "vpslld", "vmovdqu"]


@pytest.mark.parametrize("cpu", CPUS)
def test_bfloats_are_rounded_in_vectors(cpu: str) -> None:
    """`vcvtneps2bf16` is not used, because it flushes subnormal numbers to 0."""
    words = instructions(loop_of("float32", "bfloat16", 'cast("bfloat16x8", x)'), cpu)

    assert "vcvtneps2bf16" not in words
    assert len(words) <= 14


@pytest.mark.parametrize("value", ["x + y", "x * y + x", "x / y", "x - y * y"])
def test_float16_rounds_equally_with_and_without_float16_arithmetic(value: str) -> None:
    """Without `fast_math`, operations compute in float32 and round, also with AVX512-FP16."""
    func = loop_of("float16", "float16", value)

    native, widened = (
        [word for word in instructions(func, cpu) if re.fullmatch(r"v(add|sub|mul|div|fn?m\w+)p\w", word)]
        for cpu in ("sapphirerapids", "haswell")
    )

    assert native == widened
    assert {word[-2:] for word in native} == {"ps"}


@pytest.mark.parametrize("cpu", ["btver1", "znver3"])
def test_sse4a_is_not_used(cpu: str) -> None:
    """Between AVX instructions, its instructions take 40 ns each, as they have no AVX encoding."""
    machine = jit._target_machine(LlvmTarget("x86_64-unknown-linux-gnu", cpu))
    lanes = ", ".join(f"i32 {k}" for k in (*range(7), 16, *["poison"] * 8))
    text = machine.emit_assembly(jit._parse(f'''define <16 x i8> @f(<16 x i8> %x) {{
  %y = shufflevector <16 x i8> %x, <16 x i8> zeroinitializer, <16 x i32> <{lanes}>
  ret <16 x i8> %y
}}''', machine))

    assert "xmm0" in text
    assert "extrq" not in text
