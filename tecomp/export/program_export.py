"""Write a compiled program as one C function, with its constants in the code or in a file."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from hashlib import sha256
from pathlib import Path
from typing import Any, Protocol

from tecomp.atomic_writes import folder_replacement
from tecomp.codegen.emit.compile import module_text
from tecomp.codegen.llvm.compiled import ModuleText
from tecomp.codegen.llvm.ir_builder import LlvmSource, Options
from tecomp.codegen.llvm.jit import LlvmTarget
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.errors import CallError
from tecomp.export.artifacts import write_error
from tecomp.export.c_function import (
    FILE,
    CodeVariant,
    ExportedFunction,
    arguments_of_function,
    function_name,
)
from tecomp.export.kernel_export import (
    FIRST_GROUP,
    SUFFIXES,
    ExportedModule,
    check_callees,
    linked_module,
    machines_of,
    required_level,
    variant_source,
    with_c_names,
    write_files,
)
from tecomp.ir.nodes.argument_checks import check_kind
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer, PrimFunc

EMBEDDED_BYTES = 1 << 20
"""Size up to which constants are part of the object code; larger constants are in a file."""
FORMATS = (".a", ".h")
"""Files of an exported program without other formats."""
_DIGEST_BYTES = 32


class SequenceModule(Protocol):
    """Function that returns the LLVM IR of a sequence, given suffixes of its kernels by entry."""

    def __call__(self, suffixes: Mapping[str, str]) -> ModuleText:
        """Return the LLVM IR of the sequence."""


@dataclass(frozen=True, slots=True)
class ExportedKernel:
    """Kernel of an exported program.

    Attributes:
        func: Lowered function.
        options: Code generation options.
        module: LLVM IR for the CPU of the build.
    """

    func: PrimFunc
    options: Options
    module: ModuleText


@dataclass(frozen=True, slots=True)
class ExportedProgram:
    """Program to export.

    Attributes:
        head: Function of a call without its statements; its last array is the constant pool.
        params: Array parameters as callers pass them, and the constant pool.
        written: Data variables of the outputs.
        kernels: Distinct kernels.
        sequence: Function that returns the LLVM IR of the calls.
        constants: Contents of the constant pool.
        is_parallel: Whether a kernel uses several threads.
    """

    head: PrimFunc
    params: tuple[Buffer, ...]
    written: tuple[Var, ...]
    kernels: tuple[ExportedKernel, ...]
    sequence: SequenceModule
    constants: bytes
    is_parallel: bool


def export_program(
    program: ExportedProgram, folder: str | os.PathLike[str], *,
    cpu: str | Sequence[str] | None = None, triple: str | None = None, name: str | None = None,
    formats: Sequence[str] = FORMATS,
) -> None:
    """Write a program to a folder; see `Program.export`.

    Args:
        program: Program.
        folder: Path of a new or empty folder, or of an exported program, which is replaced.
        cpu: CPU model or level, or several levels. Default: the CPU of the build.
        triple: Target triple. Default: this machine.
        name: Name of the C function. Default: the name of the program.
        formats: Suffixes of the files to write.

    Raises:
        CallError: If an argument is invalid, the program calls Python functions, or a file cannot
            be written.
    """
    check_kind(folder, str | os.PathLike, "export: the folder", "pass its path", CallError)
    check_kind(
        formats, list | tuple, "export: formats", "pass a list such as ['.a', '.h']", CallError)
    unknown = [suffix for suffix in formats if suffix not in SUFFIXES]
    if unknown or not formats:
        raise CallError(
            "export: unknown formats {formats}; pass some of {suffixes}",
            kind="unknown-choice", formats=", ".join(map(str, unknown)) or "()",
            suffixes=", ".join(SUFFIXES),
        )
    symbol = function_name(program.head.name if name is None else name)
    path = Path(folder)
    _check_replaceable(path, symbol)
    module = program_module(program, symbol, machines_of(cpu, triple))
    try:
        with folder_replacement(path) as part:
            write_files(module, [part / f"{symbol}{suffix}" for suffix in dict.fromkeys(formats)])
            if module.function.is_mapped:
                (part / f"{symbol}.weights").write_bytes(_weights(program.constants))
    except OSError as error:
        raise write_error(path, error) from None


def program_module(
    program: ExportedProgram, name: str, machines: Sequence[LlvmTarget]
) -> ExportedModule:
    """Return the LLVM module of a program with its C function.

    Raises:
        CallError: If the program calls Python functions.
    """
    check_callees(name, [call for kernel in program.kernels for call in kernel.module.calls])
    sources: list[LlvmSource] = []
    variants = []
    for number, machine in enumerate(machines):
        suffixes = {}
        for position, kernel in enumerate(program.kernels):
            module = module_text(kernel.func, kernel.options, machine)
            suffixes[module.entry] = suffix = f".{number}.{position}"
            sources.append(variant_source(with_c_names(module), number + FIRST_GROUP, suffix))
        calls = program.sequence(suffixes)
        sources.append(variant_source(calls.source, number + FIRST_GROUP, f".{number}"))
        variants.append(CodeVariant(f"{calls.entry}.{number}", required_level(machine)))
    *params, _ = program.params
    *flat, _ = program.head.params
    head = replace(program.head, params=tuple(flat))
    function = ExportedFunction(
        name, arguments_of_function(head, params, program.written, {}), calls.sites,
        program.is_parallel, constants=f"{name}.constants",
        is_mapped=len(program.constants) > EMBEDDED_BYTES,
    )
    text = _mapping_text(function.name, program.constants, machines[0].triple) if (
        function.is_mapped) else _embedded_text(function.constants, program.constants)
    return linked_module(function, sources, variants, machines, text)


def _escape(content: bytes) -> str:
    return "".join([f"\\{byte:02X}" for byte in content])


def _embedded_text(symbol: str, content: bytes) -> str:
    """Return the LLVM IR of constants in read-only memory."""
    size = max(len(content), 1)
    return (
        f"@{symbol} = internal constant [{size} x i8] "
        f'c"{_escape(content or bytes(1))}", align {ALIGNMENT}\n'
    )


def _weights(content: bytes) -> bytes:
    """Return the contents of the file of constants, which end with a digest."""
    return content + sha256(content).digest()


_MAPPING = """\
@{name}.constants = internal global ptr null, align 8
@{name}.digest = internal constant [32 x i8] c"{digest}", align 8
declare i32 @open(ptr, i32, ...)
declare i32 @close(i32)
declare i64 @lseek(i32, i64, i32)
declare ptr @mmap(ptr, i64, i32, i32, i32, i64)
declare i32 @munmap(ptr, i64)
declare i32 @memcmp(ptr, ptr, i64)
define i32 @{name}_open(ptr %path) #2 {{
entry:
  %known = load atomic ptr, ptr @{name}.constants acquire, align 8
  %is.open = icmp ne ptr %known, null
  br i1 %is.open, label %done, label %check
