"""The classes `Operation` and `Tensor`, slices of tensors, and element loads."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self, overload

import numpy as np

from tecomp.compute.expr_like import OPERATOR_NAMES, ExprLike, value_of
from tecomp.compute.iter_var import IterVar, as_constant_extents
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Const, Expr, as_expr
from tecomp.ir.nodes.printer import Pieces, PrintedName, operands, render
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import contains
from tecomp.source_locations import Location, user_location


class Operation(ABC):
    """Abstract operation that produces one or several tensors; compared by identity.

    Attributes:
        name: Name of the operation and of its tensors.
        outputs: Output tensors.
        location: Source location of the definition.

    >>> from tecomp import te
    >>> n = te.reduce_axis((0, 5), name="n")
    >>> A = te.placeholder((4, 5), name="A")
    >>> B = te.compute((4,), lambda i: te.sum(A[i, n], axis=n), name="B", attrs={"mine": 1})
    >>> op = B.op
    >>> op.name, op.axis, op.reduce_axis, op.input_tensors
    ('B', (i,), (n,), (Tensor(A, shape=(4, 5), dtype=float32),))
    >>> op.shape, op.shapes, op.dtypes, op.num_outputs, op.outputs == (B,), op.tag, dict(op.attrs)
    ((4,), ((4,),), ('float32',), 1, True, '', {'mine': 1})
    >>> op.are_alike, op.location is not None
    (True, True)
    """

    __slots__ = ()

    name: str
    outputs: tuple[Tensor, ...]
    location: Location | None

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    @abstractmethod
    def axis(self) -> tuple[IterVar, ...]:
        """Iteration variables, one per axis of the outputs; empty for a placeholder."""

    @property
    @abstractmethod
    def tag(self) -> str:
        """Tag set by the user, without effect on compilation."""

    @property
    @abstractmethod
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Reduction axes."""

    @property
    @abstractmethod
    def shape(self) -> tuple[Extent, ...]:
        """Shape common to all outputs; `shapes` has the shapes of outputs that differ."""

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        """Shape of each output."""
        return (self.shape,) * len(self.outputs)

    @property
    def are_alike(self) -> bool:
        """Whether all outputs have the same shape."""
        return len({tuple(map(str, shape)) for shape in self.shapes}) == 1

    @property
    @abstractmethod
    def dtypes(self) -> tuple[DType, ...]:
        """Dtype of each output."""

    @property
    @abstractmethod
    def input_tensors(self) -> tuple[Tensor, ...]:
        """Tensors that the operation reads, without duplicates, in order of appearance."""

    @abstractmethod
    def elementwise(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> Tensor:
        """Return the tensor of a function applied element-wise to the broadcast operands."""

    @abstractmethod
    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text."""

    @property
    @abstractmethod
    def attrs(self) -> Mapping[str, object]:
        """Attributes set by the user, without effect on compilation."""

    @property
    def num_outputs(self) -> int:
        """Number of outputs."""
        return len(self.dtypes)

    def output(self, index: int) -> Tensor:
        """Return output number `index`, counted from 0.

        Raises:
            IndexError: If the operation has fewer outputs.

        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> A.op.output(0) == A
        True
        """
        return self.outputs[index]

    def __str__(self) -> str:
        return render(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor(ExprLike):
    """Output `value_index` of an operation.

    Two tensors are equal if they are the same output of the same operation. In arithmetic, a
    tensor without axes represents its element. Operators on other tensors are element-wise with
    broadcasting and return a tensor: `3 + A` adds 3 to each element. An element is written
    `A[i, j]`, `A(i, j)` or `A[i][j]`.

    >>> from tecomp import te
    >>> A = te.placeholder((4, 5), name="A")
    >>> A
    Tensor(A, shape=(4, 5), dtype=float32)
    >>> A.shape, A.ndim, A.dtype, A.name, A.op.name, A.value_index
    ((4, 5), 2, 'float32', 'A', 'A', 0)
    >>> print((A + 3).op)
    T_add[ax0, ax1] = A[ax0, ax1] + float32(3.0)
    """

    # `structural_equality.same` compares a tensor by identity, as a variable.
    is_variable: ClassVar[bool] = True

    op: Operation
    value_index: int

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents of the axes; constant extents are ints with a `value` attribute, as in TVM."""
        return as_constant_extents(self.op.shapes[self.value_index])

    @property
    def ndim(self) -> int:
        """Number of axes."""
        return len(self.op.shapes[self.value_index])

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.op.dtypes[self.value_index]

    @property
    def name(self) -> str:
        """Name of the operation, with the suffix `_v0`, `_v1` ... if it has several outputs."""
        return self.op.name + (f"_v{self.value_index}" if self.op.num_outputs > 1 else "")

    def as_expr(self) -> Expr:
        """Return the load of the element of a tensor without axes.

        Raises:
            TypeMismatchError: If the tensor has axes.
        """
        if not self.ndim:
            return TensorLoad(self, (), user_location())
        raise TypeMismatchError(
            "{name} is a tensor of shape {shape}, not a number; index it: {example}",
            kind="tensor-as-scalar", name=self.name, shape=shape_text(self.shape),
            example=example(self),
        )

    @property
    def is_whole(self) -> bool:
        """Whether operators apply element-wise and return a tensor: the tensor has axes."""
        return bool(self.shape)

    def combined(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Return the tensor of an operator applied element-wise to the broadcast operands.

        Raises:
            DefinitionError: If the shapes are not broadcast-compatible.
            TypeMismatchError: If an operand depends on axes, or the operator does not support
                tensors.
        """
        if function not in OPERATOR_NAMES or any(map(_has_axes, operands)):
            self.as_expr()
        return self.op.elementwise(OPERATOR_NAMES[function], function, operands)

    def of_element(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """Return the zero-dimensional tensor of an operator on such tensors and on numbers."""
        if function not in OPERATOR_NAMES or not all(map(_is_alone, operands)):
            return ExprLike.of_element(self, function, operands)
        formula = function(*map(value_of, operands))
        tensor = self.op.elementwise(OPERATOR_NAMES[function], function, operands)
        return ScalarFormula(tensor.op, 0, formula)

    def astype(self, dtype: str) -> Any:
        """Cast the tensor to `dtype` element-wise.

        Returns:
            A tensor of the same shape, or an expression for a tensor without axes.

        Raises:
            TypeMismatchError: If the dtype does not exist.

        >>> from tecomp import te
        >>> A = te.placeholder((4, 5), "float32", "A")
        >>> A.astype("int32")
        Tensor(T_cast, shape=(4, 5), dtype=int32)
        """
        if not self.is_whole:
            return ExprLike.astype(self, dtype)
        kind = DType(dtype)
        return self.op.elementwise("T_cast", lambda value: value.astype(kind), (self,))

    @overload
    def __getitem__(self, indices: tuple[Any, ...]) -> Expr: ...

    # One index gives an element of a vector or a slice of a higher-rank tensor; the static type
    # does not contain the rank.
    @overload
    def __getitem__(self, indices: object) -> Any: ...

    def __getitem__(self, indices: object) -> Any:
        items = indices if isinstance(indices, tuple) else (indices,)
        return _element(self, tuple([_index(self, k, index) for k, index in enumerate(items)]))

    def __call__(self, *indices: object) -> Expr:
        """Return the element at `indices`, the same as `A[i, j]`."""
        element = self[indices]
        if isinstance(element, TensorSlice):
            element.as_expr()
        load: Expr = element
        return load

    def __iter__(self) -> Iterator[NoReturn]:
        raise TypeMismatchError(
            "{name} is a tensor of shape {shape} that has no elements before the kernel runs, and "
            "cannot be iterated over; index it: {example}",
            kind="tensor-as-scalar", name=self.name, shape=shape_text(self.shape),
            example=example(self),
        )

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self.op is other.op and self.value_index == other.value_index
        return ExprLike.__eq__(self, other)

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return not self == other
        return ExprLike.__ne__(self, other)

    def __hash__(self) -> int:
        return hash((id(self.op), self.value_index))

    def __repr__(self) -> str:
        return f"Tensor({self.name}, shape={shape_text(self.shape)}, dtype={self.dtype})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class ScalarFormula(Tensor):
    """Zero-dimensional tensor made by an operator; in an expression, it represents its expression.

    Scalar inputs can therefore be combined by operators inside the function of a `te.compute`.

    Attributes:
        formula: Expression that computes the element.
    """

    formula: Expr

    def as_expr(self) -> Expr:
        """Return the formula of the element."""
        return self.formula


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorSlice(ExprLike):
    """Tensor with leading indices or ranges, such as `A[i]` or `A[i, 0:16]`.

    `A[i][j]` equals `A[i, j]`. Slices with ranges are the arguments of intrinsics.

    Attributes:
        tensor: Sliced tensor.
        indices: Index expressions, and slices of expressions.
        location: Source location of the slice.

    >>> from tecomp import te
    >>> A = te.placeholder((4, 32), "int8", "A")
    >>> row = A[2]
    >>> row, row.tensor == A, row.indices, row.dtype, row.location is not None
    (TensorSlice(A[2] of shape (4, 32)), True, (int32(2),), 'int8', True)
    >>> row[5]
    A[int32(2), int32(5)]
    """

    tensor: Tensor
    indices: tuple[Expr | slice, ...]
    location: Location | None = None

    @property
    def dtype(self) -> DType:
        """Dtype of the elements."""
        return self.tensor.dtype

    def as_expr(self) -> Expr:
        """Raise, because a slice is not a single element.

        Raises:
            DefinitionError: If indices are missing.
            TypeMismatchError: If an index is a range.
        """
        self._refuse_ranges()
        _refuse_count(self.tensor, len(self.indices), self.location)

    def _refuse_ranges(self) -> None:
        if any(isinstance(index, slice) for index in self.indices):
            raise TypeMismatchError(
                "{tensor}[{indices}] is a slice of {tensor}, not a number; call an intrinsic on "
                "it, or index an element: {example}",
                self.location, kind="tensor-as-scalar", tensor=self.tensor.name,
                indices=", ".join(map(range_text, self.indices)), example=example(self.tensor),
            )

    def __getitem__(self, indices: object) -> Any:
        self._refuse_ranges()
        items = indices if isinstance(indices, tuple) else (indices,)
        first = len(self.indices)
        added = tuple(_index(self.tensor, first + k, index) for k, index in enumerate(items))
        return _element(self.tensor, self.indices + added)

    def __iter__(self) -> Iterator[NoReturn]:
        return iter(self.tensor)

    def __repr__(self) -> str:
        indices = ", ".join(map(range_text, self.indices))
        shape = shape_text(self.tensor.shape)
        return f"TensorSlice({self.tensor.name}[{indices}] of shape {shape})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorLoad(Expr):
    """Load of the element of `tensor` at `indices`.

    Attributes:
        tensor: Tensor to read.
        indices: Index expressions, one per axis.
        location: Source location of the access.
        dtype: Dtype of the element.
    """

    tensor: Tensor
    indices: tuple[Expr, ...]
    location: Location | None = field(default=None, compare=False)
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.tensor.dtype)

    def __getitem__(self, indices: object) -> NoReturn:
        count = len(indices) if isinstance(indices, tuple) else 1
        _refuse_count(self.tensor, len(self.indices) + count)

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text."""
        return access(self.tensor, self.indices)


def access(tensor: Tensor, indices: tuple[Expr, ...]) -> Pieces:
    """Yield the printed text of an access: `A[i, j]`, or `A[()]` without indices."""
    yield PrintedName(tensor)
    yield "["
    yield from operands(indices) if indices else ("()",)
    yield "]"


def example(tensor: Tensor) -> str:
    """Return an example of an element access, for error messages."""
    names = ("i", "j", "k", "l") if tensor.ndim <= 4 else [f"i{k}" for k in range(tensor.ndim)]
    return f"{tensor.name}[{', '.join(names[: tensor.ndim]) or '()'}]"


def _is_alone(operand: object) -> bool:
    """Return whether an operand of `of_element` is a tensor or a value independent of axes."""
    if isinstance(operand, Expr):
        return not contains(IterVar, operand)
    return isinstance(operand, Tensor | int | float | np.generic)


def _has_axes(operand: object) -> bool:
    """Return whether an operand depends on axes; a tensor slice raises an error."""
    if isinstance(operand, TensorSlice):
        operand.as_expr()
    return isinstance(operand, Expr) and contains(IterVar, operand)


def _element(
    tensor: Tensor, indices: tuple[Expr | slice, ...]
) -> TensorLoad | TensorSlice:
    rank = tensor.ndim
    if len(indices) > rank or (rank and not indices):
        _refuse_count(tensor, len(indices))
    exprs = tuple([index for index in indices if not isinstance(index, slice)])
    if len(exprs) < rank:
        return TensorSlice(tensor, indices, user_location())
    return TensorLoad(tensor, exprs, user_location())


def range_text(index: Expr | slice) -> str:
    """Return the source text of an index or a range."""
    if isinstance(index, slice):
        return ":".join("" if end is None else range_text(end) for end in (index.start, index.stop))
    return str(index.value if isinstance(index, Const) else index)


def _refuse_count(tensor: Tensor, count: int, location: Location | None = None) -> NoReturn:
    axes = "1 axis" if tensor.ndim == 1 else f"{tensor.ndim} axes"
    raise DefinitionError(
        "{tensor} has {axes}, shape {shape}, got {count} {noun}; write {example}",
        location, kind="index-count", tensor=tensor.name, axes=axes,
        shape=shape_text(tensor.shape), count=count, noun="index" if count == 1 else "indices",
        example=example(tensor),
    )


def _index(tensor: Tensor, axis: int, index: Any) -> Expr | slice:
    """Return `index` as an expression, or as a slice whose bounds are expressions.

    Raises:
        TypeMismatchError: If the index is not an integer, or is a range with a step other than 1.
    """
    if not isinstance(index, slice):
        return _place(tensor, axis, index)
    if index.step is not None and not (isinstance(index.step, int) and index.step == 1):
        raise TypeMismatchError(
            "{tensor}[...]: index {axis} is {index!r}, but slices with a step are not supported; "
            "write first:end",
            kind="index-type", tensor=tensor.name, axis=axis, index=index,
        )
    first, last = (
        None if end is None else _place(tensor, axis, end) for end in (index.start, index.stop)
    )
    return slice(first, last)


def _place(tensor: Tensor, axis: int, index: Any) -> Expr:
    """Return `index` as a scalar integer expression.

    Raises:
        TypeMismatchError: If the index is not an integer.
    """
    if isinstance(index, ExprLike):
        index = index.as_expr()
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        return as_expr(index)
    if isinstance(index, Expr) and index.dtype.is_integer and index.dtype.lanes == 1:
        return index
    kind = index.dtype if isinstance(index, Expr) else type(index).__name__
    number = isinstance(index, Expr | float | bool | np.generic)
    remedy = 'convert it with .astype("int32") if that is intended'
    raise TypeMismatchError(
        "{tensor}[...]: index {axis} must be an integer, got {index!r} ({type}); {remedy}",
        kind="index-type", tensor=tensor.name, axis=axis, index=index, type=kind,
        remedy=remedy if number else f"write {example(tensor)}",
    )
