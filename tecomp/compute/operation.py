"""What makes tensors: a placeholder that the caller passes in, or a definition by index."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from types import MappingProxyType
from typing import Any

from tecomp.compute.iter_var import IterKind, IterVar, make_axis
from tecomp.compute.reduce import Reduce
from tecomp.compute.tensor import Operation, Tensor, TensorLoad, access
from tecomp.ir.nodes.argument_checks import broadcast_index, broadcast_shape
from tecomp.ir.nodes.dtype import DType
from tecomp.ir.nodes.expr import Expr
from tecomp.ir.nodes.printer import NEWLINE, Name, Operand, Pieces, tuple_of
from tecomp.ir.nodes.stmt import Extent
from tecomp.ir.traversal.rewrite import fold, walk
from tecomp.source_locations import Location, user_location

__all__ = ["ComputeOp", "Operation", "PlaceholderOp"]


@dataclass(frozen=True, slots=True, eq=False)
class PlaceholderOp(Operation):
    """A tensor that the caller passes in; made by `te.placeholder`.

    Attributes:
        name: what the tensor is called.
        shape: its extents.
        dtype: type of an element.
        location: where the user defined it.
        outputs: the tensor.

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
        """None: the caller computes it."""
        return ()

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """None."""
        return ()

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Type of an element."""
        return (self.dtype,)

    @property
    def tag(self) -> str:
        """None."""
        return ""

    @property
    def attrs(self) -> Mapping[str, object]:
        """None."""
        return {}

    @property
    def input_tensors(self) -> tuple[Tensor, ...]:
        """Nothing."""
        return ()

    def elementwise(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> Tensor:
        """A tensor of what a function gives for the elements of operands."""
        return _elementwise(name, function, operands)

    def pieces(self) -> Pieces:
        """The text, piece by piece."""
        yield Name(self.outputs[0])
        yield " = placeholder("
        yield from tuple_of(self.shape)
        yield f', "{self.dtype}")'


@dataclass(frozen=True, slots=True, eq=False, weakref_slot=True)
class ComputeOp(Operation):
    """Element `axis` of output k is `body[k]`.

    The bodies are `Reduce` nodes that differ in `value_index` only, or contain no `Reduce`.

    Attributes:
        axis: one variable for each axis of the outputs.
        body: one expression for each output.
        tag: free text.
        attrs: free values that the user attached.
        location: where the user defined it.
        outputs: its tensors.
        input_tensors: tensors that it reads, each once, in order of appearance.
        known: what was found out about it before, by who asked; it never changes.

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
        # Parts before what they are parts of: a pickle of a deep expression is not deep then.
        parts: list[Any] = []
        for value in self.body:
            fold(value, lambda node, _: parts.append(node))
        own = {each.name: getattr(self, each.name) for each in fields(self)}
        return parts, own | {"known": {}}

    def __setstate__(self, state: tuple[list[Any], dict[str, Any]]) -> None:
        for name, value in state[1].items():
            object.__setattr__(self, name, value)

    def __post_init__(self) -> None:
        reads = (n.tensor for n in walk(*self.body) if isinstance(n, TensorLoad))
        outputs = tuple(Tensor(self, k) for k in range(len(self.body)))
        object.__setattr__(self, "outputs", outputs)
        object.__setattr__(self, "input_tensors", tuple(dict.fromkeys(reads)))

    @property
    def shape(self) -> tuple[Extent, ...]:
        """Extents of the tensors."""
        return tuple(axis.extent for axis in self.axis)

    @property
    def dtypes(self) -> tuple[DType, ...]:
        """Type of an element of each tensor."""
        return tuple(expr.dtype for expr in self.body)

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """The axes that the body reduces over."""
        first = self.body[0]
        return first.axis if isinstance(first, Reduce) else ()

    def rewritten(self, change: Callable[[Expr], Expr]) -> ComputeOp:
        """The operation with changed expressions."""
        return replace(self, body=tuple(map(change, self.body)))

    @property
    def loops(self) -> tuple[IterVar, ...]:
        """The loops before a schedule changes them: one for each axis, reductions innermost."""
        return (*self.axis, *self.reduce_axis)

    def elementwise(
        self, name: str, function: Callable[..., Any], operands: Sequence[Any]
    ) -> Tensor:
        """A tensor of what a function gives for the elements of operands."""
        return _elementwise(name, function, operands)

    def pieces(self) -> Pieces:
        """The text, piece by piece: `C[i, j] = sum(A[i, k] * B[k, j], axis=[k])`."""
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
            yield Operand(expr)


def _elementwise(name: str, function: Callable[..., Any], operands: Sequence[Any]) -> Tensor:
    """A tensor of what a function gives for the elements of operands, which are broadcast.

    Its names, of axes too, and its tags are those of topi.
    """
    shapes = [each.shape for each in operands if isinstance(each, Tensor)]
    shape = broadcast_shape(shapes, name)
    axis = tuple(make_axis(f"ax{k}", 0, n, IterKind.DATA) for k, n in enumerate(shape))
    location = user_location()
    body = function(*(
        TensorLoad(each, broadcast_index(each.shape, axis), location)
        if isinstance(each, Tensor) else each for each in operands
    ))
    tag = "broadcast" if len(shapes) > 1 else "elemwise"
    return ComputeOp(name, axis, (body,), tag, location=location).outputs[0]