check:
  %is.missing = icmp eq ptr %path, null
  br i1 %is.missing, label %failed, label %file
file:
  %descriptor = call i32 (ptr, i32, ...) @open(ptr %path, i32 {read_only})
  %is.closed = icmp slt i32 %descriptor, 0
  br i1 %is.closed, label %failed, label %measure
measure:
  %size = call i64 @lseek(i32 %descriptor, i64 0, i32 2)
  %is.size = icmp eq i64 %size, {total}
  br i1 %is.size, label %map, label %close
map:
  %memory = call ptr @mmap(ptr null, i64 {total}, i32 1, i32 2, i32 %descriptor, i64 0)
  %word = ptrtoint ptr %memory to i64
  %is.mapped = icmp ne i64 %word, -1
  br i1 %is.mapped, label %compare, label %close
compare:
  %at.digest = getelementptr i8, ptr %memory, i64 {size}
  %order = call i32 @memcmp(ptr %at.digest, ptr @{name}.digest, i64 32)
  %is.same = icmp eq i32 %order, 0
  br i1 %is.same, label %publish, label %unmap
publish:
  %pair = cmpxchg ptr @{name}.constants, ptr null, ptr %memory acq_rel acquire
  %is.first = extractvalue {{ ptr, i1 }} %pair, 1
  %a = call i32 @close(i32 %descriptor)
  br i1 %is.first, label %done, label %second
second:
  %b = call i32 @munmap(ptr %memory, i64 {total})
  br label %done
done:
  ret i32 0
unmap:
  %c = call i32 @munmap(ptr %memory, i64 {total})
  br label %close
close:
  %d = call i32 @close(i32 %descriptor)
  br label %failed
failed:
  ret i32 {status}
}}
"""


def _mapping_text(name: str, content: bytes, triple: str) -> str:
    """Return the LLVM IR of the function that maps the file of constants."""
    return _MAPPING.format(
        name=name, digest=_escape(sha256(content).digest()), size=len(content),
        total=len(content) + _DIGEST_BYTES, status=FILE,
        read_only=0o2000000 if "linux" in triple else 0x1000000,  # O_RDONLY | O_CLOEXEC
    )


def _check_replaceable(path: Path, name: str) -> None:
    """Check that a folder is new, empty, or an exported program.

    Raises:
        CallError: If the folder has other contents.
    """
    if not path.exists():
        return
    files: list[Any] = [*path.iterdir()] if path.is_dir() else [path]
    if any(file.stem != name or file.suffix not in (*SUFFIXES, ".weights") for file in files):
        raise CallError(
            "export: {path} has contents other than an exported program {name}; pass another "
            "folder",
            kind="invalid-value", path=str(path), name=name,
        )
