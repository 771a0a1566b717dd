"""The operations of a schedule, with the layouts that it gives to their tensors."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tecomp.compute.extern import ExternOp
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.tensor import Tensor
from tecomp.errors import LayoutError
from tecomp.ir.language.expr import Const, Expr
from tecomp.layout.descriptions.layout import Layout
from tecomp.layout.formats.format import Format
from tecomp.lowering.stages.program import inlined_bodies
from tecomp.poly.maps.index_map import IndexMap
from tecomp.scheduling.schedule import Schedule
from tecomp.scheduling.state import StageState


def scheduled(schedule: Schedule) -> Iterator[tuple[ComputeOp, Expr, Mapping[Tensor, Layout]]]:
    """Each computed stage that has memory: the operation, what it computes, and all layouts.

    Stages of `te.extern` are left out, as nothing says what they compute.

    Raises:
        LayoutError: an extent is no number.
    """
    state = schedule.state
    layouts: dict[Tensor, Layout] = {}
    for stage in state:
        for op in (stage.op, *(a for a, key in state.aliases.items() if key is stage.key),
                   stage.key):  # fmt: skip
            layouts.update(_layouts(stage, op))
    for key, body in inlined_bodies(state)[0].items():
        compute = state.stage(key).compute
        if not isinstance(compute, ExternOp):
            yield compute, body[0], layouts


def _layouts(stage: StageState, op: Operation) -> dict[Tensor, Layout]:
    found = {}
    for tensor in op.outputs:
        shape = tuple(extent for extent in tensor.shape if isinstance(extent, int))
        if len(shape) < len(tensor.shape):
            raise LayoutError(
                f"check_constraints: {tensor.name} has shape {list(tensor.shape)}; layouts are of "
                "constant shapes",
                kind="demand",
            )
        plain = Layout.row_major(shape, tensor.dtype)
        # A tensor without axes has a place all the same; maps begin with its axes.
        index_map = plain.index_map if shape or not stage.layout.maps else IndexMap((), ())
        separators = stage.layout.axis_separators
        for each in stage.layout.maps:
            last = IndexMap(each.initial_indices, each.final_indices, separators)
            index_map = index_map.then(last)
        pad = stage.layout.pad_value
        value = pad.value.value if pad is not None and isinstance(pad.value, Const) else None
        found[tensor] = Layout(
            shape, tensor.dtype, index_map, Format.plain(tensor.dtype),
            None if value is None else float(value), stage.scope,
        )
    return found
