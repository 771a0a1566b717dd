"""`dot`: products summed in 32 bits, from the definition to the machine code."""

from __future__ import annotations

import re
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import tecomp
from tecomp import te
from tecomp.codegen import (
    Kernel,
    LlvmSource,
    LlvmTarget,
    ModuleText,
    Options,
    dots_of,
    emit_assembly,
    module_text,
)
from tecomp.codegen.emit import compile as compile_module
from tecomp.errors import InternalError, TypeMismatchError
from tecomp.ir import DType, PrimFunc, evaluate, parse, verify
from tecomp.lowering import vectorize_loops
from tests.messages import Diagnostic, diagnostic
from tests.strategies.arrays import Array

KINDS = [
    ("int8x4", "int8x4"), ("uint8x4", "int8x4"), ("int8x4", "uint8x4"), ("uint8x4", "uint8x4"),
    ("int16x2", "int16x2"), ("bfloat16x2", "bfloat16x2"),
]


def numbers(name: str, shape: tuple[int, ...], seed: int) -> Array:
    dtype, random = DType(name), np.random.default_rng(seed)
    whole = random.integers(-128, 256, (*shape, dtype.lanes))
    if not dtype.is_float:
        bounds = np.iinfo(dtype.numpy)
        whole = random.integers(bounds.min, bounds.max, whole.shape, endpoint=True)
        whole.flat[:4] = bounds.min
        whole.flat[4:8] = bounds.max
    return whole.astype(dtype.numpy)


def exact(a: Array, b: Array) -> Array:
    """Sum products over the last axis; integers give int32, floats float32."""
    if a.dtype.kind in "iu":
        whole: Array = (a.astype(np.int64) * b.astype(np.int64)).sum(-1)
        return whole.astype(np.int32)
    real: Array = (a.astype(np.float64) * b.astype(np.float64)).sum(-1)
    return real.astype(np.float32)


@pytest.mark.exhaustive(keep=21)
@pytest.mark.parametrize("lanes", [1, 3, 8, 16])
@pytest.mark.parametrize(("first", "second"), KINDS)
def test_dot_of_vectors(first: str, second: str, lanes: int) -> None:
    place = f"ramp({lanes} * i, 1, {lanes})" if lanes > 1 else "i"
    result = "float32" if "bfloat" in first else "int32"
    func = parse(f'''def f(A: Buffer("{first}", (48,)), B: Buffer("{second}", (48,)), O: Buffer("{result}", (48,))):
    for i in range({48 // lanes}):
        O[{place}] = dot(A[{place}], B[{place}])
''')
    assert parse(str(func)) == func
    a, b = numbers(first, (48,), 0), numbers(second, (48,), 1)
    interpreted, compiled = np.zeros(48, result), np.zeros(48, result)

    evaluate(func, [a, b, interpreted])
    Kernel(func)(a, b, compiled)

    np.testing.assert_array_equal(interpreted, exact(a, b))
    np.testing.assert_array_equal(compiled, exact(a, b))


def matmul(first: str, second: str, m: Any, n: Any, k: int, *, lanes: int) -> tuple[Any, Any]:
    A = te.placeholder((m, k), dtype=first, name="A")
    B = te.placeholder((k, n), dtype=second, name="B")
    over = te.reduce_axis((0, k), name="k")
    C = te.compute((m, n), lambda i, j: te.sum(te.dot(A[i, over], B[over, j]), axis=over), name="C")
    s = te.create_schedule(C.op)
    i, j = s[C].op.axis
    outer, inner = s[C].split(j, lanes)
    s[C].reorder(i, outer, over, inner)
    s[C].vectorize(inner)
    return s, [A, B, C]


@pytest.mark.exhaustive(keep=5)
@pytest.mark.parametrize("is_symbolic", [False, True])
@pytest.mark.parametrize(("first", "second"), KINDS)
def test_matmul_with_dots_is_vectorized(first: str, second: str, is_symbolic: bool) -> None:
    n = te.var("n") if is_symbolic else 21
    s, args = matmul(first, second, 5, n, 6, lanes=8)
    a, b = numbers(first, (5, 6), 2), numbers(second, (6, 21), 3)
    expected = exact(a[:, None].reshape(5, 1, -1), b.transpose(1, 0, 2).reshape(1, 21, -1))
    c = np.zeros_like(expected)

    func = tecomp.lower(s, args)
    tecomp.build(s, args)(a, b, c)

    assert "dot(broadcast(A[" in str(func)
    np.testing.assert_array_equal(c, expected)


X86 = "x86_64-unknown-linux-gnu"
ARM = "aarch64-linux-gnu"


