"""tecomp: tensor expressions, schedules and memory layouts, compiled to native loops.

A name is loaded when it is first asked for: arrays do not wait for schedules, nor both for layouts.
"""

from __future__ import annotations

import typing
from importlib import import_module

if typing.TYPE_CHECKING:
    from tecomp import moves, te, tir
    from tecomp.compute.accesses import Access, Accesses, accesses
    from tecomp.compute.affine import Affine
    from tecomp.compute.terms import computes_terms
    from tecomp.constraints.check import Violation, check_constraints
    from tecomp.constraints.wishes import Hint, hint, relayout_to, restickify
    from tecomp.copies.relayout import Relayout, relayout
    from tecomp.driver.build import build
    from tecomp.driver.calibrate import calibrate
    from tecomp.driver.lower import lower
    from tecomp.driver.programs import compile, load
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
    from tecomp.ir.interpreter.evaluate import evaluate
    from tecomp.ir.outside.c_function import CFunction
    from tecomp.ir.outside.functions import (
        get_global_func,
        list_global_func_names,
        register_func,
        remove_global_func,
    )
    from tecomp.ir.parsing.parser import parse
    from tecomp.layout.descriptions.fixed_tiled import FixedTiledLayout
    from tecomp.layout.descriptions.layout import Layout
    from tecomp.layout.formats.format import Format
    from tecomp.layout.formats.named import storage_format
    from tecomp.layout.notations.blocked import blocked, blocked_tag
    from tecomp.layout.notations.cute import cute, cute_text
    from tecomp.layout.notations.xla import xla, xla_text
    from tecomp.layout.shards.shard import ShardLayout
    from tecomp.layout.shards.ttnn import TtnnLayout
    from tecomp.layout.shards.virtual_grid import GridMap
    from tecomp.layout.sticks.forms import StickFormat
    from tecomp.layout.sticks.stick import SpyreTensorLayout, StickLayout
    from tecomp.layout.sticks.types import DataFormats
    from tecomp.layout.transfers.dma import DmaNest
    from tecomp.layout.transfers.runs import Runs
    from tecomp.lowering.pipeline import lower_all
    from tecomp.lowering.storage.apply_buffer_transforms import apply_buffer_transforms
    from tecomp.lowering.storage.flatten import flatten_buffer
    from tecomp.machine.descriptor import Target
    from tecomp.machine.engine import Core, MatmulUnit, VectorUnit
    from tecomp.machine.rates import Rates
    from tecomp.machine.registry import list_targets
    from tecomp.model.roofline import Roofline
    from tecomp.plugin.conformance import check_target
    from tecomp.plugin.intrinsics import intrinsics
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
    "compile",
    "computes_terms",
    "cute",
    "cute_text",
    "evaluate",
    "flatten_buffer",
    "get_global_func",
    "hint",
    "intrinsics",
    "list_global_func_names",
    "list_targets",
    "load",
    "lower",
    "lower_all",
    "moves",
    "parse",
    "register_func",
    "relayout",
    "relayout_to",
    "remove_global_func",
    "replay",
    "restickify",
    "storage_format",
    "te",
    "tir",
    "xla",
    "xla_text",
]

_HOMES = {
    "tecomp.compute.accesses": "Access Accesses accesses",
    "tecomp.compute.affine": "Affine",
    "tecomp.compute.terms": "computes_terms",
    "tecomp.constraints.check": "Violation check_constraints",
    "tecomp.constraints.wishes": "Hint hint relayout_to restickify",
    "tecomp.copies.relayout": "Relayout relayout",
    "tecomp.driver.build": "build",
    "tecomp.driver.calibrate": "calibrate",
    "tecomp.driver.lower": "lower",
    "tecomp.driver.programs": "compile load",
    "tecomp.errors": (
        "CacheError CallError CapacityError DefinitionError InternalError LayoutError "
        "LowerError MissingError MissingLibraryError ParseError ScheduleError TargetError "
        "TeamError TecompError TecompWarning TypeMismatchError"
    ),
    "tecomp.ir.interpreter.evaluate": "evaluate",
    "tecomp.ir.outside.c_function": "CFunction",
    "tecomp.ir.outside.functions": (
        "get_global_func list_global_func_names register_func remove_global_func"
    ),
    "tecomp.ir.parsing.parser": "parse",
    "tecomp.layout.descriptions.fixed_tiled": "FixedTiledLayout",
    "tecomp.layout.descriptions.layout": "Layout",
    "tecomp.layout.formats.format": "Format",
    "tecomp.layout.formats.named": "storage_format",
    "tecomp.layout.notations.blocked": "blocked blocked_tag",
    "tecomp.layout.notations.cute": "cute cute_text",
    "tecomp.layout.notations.xla": "xla xla_text",
    "tecomp.layout.shards.shard": "ShardLayout",
    "tecomp.layout.shards.ttnn": "TtnnLayout",
    "tecomp.layout.shards.virtual_grid": "GridMap",
    "tecomp.layout.sticks.forms": "StickFormat",
    "tecomp.layout.sticks.stick": "SpyreTensorLayout StickLayout",
    "tecomp.layout.sticks.types": "DataFormats",
    "tecomp.layout.transfers.dma": "DmaNest",
    "tecomp.layout.transfers.runs": "Runs",
    "tecomp.lowering.pipeline": "lower_all",
    "tecomp.lowering.storage.apply_buffer_transforms": "apply_buffer_transforms",
    "tecomp.lowering.storage.flatten": "flatten_buffer",
    "tecomp.machine.descriptor": "Target",
    "tecomp.machine.engine": "Core MatmulUnit VectorUnit",
    "tecomp.machine.rates": "Rates",
    "tecomp.machine.registry": "list_targets",
    "tecomp.model.roofline": "Roofline",
    "tecomp.plugin.conformance": "check_target",
    "tecomp.plugin.intrinsics": "intrinsics",
    "tecomp.poly.maps.index_map": "IndexMap",
    "tecomp.scheduling.replay": "replay",
}
"""The names that each module has for users."""

_ROOMS = frozenset(("array", "dist", "moves", "schedules", "te", "tir", "topi"))
"""Modules that are used as they are."""

_HOME = {name: home for home, names in _HOMES.items() for name in names.split()}


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        if name in _ROOMS:
            return import_module(f"tecomp.{name}")
        home = _HOME.get(name)
        if home is None:
            raise import_module("tecomp.compute.absent").absent(__name__, name)
        value = globals()[name] = getattr(import_module(home), name)
        return value

    def __dir__() -> list[str]:
        return sorted({*__all__, *_ROOMS})
