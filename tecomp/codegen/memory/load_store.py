"""Emit loads and stores with few instructions.

A buffer with one physical axis is a pointer to its elements. A buffer with several physical axes is
a pointer to a table of row pointers, one for each index of the leading axes, in row-major order.
"""

from __future__ import annotations

from collections.abc import Generator
from dataclasses import dataclass, replace
from typing import TypeAlias

from tecomp.codegen.llvm.ir_builder import (
    FunctionBuilder,
    OpenBranch,
    PassSelection,
    begin_if,
    broadcast,
    end_if,
    memory_type,
    register_type,
    shuffle_mask,
    splat,
    suffix,
    vector_of,
    zero,
)
from tecomp.codegen.memory.vector_access import (
    LaneRuns,
    alignment,
    expands_masked_loads,
    gather_lanes,
    is_streamed,
    load_prefix,
    load_within_page,
    masked_load,
    prefix_mask,
    runs_of,
    runtime_stride_ramp,
    scatter_lanes,
    store_prefix,
    stream_store,
)
from tecomp.codegen.ops.arithmetic import cast
from tecomp.codegen.ops.bounds_checks import check_axis
from tecomp.codegen.ops.index_ramps import as_ramp
from tecomp.codegen.ops.vector_legalization import active_prefix, next_power_of_two
from tecomp.errors import InternalError
from tecomp.ir.nodes.dtype import INT64, DType
from tecomp.ir.nodes.expr import Binary, BinOp, BufferLoad, Const, Expr, Ramp, Select, index_value
from tecomp.ir.nodes.expr import cast as cast_expr
from tecomp.ir.nodes.stmt import Buffer, BufferStore, Prefetch

_WORD = 4
"""Bytes of the float that narrower floats are computed in; integers may be twice as wide."""
_MAX_SHUFFLED_STRIDE = 4
"""Maximum stride at which loading the whole span and shuffling pays."""

Rule: TypeAlias = "Generator[Expr, str, str]"


@dataclass(frozen=True, slots=True)
class _Access:
    """Predicated access of a buffer.

    Attributes:
        buffer: Accessed buffer.
        indices: Physical indices; only the last may be a vector.
        predicate: Remaining predicate, or None; prefix masks are expressed by `count`.
        dtype: Dtype of the value, including all lanes.
        count: Number of leading lanes that are active.
    """

    buffer: Buffer
    indices: tuple[Expr, ...]
    predicate: Expr | None
    dtype: DType
    count: int

    @property
    def last(self) -> Expr:
        """Index of the last axis, the only index that may be a vector."""
        return self.indices[-1] if self.indices else Const(0)

    @property
    def repeats(self) -> int:
        """Number of lanes of the value for each index (lanes of the buffer dtype)."""
        return self.buffer.dtype.lanes


