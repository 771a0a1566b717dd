"""Results that are written over what a kernel reads: where each element is read just before.

A kernel may do so if it reads every element of a value in the statement that stores the element at
the same place of its result, and nowhere else, and stores each element once. Then nothing is read
after it was stored, in whatever order the statements run.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace

from tecomp.compute.accesses import accesses
from tecomp.compute.extern import ExternOp
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import Tensor
from tecomp.graph.groups import Group, border_of
from tecomp.graph.sizes import elements_of
from tecomp.ir.language.equal import same
from tecomp.ir.language.expr import BufferLoad
from tecomp.ir.language.stmt import Buffer, PrimFunc
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.pipeline import Lowered
from tecomp.lowering.storage.buffers import map_buffers
from tecomp.model.count import Counter, TooManyIterationsError
from tecomp.model.sites import Site, sites_of


def candidates(
    group: Group, number: int, lifetimes: Mapping[Tensor, tuple[int, int]]
) -> tuple[int, ...]:
    """The positions, among what a group reads, of what its result may be written over.

    That is what no later kernel needs, of the same size, which is read where an element is
    computed. Whether a schedule keeps it so is another question.

    Args:
        group: the operations of a kernel.
        number: of the kernel, among those that run in each call.
        lifetimes: of each value between kernels the first and the last kernel that needs it.
    """
    results = group.result.outputs
    if len(results) != 1 or results[0] not in lifetimes:
        return ()
    (result,) = results
    return tuple(
        k for k, x in enumerate(border_of(group))
        if x in lifetimes and lifetimes[x][1] == number and x.dtype == result.dtype
        and x.shape == result.shape and _is_read_in_place(group, x)
    )


def _is_read_in_place(group: Group, x: Tensor) -> bool:
    readers = [op for op in group.operations if x in op.input_tensors]
    return all(
        not isinstance(op, ExternOp | ScanOp) and op.num_outputs == 1 and not op.reduce_axis
        and all(
            len(read.axes) == len(op.axis)
            and all(a is b for a, b in zip(read.axes, op.axis, strict=True))
            for read in accesses(op.output(0)).reads if read.tensor == x
        )
        for op in readers
    )


def written_over(lowered: Lowered, position: int) -> Lowered | None:
    """A kernel that writes its last parameter over another one, which is no parameter any more.

    Args:
        lowered: the kernel after each pass.
        position: of the parameter that is written over.

    Returns:
        The kernel; None if an element may be read when it was stored already.
    """
    func = lowered.final
    flat = lowered.functions["flatten_buffer"]
    old, new = func.params[position], func.params[-1]
    if not (isinstance(old, Buffer) and isinstance(new, Buffer)) or old.shape != new.shape:
        return None
    if not _stores_last(flat, position):
        return None
    body = map_buffers(func.body, lambda buffer: new if buffer.data is old.data else buffer)
    params = tuple(param for k, param in enumerate(func.params) if k != position)
    return Lowered({**lowered.functions, "in_place": replace(func, params=params, body=body)})


def _stores_last(func: PrimFunc, position: int) -> bool:
    """Whether each element of a parameter is read just before it is stored in the last one."""
    old, new = func.params[position], func.params[-1]
    assert isinstance(old, Buffer)
    assert isinstance(new, Buffer)
    found = sites_of(func, {})
    reads = [site for site in found.sites if site.buffer.data is old.data]
    stores = [site for site in found.sites if site.buffer.data is new.data]
    is_in_order = all(site.direction == "write" for site in stores) and all(
        site.direction == "read" and site.target is not None and site.target.data is new.data
        and same(site.indices, site.target_indices) for site in reads
    )
    return is_in_order and not found.unknown and _times(stores) == elements_of(new)


def _times(stores: Sequence[Site]) -> int | None:
    """How often elements are stored; None if that depends on data, or is too much to count."""
    if any(isinstance(node, BufferLoad) for site in stores for node in walk(*site.indices)):
        return None
    counter = Counter({})
    try:
        return sum(sum(counter.times(site.frames).values()) for site in stores)
    except TooManyIterationsError:
        return None
