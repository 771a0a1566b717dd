"""Probe the SIMD instructions of a target machine."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from functools import cache

from tecomp.codegen.llvm.ir_builder import LlvmSource, vector_of
from tecomp.codegen.llvm.jit import LlvmTarget, assembly, host

_PROBE_LANES = 16
_KINDS = {"int8": "sext", "uint8": "zext"}


@dataclass(frozen=True, slots=True)
class DotInstruction:
    """Dot product instruction that accumulates into 32-bit lanes.

    Attributes:
        lanes: Supported lane counts, in descending order.
        names: LLVM intrinsic for each lane count.
        numbers: LLVM type of the multiplied values.
    """

    lanes: tuple[int, ...]
    names: tuple[str, ...]
    numbers: str


Dots = Mapping[tuple[str, str], DotInstruction]


@cache
def dots_of(machine: LlvmTarget) -> Dots:
    """Return the dot product instructions of a machine, by the dtypes of the operands.

    LLVM does not expose the features of a named CPU, and aborts the process if an unsupported
    intrinsic is used. Therefore a short probe is compiled that LLVM turns into the instruction
    where the CPU supports it, and into other code elsewhere.
    """
    known = machine if machine.triple else host()
    x86, arm = known.triple.startswith(("x86_64", "i686")), known.triple.startswith("aarch64")
    if not x86 and not arm:
        return {}
    return dict(_of_x86(assembly(LlvmSource(_probe_x86()), known)) if x86 else
                _of_arm(assembly(LlvmSource(_probe_arm()), known)))


@cache
def has_masks(machine: LlvmTarget) -> bool:
    """Return whether a machine has masked vector stores for all element types (AVX-512)."""
    known = machine if machine.triple else host()
    is_x86 = known.triple.startswith(("x86_64", "i686"))
    return is_x86 and "{%k" in assembly(LlvmSource(_probe_mask()), known)


@cache
def has_fma(machine: LlvmTarget) -> bool:
    """Return whether a machine has vector FMA for float64."""
    known = machine if machine.triple else host()
    text = assembly(LlvmSource(_probe_fma()), known)
    return not any(line.split()[0] in ("call", "callq", "jmp", "b", "bl")
                   for line in text.splitlines() if line.strip())


def _of_x86(text: str) -> Iterator[tuple[tuple[str, str], DotInstruction]]:
    """Yield x86 instructions: `vpdpwssd` implies `vpdpbusd`, `vcvtneps2bf16` `vdpbf16ps`."""
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
    for a, b, mnemonic in (("int8", "int8", "sdot"), ("uint8", "uint8", "udot"),
                       ("uint8", "int8", "usdot")):
        if f"\t{mnemonic}\t" in text:
            names = tuple(f"llvm.aarch64.neon.{mnemonic}.v{n}i32.v{4 * n}i8" for n in (4, 2))
            yield (a, b), DotInstruction((4, 2), names, "i8")
    if "\tbfcvtn\t" in text:
        names = tuple(f"llvm.aarch64.neon.bfdot.v{n}f32.v{2 * n}bf16" for n in (4, 2))
        yield ("bfloat16", "bfloat16"), DotInstruction((4, 2), names, "bfloat")


def _probe_x86() -> str:
    """Return a probe: a 512-bit dot product of int16 and a conversion to bfloat16."""
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
    """Return a probe: a masked store of three of eight int16 lanes."""
    kind, flags = vector_of("i16", 8), vector_of("i1", 8)
    mask = ", ".join(f"i1 {str(k < 3).lower()}" for k in range(8))
    return f"""\
define void @some({kind} %x, ptr %p) {{
  call void @llvm.masked.store.v8i16.p0({kind} %x, ptr align 2 %p, {flags} <{mask}>)
  ret void
}}
declare void @llvm.masked.store.v8i16.p0({kind}, ptr, {flags})
"""


def _probe_fma() -> str:
    """Return a probe: a float64 vector FMA, which is a C library call if unsupported."""
    kind = vector_of("double", 2)
    return f"""\
define {kind} @fused({kind} %x, {kind} %y, {kind} %z) {{
  %r = call {kind} @llvm.fma.v2f64({kind} %x, {kind} %y, {kind} %z)
  ret {kind} %r
}}
declare {kind} @llvm.fma.v2f64({kind}, {kind}, {kind})
"""


def _probe_arm() -> str:
    """Return a probe: 4-way dot products of int8 and uint8, and a conversion to bfloat16."""
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
    wide, narrow = vector_of("float", _PROBE_LANES), vector_of("bfloat", _PROBE_LANES)
    return f"""\
define {narrow} @bfloats({wide} %x) #0 {{
  %r = fptrunc {wide} %x to {narrow}
  ret {narrow} %r
}}
"""
