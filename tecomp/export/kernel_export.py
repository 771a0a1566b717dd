"""Write a kernel as a C function: object file, library, header, LLVM IR or assembly."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from pathlib import Path
from typing import Any

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.codegen.emit.compile import module_text
from tecomp.codegen.llvm.compiled import ModuleText
from tecomp.codegen.llvm.ir_builder import LlvmSource
from tecomp.codegen.llvm.jit import (
    LlvmTarget,
    assembly,
    host,
    native,
    object_code,
    optimized_text,
)
from tecomp.errors import CallError, InternalError
from tecomp.export.artifacts import (
    C_FUNCTIONS,
    archive_content,
    elf_symbols,
    header_text,
    link_shared_library,
    write_file,
)
from tecomp.export.c_function import (
    CodeVariant,
    ExportedFunction,
    arguments_of_function,
    function_name,
    function_text,
)
from tecomp.export.runtime_library import (
    LEVELS,
    baseline,
    defined_names,
    is_elf,
    level_runtime,
    memory_runtime,
    rename_symbols,
)
from tecomp.ir.extern.registry import function_of
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.stmt import CallingConvention
from tecomp.machine.descriptor import Target

SUFFIXES = (".o", ".a", ".so", ".h", ".ll", ".s")
"""Suffixes of exported files."""


@dataclass(frozen=True, slots=True)
class ExportedModule:
    """LLVM module of an exported function.

    Attributes:
        function: C function.
        source: LLVM module.
        triple: Target triple.
        cpus: CPUs of the code, as the header states them.
    """

    function: ExportedFunction
    source: LlvmSource
    triple: str
    cpus: tuple[str, ...]


def export_kernel(
    kernel: Kernel, path: str | os.PathLike[str], *, notes: Mapping[int, str],
    cpu: str | Sequence[str] | None = None, triple: str | None = None, name: str | None = None,
) -> None:
    """Write a kernel to a file; see `Kernel.export`.

    Args:
        kernel: Kernel of `tecomp.build`.
        path: Path of the file; the suffix selects the format.
        notes: Layouts of arguments by position, for the header.
        cpu: CPU model or level, or several levels. Default: the CPU of the kernel.
        triple: Target triple. Default: this machine.
        name: Name of the C function. Default: the name of the kernel.

    Raises:
        CallError: If an argument is invalid, the kernel cannot run without Python, or the file
            cannot be written.

    >>> import tecomp, tempfile
    >>> from tecomp import te
    >>> A = te.placeholder((6,), name="A")
    >>> B = te.compute((6,), lambda i: A[i] * 2.0, name="B")
    >>> kernel = tecomp.build(B, [A, B], name="twice")
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     export_kernel(kernel, f"{folder}/twice.o", notes={})
    ...     print(os.listdir(folder))
    ['twice.o']
    """
    place = checked_path(path)
    module = kernel_module(kernel, notes, cpu, triple, name)
    write_files(module, [place])


def checked_path(path: str | os.PathLike[str]) -> Path:
    """Return the path of an exported file after checking its suffix.

    Raises:
        CallError: If the path has no supported suffix.
    """
    check_kind(path, str | os.PathLike, "export: the path", "pass 'name.o' or 'name.so'", CallError)
    place = Path(path)
    if place.suffix not in SUFFIXES:
        raise CallError(
            "export: the suffix of {path} must be one of {suffixes}",
            kind="unknown-choice", path=str(place), suffixes=", ".join(SUFFIXES),
        )
    return place


def kernel_module(
    kernel: Kernel, notes: Mapping[int, str], cpu: str | Sequence[str] | None, triple: str | None,
    name: str | None,
) -> ExportedModule:
    """Return the LLVM module of a kernel with its C function.

    Raises:
        CallError: If an argument is invalid, or the kernel cannot run without Python.
    """
    symbol = function_name(kernel.name if name is None else name)
    check_target(kernel.name, getattr(kernel, "target", None))
    interface = kernel.compiled.interface
    check_callees(symbol, interface.calls)
    machines = machines_of(cpu, triple)
    modules = [module_text(kernel.func, kernel.compiled.options, machine) for machine in machines]
    function = ExportedFunction(
        symbol,
        arguments_of_function(interface.head, kernel.signature, interface.written, notes),
        modules[0].sites, interface.is_parallel,
    )
    return exported_module(function, modules, machines)


def check_target(name: str, target: Target | None) -> None:
    """Check that a kernel or program is for a target with native code.

    Raises:
        CallError: If the target is simulated.
    """
    if target is not None and target.code.kind != "host":
        raise CallError(
            "export: {kernel} is built for {target}, which is simulated and has no native code; "
            "build the kernel for target='cpu'",
            kind="unsupported-by-target", kernel=name, target=target.name,
        )


def check_callees(name: str, calls: Any) -> None:
    """Check that code calls no Python functions.

    Raises:
        CallError: If the code calls a Python function.
    """
    callees = [callee for _, callee in calls]
    python = [item.function for item in callees if item.convention is not CallingConvention.C]
    if python:
        raise CallError(
            "export: {name} calls the Python functions {functions}; define them as tensors, or "
            "register C functions with tecomp.CFunction",
            kind="external-function", name=name, functions=", ".join(dict.fromkeys(python)),
        )


def exported_module(
    function: ExportedFunction, modules: Sequence[ModuleText], machines: Sequence[LlvmTarget]
) -> ExportedModule:
    """Merge the code for each machine, the runtime and the C function.

    Args:
        function: C function.
        modules: Code for each machine, the highest level first.
        machines: Machines, of one triple.
    """
    sources, variants = [], []
    for number, (module, machine) in enumerate(zip(modules, machines, strict=True)):
        suffix = f".{number}" if len(machines) > 1 else ""
        sources.append(variant_source(with_c_names(module), number + FIRST_GROUP, suffix))
        variants.append(CodeVariant(module.entry + suffix, required_level(machine)))
    return linked_module(function, sources, variants, machines)


def required_level(machine: LlvmTarget) -> int:
    """Return the number of the level that code for a machine requires; 0 for no check.

    >>> required_level(LlvmTarget("x86_64-unknown-linux-gnu", "x86-64-v3"))
    3
    """
    level = LEVELS.index(machine.cpu) + 1 if machine.cpu in LEVELS else 0
    return level if level > 1 else 0


def linked_module(
    function: ExportedFunction, sources: Sequence[LlvmSource], variants: Sequence[CodeVariant],
    machines: Sequence[LlvmTarget], constants: str = "",
) -> ExportedModule:
    """Merge modules of `variant_source` with the runtime and the C function.

    Args:
        function: C function.
        sources: Modules.
        variants: Code for each machine, the highest level first.
        machines: Machines, of one triple.
        constants: LLVM IR of the constants of a program.

    Raises:
        CallError: If the function has the name of a function of the C library.
    """
    declared = {name for source in sources for name in _DECLARATION.findall(source.text)}
    if function.name in declared | C_FUNCTIONS:
        raise CallError(
            "export: {name!r} is a function of the C library; pass name='...' to `tecomp.build` or "
            "to `export`",
            kind="invalid-value", name=function.name,
        )
    triple = machines[0].triple
    texts, runtime = [constants], dict[str, str]()
    has_rows = any(argument.has_rows for argument in function.arguments)
    if has_rows or any(uses_memory(source.text) for source in sources):
        memory = memory_runtime(triple, is_parallel=function.is_parallel)
        texts.append(memory.text)
        runtime.update(memory.symbols)
    if any(variant.level for variant in variants):
        levels = level_runtime(triple)
        texts.append(levels.text)
        runtime.update(levels.symbols)
    texts.append(function_text(function, variants, runtime))
    source = merge_modules(sources, texts, machines, triple)
    return ExportedModule(function, source, triple, tuple([_cpu_text(m) for m in machines]))


def with_c_names(module: ModuleText) -> LlvmSource:
    """Return a module whose external functions have the names of the C functions."""
    source = module.source
    text = source.text
    for symbol, callee in module.calls:
        function: Any = function_of(callee)
        text = text.replace(f"@{symbol}(", f"@{function.name}(")
    return LlvmSource(
        text, source.plain_loops, source.loop_work, source.inlined, source.handed_over)


def _cpu_text(machine: LlvmTarget) -> str:
    """Return the CPU of a machine for the header."""
    count = machine.features.count("+")
    return f"{machine.cpu} with {count} features of the build machine" if count else machine.cpu


def machines_of(
    cpu: str | Sequence[str] | None, triple: str | None
) -> tuple[LlvmTarget, ...]:
    """Return the machines for which code is generated, the highest level first.

    Args:
        cpu: CPU model, level, "native", or several levels. Default: the CPU of the build.
        triple: Target triple. Default: this machine.

    Raises:
        CallError: If LLVM does not know a CPU or the triple, or if several CPUs are not levels.

    >>> [machine.cpu for machine in machines_of("x86-64-v3", "x86_64-unknown-linux-gnu")]
    ['x86-64-v3']
    """
    for value, where in ((cpu, "cpu"), (triple, "triple")):
        expected = str | list | tuple | None if where == "cpu" else str | None
        check_kind(value, expected, f"export: {where}", "pass a name", CallError)
    local = host()
    place = local.triple if triple is None else triple
    if cpu is None or isinstance(cpu, str):
        if cpu is None and place == local.triple:
            return (local,)
        if cpu == "native":
            if place != local.triple:
                raise CallError(
                    "export: cpu='native' is the processor of this machine, but triple is "
                    "{triple}; pass the name of a CPU",
                    kind="conflicting-options", triple=place,
                )
            return (native(),)
        name = baseline(place).cpu if cpu is None else cpu
        _check_cpu(place, name)
        return (LlvmTarget(place, name),)
    names = [*dict.fromkeys(cpu)]
    unknown = [name for name in names if name not in LEVELS]
    if unknown or not names or not place.startswith("x86_64"):
        raise CallError(
            "export: several CPUs must be levels of x86-64 ({levels}), got {cpus} for {triple}; "
            "export one library for each other CPU",
            kind="invalid-value", levels=", ".join(LEVELS), cpus=names, triple=place,
        )
    return tuple([
        LlvmTarget(place, name) for name in sorted(names, key=LEVELS.index, reverse=True)
    ])


_LOOK_UP_CPU = """\
import sys
from llvmlite import binding
binding.initialize_all_targets()
target = binding.Target.from_triple(sys.argv[1])
target.create_target_machine(cpu=sys.argv[2])
"""


@cache
def _is_known_cpu(triple: str, cpu: str) -> bool:
    """Return whether LLVM knows a triple and a CPU model; LLVM warns about unknown models only.

    A process is started, because the warning goes to the standard error stream of the process.
    """
    command = [sys.executable, "-c", _LOOK_UP_CPU, triple, cpu]
    done = subprocess.run(command, capture_output=True, text=True, check=False)
    return done.returncode == 0 and "is not a recognized processor" not in done.stderr


def _check_cpu(triple: str, cpu: str) -> None:
    if triple.startswith("x86_64") and cpu in LEVELS and triple == host().triple:
        return
    if not _is_known_cpu(triple, cpu):
        raise CallError(
            "export: LLVM does not know the CPU {cpu!r} for {triple!r}; pass a name such as "
            "{examples}",
            kind="unknown-choice", cpu=cpu, triple=triple,
            examples="cortex-a76" if triple.startswith("a") else "x86-64-v3 or znver4",
        )


_TABLE_LOAD = re.compile(r"load ptr, ptr %thread(?![\w.])")


def uses_memory(text: str) -> bool:
    """Return whether the code of a kernel calls the scratch allocator or the thread pool.

    >>> uses_memory("  %table = load ptr, ptr %thread, align 8")
    True
    """
    return _TABLE_LOAD.search(text) is not None


FIRST_GROUP = 3
"""Number of the attribute group of the first machine."""
_DECLARATION = re.compile(r"^declare [^@\n]*@([\w.]+)\(.*$", re.MULTILINE)
_ATTRIBUTES = re.compile(r"^(?:attributes #|!)\d+ = .*\n?", re.MULTILINE)


def declared_names(text: str) -> tuple[str, ...]:
    """Return the functions that a module declares, without the intrinsics of LLVM."""
    names = dict.fromkeys(_DECLARATION.findall(text))
    return tuple([name for name in names if not name.startswith("llvm.")])


def attributes_of(machine: LlvmTarget) -> str:
    """Return the function attributes that select the processor of a function."""
    features = [machine.features] if machine.features else []
    if machine.triple.startswith("x86_64"):
        # As in the compilation for Python: SSE4a has no AVX encoding.
        features.append("-sse4a")
    return (
        f'"prefer-vector-width"="512" "target-cpu"="{machine.cpu}" '
        f'"target-features"="{",".join(features)}"'
    )


def variant_source(source: LlvmSource, group: int, suffix: str) -> LlvmSource:
    """Return a module with its own attribute group and suffix, to be merged with other variants.

    Args:
        source: Module of a kernel.
        group: Number of the attribute group that replaces group 0.
        suffix: Suffix of the names of all definitions.
    """
    names = {name: name + suffix for name in defined_names(source.text)}
    text = rename_symbols(_ATTRIBUTES.sub("", source.text), names)
    text = re.sub(r" #0( alwaysinline)? \{$", rf" #{group}\1 {{", text, flags=re.MULTILINE)
    text = re.sub(r"^define (?!internal)", "define internal ", text, flags=re.MULTILINE)
    lists = (source.plain_loops, source.loop_work, source.inlined, source.handed_over)
    return LlvmSource(text, *(tuple([names[name] for name in items]) for items in lists))


def merge_modules(
    sources: Sequence[LlvmSource], texts: Sequence[str], machines: Sequence[LlvmTarget],
    triple: str,
) -> LlvmSource:
    """Merge modules into one; declarations occur once.

    Args:
        sources: Modules of `variant_source`, with attribute groups from 3 on.
        texts: LLVM IR of functions in attribute group 2, for every processor of the triple.
        machines: Machine of each module.
        triple: Target triple.

    Raises:
        InternalError: If two modules define one name.
    """
    everything = [*(source.text for source in sources), *texts]
    names = [name for text in everything for name in defined_names(text)]
    if len(names) != len(set(names)):
        raise InternalError(
            "export: two modules define {names}",
            names=", ".join(sorted({name for name in names if names.count(name) > 1})),
        )
    declarations: dict[str, str] = {}
    for text in everything:
        for found in _DECLARATION.finditer(text):
            if found[1] not in names:
                declarations.setdefault(found[1], found[0])
    bodies = [_DECLARATION.sub("", _ATTRIBUTES.sub("", text)) for text in everything]
    groups = [
        "attributes #0 = { nounwind }",
        "attributes #1 = { nounwind willreturn memory(none) }",
        f"attributes #2 = {{ nounwind {attributes_of(baseline(triple))} }}",
        *(f"attributes #{number} = {{ nounwind {attributes_of(machine)} }}"
          for number, machine in enumerate(machines, FIRST_GROUP)),
        "!0 = !{}", "!1 = !{i32 1}", "",
    ]
    def joined(field: str) -> tuple[str, ...]:
        return tuple([name for source in sources for name in getattr(source, field)])

    return LlvmSource(
        "\n".join([*bodies, *declarations.values(), *groups]), joined("plain_loops"),
        joined("loop_work"), joined("inlined"), joined("handed_over"),
    )


def write_files(module: ExportedModule, paths: Sequence[Path]) -> None:
    """Write a module in the formats that the suffixes of the paths select; compile it once.

    Raises:
        CallError: If a file cannot be written, no linker is installed, or a format is not supported
            for the triple.
    """
    machine = baseline(module.triple)
    image = cache(lambda: object_code(module.source, machine=machine))
    for path in paths:
        match path.suffix:
            case ".ll":
                write_file(path, optimized_text(module.source, machine).encode())
            case ".s":
                write_file(path, assembly(module.source, machine).encode())
            case ".h":
                undefined = elf_symbols(image()).undefined
                text = header_text(module.function, module.triple, module.cpus, undefined)
                write_file(path, text.encode())
            case ".o":
                write_file(path, image())
            case ".a":
                _check_archive_format(module, path)
                write_file(path, archive_content(f"{module.function.name}.o", image()))
            case _:
                is_native = module.triple == host().triple
                link_shared_library(path, image(), module.triple, is_native=is_native)


def _check_archive_format(module: ExportedModule, path: Path) -> None:
    if not is_elf(module.triple):
        raise CallError(
            "export: static libraries are written for Linux only, got {triple}; export a .o "
            "file and run `ar rcs {path}`",
            kind="unsupported-by-target", triple=module.triple, path=str(path),
        )
