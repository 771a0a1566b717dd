"""Choice and cost of the compute unit of an operation, against counting of unit tiles."""

from __future__ import annotations

from itertools import product

import pytest
from hypothesis import given
from hypothesis import strategies as st

from tecomp.cost_model import cycles_of, unit_of
from tecomp.errors import TargetError
from tecomp.ir import Buffer, BufferLoad, Const, DType, OperandTransfer, SeqStmt, TensorOp, seq
from tecomp.machine import MatmulUnit, Unit, VectorUnit
from tests.messages import Diagnostic, diagnostic

MATRIX = MatmulUnit(
    "matmul", "tiles", 8, 16, 4, ("float16", "int8"), "float32", ("m", "k"), ("k", "n"),
    ("m", "n"), {"exact": 10, "quick": 4}, "lx", "assumed", instances=2, modes={"int8": "quick"},
)
VECTOR = VectorUnit(
    "vector", "alu", 64, ("float16", "float32"), {"default": 1, "exp": 8}, "lx", "assumed",
    instances=2,
)
ENGINE: dict[str, Unit] = {"tiles": MATRIX, "alu": VECTOR}
NOTHING = SeqStmt(())


def operation(
    tile: tuple[int, ...], unit: str, dtype: str = "float16", name: str = "product", mode: str = ""
) -> TensorOp:
    read, written = (
        OperandTransfer(BufferLoad(Buffer(each, (4,), DType(kind)), (Const(0),)), is_written=each == "C")
        for each, kind in (("A", dtype), ("C", "float32"))
    )
    return TensorOp(name, seq(written, read), NOTHING, tile, unit, mode)


@given(st.tuples(st.integers(1, 40), st.integers(1, 40), st.integers(1, 20)))
def test_tiles_of_a_product(tile: tuple[int, int, int]) -> None:
    sizes = MATRIX.m, MATRIX.n, MATRIX.k
    touched = {
        tuple(x // n for x, n in zip(at, sizes, strict=True)) for at in product(*map(range, tile))
    }

    assert cycles_of(operation(tile, "tiles"), MATRIX) == len(touched) * 10 / 2


@given(st.lists(st.integers(1, 30), min_size=1, max_size=3))
def test_vectors_of_an_operation(tile: list[int]) -> None:
    """A vector has 64 bytes: 32 lanes of float16, 16 of float32."""
    elements = range(len(list(product(*map(range, tile)))))
    for dtype, lanes in (("float16", 32), ("float32", 16)):
        vectors = {k // lanes for k in elements}
        for name, each in (("add", 1), ("exp", 8)):
            found = cycles_of(operation(tuple(tile), "alu", dtype, name), VECTOR)
            assert found == len(vectors) * each / 2


def test_modes() -> None:
    tile = 8, 16, 4

    assert cycles_of(operation(tile, "tiles"), MATRIX) == 10 / 2
    assert cycles_of(operation(tile, "tiles", "int8"), MATRIX) == 4 / 2
    assert cycles_of(operation(tile, "tiles", mode="quick"), MATRIX) == 4 / 2
    assert cycles_of(operation(tile, "tiles", "int8", mode="exact"), MATRIX) == 10 / 2
    # An operation on other axes is counted by its number of elements.
    assert cycles_of(operation((16, 64), "tiles"), MATRIX) == 2 * 10 / 2


def test_units_take_their_types() -> None:
    tile = 8, 16, 4

    assert unit_of(operation(tile, "tiles"), ENGINE) is MATRIX
    assert unit_of(operation(tile, "tiles", "float32"), ENGINE) is None
    assert unit_of(operation(tile, "alu", "float32"), ENGINE) is VECTOR
    assert unit_of(operation(tile, "alu", "int8"), ENGINE) is None
    assert unit_of(operation(tile, "other"), ENGINE) is None


def test_an_unknown_unit_mode_is_refused() -> None:
    with pytest.raises(TargetError) as error:
        unit_of(operation((8, 16, 4), "tiles", mode="slow"), ENGINE)

    assert diagnostic(error.value) == (
        Diagnostic("unsupported-by-target", op="product", unit="tiles", mode="slow", cycles="exact, quick")
    )
