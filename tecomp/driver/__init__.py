"""The compiler driver: build callable kernels from schedules, and compile programs."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.driver.auto_schedule import (
        Choices,
        Knob,
        SchedulingProblem,
        build_default_schedule,
    )
    from tecomp.driver.build import ScheduledKernel
    from tecomp.driver.build_cache import BuildRequest, fingerprint, program_keys
    from tecomp.driver.calibrate import rates_of
    from tecomp.driver.lowering_dump import differences
    from tecomp.driver.memory_check import (
        check_fits,
        check_grid,
        check_memories,
        is_open,
        place_in_memories,
        plan,
    )
    from tecomp.driver.profiling import report_of, specialize_for_cost_model
    from tecomp.driver.program_api import (
        CompiledProgram,
        TunedKernel,
        TuningResult,
        TuningTrial,
        cost_text,
    )
    from tecomp.driver.static_shapes import in_numbers
else:
    __getattr__, __dir__ = lazy_names(__name__)
