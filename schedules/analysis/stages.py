"""Properties of stages read off their access relations."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import Access, accesses, te
from tecomp.schedules.common import is_one, same_shape


def is_same(first: Sequence[te.IterVar | None], second: Sequence[te.IterVar | None]) -> bool:
    """Return whether two sequences of axes are identical."""
    return len(first) == len(second) and all(a is b for a, b in zip(first, second, strict=True))


def create_inlined_schedule(output: te.Tensor, inlined: Sequence[te.Tensor]) -> te.Schedule:
    """Create a schedule for a result and inline the stages in `inlined`.

    >>> A = te.placeholder((4,), name="A")
    >>> B = te.compute((4,), lambda i: A[i] + 1.0, name="B")
    >>> C = te.compute((4,), lambda i: B[i] * 2.0, name="C")
    >>> create_inlined_schedule(C, [B]).trace.to_json().count("compute_inline")
    1
    """
    s = by_loops(output)
    for x in inlined:
        s[x].compute_inline()
    return s


def by_loops(outputs: te.Tensor | Sequence[te.Tensor]) -> te.Schedule:
    """Create a schedule in which tensor operations are expanded into scalar loops.

    The target description then decides which intrinsic implements a loop.
    """
    s = te.create_schedule(outputs)
    for stage in s.stages:
        if isinstance(stage.op, te.TensorComputeOp):
            stage.expand()
    return s


def is_computed(x: te.Tensor) -> bool:
    """Return whether a tensor is computed by the program, not passed by the caller."""
    return bool(x.op.input_tensors)


def is_pointwise(x: te.Tensor) -> bool:
    """Return whether a stage is an element-wise function without a reduction."""
    return bool(accesses(x).reads) and not x.op.reduce_axis


def steps_to_reduction(output: te.Tensor) -> list[te.Tensor] | None:
    """Return the stages from `output` back to the reduction whose epilogue they form.

    Returns:
        The stages, with the reduction last; None if there is no such chain, or more than one.

    >>> A, k = te.placeholder((4, 8), name="A"), te.reduce_axis((0, 8), name="k")
    >>> total = te.compute((4,), lambda i: te.sum(A[i, k], axis=k), name="total")
    >>> mean = te.compute((4,), lambda i: total[i] / 8, name="mean")
    >>> [x.name for x in steps_to_reduction(mean)]
    ['mean', 'total']
    """
    chain = [output]
    while not chain[-1].op.reduce_axis:
        x = chain[-1]
        found = dict.fromkeys(
            read.tensor for read in accesses(x).reads
            if is_computed(read.tensor) and is_same(read.axes, x.op.axis)
            and _leads_to_reduction(read.tensor)
        )
        if len(found) != 1:
            return None
        chain += found
    return chain


def _leads_to_reduction(x: te.Tensor) -> bool:
    """Return whether a stage is an element-wise function of some reduction."""
    worklist, visited = [x], {x}
    while worklist:
        stage = worklist.pop()
        if stage.op.reduce_axis:
            return True
        sources = {
            read.tensor for read in accesses(stage).reads if is_same(read.axes, stage.op.axis)
        }
        worklist += sources - visited
        visited |= sources
    return False


def strip_cast(x: te.Tensor) -> te.Tensor:
    """Return the source of `x` if `x` is a dtype conversion; else `x` itself.

    >>> A = te.placeholder((4,), "int8", name="A")
    >>> strip_cast(te.compute((4,), lambda i: te.cast(A[i], "int32"), name="wide")).name
    'A'
    """
    found = accesses(x)
    if len(found.factors) != 1 or found.reduce_axis:
        return x
    (source,) = found.factors
    is_copy = is_same(source.axes, found.axis) and source.tensor.dtype != x.dtype
    return source.tensor if is_copy else x


def match_copy(x: te.Tensor) -> Access | None:
    """Return the read of the source if `x` is a converted or permuted whole copy, or None.

    >>> A = te.placeholder((4, 9), "int8", name="A")
    >>> match_copy(te.compute((9, 4), lambda i, j: te.cast(A[j, i], "int32"))).tensor.name
    'A'
    >>> match_copy(te.compute((4,), lambda i: te.cast(A[i, i], "int32"))) is None
    True
    """
    found = accesses(x)
    if len(found.factors) != 1 or found.reduce_axis:
        return None
    (source,) = found.factors
    is_whole = set(source.axes) == set(found.axis) and len(source.axes) == len(found.axis)
    return source if is_whole and same_shape(
        [axis.extent for axis in source.axes if axis is not None], source.tensor.shape
    ) else None


def readers_of(s: te.Schedule, x: te.Tensor) -> list[te.Tensor]:
    """Return the stages that read a tensor."""
    return [stage.op.output(0) for stage in s.stages if x in stage.op.input_tensors]


def is_result(s: te.Schedule, x: te.Tensor) -> bool:
    """Return whether a tensor is an output of the schedule, even if its stage was rewritten."""
    return any(s[op].op is s[x].op for op in s.outputs)


def is_private_formula(s: te.Schedule, x: te.Tensor, *readers: te.Tensor) -> bool:
    """Return whether `x` is an unscheduled pointwise intermediate that only `readers` read."""
    is_free = not is_result(s, x) and is_untouched(s, x)
    return is_free and is_pointwise(x) and set(readers_of(s, x)) <= set(readers)


def is_untouched(s: te.Schedule, x: te.Tensor) -> bool:
    """Return whether the loops of a stage are its original axes."""
    return is_same(s[x].leaf_iter_vars, (*x.op.axis, *x.op.reduce_axis))


def leads_to(x: te.Tensor, source: te.Tensor) -> bool:
    """Return whether `x` is `source` or depends on it."""
    worklist, visited = [x], {x}
    while worklist:
        stage = worklist.pop()
        if stage == source:
            return True
        new = set(stage.op.input_tensors) - visited
        worklist += new
        visited |= new
    return False


def is_value_of_row(x: te.Tensor, output: te.Tensor) -> bool:
    """Return whether a tensor has one element per row of `output`, with or without a last axis."""
    leading = len(output.shape) - 1
    if not same_shape(x.shape[:leading], output.shape[:leading]):
        return False
    return len(x.shape) == leading or (len(x.shape) == leading + 1 and is_one(x.shape[-1]))


def is_scan(x: te.Tensor) -> bool:
    """Return whether a stage is a scan."""
    return accesses(x).is_scan
