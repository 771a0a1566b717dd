"""Program compiler: layout assignment, fusion, memory planning and linking of many operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.graph.canonicalize import extract_casts
    from tecomp.graph.compilation_steps import compile_native, details_from, details_of
    from tecomp.graph.compile_options import validate_request
    from tecomp.graph.constraint_solver import CostTable, minimise
    from tecomp.graph.dag import ProgramGraph, graph_of
    from tecomp.graph.definition_keys import definitions_from, definitions_text
    from tecomp.graph.fusion import group_inputs
    from tecomp.graph.layout_assignment import choose_layouts
    from tecomp.graph.layout_candidates import candidates
    from tecomp.graph.layout_combinations import LayoutCapabilities, LayoutCombination
    from tecomp.graph.layout_demands import parts_along
    from tecomp.graph.layout_problem import (
        LayoutProblem,
        LayoutState,
        build_layout_problem,
        moved_elements,
    )
    from tecomp.graph.layout_result import ProgramLayouts
    from tecomp.graph.memory_plan import (
        MemoryDemand,
        SymbolicArenaPlan,
        check_fits,
        plan_memory,
        reuse_input_buffer,
    )
    from tecomp.graph.planning import ProgramPlan, plan_program
    from tecomp.graph.program import Program
    from tecomp.graph.report import ProgramReport
    from tecomp.graph.scratchpad_residency import Residency
    from tecomp.graph.sizes import bytes_of, sizes_of, with_sizes
    from tecomp.graph.value_placement import SpillKind
else:
    __getattr__, __dir__ = lazy_names(__name__)
