"""Code generation from IR to machine code with LLVM; independent of tensors and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.codegen.dispatch.array_interop import empty, mark_of, marked
    from tecomp.codegen.dispatch.fast_call import arrays_are_known
    from tecomp.codegen.dispatch.kernel import Kernel, Timing, time_call
    from tecomp.codegen.dispatch.parameter import Stored
    from tecomp.codegen.dispatch.process_runtime import process, process_text, use_threads
    from tecomp.codegen.emit.compile import (
        compile_function,
        emit_assembly,
        interface_of,
        module_text,
        module_with_lines,
    )
    from tecomp.codegen.emit.parallel import least_iterations
    from tecomp.codegen.emit.pre_emission_passes import keep_partial_sums, name_quotients
    from tecomp.codegen.llvm.code_cache import Contents, Store, current_store, digest, made_by
    from tecomp.codegen.llvm.compiled import Compiled, ModuleText
    from tecomp.codegen.llvm.cpu_features import dots_of, has_fma
    from tecomp.codegen.llvm.ir_builder import Code, Options, Source, register_type
    from tecomp.codegen.llvm.jit import Machine, host, link, object_code
    from tecomp.codegen.llvm.line_table import numbered_llvm, with_line_table
    from tecomp.codegen.llvm.pass_selection import has_loop_work, has_plain_loops
    from tecomp.codegen.math.vector_values import Real, each_lane
    from tecomp.codegen.memory.alignment import divisor
    from tecomp.codegen.memory.vector_access import Run, runs_of
    from tecomp.codegen.ops.vector_legalization import prefix, whole_vectors
    from tecomp.codegen.runtime.runtime_structs import (
        ALIGNMENT,
        BLOCK,
        CALLERS,
        FIRST_ARGUMENT_WORD,
        LIMIT,
        RECORDS,
        TABLE,
        Record,
        assembled,
        words,
    )
    from tecomp.codegen.runtime.thread_pool_ir import pool_text
else:
    __getattr__, __dir__ = lazy_names(__name__)
