"""Strided, gathered, partial and non-temporal vector access, and known alignment."""

from __future__ import annotations

from collections.abc import Callable, Generator, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

from tecomp.codegen.llvm.ir_builder import (
    WIDEST_VECTOR_BYTES,
    FunctionBuilder,
    memory_type,
    shuffle_mask,
    suffix,
    vector_of,
)
from tecomp.codegen.ops.arithmetic import cast as emit_cast
from tecomp.codegen.ops.index_ramps import as_ramp
from tecomp.codegen.ops.vector_legalization import next_power_of_two
from tecomp.codegen.runtime.runtime_structs import ALIGNMENT
from tecomp.ir.nodes.dtype import INT64, DType, represents_all
from tecomp.ir.nodes.expr import (
    Binary,
    BinOp,
    Broadcast,
    Cast,
    Const,
    Expr,
    Ramp,
    Select,
    Var,
    binary,
    cast,
)
from tecomp.ir.nodes.stmt import Buffer
from tecomp.ir.traversal.rewrite import children, fold
from tecomp.machine.components import Core

_MAX_BASE_MULTIPLE = 4
"""Number of lane addresses computed from one base: multiples of the step up to 4 are kept."""


def runtime_stride_ramp(index: Expr) -> Ramp | None:
    """Return a vector index as a ramp if its stride is not constant, else None."""
    ramp = as_ramp(index) if index.dtype.lanes > 1 else None
    return None if ramp is None or isinstance(ramp.stride, Const) else ramp


def gather_lanes(
    code: FunctionBuilder, buffer: Buffer, base: str, ramp: Ramp, count: int
) -> Generator[Expr, str, str]:
    """Load the first `count` lanes one by one from `base` on into a vector of all lanes."""
    scalar = buffer.dtype.scalar
    kind, element = memory_type(scalar.with_lanes(ramp.lanes)), memory_type(scalar)
    joined = "poison"
    for lane, address in enumerate((yield from _lane_addresses(code, scalar, base, ramp, count))):
        loaded = code.read(f"load {element}, ptr {address}, align {scalar.bytes}", buffer.data)
        joined = code.op(f"insertelement {kind} {joined}, {element} {loaded}, i64 {lane}")
    return joined


def scatter_lanes(
    code: FunctionBuilder, buffer: Buffer, base: str, ramp: Ramp, count: int, value: str
) -> Generator[Expr, str, None]:
    """Store the first `count` lanes of a vector one by one from `base` on, in lane order."""
    scalar = buffer.dtype.scalar
    kind, element = memory_type(scalar.with_lanes(ramp.lanes)), memory_type(scalar)
    for lane, address in enumerate((yield from _lane_addresses(code, scalar, base, ramp, count))):
        extracted = code.op(f"extractelement {kind} {value}, i64 {lane}")
        code.write(f"store {element} {extracted}, ptr {address}, align {scalar.bytes}", buffer.data)


def _lane_addresses(
    code: FunctionBuilder, scalar: DType, base: str, ramp: Ramp, count: int
) -> Generator[Expr, str, list[str]]:
    """Emit the addresses of the first `count` lanes."""
    element = memory_type(scalar)
    first = emit_cast(code, (yield ramp.base), ramp.base.dtype, INT64)
    step = emit_cast(code, (yield ramp.stride), ramp.stride.dtype, INT64)
    steps = [step, *(code.op(f"mul i64 {step}, {k}") for k in range(2, _MAX_BASE_MULTIPLE + 1))]
    found = [code.op(f"getelementptr {element}, ptr {base}, i64 {first}")]
    while len(found) < count:
        start = found[-1]
        found += [
            code.op(f"getelementptr {element}, ptr {start}, i64 {multiple}")
            for multiple in steps[: count - len(found)]
        ]
    return found


Write = Callable[[str, str, str, int, int], None]


