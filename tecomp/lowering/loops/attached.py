"""What is computed inside of loops: the stages attached there, and which elements of them."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from types import MappingProxyType

from tecomp.compute.axis import IterVar
from tecomp.compute.operation import Operation
from tecomp.ir.expr import Expr
from tecomp.ir.stmt import Stmt, seq
from tecomp.lowering.loops.arguments import check_computed_inside
from tecomp.lowering.loops.prefetch import fetch_ahead
from tecomp.lowering.loops.producer import Producer, memory_of
from tecomp.lowering.loops.work import StageWork
from tecomp.lowering.stages.footprint import Part, evaluated, needed, propagated
from tecomp.lowering.stages.program import Definition, Program
from tecomp.lowering.stages.whole_tiles import Bounds, Memory, whole_tiles, with_padding
from tecomp.lowering.storage.rolling import Window
from tecomp.poly.point_sets import Points
from tecomp.poly.regions import Scope, box_around
