"""Random schedules: primitives drawn one after the other for the current state of the schedule."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from typing import Any

from hypothesis import strategies as st
from hypothesis.errors import UnsatisfiedAssumption

from tecomp import te
from tecomp.compute import ComputeOp, IterKind, IterVar, Operation, Tensor
from tecomp.driver import ScheduledKernel
from tecomp.driver.build import build
from tecomp.errors import LayoutError, LowerError, ScheduleError, TecompError
from tecomp.lowering import LoweringResult, lower_all
from tecomp.scheduling import consumers_below
from tecomp.scheduling.replay import replay
from tecomp.scheduling.schedule import Schedule, Stage
from tests.strategies.draws import Dice, Draw, Draws, event
from tests.strategies.layouts import draw_layout, function_of
from tests.strategies.programs import Program, draw_program

# Documented errors of primitives. Any other error is a test failure.
REFUSED_CALLS = (
    r"its loops are now ",
    r"axis \S+ was replaced by .* in transform_layout",
    r"was already split or fused, so its loops cannot follow the new layout",
    r"reduction axis \S+ was already split or fused; call cache_write first",
    r"is computed at loop \S+ of \S+, whose loops cache_write resets; call cache_write before",
    r"cannot derive the inverse of this index map, so loops cannot follow it",
    r"the axis separators \[.*\] of an earlier call do not match",
    r"pad_value= of an earlier call is a function of its physical axes",
    r"is computed inside \S+ already; call ",
    r"bit operations are decided by enumerating all elements, but \S+ has the extent",
    r"was fused from data and reduction axes, so its iterations",
    r"axes must be perfectly nested loops",
    r"jamming would accumulate in another order",
    r"double_buffer: \S+ (is an output|has several outputs)",
    r"rolling_buffer: \S+ is an output",
    r"\S+ is a scan",
    r"\S+ is the step axis of a scan",
    r"tail='shift_inwards' (computes some elements twice|requires axes of the tensor|requires a constant)",
)
REFUSED_PLACES = (
    r"^s\[(?P<stage>\S+)\]\.compute_at\(.*\): \S+ also reads \S+, but is not computed inside",
    r"^s\[(?P<stage>\S+)\]\.compute_at: \S+ is passed by the caller, but its consumer .* only a part",
    r"^s\[(?P<stage>\S+)\]\.compute_at\(.*\): init= of \S+ reads \S+ before the loops of the",
    r"^s\[(?P<stage>\S+)\]\.compute_at\(.*\): \S+ reads the state of",
    r"^s\[(?P<stage>\S+)\]\.compute_at\(.*\): the start of \S+ reads \S+ before the loops over",
    r"iterations .* both write .*, whose memory is passed by the caller; compute (?P<stage>\S+) at the root",
    r"^s\[(?P<stage>\S+)\]\.compute_at\(.*\): \S+ is inlined and has no loops",
    r"^s\[(?P<stage>\S+)\]\.compute_at\(.*\): \S+ is no longer a loop of \S+;",
)
# Documented errors of loop hints, which do not affect the results.
REFUSED_HINTS = (
    r"^s\[\S+\]\.(?P<hint>prefetch)\(.*\): \S+ is not read inside that loop",
    r"^s\[\S+\]\.(?P<hint>prefetch)\(.*\): \S+ is computed inside that loop",
    r"^s\[\S+\]\.(?P<hint>prefetch)\(.*\): the iterations of \S+ run simultaneously",
    r"^s\[\S+\]\.(?P<hint>double_buffer): \S+ is not computed inside a loop",
    r"^s\[\S+\]\.(?P<hint>double_buffer): the caller passes the memory",
    r"^s\[\S+\]\.(?P<hint>double_buffer): the iterations of \S+ of \S+ run in parallel",
    r"^s\[\S+\]\.(?P<hint>double_buffer): \S+ cannot be computed an iteration ahead: it reads",
    r"^s\[\S+\]\.(?P<hint>rolling_buffer): \S+ is not computed inside a loop",
    r"^s\[\S+\]\.(?P<hint>rolling_buffer): the caller passes the memory",
    r"^s\[\S+\]\.(?P<hint>rolling_buffer): the iterations of \S+ of \S+ run in parallel",
    r"^s\[\S+\]\.(?P<hint>rolling_buffer): \S+ has a double buffer too",
    r"^s\[\S+\]\.(?P<hint>rolling_buffer): the layout of \S+ has a pad_value",
    r"^s\[\S+\]\.(?P<hint>rolling_buffer): no two iterations of",
)
# Errors of layouts that take isl too long, and of loop orders that violate a dependence or for which
# isl cannot decide the dependences.
REFUSED_PROGRAMS = (
    r"^lower: the index sets take too long to decide; use simpler index expressions",
    r"^\S+: \S+ reads \S+ at indices that index sets cannot represent, so the dependences between",
    r"^s\[\S+\]: iteration \(.*\) reads \S+\[.*\] before it is computed",
    r"iteration \(.*\) reads \S+\[.*\], which another iteration computes in parallel",
)


@dataclass
class Case:
    """Program with a schedule and the layout maps that the schedule applied.

    Attributes:
        program: Random computation.
        names: Tensors and size variables of the program by name.
        schedule: Schedule of the program.
        maps: Texts of the layout maps of each stage, in order.
        pads: Text of the last pad value of each stage.
    """

    program: Program
    names: dict[str, Any]
    schedule: Schedule
    maps: dict[Operation, list[str]] = field(default_factory=dict)
    pads: dict[Operation, str] = field(default_factory=dict)

    @property
    def outputs(self) -> list[Tensor]:
        """Output tensors; if one output of an operation is requested, all of its outputs."""
        expected = [self.names[name] for name in self.program.outputs]
        operations = dict.fromkeys(tensor.op for tensor in expected)
        return [tensor for op in operations for tensor in op.outputs]

    @property
    def inputs(self) -> list[Tensor]:
        """Input tensors."""
        return [
            self.names[name] for name in self.program.inputs
            if any(self.names[name].op is stage.op for stage in self.schedule.stages)
        ]

    @property
    def args(self) -> list[Any]:
        """Parameters: sizes, inputs and outputs."""
        sizes = [self.names[name] for name in self.program.sizes]
        return [*sizes, *self.inputs, *self.outputs]

    def build(self) -> ScheduledKernel:
        """Compile the case; rejected placements and hints are undone first."""
        self.lower()
        return build(self.schedule, self.args)

    def lower(self) -> LoweringResult:
        """Lower the case and return the function after each pass; undo rejected primitives."""
        while True:
            try:
                return lower_all(self.schedule, self.args)
            except LowerError as error:
                self._mend(error)

    def _mend(self, error: LowerError) -> None:
        """Undo a rejected placement or hint, or discard the case; reraise undocumented errors."""
        if (found := _matching(error, REFUSED_PLACES)) is not None:
            event(f"moved to the root: {found.re.pattern}")
            # Stages may share a name; all of them are moved to the root.
            before = self.schedule.state
            for stage in self.schedule.stages:
                if stage.op.name == found["stage"]:
                    stage.compute_root()
            if self.schedule.state == before:
                raise error
        elif (found := _matching(error, REFUSED_HINTS)) is not None:
            event(f"taken back: {found.re.pattern}")
            self.schedule = self._without(found["hint"])
        elif _matching(error, REFUSED_PROGRAMS) is not None:
            raise UnsatisfiedAssumption(error.message)
        else:
            raise error

    def _without(self, hint: str) -> Schedule:
        """Return the schedule without the calls of a primitive that returns nothing."""
        trace = json.loads(self.schedule.trace.to_json())
        needs, steps = [], []
        for step in trace["steps"]:
            needs += step["needs"]
            if step["call"] != hint:
                steps.append({**step, "needs": needs})
                needs = []
        return replay(json.dumps({**trace, "steps": steps}), list(self.schedule.outputs))

    def text(self) -> str:
        """Return the Python text of the program and the schedule."""
        names = ", ".join(tensor.name for tensor in self.outputs)
        return (
            f"{self.program.source}\n# inputs {dict(self.program.inputs)}, outputs {names}\n\n"
            f"{self.schedule.trace}"
        )

    def _repr_pretty_(self, printer: Any, cycle: bool) -> None:
        """Print the text instead of the fields in Hypothesis reports."""
        del cycle
        printer.text(f"a program and its schedule:\n{self.text()}")


def _matching(error: TecompError, patterns: Sequence[str]) -> re.Match[str] | None:
    found = (re.search(pattern, error.message) for pattern in patterns)
    return next((match for match in found if match), None)


@dataclass
class _Scheduler(Draws):
    """Generator of primitive calls on a case."""

    case: Case

    @property
    def computed(self) -> list[Stage]:
        return [s for s in self.case.schedule.stages if isinstance(s.op, ComputeOp)]

    def attempt(self, name: str, call: Callable[..., Any], *args: Any, **kwargs: Any) -> bool:
        """Make a call and return whether it was accepted."""
        try:
            call(*args, **kwargs)
        except (ScheduleError, LayoutError) as error:
            found = _matching(error, REFUSED_CALLS)
            if found is None:
                raise
            event(f"{name} refused: {found.re.pattern}")
            return False
        event(name)
        return True

    def leaf(self, stage: Stage, kind: IterKind | None = None) -> IterVar | None:
        leaves = [a for a in stage.leaf_iter_vars if kind in (None, a.kind)]
        return self.pick(leaves) if leaves else None

    def leaf_kinds(self, stage: Stage) -> set[IterKind]:
        return {axis.kind for axis in stage.leaf_iter_vars}

    # Loops.

    def split(self, stage: Stage) -> None:
        if (leaf := self.leaf(stage)) is not None:
            word = self.pick(("factor", "factor", "nparts"))
            source: dict[str, Any] = {word: self.pick((2, 4, 3, 1, 5, 8, 16))}
            if word == "factor" and self.chance(25):
                source["tail"] = "shift_inwards"
            self.attempt("split", stage.split, leaf, **source)

    def unroll_and_jam(self, stage: Stage) -> None:
        if (leaf := self.leaf(stage)) is not None:
            self.attempt("unroll_and_jam", stage.unroll_and_jam, leaf, self.number(1, 4))

    def tile(self, stage: Stage) -> None:
        if len(stage.leaf_iter_vars) >= 2:
            x, y = self.shuffled(stage.leaf_iter_vars)[:2]
            self.attempt("tile", stage.tile, x, y, self.number(1, 4), self.number(1, 5))

    def fuse(self, stage: Stage) -> None:
        leaves = stage.leaf_iter_vars
        if len(leaves) >= 2:
            first = self.number(0, len(leaves) - 2)
            count = self.number(2, min(3, len(leaves) - first))
            self.attempt("fuse", stage.fuse, *leaves[first : first + count])
        elif self.chance(10):
            self.attempt("fuse", stage.fuse)

    def reorder(self, stage: Stage) -> None:
        leaves = self.shuffled(stage.leaf_iter_vars)
        self.attempt("reorder", stage.reorder, *leaves[: self.number(0, len(leaves))])

    def mark(self, stage: Stage) -> None:
        word = self.pick(("vectorize", "unroll", "vectorize", "parallel"))
        kinds = tuple(IterKind) if word == "unroll" else (IterKind.DATA,)
        leaves = [
            leaf for leaf in stage.leaf_iter_vars
            if leaf.kind in kinds and (word != "unroll" or _is_short(leaf))
        ]
        if leaves:
            self.attempt(word, getattr(stage, word), self.pick(leaves))

    def bind(self, stage: Stage) -> None:
        tag = self.pick(("threadIdx.x", "blockIdx.x", "vthread"))
        leaf = self.leaf(stage, IterKind.DATA if tag == "blockIdx.x" else None)
        if leaf is not None:
            self.attempt("bind", stage.bind, leaf, te.thread_axis(tag))

    def prefetch(self, stage: Stage) -> None:
        if (leaf := self.leaf(stage)) is not None and stage.op.input_tensors:
            tensor = self.pick(stage.op.input_tensors)
            self.attempt("prefetch", stage.prefetch, tensor, leaf, self.number(0, 3))

    def pragma(self, stage: Stage) -> None:
        if (leaf := self.leaf(stage)) is not None:
            steps = self.pick((16, 0, 64))
            self.attempt("pragma", stage.pragma, leaf, "auto_unroll_max_step", steps)

    # Places.

    def compute_at(self, _: Stage) -> None:
        read = [s for s in self.computed if self.readers(s)]
        if not read:
            return
        stage = self.pick(read)
        below = consumers_below(self.case.schedule.state, self.key(stage))
        parent = self.pick([s for s in self.computed if self.key(s) in below])
        if (leaf := self.leaf(parent)) is not None:
            self.attempt("compute_at", stage.compute_at, parent, leaf)
            if self.chance(15):
                self.attempt("double_buffer", stage.double_buffer)
            elif self.chance(25):
                self.attempt("rolling_buffer", stage.rolling_buffer)

    def compute_inline(self, _: Stage) -> None:
        passed = {tensor.op for tensor in self.case.outputs}
        simple = [
            s for s in self.computed
            if self.key(s) not in passed and not s.op.reduce_axis and s.op.num_outputs == 1
        ]
        if simple:
            self.attempt("compute_inline", self.pick(simple).compute_inline)

    def storage_align(self, stage: Stage) -> None:
        # The user has no handle of the axes that `transform_layout(loops="logical")` creates.
        known = set(stage.all_iter_vars)
        stored = self.case.schedule.state.stage(self.key(stage)).layout_axes
        if axes := [axis for axis in stored if axis in known]:
            factor = self.number(1, 9)
            self.attempt("storage_align", stage.storage_align, self.pick(axes), factor,
                         self.number(0, factor - 1))

    # Stages.

    def cache_read(self, _: Stage) -> None:
        schedule = self.case.schedule
        stages = [s for s in schedule.stages if self.readers(s)]
        if not stages or len(schedule.stages) > 9:
            return
        stage = self.pick(stages)
        readers = self.readers(stage)
        count = self.number(1, len(readers))
        tensors = {
            t for reader in readers[:count] for t in reader.op.input_tensors
            if schedule[t.op].op is stage.op
        }
        tensor = self.pick(sorted(tensors, key=lambda t: t.value_index))
        read = [r.op for r in readers[:count] if _reads(schedule, r, tensor)]
        self.attempt("cache_read", schedule.cache_read, tensor,
                     self.pick(("global", "local", "shared")), read)

    def readers(self, stage: Stage) -> list[Stage]:
        schedule = self.case.schedule
        return [
            s for s in self.computed
            if any(schedule[t.op].op is stage.op for t in s.op.input_tensors)
        ]

    def cache_write(self, stage: Stage) -> None:
        if len(self.case.schedule.stages) > 9:
            return
        written = list(stage.op.outputs)
        self.attempt("cache_write", self.case.schedule.cache_write,
                     written if len(written) > 1 else written[0], self.pick(("global", "local")))

    def rfactor(self, _: Stage) -> None:
        reductions = [s for s in self.computed if self.leaf_kinds(s) & {IterKind.REDUCE}]
        if not reductions or len(self.case.schedule.stages) > 9:
            return
        stage = self.pick(reductions)
        leaf = self.leaf(stage, IterKind.REDUCE)
        assert leaf is not None
        if self.chance(60) and self.attempt("split", stage.split, leaf, factor=self.number(1, 5)):
            leaf = self.leaf(stage, IterKind.REDUCE)
        rank = len(stage.op.axis)
        self.attempt("rfactor", self.case.schedule.rfactor, stage.op.output(0), leaf,
                     self.number(-rank - 1, rank))

    # Layouts.

    def transform_layout(self, stage: Stage) -> None:
        key = self.key(stage)
        if stage.op.name.endswith("_state"):
            return
        state = self.case.schedule.state.stage(key)
        earlier = self.case.maps.get(key, [])
        shape = (
            [axis.extent for axis in state.layout_axes] if earlier and state.layout_axes
            else self.stored_shape(stage)
        )
        separated = state.scope == "global.texture" or (not earlier and self.chance(30))
        text = draw_layout(self.draw, [n if isinstance(n, int) else None for n in shape],
                           separated=separated)
        options: dict[str, Any] = {}
        pad = None
        if isinstance(stage.op, ComputeOp):
            if self.chance(40):
                options["loops"] = "logical"
            if self.chance(40):
                dtype = stage.op.output(0).dtype
                pad = self.pick((
                    "True" if dtype == "bool" else "7", f"lambda *p: (p[0] + 1).astype('{dtype}')",
                    f"lambda *p: p[-1].astype('{dtype}')", "1",
                ))
                options["pad_value"] = eval(pad)
        if not self.attempt("transform_layout", stage.transform_layout, function_of(text),
                            **options):
            return
        self.case.maps.setdefault(key, []).append(text)
        if pad is not None:
            self.case.pads[key] = pad
        if separated and state.scope != "global.texture":
            self.attempt("set_scope", stage.set_scope, "global.texture")

    def stored_shape(self, stage: Stage) -> Sequence[Any]:
        shape: tuple[Any, ...] = stage.op.output(0).shape
        for index_map in self.case.schedule.state.stage(self.key(stage)).layout.maps:
            shape = index_map.map_shape(shape)
        return shape

    def key(self, stage: Stage) -> Operation:
        return self.case.schedule.state.stage(stage.op).key

    def nothing(self, _: Stage) -> None:
        """Do nothing; Hypothesis shrinks irrelevant calls to this one."""

    def step(self, *, early: bool) -> None:
        """Draw one call: from the primitives that usually come first if `early`, else from all."""
        any_stage = self.pick(self.case.schedule.stages)
        stage = self.pick(self.computed)
        kinds = [self.nothing, self.cache_read, self.cache_write, self.transform_layout, self.rfactor,
                 self.transform_layout]
        if not early:
            kinds = [
                self.nothing, self.compute_at, self.split, self.mark, self.reorder, self.fuse, self.tile, self.unroll_and_jam,
                self.compute_at, self.split, self.mark, self.compute_inline, self.bind,
                self.storage_align, self.prefetch, self.pragma, *kinds[1:],
            ]
        kind = self.pick(kinds)
        kind(any_stage if kind == self.transform_layout else stage)


def _is_short(leaf: IterVar) -> bool:
    return isinstance(leaf.extent, int) and leaf.extent <= 8


def _reads(schedule: Schedule, reader: Stage, tensor: Tensor) -> bool:
    return any(
        schedule[t.op].op is schedule[tensor.op].op and t.value_index == tensor.value_index
        for t in reader.op.input_tensors
    )


def draw_case(draw: Draw | Dice, *, most_steps: int = 16) -> Case:
    """Draw a program with a schedule of up to `most_steps` calls."""
    program = draw_program(draw)
    names = program.define()
    outputs = dict.fromkeys(names[name].op for name in program.outputs)
    case = Case(program, names, te.create_schedule(list(outputs)))
    scheduler = _Scheduler(draw, case)
    early = scheduler.number(0, 4)
    for k in range(scheduler.number(6, most_steps)):
        scheduler.step(early=k < early)
    return case


@st.composite
def cases(draw: Draw, *, most_steps: int = 16) -> Case:
    """Draw programs with a schedule of up to `most_steps` calls."""
    return draw_case(draw, most_steps=most_steps)
