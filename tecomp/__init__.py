"""tecomp: tensor expressions, schedules and memory layouts, compiled to native loops.

Public names are imported lazily, on first access: a program that only uses arrays does not load
schedules or layouts.
"""

from __future__ import annotations

import typing

from tecomp.lazy_imports import lazy_names as _lazy_names

if typing.TYPE_CHECKING:
    from tecomp import copy_schedule, te, tir
    from tecomp.compute.access_relations import Access, Accesses, accesses
    from tecomp.compute.affine_index import Affine
    from tecomp.compute.expression_analysis import computes_terms
    from tecomp.constraints.check import Violation, check_constraints
    from tecomp.constraints.user_hints import Hint, hint, relayout_to, restickify
    from tecomp.cost_model.roofline import Roofline
    from tecomp.driver.auto_schedule import Choices, knob
    from tecomp.driver.build import build
    from tecomp.driver.calibrate import calibrate
    from tecomp.driver.lowering_dump import lower
    from tecomp.driver.program_api import compile, load, tune
    from tecomp.driver.relayout import Relayout, relayout
    from tecomp.errors import (
        CacheError,
        CallError,
        CapacityError,
        DefinitionError,
        InternalError,
        LayoutError,
        LowerError,
        MissingError,
        MissingLibraryError,
        ParseError,
        ScheduleError,
        TargetError,
        TeamError,
        TecompError,
        TecompWarning,
        TypeMismatchError,
    )
    from tecomp.ir.extern.c_function import CFunction
    from tecomp.ir.extern.registry import (
        get_global_func,
        list_global_func_names,
        register_func,
        remove_global_func,
    )
    from tecomp.ir.interpreter.evaluate import evaluate
    from tecomp.ir.parser.func_parser import parse
    from tecomp.layout.core.layout import FixedTiledLayout, Layout
    from tecomp.layout.core.stick_formats import DataFormats, StickFormat
    from tecomp.layout.core.stick_layout import SpyreTensorLayout, StickLayout
    from tecomp.layout.dma import DmaNest, Runs
    from tecomp.layout.formats.format import Format
    from tecomp.layout.formats.registry import storage_format
    from tecomp.layout.notations.cute import (
        column_major,
        cute,
        cute_complement,
        cute_text,
        strided,
    )
    from tecomp.layout.notations.onednn_blocked import blocked, blocked_tag
    from tecomp.layout.notations.xla import xla, xla_text
    from tecomp.layout.sharding.shard_layout import ShardLayout
    from tecomp.layout.sharding.ttnn import TtnnLayout
    from tecomp.layout.sharding.virtual_grid import GridMap
    from tecomp.lowering.pipeline import lower_all
    from tecomp.lowering.storage.flatten_buffer import flatten_buffer
    from tecomp.lowering.storage.physical_layout import apply_buffer_transforms
    from tecomp.machine.components import Core, MatmulUnit, Rates, VectorUnit
    from tecomp.machine.descriptor import Target
    from tecomp.machine.registry import list_targets
    from tecomp.plugin.conformance import check_target, intrinsics
    from tecomp.poly.maps.index_map import IndexMap
    from tecomp.scheduling.replay import replay

__version__ = "0.1.0"

__all__ = [
    "Access",
    "Accesses",
    "Affine",
    "CFunction",
    "CacheError",
    "CallError",
    "CapacityError",
    "Choices",
    "Core",
    "DataFormats",
    "DefinitionError",
    "DmaNest",
    "FixedTiledLayout",
    "Format",
    "GridMap",
    "Hint",
    "IndexMap",
    "InternalError",
    "Layout",
    "LayoutError",
    "LowerError",
    "MatmulUnit",
    "MissingError",
    "MissingLibraryError",
    "ParseError",
    "Rates",
    "Relayout",
    "Roofline",
    "Runs",
    "ScheduleError",
    "ShardLayout",
    "SpyreTensorLayout",
    "StickFormat",
    "StickLayout",
    "Target",
    "TargetError",
    "TeamError",
    "TecompError",
    "TecompWarning",
    "TtnnLayout",
    "TypeMismatchError",
    "VectorUnit",
    "Violation",
    "__version__",
    "accesses",
    "apply_buffer_transforms",
    "blocked",
    "blocked_tag",
    "build",
    "calibrate",
    "check_constraints",
    "check_target",
    "column_major",
    "compile",
    "computes_terms",
    "copy_schedule",
    "cute",
    "cute_complement",
    "cute_text",
    "evaluate",
    "flatten_buffer",
    "get_global_func",
    "hint",
    "intrinsics",
    "knob",
    "list_global_func_names",
    "list_targets",
    "load",
    "lower",
    "lower_all",
    "parse",
    "register_func",
    "relayout",
    "relayout_to",
    "remove_global_func",
    "replay",
    "restickify",
    "storage_format",
    "strided",
    "te",
    "tir",
    "tune",
    "xla",
    "xla_text",
]

_SUBMODULES = frozenset(("array", "dist", "copy_schedule", "schedules", "te", "tir", "topi"))
"""Public submodules that are imported lazily as attributes of this package."""


def _missing(name: str) -> AttributeError:
    from tecomp.compute.tvm_compat import unsupported_name_message

    return unsupported_name_message(__name__, name)


if not typing.TYPE_CHECKING:
    __getattr__ = _lazy_names(
        __name__, submodules=_SUBMODULES, renamed={"moves": "tecomp.copy_schedule"},
        missing=_missing,
    )[0]

    def __dir__() -> list[str]:
        return sorted({*__all__, *_SUBMODULES})
