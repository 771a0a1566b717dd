"""Machine limits: multiply-adds in a register loop, and memcpy."""

from __future__ import annotations

import ctypes
import os
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass

import numpy as np
from llvmlite import binding

from tests.bench.case import Array, Case
from tests.bench.catalogue import CASES
from tests.bench.machine import flags
from tests.bench.worker import Bind, Call, serve


@dataclass(frozen=True)
class Instruction:
    """Vector multiply-add instruction.

    Attributes:
        value: LLVM type of the accumulators.
        operand: LLVM type of the factors.
        code: Code that computes %new from %old, %x and %y.
        declaration: Declaration of the called intrinsic.
        operations: Number of multiplications and additions.
    """

    value: str
    operand: str
    code: str
    declaration: str
    operations: int


def fma(lanes: int) -> Instruction:
    """Return the float32 fused multiply-add, which all current CPUs support."""
    v = f"<{lanes} x float>"
    name = f"@llvm.fma.v{lanes}f32"
    return Instruction(
        v, v, f"%new = call {v} {name}({v} %x, {v} %y, {v} %old)",
        f"declare {v} {name}({v}, {v}, {v})", 2 * lanes,
    )


def dot(name: str, sums: str, factors: str, operations: int) -> Instruction:
    """Return a dot-product instruction for small dtypes."""
    return Instruction(
        sums, factors,
        f"%new = call {sums} @{name}({sums} %old, {factors} %x, {factors} %y)",
        f"declare {sums} @{name}({sums}, {factors}, {factors})", operations,
    )


def instruction(dtype: str, have: frozenset[str]) -> Instruction:
    """Return the fastest instruction of the CPU for factors of a dtype."""
    lanes = 16 if "avx512f" in have else 8 if "avx2" in have else 4
    if dtype == "bfloat16" and "avx512_bf16" in have:
        return dot("llvm.x86.avx512bf16.dpbf16ps.512", "<16 x float>", "<32 x bfloat>", 64)
    if dtype == "int8" and "avx512_vnni" in have:
        return dot("llvm.x86.avx512.vpdpbusd.512", "<16 x i32>", "<64 x i8>", 128)
    if dtype == "int8" and "avx_vnni" in have:
        return dot("llvm.x86.avx512.vpdpbusd.256", "<8 x i32>", "<32 x i8>", 64)
    if dtype == "int8" and "avx2" in have:
        v, pairs = "<8 x i32>", "<16 x i16>"
        # 16-bit products, added in pairs: the widest instruction that is exact for signed bytes.
        code = (
            f"%part = call {v} @llvm.x86.avx2.pmadd.wd({pairs} %x, {pairs} %y)\n"
            f"  %new = add {v} %old, %part"
        )
        return Instruction(
            v, pairs, code, f"declare {v} @llvm.x86.avx2.pmadd.wd({pairs}, {pairs})", 32
        )
    return fma(lanes)


def loop_text(step: Instruction, sums: int) -> str:
    """Return LLVM IR of a loop with the given number of independent accumulators."""
    v, w = step.value, step.operand
    old = [f"  %old{k} = phi {v} [ zeroinitializer, %entry ], [ %new{k}, %loop ]\n"
           for k in range(sums)]
    new = []
    for k in range(sums):
        # Distinct factors prevent LLVM from merging equal accumulators.
        code = step.code.replace("%new", f"%new{k}").replace("%old", f"%old{k}")
        new.append("  " + code.replace("%part", f"%part{k}").replace("%x", f"%x{k % 2}") + "\n")
    stores = [
        f"  %to{k} = getelementptr {v}, ptr %data, i64 {k}\n  store {v} %new{k}, ptr %to{k}\n"
        for k in range(sums)
    ]
    return (
        f"{step.declaration}\n"
        "define void @peak(i64 %count, ptr %data) {\nentry:\n"
        f"  %x0 = load {w}, ptr %data\n"
        f"  %p1 = getelementptr {w}, ptr %data, i64 1\n  %x1 = load {w}, ptr %p1\n"
        f"  %p2 = getelementptr {w}, ptr %data, i64 2\n  %y = load {w}, ptr %p2\n"
        "  br label %loop\nloop:\n"
        "  %i = phi i64 [ 0, %entry ], [ %next, %loop ]\n"
        f"{''.join(old)}{''.join(new)}"
        "  %next = add i64 %i, 1\n  %more = icmp ult i64 %next, %count\n"
        "  br i1 %more, label %loop, label %done\ndone:\n"
        f"{''.join(stores)}  ret void\n}}\n"
    )


