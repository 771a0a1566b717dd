"""JIT compilation of LLVM modules for the features of a CPU; the only module that uses llvmlite."""

from __future__ import annotations

import ctypes
import importlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager, nullcontext
from dataclasses import dataclass, field
from functools import cache, partial
from typing import Any

from tecomp.codegen.llvm.ir_builder import LlvmSource, vector_of
from tecomp.errors import InternalError
from tecomp.fork_gate import WorkLock, add_leaf, no_fork
from tecomp.ir.extern.binding import NOTHING, ExternBindings
from tecomp.machine.host import cpu_level
from tecomp.progress import log_duration

Entry = Callable[[Any], int]

_LINKED_BY_ONE = 32


@dataclass(frozen=True, slots=True)
class LlvmTarget:
    """Target machine in LLVM terms: triple, CPU model and features. Default: the host."""

    triple: str = ""
    cpu: str = ""
    features: str = ""


@dataclass(frozen=True, slots=True)
class LoadedCode:
    """Machine code in memory, kept alive by this object."""

    entry: Entry
    references: tuple[Any, ...]


@cache
def _llvm() -> Any:
    # Import lazily: llvmlite takes 60 MB, which only compilation needs.
    with no_fork:
        binding: Any = importlib.import_module("llvmlite.binding")
        binding.initialize_native_target()
        binding.initialize_native_asmprinter()
        binding.initialize_native_asmparser()  # inline assembly of exported functions
    # LLVM objects may be freed at any time by any thread, so a fork must hold this lock.
    add_leaf(partial(_lock_of, importlib.import_module("llvmlite.binding.ffi")))
    return binding


def _lock_of(ffi: Any) -> Any:
    """Return the lock that llvmlite holds during calls of LLVM."""
    return ffi.lib._lock._lock


@cache
def llvm_version() -> str:
    """Return the versions of llvmlite and LLVM."""
    numbers = (str(number) for number in _llvm().llvm_version_info)
    from llvmlite import __version__

    return f"{__version__} {'.'.join(numbers)}"


@cache
def _llvm_versions() -> Any:
    binding = _llvm()
    binding.initialize_all_targets()
    binding.initialize_all_asmprinters()
    return binding


@cache
def host() -> LlvmTarget:
    """Return the host machine, or the CPU level that `TECOMP_CPU` names.

    The features of the host are listed, because a hypervisor may mask some that its name implies.
    """
    level = cpu_level()
    return native() if level is None else LlvmTarget(_llvm().get_process_triple(), level)


@cache
def native() -> LlvmTarget:
    """Return this processor with all of its features."""
    llvm = _llvm()
    features = llvm.get_host_cpu_features().flatten()
    return LlvmTarget(llvm.get_process_triple(), llvm.get_host_cpu_name(), features)


def _target_machine(machine: LlvmTarget, effort: int = 2) -> Any:
    if not machine.triple:
        machine = host()
    llvm = _llvm() if machine.triple == host().triple else _llvm_versions()
    try:
        target = llvm.Target.from_triple(machine.triple)
    except RuntimeError as error:
        raise InternalError(
            "unknown LLVM target triple `{triple}`: {reason}",
            triple=machine.triple, reason=error,
        ) from error
    features = machine.features
    if machine.triple.startswith("x86_64"):
        # SSE4a has no AVX encoding: between AVX instructions, each of its instructions takes 40 ns.
        features = f"{features},-sse4a" if features else "-sse4a"
    # The small code model: the default of a JIT loads every address as 64 bits.
    return target.create_target_machine(
        cpu=machine.cpu, features=features, opt=effort, codemodel="small", reloc="pic"
    )


def _parse(text: str, target_machine: Any) -> Any:
    llvm = _llvm()
    try:
        # Use a separate context: constants and types live as long as their context.
        module = llvm.parse_assembly(text, llvm.create_context())
        module.triple = target_machine.triple
        module.data_layout = str(target_machine.target_data)
        module.verify()
    except RuntimeError as error:
        raise InternalError(
            "LLVM rejects the generated code: {reason}\n{text}",
            reason=error, text=text,
        ) from error
    return module


@dataclass(slots=True)
class _Tools:
    """Compilation tools for a machine; reused because LLVM leaks memory with each new instance.

    Attributes:
        target_machine: Code generator of LLVM.
        builders: Pass builders for modules with (True) and without (False) plain loops.
    """

    target_machine: Any
    builders: dict[bool, Any] = field(default_factory=dict)


_IDLE: dict[tuple[LlvmTarget, int], list[_Tools]] = {}


@contextmanager
def _tools(machine: LlvmTarget, effort: int = 2) -> Iterator[_Tools]:
    """Lend tools for exclusive use by one thread."""
    with no_fork:
        idle = _IDLE.setdefault((machine, effort), [])
        try:
            tools = idle.pop()
        except IndexError:
            tools = _Tools(_target_machine(machine, effort))
        yield tools
        idle.append(tools)


