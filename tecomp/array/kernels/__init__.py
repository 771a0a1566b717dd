"""Compilation of pending operations: size-polymorphic kernels, and programs for fixed shapes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.array.kernels.device_storage import device_buffer_of
    from tecomp.array.kernels.execution_plan import ExecutionPlan, execute_plan, select_kernel
    from tecomp.array.kernels.fusion import must_materialize
    from tecomp.array.kernels.kernel import (
        MANY,
        KernelRecipe,
        call_kernel,
        specialization_threshold,
    )
    from tecomp.array.kernels.static_programs import run_program
    from tecomp.array.kernels.strided_operands import (
        dense,
        fixed_view,
        merge_axes,
        operand_of,
        strides_of,
    )
    from tecomp.array.kernels.view_normalization import memory_order

__getattr__, __dir__ = lazy_names(__name__)
