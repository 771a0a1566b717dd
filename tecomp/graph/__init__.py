"""Program compiler: layout assignment, fusion, memory planning and linking of many operations."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tecomp.lazy_imports import lazy_names

if TYPE_CHECKING:
    from tecomp.graph.canonicalize import with_conversions_apart
    from tecomp.graph.compilation_steps import compiled, details_from, details_of
    from tecomp.graph.compile_options import asked_for
    from tecomp.graph.constraint_solver import Factor, minimise
    from tecomp.graph.dag import Graph, graph_of
    from tecomp.graph.definition_keys import definitions_from, definitions_text
    from tecomp.graph.fusion import border_of
    from tecomp.graph.layout_assignment import choose_layouts
    from tecomp.graph.layout_candidates import candidates
    from tecomp.graph.layout_combinations import Machine, Way
    from tecomp.graph.layout_demands import parts_along
    from tecomp.graph.layout_problem import Problem, State, moved_for, problem_of
    from tecomp.graph.layout_result import Layouts
    from tecomp.graph.memory_plan import Needed, check_fits, plan_memory, written_over
    from tecomp.graph.planning import Outline, outline_of
    from tecomp.graph.program import Program
    from tecomp.graph.report import ProgramReport
    from tecomp.graph.scratchpad_residency import Residency
    from tecomp.graph.sizes import bytes_of, sizes_of
    from tecomp.graph.value_placement import SpillKind
else:
    __getattr__, __dir__ = lazy_names(__name__)