def load_prefix(
    code: FunctionBuilder, element: str, size: int, count: int, lanes: int, base: str, align: int,
    memory: Var,
) -> str:
    """Load `count` consecutive values and pad with zeros up to `lanes`.

    Args:
        code: Function under construction.
        element: LLVM type of one value.
        size: Bytes of one value.
        count: Number of values to load.
        lanes: Lane count of the result.
        base: Address of the first value.
        align: Alignment of `base` in bytes.
        memory: Data variable of the memory.
    """
    kind = vector_of(element, lanes)
    if (half := _overlapping_half(code, count, size)) is not None:
        return _load_overlapping(code, element, size, count, half, lanes, base, align, memory)
    joined = "zeroinitializer"
    for start, length, width in _split_lanes(code, count, size):
        ptr, known = _offset(code, element, size, base, align, start)
        vec = vector_of(element, width)
        if length < width:
            name = f"llvm.masked.load.{suffix(vec)}.p0"
            part = code.call(vec, name, [
                (f"ptr align {known}", ptr), prefix_mask(length, width), (vec, "zeroinitializer")])
        else:
            part = code.read(f"load {vec}, ptr {ptr}, align {known}", memory)
        if width == 1:
            joined = code.op(f"insertelement {kind} {joined}, {element} {part}, i64 {start}")
            continue
        if width != lanes:
            lane_map = [k - start if start <= k < start + width else width for k in range(lanes)]
            part = code.op(
                f"shufflevector {vec} {part}, {vec} zeroinitializer, {shuffle_mask(lane_map)}")
        if start:
            chosen = [k + lanes * (k >= start) for k in range(lanes)]
            part = code.op(f"shufflevector {kind} {joined}, {kind} {part}, {shuffle_mask(chosen)}")
        joined = part
    return joined


def _overlapping_half(code: FunctionBuilder, count: int, size: int) -> int | None:
    """Return the lanes of two loads that overlap, if they replace more than two loads.

    Return None for other counts, and if one masked load suffices.
    """
    half = next_power_of_two(count) // 2
    is_split = count.bit_count() > 2 and 2 * half * size <= WIDEST_VECTOR_BYTES
    return half if is_split and not code.module.has_masks() else None


def _load_overlapping(
    code: FunctionBuilder, element: str, size: int, count: int, half: int, lanes: int, base: str,
    align: int, memory: Var,
) -> str:
    """Load `count` values as the first and the last `half` of them; arguments as `load_prefix`."""
    vec = vector_of(element, half)
    parts = []
    for start in (0, count - half):
        ptr, known = _offset(code, element, size, base, align, start)
        parts.append(code.read(f"load {vec}, ptr {ptr}, align {known}", memory))
    wide, unused = vector_of(element, 2 * half), 2 * half - count
    lane_map = [*range(half), *range(half + unused, 2 * half), *[0] * unused]
    joined = code.op(
        f"shufflevector {vec} {parts[0]}, {vec} {parts[1]}, {shuffle_mask(lane_map)}")
    padded = [*range(count), *[2 * half] * (lanes - count)]
    return code.op(
        f"shufflevector {wide} {joined}, {wide} zeroinitializer, {shuffle_mask(padded)}")


def store_prefix(
    code: FunctionBuilder, element: str, size: int, count: int, lanes: int, value: str, base: str,
    align: int, write: Write,
) -> None:
    """Store the first `count` of the `lanes` lanes of a value to consecutive memory.

    Args:
        code: Function under construction.
        element: LLVM type of one lane.
        size: Bytes of one lane.
        count: Number of lanes to store.
        lanes: Lane count of `value`.
        value: Operand.
        base: Address of the first value.
        align: Alignment of `base` in bytes.
        write: Function that stores a whole operand; takes type, operand, address, alignment and
            bytes.
    """
    kind = vector_of(element, lanes)
    for start, length, width in _split_lanes(code, count, size):
        ptr, known = _offset(code, element, size, base, align, start)
        vec = vector_of(element, width)
        part = value
        if width == 1:
            part = code.op(f"extractelement {kind} {value}, i64 {start}")
        elif width != lanes:
            mask = shuffle_mask([min(start + k, lanes - 1) for k in range(width)])
            part = code.op(f"shufflevector {kind} {value}, {kind} poison, {mask}")
        if length == width:
            write(vec, part, ptr, known, size * width)
            continue
        name = f"llvm.masked.store.{suffix(vec)}.p0"
        code.run(name, [(vec, part), (f"ptr align {known}", ptr), prefix_mask(length, width)])


