"""Draw functions, kernels and schedules as loop trees."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import islice
from math import prod

from tecomp.codegen.dispatch.kernel import Kernel
from tecomp.compute.iter_var import IterKind
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.drawing.canvas import (
    MARGIN,
    NEUTRAL,
    Canvas,
    colour,
    connect,
    head,
    heading,
    legend,
    text_width,
    with_tail,
)
from tecomp.drawing.svg import Svg
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import as_int
from tecomp.ir.nodes.buffer import Buffer
from tecomp.ir.nodes.expr import Const, Expr, Var
from tecomp.ir.nodes.printer import format_count, truncate
from tecomp.ir.nodes.stmt import PrimFunc, TensorOp
from tecomp.ir.nodes.stmt_nodes import (
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
from tecomp.ir.traversal.rewrite import walk
from tecomp.lowering.pipeline import LoweringResult
from tecomp.scheduling.schedule import Schedule, Stage
from tecomp.scheduling.state import ComputedAt, Inline, ScheduleState, StageState

STEP, ROW, BAR = 18.0, 22.0, 18.0
_MAX_WIDTH = 620.0

KINDS = {
    "loop": (colour(0), "a loop"),
    "vectorized": (colour(1, 1), "vectorized: in vector lanes"),
    "unrolled": (colour(4), "unrolled: body repeated"),
    "parallel": (colour(2, 1), "parallel: shared by threads"),
    "bound": (colour(3), "bound: one core each"),
    "tensorized": (colour(5), "tensorized: an operation of the machine"),
    "stage": (NEUTRAL, "a stage"),
    "memory": (NEUTRAL, "memory"),
    "condition": (colour(6), "a condition"),
    "statement": ("plain", "a statement"),
}
"""Fill and meaning of each kind of row."""


@dataclass(frozen=True, slots=True)
class LoopRow:
    """A row of a loop nest.

    Attributes:
        depth: Nesting depth.
        kind: Key of `KINDS`.
        words: Label.
        remark: Remark beside the label.
        title: Tooltip text.
    """

    depth: int
    kind: str
    words: str
    remark: str = ""
    title: str = ""


def extent_text(extent: Expr | int) -> str:
    """Format an extent; constants appear without their dtype.

    >>> from tecomp.ir.nodes.dtype import INT32
    >>> extent_text(Const(64, INT32)), extent_text(3)
    ('64', '3')
    """
    return str(extent.value if isinstance(extent, Const) else extent)


def draw_nest(canvas: Canvas, rows: Sequence[LoopRow], x: float, y: float) -> tuple[float, float]:
    """Draw the rows below each other; return the right and bottom coordinates."""
    right = x
    for number, row in enumerate(rows):
        left, top = x + min(row.depth, 24) * STEP, y + number * ROW
        style = "mono dark" if row.kind != "statement" else "mono"
        inner = min(text_width(row.words, 10, style), _MAX_WIDTH - 16)
        width = inner + 16
        canvas.box(left, top, width, BAR, KINDS[row.kind][0], row.title or row.words)
        canvas.text(left + 8, top + 13, row.words, size=10, style=style, width=inner,
                    title=row.title)
        end = left + width
        if row.remark:
            end = canvas.text(end + 8, top + 13, row.remark, size=10, style="soft", width=420)
        right = max(right, end)
    _bars(canvas, rows, x, y)
    return right, y + len(rows) * ROW


def _bars(canvas: Canvas, rows: Sequence[LoopRow], x: float, y: float) -> None:
    """Draw a vertical line from each row along the rows nested in it."""
    for number, row in enumerate(rows):
        end = number
        while end + 1 < len(rows) and rows[end + 1].depth > row.depth:
            end += 1
        if end > number and row.depth < 24:
            left = x + row.depth * STEP + 5
            top = y + number * ROW + BAR
            canvas.line([(left, top), (left, y + end * ROW + BAR)], style="faint", width=1)


def kinds_of(rows: Sequence[LoopRow]) -> list[tuple[str, str]]:
    """Return the legend of the kinds that occur."""
    used = {row.kind for row in rows}
    return [KINDS[kind] for kind in KINDS if kind in used]


_MOST_ROWS, _MOST_BUFFERS = 72, 40
_LETTERS = 48
"""Maximum length of a name that is followed by a description."""
_KINDS = {
    ForKind.SERIAL: "loop", ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized",
    ForKind.UNROLLED: "unrolled",
}


def draw_function(func: PrimFunc) -> Svg:
    """Draw a function."""
    return _draw(func, [f"a function of {format_count(len(func.params), 'parameter')}"])


def draw_kernel(kernel: Kernel) -> Svg:
    """Draw the loops of a kernel, before vectorization if its lowering passes are known."""
    func = kernel.func
    note = "the loops that were compiled"
    lowered = getattr(kernel, "lowered", None)
    if isinstance(lowered, LoweringResult):
        func = lowered.functions.get("pack_reads", lowered.final)
        note = "its loops, before vectorization and unrolling"
    return _draw(func, [repr(kernel)[1:-1], note])


def draw_passes(lowered: LoweringResult) -> Svg:
    """Draw the function of a lowering, with its loops before vectorization."""
    changed = [
        name for (name, func), before in zip(
            lowered.functions.items(), (None, *lowered.functions.values()), strict=False)
        if func is not before
    ]
    func = lowered.functions.get("pack_reads", lowered.final)
    return _draw(func, [f"passes that changed it: {', '.join(changed)}"])


def _draw(func: PrimFunc, lines: list[str]) -> Svg:
    canvas = Canvas()
    y = head(canvas, func.name, *lines) + 30
    end = heading(canvas, MARGIN, y, "Loops", "a loop contains the indented rows below it")
    rows = list(islice(_rows(func.body), _MOST_ROWS + 1))
    is_truncated = len(rows) > _MOST_ROWS
    rows = rows[:_MOST_ROWS]
    right, bottom = draw_nest(canvas, rows, MARGIN, y + 14)
    if is_truncated:
        canvas.text(MARGIN, bottom + 12, "⋮ the rest is omitted", style="soft")
        bottom += ROW
    bottom = max(bottom, _buffers(canvas, func, max(right, end) + 48, y))
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"the loops of {func.name}")


def _rows(body: Stmt) -> Iterator[LoopRow]:
    """Yield the rows of a statement in pre-order, without recursion."""
    pending: list[tuple[Stmt | str, int, int | None]] = [(body, 0, 1)]
    while pending:
        node, depth, times = pending.pop()
        if isinstance(node, str):
            yield LoopRow(depth, "condition", node)
            continue
        match node:
            case SeqStmt():
                pending += [(stmt, depth, times) for stmt in reversed(node.stmts)]
            case For():
                inner = _times(node.extent, times)
                yield _loop(node, depth, inner)
                pending.append((node.body, depth + 1, inner))
            case IfThenElse():
                yield LoopRow(depth, "condition", f"if {truncate(str(node.condition), 80)}")
                if node.else_case is not None:
                    pending += [(node.else_case, depth + 1, times), ("else", depth, times)]
                pending.append((node.then_case, depth + 1, times))
            case Allocate() | DeclBuffer() | BufferRealize():
                yield LoopRow(depth, "memory", _memory(node))
                pending.append((node.body, depth + 1, times))
            case Let():
                yield LoopRow(
                    depth, "statement", f"{node.var.name} = {truncate(str(node.value), 80)}"
                )
                pending.append((node.body, depth, times))
            case TensorOp():
                unit = f"on {node.unit}" if node.unit else ""
                yield LoopRow(depth, "tensorized", node.name, unit)
            case _:
                yield _statement(node, depth, times)


def _times(extent: Expr, outer: int | None) -> int | None:
    """Return the total number of executions of a loop body; None if unknown."""
    return outer * int(extent.value) if outer is not None and isinstance(extent, Const) else None


def _loop(node: For, depth: int, times: int | None) -> LoopRow:
    kind = "bound" if node.thread else _KINDS[node.kind]
    start = "" if isinstance(node.min, Const) and not node.min.value else f" from {node.min}"
    label = f"{node.loop_var.name}: {truncate(extent_text(node.extent), 60)}{start}"
    notes = [node.thread or ("" if kind == "loop" else kind)]
    if times is not None and depth:
        notes.append(f"runs {times:,} times in total" if times != 1 else "")
    return LoopRow(depth, kind, label, ", ".join(filter(None, notes)))


def _memory(node: Allocate | DeclBuffer | BufferRealize) -> str:
    if isinstance(node, BufferRealize):
        extents = ", ".join(extent_text(part.extent) for part in node.bounds)
        where = f": {node.buffer.dtype}[{extents}] in {node.buffer.scope}"
    else:
        where = _describe(node.buffer)
    kind = "another view: " if isinstance(node, DeclBuffer) else ""
    return truncate(f"{kind}{truncate(node.buffer.name, _LETTERS)}{where}", 90)


def _describe(buffer: Buffer) -> str:
    """Describe a buffer: dtype, shape, scope and size."""
    extents = ", ".join(map(extent_text, buffer.shape))
    text = f": {buffer.dtype}[{extents}] in {buffer.scope}"
    size = _bytes(buffer)
    return text if size is None else f"{text}, {size:,} B"


def _bytes(buffer: Buffer) -> int | None:
    extents = [int(n.value) if isinstance(n, Const) else n for n in buffer.shape]
    if not all(isinstance(n, int) for n in extents):
        return None
    return prod(n for n in extents if isinstance(n, int)) * buffer.dtype.bytes


def _statement(node: Stmt, depth: int, times: int | None) -> LoopRow:
    text = str(node)
    lanes = 1
    if isinstance(node, BufferStore):
        lanes = max((index.dtype.lanes for index in node.indices), default=1)
    notes = [f"{lanes} lanes" if lanes > 1 else "", f"{times:,} times" if times else ""]
    first = " ".join(text.split())
    return LoopRow(depth, "statement", truncate(first, 100), ", ".join(filter(None, notes)),
               truncate(first, 400))


def _buffers(canvas: Canvas, func: PrimFunc, x: float, y: float) -> float:
    """Draw the list of buffers, marked as read or written; return the bottom y coordinate."""
    params = [param for param in func.params if isinstance(param, Buffer)]
    buffers: dict[Var, Buffer] = {buffer.data: buffer for buffer in params}
    written: set[Var] = set()
    for node in walk(func.body):
        if isinstance(node, Allocate | BufferRealize):
            buffers.setdefault(node.buffer.data, node.buffer)
        elif isinstance(node, BufferStore):
            written.add(node.buffer.data)
    heading(canvas, x, y, "Buffers", "parameters first; blue ones are written")
    data = {buffer.data for buffer in params}
    bottom = y + 14
    for number, (var, buffer) in enumerate(buffers.items()):
        if number == _MOST_BUFFERS:
            hidden = format_count(len(buffers) - number, "more buffer")
            canvas.text(x, bottom + 13, f"⋮ {hidden}", style="soft")
            return bottom + ROW
        role = "parameter, " if var in data else ""
        access = "written" if var in written else "read"
        canvas.dot(x + 5, bottom + 9, 4, "#4a9ad9" if var in written else "#aab2bd",
                   f"{role}{access}")
        details = _describe(buffer)
        text, full = with_tail(buffer.name, details, 420, 10, "mono"), buffer.name + details
        canvas.text(x + 16, bottom + 13, text, size=10, style="mono", width=420,
                    title=full if text != full else "")
        bottom += ROW
    return bottom


_MAX_STAGES = 40
_MARKS = {
    ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized", ForKind.UNROLLED: "unrolled",
}


def draw_schedule(schedule: Schedule) -> Svg:
    """Draw a schedule."""
    state = schedule.state
    canvas = Canvas()
    names = ", ".join(op.name for op in state.outputs)
    stages = list(state)
    calls = format_count(len(schedule.trace.steps), "call")
    y = head(canvas, f"schedule of {names}", f"{format_count(len(stages), 'stage')}, {calls}") + 30
    heading(canvas, MARGIN, y, "Stages", "with their loops; lines go from a tensor to its readers")
    rows, bottom = _draw_stages(canvas, state, MARGIN, y + 14, connects=True)
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"the schedule of {names}")


def draw_stage(stage: Stage) -> Svg:
    """Draw the loops of a stage."""
    canvas = Canvas()
    state = stage._state
    y = head(canvas, f"stage {stage.op.name}") + 20
    rows = list(_rows_of(state))
    _, bottom = draw_nest(canvas, rows, MARGIN, y)
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"the loops of {stage.op.name}")


def draw_step(schedule: Schedule, step: int) -> Svg:
    """Draw one schedule call: the stages that it changes, before and after.

    Args:
        schedule: Schedule.
        step: Number of the call; negative numbers count from the end.

    Raises:
        ScheduleError: If there is no such call, or it was recorded in another process.
    """
    calls = schedule._calls
    number = as_int(step)
    if number is None or not -len(calls) <= number < len(calls):
        raise ScheduleError(
            "schedule: call number {step!r} is out of range; this schedule recorded {calls} in "
            "this process",
            kind="invalid-value", step=step, calls=format_count(len(calls), "call"),
        )
    step = number
    before, after = calls[step][:2]
    text = schedule.trace.steps[step].to_python().splitlines()[-1]
    canvas = Canvas()
    y = head(canvas, truncate(text, 120), f"call {step % len(calls) + 1} of {len(calls)}") + 30
    equal = {id(stage) for stage in before} & {id(stage) for stage in after}
    changed = {stage.key for state in (before, after) for stage in state if id(stage) not in equal}
    left, rows, bottom = MARGIN, [], y
    for label, state in (("Before", before), ("After", after)):
        heading(canvas, left, y, label)
        found, end = _draw_stages(canvas, state, left, y + 14, only=changed)
        rows += found
        bottom = max(bottom, end)
        left = canvas.right + 48
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"before and after {text}")


def _draw_stages(
    canvas: Canvas, state: ScheduleState, x: float, y: float, *,
    connects: bool = False, only: set[Operation] | None = None,
) -> tuple[list[LoopRow], float]:
    """Draw stages below each other; return their rows and the bottom y coordinate."""
    stages = [stage for stage in state if only is None or stage.key in only]
    drawn = stages[:_MAX_STAGES]
    rows: list[LoopRow] = []
    starts: list[int] = []
    for stage in drawn:
        starts.append(len(rows))
        rows += _rows_of(stage)
    right, bottom = draw_nest(canvas, rows, x, y)
    if len(drawn) < len(stages):
        hidden = format_count(len(stages) - len(drawn), "more stage")
        canvas.text(x, bottom + 13, f"⋮ {hidden}", style="soft")
        bottom += ROW
    if connects:
        tops = [y + start * ROW for start in starts]
        connect(
            canvas, right + 8, _flows(drawn), [top + BAR * 0.7 for top in tops],
            [top + BAR * 0.3 for top in tops],
            {tensor: f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}"
             for stage in drawn for tensor in _outputs(stage)},
        )
    return rows, bottom


def _outputs(stage: StageState) -> Sequence[Tensor]:
    return stage.op.outputs


def _flows(stages: Sequence[StageState]) -> dict[Tensor, tuple[int, list[int]]]:
    """Return the producer stage and the consumer stages of each tensor."""
    flows: dict[Tensor, tuple[int, list[int]]] = {
        tensor: (k, []) for k, stage in enumerate(stages) for tensor in _outputs(stage)
    }
    for k, stage in enumerate(stages):
        for tensor in dict.fromkeys(stage.op.input_tensors):
            if tensor in flows:
                flows[tensor][1].append(k)
    return flows


def _rows_of(stage: StageState) -> Iterator[LoopRow]:
    """Yield the row of a stage, followed by the rows of its loops."""
    yield LoopRow(0, "stage", stage.name, _place(stage))
    for depth, axis in enumerate(stage.leaves):
        tag = stage.threads.get(axis)
        tensorized = stage.tensorized is not None and stage.tensorized.axis == axis
        loop_kind = "bound" if tag else _MARKS.get(stage.marks.get(axis, ForKind.SERIAL), "loop")
        kind = "tensorized" if tensorized else loop_kind
        extent = f": {truncate(extent_text(axis.dom.extent), 40)}"
        remarks = [tag or ("" if kind == "loop" else kind)]
        remarks += ["adds up"] if axis.kind is IterKind.REDUCE else []
        yield LoopRow(depth + 1, kind, f"{axis.name}{extent}", ", ".join(filter(None, remarks)))


def _place(stage: StageState) -> str:
    """Describe the compute location and storage of a stage."""
    parts = [f"in {stage.scope}"]
    match stage.attach:
        case ComputedAt():
            parts.insert(0, f"computed at {stage.attach.stage.name}, {stage.attach.axis.name}")
        case Inline():
            parts = ["computed inline"]
        case _:
            pass
    if stage.is_output:
        parts.append("an output")
    if stage.layout.maps:
        parts.append("in its own layout")
    parts += ["two copies"] * stage.is_doubled + ["rolling"] * stage.is_rolling
    return ", ".join(parts)
