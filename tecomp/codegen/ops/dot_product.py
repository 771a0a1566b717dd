"""Dot-product instructions and their emulation.

If the machine has an instruction for the operand dtypes, it is used (see
`tecomp.codegen.llvm.jit`): `vpdpbusd`, `vdpbf16ps`, `sdot`, `udot`, `usdot`, `bfdot`.
Otherwise the emitted pattern is one for which LLVM selects instructions: for int16 `vpmaddwd`,
which sums two products, and `vpdpwssd`, which also accumulates. Four bytes are two such pairs.
"""

from __future__ import annotations

from tecomp.codegen.llvm.ir_builder import FunctionBuilder, shuffle_mask, splat, suffix, vector_of
from tecomp.codegen.llvm.jit import DotInstruction
from tecomp.ir.nodes.dtype import DType

_SIGNS = -2139062144  # the sign bit of each of four bytes
_ONES = 0x01010101


def dot(code: FunctionBuilder, a_type: DType, b_type: DType, a: str, b: str,
        start: str = "") -> str:
    """Emit the dot product of the numbers within each 32-bit lane of two vectors.

    The sums are added to `start`, if given.
    """
    lanes = a_type.lanes * a_type.bits // 32
    if a_type.bits == 8:
        fast = _dot_of_bytes(code, lanes, a_type, b_type, a, b, start)
        if fast:
            return fast
    elif a_type.is_float:
        instruction = code.module.dots().get(("bfloat16", "bfloat16"))
        if instruction is not None and lanes % instruction.lanes[-1] == 0:
            return _by_instruction(code, instruction, lanes, a, b, start, "float", "i16")
        return _dot_of_bfloats(code, lanes, a, b, start)
    if a_type.bits == 16:
        total = _dot_of_shorts(code, lanes, a, b)
    else:
        even, odd = (
            _dot_of_shorts(code, lanes, x, y)
            for x, y in zip(_bytes(code, a_type, a), _bytes(code, b_type, b), strict=True)
        )
        total = code.op(f"add {vector_of('i32', lanes)} {even}, {odd}")
    return code.op(f"add {vector_of('i32', lanes)} {start}, {total}") if start else total


def _dot_of_bytes(
    code: FunctionBuilder, lanes: int, a_type: DType, b_type: DType, a: str, b: str, start: str
) -> str:
    """Emit a byte dot product with a machine instruction; return "" if none is suitable.

    If only unsigned-by-signed products are supported, one factor is shifted by 128, and the
    resulting offset is subtracted. The offset depends on the other factor only, so a matrix product
    tile computes it once for each row or column.
    """
    first, second = a_type.scalar, b_type.scalar
    if first == "int8" and second == "uint8":
        first, second, a, b = second, first, b, a
    dots = code.module.dots()
    instruction = dots.get((first, second))
    if instruction is not None and lanes % instruction.lanes[-1] == 0:
        return _by_instruction(code, instruction, lanes, a, b, start, "i32", "i8")
    instruction = dots.get(("uint8", "int8"))
    if instruction is None or lanes % instruction.lanes[-1]:
        return ""
    kind = vector_of("i32", lanes)

    def product(x: str, y: str, before: str) -> str:
        return _by_instruction(code, instruction, lanes, x, y, before, "i32", "i8")

    if first == "int8":
        total = product(_flip(code, lanes, a), b, start)
        correction = product(_each_byte(code, lanes, _SIGNS), b, "")
        return code.op(f"sub {kind} {total}, {correction}")
    total = product(a, _flip(code, lanes, b), start)
    correction = product(a, _each_byte(code, lanes, _ONES), "")
    correction = code.op(f"shl {kind} {correction}, {splat('7', 'i32', lanes)}")
    return code.op(f"add {kind} {total}, {correction}")


def _flip(code: FunctionBuilder, lanes: int, value: str) -> str:
    """Shift every byte by 128, which converts between signed and unsigned range."""
    kind, numbers = vector_of("i32", lanes), vector_of("i8", 4 * lanes)
    words = code.op(f"bitcast {numbers} {value} to {kind}")
    flipped = code.op(f"xor {kind} {words}, {splat(str(_SIGNS), 'i32', lanes)}")
    return code.op(f"bitcast {kind} {flipped} to {numbers}")


def _each_byte(code: FunctionBuilder, lanes: int, word: int) -> str:
    words = splat(str(word), "i32", lanes)
    return code.op(f"bitcast {vector_of('i32', lanes)} {words} to {vector_of('i8', 4 * lanes)}")


