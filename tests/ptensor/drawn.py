"""Test cases of all ptensor operations, with the shapes and dtypes that they support."""

from __future__ import annotations

from dataclasses import replace

from tecomp.ptensor import (
    FindIndex,
    FourierTransformOp,
    Matrices,
    MeshGrid,
    PseudoInverse,
    PTensorOp,
    PTensorType,
    Rank,
    Shape,
    Solve,
    ValueType,
)
from tecomp.ptensor.operations import (
    base,
    creation,
    elementwise,
    linear_algebra,
    manipulation,
    reduction,
    sorting,
)
from tecomp.ptensor.operations import manipulation as moves

Case = tuple[PTensorOp, tuple[ValueType, ...]]
Operands = tuple[tuple[Shape, str], ...]

_ROW: Operands = (((4,), "float64"),)
_MATRIX: Operands = (((4, 4), "float64"),)
_MASK: Operands = (((4,), "bool"),)
_PLACES: Operands = (((4,), "int64"),)
_SCALAR: Operands = (((), "float64"),)


NARROW = {"float64": "float32", "complex128": "complex64", "int64": "int32"}
"""Replacement dtypes for devices without 64-bit dtypes."""


def cases(device: str | None = None, team: int | None = None) -> list[Case]:
    """Return operations with operand types of one device and team, in dtypes of the device."""
    found = _cases(device, team)
    return found if device in (None, "cpu") else [_narrowed(case) for case in found]


def _narrowed(case: Case) -> Case:
    op, types = case
    if (dtype := getattr(op, "dtype", None)) in NARROW:
        op = replace(op, dtype=NARROW[dtype])  # type: ignore[call-arg]
    narrow = [
        item if isinstance(item, str) else item.like(item.shape, NARROW.get(item.dtype)) for item in types
    ]
    if getattr(op, "kind", "") == "divide":  # division of integers gives float64
        narrow = [item.like(item.shape, "float32") for item in narrow if isinstance(item, PTensorType)]
    return op, tuple(narrow)


def _cases(device: str | None, team: int | None) -> list[Case]:
    found: list[tuple[PTensorOp, Operands]] = [
        *_elementwise(), *_moves(), *_reductions(), *_indexed(), *_libraries(), *_products(),
        *_attributes(),
    ]
    found += [(op, ()) for op in _creations(device, team)]
    found += [(creation.Create((3, 0), "complex64", device, team), _SCALAR)]
    return [
        *_imports(device, team),
        *[
            (op, tuple([PTensorType(shape, dtype, device, team) for shape, dtype in operands]))
            for op, operands in found
        ],
    ]


def _imports(device: str | None, team: int | None) -> list[Case]:
    found: list[Case] = [
        (creation.AsArray((4, 5), "float32", None, device, team), ("ptr",)),
        (creation.AsArray((0,), "complex64", True, device, team), ("ptr",)),
        (creation.AsArray((), "int8", None, device, team), ("int64",)),
        (creation.AsArray((), "float64", None, device, team), ("float64",)),
        (creation.AsArray((), "float32", None, device, team), ("int8",)),
        (creation.AsArray((), "complex64", None, device, team), ("float32",)),
    ]
    if team is None:  # library operations run in one process
        found.append((creation.FromDlpack((4, 5), "int16", device), ("ptr",)))
    return found


def _elementwise() -> list[tuple[PTensorOp, Operands]]:
    groups = (
        elementwise.ElementwiseUnaryOp, elementwise.ElementwiseUnaryTest, elementwise.ElementwisePower,
        elementwise.ElementwiseBinaryOp, elementwise.ElementwiseBinaryTest,
    )

    return [
        *((group(name), (((4, 1), dtypes[0]), ((5,), dtypes[0]))[: group.arity])
          for group in groups for name, dtypes in group.functions.items()),
        (elementwise.CastOp("complex64"), _ROW), (elementwise.CastOp("int8", False), _ROW),
        (elementwise.WhereOp(), (*_MASK, *_ROW, *_MATRIX)),
    ]


def _creations(device: str | None, team: int | None) -> list[PTensorOp]:
    place = device, team
    return [
        creation.Arange(0, 5, 2, "int32", *place), creation.Arange(0.5, -1.5, -0.5, "float64", *place),
        creation.Eye(3, 4, -1, "float32", *place),
        creation.Linspace(0.0, 1.0, 5, "float64", True, *place),
        creation.Linspace(1 - 2j, 1e300 + 0j, 5, "complex128", False, *place),
        creation.Linspace(float("-inf"), 1.0, 5, "float64", False, *place),
        creation.Linspace(complex(float("inf"), -float("inf")), 1j, 2, "complex128", False, *place),
    ]  # fmt: skip


def _attributes() -> list[tuple[PTensorOp, Operands]]:
    return [
        (base.ShapeOf(), _MATRIX), (base.RankOf(), _MATRIX), (base.SizeOf(), _MATRIX),
        (base.ResultType(), _ROW), (base.ResultType(), (*_MASK, *_PLACES, *_ROW)),
        (MeshGrid("xy"), (*_ROW, *_PLACES)), (MeshGrid("ij"), (*_ROW, *_SCALAR, *_MASK)),
        (MeshGrid(), _ROW),
    ]  # fmt: skip


