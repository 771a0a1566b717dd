"""Operations of accelerators, and units that multiply tiles: which of a target's takes a product.

Sizes, types and the order of a tile in memory are those of the target's description.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass

from tecomp import MatmulUnit, Target, VectorUnit, te
from tecomp.schedules.intrinsics.copies import copied_links, copy_intrinsic
from tecomp.schedules.intrinsics.vectors import vector_intrinsics


@dataclass(frozen=True)
class TileProduct:
    """The operation of one unit: `c[m, n] += a[m, k] * b[k, n]`.

    Attributes:
        m: rows of a and c.
        n: columns of b and c.
        k: columns of a, rows of b.
        orders: how the axes of a, b and c lie in a tile, such as `k//2`, `n`, `k%2`.
        intrinsic: the operation, for `tensorize`.
    """

    m: int
    n: int
    k: int
    orders: tuple[tuple[str, ...], tuple[str, ...], tuple[str, ...]]
    intrinsic: te.TensorIntrin


def tile_product(target: Target, inputs: Sequence[str], sums: str) -> TileProduct | None:
    """The first unit that multiplies these types; None if there is none.

    Args:
        target: the machine.
        inputs: types of both factors.
        sums: type of what products are added up to.

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
    """What a target has by its description: for `tecomp.intrinsics`.

    These are products of tiles, operations on vectors, and copies over links of the types that its
    units take.
    """
    products = [
        _product(target, unit, dtype).intrinsic for unit in _units(target) for dtype in unit.inputs
    ]
    copies = [
        copy_intrinsic(target, link, dtype)
        for link in copied_links(target) for dtype in _types(target)
    ]
    return [*products, *vector_intrinsics(target), *copies]


def _types(target: Target) -> list[str]:
    """What the units of a target take or give."""
    found: dict[str, None] = {}
    for unit in target.engine.values():
        every = unit.types if isinstance(unit, VectorUnit) else (*unit.inputs, unit.accumulator)
        found |= dict.fromkeys(every)
    return list(found)


def _units(target: Target) -> list[MatmulUnit]:
    return [unit for unit in target.engine.values() if isinstance(unit, MatmulUnit)]


def _product(target: Target, unit: MatmulUnit, dtype: str) -> TileProduct:
    # Values lie side by side in a row of a face, or in a stick.
    width = unit.n
    if target.tile is not None:
        width = target.tile.face_columns
    elif target.stick is not None:
        width = target.stick.bytes // te.const(0, unit.accumulator).dtype.bytes
    intrinsic = _intrinsic(unit, dtype, width if unit.n % max(width, 1) == 0 else unit.n)
    return TileProduct(unit.m, unit.n, unit.k, (unit.a, unit.b, unit.c), intrinsic)


def _intrinsic(unit: MatmulUnit, dtype: str, width: int) -> te.TensorIntrin:
    """What the unit computes, and the loops that do it here.

    Args:
        unit: its description.
        dtype: of both factors.
        width: columns that one vector has.
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