def _optimize(source: LlvmSource, tools: _Tools) -> Any:
    """Return the module after the selected passes: memory to registers, and loop passes if marked.

    Vectorization and unrolling are already explicit. The LLVM passes for them take most of the
    compile time and find nothing, except in loops that the schedule left plain.
    """
    module = _parse(source.text, tools.target_machine)
    is_plain = bool(source.plain_loops)
    if is_plain not in tools.builders:
        llvm = _llvm()
        options = llvm.create_pipeline_tuning_options(speed_level=2)
        options.loop_vectorization = is_plain
        options.loop_interleaving = is_plain
        options.slp_vectorization = False
        options.loop_unrolling = is_plain
        tools.builders[is_plain] = llvm.create_pass_builder(tools.target_machine, options)
    builder = tools.builders[is_plain]
    if is_plain:
        _prevent_inlining(module, source)
        with _disposing(builder.getModulePassManager()) as passes:
            passes.run(module, builder)
    else:
        _run_function_passes(module, source, builder)
    for function in module.functions:
        if function.name in source.handed_over:
            # Mark these functions last: the passes above may print that they skip `optnone`.
            function.add_function_attribute("noinline")
            function.add_function_attribute("optnone")
    return module


def _prevent_inlining(module: Any, source: LlvmSource) -> None:
    """Prevent inlining of loop bodies, which would lose the `noalias` of their parameters."""
    for function in module.functions:
        if not function.is_declaration and function.name not in source.inlined:
            function.add_function_attribute("noinline")


def _run_function_passes(module: Any, source: LlvmSource, builder: Any) -> None:
    """Run the selected passes function by function."""
    llvm = _llvm()
    if source.inlined:
        with _disposing(llvm.create_new_module_pass_manager()) as inliner:
            inliner.add_always_inliner_pass()
            inliner.run(module, builder)
    with (
        _disposing(llvm.create_new_function_pass_manager()) as sroa_only,
        _disposing(builder.getFunctionPassManager()) if source.loop_work
        else nullcontext(sroa_only) as loops,
    ):
        sroa_only.add_sroa_pass()
        for function in module.functions:
            if not function.is_declaration and function.name not in source.handed_over:
                has_work = function.name in source.loop_work
                (loops if has_work else sroa_only).run(function, builder)


@contextmanager
def _disposing(passes: Any) -> Iterator[Any]:
    """Yield a pass manager and dispose of it afterwards.

    llvmlite leaks pass managers of 70 kB each, because the dispose method is shadowed by an empty
    method of the base class.
    """
    try:
        yield passes
    finally:
        _llvm().newpassmanagers.NewPassManager._dispose(passes)
        passes.detach()


def assembly(source: LlvmSource, machine: LlvmTarget) -> str:
    """Return the assembly text of a module for `machine`."""
    with _tools(machine) as tools:
        return str(tools.target_machine.emit_assembly(_optimize(source, tools)))


def optimized_text(source: LlvmSource, machine: LlvmTarget) -> str:
    """Return the LLVM IR of a module after the selected passes, for `machine`."""
    with _tools(machine) as tools:
        return str(_optimize(source, tools))


def object_code(source: LlvmSource, effort: int = 2, machine: LlvmTarget | None = None) -> bytes:
    """Compile a module to an object file.

    Args:
        source: LLVM module.
        effort: Optimization level of the LLVM code generator, 0 to 3; level 0 takes a fifth of the
            time. Default: 2.
        machine: Target machine. Default: the host.

    Raises:
        InternalError: If LLVM rejects the module.
    """
    lines = source.text.count("\n")
    with log_duration(f"LLVM compiles {lines} lines"), _tools(machine or host(), effort) as tools:
        return bytes(tools.target_machine.emit_object(_optimize(source, tools)))


class _Linkers:
    """Current linker of the process, and unique numbers of linked libraries.

    A linker retains 9 kB for each library, so it is replaced after `_LINKED_BY_ONE` libraries; an
    old linker is freed with the last code that it linked. The older linker of LLVM (RuntimeDyld)
    allocates code and constants separately, and aborts the process if they are over 2 GB apart.
    """

    def __init__(self) -> None:
        self._lock = WorkLock()
        self._linked = 0
        self._current: Any = None

    def next(self) -> tuple[Any, int]:
        """Return a linker and a unique number."""
        with self._lock:
            if self._linked % _LINKED_BY_ONE == 0:
                self._current = _llvm().create_lljit_compiler(
                    _target_machine(host()), use_jit_link=True
                )
            self._linked += 1
            return self._current, self._linked


_LINKERS = _Linkers()


def link(images: Sequence[bytes], entry: str, outside: ExternBindings = NOTHING) -> LoadedCode:
    """Link object files in memory; the files may refer to each other.

    Args:
        images: Object files.
        entry: Name of the entry function.
        outside: External functions that the code calls.

    Raises:
        InternalError: If a symbol cannot be resolved.
    """
    with no_fork:
        return _link(images, entry, outside)


def _link(images: Sequence[bytes], entry: str, outside: ExternBindings) -> LoadedCode:
    compiler, number = _LINKERS.next()
    builder = _llvm().JITLibraryBuilder().add_current_process()
    for image in images:
        builder.add_object_img(image)
    for symbol, address in outside.addresses.items():
        builder.import_symbol(symbol, address)
    try:
        tracker = builder.export_symbol(entry).link(compiler, f"{entry}.{number}")
    except RuntimeError as error:
        raise InternalError(
            "cannot link the compiled code of {entry}: {reason}",
            entry=entry, reason=error,
        ) from error
    function = ctypes.CFUNCTYPE(ctypes.c_int32, ctypes.c_void_p)(tracker[entry])
    return LoadedCode(function, (tracker, compiler, outside))


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
