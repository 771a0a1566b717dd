"""What operations compute, as a key: the same for those that differ in names alone."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from itertools import count

from tecomp.codegen.llvm.cached import digest
from tecomp.compute.define import placeholder
from tecomp.compute.operation import ComputeOp, Operation
from tecomp.compute.rebuilt import rebuilt
from tecomp.compute.tensor import Tensor
from tecomp.ir.traversal.codec import NotPlainError, Word, encode
from tecomp.locations import Location


def definition_key(
    operations: Sequence[Operation], inputs: Sequence[Tensor], *, with_places: bool = False
) -> str:
    """A text that says all of what operations compute, but for names.

    Args:
        operations: producers before consumers.
        inputs: what they read of others, in order.
        with_places: whether it says where in the user's files they stand, as errors do.

    Returns:
        The text; one of the operations' own, as long as they live, if they hold what has none.

    >>> from tecomp import te
    >>> A, B = te.placeholder((4,), name="A"), te.placeholder((4,), name="B")
    >>> one, other = (te.compute((4,), lambda i: x[i] + 1.0, name="C") for x in (A, B))
    >>> definition_key([one.op], [A]) == definition_key([other.op], [B])
    True
    """
    unnamed = {x: placeholder(x.shape, x.dtype, f"t{k}") for k, x in enumerate(inputs)}
    numbers = count()

    def without_name(op: Operation) -> Operation:
        return replace(op, name=f"s{next(numbers)}") if isinstance(op, ComputeOp) else op

    moved = rebuilt(operations, unnamed, change=without_name)
    ops = tuple(moved.get(x, x).op for op in operations for x in op.outputs)
    place: Callable[[Location], Word] = _place if with_places else _nowhere
    try:
        return digest(encode(ops, {Location: place}))
    except NotPlainError:
        # What a user attached to an operation may be anything, and is then like nothing else.
        return f"operation {id(operations[-1])}"


def _place(location: Location) -> Word:
    return f"{location.file}:{location.line}"


def _nowhere(_: Location) -> Word:
    return None