def _access(code: FunctionBuilder, node: BufferLoad | BufferStore, dtype: DType) -> _Access:
    predicate, count = node.predicate, dtype.lanes
    # Bounds checks require a mask, even for a prefix of lanes.
    first = None if code.module.options.check_bounds else active_prefix(predicate)
    if predicate is not None and first is not None:
        count = first * (count // predicate.dtype.lanes)
        predicate = None
    return _Access(node.buffer, node.indices, predicate, dtype, count)


def load(code: FunctionBuilder, node: BufferLoad) -> Rule:
    """Emit a load; inactive lanes hold zero or an unspecified value that is never used.

    Padding lanes of a widened vector never affect a stored value.
    """
    column = code.columns.get(id(node))
    if column is not None:
        transposed: str = yield from column.read(code)
        return transposed
    access = _access(code, node, node.dtype)
    guards, mask = yield from _open_branches(code, access)
    value = yield from _read(code, access, mask)
    kind = register_type(node.dtype)
    for guard in reversed(guards):
        value = end_if(code, guard, value, kind, zero(node.dtype))
    return value


def store(code: FunctionBuilder, node: BufferStore) -> Rule:
    """Emit a predicated store; the value is computed only if the store is executed."""
    access = _access(code, node, node.value.dtype)
    guards, mask = yield from _open_branches(code, access)
    value = yield node.value
    if isinstance(node.value, Select) and node.value.dtype.lanes > 1:
        # If one choice is the stored-to element, LLVM would emit a masked store, which is many
        # times slower on most machines. The freeze has no effect but hides the pattern from LLVM.
        value = code.op(f"freeze {register_type(node.value.dtype)} {value}")
    column = code.columns.get(id(node))
    if column is None:
        yield from _write(code, access, mask, value)
    else:
        width = column.square.width
        for position, row in column.filled(code, value):
            yield from _write(code, replace(access, indices=position, count=width), None, row)
    for guard in reversed(guards):
        end_if(code, guard)
    return ""


def prefetch(code: FunctionBuilder, node: Prefetch) -> Rule:
    """Emit a prefetch of the cache line of an element, under its predicate."""
    element = node.element
    assert isinstance(element, BufferLoad)
    access = _access(code, element, element.dtype)
    guards, _ = yield from _open_branches(code, access)
    _, address, _ = yield from _place(code, access, None)
    # Arguments: read access, high temporal locality, data cache.
    code.run("llvm.prefetch.p0", [("ptr", address), *[("i32", n) for n in ("0", "3", "1")]])
    for guard in reversed(guards):
        end_if(code, guard)
    return ""


def _open_branches(
    code: FunctionBuilder, access: _Access
) -> Generator[Expr, str, tuple[list[OpenBranch], str | None]]:
    """Open branches for scalar conditions of an access and return the mask of vector conditions."""
    _verify(access)
    guards: list[OpenBranch] = []
    mask: str | None = None
    if access.predicate is not None:
        condition = yield access.predicate
        if access.predicate.dtype.lanes == 1:
            guards.append(begin_if(code, condition))
        else:
            is_full = access.predicate.dtype.lanes == access.dtype.lanes
            mask = condition if is_full else _expand_mask(code, condition, access)
    if code.module.options.check_bounds:
        mask = yield from _check(code, access, guards, mask)
    return guards, mask


def _verify(access: _Access) -> None:
    buffer, lanes = access.buffer, access.last.dtype.lanes
    rank = max(buffer.index_count, 1)
    if max(len(access.indices), 1) != rank or access.dtype.lanes != lanes * access.repeats:
        raise InternalError(
            "{buffer} has {rank} axes of {dtype}, but is accessed with {index_count} indices and a "
            "value of {access_dtype}",
            buffer=buffer.name, rank=rank, dtype=buffer.dtype, index_count=len(access.indices),
            access_dtype=access.dtype,
        )
    if rank > 1 and len(buffer.axis_separators) != rank - 1:
        raise InternalError(
            "{buffer} has {rank} axes that are not physical axes; flatten it",
            buffer=buffer.name, rank=rank,
        )
    if buffer.strides is not None and not buffer.flat:
        raise InternalError(
            "{buffer} has strides that are not in its indices; flatten it",
            buffer=buffer.name,
        )
    if access.predicate is None:
        return
    if access.predicate.dtype.lanes not in (1, lanes, access.dtype.lanes):
        raise InternalError(
            "an access of {buffer} at {lanes} lanes has a predicate of {dtype_lanes} lanes",
            buffer=buffer.name, lanes=lanes, dtype_lanes=access.predicate.dtype.lanes,
        )


def _check(
    code: FunctionBuilder, access: _Access, guards: list[OpenBranch], mask: str | None
) -> Generator[Expr, str, str | None]:
    """Emit bounds checks of the indices; `mask` has one lane for each lane of the value."""
    for axis, index in enumerate(access.indices):
        lanes = index.dtype.lanes
        active = mask and _places_touched(code, mask, access) if lanes > 1 else None
        inside = yield from check_axis(code, access.buffer, axis, index, active)
        if lanes == 1:
            # The index is uniform, so a failed check must stop the whole vector.
            guards.append(begin_if(code, inside))
            continue
        inside = _expand_mask(code, inside, access)
        kind = vector_of("i1", access.dtype.lanes)
        mask = inside if mask is None else code.op(f"and {kind} {mask}, {inside}")
    return mask


def _expand_mask(code: FunctionBuilder, mask: str, access: _Access) -> str:
    """Expand a mask with one lane for each index to one lane for each scalar of the value."""
    if access.repeats == 1:
        return mask
    lanes = access.last.dtype.lanes
    lane_map = [k for k in range(lanes) for _ in range(access.repeats)]
    return _shuffle(code, mask, lanes, lane_map)


def _places_touched(code: FunctionBuilder, mask: str, access: _Access) -> str:
    """Reduce a mask with one lane for each scalar of the value to one lane for each index."""
    lanes = access.last.dtype.lanes
    joined = ""
    for inner in range(access.repeats):
        lane_map = [inner + access.repeats * k for k in range(lanes)]
        part = mask if access.repeats == 1 else _shuffle(code, mask, access.dtype.lanes, lane_map)
        joined = code.op(f"or {vector_of('i1', lanes)} {joined}, {part}") if joined else part
    return joined


def _shuffle(code: FunctionBuilder, mask: str, lanes: int, lane_map: list[int]) -> str:
    kind = vector_of("i1", lanes)
    return code.op(f"shufflevector {kind} {mask}, {kind} poison, {shuffle_mask(lane_map)}")


def _read(code: FunctionBuilder, access: _Access, mask: str | None) -> Rule:
    is_direct = mask is None and access.repeats == 1
    if is_direct and (runs := runs_of(access.last, access.count)) is not None:
        joined: str = yield from _in_runs(code, access, runs)
        return _as_value(code, access, joined)
    if is_direct and (ramp := runtime_stride_ramp(access.last)) is not None:
        base = yield from _row(code, access)
        joined = yield from gather_lanes(code, access.buffer, base, ramp, access.count)
        return _as_value(code, access, joined)
    stride, address, align = yield from _place(code, access, mask)
    kind, lanes = memory_type(access.dtype), access.dtype.lanes
    element, memory = memory_type(access.dtype.scalar), access.buffer.data
    if stride == 0:
        raw = code.read(f"load {element}, ptr {address}, align {align}", memory)
        raw = broadcast(code, raw, element, lanes)
    elif stride is None:
        raw = code.call(
            kind,
            f"llvm.masked.gather.{suffix(kind)}.v{lanes}p0",
            [
                (f"<{lanes} x ptr> align {align}", address),
                _mask(access, mask),
                (kind, "zeroinitializer"),
            ],
        )
    elif abs(stride) > 1:
        raw = _load_with_stride(code, access, address, abs(stride))
    elif _is_partial(access, mask) and _is_register(code, access):
        # The memory is local to the function, so inactive lanes may be read.
        raw = code.read(f"load {kind}, ptr {address}, align {align}", memory)
        raw = _select_active(code, access, mask, raw, "zeroinitializer")
    elif mask is None:
        raw = _side_by_side(code, access, address, align)
    elif expands_masked_loads(code, lanes, access.dtype.scalar.bytes):
        active = vector_of("i1", lanes), _reverse(code, access, mask, "i1", stride)
        is_nonempty = access.predicate in code.nonempty
        raw = load_within_page(
            code, kind, access.dtype.bytes, address, align, active, memory, is_nonempty=is_nonempty
        )
    else:
        active = vector_of("i1", lanes), _reverse(code, access, mask, "i1", stride)
        address = yield from _masked_address(code, access, active, address)
        raw = masked_load(code, kind, address, align, active)
    return _as_value(code, access, _reverse(code, access, raw, element, stride))


def _masked_address(
    code: FunctionBuilder, access: _Access, mask: tuple[str, str], address: str
) -> Rule:
    """Emit the address of a masked load; the row start if no lane is active.

    Far from the row, memory may be unmapped. A fully masked load does not fault there, but takes a
    hundred times longer.
    """
    if access.predicate in code.nonempty:
        return address
    base = yield from _row(code, access)
    bits = code.op(f"bitcast {mask[0]} {mask[1]} to i{access.dtype.lanes}")
    any_active = code.op(f"icmp ne i{access.dtype.lanes} {bits}, 0")
    return code.op(f"select i1 {any_active}, ptr {address}, ptr {base}")


def _as_value(code: FunctionBuilder, access: _Access, raw: str) -> str:
    """Convert a loaded value from its memory type to its register type."""
    kind, register = memory_type(access.dtype), register_type(access.dtype)
    if kind == register:
        return raw
    if not access.dtype.is_bool:
        return code.op(f"trunc {kind} {raw} to {register}")
    return code.op(f"icmp ne {kind} {raw}, {splat('0', 'i8', access.dtype.lanes)}")


def _in_runs(code: FunctionBuilder, access: _Access, runs: LaneRuns) -> Rule:
    """Emit contiguous loads and shuffles for an access whose lanes are in a few runs."""
    scalar, lanes = access.dtype.scalar, access.dtype.lanes
    kind, element = memory_type(access.dtype), memory_type(scalar)
    row = yield from _row(code, access)
    base = code.op(f"getelementptr {element}, ptr {row}, i64 {(yield runs.base)}")
    joined = "poison"
    for number, run in enumerate(runs.runs):
        run_address = code.op(f"getelementptr {element}, ptr {base}, i64 {run.start}")
        part = load_prefix(code, element, scalar.bytes, run.count, lanes, run_address, scalar.bytes,
                          access.buffer.data)
        chosen = [lanes + offset if source == number else lane
                  for lane, (source, offset) in enumerate(runs.lanes)]
        chosen += [0] * (lanes - len(chosen))
        joined = code.op(
            f"shufflevector {kind} {joined}, {kind} {part}, {shuffle_mask(chosen)}")
    return joined


def _side_by_side(code: FunctionBuilder, access: _Access, address: str, align: int) -> str:
    """Emit a contiguous load of the active lanes from `address` on."""
    kind, lanes = memory_type(access.dtype), access.dtype.lanes
    if access.count == next_power_of_two(lanes):
        return code.read(f"load {kind}, ptr {address}, align {align}", access.buffer.data)
    scalar = access.dtype.scalar
    return load_prefix(code, memory_type(scalar), scalar.bytes, access.count, lanes, address, align,
                      access.buffer.data)


def _write(
    code: FunctionBuilder, access: _Access, mask: str | None, value: str
) -> Generator[Expr, str, None]:
    kind, lanes, memory = memory_type(access.dtype), access.dtype.lanes, access.buffer.data
    if kind != register_type(access.dtype):
        value = code.op(f"zext {register_type(access.dtype)} {value} to {kind}")
    is_direct = mask is None and access.repeats == 1
    if is_direct and (ramp := runtime_stride_ramp(access.last)) is not None:
        base = yield from _row(code, access)
        yield from scatter_lanes(code, access.buffer, base, ramp, access.count, value)
        return
    stride, address, align = yield from _place(code, access, mask, reads=False)
    if stride is None:
        code.run(
            f"llvm.masked.scatter.{suffix(kind)}.v{lanes}p0",
            [(kind, value), (f"<{lanes} x ptr> align {align}", address), _mask(access, mask)],
        )
        return
    scalar = access.dtype.scalar
    value = _reverse(code, access, value, memory_type(scalar), stride)

    def write(part: str, operand: str, pointer: str, known: int, size: int) -> None:
        if is_streamed(access.buffer, size):
            stream_store(code, part, operand, pointer, known, memory)
        else:
            code.write(f"store {part} {operand}, ptr {pointer}, align {known}", memory)

    if _is_partial(access, mask) and _is_register(code, access):
        # A masked store would prevent LLVM from promoting this buffer to a register.
        before = code.op(f"load {kind}, ptr {address}, align {align}")
        value = _select_active(code, access, mask, value, before)
        write(kind, value, address, align, access.dtype.bytes)
    elif mask is not None:
        name = f"llvm.masked.store.{suffix(kind)}.p0"
        if may_be_narrowed(scalar):
            mask = _unknown(code, mask, lanes)
        active = vector_of("i1", lanes), _reverse(code, access, mask, "i1", stride)
        code.run(name, [(kind, value), (f"ptr align {align}", address), active])
    elif access.count == next_power_of_two(lanes):
        write(kind, value, address, align, access.dtype.bytes)
    else:
        store_prefix(code, memory_type(scalar), scalar.bytes, access.count, lanes, value, address,
                    align, write)


def may_be_narrowed(scalar: DType) -> bool:
    """Return whether a value may be truncated, in which case LLVM may store too many bytes."""
    return scalar.bytes < (_WORD if scalar.kind == "float" else 2 * _WORD)


def _unknown(code: FunctionBuilder, mask: str, lanes: int) -> str:
    """Hide from LLVM which lanes a mask has.

    LLVM miscompiles the masked store of a truncated vector with a single known lane: it stores the
    lane with its width before the truncation.
    """
    true = code.op('call i32 asm "", "=r,0"(i32 1)')
    all_lanes = broadcast(code, code.op(f"icmp ne i32 {true}, 0"), "i1", lanes)
    return code.op(f"and {vector_of('i1', lanes)} {mask}, {all_lanes}")


def _load_with_stride(code: FunctionBuilder, access: _Access, address: str, step: int) -> str:
    """Emit a load with a small stride as contiguous loads and shuffles.

    The first and last element belong to the access, so the memory between them is readable.
    """
    lanes, count, element = access.dtype.lanes, access.count, memory_type(access.dtype.scalar)
    kind, align = memory_type(access.dtype), access.buffer.dtype.scalar.bytes
    if (whole_span := _whole_span(code, access, step)) is not None:
        return whole_span
    # The last load ends with the last element, as the memory after it may be unmapped.
    starts = [min(k * count, step * (count - 1) + 1 - count) for k in range(step)]
    joined = ""
    for number, start in enumerate(starts):
        part_address = code.op(f"getelementptr {element}, ptr {address}, i64 {start}")
        part = _side_by_side(code, access, part_address, align)
        chosen = []
        for lane in range(lanes):
            origin = step * min(lane, count - 1)
            holder = min(origin // count, step - 1)
            before = origin if number == 1 else lane
            # Lanes of later loads are unspecified here.
            chosen.append(lanes + origin - start if holder == number else before % lanes)
        joined = part if not number else code.op(
            f"shufflevector {kind} {joined}, {kind} {part}, {shuffle_mask(chosen)}"
        )
    return joined


def _whole_span(code: FunctionBuilder, access: _Access, step: int) -> str | None:
    """Emit a load with a small stride as one load of stack memory and a shuffle, or return None.

    LLVM promotes such memory to registers if vectors that are stored do not overlap partly with
    vectors that are loaded.
    """
    ramp, lanes = as_ramp(access.last), access.dtype.lanes
    if ramp is None or not isinstance(ramp.base, Const) or not isinstance(ramp.stride, Const):
        return None
    first, stride = int(ramp.base.value), int(ramp.stride.value)
    low = min(first, first + stride * (access.count - 1))
    offset, span = low % step, step * lanes
    data, scalar = code.value_of(access.buffer.data), access.dtype.scalar
    if low < 0 or span != next_power_of_two(span) or access.buffer.index_count > 1:
        return None
    if (low - offset + span) * scalar.bytes > code.on_stack.get(data, 0):
        return None
    kind, element = memory_type(scalar.with_lanes(span)), memory_type(scalar)
    address = code.op(f"getelementptr inbounds {element}, ptr {data}, i64 {low - offset}")
    part = code.read(f"load {kind}, ptr {address}, align {scalar.bytes}", access.buffer.data)
    chosen = [offset + step * min(lane, access.count - 1) for lane in range(lanes)]
    return code.op(f"shufflevector {kind} {part}, {kind} poison, {shuffle_mask(chosen)}")


def _is_partial(access: _Access, mask: str | None) -> bool:
    """Return whether some lanes are inactive."""
    return mask is not None or access.count < access.dtype.lanes


def _is_register(code: FunctionBuilder, access: _Access) -> bool:
    """Return whether an access has a constant address in stack memory of this function.

    LLVM promotes such memory to registers, unless it is used by a masked load or store.
    """
    ramp = as_ramp(access.last)
    if ramp is None or not isinstance(ramp.base, Const) or access.buffer.index_count > 1:
        return False
    if not isinstance(ramp.stride, Const) or ramp.stride.value != 1 or ramp.base.value < 0:
        return False
    end = (int(ramp.base.value) + ramp.lanes) * access.buffer.dtype.bytes
    return end <= code.on_stack.get(code.value_of(access.buffer.data), 0)


def _select_active(
    code: FunctionBuilder, access: _Access, mask: str | None, value: str, other: str
) -> str:
    """Select `value` in active lanes and `other` in the rest; both in the memory type."""
    kind, (lanes, active) = memory_type(access.dtype), _mask(access, mask)
    return code.op(f"select {lanes} {active}, {kind} {value}, {kind} {other}")


def _mask(access: _Access, mask: str | None) -> tuple[str, str]:
    """Return type and operand of the mask of active lanes."""
    lanes = access.dtype.lanes
    if mask is not None or lanes == 1:
        return vector_of("i1", lanes), mask or "true"
    return prefix_mask(access.count, lanes)


def _reverse(code: FunctionBuilder, access: _Access, value: str, scalar: str, stride: int
        | None) -> str:
    """Reverse the active lanes of a value if the stride is negative."""
    if stride is None or stride >= 0:
        return value
    count, lanes = access.count, access.dtype.lanes
    kind = vector_of(scalar, lanes)
    backwards = shuffle_mask([*reversed(range(count)), *range(count, lanes)])
    return code.op(f"shufflevector {kind} {value}, {kind} poison, {backwards}")


def _place(
    code: FunctionBuilder, access: _Access, mask: str | None, *, reads: bool = True
) -> Generator[Expr, str, tuple[int | None, str, int]]:
    """Return the stride of an access between lanes, its address and the alignment.

    The stride is 1 or -1, for unmasked loads also up to 4 in magnitude (the address is the lowest),
    0 if all lanes load one element, and None for one address for each lane. A scalar has stride 1.
    """
    base = yield from _row(code, access)
    last, lanes = access.last, access.last.dtype.lanes
    element, elem_align = memory_type(access.buffer.dtype.scalar), access.buffer.dtype.scalar.bytes
    # The address of a masked access is that of lane 0, which may be out of bounds if inactive.
    gep = "getelementptr inbounds" if mask is None else "getelementptr"
    ramp = as_ramp(last) if lanes > 1 else Ramp(last, Const(1), 1)
    step = int(ramp.stride.value) if ramp is not None and isinstance(ramp.stride, Const) else None
    contiguous = step == 1 or (step == -1 and access.repeats == 1)
    is_small_step = step is not None and (step == 0
        or (abs(step) <= _MAX_SHUFFLED_STRIDE and lanes >= _MAX_SHUFFLED_STRIDE))
    # The memory between the elements may be read, but never written.
    is_shuffled = is_small_step and access.repeats == 1 and mask is None and reads
    if ramp is not None and step is not None and (contiguous or is_shuffled):
        last_step = access.count // access.repeats - 1
        first = ramp.base if step >= 0 else ramp.base + step * last_step
        align = alignment(code, access.buffer, first) if access.dtype.lanes > 1 else elem_align
        if access.repeats == 1 and (parts := _split_constant(code, first)) is not None:
            # The first part alone may be out of bounds, so it is not `inbounds`.
            start = code.op(f"getelementptr {element}, ptr {base}, i64 {(yield parts[0])}")
            return step, code.op(f"getelementptr {element}, ptr {start}, i64 {parts[1]}"), align
        index = cast(code, (yield first), first.dtype, INT64)
        if access.repeats > 1:
            index = code.op(f"mul i64 {index}, {access.repeats}")
        return step, code.op(f"{gep} {element}, ptr {base}, i64 {index}"), align
    indices = yield from _lane_indices(code, access, last)
    index_kind = vector_of("i64", access.dtype.lanes)
    return None, code.op(f"getelementptr {element}, ptr {base}, {index_kind} {indices}"), elem_align


def _split_constant(code: FunctionBuilder, index: Expr) -> tuple[Expr, int] | None:
    """Split an index `x + number` into x and the number, or return None.

    The number becomes an immediate offset of the instruction. LLVM would also split the sum, but in
    quadratic time in the uses of x: 4 s for 2,000 consecutive elements. With the loop vectorizer
    (`PassSelection.ALL`) the index is not split, because only the whole address is `inbounds`.
    """
    if code.passes is PassSelection.ALL or index.dtype != INT64:
        return None
    match index:
        case Binary(BinOp.ADD, x, Const(int() as number)):
            return x, number
        case Binary(BinOp.SUB, x, Const(int() as number)):
            return x, -number
    return None


def _lane_indices(code: FunctionBuilder, access: _Access, last: Expr) -> Rule:
    """Emit the scalar index of every lane of the value."""
    lanes, total = last.dtype.lanes, access.dtype.lanes
    index = cast(code, (yield last), last.dtype, INT64.with_lanes(lanes))
    if access.repeats == 1:
        return index
    narrow, wide = vector_of("i64", lanes), vector_of("i64", total)
    lane_map = [k for k in range(lanes) for _ in range(access.repeats)]
    repeated = code.op(
        f"shufflevector {narrow} {index}, {narrow} poison, {shuffle_mask(lane_map)}"
    )
    scaled = code.op(f"mul {wide} {repeated}, {splat(str(access.repeats), 'i64', total)}")
    inner = ", ".join(f"i64 {k}" for _ in range(lanes) for k in range(access.repeats))
    return code.op(f"add {wide} {scaled}, <{inner}>")


def _row(code: FunctionBuilder, access: _Access) -> Rule:
    """Emit the address of the row that the leading indices select."""
    buffer = access.buffer
    base = code.value_of(buffer.data)
    if buffer.index_count <= 1:
        return base
    if any(index.dtype.lanes > 1 for index in access.indices[:-1]):
        raise InternalError(
            "{buffer} has a vector index that is not the last one",
            buffer=buffer.name,
        )
    row = cast_expr(INT64, access.indices[0])
    for extent, index in zip(buffer.shape[1:-1], access.indices[1:-1], strict=True):
        row = row * index_value(extent) + index
    number = yield row
    slot = code.op(f"getelementptr ptr, ptr {base}, i64 {number}")
    # A row table is constant after its initialization.
    return code.op(f"load ptr, ptr {slot}, align 8, !invariant.load !0", "row")
