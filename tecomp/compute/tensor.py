"""Tensors, with the operations that make them: each knows the other."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, ClassVar, NoReturn, Self, overload

import numpy as np

from tecomp.compute.expr_like import OPERATOR_NAMES, Arithmetic, value_of
from tecomp.compute.iter_var import IterVar, known
from tecomp.errors import DefinitionError, TypeMismatchError
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Const, Expr, as_expr
from tecomp.ir.nodes.printer import Name, Pieces, operands, render
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import walk
from tecomp.source_locations import Location, user_location


class Operation(ABC):
    """Makes one or several tensors of one shape; the same as itself only.

    Attributes:
        name: what its tensors are called.
        outputs: its tensors.
        location: where the user defined it.

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
        """One variable for each axis of what it computes; a placeholder has none."""

    @property
    @abstractmethod
    def tag(self) -> str:
        """Free text that the user gave it."""

    @property
    @abstractmethod
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes that it reduces over."""

    @property
    @abstractmethod
    def shape(self) -> tuple[Extent, ...]:
        """Extents of the tensors; of those that it has for itself where they differ: none."""

    @property
    def shapes(self) -> tuple[tuple[Extent, ...], ...]:
        """Extents of each tensor."""
        return (self.shape,) * len(self.outputs)

    @property
    def are_alike(self) -> bool:
        """Whether all of its tensors have one shape."""
        return len({tuple(map(str, shape)) for shape in self.shapes}) == 1

    @property
    @abstractmethod
    def dtypes(self) -> tuple[DType, ...]:
        """Type of an element of each tensor."""

    @property
    @abstractmethod
    def input_tensors(self) -> tuple[Tensor, ...]:
        """Tensors that it reads, each once, in order of appearance."""

    @abstractmethod
    def elementwise(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> Tensor:
        """A tensor of what a function gives for the elements of operands, which are broadcast."""

    @abstractmethod
    def pieces(self) -> Pieces:
        """The text, piece by piece."""

    @property
    @abstractmethod
    def attrs(self) -> Mapping[str, object]:
        """Free values that the user attached."""

    @property
    def num_outputs(self) -> int:
        """How many tensors it makes."""
        return len(self.dtypes)

    def output(self, index: int) -> Tensor:
        """Tensor `index`, counted from 0.

        Raises:
            IndexError: it makes fewer.

        >>> from tecomp import te
        >>> A = te.placeholder((4,), name="A")
        >>> A.op.output(0) == A
        True
        """
        return self.outputs[index]

    def __str__(self) -> str:
        return render(self)


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Tensor(Arithmetic):
    """Output `value_index` of an operation.

    Two are equal if they are the same output of the same operation. A tensor of no axes stands for
    its element in arithmetic. Operators on others are for all elements, and make a tensor: `3 + A`
    has all sums, and operands of other shapes are broadcast. An element is `A[i, j]`, `A(i, j)` or
    `A[i][j]`.

    >>> from tecomp import te
    >>> A = te.placeholder((4, 5), name="A")
    >>> A
    Tensor(A, shape=(4, 5), dtype=float32)
    >>> A.shape, A.ndim, A.dtype, A.name, A.op.name, A.value_index
    ((4, 5), 2, 'float32', 'A', 'A', 0)
    >>> print((A + 3).op)
    T_add[ax0, ax1] = A[ax0, ax1] + float32(3.0)
    """

    # `same` compares it as it does a variable.
    is_variable: ClassVar[bool] = True

    op: Operation
    value_index: int

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, memo: object) -> Self:
        return self

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents: ints where they are known, which have a `value` too."""
        return known(self.op.shapes[self.value_index])

    @property
    def ndim(self) -> int:
        """How many axes it has."""
        return len(self.shape)

    @property
    def dtype(self) -> DType:
        """Type of an element."""
        return self.op.dtypes[self.value_index]

    @property
    def name(self) -> str:
        """Name of the operation; with `_v0`, `_v1`... where it has several outputs."""
        return self.op.name + (f"_v{self.value_index}" if self.op.num_outputs > 1 else "")

    def as_expr(self) -> Expr:
        """The element of a tensor of no axes."""
        if not self.ndim:
            return TensorLoad(self, (), user_location())
        raise TypeMismatchError(
            f"{self.name} is a tensor of shape {shape_text(self.shape)}, not a number; "
            f"index it: {example(self)}",
            kind="whole-tensor",
        )

    @property
    def is_whole(self) -> bool:
        """Whether operators are for all its elements, and make a tensor: it has axes."""
        return bool(self.shape)

    def combined(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """A tensor of what an operator gives for elements, of broadcast shapes.

        Raises:
            DefinitionError: the shapes do not broadcast.
            TypeMismatchError: an operand depends on axes, or the operator is none for tensors.
        """
        if function not in OPERATOR_NAMES or any(map(_has_axes, operands)):
            self.as_expr()
        return self.op.elementwise(OPERATOR_NAMES[function], function, operands)

    def of_element(self, function: Callable[..., Any], operands: tuple[Any, ...]) -> Any:
        """A tensor of no axes, of such tensors and of numbers; it stands for its formula."""
        if function not in OPERATOR_NAMES or not all(map(_is_alone, operands)):
            return Arithmetic.of_element(self, function, operands)
        formula = function(*map(value_of, operands))
        made = self.op.elementwise(OPERATOR_NAMES[function], function, operands)
        return Formula(made.op, 0, formula)

    def astype(self, dtype: str) -> Any:
        """The element, or all elements, converted to `dtype`.

        Returns:
            A tensor of the same shape; an expression for a tensor of no axes.

        Raises:
            TypeMismatchError: there is no such type.

        >>> from tecomp import te
        >>> A = te.placeholder((4, 5), "float32", "A")
        >>> A.astype("int32")
        Tensor(T_cast, shape=(4, 5), dtype=int32)
        """
        if not self.is_whole:
            return Arithmetic.astype(self, dtype)
        kind = DType(dtype)
        return self.op.elementwise("T_cast", lambda value: value.astype(kind), (self,))

    @overload
    def __getitem__(self, indices: tuple[Any, ...]) -> Expr: ...

    # An element of a vector, or a slice of more: the rank is not part of the type.
    @overload
    def __getitem__(self, indices: object) -> Any: ...

    def __getitem__(self, indices: object) -> Any:
        given = indices if isinstance(indices, tuple) else (indices,)
        return _element(self, tuple(_index(self, k, index) for k, index in enumerate(given)))

    def __call__(self, *indices: object) -> Expr:
        """The element at `indices`, as `A[i, j]`."""
        element = self[indices]
        if isinstance(element, TensorSlice):
            element.as_expr()
        made: Expr = element
        return made

    def __iter__(self) -> Iterator[NoReturn]:
        raise TypeMismatchError(
            f"{self.name} is a tensor of shape {shape_text(self.shape)} that has no elements "
            f"until it runs, and cannot be iterated over; index it: {example(self)}",
            kind="whole-tensor",
        )

    def __eq__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return self.op is other.op and self.value_index == other.value_index
        return Arithmetic.__eq__(self, other)

    def __ne__(self, other: object) -> Any:
        if isinstance(other, Tensor):
            return not self == other
        return Arithmetic.__ne__(self, other)

    def __hash__(self) -> int:
        return hash((id(self.op), self.value_index))

    def __repr__(self) -> str:
        return f"Tensor({self.name}, shape={shape_text(self.shape)}, dtype={self.dtype})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class Formula(Tensor):
    """A tensor of no axes that an operator made: in a larger formula it is what it computes.

    So numbers that are passed in can be computed with in the function of a `te.compute`.
    """

    formula: Expr

    def as_expr(self) -> Expr:
        """What it computes."""
        return self.formula


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorSlice(Arithmetic):
    """A tensor with the first of its indices given, or with ranges for some: `A[i, 0:16]`.

    `A[i][j]` is `A[i, j]`. Parts of tensors are what intrinsics are called on.

    Attributes:
        tensor: of which it is a part.
        indices: expressions, and slices of expressions.
        location: where the user wrote it.

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
        """Type of an element."""
        return self.tensor.dtype

    def as_expr(self) -> Expr:
        """Refused: it stands for many elements."""
        self._refuse_ranges()
        _refuse_count(self.tensor, len(self.indices), self.location)

    def _refuse_ranges(self) -> None:
        if any(isinstance(index, slice) for index in self.indices):
            raise TypeMismatchError(
                f"{self.tensor.name}[{', '.join(map(range_text, self.indices))}] is a part of "
                f"{self.tensor.name}, not a number; call an intrinsic on it, or index an element: "
                f"{example(self.tensor)}",
                self.location,
                kind="whole-tensor",
            )

    def __getitem__(self, indices: object) -> Any:
        self._refuse_ranges()
        given = indices if isinstance(indices, tuple) else (indices,)
        first = len(self.indices)
        more = tuple(_index(self.tensor, first + k, index) for k, index in enumerate(given))
        return _element(self.tensor, self.indices + more)

    def __iter__(self) -> Iterator[NoReturn]:
        return iter(self.tensor)

    def __repr__(self) -> str:
        indices = ", ".join(map(range_text, self.indices))
        shape = shape_text(self.tensor.shape)
        return f"TensorSlice({self.tensor.name}[{indices}] of shape {shape})"


@dataclass(frozen=True, slots=True, eq=False, repr=False)
class TensorLoad(Expr):
    """The element of `tensor` at `indices`; `location` is where the user wrote it."""

    tensor: Tensor
    indices: tuple[Expr, ...]
    location: Location | None = field(default=None, compare=False)
    dtype: DType = field(init=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "dtype", self.tensor.dtype)

    def __getitem__(self, indices: object) -> NoReturn:
        more = len(indices) if isinstance(indices, tuple) else 1
        _refuse_count(self.tensor, len(self.indices) + more)

    def pieces(self) -> Pieces:
        """The text, piece by piece."""
        return access(self.tensor, self.indices)


def access(tensor: Tensor, indices: tuple[Expr, ...]) -> Pieces:
    """`A[i, j]`, or `A[()]` for no indices."""
    yield Name(tensor)
    yield "["
    yield from operands(indices) if indices else ("()",)
    yield "]"


def example(tensor: Tensor) -> str:
    """How an element of the tensor is written."""
    names = ("i", "j", "k", "l") if tensor.ndim <= 4 else [f"i{k}" for k in range(tensor.ndim)]
    return f"{tensor.name}[{', '.join(names[: tensor.ndim]) or '()'}]"


def _is_alone(operand: object) -> bool:
    """Whether an operand is a tensor of no axes, or a number that depends on no axis."""
    if isinstance(operand, Expr):
        return not any(isinstance(node, IterVar) for node in walk(operand))
    return isinstance(operand, Tensor | int | float | np.generic)


def _has_axes(operand: object) -> bool:
    """Whether an operand beside a tensor is the value at one index of something."""
    if isinstance(operand, TensorSlice):
        operand.as_expr()
    return isinstance(operand, Expr) and any(isinstance(node, IterVar) for node in walk(operand))


def _element(
    tensor: Tensor, indices: tuple[Expr | slice, ...]
) -> TensorLoad | TensorSlice:
    if len(indices) > tensor.ndim or (tensor.ndim and not indices):
        _refuse_count(tensor, len(indices))
    places = tuple(index for index in indices if not isinstance(index, slice))
    if len(places) < tensor.ndim:
        return TensorSlice(tensor, indices, user_location())
    return TensorLoad(tensor, places, user_location())


def range_text(index: Expr | slice) -> str:
    """An index, or a range of them, as it is written."""
    if isinstance(index, slice):
        return ":".join("" if end is None else range_text(end) for end in (index.start, index.stop))
    return str(index.value if isinstance(index, Const) else index)


def _refuse_count(tensor: Tensor, count: int, location: Location | None = None) -> NoReturn:
    axes = "1 axis" if tensor.ndim == 1 else f"{tensor.ndim} axes"
    raise DefinitionError(
        f"{tensor.name} has {axes}, shape {shape_text(tensor.shape)}, and is given "
        f"{count} {'index' if count == 1 else 'indices'}; write {example(tensor)}",
        location,
        kind="index-count",
    )


def _index(tensor: Tensor, axis: int, index: Any) -> Expr | slice:
    """`index` as an expression, or a range with ends that are expressions.

    Raises:
        TypeMismatchError: it is no integer, or a range of steps other than 1.
    """
    if not isinstance(index, slice):
        return _place(tensor, axis, index)
    if index.step is not None and not (isinstance(index.step, int) and index.step == 1):
        raise TypeMismatchError(
            f"{tensor.name}[...]: index {axis} is {index!r}, and a range has no step; write "
            "first:end",
            kind="index-type",
        )
    first, last = (
        None if end is None else _place(tensor, axis, end) for end in (index.start, index.stop)
    )
    return slice(first, last)


def _place(tensor: Tensor, axis: int, index: Any) -> Expr:
    """`index` as an expression.

    Raises:
        TypeMismatchError: it is no integer.
    """
    if isinstance(index, Arithmetic):
        index = index.as_expr()
    if isinstance(index, int | np.integer) and not isinstance(index, bool):
        return as_expr(index)
    if isinstance(index, Expr) and index.dtype.is_integer and index.dtype.lanes == 1:
        return index
    kind = index.dtype if isinstance(index, Expr) else type(index).__name__
    number = isinstance(index, Expr | float | bool | np.generic)
    raise TypeMismatchError(
        f"{tensor.name}[...]: index {axis} is {index!r} ({kind}), and an index is an integer; "
        + (
            'convert it with .astype("int32") if that is meant'
            if number
            else f"write {example(tensor)}"
        ),
        kind="index-type",
    )