def _split_lanes(code: FunctionBuilder, count: int, size: int) -> Iterator[tuple[int, int, int]]:
    """Yield first lane, lane count and width of each piece; masked if count and width differ."""
    start, widest = 0, WIDEST_VECTOR_BYTES // size
    while start < count:
        remaining = count - start
        width = min(next_power_of_two(remaining), widest)
        if width > remaining and not code.module.has_masks():
            # Without masked instructions LLVM emits a branch for each lane, so use smaller pieces.
            width //= 2
        yield start, min(remaining, width), width
        start += width


def _offset(
    code: FunctionBuilder, element: str, size: int, base: str, align: int, start: int
) -> tuple[str, int]:
    """Return the address of a lane and its alignment."""
    if not start:
        return base, align
    ptr = code.op(f"getelementptr {element}, ptr {base}, i64 {start}")
    offset = start * size
    return ptr, min(align, offset & -offset)


def prefix_mask(count: int, width: int) -> tuple[str, str]:
    """Return type and operand of the mask of the first `count` of `width` lanes."""
    lanes = ", ".join(f"i1 {'true' if k < count else 'false'}" for k in range(width))
    return vector_of("i1", width), f"<{lanes}>"


_MIN_EXPANDED_LANES = 4
"""Minimum lanes of a masked load for which one branch costs less than a branch for each lane."""
_MIN_MASKED_BYTES = 4
"""Bytes of the smallest elements that AVX2 loads with a mask."""


def masked_load(
    code: FunctionBuilder, kind: str, pointer: str, align: int, mask: tuple[str, str]
) -> str:
    """Load the active lanes of a vector; other lanes are zero.

    Args:
        code: Function under construction.
        kind: LLVM type of the vector.
        pointer: Address of lane 0.
        align: Alignment of `pointer` in bytes.
        mask: Type and operand of the mask.
    """
    name = f"llvm.masked.load.{suffix(kind)}.p0"
    return code.call(kind, name, [(f"ptr align {align}", pointer), mask, (kind, "zeroinitializer")])


def expands_masked_loads(code: FunctionBuilder, lanes: int, size: int) -> bool:
    """Return whether LLVM expands a masked load of elements of `size` bytes to many branches."""
    is_wide = lanes >= _MIN_EXPANDED_LANES
    return size < _MIN_MASKED_BYTES and is_wide and not code.module.has_masks()


def load_within_page(
    code: FunctionBuilder, kind: str, size: int, pointer: str, align: int, mask: tuple[str, str],
    memory: Var, *, is_nonempty: bool,
) -> str:
    """Load the active lanes of a vector, as all of its lanes if these are in one page of memory.

    A page with an active lane is mapped, so inactive lanes in the page can be read. If the lanes
    are in two pages, or if none is active, LLVM expands the load to a branch for each lane.

    Args:
        code: Function under construction.
        kind: LLVM type of the vector.
        size: Bytes of the vector.
        pointer: Address of lane 0.
        align: Alignment of `pointer` in bytes.
        mask: Type and operand of the mask.
        memory: Data variable of the memory.
        is_nonempty: Whether at least one lane is known to be active.
    """
    # LLVM must not know the memory, because inactive lanes may be beyond its end.
    pointer = code.op(f'call ptr asm "", "=r,0"(ptr {pointer})')
    address = code.op(f"ptrtoint ptr {pointer} to i64")
    offset = code.op(f"and i64 {address}, {Core.PAGE_BYTES - 1}")
    is_whole = code.op(f"icmp ule i64 {offset}, {Core.PAGE_BYTES - size}")
    if not is_nonempty:
        bits = mask[0][1:].split()[0]
        joined = code.op(f"bitcast {mask[0]} {mask[1]} to i{bits}")
        is_whole = code.op(f"and i1 {is_whole}, {code.op(f'icmp ne i{bits} {joined}, 0')}")
    fast, slow, after = code.name("whole"), code.name("parts"), code.name("after")
    code.branch(is_whole, fast, slow)
    code.label(fast)
    loaded = code.read(f"load {kind}, ptr {pointer}, align {align}", memory)
    active = code.op(f"select {mask[0]} {mask[1]}, {kind} {loaded}, {kind} zeroinitializer")
    code.jump(after)
    code.label(slow)
    parts = masked_load(code, kind, pointer, align, mask)
    code.jump(after)
    code.label(after)
    return code.op(f"phi {kind} [ {active}, %{fast} ], [ {parts}, %{slow} ]")


