"""Creation, import and meshgrid operations."""

from __future__ import annotations

from dataclasses import dataclass
from math import ceil
from typing import Any, ClassVar

from tecomp.errors import ArrayTypeError, ArrayValueError
from tecomp.ptensor.operation import AttributeOperand, PTensorOp, Several, to_the_bit
from tecomp.ptensor.operations.base import Kinded
from tecomp.ptensor.types import (
    ALL,
    COMPLEX,
    FLOATING,
    NUMERIC,
    PTensorType,
    Shape,
    check_same_device_and_team,
)


@dataclass(frozen=True)
class Creation(PTensorOp):
    """Operation that specifies device and team of its result; other operations inherit them."""

    taken: ClassVar[tuple[str, ...]] = ALL
    open: ClassVar[tuple[str, ...]] = ("device", "team")

    def _made(self, shape: Shape, dtype: str, device: Any, team: Any) -> PTensorType:
        """Return the type of the result, with extents as far as they are known."""
        if dtype not in self.taken:
            raise ArrayTypeError(
                "{name}: unsupported dtype {dtype}; supported dtypes: {supported}",
                name=self.name, dtype=dtype, supported=", ".join(self.taken),
            )
        return PTensorType(shape, dtype, _known_value(device), _known_value(team))


def _known_value(value: Any) -> Any:
    return value.value if isinstance(value, AttributeOperand) else value


def _extent(value: Any) -> Any:
    """Return an extent; None for an extent that only the call of a function determines."""
    return None if isinstance(value, AttributeOperand) else value


