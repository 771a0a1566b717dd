"""Schedules as pictures: stages with their loops, where each is computed, and what goes between."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tecomp.compute.axis import IterKind
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.drawing.canvas import MARGIN, Canvas
from tecomp.drawing.lanes import connect
from tecomp.drawing.panels import head, heading, legend
from tecomp.drawing.svg import Svg
from tecomp.errors import ScheduleError
from tecomp.ir.language.given import whole_number
from tecomp.ir.language.stmt import ForKind
from tecomp.ir.language.text import counted, shortened
from tecomp.pictures.nest import BAR, ROW, Row, draw_nest, extent_text, kinds_of
from tecomp.scheduling.schedule import Schedule, Stage
from tecomp.scheduling.state import At, Inline, StageState, State

_MOST_STAGES = 40
_MARKS = {
    ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorized", ForKind.UNROLLED: "unrolled",
}


def drawn(schedule: Schedule) -> Svg:
    """The picture of a schedule."""
    state = schedule.state
    canvas = Canvas()
    names = ", ".join(op.name for op in state.outputs)
    stages = list(state)
    calls = counted(len(schedule.trace.steps), "call")
    y = head(canvas, f"schedule of {names}", f"{counted(len(stages), 'stage')}, {calls}") + 30
    heading(canvas, MARGIN, y, "Stages", "with their loops; lines go from a tensor to its readers")
    rows, bottom = _draw_stages(canvas, state, MARGIN, y + 14, connects=True)
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"the schedule of {names}")


def drawn_stage(stage: Stage) -> Svg:
    """The picture of a stage: its loops alone."""
    canvas = Canvas()
    state = stage._state
    y = head(canvas, f"stage {stage.op.name}") + 20
    rows = list(_rows_of(state))
    _, bottom = draw_nest(canvas, rows, MARGIN, y)
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"the loops of {stage.op.name}")


def drawn_step(schedule: Schedule, step: int) -> Svg:
    """The picture of one call of a schedule: the stages that it changes, before and after it.

    Args:
        schedule: what was scheduled.
        step: number of the call; negative ones count from the end.

    Raises:
        ScheduleError: there is no such call, or it was made in another process.
    """
    calls = schedule._calls
    number = whole_number(step)
    if number is None or not -len(calls) <= number < len(calls):
        raise ScheduleError(
            f"schedule: no call has the number {step!r}; this schedule saw "
            f"{counted(len(calls), 'call')} in this process",
            kind="wrong-number",
        )
    step = number
    before, after = calls[step][:2]
    text = schedule.trace.steps[step].to_python().splitlines()[-1]
    canvas = Canvas()
    y = head(canvas, shortened(text, 120), f"call {step % len(calls) + 1} of {len(calls)}") + 30
    same = {id(stage) for stage in before} & {id(stage) for stage in after}
    changed = {stage.key for state in (before, after) for stage in state if id(stage) not in same}
    left, rows, bottom = MARGIN, [], y
    for words, state in (("Before", before), ("After", after)):
        heading(canvas, left, y, words)
        found, end = _draw_stages(canvas, state, left, y + 14, only=changed)
        rows += found
        bottom = max(bottom, end)
        left = canvas.right + 48
    legend(canvas, bottom + 20, kinds_of(rows))
    return canvas.finished(f"before and after {text}")


def _draw_stages(
    canvas: Canvas, state: State, x: float, y: float, *,
    connects: bool = False, only: set[Operation] | None = None,
) -> tuple[list[Row], float]:
    """Draw stages below each other; their rows, and where they end."""
    stages = [stage for stage in state if only is None or stage.key in only]
    shown = stages[:_MOST_STAGES]
    rows: list[Row] = []
    starts: list[int] = []
    for stage in shown:
        starts.append(len(rows))
        rows += _rows_of(stage)
    right, bottom = draw_nest(canvas, rows, x, y)
    if len(shown) < len(stages):
        more = counted(len(stages) - len(shown), "more stage")
        canvas.text(x, bottom + 13, f"⋮ {more}", style="soft")
        bottom += ROW
    if connects:
        tops = [y + start * ROW for start in starts]
        connect(
            canvas, right + 8, _flows(shown), [top + BAR * 0.7 for top in tops],
            [top + BAR * 0.3 for top in tops],
            {tensor: f"{tensor.name}: {tensor.dtype}{list(tensor.shape)}"
             for stage in shown for tensor in _outputs(stage)},
        )
    return rows, bottom


def _outputs(stage: StageState) -> Sequence[Tensor]:
    return stage.op.outputs


def _flows(stages: Sequence[StageState]) -> dict[Tensor, tuple[int, list[int]]]:
    """For each tensor the stage that makes it, and those that read it."""
    made: dict[Tensor, tuple[int, list[int]]] = {
        tensor: (k, []) for k, stage in enumerate(stages) for tensor in _outputs(stage)
    }
    for k, stage in enumerate(stages):
        for tensor in dict.fromkeys(stage.op.input_tensors):
            if tensor in made:
                made[tensor][1].append(k)
    return made


def _rows_of(stage: StageState) -> Iterator[Row]:
    """A stage, and its loops below it."""
    yield Row(0, "stage", stage.name, _place(stage))
    for depth, axis in enumerate(stage.leaves):
        tag = stage.threads.get(axis)
        tensorized = stage.tensorized is not None and stage.tensorized.axis == axis
        mark = "bound" if tag else _MARKS.get(stage.marks.get(axis, ForKind.SERIAL), "loop")
        kind = "tensorized" if tensorized else mark
        extent = f": {shortened(extent_text(axis.dom.extent), 40)}"
        remarks = [tag or ("" if kind == "loop" else kind)]
        remarks += ["adds up"] if axis.kind is IterKind.REDUCE else []
        yield Row(depth + 1, kind, f"{axis.name}{extent}", ", ".join(filter(None, remarks)))


def _place(stage: StageState) -> str:
    """Where it is computed and what becomes of its elements."""
    words = [f"in {stage.scope}"]
    match stage.attach:
        case At():
            words.insert(0, f"computed at {stage.attach.stage.name}, {stage.attach.axis.name}")
        case Inline():
            words = ["computed inline"]
        case _:
            pass
    if stage.is_output:
        words.append("an output")
    if stage.layout.maps:
        words.append("in a layout of its own")
    words += ["two copies"] * stage.is_doubled + ["rolling"] * stage.is_rolling
    return ", ".join(words)
