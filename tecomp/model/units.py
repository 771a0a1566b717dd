"""Which unit of a machine's engine does an operation, and how long that takes."""

from __future__ import annotations

from collections.abc import Mapping
from math import prod

from tecomp.errors import TargetError
from tecomp.ir.algebra.extents import ceil_div
from tecomp.ir.language.dtype import DType
from tecomp.ir.language.tensor_op import TensorOp, Touch
from tecomp.ir.traversal.rewrite import walk
from tecomp.machine.engine import MatmulUnit, Unit


def unit_of(op: TensorOp, engine: Mapping[str, Unit]) -> Unit | None:
    """The unit that does `op`; None if there is none of that name that takes its operands' type.

    Raises:
        TargetError: the unit has no such mode.
    """
    unit = engine.get(op.unit)
    if unit is None or _type(op) not in (
        unit.inputs if isinstance(unit, MatmulUnit) else unit.types
    ):
        return None
    if op.mode and op.mode not in unit.cycles:
        raise TargetError(
            f"operation {op.name}: unit `{unit.name}` has no mode `{op.mode}`; its modes are "
            f"{', '.join(unit.cycles)}",
            kind="target-lacks",
        )
    return unit


def cycles_of(op: TensorOp, unit: Unit) -> float:
    """Of one operation, with all instances of the unit at work.

    A tile that is larger than that of the unit is cut into tiles of the unit, the last ones whole.
    """
    if isinstance(unit, MatmulUnit):
        mode = op.mode or unit.modes.get(_type(op)) or next(iter(unit.cycles))
        return _tiles(op.tile, unit) * unit.cycles[mode] / unit.instances
    each = unit.cycles.get(op.mode or op.name, unit.cycles.get("default", 1.0))
    return ceil_div(prod(op.tile), unit.lanes(_type(op))) * each / unit.instances


def _tiles(tile: tuple[int, ...], unit: MatmulUnit) -> int:
    own = unit.m, unit.n, unit.k
    if len(tile) != len(own):
        return ceil_div(prod(tile), prod(own))
    return prod(ceil_div(extent, most) for extent, most in zip(tile, own, strict=True))


def _type(op: TensorOp) -> DType:
    """Of its first input; of its output if it has none."""
    places = [node for node in walk(op.operands) if isinstance(node, Touch)]
    reads = [node for node in places if not node.is_written]
    return (reads or places)[0].place.dtype