_MAX_RUNS = 4
"""Maximum number of runs for which contiguous loads and shuffles are profitable."""
_FOLDED_OPERATORS: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.ADD: lambda a, b: a + b, BinOp.SUB: lambda a, b: a - b, BinOp.MUL: lambda a, b: a * b,
}
_DIVISION_OPERATORS: dict[BinOp, Callable[[int, int], int]] = {
    BinOp.FLOORDIV: lambda a, b: a // b, BinOp.MOD: lambda a, b: a % b,
}


@dataclass(frozen=True, slots=True)
class LaneRun:
    """Run of `count` consecutive elements at offset `start` from a common base."""

    start: int
    count: int


@dataclass(frozen=True, slots=True)
class LaneRuns:
    """Decomposition of the lanes of an access into runs.

    Attributes:
        base: Index from which offsets are counted.
        runs: Runs to load.
        lanes: Run number and position within the run, for each lane.
    """

    base: Expr
    runs: tuple[LaneRun, ...]
    lanes: tuple[tuple[int, int], ...]


def runs_of(index: Expr, count: int) -> LaneRuns | None:
    """Return the runs of the first `count` lanes of an index; None for a ramp or too many runs.

    The memory between two elements of a run is readable, so a run may be loaded as a whole.
    """
    if isinstance(index, Ramp | Broadcast) or count < 2 or as_ramp(index) is not None:
        return None
    found = fold(index, _lanes, _vectors)
    if found is None:
        return None
    offsets = found.offsets[:count]
    runs: list[LaneRun] = []
    for offset in sorted(set(offsets)):
        if runs and offset < runs[-1].start + index.dtype.lanes:
            runs[-1] = LaneRun(runs[-1].start, offset - runs[-1].start + 1)
        else:
            runs.append(LaneRun(offset, 1))
    if len(runs) > _MAX_RUNS:
        return None
    return LaneRuns(cast(INT64, found.base), tuple(runs), tuple(_split_into_runs(runs, offsets)))


def _split_into_runs(runs: Sequence[LaneRun], offsets: Sequence[int]) -> list[tuple[int, int]]:
    return [
        next((k, offset - run.start) for k, run in enumerate(runs)
             if run.start <= offset < run.start + run.count)
        for offset in offsets
    ]


@dataclass(frozen=True, slots=True)
class _IndexVector:
    """Integer vector as a common base and constant offsets of the lanes."""

    base: Expr
    offsets: tuple[int, ...]

    @property
    def values(self) -> list[int] | None:
        """Constant value of each lane, or None."""
        if not isinstance(self.base, Const):
            return None
        return [int(self.base.value) + offset for offset in self.offsets]


def _vectors(node: Any) -> Sequence[Any]:
    """Return the vector operands of a node; ramps, broadcasts and scalars are leaves."""
    return () if node.dtype.lanes == 1 or isinstance(node, Ramp | Broadcast) else children(node)


def _lanes(node: Any, parts: list[_IndexVector | None]) -> _IndexVector | None:
    match node:
        case Broadcast(value) if value.dtype.lanes == 1:
            return _IndexVector(value, (0,) * node.lanes)
        case Ramp(base, Const(step)):
            return _IndexVector(base, tuple(int(step) * k for k in range(node.lanes)))
        case Cast() if node.value.dtype.is_integer and represents_all(
            node.dtype.scalar, node.value.dtype.scalar
        ):
            (inner,) = parts
            return inner and _IndexVector(cast(node.dtype.scalar, inner.base), inner.offsets)
        case Binary(op, _, _) if node.dtype.is_integer:
            a, b = parts
            return None if a is None or b is None else _combine(op, a, b)
    return None


def _combine(op: BinOp, a: _IndexVector, b: _IndexVector) -> _IndexVector | None:
    known = a.values, b.values
    if op in _DIVISION_OPERATORS:
        if known[0] is None or known[1] is None or 0 in known[1]:
            return None
        numbers = map(_DIVISION_OPERATORS[op], known[0], known[1])
        return _IndexVector(Const(0, a.base.dtype), tuple(numbers))
    if op not in _FOLDED_OPERATORS or (op is BinOp.MUL and not (_is_number(a) or _is_number(b))):
        return None
    base = binary(op, a.base, b.base)
    if op is not BinOp.MUL:
        return _IndexVector(base, tuple(map(_FOLDED_OPERATORS[op], a.offsets, b.offsets)))
    factor, other = (a, b) if _is_number(a) else (b, a)
    assert isinstance(factor.base, Const)
    times = int(factor.base.value)
    return _IndexVector(base, tuple(times * offset for offset in other.offsets))


