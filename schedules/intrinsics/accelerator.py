"""Accelerator intrinsics for `tensorize`: matrix units, vector units, DMA copies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import get_close_matches

from tecomp import MatmulUnit, Target, TargetError, VectorUnit, te
from tecomp.operations import SAME, elementwise_in


def copy_intrinsic(target: Target, link: str, dtype: str) -> te.TensorIntrin:
    """Return the intrinsic that copies one block over a link, for loops that only copy.

    The operands must be in the memories that the link connects. The block is a tile, face by face
    and row by row, if the target has tiles; else a stick, or a burst of the link.

    Args:
        target: Target.
        link: Name of one of its links.
        dtype: Dtype of the copied elements; any dtype is supported.

    Raises:
        TargetError: If the link is not found, or connects a memory with itself.

    >>> stick128 = Target.load("stick128")
    >>> copy_intrinsic(stick128, "load", "float16")
    TensorIntrin(load_copy_float16: c[i0] = a[i0])
    >>> copy_intrinsic(stick128, "load", "float16").tile
    (64,)
    >>> copy_intrinsic(Target.load("tensix_wh"), "load", "uint8").tile
    (2, 2, 16, 16)
    """
    known = links_between_memories(target)
    if link not in known:
        matches = get_close_matches(link, known, n=1)
        if matches:
            raise TargetError(
                "target {target} has no link `{link}` between two memories; did you mean "
                "`{suggestion}`?",
                kind="unsupported-by-target", target=target.name, link=link, suggestion=matches[0],
            )
        raise TargetError(
            "target {target} has no link `{link}` between two memories; available links: {known}",
            kind="unsupported-by-target", target=target.name, link=link,
            known=", ".join(known) or "none",
        )
    shape = _piece(target, link, dtype)
    a = te.placeholder(shape, dtype, name="a")
    c = te.compute(shape, lambda *i: a[i], name="c")

    def statements(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> te.Stmt:
        (x,), (z,) = ins, outs

        def along(index: tuple[te.Expr, ...]) -> te.Stmt:
            if len(index) == len(shape):
                return z.store(index, x[index])
            kind = "vectorized" if len(index) == len(shape) - 1 else "serial"
            return te.for_range(0, shape[len(index)], lambda i: along((*index, i)), "i", kind)

        return along(())

    ends = target.links[link]
    binds = {
        a: te.decl_buffer(shape, dtype, scope=ends.from_),
        c: te.decl_buffer(shape, dtype, scope=ends.to),
    }
    return te.decl_tensor_intrin(
        c.op, statements, f"{link}_copy_{dtype}", binds, unit=link, check="later")


def links_between_memories(target: Target) -> list[str]:
    """Return the names of the links between two different memories."""
    return [name for name, link in target.links.items() if link.from_ != link.to]


def _piece(target: Target, link: str, dtype: str) -> tuple[int, ...]:
    """Return the shape of the block that is copied at once."""
    if target.tile is not None:
        height, width = target.tile.face
        return target.tile.rows // height, target.tile.columns // width, height, width
    ends = target.links[link]
    memory = target.memory(ends.from_)
    if target.stick is not None:
        size = target.stick.bytes
    else:
        size = ends.burst_bytes or memory.transaction_bytes or memory.alignment_bytes
    return (max(size // te.const(1, dtype).dtype.bytes, 1),)


Function = Callable[..., te.Expr]

_ARITHMETIC: dict[str, Function] = {
    "add": lambda a, b: a + b,
    "sub": lambda a, b: a - b,
    "mul": lambda a, b: a * b,
    "max": te.max,
    "min": te.min,
}
_FUNCTIONS: dict[str, Function] = {
    row.call: getattr(te, name) for name, row in elementwise_in("te").items()
    if row.call and row.arity == 1 and row.gives == SAME
}
_WITH_A_NUMBER = ("add", "mul", "max", "min")


def vector_intrinsic(
    target: Target, unit: str, operation: str, dtype: str, *, with_number: bool = False
) -> te.TensorIntrin:
    """Return the intrinsic for one operation of a vector unit, on all of its lanes.

    Each unit supports `add`, `sub`, `mul`, `max` and `min`. It supports `div` and functions such as
    `exp` for floating-point dtypes if its table of cycles names them.

    Args:
        target: Target.
        unit: Name of a vector unit of its engine.
        operation: Name of the operation.
        dtype: Dtype of the lanes.
        with_number: Whether the second operand is a scalar that is broadcast to all lanes;
            supported for `add`, `mul`, `max` and `min`. Default: False.

    Raises:
        TargetError: If the unit is not found, or does not support the operation or the dtype.

    >>> vector_intrinsic(Target.load("stick128"), "sfu", "exp", "float16")
    TensorIntrin(sfu_exp_float16: c[i] = exp(a[i]))
    """
    known = target.engine.get(unit)
    if not isinstance(known, VectorUnit):
        units = [name for name, entry in target.engine.items() if isinstance(entry, VectorUnit)]
        raise TargetError(
            "target {target} has no vector unit `{unit}`; available vector units: {units}",
            kind="unsupported-by-target", target=target.name, unit=unit,
            units=", ".join(units) or "none",
        )
    if dtype not in known.types:
        raise TargetError(
            "unit `{unit}` of target {target} does not support dtype {dtype}; supported dtypes: "
            "{types}",
            kind="unsupported-by-target", unit=unit, target=target.name, dtype=dtype,
            types=", ".join(known.types),
        )
    table = _table(known, dtype)
    if operation not in table or (with_number and operation not in _WITH_A_NUMBER):
        possible = [name for name in table if not with_number or name in _WITH_A_NUMBER]
        raise TargetError(
            "unit `{unit}` of target {target} has no operation `{operation}` on {dtype}{number}; "
            "available operations: {possible}",
            kind="unsupported-by-target", unit=unit, target=target.name, operation=operation,
            dtype=dtype,
            number=" and a number" if with_number else "", possible=", ".join(possible),
        )
    return _declare(known, operation, table[operation], dtype, with_number=with_number)


def vector_intrinsics(target: Target) -> list[te.TensorIntrin]:
    """Return the intrinsics of all vector units, for all operations and dtypes."""
    found = []
    for unit in target.engine.values():
        if not isinstance(unit, VectorUnit):
            continue
        for dtype in unit.types:
            table = _table(unit, dtype)
            for name, function in table.items():
                kinds = (False, True) if name in _WITH_A_NUMBER else (False,)
                found += [_declare(unit, name, function, dtype, with_number=n) for n in kinds]
    return found


def _table(unit: VectorUnit, dtype: str) -> dict[str, Function]:
    """Return the operations of a unit for a dtype, by name."""
    if not te.const(1, dtype).dtype.is_float:
        return _ARITHMETIC
    others = {"div": te.div, **_FUNCTIONS}
    return _ARITHMETIC | {name: others[name] for name in unit.cycles if name in others}


def _declare(
    unit: VectorUnit, operation: str, function: Function, dtype: str, *, with_number: bool
) -> te.TensorIntrin:
    lanes = unit.lanes(dtype)
    number = [te.var("number", dtype)] if with_number else []
    count = 2 if operation in (*_ARITHMETIC, "div") else 1
    ins = [te.placeholder((lanes,), dtype, name=name) for name in "ab"[: count - len(number)]]

    def value(
        operands: Sequence[te.Tensor | te.Operand], lane: te.Expr, numbers: Sequence[te.Expr]
    ) -> te.Expr:
        return function(*(operand[lane] for operand in operands), *numbers)

    c = te.compute((lanes,), lambda i: value(ins, i, number), name="c")

    def statements(
        operands: Sequence[te.Operand], outs: Sequence[te.Operand], numbers: Sequence[te.Var] = ()
    ) -> te.Stmt:
        return te.for_range(
            0, lanes, lambda i: outs[0].store(i, value(operands, i, numbers)), "i", "vectorized")

    name = f"{unit.name}_{operation}{'_number' if with_number else ''}_{dtype}"
    mode = operation if operation in unit.cycles else ""
    return te.decl_tensor_intrin(
        c.op, statements, name, scalar_params=number, unit=unit.name, mode=mode,
        check="later")


@dataclass(frozen=True)
class TileProduct:
    """Operation of a matrix unit: `c[m, n] += a[m, k] * b[k, n]`.

    Attributes:
        m: Rows of a and c.
        n: Columns of b and c.
        k: Columns of a, rows of b.
        orders: Order of the axes of a, b and c in a tile, such as `k//2`, `n`, `k%2`.
        intrinsic: Intrinsic for `tensorize`.
        memory: Memory of a and b.
        sums_memory: Memory of c.
    """

    m: int
    n: int
    k: int
    orders: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    intrinsic: te.TensorIntrin
    memory: str
    sums_memory: str


def tile_product(target: Target, inputs: Sequence[str], sums: str) -> TileProduct | None:
    """Return the operation of the first matrix unit that supports the dtypes, or None.

    Args:
        target: Target.
        inputs: Dtypes of both factors.
        sums: Dtype of the accumulator.

    >>> product = tile_product(Target.load("stick128"), ("float16", "float16"), "float32")
    >>> product.m, product.n, product.k, product.intrinsic.name
    (8, 64, 64, 'matmul_float16')
    >>> tile_product(Target.load("stick128"), ("int8", "int8"), "int32") is None
    True
    """
    for unit in _units(target):
        if set(inputs) <= set(unit.inputs) and len(set(inputs)) == 1 and sums == unit.accumulator:
            return _product(target, unit, inputs[0])
    return None


def intrinsics(target: Target) -> list[te.TensorIntrin]:
    """Return all intrinsics that a target describes, for `tecomp.intrinsics`.

    These are tile products, vector operations, and copies over links for the dtypes of its units.
    """
    products = [
        _product(target, unit, dtype).intrinsic for unit in _units(target) for dtype in unit.inputs
    ]
    copies = [
        copy_intrinsic(target, link, dtype)
        for link in links_between_memories(target) for dtype in _types(target)
    ]
    return [*products, *vector_intrinsics(target), *copies]


def _types(target: Target) -> list[str]:
    """Return the dtypes of the operands and results of the units of a target."""
    found: dict[str, None] = {}
    for unit in target.engine.values():
        dtypes = unit.types if isinstance(unit, VectorUnit) else (*unit.inputs, unit.accumulator)
        found |= dict.fromkeys(dtypes)
    return list(found)


def _units(target: Target) -> list[MatmulUnit]:
    return [unit for unit in target.engine.values() if isinstance(unit, MatmulUnit)]


def _product(target: Target, unit: MatmulUnit, dtype: str) -> TileProduct:
    # Contiguous values are a row of a face, or a stick.
    width = unit.n
    if target.tile is not None:
        width = target.tile.face_columns
    elif target.stick is not None:
        width = target.stick.bytes // te.const(1, unit.accumulator).dtype.bytes
    intrinsic = _intrinsic(unit, dtype, width if unit.n % max(width, 1) == 0 else unit.n)
    orders = unit.a, unit.b, unit.c
    return TileProduct(
        unit.m, unit.n, unit.k, orders, intrinsic, unit.memory, unit.sums_memory
    )


def _intrinsic(unit: MatmulUnit, dtype: str, width: int) -> te.TensorIntrin:
    """Declare the operation of a matrix unit, and the loops that implement it on the host.

    Args:
        unit: Description of the unit.
        dtype: Dtype of both factors.
        width: Columns of one vector.
    """
    m, n, k, sums = unit.m, unit.n, unit.k, unit.accumulator
    a = te.placeholder((m, k), dtype, name="a")
    b = te.placeholder((k, n), dtype, name="b")
    d = te.reduce_axis((0, k), name="d")
    c = te.compute(
        (m, n), lambda i, j: te.sum(a[i, d].astype(sums) * b[d, j].astype(sums), axis=d), name="c"
    )

    def statements(
        ins: Sequence[te.Operand], outs: Sequence[te.Operand]
    ) -> tuple[te.Stmt, te.Stmt, te.Stmt]:
        (x, y), (z,) = ins, outs

        def each(value: Callable[[te.Expr, te.Expr], te.Expr | int]) -> te.Stmt:
            def vector(i: te.Expr, j: te.Expr) -> te.Stmt:
                return te.for_range(
                    0, width, lambda lane: z.store((i, j + lane), value(i, j + lane)),
                    "j", "vectorized",
                )

            return te.for_range(0, m, lambda i: te.for_range(
                0, n // width, lambda j: vector(i, j * width), "jo"), "i")

        def added(step: te.Expr) -> te.Stmt:
            return each(lambda i, j: (
                z[i, j] + x[i, step].astype(sums) * y[step, j].astype(sums)))

        reset, update = each(lambda i, j: 0), te.for_range(0, k, added, "d")
        return te.stmt_seq(reset, update), reset, update

    return te.decl_tensor_intrin(
        c.op, statements, f"{unit.name}_{dtype}", unit=unit.name, check="later")
