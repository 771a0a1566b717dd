"""Sums of products on the cores of a machine with scratchpads: products of matrices, convolutions.

The tiles of the result are shared out evenly among the cores. A core computes a block of its tiles
at a time: it brings what the block reads of both factors into its scratchpad, a part of the depth
after the other, and a unit that multiplies tiles adds them up there, or vectors do.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from tecomp import te
from tecomp.schedules.scratchpads.blocks import (
    Plan,
    is_tiled,
    is_transposed_and_padded,
    matrix_order,
    plan,
)
from tecomp.schedules.scratchpads.placement import Map, Placement, sizes_of
from tecomp.schedules.structure.contraction import Contraction


def schedule(s: te.Schedule, output: te.Tensor, c: Contraction, where: Placement) -> None:
    """Schedule the result of a contraction, or what is made of it element by element."""
    p = plan(c, output, where)
    for x in _arguments(output):
        where.put(s, x)
    where.put(s, output)
    readers = c.reads
    for x in readers:
        if x not in c.factors:
            s[x].compute_inline()
    made = [s.cache_write(output, where.scratchpad)]
    if output is not c.total:
        made.append(c.total)
    loop = _walk_result(s, output, c, p, where)
    for x in made:
        s[x].compute_at(s[output], loop)
    sums = made[-1]
    if output is not c.total:
        _finish(s, made[0], c, where, output, loop)
    part = _add_up(s, sums, c, p, where)
    for k, x in enumerate(c.factors):
        reader = sums if readers[k] is x else readers[k]
        _bring(s, x, reader, k, c, p, where, (sums, part))


def _bring(
    s: te.Schedule, x: te.Tensor, reader: te.Tensor, operand: int, c: Contraction, p: Plan,
    where: Placement, site: tuple[te.Tensor, te.IterVar],
) -> None:
    """Bring a part of a factor into the scratchpad, for each iteration of a loop of the sums."""
    copy = x if x.op.input_tensors else s.cache_read(x, where.scratchpad, [reader])
    made = [copy]
    if is_transposed_and_padded(c, operand, p.product):
        made += [s.cache_read(each, where.scratchpad, [x]) for each in x.op.input_tensors]
    sums, part = site
    for near in made:
        s[near].set_scope(where.scratchpad)
        s[near].transform_layout(_place(c, p, where, near, operand), loops="logical", pad_value=0)
        walk(s, near, s[near].op.axis, where)
        s[near].compute_at(s[sums], part)
    if p.is_doubled:
        s[made[-1]].double_buffer()


def _arguments(output: te.Tensor) -> list[te.Tensor]:
    """The tensors of the caller that a result is made of."""
    found: dict[te.Tensor, None] = {}
    todo = [output]
    while todo:
        x = todo.pop()
        todo += x.op.input_tensors
        if not x.op.input_tensors:
            found[x] = None
    return list(found)


def _walk_result(
    s: te.Schedule, output: te.Tensor, c: Contraction, p: Plan, where: Placement
) -> te.IterVar:
    """Loops over cores, over the blocks of a core, and through a block, to bring it out.

    Returns:
        The loop over blocks.
    """
    stage = s[output]
    cores: dict[str, list[te.IterVar]] = {name: [] for name in where.target.grid}
    single: list[te.IterVar] = []
    blocks, inside = [], []
    for k, (axis, own) in enumerate(zip(stage.op.axis, c.axes, strict=True)):
        core, rest = stage.split(axis, factor=p.core[own])
        block, rest = stage.split(rest, factor=p.block[own])
        for name, count in p.shares.get(k, ())[:0:-1]:
            core, along = stage.split(core, factor=count)
            cores[name].append(along)
        # What is not shared out has one part.
        name = p.shares[k][0][0] if k in p.shares else ""
        cores.get(name, single).append(core)
        blocks.append(block)
        inside.append(rest)
    stage.reorder(*(loop for many in cores.values() for loop in many), *single, *blocks, *inside)
    for name, loops in cores.items():
        if loops:
            stage.bind(stage.fuse(*loops), te.thread_axis(name))
    walk(s, output, inside, where)
    return blocks[-1]


def walk(s: te.Schedule, x: te.Tensor, loops: Sequence[te.IterVar], where: Placement) -> None:
    """Move through a tensor in the order of the memory of the device, in vectors.

    Args:
        s: the schedule.
        x: what is copied.
        loops: through its dimensions, one for each.
        where: how that memory is laid out.
    """
    blocks = [()] * (len(loops) - 2) + list(where.blocks(x.dtype))
    shape, layout = sizes_of(x), where.whole(x)

    def step(dim: int, weight: int) -> int:
        index = [0] * len(shape)
        index[dim] = weight
        return layout.offset(index) if weight < shape[dim] else 0

    found: list[tuple[int, te.IterVar]] = []
    for dim, (rest, sizes) in enumerate(zip(loops, blocks[-len(loops):], strict=True)):
        for size in sizes:
            outer, rest = s[x].split(rest, factor=size)
            found.append((step(dim, size), outer))
        found.append((step(dim, 1), rest))
    ordered = [loop for _, loop in sorted(found, key=lambda pair: -pair[0])]
    s[x].reorder(*ordered)
    s[x].vectorize(ordered[-1])


def _finish(
    s: te.Schedule, made: te.Tensor, c: Contraction, where: Placement, output: te.Tensor,
    loop: te.IterVar,
) -> None:
    """Make the result of the sums, in the scratchpad: what it needs beside them comes there."""
    for x in made.op.input_tensors:
        if not x.op.input_tensors:
            where.keep(s, s.cache_read(x, where.scratchpad, [made]), output, loop)
    where.keep(s, made, output, loop)
    s[c.total].set_scope(where.scratchpad)


def _add_up(
    s: te.Schedule, sums: te.Tensor, c: Contraction, p: Plan, where: Placement
) -> te.IterVar:
    """Add up the tiles of a block, a part of the depth after the other.

    Returns:
        The loop over parts of the depth.
    """
    stage = s[sums]
    stage.transform_layout(_place(c, p, where, sums, 2), loops="logical")
    axes = dict(zip(c.axes, stage.op.axis, strict=True))
    axes |= dict(zip(c.total.op.reduce_axis, stage.op.reduce_axis, strict=True))
    part, depth = stage.split(axes[c.depth], factor=p.block[c.depth])
    rows, row = stage.split(axes[c.rows], factor=p.tile[c.rows])
    columns, column = stage.split(axes[c.columns], factor=p.tile[c.columns])
    steps, step = stage.split(depth, factor=p.tile[c.depth])
    others = [axes[axis] for axis in c.axes if axis not in (c.rows, c.columns)]
    taps = [axes[axis] for axis in c.taps]
    stage.reorder(part, *others, rows, columns, *taps, steps, row, step, column)
    if p.product is None:
        stage.vectorize(column)
    else:
        stage.reorder(row, column, step)
        stage.tensorize(row, p.product.intrinsic)
    return part


def _place(
    c: Contraction, p: Plan, where: Placement, x: te.Tensor, operand: int
) -> Map:
    """Where an operand lies in the scratchpad: tile by tile, in a tile as the unit takes it."""
    product, roles, shape = p.product, c.roles[operand], sizes_of(x)
    if product is None or not is_tiled(where, product):
        dims = matrix_order(roles, operand, product, len(shape))
        whole = where.layout([shape[dim] for dim in dims], x.dtype)
        return lambda *index: whole(*(index[dim] for dim in dims))
    sizes = {"m": product.m, "n": product.n, "k": product.k}
    lanes = where.lanes(x.dtype)

    def place(*index: te.Expr) -> list[object]:
        own = {letter: index[dim] % sizes[letter] for dim, letter in roles.items()}
        tiles = [i // sizes[roles[dim]] if dim in roles else i for dim, i in enumerate(index)]
        order = [each for each in product.orders[operand] if each[0] in own]
        *others, last = [_part(each, own, sizes) for each in order]
        if where.target.stick is None or order[-1][1:] or sizes[order[-1]] <= lanes:
            return [*tiles, *others, last]
        return [*tiles, last // lanes, *others, last % lanes]

    return place


def _part(text: str, own: Mapping[str, te.Expr], sizes: Mapping[str, int]) -> te.Expr:
    """An axis of a tile, or a part of one, as descriptions write it: `k`, `k//2` or `k%2`."""
    letter, operator, number = text[0], text[1:2], text[1:].lstrip("/%")
    if operator == "/":
        # The remainder changes no value: it says how many places there are.
        return own[letter] // int(number) % (sizes[letter] // int(number))
    return own[letter] % int(number) if operator else own[letter]
