"""tecomp: tensor expressions, schedules and memory layouts, compiled to native loops."""

from __future__ import annotations

import typing

from tecomp import moves, te, tir
from tecomp.compute.absent import absent as _absent
from tecomp.compute.accesses import Access, Accesses, Affine, accesses
from tecomp.compute.terms import computes_terms
from tecomp.constraints.check import Violation, check_constraints
from tecomp.constraints.wishes import Hint, hint, relayout_to, restickify
from tecomp.copies import conversion
from tecomp.copies import relayout as layout_copies
from tecomp.copies.relayout import Relayout, relayout
from tecomp.driver.build import build
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
from tecomp.lowering.pipeline import lower, lower_all
from tecomp.lowering.storage.apply_buffer_transforms import apply_buffer_transforms
from tecomp.lowering.storage.flatten import flatten_buffer
from tecomp.machine.descriptor import Target
from tecomp.machine.engine import Core, MatmulUnit, VectorUnit
from tecomp.machine.registry import list_targets
from tecomp.plugin.conformance import check_target
from tecomp.plugin.intrinsics import intrinsics
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.replay import replay

__version__ = "0.1.0"

# Layouts and formats lie below the compiler, which they name by protocols: here they meet.
Layout.copies = layout_copies
Format.converter = conversion

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
    "Relayout",
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


if not typing.TYPE_CHECKING:

    def __getattr__(name: str) -> object:
        raise _absent(__name__, name)