def _moves() -> list[tuple[PTensorOp, Operands]]:
    found: list[tuple[PTensorOp, Operands]] = [
        (moves.BroadcastOp((3, 4)), _ROW), (moves.ExpandDims((0, 2)), _ROW), (moves.Flip((0, 1)), _MATRIX),
        (moves.PermuteDims((1, 0)), _MATRIX), (moves.Reshape((2, 2), None), _ROW),
        (moves.Reshape((2, 2), True), _ROW), (moves.Roll((1, -2), (0, 1)), _MATRIX),
        (moves.Squeeze((0,)), (((1, 4), "int8"),)), (moves.Repeat(2, 0), _ROW), (moves.TileOp((2, 1)), _MATRIX),
        (moves.Combine("concat", 0), (*_ROW, *_ROW)), (moves.Combine("stack", 1), (*_ROW, *_ROW)),
    ]  # fmt: skip
    return [
        *found, (creation.CreateLike("int8"), (*_ROW, *_SCALAR)), (creation.CreateLike(None), (*_ROW, *_SCALAR)),
        (creation.ExtractTriangle("lower", -1), _MATRIX), (creation.ExtractTriangle("upper", 0), _MATRIX),
    ]  # fmt: skip


def _reductions() -> list[tuple[PTensorOp, Operands]]:
    return [
        *[(reduction.ReduceOp(kind, (0,), True, 0.5), _MATRIX) for kind in ("var", "std")],
        *[(reduction.ReduceOp(kind, None), _MATRIX) for kind in reduction.ReduceOp.kinds],
        (reduction.ReduceOp("sum", (1,), False, 0.0, "float32"), _MATRIX),
        (reduction.TruthTest("any"), _MATRIX), (reduction.TruthTest("all", (0,)), _MASK),
        (reduction.CountNonzero((0,)), _ROW), (reduction.Diff(0), _ROW),
        (reduction.Cumulative("sum", 1, True, "float32"), _MATRIX),
        (reduction.Cumulative("prod", 0), _ROW),
        (FindIndex("argmax"), _MATRIX), (FindIndex("argmin", 1, True), _MATRIX),
    ]  # fmt: skip


def _indexed() -> list[tuple[PTensorOp, Operands]]:
    return [
        (manipulation.ExtractSlice(((3, -1, 2),)), _ROW), (manipulation.ExtractMask(), (*_ROW, *_MASK)),
        (manipulation.Nonzero(), _MATRIX), (manipulation.Nonzero(), _ROW), (manipulation.InsertSlice(((0, 1, 4),)), (*_ROW, *_ROW)),
        (manipulation.Take((0,), 0), (*_MATRIX, *_PLACES)),
        (manipulation.TakeAlongAxis(0), (*_ROW, *_PLACES)),
        (manipulation.ScatterAdd((0,), 0, (5,)), (*_ROW, *_PLACES)),
    ]  # fmt: skip


def _libraries() -> list[tuple[PTensorOp, Operands]]:
    return [
        (sorting.Sort(0, True), _ROW), (sorting.Argsort(1, False, False), _MATRIX),
        (sorting.SearchSorted("left"), (*_ROW, *_MATRIX)),
        (sorting.SearchSorted("right"), (*_ROW, *_MATRIX, *_PLACES)),
        (sorting.IsIn(True), (*_ROW, *_MATRIX)), (sorting.UniqueValues(), _ROW), (sorting.UniqueAll(), _ROW),
        (sorting.UniqueCounts(), _MATRIX), (sorting.UniqueInverse(), _MATRIX),
        (FourierTransformOp("fft", (None,), (0,), "backward"), (((4,), "complex128"),)),
        (FourierTransformOp("rfftn", (3, None), (0, 1), "ortho"), _MATRIX),
        *[(Matrices(kind), _MATRIX) for kind in ("inv", "det", "eigh", "eigvalsh", "slogdet", "eig")],
        *[(Matrices(kind, True), _MATRIX) for kind in ("cholesky", "qr", "svd")],
        (Solve(), (*_MATRIX, *_ROW)), (PseudoInverse(), (*_MATRIX, *_SCALAR)), (Rank(), _MATRIX),
    ]  # fmt: skip


def _products() -> list[tuple[PTensorOp, Operands]]:
    pair: Operands = (*_MATRIX, *_MATRIX)
    return [
        (linear_algebra.MatMul(), pair), (linear_algebra.MatrixTranspose(), _MATRIX),
        (linear_algebra.VecDot(-1), pair), (linear_algebra.TensorDot(((0, 1), (1, 0))), pair),
        (linear_algebra.TensorDot(((), ())), pair), (linear_algebra.Outer(), (*_ROW, *_ROW)),
        (linear_algebra.Diagonal(1), _MATRIX), (linear_algebra.TraceOp(0, None), _MATRIX),
        (linear_algebra.Cross(-1), (((3,), "int8"), ((3,), "int8"))),
    ]  # fmt: skip