@dataclass(frozen=True)
class Peak:
    """Native code that only multiplies and adds.

    Attributes:
        engine: Execution engine, which must outlive the function.
        function: Function of the number of iterations and the address of the sums.
        turns: Iterations that perform the operations of a case on all cores together.
    """

    engine: binding.ExecutionEngine
    function: Callable[[int, int], None]
    turns: int

    def call(self, space: Array) -> None:
        """Run the loop, with the sums in `space`."""
        self.function(self.turns, space.ctypes.data + -space.ctypes.data % 64)


def peak(case: Case) -> Bind:
    """Return calls that perform the operations of the case on all cores together."""
    have = flags()
    step = instruction(case.dtype, have)
    sums = 24 if "avx512f" in have else 12
    engine = _compiled(loop_text(step, sums))
    function = ctypes.CFUNCTYPE(None, ctypes.c_int64, ctypes.c_void_p)(
        engine.get_function_address("peak")
    )
    loop = Peak(engine, function, max(case.flops // len(_CORES) // (sums * step.operations), 1))

    def bind(*_: Array) -> Call:
        spaces = [np.zeros(64 * (sums + 1), np.uint8) for _ in _CORES]
        return _on_cores(lambda core: loop.call(spaces[core]))

    return bind


def copy(case: Case) -> Bind:
    """Return memcpy calls that read and write as many bytes as the case requires."""
    half = case.bytes // 2
    part = -(-half // len(_CORES))

    def bind(*_: Array) -> Call:
        source, target = _aligned(half), _aligned(half)

        def each(core: int) -> None:
            start = core * part
            count = max(min(part, half - start), 0)
            ctypes.memmove(target.ctypes.data + start, source.ctypes.data + start, count)

        return _on_cores(each)

    return bind


def _aligned(count: int) -> Array:
    """Return a page-aligned array of bytes.

    If source and target differ by a few bytes in their page offsets, some versions of memcpy are
    ten times slower on some CPUs; this is not a limit of the machine.
    """
    space = np.ones(count + 4096, np.uint8)
    start = -space.ctypes.data % 4096
    return space[start : start + count]


_CORES = [int(core) for core in os.environ.get("BENCH_CORES", "0").split(",")]


def _on_cores(each: Callable[[int], None]) -> Call:
    """Run `each(k)` on the k-th core, on all cores at the same time."""
    if len(_CORES) == 1:
        return lambda: each(0)
    pools = [
        ThreadPoolExecutor(1, initializer=os.sched_setaffinity, initargs=(0, [core]))
        for core in _CORES
    ]

    def call() -> None:
        for done in [pool.submit(each, k) for k, pool in enumerate(pools)]:
            done.result()

    return call


def _compiled(text: str) -> binding.ExecutionEngine:
    """Return native code for the host, without passes that could remove the work."""
    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    machine = binding.Target.from_default_triple().create_target_machine(
        cpu=binding.get_host_cpu_name(), features=binding.get_host_cpu_features().flatten(), opt=2
    )
    engine = binding.create_mcjit_compiler(binding.parse_assembly(text), machine)
    engine.finalize_object()
    return engine


def by_limit(case: Case) -> Bind:
    """Return the limit of the case, for any kind."""
    return peak(case) if case.limit == "fma" else copy(case)


if __name__ == "__main__":
    serve(dict.fromkeys({case.kind for case in CASES}, by_limit), "llvmlite", to_numpy=None)
