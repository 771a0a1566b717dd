"""Probe which SIMD instructions the processor has."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tecomp.codegen.llvm.ir_builder import Source, vector_of
from tecomp.codegen.llvm.jit import Machine, assembly, host

_PROBE_LANES = 16
_KINDS = {"int8": "sext", "uint8": "zext"}


@dataclass(frozen=True, slots=True)
class DotInstruction:
    """An instruction that adds sums of products to lanes of 32 bits.

    Attributes:
        lanes: numbers of lanes that it has forms for, the greatest first.
        names: for each of those the function of LLVM that stands for it.
        numbers: LLVM's type of the numbers that are multiplied.
    """

    lanes: tuple[int, ...]
    names: tuple[str, ...]
    numbers: str


Dots = Mapping[tuple[str, str], DotInstruction]


@cache
def dots_of(machine: Machine) -> Dots:
    """The instructions of a machine, by the types of the numbers that they multiply.

    LLVM tells nobody the features of a processor that is given by name, and ends the process where
    an instruction is asked for that it lacks. So a few lines are compiled which become that
    instruction where there is one, and something else where there is none.
    """
    known = machine if machine.triple else host()
    x86, arm = known.triple.startswith(("x86_64", "i686")), known.triple.startswith("aarch64")
    if not x86 and not arm:
        return {}
    return dict(_of_x86(assembly(Source(_probe_x86()), known)) if x86 else
                _of_arm(assembly(Source(_probe_arm()), known)))


@cache
def has_masks(machine: Machine) -> bool:
    """Whether a machine stores some lanes of a vector, of any type, in one instruction."""
    known = machine if machine.triple else host()
    is_x86 = known.triple.startswith(("x86_64", "i686"))
    return is_x86 and "{%k" in assembly(Source(_probe_mask()), known)


@cache
def has_fma(machine: Machine) -> bool:
    """Whether a machine multiplies and adds numbers of 64 bits with one rounding, in vectors."""
    known = machine if machine.triple else host()
    text = assembly(Source(_probe_fma()), known)
    return not any(line.split()[0] in ("call", "callq", "jmp", "b", "bl")
                   for line in text.splitlines() if line.strip())


def _of_x86(text: str) -> Iterator[tuple[tuple[str, str], DotInstruction]]:
    """`vpdpbusd` comes with `vpdpwssd`, and `vdpbf16ps` with the 512-bit `vcvtneps2bf16`."""
    lines = text.splitlines()
    quads = [line for line in lines if "vpdpwssd" in line]
    if quads:
        lanes = (16, 8, 4) if any("%zmm" in line for line in quads) else (8, 4)
        names = tuple(f"llvm.x86.avx512.vpdpbusd.{32 * count}" for count in lanes)
        yield ("uint8", "int8"), DotInstruction(lanes, names, "i8")
    if any("vcvtneps2bf16" in line and "%zmm" in line for line in lines):
        lanes = (16, 8, 4)
        names = tuple(f"llvm.x86.avx512bf16.dpbf16ps.{32 * count}" for count in lanes)
        yield ("bfloat16", "bfloat16"), DotInstruction(lanes, names, "bfloat")


def _of_arm(text: str) -> Iterator[tuple[tuple[str, str], DotInstruction]]:
    for a, b, word in (("int8", "int8", "sdot"), ("uint8", "uint8", "udot"),
                       ("uint8", "int8", "usdot")):
        if f"\t{word}\t" in text:
            names = tuple(f"llvm.aarch64.neon.{word}.v{n}i32.v{4 * n}i8" for n in (4, 2))
            yield (a, b), DotInstruction((4, 2), names, "i8")
    if "\tbfcvtn\t" in text:
        names = tuple(f"llvm.aarch64.neon.bfdot.v{n}f32.v{2 * n}bf16" for n in (4, 2))
        yield ("bfloat16", "bfloat16"), DotInstruction((4, 2), names, "bfloat")


def _probe_x86() -> str:
    """A dot product of shorts, and a conversion to bfloat16, of 512 bits."""
    lanes = _PROBE_LANES
    total, shorts = vector_of("i32", lanes), vector_of("i16", 2 * lanes)
    wide = vector_of("i32", 2 * lanes)
    picks = [", ".join(f"i32 {k}" for k in range(start, 2 * lanes, 2)) for start in (0, 1)]
    parts = [f"shufflevector {wide} %p, {wide} poison, <{lanes} x i32> <{pick}>" for pick in picks]
    return f"""\
define {total} @shorts({total} %c, {shorts} %a, {shorts} %b) #0 {{
  %x = sext {shorts} %a to {wide}
  %y = sext {shorts} %b to {wide}
  %p = mul {wide} %x, %y
  %even = {parts[0]}
  %odd = {parts[1]}
  %s = add {total} %even, %odd
  %r = add {total} %s, %c
  ret {total} %r
}}
{_bfloats()}
attributes #0 = {{ "prefer-vector-width"="512" }}
"""


def _probe_mask() -> str:
    """A store of three of eight shorts."""
    kind, flags = vector_of("i16", 8), vector_of("i1", 8)
    some = ", ".join(f"i1 {str(k < 3).lower()}" for k in range(8))
    return f"""\
define void @some({kind} %x, ptr %p) {{
  call void @llvm.masked.store.v8i16.p0({kind} %x, ptr align 2 %p, {flags} <{some}>)
  ret void
}}
declare void @llvm.masked.store.v8i16.p0({kind}, ptr, {flags})
"""


def _probe_fma() -> str:
    """A fused operation on two numbers, which is a call of the C library where there is none."""
    kind = vector_of("double", 2)
    return f"""\
define {kind} @fused({kind} %x, {kind} %y, {kind} %z) {{
  %r = call {kind} @llvm.fma.v2f64({kind} %x, {kind} %y, {kind} %z)
  ret {kind} %r
}}
declare {kind} @llvm.fma.v2f64({kind}, {kind}, {kind})
"""


def _probe_arm() -> str:
    """Sums of four products each, of signed and unsigned bytes, and a conversion to bfloat16."""
    quads, lanes = "<16 x i32>", "<4 x i32>"
    functions = [f"""\
define {lanes} @{a}.{b}({lanes} %c, <16 x i8> %a, <16 x i8> %b) #0 {{
  %x = {_KINDS[a]} <16 x i8> %a to {quads}
  %y = {_KINDS[b]} <16 x i8> %b to {quads}
  %p = mul {quads} %x, %y
  %r = call {lanes} @llvm.vector.partial.reduce.add.v4i32.v16i32({lanes} %c, {quads} %p)
  ret {lanes} %r
}}
""" for a, b in (("int8", "int8"), ("uint8", "uint8"), ("uint8", "int8"))]
    return "".join([
        *functions, _bfloats(),
        f"declare {lanes} @llvm.vector.partial.reduce.add.v4i32.v16i32({lanes}, {quads})\n",
        "attributes #0 = { nounwind }\n",
    ])


def _bfloats() -> str:
    real, narrow = vector_of("float", _PROBE_LANES), vector_of("bfloat", _PROBE_LANES)
    return f"""\
define {narrow} @bfloats({real} %x) #0 {{
  %r = fptrunc {real} %x to {narrow}
  ret {narrow} %r
}}
"""