def added(first: str, second: str, lanes: int) -> PrimFunc:
    """Build a loop that adds dot products to its output."""
    result = "float32" if "bfloat" in first else "int32"
    place = f"ramp({lanes} * i, 1, {lanes})"
    return parse(f'''def f(A: Buffer("{first}", (96,)), B: Buffer("{second}", (96,)), O: Buffer("{result}", (96,))):
    for i in range({96 // lanes}):
        O[{place}] = O[{place}] + dot(A[{place}], B[{place}])
''')


def words(assembly: str) -> list[str]:
    """Return the arithmetic instructions, without moves and loop counters."""
    found = re.findall(r"^\s+(?:\{vex\}\s+)?(\w+)\t", assembly[assembly.index("f.body:"):], re.M)
    return [word for word in found if re.match(r"vp(madd|dp|add|sub|sll|sra|xor|mul)|vdp|v.*fm|[su]+dot|bfdot", word)]


@pytest.mark.exhaustive(keep=33)
@pytest.mark.parametrize(
    ("first", "second", "cpu", "expected"),
    [
        ("int16x2", "int16x2", "haswell", ["vpmaddwd", "vpaddd"]),
        ("int16x2", "int16x2", "znver4", ["vpdpwssd"]),
        ("int16x2", "int16x2", "alderlake", ["vpdpwssd"]),
        *(
            (first, second, cpu, ["vpdpbusd"])
            for cpu in ("znver4", "znver5", "sapphirerapids", "cascadelake", "alderlake")
            for first, second in (("uint8x4", "int8x4"), ("int8x4", "uint8x4"))
        ),
        *(
            ("bfloat16x2", "bfloat16x2", cpu, ["vdpbf16ps"])
            for cpu in ("znver4", "znver5", "sapphirerapids", "cooperlake")
        ),
    ],
)
@pytest.mark.parametrize("lanes", [4, 8, 16])
def test_dot_products_are_one_instruction_of_x86(
    first: str, second: str, cpu: str, expected: list[str], lanes: int
) -> None:
    text = emit_assembly(added(first, second, lanes), triple=X86, cpu=cpu)

    found = words(text)
    pieces = 2 if lanes == 16 and cpu in ("haswell", "alderlake") else 1
    assert sorted(found) == sorted(expected * pieces)
    register = {4: "%xmm", 8: "%ymm", 16: "%ymm" if pieces == 2 else "%zmm"}[lanes]
    assert re.search(rf"{expected[0]}.*{register}", text)


@pytest.mark.parametrize("cpu", ["znver4", "alderlake"])
def test_signed_bytes_cost_one_product_more(cpu: str) -> None:
    """The additional product depends on one factor only."""
    text = emit_assembly(added("int8x4", "int8x4", 8), triple=X86, cpu=cpu)

    assert sorted(words(text)) == ["vpdpbusd", "vpdpbusd", "vpsubd", "vpxor", "vpxor"] or (
        sorted(words(text)) == ["vpdpbusd", "vpdpbusd", "vpsubd", "vpxord", "vpxor"]
    )


@pytest.mark.parametrize(
    ("name", "cpu", "instruction"),
    [
        ("int16x2", "haswell", "vpmaddwd"),
        ("int8x4", "haswell", "vpmaddwd"),
        ("uint8x4", "skylake-avx512", "vpmaddwd"),
        ("bfloat16x2", "haswell", "vfmadd"),
        ("bfloat16x2", "alderlake", "vfmadd"),
        ("bfloat16x2", "sierraforest", "vfmadd"),
    ],
)
def test_machines_without_have_short_forms(name: str, cpu: str, instruction: str) -> None:
    text = emit_assembly(added(name, name, 8), triple=X86, cpu=cpu)

    assert re.search(rf"{instruction}.*%ymm", text)
    assert not re.search("vpmulld|vpmullw|vphaddd|vpextr|vaddps|vpdp|vdpbf", text)


@pytest.mark.parametrize(
    ("first", "second", "cpu", "expected"),
    [
        ("int8x4", "int8x4", "neoverse-n1", "sdot"),
        ("uint8x4", "uint8x4", "neoverse-n1", "udot"),
        ("uint8x4", "int8x4", "neoverse-v1", "usdot"),
        ("int8x4", "int8x4", "apple-m2", "sdot"),
        ("bfloat16x2", "bfloat16x2", "neoverse-v2", "bfdot"),
    ],
)
def test_dot_products_are_one_instruction_of_arm(
    first: str, second: str, cpu: str, expected: str
) -> None:
    text = emit_assembly(added(first, second, 8), triple=ARM, cpu=cpu)

    assert words(text) == [expected] * 2


def test_machines_of_other_makers_have_none() -> None:
    assert dots_of(LlvmTarget("riscv64-linux-gnu", "sifive-x280")) == {}
    assert dots_of(LlvmTarget(ARM, "cortex-a57")) == {}
    assert dots_of(LlvmTarget(X86, "znver3")) == {}


