"""One picture of each kind and of edge cases, for tests of properties of all pictures."""

from __future__ import annotations

from collections.abc import Callable

import tecomp
from tecomp import relayout
from tests.graph.test_pictures import residual
from tests.properties.test_timeline import demo
from tests.viz.programs import kernel, named, rectified
from tests.viz.test_array import softmax
from tests.viz.test_copies import CORES, ROWS, STICKS
from tests.viz.test_iteration_domain import product, recurrence
from tests.viz.test_layout import LAYOUTS
from tests.viz.test_machines import steps

PICTURES: dict[str, Callable[[], str]] = {
    **{f"layout-{name.replace(' ', '-')}": layout.picture for name, layout in LAYOUTS.items()},
    "kernel": lambda: kernel().picture(),
    "function": lambda: kernel().func.picture(),
    "passes": lambda: kernel().lowered.picture(),
    "schedule": lambda: rectified()[0].picture(),
    "long-names": lambda: named("W" * 300).picture(),
    "step": lambda: rectified()[0].step_picture(3),
    "domain": lambda: product()[0].stages[-1].domain_picture(),
    "recurrence": lambda: recurrence(20, 30)[0].stages[-1].domain_picture(),
    "array": lambda: softmax().picture(),
    "relayout": lambda: relayout(ROWS, CORES).picture(),
    "index-map": STICKS.index_map.picture,
    "report": lambda: demo("stick128").report().picture(),
    "trace": lambda: demo("stick128").timeline().picture(),
    "trace-program": lambda: residual().timeline().picture(),
    "roofline": lambda: steps(1.3e9, 5.5e10, 9.8e10, 9.9e10, 3e11).picture(),
    "roofline-of-many": lambda: steps(*(1e9 * 1.1**k for k in range(40)), name="W" * 40).picture(),
    "program": lambda: residual().picture(),
    "plan": lambda: residual().memory.picture(),
    **{f"target-{name}": tecomp.Target.load(name).picture for name in tecomp.list_targets()},
}
