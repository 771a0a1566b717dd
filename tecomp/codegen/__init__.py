"""Code generation from IR to machine code with LLVM; independent of tensors and schedules."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.codegen.dispatch.array_interop import empty, layout_tag_of, with_layout_tag
    from tecomp.codegen.dispatch.fast_call import arrays_are_known
    from tecomp.codegen.dispatch.kernel import Kernel, Timing, time_call
    from tecomp.codegen.dispatch.parameter import ArgumentStorage
    from tecomp.codegen.dispatch.process_runtime import process, process_text, use_threads
    from tecomp.codegen.emit.compile import (
        compile_function,
        emit_assembly,
        interface_of,
        module_text,
        module_with_lines,
    )
    from tecomp.codegen.emit.parallel import min_iterations_per_task
    from tecomp.codegen.emit.pre_emission_passes import (
        branch_on_masks,
        hoist_divisions,
        promote_accumulators,
    )
    from tecomp.codegen.llvm.code_cache import (
        Store,
        StoreContents,
        compiler_fingerprint,
        current_store,
        digest,
    )
    from tecomp.codegen.llvm.compiled import (
        CompiledFunction,
        ModuleText,
        number_llvm_lines,
        with_line_table,
    )
    from tecomp.codegen.llvm.ir_builder import FunctionBuilder, LlvmSource, Options, register_type
    from tecomp.codegen.llvm.jit import LlvmTarget, dots_of, has_fma, host, link, object_code
    from tecomp.codegen.llvm.pass_selection import (
        has_loop_work,
        has_plain_loops,
        has_products_in_branches,
    )
    from tecomp.codegen.math.vector_values import FloatVector, call_libm_per_lane
    from tecomp.codegen.memory.vector_access import LaneRun, divisor, runs_of
    from tecomp.codegen.ops.vector_legalization import active_prefix, legalize_vectors
    from tecomp.codegen.runtime.runtime_structs import (
        ALIGNMENT,
        BLOCK,
        CALLERS,
        FIRST_ARGUMENT_WORD,
        LIMIT,
        RECORDS,
        TABLE,
        StructLayout,
        expand_fields,
        words,
    )
    from tecomp.codegen.runtime.thread_pool_ir import pool_text
else:
    __getattr__, __dir__ = lazy_names(__name__)
