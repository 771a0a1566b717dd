"""Functions and kernels as pictures: the tree of their loops, what runs how, and the buffers."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import islice
from math import prod

from tecomp.codegen.calls.kernel import Kernel
from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.fonts import with_tail
from tecomp.drawing.panels import head, heading, legend
from tecomp.drawing.svg import Svg
from tecomp.ir.language.buffer import Buffer
from tecomp.ir.language.expr import Const, Expr, Var
from tecomp.ir.language.statements import (
    Allocate,
    BufferRealize,
    BufferStore,
    DeclBuffer,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
)
from tecomp.ir.language.stmt import PrimFunc
from tecomp.ir.language.tensor_op import TensorOp
from tecomp.ir.language.text import counted, shortened
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.pipeline import Lowered
from tecomp.pictures.nest import ROW, Row, draw_nest, extent_text, kinds_of

_MOST_ROWS, _MOST_BUFFERS = 72, 40
_LETTERS = 48
"""Of a name that something is said of behind it."""
_KINDS = {
    ForKind.SERIAL: "loop", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unrolled",
}


def drawn(func: PrimFunc) -> Svg:
    """The picture of a function."""
    return _drawn(func, [f"a function of {counted(len(func.params), 'parameter')}"])


def drawn_kernel(kernel: Kernel) -> Svg:
    """The picture of a kernel: its loops before they become vectors, if its passes are known."""
    func = kernel.func
    note = "the loops that were compiled"
    lowered = getattr(kernel, "lowered", None)
    if isinstance(lowered, Lowered):
        func = lowered.functions.get("pack_reads", lowered.final)
        note = "its loops, before vectorized and unrolled ones are written out"
    return _drawn(func, [repr(kernel)[1:-1], note])


def drawn_passes(lowered: Lowered) -> Svg:
    """The picture of what the passes made: the loops that there are before vectors."""
    changed = [
        name for (name, func), before in zip(
            lowered.functions.items(), (None, *lowered.functions.values()), strict=False)
        if func is not before
    ]
    func = lowered.functions.get("pack_reads", lowered.final)
    return _drawn(func, [f"passes that changed it: {', '.join(changed)}"])


def _drawn(func: PrimFunc, lines: list[str]) -> Svg:
    canvas = Canvas()
    y = head(canvas, func.name, *lines) + 30
    end = heading(canvas, MARGIN, y, "Loops", "outer loops hold what is below and further right")
    rows = list(islice(_rows(func.body), _MOST_ROWS + 1))
    left_out = len(rows) > _MOST_ROWS
    rows = rows[:_MOST_ROWS]
    right, bottom = draw_nest(canvas, rows, MARGIN, y + 14)
    if left_out:
        canvas.text(MARGIN, bottom + 12, "⋮ the rest is left out", style="soft")
        bottom += ROW
    bottom = max(bottom, _buffers(canvas, func, max(right, end) + 48, y))
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"the loops of {func.name}")


def _rows(body: Stmt) -> Iterator[Row]:
    """The rows of a statement, from the outside in, with no recursion on depth."""
    left: list[tuple[Stmt | str, int, int | None]] = [(body, 0, 1)]
    while left:
        node, depth, times = left.pop()
        if isinstance(node, str):
            yield Row(depth, "condition", node)
            continue
        match node:
            case SeqStmt():
                left += [(each, depth, times) for each in reversed(node.stmts)]
            case For():
                inner = _times(node.extent, times)
                yield _loop(node, depth, inner)
                left.append((node.body, depth + 1, inner))
            case IfThenElse():
                yield Row(depth, "condition", f"if {shortened(str(node.condition), 80)}")
                if node.else_case is not None:
                    left += [(node.else_case, depth + 1, times), ("else", depth, times)]
                left.append((node.then_case, depth + 1, times))
            case Allocate() | DeclBuffer() | BufferRealize():
                yield Row(depth, "memory", _memory(node))
                left.append((node.body, depth + 1, times))
            case Let():
                yield Row(depth, "statement", f"{node.var.name} = {shortened(str(node.value), 80)}")
                left.append((node.body, depth, times))
            case TensorOp():
                unit = f"on {node.unit}" if node.unit else ""
                yield Row(depth, "tensorized", node.name, unit)
            case _:
                yield _statement(node, depth, times)


def _times(extent: Expr, outer: int | None) -> int | None:
    """How often the body of a loop runs; None where that is not known."""
    return outer * int(extent.value) if outer is not None and isinstance(extent, Const) else None


def _loop(node: For, depth: int, times: int | None) -> Row:
    kind = "bound" if node.thread else _KINDS[node.kind]
    start = "" if isinstance(node.min, Const) and not node.min.value else f" from {node.min}"
    words = f"{node.loop_var.name}: {shortened(extent_text(node.extent), 60)}{start}"
    marks = [node.thread or ("" if kind == "loop" else kind)]
    if times is not None and depth:
        marks.append(f"runs {times:,} times in all" if times != 1 else "")
    return Row(depth, kind, words, ", ".join(filter(None, marks)))


def _memory(node: Allocate | DeclBuffer | BufferRealize) -> str:
    if isinstance(node, BufferRealize):
        extents = ", ".join(extent_text(part.extent) for part in node.bounds)
        where = f": {node.buffer.dtype}[{extents}] in {node.buffer.scope}"
    else:
        where = _described(node.buffer)
    kind = "another view: " if isinstance(node, DeclBuffer) else ""
    return shortened(f"{kind}{shortened(node.buffer.name, _LETTERS)}{where}", 90)


def _described(buffer: Buffer) -> str:
    """What is said of a buffer behind its name."""
    extents = ", ".join(map(extent_text, buffer.shape))
    text = f": {buffer.dtype}[{extents}] in {buffer.scope}"
    size = _bytes(buffer)
    return text if size is None else f"{text}, {size:,} B"


def _bytes(buffer: Buffer) -> int | None:
    extents = [int(n.value) if isinstance(n, Const) else n for n in buffer.shape]
    if not all(isinstance(n, int) for n in extents):
        return None
    return prod(n for n in extents if isinstance(n, int)) * buffer.dtype.bytes


def _statement(node: Stmt, depth: int, times: int | None) -> Row:
    text = str(node)
    lanes = 1
    if isinstance(node, BufferStore):
        lanes = max((index.dtype.lanes for index in node.indices), default=1)
    marks = [f"{lanes} lanes" if lanes > 1 else "", f"{times:,} times" if times else ""]
    first = " ".join(text.split())
    return Row(depth, "statement", shortened(first, 100), ", ".join(filter(None, marks)),
               shortened(first, 400))


def _buffers(canvas: Canvas, func: PrimFunc, x: float, y: float) -> float:
    """The buffers with what is done to them; where the list ends."""
    params = [each for each in func.params if isinstance(each, Buffer)]
    held: dict[Var, Buffer] = {buffer.data: buffer for buffer in params}
    written: set[Var] = set()
    for node in walk(func.body):
        if isinstance(node, Allocate | BufferRealize):
            held.setdefault(node.buffer.data, node.buffer)
        elif isinstance(node, BufferStore):
            written.add(node.buffer.data)
    heading(canvas, x, y, "Buffers", "parameters first; blue ones are written")
    data = {buffer.data for buffer in params}
    bottom = y + 14
    for number, (var, buffer) in enumerate(held.items()):
        if number == _MOST_BUFFERS:
            more = counted(len(held) - number, "more buffer")
            canvas.text(x, bottom + 13, f"⋮ {more}", style="soft")
            return bottom + ROW
        role = "parameter, " if var in data else ""
        use = "written" if var in written else "read"
        canvas.dot(x + 5, bottom + 9, 4, "#4a9ad9" if var in written else "#aab2bd",
                   f"{role}{use}")
        said = _described(buffer)
        words, whole = with_tail(buffer.name, said, 420, 10, "mono"), buffer.name + said
        canvas.text(x + 16, bottom + 13, words, size=10, style="mono", width=420,
                    title=whole if words != whole else "")
        bottom += ROW
    return bottom