@dataclass(frozen=True)
class Arange(Creation):
    """Evenly spaced numbers in [start, stop).

    Attributes:
        start: First number.
        stop: End, excluded.
        step: Distance between adjacent numbers; negative for descending numbers.
        dtype: dtype of the result.
        device: Device of the result.
        team: Team of the result.

    >>> print(Arange(0, 10, 3, "int64").infer())
    ptensor<4xint64>
    """

    name = "arange"
    takes = (0, 0)
    __eq__ = to_the_bit
    taken: ClassVar[tuple[str, ...]] = NUMERIC
    open: ClassVar[tuple[str, ...]] = ("start", "stop", "step", "device", "team")

    start: int | float
    stop: int | float
    step: int | float
    dtype: str
    device: str | AttributeOperand | None = None
    team: int | AttributeOperand | None = None

    @property
    def count(self) -> int | None:
        """Number of elements; None if the call of the function determines it."""
        if AttributeOperand in map(type, (self.start, self.stop, self.step)):
            return None
        if not self.step:
            raise ArrayValueError("arange: step must be nonzero")
        length = self.stop - self.start
        if isinstance(length, int) and isinstance(self.step, int):
            return max(0, -(-length // self.step))
        try:
            return max(0, ceil(length / self.step))
        except (OverflowError, ValueError):
            raise ArrayValueError(
                "arange: the range from {start} to {stop} with step {step} does not have a finite "
                "number of elements; pass finite numbers",
                start=self.start, stop=self.stop, step=self.step,
            ) from None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type, of one axis."""
        return self._made((self.count,), self.dtype, self.device, self.team)  # type: ignore[arg-type]


@dataclass(frozen=True)
class Create(Creation):
    """Tensor filled with one value: the operand, which has no axes.

    Attributes:
        shape: Shape of the result.
        dtype: dtype of the result, to which the value is cast.
        device: Device of the result.
        team: Team of the result.

    >>> print(Create((2, 3), "float32").infer(PTensorType((), "float32")))
    ptensor<2x3xfloat32>
    """

    name = "create"
    open: ClassVar[tuple[str, ...]] = ("shape", "device", "team")

    shape: Shape
    dtype: str
    device: str | AttributeOperand | None = None
    team: int | AttributeOperand | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the given shape."""
        result = self._made(_known_value(self.shape), self.dtype, self.device, self.team)
        _check_value(result, operands[0], self.name)
        return result


@dataclass(frozen=True)
class CreateLike(Creation):
    """Tensor filled with one value, the second operand, in the shape of the first.

    The value is on the device and team of the result. Only the type of the first operand is read.

    Attributes:
        dtype: dtype of the result. Default: the dtype of the first operand.
        device: Device of the result. Default: the device of the first operand.
        team: Team of the result. Default: the team of the first operand.

    Source:
        RFC PTensor, "Operation details".

    >>> x, value = PTensorType((2, 3), "int8"), PTensorType((), "float64", team=1)
    >>> print(CreateLike("float32", team=1).infer(x, value))
    ptensor<2x3xfloat32, team=1>
    """

    name = "create_like"
    takes = (2, 2)

    dtype: str | None = None
    device: str | AttributeOperand | None = None
    team: int | AttributeOperand | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type with the shape of the first operand."""
        x, value = operands
        device = x.device if self.device is None else self.device
        team = x.team if self.team is None else self.team
        result = self._made(x.shape, self.dtype or x.dtype, device, team)
        _check_value(result, value, self.name)
        return result


def _check_value(result: PTensorType, value: PTensorType, where: str) -> None:
    check_same_device_and_team([result, value], where)
    if value.shape:
        raise ArrayValueError(
            "{where}: the value must have 0 axes, got shape {shape}; use broadcast_to for other "
            "shapes",
            kind="array-shapes", where=where, shape=value.shape,
        )
    if value.dtype in COMPLEX and result.dtype not in COMPLEX:
        raise ArrayTypeError(
            "{where}: cannot store a value of dtype {dtype} in {result_dtype}; pass a real value "
            "or another dtype",
            where=where, dtype=value.dtype, result_dtype=result.dtype,
        )


@dataclass(frozen=True)
class Eye(Creation):
    """Matrix with ones on a diagonal and zeros elsewhere.

    Attributes:
        n_rows: Number of rows.
        n_cols: Number of columns.
        k: Diagonal, counted in columns to the right of the main diagonal.
        dtype: dtype of the result.
        device: Device of the result.
        team: Team of the result.
    """

    name = "eye"
    takes = (0, 0)
    open: ClassVar[tuple[str, ...]] = ("n_rows", "n_cols", "k", "device", "team")

    n_rows: int
    n_cols: int
    k: int
    dtype: str
    device: str | AttributeOperand | None = None
    team: int | AttributeOperand | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the matrix."""
        extents = _extent(self.n_rows), _extent(self.n_cols)
        return self._made(extents, self.dtype, self.device, self.team)


@dataclass(frozen=True)
class Linspace(Creation):
    """Given number of evenly spaced numbers over an interval.

    Attributes:
        start: First number.
        stop: Last number, or the excluded end.
        n: Number of elements.
        dtype: dtype of the result.
        endpoint: Whether `stop` is the last number.
        device: Device of the result.
        team: Team of the result.
    """

    name = "linspace"
    takes = (0, 0)
    __eq__ = to_the_bit
    taken: ClassVar[tuple[str, ...]] = FLOATING
    open: ClassVar[tuple[str, ...]] = ("start", "stop", "n", "device", "team")

    start: complex
    stop: complex
    n: int
    dtype: str
    endpoint: bool = True
    device: str | AttributeOperand | None = None
    team: int | AttributeOperand | None = None

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type, of one axis."""
        if self.dtype not in COMPLEX and complex in (type(self.start), type(self.stop)):
            raise ArrayTypeError(
                "linspace: cannot store complex bounds {start} and {stop} in {dtype}; pass a "
                "complex dtype or real bounds",
                start=self.start, stop=self.stop, dtype=self.dtype,
            )
        return self._made((_extent(self.n),), self.dtype, self.device, self.team)


@dataclass(frozen=True)
class ExtractTriangle(Kinded):
    """Triangle of each matrix; other elements are zero.

    Attributes:
        kind: `lower` or `upper`.
        k: Last diagonal of the triangle, counted in columns to the right of the main diagonal.
    """

    name = "extract_triangle"
    kinds = ("lower", "upper")
    open: ClassVar[tuple[str, ...]] = ("k",)

    k: int = 0

    @property
    def where(self) -> str:
        """Name for error messages; the kind alone is not a name."""
        return self.name

    def infer(self, *operands: PTensorType) -> PTensorType:
        """Return the type of the operand."""
        (x,) = operands
        if x.rank < 2:
            called = "tril" if self.kind == "lower" else "triu"
            raise ArrayValueError(
                "{called}: x must have at least 2 axes, got shape {shape}",
                kind="array-shapes", called=called, shape=x.shape,
            )
        return x.like(x.shape)


@dataclass(frozen=True)
class MeshGrid(Several):
    """Coordinate arrays: each operand along its own axis, repeated along the others.

    Attributes:
        indexing: `ij` for axes in order, `xy` to exchange the first two axes.

    >>> row, column = PTensorType((4,), "int8"), PTensorType((3,), "int64")
    >>> print(*MeshGrid("xy").results(row, column))
    ptensor<3x4xint8> ptensor<3x4xint64>
    """

    name = "meshgrid"
    takes = (1, None)

    indexing: str = "xy"

    def __post_init__(self) -> None:
        if self.indexing not in ("xy", "ij"):
            raise ArrayValueError(
                "meshgrid: indexing must be 'xy' or 'ij', got {indexing!r}",
                indexing=self.indexing,
            )

    def results(self, *operands: PTensorType) -> tuple[PTensorType, ...]:
        """Return the grid types, each with the dtype of its operand."""
        for k, operand in enumerate(operands):
            if operand.rank > 1:
                raise ArrayValueError(
                    "{name}: array {k} must have 1 axis, got shape {shape}",
                    kind="array-shapes", name=self.name, k=k, shape=operand.shape,
                )
        check_same_device_and_team(operands, self.name)
        order = self.order(len(operands))
        shape: Shape = tuple([operands[k].shape[0] if operands[k].rank else 1 for k in order])
        return tuple([operand.like(shape) for operand in operands])

    def order(self, count: int) -> tuple[int, ...]:
        """Return for each axis of the grid the operand that varies along it."""
        order = list(range(count))
        if self.indexing == "xy":
            order[:2] = reversed(order[:2])
        return tuple(order)


@dataclass(frozen=True)
class ImportOp(Creation):
    """Import of a function argument as a tensor.

    Attributes:
        shape: Shape that the argument must have.
        dtype: dtype of the tensor.
    """

    shape: Shape
    dtype: str

    def infer(self, *operands: Any) -> PTensorType:
        """Return the type with the given shape."""
        return self._made(
            self.shape, self.dtype, getattr(self, "device", None), getattr(self, "team", None)
        )


@dataclass(frozen=True)
class AsArray(ImportOp):
    """Tensor of a buffer or a number; with a team, each rank passes all elements.

    Attributes:
        shape: Shape; empty for a number.
        dtype: dtype, to which elements are cast.
        copy: True to copy always, False to share the buffer's memory, None to copy if necessary.
        device: Device of the tensor.
        team: Team of the tensor; each rank keeps its shard.

    >>> print(AsArray((4, 5), "float32", team=1).results("ptr")[0])
    ptensor<4x5xfloat32, team=1>
    """

    name = "asarray"
    scalars: ClassVar[tuple[str, ...] | None] = ("ptr", *ALL)

    copy: bool | None = None
    device: str | AttributeOperand | None = None
    team: int | AttributeOperand | None = None

    def infer(self, *operands: Any) -> PTensorType:
        """Return the type with the given shape."""
        (operand,) = operands
        if operand != "ptr" and self.shape:
            raise ArrayValueError(
                "asarray: a scalar operand has 0 axes, but the declared shape is {shape}; "
                "broadcast the scalar instead",
                kind="array-shapes", shape=self.shape,
            )
        if operand in COMPLEX and self.dtype not in COMPLEX:
            raise ArrayTypeError(
                "asarray: cannot store a scalar of dtype {operand} in {dtype}; pass a complex "
                "dtype, or a real scalar",
                operand=operand, dtype=self.dtype,
            )
        return super().infer(operand)


@dataclass(frozen=True)
class FromDlpack(ImportOp):
    """Tensor that shares the memory of a DLPack object.

    Attributes:
        shape: Shape.
        dtype: dtype, which the elements must have.
        device: Device of the memory.

    >>> print(FromDlpack((4,), "int8").results("ptr")[0])
    ptensor<4xint8>
    """

    name = "from_dlpack"
    scalars: ClassVar[tuple[str, ...] | None] = ("ptr",)

    device: str | AttributeOperand | None = None