def _by_instruction(
    code: FunctionBuilder,
    instruction: DotInstruction,
    lanes: int,
    a: str,
    b: str,
    start: str,
    total: str,
    number: str,
) -> str:
    """Split a dot product into the vector lengths of an instruction and join the results.

    Args:
        code: Function under construction.
        instruction: Dot product instruction.
        lanes: Lane count of the result; a multiple of the smallest count of the instruction.
        a: Operand of the first factor.
        b: Operand of the second factor.
        start: Operand of the accumulator, or "".
        total: LLVM type of one lane of the result.
        number: LLVM type of one number of the factors in registers.
    """
    per_lane = 4 if number == "i8" else 2
    full_kind = vector_of(total, lanes)
    start = start or "zeroinitializer"
    joined, done = "", 0
    while done < lanes:
        width, name = next(
            (width, name) for width, name in zip(instruction.lanes, instruction.names, strict=True)
            if width <= lanes - done
        )
        kind = vector_of(total, width)
        pair = []
        for factor in (a, b):
            part = _extract_lanes(code, factor, number, per_lane * lanes, per_lane * done, per_lane
                * width)
            if instruction.numbers != number:
                source_kind = vector_of(number, per_lane * width)
                target_kind = vector_of(instruction.numbers, per_lane * width)
                part = code.op(f"bitcast {source_kind} {part} to {target_kind}")
            pair.append((vector_of(instruction.numbers, per_lane * width), part))
        before = _extract_lanes(code, start, total, lanes, done, width)
        part = code.call(kind, name, [(kind, before), *pair])
        if width == lanes:
            return part
        lane_map = [min(max(k - done, 0), width - 1) for k in range(lanes)]
        part = code.op(f"shufflevector {kind} {part}, {kind} poison, {shuffle_mask(lane_map)}")
        chosen = [k + lanes * (k >= done) for k in range(lanes)]
        joined = part if not done else code.op(
            f"shufflevector {full_kind} {joined}, {full_kind} {part}, {shuffle_mask(chosen)}"
        )
        done += width
    return joined


def _extract_lanes(
    code: FunctionBuilder, value: str, scalar: str, count: int, start: int, length: int
) -> str:
    """Extract `length` of the `count` lanes of a vector from lane `start` on."""
    if length == count:
        return value
    kind = vector_of(scalar, count)
    mask = shuffle_mask([*range(start, start + length)])
    return code.op(f"shufflevector {kind} {value}, {kind} poison, {mask}")


def _bytes(code: FunctionBuilder, dtype: DType, value: str) -> tuple[str, str]:
    """Return the lower and the upper bytes of all pairs, extended to 16 bits."""
    kind = vector_of("i16", dtype.lanes // 2)
    eight = splat("8", "i16", dtype.lanes // 2)
    shift_op = "ashr" if dtype.kind == "int" else "lshr"
    pairs = code.op(f"bitcast {vector_of('i8', dtype.lanes)} {value} to {kind}")
    raised = code.op(f"shl {kind} {pairs}, {eight}")
    lower = code.op(f"{shift_op} {kind} {raised}, {eight}")
    return lower, code.op(f"{shift_op} {kind} {pairs}, {eight}")


def _dot_of_shorts(code: FunctionBuilder, lanes: int, a: str, b: str) -> str:
    short, wide = vector_of("i16", 2 * lanes), vector_of("i32", 2 * lanes)
    x, y = (code.op(f"sext {short} {value} to {wide}") for value in (a, b))
    products = code.op(f"mul {wide} {x}, {y}")
    kind = vector_of("i32", lanes)
    if lanes == 1:
        pair = [code.op(f"extractelement {wide} {products}, i64 {k}") for k in (0, 1)]
    else:
        masks = [shuffle_mask(list(range(k, 2 * lanes, 2))) for k in (0, 1)]
        pair = [
            code.op(f"shufflevector {wide} {products}, {wide} poison, {mask}") for mask in masks
        ]
    return code.op(f"add {kind} {pair[0]}, {pair[1]}")


def _dot_of_bfloats(code: FunctionBuilder, lanes: int, a: str, b: str, start: str) -> str:
    """Emit sums of two products of bfloat16 each; the product of the odd elements is added first.

    A bfloat16 is the upper half of a float32, and the product of two is exact in float32. The order
    is that of `vdpbf16ps`, whose results are equal except for subnormal numbers.
    """
    single, bits = vector_of("float", lanes), vector_of("i32", lanes)
    halves = vector_of("i16", 2 * lanes)
    low: list[str] = []
    high: list[str] = []
    for value in (a, b):
        pair = code.op(f"bitcast {halves} {value} to {bits}")
        lower = code.op(f"shl {bits} {pair}, {splat('16', 'i32', lanes)}")
        upper = code.op(f"and {bits} {pair}, {splat('-65536', 'i32', lanes)}")
        low.append(code.op(f"bitcast {bits} {lower} to {single}"))
        high.append(code.op(f"bitcast {bits} {upper} to {single}"))
    fused = f"llvm.fmuladd.{suffix(single)}"
    if start:
        first = code.call(single, fused, [(single, high[0]), (single, high[1]), (single, start)])
    else:
        first = code.op(f"fmul {single} {high[0]}, {high[1]}")
    return code.call(single, fused, [(single, low[0]), (single, low[1]), (single, first)])
