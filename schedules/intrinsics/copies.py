"""Copies from one memory of a machine to another, as its links make them: by DMA, over a network.

What is copied at once is what the description says of memory: a tile, a stick, or else a burst.
"""

from __future__ import annotations

from collections.abc import Sequence
from difflib import get_close_matches

from tecomp import Target, TargetError, te


def copy_intrinsic(target: Target, link: str, dtype: str) -> te.TensorIntrin:
    """The copy of one piece over a link, for loops that do nothing but copy.

    The operands have to be in the memories that the link joins. The piece is a tile, face by face
    and row by row, if the machine has tiles, or else a stick, or a burst of the link.

    Args:
        target: the machine.
        link: the name of one of its links.
        dtype: of what is copied; any type will do.

    Raises:
        TargetError: there is no such link, or it leads back to the memory that it comes from.

    >>> stick128 = Target.load("stick128")
    >>> copy_intrinsic(stick128, "load", "float16")
    TensorIntrin(load_copy_float16: c[i0] = a[i0])
    >>> copy_intrinsic(stick128, "load", "float16").tile
    (64,)
    >>> copy_intrinsic(Target.load("tensix_wh"), "load", "uint8").tile
    (2, 2, 16, 16)
    """
    known = copied_links(target)
    if link not in known:
        near = get_close_matches(link, known, n=1)
        raise TargetError(
            f"target {target.name} has no link `{link}` between two memories; "
            + (f"did you mean `{near[0]}`?" if near else f"there are {', '.join(known) or 'none'}"),
            kind="target-lacks",
        )
    shape = _piece(target, link, dtype)
    a = te.placeholder(shape, dtype, name="a")
    c = te.compute(shape, lambda *i: a[i], name="c")

    def statements(ins: Sequence[te.Operand], outs: Sequence[te.Operand]) -> te.Stmt:
        (x,), (z,) = ins, outs

        def along(index: tuple[te.Expr, ...]) -> te.Stmt:
            if len(index) == len(shape):
                return z.store(index, x[index])
            kind = "vectorized" if len(index) == len(shape) - 1 else "serial"
            return te.for_range(0, shape[len(index)], lambda i: along((*index, i)), "i", kind)

        return along(())

    ends = target.links[link]
    binds = {
        a: te.decl_buffer(shape, dtype, scope=ends.from_),
        c: te.decl_buffer(shape, dtype, scope=ends.to),
    }
    return te.decl_tensor_intrin(
        c.op, statements, f"{link}_copy_{dtype}", binds, unit=link, check="later")


def copied_links(target: Target) -> list[str]:
    """Names of the links that lead from one memory to another."""
    return [name for name, link in target.links.items() if link.from_ != link.to]


def _piece(target: Target, link: str, dtype: str) -> tuple[int, ...]:
    """The shape of what is copied at once."""
    if target.tile is not None:
        height, width = target.tile.face
        return target.tile.rows // height, target.tile.columns // width, height, width
    ends = target.links[link]
    memory = target.memory(ends.from_)
    if target.stick is not None:
        size = target.stick.bytes
    else:
        size = ends.burst_bytes or memory.transaction_bytes or memory.alignment_bytes
    return (max(size // te.const(0, dtype).dtype.bytes, 1),)
