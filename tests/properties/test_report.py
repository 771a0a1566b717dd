"""What a report counts is what happens: random programs and schedules, watched while they run."""

from __future__ import annotations

from collections import Counter, defaultdict
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from tecomp.compute.axis import IterKind
from tecomp.compute.operation import ComputeOp
from tecomp.driver.grid import check_grid
from tecomp.driver.memories import check_memories
from tecomp.driver.reporting import counted_form, report_of
from tecomp.errors import LowerError, ScheduleError, TargetError
from tecomp.ir.evaluate import evaluate
from tecomp.ir.expr import Binary, BinOp, BufferLoad, Call, Const, Expr
from tecomp.ir.rewrite import children
from tecomp.ir.stmt import Buffer, BufferStore
from tecomp.ir.tensor_op import TensorOp
from tecomp.lowering.pipeline import lower_all
from tecomp.machine import Target
from tests.strategies.draws import Draw
from tests.strategies.schedules import Case, cases

BLOCKS = {"global": 32, "global.texture": 16, "local": 12, "shared": None}
CPU = Target.load("cpu").overridden(
    grid={"core.x": 64},
    memory={name: {"transaction_bytes": size, "scope": "chip"} for name, size in BLOCKS.items()},
)


@dataclass
class Runs:
    """The accesses of one place by one core."""

    size: int
    block: int | None
    lengths: list[int] = field(default_factory=list)
    transactions: int = 0
    count: int = 0
    _before: Any = None
    _touched: set[int] = field(default_factory=set)

    def see(self, place: tuple[int, ...]) -> None:
        *row, column = place
        start = column * self.size
        here = (row, start)
        self.count += 1
        if here == self._before:
            return
        if self._before == (row, start - self.size):
            self.lengths[-1] += 1
        else:
            self.lengths.append(1)
            self._touched = set()
        if self.block is not None:
            last = (start + self.size - 1) // self.block
            blocks = set(range(start // self.block, last + 1)) - self._touched
            self.transactions += len(blocks)
            self._touched |= blocks
        self._before = here


class Watcher:
    """Follows every access."""

    def __init__(self, axes: tuple[str, ...]) -> None:
        self.where = dict.fromkeys(axes, 0)
        self.places: list[tuple[Buffer, str, dict[tuple[int, ...], Runs]]] = []
        self.operations: Counter[str] = Counter()

    def reader(self, node: BufferLoad) -> Callable[[tuple[int, ...]], None]:
        return self._follow(node.buffer, "read")

    def writer(self, node: BufferStore) -> Callable[[tuple[int, ...]], None]:
        follow = self._follow(node.buffer, "write")
        counts = operations(node.value)

        def seen(place: tuple[int, ...]) -> None:
            follow(place)
            self.operations.update(counts)

        return seen

    def _follow(self, buffer: Buffer, direction: str) -> Callable[[tuple[int, ...]], None]:
        found: dict[tuple[int, ...], Runs] = {}
        self.places.append((buffer, direction, found))

        def seen(place: tuple[int, ...]) -> None:
            core = tuple(self.where.values())
            if core not in found:
                found[core] = Runs(buffer.dtype.bytes, BLOCKS[buffer.scope])
            found[core].see(place)

        return seen

    def operation(self, node: TensorOp) -> None:
        """There are none."""

    def core(self, thread: str, value: int | None) -> None:
        self.where[thread] = value or 0


def operations(value: Expr) -> Counter[str]:
    """Each operation of an expression, but for those in indices and conditions of reads."""
    found: Counter[str] = Counter()
    todo = [value]
    while todo:
        node = todo.pop()
        if isinstance(node, Binary) and node.op not in (BinOp.AND, BinOp.OR):
            found[f"{node.op.name.lower()} {node.dtype}"] += 1
        elif isinstance(node, Call) and node.name not in ("if_then_else", "check_index"):
            found[f"{node.name} {node.dtype}"] += 1
        todo += () if isinstance(node, BufferLoad | Const) else children(node)
    return found


@st.composite
def bound_cases(draw: Draw) -> Case:
    """Cases of which a loop may be bound to cores."""
    case: Case = draw(cases(most_steps=10))
    for stage in case.schedule.stages:
        leaves = stage.leaf_iter_vars if isinstance(stage.op, ComputeOp) else ()
        free = [leaf for leaf in leaves[:1] if leaf.kind is IterKind.DATA]
        if free and isinstance(free[0].extent, int) and draw(st.booleans()):
            try:
                stage.bind(free[0], "core.x")
            except ScheduleError as error:
                event(f"not bound: {error.message}")
    return case


@given(bound_cases())
def test_counts(case: Case) -> None:
    try:
        check_grid(case.schedule.state, CPU)
        lowered = lower_all(case.schedule, case.args)
    except (LowerError, TargetError) as error:
        event(f"refused: {type(error).__name__}")
        return
    check_memories(lowered.final, CPU)
    sizes = {name: values[0] for name, values in case.program.sizes.items()}
    func, _ = counted_form("main", lowered, sizes)
    report = report_of("main", case.schedule.state, lowered, CPU, sizes)
    watcher = Watcher(report.axes)
    args = [
        np.zeros([int(str(n)) for n in p.shape], p.dtype.numpy) if isinstance(p, Buffer)
        else sizes[p.name]
        for p in func.params
    ]
    evaluate(func, args, watcher)
    if report.unknown:
        event("depends on data")
        return
    cores = [core.core for core in report.cores]
    expected: dict[tuple[str, str], Any] = defaultdict(lambda: [0, 0, 0, 0, Counter()])
    for buffer, direction, found in watcher.places:
        total = expected[buffer.scope, direction]
        for core, runs in found.items():
            total[0] += runs.count * runs.size
            total[1] += len(runs.lengths)
            total[2] = max(total[2], max(runs.lengths) * runs.size)
            total[3] += runs.transactions
            total[4][core] += runs.count * runs.size
    assert {(t.memory, t.direction): t.bytes for t in report.traffic} == {
        key: total[0] for key, total in expected.items() if total[0]
    }
    for traffic in report.traffic:
        _, runs, longest, transactions, by_core = expected[traffic.memory, traffic.direction]
        assert (traffic.runs, traffic.longest_run_bytes) == (runs, longest)
        assert traffic.transactions == (
            None if BLOCKS[traffic.memory] is None else transactions
        )
        assert dict(zip(cores, traffic.per_core, strict=True)) == {c: by_core[c] for c in cores}
    event(f"cores: {len(cores)}, memories: {len(report.traffic)}")
    # The watcher sees whole statements.
    if not any(word in str(func) for word in ("if_then_else", "with Let")):
        assert report.operations == dict(sorted(watcher.operations.items()))
