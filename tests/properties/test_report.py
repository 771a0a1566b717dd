"""Reports count the operations and transfers that an instrumented run observes."""

from __future__ import annotations

import numpy as np
from hypothesis import event, given
from hypothesis import strategies as st

from tecomp.compute import ComputeOp, IterKind
from tecomp.driver import check_grid, check_memories, report_of, specialize_for_cost_model
from tecomp.errors import LowerError, ScheduleError, TargetError
from tecomp.ir import Buffer, Let, evaluate, statements_in, walk
from tecomp.lowering import lower_all
from tecomp.machine import Target
from tests.strategies.draws import Draw
from tests.strategies.schedules import Case, cases
from tests.strategies.watcher import Watcher, assert_counted

BLOCKS = {"global": 32, "global.texture": 16, "local": 12, "shared": None}
CPU = Target.load("cpu").overridden(
    grid={"core.x": 64},
    memory={name: {"transaction_bytes": size, "scope": "chip"} for name, size in BLOCKS.items()},
)


@st.composite
def bound_cases(draw: Draw) -> Case:
    """Draw cases with a loop that may be bound to cores."""
    case: Case = draw(cases(most_steps=10))
    for stage in case.schedule.stages:
        leaves = stage.leaf_iter_vars if isinstance(stage.op, ComputeOp) else ()
        free = [leaf for leaf in leaves[:1] if leaf.kind is IterKind.DATA]
        if free and isinstance(free[0].extent, int) and draw(st.booleans()):
            try:
                stage.bind(free[0], "core.x")
            except ScheduleError as error:
                event(f"not bound: {error.kind}")
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
    func, _ = specialize_for_cost_model("main", lowered, sizes)
    report = report_of("main", case.schedule.state, lowered, CPU, sizes)
    watcher = Watcher(report.axes, BLOCKS)
    args = [
        np.zeros([int(str(n)) for n in p.shape], p.dtype.numpy) if isinstance(p, Buffer)
        else sizes[p.name]
        for p in func.params
    ]
    evaluate(func, args, watcher)
    if report.unknown:
        event("depends on data")
        return
    assert_counted(report, watcher)
    event(f"cores: {len(report.cores)}, memories: {len(report.traffic)}")
    # The watcher counts the stored value as a whole.
    has_values = any(isinstance(node, Let) for node in walk(func.body, parts=statements_in))
    if not has_values and "if_then_else" not in str(func):
        assert report.operations == dict(sorted(watcher.operations.items()))
