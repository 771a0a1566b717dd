"""Sums of products on the cores of a machine with scratchpads: products of matrices, convolutions.

The tiles of the result are shared out evenly among the cores. A core computes a block of its tiles
at a time: it brings what the block reads of both factors into its scratchpad, a part of the depth
after the other, and a unit that multiplies tiles adds them up there, or vectors do.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence

from tecomp import te
from tecomp.schedules.scratchpads.blocks import (
    Plan,
    is_tiled,
    is_transposed_and_padded,
    matrix_order,
    plan,
)
from tecomp.schedules.scratchpads.division import Shares
from tecomp.schedules.scratchpads.placement import Map, Placement, sizes_of
from tecomp.schedules.structure.contraction import Contraction
from tecomp.schedules.structure.stages import leads_to


def schedule(
    s: te.Schedule, output: te.Tensor, c: Contraction, where: Placement,
    whole: Collection[te.Tensor] | None = None,
) -> Plan:
    """Schedule the result of a contraction, or what is made of it element by element.

    Args:
        s: the schedule, in which what the contraction is made of has its place.
        output: the result.
        c: the contraction.
        where: the machine.
        whole: what is there before; what is not computed if None.

    Returns:
        How it is cut.
    """
    p = plan(c, output, where)
    where.put(s, output)
    readers = c.reads
    for x in readers:
        if x not in c.factors:
            s[x].compute_inline()
    made = [s.cache_write(output, where.scratchpad)]
    if output is not c.total:
        made.append(c.total)
    core, block = ([sizes[axis] for axis in c.axes] for sizes in (p.core, p.block))
    loop = walk_parts(s, output, core, block, p.shares, where)
    for x in made:
        s[x].compute_at(s[output], loop)
    sums = made[-1]
    if output is not c.total:
        _finish(s, made[0], c, where, (output, loop), whole)
    part = _add_up(s, sums, c, p, where)
    for k, x in enumerate(c.factors):
        reader = sums if readers[k] is x else readers[k]
        _bring(s, x, reader, k, c, p, where, (sums, part))
    return p


def _bring(
    s: te.Schedule, x: te.Tensor, reader: te.Tensor, operand: int, c: Contraction, p: Plan,
    where: Placement, site: tuple[te.Tensor, te.IterVar],
) -> None:
    """Bring a part of a factor into the scratchpad, for each iteration of a loop of the sums."""
    made = [x if x in c.padded else s.cache_read(x, where.scratchpad, [reader])]
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


def walk_parts(
    s: te.Schedule, output: te.Tensor, core: Sequence[int], block: Sequence[int], shares: Shares,
    where: Placement,
) -> te.IterVar:
    """Loops over cores, over the blocks of a core, and through a block, to bring it out.

    What stays in the scratchpads has no loops over cores of its own: it is computed inside of
    those of another stage.

    Args:
        s: the schedule.
        output: what is divided.
        core: extents of what one core has of it.
        block: extents of what is in its scratchpad at one time.
        shares: which cores the parts are for.
        where: the machine.

    Returns:
        The innermost loop over blocks, of those that there are several of.
    """
    stage, is_near = s[output], output in where.near
    cores: dict[str, list[te.IterVar]] = {name: [] for name in where.target.grid}
    single: list[te.IterVar] = []
    blocks: list[te.IterVar] = []
    inside: list[te.IterVar] = []
    for k, axis in enumerate(stage.op.axis):
        along, rest = stage.split(axis, factor=core[k])
        part, rest = stage.split(rest, factor=block[k])
        for name, count in () if is_near else shares.get(k, ())[:0:-1]:
            along, inner = stage.split(along, factor=count)
            cores[name].append(inner)
        # What is not shared out has one part; if nothing is, one core has that.
        name = shares[k][0][0] if k in shares else ("" if shares else next(iter(cores)))
        cores.get(name, single).append(along)
        blocks.insert(0 if core[k] <= block[k] else len(blocks), part)
        inside.append(rest)
    stage.reorder(*(loop for many in cores.values() for loop in many), *single, *blocks, *inside)
    for name, loops in cores.items():
        if loops and not is_near:
            stage.bind(stage.fuse(*loops), te.thread_axis(name))
    walk(s, output, inside, where)
    return blocks[-1]


def walk(
    s: te.Schedule, x: te.Tensor, loops: Sequence[te.IterVar], where: Placement,
    source: te.Tensor | None = None,
) -> None:
    """Move through a tensor in the order of the memory of the device, in vectors.

    Args:
        s: the schedule.
        x: what is copied.
        loops: through its dimensions, one for each.
        where: how that memory is laid out.
        source: what is in that memory, if it is not the tensor itself.
    """
    blocks = [()] * (len(loops) - 2) + list(where.blocks(x.dtype))
    shape, layout = sizes_of(x), where.whole(x if source is None else source)

    def step(dim: int, weight: int) -> int:
        index = [0] * len(shape)
        index[dim] = weight
        # Of a tensor without elements there is no place.
        return layout.offset(index) if weight < shape[dim] and 0 not in shape else 0

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
    s: te.Schedule, made: te.Tensor, c: Contraction, where: Placement,
    site: tuple[te.Tensor, te.IterVar], whole: Collection[te.Tensor] | None,
) -> None:
    """Make the result of the sums, in the scratchpad: what it needs beside them comes there."""
    for x, readers in _beside(made, c.total, whole).items():
        where.keep(s, s.cache_read(x, where.scratchpad, readers), *site)
    where.keep(s, made, *site)
    s[c.total].set_scope(where.scratchpad)


def _beside(
    made: te.Tensor, total: te.Tensor, whole: Collection[te.Tensor] | None
) -> dict[te.Tensor, list[te.Tensor]]:
    """What is read on the way from a sum to what is made of it, beside the sum, and by whom."""
    found: dict[te.Tensor, list[te.Tensor]] = {}
    todo = [made]
    while todo:
        reader = todo.pop()
        for x in reader.op.input_tensors:
            is_made = x not in whole if whole is not None else leads_to(x, total)
            if x != total and is_made:
                todo.append(x)
            elif x != total and reader not in found.get(x, ()):
                found.setdefault(x, []).append(reader)
    return found


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
