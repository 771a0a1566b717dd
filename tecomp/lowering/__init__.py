"""Lowering of schedules to flat IR: loop nest construction and lowering passes."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.lowering.loops.loop_nest import build_nest
    from tecomp.lowering.pipeline import PASSES, STAGES, LoweringResult, lower_all
    from tecomp.lowering.stages.program import prepare
    from tecomp.lowering.storage.allocation import lower_storage, place_buffers
    from tecomp.lowering.storage.buffer_rewrite import rename_duplicates
    from tecomp.lowering.storage.buffering import double_buffers, roll_buffers
    from tecomp.lowering.storage.flatten_buffer import flatten_buffer
    from tecomp.lowering.storage.memory_planner import (
        LiveInterval,
        assign_offsets,
        peak_live_bytes,
        plan_arenas,
    )
    from tecomp.lowering.storage.physical_layout import apply_buffer_transforms, fill_padding
    from tecomp.lowering.tensor_ops.pattern_match import expand_tensor_ops
    from tecomp.lowering.vectorize.unroll import unroll_loops
    from tecomp.lowering.vectorize.vector_expr import pack_reads
    from tecomp.lowering.vectorize.vectorize import vectorize_loops
else:
    __getattr__, __dir__ = lazy_names(__name__)
