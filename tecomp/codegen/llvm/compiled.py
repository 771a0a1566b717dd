"""Compiled functions: module text, line table, interface and machine code."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from dataclasses import dataclass

from tecomp.codegen.llvm.ir_builder import LlvmSource, Options
from tecomp.codegen.llvm.jit import Entry, LlvmTarget, LoadedCode, assembly
from tecomp.ir.extern.binding import Calls
from tecomp.ir.nodes.expr import Var
from tecomp.ir.nodes.stmt import Buffer, Extent, PrimFunc
from tecomp.lazy_imports import load_upward

Signature = tuple[Buffer | Var, ...]
"""Parameters of a kernel, with the shapes that callers pass."""
LogicalShapes = tuple[tuple[Extent, ...] | None, ...]
"""Logical shape of each array parameter; None for scalars."""

@dataclass(frozen=True, slots=True)
class ModuleText:
    """LLVM IR of a function.

    Attributes:
        source: LLVM module; independent of the target except for probed CPU features.
        entry: Name of the function that takes the argument block.
        sites: Texts of the site numbers in failure records.
        is_parallel: Whether the function can use more than one thread.
        calls: External functions that the function calls.
    """

    source: LlvmSource
    entry: str
    sites: tuple[str, ...]
    is_parallel: bool
    calls: Calls = ()

    @property
    def text(self) -> str:
        """LLVM IR."""
        return self.source.text


@dataclass(frozen=True, slots=True)
class KernelInterface:
    """Interface of a compiled function.

    Attributes:
        head: Function without its statements.
        written: Data variables of the buffers that the function writes.
        entry: Name of the native function that takes the argument block.
        sites: Texts of the site numbers in failure records.
        is_parallel: Whether the function can use more than one thread.
        calls: External functions that the function calls.
    """

    head: PrimFunc
    written: tuple[Var, ...]
    entry: str
    sites: tuple[str, ...]
    is_parallel: bool
    calls: Calls = ()


class CompiledFunction:
    """Function in machine code.

    Attributes:
        interface: Interface of the function.
        linked: Machine code, kept in memory by this object.
        options: Code generation options.
        signature: Parameters with the shapes that callers pass; those of the function by default.
        logical: Logical shapes of array parameters in the same variables; None for scalars.
    """

    __slots__ = (
        "_func", "_make", "_module", "interface", "linked", "logical", "options", "signature",
    )

    def __init__(
        self,
        interface: KernelInterface,
        linked: LoadedCode,
        options: Options,
        make: Callable[[], PrimFunc],
        module: ModuleText | None = None,
        signature: Signature | None = None,
        logical: LogicalShapes = (),
    ) -> None:
        """Wrap linked code; `make` returns the compiled function and is called on demand."""
        self.signature: Signature = interface.head.params if signature is None else signature
        self.logical = logical
        self.interface = interface
        self.linked = linked
        self.options = options
        self._make = make
        self._func: PrimFunc | None = None
        self._module = module

    @property
    def func(self) -> PrimFunc:
        """Compiled function."""
        if self._func is None:
            self._func = self._make()
        return self._func

    @property
    def llvm_ir(self) -> str:
        """LLVM IR before the passes of LLVM."""
        return self.source.text

    @property
    def source(self) -> LlvmSource:
        """LLVM module before the passes of LLVM."""
        if self._module is None:
            self._module = load_upward("codegen.emitter")(self.func, self.options)
        return self._module.source

    @property
    def entry(self) -> Entry:
        """Native function of the argument block address; it returns the failure kind, or 0."""
        return self.linked.entry

    def assembly(self) -> str:
        """Return the assembly text for the host."""
        return assembly(self.source, LlvmTarget())


MARK = "  ; line "
"""Prefix of the line comment before the instructions of a statement in LLVM IR."""

_FIRST = 100_000
"""First metadata number of the table, above all other metadata."""


def with_line_table(text: str) -> str:
    """Convert the line comments in LLVM IR to debug line metadata."""
    lines, extra = [], _head()
    number, inside, line, brackets = _FIRST + 4, False, 0, 0
    scope = 0
    locations: dict[tuple[int, int], int] = {}
    for row in text.splitlines():
        if row.startswith("define "):
            scope, number, inside, line = number, number + 1, True, 1
            extra.append(
                f'!{scope} = distinct !DISubprogram(name: "{scope}", file: !{_FIRST + 1}, '
                f"scope: !{_FIRST + 1}, line: 1, type: !{_FIRST + 2}, "
                f"spFlags: DISPFlagDefinition, unit: !{_FIRST})"
            )
            lines.append(f"{row.removesuffix('{')}!dbg !{scope} {{")
            continue
        if row.startswith(MARK):
            line = int(row.removeprefix(MARK))
            continue
        if row == "}":
            inside = False
        brackets += row.count("[") - row.count("]")
        if inside and row.startswith("  ") and not brackets:
            location = locations.get((line, scope))
            if location is None:
                location = locations[line, scope] = number
                number += 1
                extra.append(f"!{location} = !DILocation(line: {line}, column: 1, scope: !{scope})")
            row = f"{row}, !dbg !{location}"
        lines.append(row)
    return "\n".join([*lines, *extra, ""])


def _head() -> list[str]:
    unit, file, kind, version = range(_FIRST, _FIRST + 4)
    return [
        f"!llvm.dbg.cu = !{{!{unit}}}",
        f"!llvm.module.flags = !{{!{version}}}",
        f"!{unit} = distinct !DICompileUnit(language: DW_LANG_C, file: !{file}, "
        "emissionKind: LineTablesOnly)",
        f'!{file} = !DIFile(filename: "function", directory: "")',
        f"!{kind} = !DISubroutineType(types: !{{}})",
        f'!{version} = !{{i32 2, !"Debug Info Version", i32 3}}',
    ]


def number_llvm_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield the lines of LLVM IR with their source lines; 0 for lines without a source line."""
    line = 0
    for row in text.splitlines():
        if row.startswith(MARK):
            line = int(row.removeprefix(MARK))
            continue
        if row.startswith("define ") or row == "}":
            line = 0
        yield line if row.startswith("  ") else 0, row


_PLACE = re.compile(r"\s*\.loc\s+\d+\s+(\d+)")
_DIRECTIVE = re.compile(r"\s*\.(?!L)|\s*\.Ltmp|\s*\.Lfunc|\s*#|\s*$")


def number_assembly_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield instructions and labels of assembly with their source lines; 0 for none."""
    line = 0
    for row in text.splitlines():
        if found := _PLACE.match(row):
            line = int(found[1])
        elif row.startswith("\t.section\t.debug_"):
            return
        elif not _DIRECTIVE.match(row):
            is_label = not row.startswith(("\t", " "))
            if is_label and not row.startswith(".L"):
                line = 0
            yield 0 if is_label else line, row.split("#")[0].rstrip()
