"""Run-time index checks.

A failure record consists of the failure kind (0 for none), the site number, and two values: the
index and the extent, the number of bytes that could not be allocated, or an exception number.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence

from tecomp.codegen.llvm.ir_builder import (
    FunctionBuilder,
    begin_if,
    broadcast,
    end_if,
    register_type,
    splat,
    suffix,
    vector_of,
)
from tecomp.codegen.ops.arithmetic import cast
from tecomp.codegen.runtime.runtime_structs import OUT_OF_BOUNDS, call_runtime
from tecomp.errors import InternalError
from tecomp.ir.nodes.dtype import INT64
from tecomp.ir.nodes.expr import BinOp, Broadcast, Call, Const, Expr, binary, index_value
from tecomp.ir.nodes.stmt import Buffer


def check_index(code: FunctionBuilder, node: Expr, active: str | None) -> Generator[Expr, str, str]:
    """Emit a check that an index is in bounds; failures in `active` lanes are recorded."""
    if not isinstance(node, Call):
        raise InternalError("`{node}` is not a bounds check of an index", node=node)
    index, extent, site = node.args
    inner = index.value if isinstance(index, Broadcast) else index
    # A uniform index is checked once.
    lanes = inner.dtype.lanes if active is None else index.dtype.lanes
    value = yield (inner if active is None else index)
    bound = yield _first_lane(extent)
    ok = emit_bounds_check(
        code,
        cast(code, value, inner.dtype.with_lanes(lanes), INT64.with_lanes(lanes)),
        cast(code, bound, extent.dtype.scalar, INT64),
        lanes,
        active,
        _number(site),
    )
    return ok if lanes == node.dtype.lanes else broadcast(code, ok, "i1", node.dtype.lanes)


def _first_lane(node: Expr) -> Expr:
    return node.value if isinstance(node, Broadcast) else node


def _number(node: Expr) -> int:
    node = _first_lane(node)
    if not isinstance(node, Const):
        raise InternalError("the site of a bounds check must be a literal, got `{node}`", node=node)
    return int(node.value)


def emit_bounds_check(code: FunctionBuilder, index: str, extent: str, lanes: int, active: str
        | None, site: int) -> str:
    """Emit the mask `0 <= index < extent` in int64; failures are recorded under `site`."""
    kind, mask = register_type(INT64.with_lanes(lanes)), vector_of("i1", lanes)
    # An unsigned comparison also rejects negative indices.
    ok = code.op(f"icmp ult {kind} {index}, {broadcast(code, extent, 'i64', lanes)}")
    out_of_bounds = code.op(f"xor {mask} {ok}, {splat('true', 'i1', lanes)}")
    if active is not None:
        out_of_bounds = code.op(f"and {mask} {out_of_bounds}, {active}")
    failed = code.call("i1", f"llvm.vector.reduce.or.{suffix(mask)}", [(mask, out_of_bounds)]) if (
        lanes > 1) else out_of_bounds
    guard = begin_if(code, failed)
    if lanes > 1:
        bits = code.op(f"bitcast {mask} {out_of_bounds} to i{lanes}")
        first = code.call(f"i{lanes}", f"llvm.cttz.i{lanes}", [(f"i{lanes}", bits), ("i1", "true")])
        index = code.op(f"extractelement {kind} {index}, i{lanes} {first}")
    record(code, OUT_OF_BOUNDS, str(site), index, extent)
    end_if(code, guard)
    return ok


def record(code: FunctionBuilder, kind: int, site: str, value: str, extent: str) -> None:
    """Record a failure unless one was recorded before."""
    words = (f"i64 {word}" for word in (kind, site, value, extent))
    call_runtime(code, "record", ["ptr %record", *words])


def check_axis(
    code: FunctionBuilder, buffer: Buffer, axis: int, index: Expr, active: str | None
) -> Generator[Expr, str, str]:
    """Emit a check that `index` is in bounds of `axis` of `buffer`, for `check_bounds`."""
    lanes = index.dtype.lanes
    value = cast(code, (yield index), index.dtype, INT64.with_lanes(lanes))
    if buffer.flat:
        low, high = _places(buffer)
        first = broadcast(code, (yield low), "i64", lanes)
        value = code.op(f"sub {register_type(INT64.with_lanes(lanes))} {value}, {first}")
        extent = yield binary(BinOp.SUB, high, low)
        text = f"the places of {buffer.name}[{shape_text(buffer.shape)}]"
    else:
        extent = yield index_value(buffer.shape[axis])
        text = f"axis {axis} of {buffer.name}[{shape_text(buffer.shape)}]"
    return emit_bounds_check(code, value, extent, lanes, active, code.module.site(text))


def _places(buffer: Buffer) -> tuple[Expr, Expr]:
    """Return the minimum index of a flat buffer and its maximum index plus one."""
    low: Expr = index_value(0)
    high: Expr = index_value(1)
    for extent, stride in zip(buffer.shape, buffer.strides or (), strict=True):
        last = binary(BinOp.SUB, index_value(extent), index_value(1))
        end = binary(BinOp.MUL, last, index_value(stride))
        low = binary(BinOp.ADD, low, binary(BinOp.MIN, end, index_value(0)))
        high = binary(BinOp.ADD, high, binary(BinOp.MAX, end, index_value(0)))
    return low, high


def shape_text(shape: Sequence[int | Expr]) -> str:
    """Return the extents as text, separated by commas."""
    return ", ".join(str(extent) for extent in shape)