@pytest.mark.exhaustive(keep=10)
@pytest.mark.parametrize("lanes", [4, 12, 24])
@pytest.mark.parametrize(("first", "second"), KINDS)
def test_forms_for_instructions_mean_the_same(
    first: str, second: str, lanes: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Generic IR replaces the instruction for unsigned times signed bytes."""
    func = added(first, second, lanes)
    text = module_text(func, Options(), LlvmTarget(X86, "znver4")).text
    used = sorted(set(re.findall(r"@(llvm\.x86\.avx512\w*\.\w+)", text)))
    expected = {"b": ["llvm.x86.avx512bf16.dpbf16ps"], "i": ["llvm.x86.avx512.vpdpbusd"]}
    assert used == ([] if first == "int16x2" else expected[first.lstrip("u")[0]])
    a, b = numbers(first, (96,), 5), numbers(second, (96,), 6)
    result = np.arange(96).astype("float32" if "bfloat" in first else "int32")
    reference = result + exact(a, b)

    monkeypatch.setattr(compile_module, "module_text", lambda f, o: stand_in(f, o))
    Kernel(func)(a, b, result)

    np.testing.assert_array_equal(result, reference)


def stand_in(func: PrimFunc, options: Options) -> ModuleText:
    """Build the module for a CPU with these instructions, and replace them by functions."""
    result = module_text(func, options, LlvmTarget(X86, "znver4"))
    text = re.sub(r"declare (.*) @llvm\.x86\.(avx512\w*)\.(\w+)\.(\d+)\(.*\)", substitute, result.text)
    return replace(result, source=LlvmSource(re.sub(r"@llvm\.x86\.(avx512\w*)\.", r"@stand.in.\1.", text)))


def substitute(match: re.Match[str]) -> str:
    name, lanes = match.group(3), int(match.group(4)) // 32
    kind = "float" if name == "dpbf16ps" else "i32"
    number, count = ("bfloat", 2 * lanes) if name == "dpbf16ps" else ("i8", 4 * lanes)
    lines = []
    for side, word in (("a", "zext"), ("b", "sext")):
        operation = "fpext" if kind == "float" else word
        lines.append(f"%{side}.w = {operation} <{count} x {number}> %{side} to <{count} x {kind}>")
    f = "f" if kind == "float" else ""
    lines.append(f"%p = {f}mul <{count} x {kind}> %a.w, %b.w")
    total = "%c"
    for part in range(count // lanes):
        places = ", ".join(f"i32 {part + count // lanes * k}" for k in range(lanes))
        lines.append(f"%q{part} = shufflevector <{count} x {kind}> %p, <{count} x {kind}> poison, <{lanes} x i32> <{places}>")
        lines.append(f"%s{part} = {f}add <{lanes} x {kind}> {total}, %q{part}")
        total = f"%s{part}"
    body = "\n  ".join([*lines, f"ret <{lanes} x {kind}> {total}"])
    head = f"<{lanes} x {kind}> %c, <{count} x {number}> %a, <{count} x {number}> %b"
    return f"define internal <{lanes} x {kind}> @llvm.x86.{match.group(2)}.{name}.{32 * lanes}({head}) {{\n  {body}\n}}"


def test_elements_of_other_types_are_refused() -> None:
    A = te.placeholder((4,), dtype="int8x4", name="A")
    B = te.placeholder((4,), dtype="int16x2", name="B")

    with pytest.raises(TypeMismatchError) as error:
        te.compute((4,), lambda i: te.dot(A[i], B[i]))

    assert diagnostic(error.value) == (
        Diagnostic("dtype", dtype="int8x4", y_dtype="int16x2")
    )


def test_the_verifier_checks_dot_operands() -> None:
    func = parse('''def f(A: Buffer("int8x4", (4,)), O: Buffer("int16", (4,))):
    O[0] = dot(A[0], A[0], dtype="int16")
''')

    with pytest.raises(InternalError) as error:
        verify(func)

    assert diagnostic(error.value) == (
        Diagnostic(
            "internal", function="f", node='dot(A[0], A[0], dtype="int16")',
            problem="the call of dot has the type int16",
        )
    )


def test_rows_across_the_vector_stay_right() -> None:
    """A vector along an axis other than the last has no vector form, also in a `dot`."""
    func = parse('''def f(A: Buffer("int16x2", (8, 4), axis_separators=(0,)), O: Buffer("int32", (8,))):
    for i in vectorized(8):
        O[i] = dot(A[i, 1], A[i, 2])
''')
    a = numbers("int16x2", (8, 4), 4)
    result = np.zeros(8, np.int32)

    Kernel(vectorize_loops(func))(a, result)

    np.testing.assert_array_equal(result, exact(a[:, 1], a[:, 2]))