def _is_number(lanes: _IndexVector) -> bool:
    """Return whether all lanes are the same constant."""
    return isinstance(lanes.base, Const) and not any(lanes.offsets)


STREAM = "global.stream"
_UNIT = 16
"""Alignment in bytes that non-temporal vector stores require and most arrays have."""


def is_streamed(buffer: Buffer, count: int) -> bool:
    """Return whether a store of `count` bytes is non-temporal."""
    return buffer.scope == STREAM and count % _UNIT == 0


def stream_store(
    code: FunctionBuilder, kind: str, value: str, address: str, align: int, memory: Var
) -> None:
    """Store a vector, non-temporally if `address` is a multiple of 16."""
    code.streams = True
    number = code.op(f"ptrtoint ptr {address} to i64")
    # Arrays of callers may be misaligned, and a misaligned non-temporal store would fault.
    remainder = code.op(f"and i64 {number}, {_UNIT - 1}")
    aligned, other, after = code.name("aligned"), code.name("other"), code.name("after")
    code.branch(code.op(f"icmp eq i64 {remainder}, 0"), aligned, other)
    code.label(aligned)
    code.write(f"store {kind} {value}, ptr {address}, align {_UNIT}, !nontemporal !1", memory)
    code.jump(after)
    code.label(other)
    code.write(f"store {kind} {value}, ptr {address}, align {align}", memory)
    code.jump(after)
    code.label(after)


def end_function(code: FunctionBuilder) -> None:
    """Emit the return, preceded by a fence if there were non-temporal stores."""
    if code.streams:
        code.do("fence seq_cst")
    code.do("ret void")


# a % b is a minus a multiple of b, so common divisors of a and b divide a % b.
_COMMON_DIVISOR_OPS = (BinOp.ADD, BinOp.SUB, BinOp.MOD, BinOp.MIN, BinOp.MAX)


def alignment(code: FunctionBuilder, buffer: Buffer, index: Expr) -> int:
    """Return the known alignment of the address of `buffer[..., index]` in bytes.

    It follows from the alignment of the allocation and from the index. Arguments are aligned to
    their element size only, which dispatch checks.
    """
    base = code.aligned.get(buffer.data)
    element = buffer.dtype.scalar.bytes
    if base is None:
        return element
    steps = buffer.dtype.bytes & -buffer.dtype.bytes
    return max(min(base, divisor(index) * steps), element)


def divisor(index: Expr) -> int:
    """Return a power of two, `ALIGNMENT` at most, that always divides an integer expression.

    >>> from tecomp.ir.nodes.expr import Var
    >>> i, j = Var("i"), Var("j")
    >>> divisor(i * 48 + j * 8), divisor(i + 4), divisor((i * 64) % 24)
    (8, 1, 8)
    """
    return fold(index, _divisor, _divisor_operands)


def _divisor_operands(node: Any) -> Sequence[Any]:
    """Return the non-constant operands that determine the divisor of a node."""
    kind = type(node)
    if kind is Binary and node.op is BinOp.MUL:
        # A product of two non-constants has no known divisor.
        return [x for x, y in ((node.a, node.b), (node.b, node.a)) if _is_integer_literal(y)][:1]
    if kind is Select or (kind is Binary and node.op in _COMMON_DIVISOR_OPS):
        return node.a, node.b
    return (node.value,) if kind is Cast and node.value.dtype.is_integer else ()


def _divisor(node: Any, parts: Sequence[int]) -> int:
    if _is_integer_literal(node):
        return _power_of_two(node.value)
    if not parts:
        return 1
    if isinstance(node, Binary) and node.op is BinOp.MUL:
        number: Any = node.b if _is_integer_literal(node.b) else node.a
        return min(parts[0] * _power_of_two(number.value), ALIGNMENT)
    return min(parts)


def _is_integer_literal(node: Any) -> bool:
    return type(node) is Const and node.dtype.is_integer


def _power_of_two(value: Any) -> int:
    number = int(value)
    return min(number & -number, ALIGNMENT) if number else ALIGNMENT
