"""The operation classes `PlaceholderOp` and `ComputeOp`."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from operator import attrgetter
from types import MappingProxyType
from typing import Any

from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Operation, Tensor, TensorLoad, access
from tecomp.ir.nodes.argument_checks import broadcast_index, broadcast_shape
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.printer import NEWLINE, ParenthesizedOperand, Pieces, PrintedName, tuple_of
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import fold, nodes_of
from tecomp.source_locations import Location, user_location

__all__ = ["ComputeOp", "Operation", "PlaceholderOp"]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceholderOp(Operation):
    """Input tensor that the caller passes in; created by `te.placeholder`.

    Attributes:
        name: Name of the tensor.
        shape: Extents of the tensor.
        dtype: Dtype of the elements.
        location: Source location of the definition.
        outputs: The tensor, as a tuple of length 1.

    >>> from tecomp import te
    >>> op = te.placeholder((4, 5), "int8", "A").op
    >>> op.name, op.shape, op.dtype, op.outputs
    ('A', (4, 5), 'int8', (Tensor(A, shape=(4, 5), dtype=int8),))
    >>> op.axis, op.reduce_axis, op.input_tensors, op.tag, dict(op.attrs)
    ((), (), (), '', {})
    """

    name: str
    shape: tuple[Extent, ...] = field()
    dtype: DType = field()
    location: Location | None = field(default=None, compare=False, repr=False)
    outputs: tuple[Tensor, ...] = field(init=False, repr=False)

    def __post_init__(self) -> None:
        object.__setattr__(self, "outputs", (Tensor(self, 0),))

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """No axes, because the caller computes the tensor."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """No reduction axes."""
        return ()

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Dtype of the elements, as a tuple of length 1."""
        return (self.dtype,)

    @property
    def tag(self) -> str:
        """Empty tag."""
        return ""

    @property
    def attrs(self) -> Mapping[str, object]:
        """No attributes."""
        return {}

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """No input tensors."""
        return ()

    def elementwise(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> Tensor:
        """Return the tensor of a function applied element-wise to the broadcast operands."""
        return _elementwise(name, function, operands)

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text."""
        yield PrintedName(self.outputs[0])
        yield " = placeholder("
        yield from tuple_of(self.shape)
        yield f', "{self.dtype}")'


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ComputeOp(Operation):
    """Tensor definition by index: the element of output k at index `axis` is `body[k]`.

    The bodies are either `Reduce` nodes that differ in `value_index` only, or expressions without
    `Reduce`.

    Attributes:
        name: Name of the operation and of its tensors.
        axis: Iteration variables, one per axis of the outputs.
        body: Expressions, one per output.
        tag: Tag set by the user.
        attrs: Attributes set by the user.
        location: Source location of the definition.
        outputs: Output tensors.
        input_tensors: Tensors that the bodies read, without duplicates, in order of appearance.
        known: Cache of analysis results; the keys identify the analysis. Entries never change,
            because the operation is immutable.

    >>> from tecomp import te
    >>> A = te.placeholder((4, 5), name="A")
    >>> B = te.compute((4, 5), lambda i, j: A[i, j] * 2.0, name="B", tag="double", attrs={"n": 1})
    >>> op = B.op
    >>> print(op)
    B[i, j] = A[i, j] * float32(2.0)
    >>> op.name, op.axis, op.loops, op.reduce_axis, op.shape, op.dtypes
    ('B', (i, j), (i, j), (), (4, 5), ('float32',))
    >>> op.body, op.tag, dict(op.attrs), op.input_tensors, op.outputs == (B,)
    ((A[i, j] * float32(2.0),), 'double', {'n': 1}, (Tensor(A, shape=(4, 5), dtype=float32),), True)
    """

    name: str
    axis: tuple[IterVar, ...] = field()
    body: tuple[Expr, ...] = field()
    tag: str = ""
    attrs: Mapping[str, object] = field(default_factory=lambda: MappingProxyType({}))
    location: Location | None = field(default=None, compare=False, repr=False)
    outputs: tuple[Tensor, ...] = field(init=False, repr=False)
    input_tensors: tuple[Tensor, ...] = field(init=False, repr=False)
    known: dict[object, Any] = field(init=False, repr=False, default_factory=dict)

    def __getstate__(self) -> tuple[list[Any], dict[str, Any]]:
        # Pickle subexpressions in post-order first, so that the recursion depth of pickle stays
        # small for deep expressions.
        parts: list[Any] = []
        for value in self.body:
            fold(value, lambda node, _: parts.append(node))
        state = {field.name: getattr(self, field.name) for field in fields(self)}
        return parts, state | {"known": {}}

    def __setstate__(self, state: tuple[list[Any], dict[str, Any]]) -> None:
        for name, value in state[1].items():
            object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        reads = [load.tensor for load in nodes_of(TensorLoad, *self.body)]
        outputs = tuple([Tensor(self, k) for k in range(len(self.body))])
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "input_tensors", tuple(dict.fromkeys(reads)))

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Shape of the outputs."""
        shape: tuple[Extent, ...] | None = self.known.get("shape")
        if shape is None:
            shape = self.known["shape"] = tuple([axis.extent for axis in self.axis])
        return shape

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Dtype of each output."""
        return tuple(map(attrgetter("dtype"), self.body))

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Reduction axes of the body."""
        first = self.body[0]
        return first.axis if isinstance(first, Reduce) else ()

    def rewritten(self, change: Callable[[Expr], Expr]) -> ComputeOp:
        """Return the operation with `change` applied to its expressions."""
        return replace(self, body=tuple(map(change, self.body)))

    @property
    def loops(self) -> tuple[IterVar, ...]:
        """Loops of the default schedule: one per axis, reduction loops innermost."""
        return (*self.axis, *self.reduce_axis)

    def elementwise(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> Tensor:
        """Return the tensor of a function applied element-wise to the broadcast operands."""
        return _elementwise(name, function, operands)

    def print_tokens(self) -> Pieces:
        """Yield the pieces of the printed text, `C[i, j] = sum(A[i, k] * B[k, j], axis=[k])`."""
        first = self.body[0]
        if isinstance(first, Reduce) and len(self.body) > 1:
            for k, tensor in enumerate(self.outputs):
                yield ", " if k else ""
                yield from access(tensor, self.axis)
            yield " = "
            yield from first.call_pieces()
            return
        for k, (tensor, expr) in enumerate(zip(self.outputs, self.body, strict=True)):
            if k:
                yield NEWLINE
            yield from access(tensor, self.axis)
            yield " = "
            yield ParenthesizedOperand(expr)


def _elementwise(name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Tensor:
    """Return the tensor of a function applied element-wise to the broadcast operands.

    The names of the operation and its axes, and the tags, follow topi.
    """
    shapes = [operand.shape for operand in operands if isinstance(operand, Tensor)]
    shape = broadcast_shape(shapes, name)
    axis = tuple(make_axis(f"ax{k}", 0, n, IterKind.DATA) for k, n in enumerate(shape))
    location = user_location()
    body = function(*(
        TensorLoad(operand, broadcast_index(operand.shape, axis), location)
        if isinstance(operand, Tensor) else operand for operand in operands
    ))
    tag = "broadcast" if len(shapes) > 1 else "elemwise"
    return ComputeOp(name, axis, (body,), tag, location=location).outputs[0]
