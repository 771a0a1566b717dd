"""Stage definitions, intrinsic calls and loop kinds."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import cached_property

from tecomp.compute.extern import ExternOp
from tecomp.compute.iter_var import IterVar
from tecomp.compute.reduce import Reduce
from tecomp.compute.scan import ScanOp
from tecomp.compute.tensor import TensorLoad
from tecomp.compute.tensor_compute import TensorComputeOp
from tecomp.errors import LowerError
from tecomp.ir.nodes.expr import Const, Expr, Not, Var, index_value
from tecomp.ir.nodes.stmt import Buffer, Extent, ForKind
from tecomp.ir.traversal.analyses import Guards
from tecomp.ir.traversal.rewrite import walk
from tecomp.scheduling.state import Inline, StageState, State, Tensorized
from tecomp.scheduling.threads import is_grid_axis, is_parallel


def with_tiles(state: State) -> State:
    """`state` with the loops of tiles inside of those around, and the intrinsics in their place.

    Raises:
        LowerError: an operand was inlined, so that no memory has it.
    """
    for stage in state:
        op = stage.op
        if not isinstance(op, TensorComputeOp):
            continue
        for load in walk(*op.operands):
            if isinstance(load, TensorLoad) and isinstance(
                state.stage(load.tensor.op).attach, Inline
            ):
                name = state.stage(load.tensor.op).name
                raise LowerError(
                    f"s[{name}].compute_inline: {stage.name} is computed by {op.intrin.name}, "
                    f"which reads {name} from memory; do not inline it, or compute {stage.name} by "
                    f"loops with s[{stage.name}].expand()",
                    kind="needs-memory",
                )
        inner = op.inner_loops
        state = state.update(replace(
            stage, leaves=(*stage.leaves, *inner), tensorized=Tensorized(inner[0], op.intrin)))
    return state


@dataclass(frozen=True, slots=True)
class Read:
    """One place in a definition that reads a tensor.

    Attributes:
        load: the access.
        conditions: all of them hold whenever it is evaluated.
        is_initial: whether a reduction starts from it, for every element and before it has
            reduced anything.
    """

    load: TensorLoad
    conditions: tuple[Expr, ...]
    is_initial: bool = False


@dataclass(frozen=True)
class Definition:
    """A computed stage as it will be generated.

    Attributes:
        stage: its schedule.
        body: one expression for each output; inlined stages are written out.
        start: of a scan, the first steps: one expression for each output.
        buffers: one for each output.
        is_argument: whether the caller passes the memory.
        first_step: of a scan, the first that follows from others.
        is_pointwise: of a scan, whether elements follow from those at the same place alone.
    """

    stage: StageState
    body: tuple[Expr, ...]
    start: tuple[Expr, ...]
    buffers: tuple[Buffer, ...]
    is_argument: bool
    first_step: Extent = 0
    is_pointwise: bool = False

    @property
    def axis(self) -> tuple[IterVar, ...]:
        """Axes of the outputs."""
        return self.stage.compute.axis

    @property
    def reduce(self) -> Reduce | None:
        """The reduction, if it is one."""
        return self.body[0] if isinstance(self.body[0], Reduce) else None

    @property
    def reduce_axis(self) -> tuple[IterVar, ...]:
        """Axes of the reduction."""
        return self.reduce.axis if self.reduce is not None else ()

    @property
    def scan_axis(self) -> IterVar | None:
        """The steps, if it is a scan."""
        return self.stage.op.scan_axis if isinstance(self.stage.op, ScanOp) else None

    @property
    def is_opaque(self) -> bool:
        """Whether it is made of statements that compute all of it at once."""
        return isinstance(self.stage.op, ExternOp)

    @property
    def has_own_boxes(self) -> bool:
        """Whether each of its tensors has memory for all of its elements: shapes may differ."""
        return self.is_opaque or not self.stage.op.are_alike

    @property
    def initial(self) -> tuple[Expr, ...]:
        """What is stored before the loops over a reduction, or over steps."""
        if self.reduce is None:
            return self.start
        return self.reduce.init or self.reduce.identity

    @property
    def is_later_step(self) -> Expr:
        """Whether an element of a scan follows from others, as a condition of its axes."""
        return index_value(self.axis[0]) >= index_value(self.first_step)

    @cached_property
    def reads(self) -> tuple[Read, ...]:
        """Every read in its bodies, and in the first steps of a scan."""
        later = (self.is_later_step,) if self.scan_axis is not None else ()
        return tuple(_reads(self.start, self.body, later))

    @cached_property
    def starts_from_tensors(self) -> bool:
        """Whether what is stored before the loops over a reduction, or over steps, is read."""
        return any(isinstance(node, TensorLoad) for node in walk(*self.initial))


def _reads(
    start: tuple[Expr, ...], body: tuple[Expr, ...], later: tuple[Expr, ...]
) -> Iterator[Read]:
    """The reads of first steps and of bodies, which hold where `later` does."""
    first = tuple(Not(condition) for condition in later)
    groups: dict[Hashable, tuple[tuple[Expr, ...], bool, list[Expr]]] = {}
    for value, around in (*((e, later) for e in body), *((e, first) for e in start)):
        for part, conditions, is_initial in _parts(value, around):
            key = tuple(map(id, conditions)), is_initial
            groups.setdefault(key, (conditions, is_initial, []))[2].append(part)
    for conditions, is_initial, roots in groups.values():
        guards = Guards(roots)
        for node in walk(*roots):
            if isinstance(node, TensorLoad):
                guard = guards.of(node)
                inside = () if guard is None else guard.conditions()
                yield Read(node, (*conditions, *inside), is_initial)


def _parts(
    value: Expr, conditions: tuple[Expr, ...]
) -> list[tuple[Expr, tuple[Expr, ...], bool]]:
    """What is computed for an element, under which conditions, and whether only to begin with."""
    if not isinstance(value, Reduce):
        return [(value, conditions, False)]
    inside = conditions if _is_true(value.condition) else (*conditions, value.condition)
    return [
        (value.condition, conditions, False),
        *((given, inside, False) for given in value.given),
        *((source, inside, False) for source in value.source),
        *((start, conditions, True) for start in value.init or value.identity),
    ]


def _is_true(condition: Expr) -> bool:
    return isinstance(condition, Const) and condition.value is True


_CALLS = {ForKind.PARALLEL: "parallel", ForKind.VECTORIZED: "vectorize"}


def loop_kinds(stage: StageState) -> dict[Var, ForKind]:
    """The kind of every loop that is not an ordinary one."""
    kinds: dict[Var, ForKind] = {leaf: kind for leaf, kind in stage.marks.items()}
    for leaf, tag in stage.threads.items():
        kinds.setdefault(leaf, ForKind.PARALLEL if is_parallel(tag) else ForKind.SERIAL)
    return kinds


def grid_axes(stage: StageState) -> dict[Var, str]:
    """The axis of the grid of cores of every loop that is bound to one."""
    return {leaf: tag for leaf, tag in stage.threads.items() if is_grid_axis(tag)}


def concurrent(stage: StageState, loops: Mapping[IterVar, Expr]) -> list[tuple[Var, str]]:
    """The variables of the loops whose iterations run at the same time, with the call."""
    kinds = loop_kinds(stage)
    found = []
    for leaf, value in loops.items():
        kind = kinds.get(leaf, ForKind.SERIAL)
        if isinstance(value, Var) and kind in _CALLS:
            call = _CALLS[kind] if leaf in stage.marks else "bind"
            found.append((value, f"s[{stage.name}].{call}({leaf.name})"))
    return found
