"""Kernels and programs as C functions in object files and libraries that need no Python."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.export.artifacts import archive_content, elf_symbols
    from tecomp.export.c_function import ExportedFunction
    from tecomp.export.kernel_export import export_kernel
    from tecomp.export.program_export import ExportedProgram, export_program
else:
    __getattr__, __dir__ = lazy_names(__name__)
