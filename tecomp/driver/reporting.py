"""`kernel.report`: what the model is asked about a kernel."""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from functools import partial
from math import prod

from tecomp.driver.memories import plan
from tecomp.driver.sizes import extent_at, in_numbers, known_sizes
from tecomp.errors import LowerError
from tecomp.ir.language.stmt import PrimFunc
from tecomp.lowering.pipeline import Lowered
from tecomp.lowering.storage.distinct import distinct
from tecomp.machine.descriptor import Target
from tecomp.model.cost import Program, cost
from tecomp.model.count import BUDGET, TooManyIterationsError
from tecomp.model.report import Report
from tecomp.scheduling.layout import stored_shape
from tecomp.scheduling.state import AtRoot, State


def report_of(
    name: str, state: State, lowered: Lowered, target: Target, sizes: Mapping[str, int]
) -> Report:
    """The report of a kernel called `name`.

    Raises:
        CallError: a size is missing, or no number.
        LowerError: there is too much to count.
    """
    flat, known = counted_form(name, lowered, sizes)
    found = plan(lowered, target, partial(in_numbers, sizes=known))
    peaks = {memory: found.peak(memory) for memory in target.memories}
    try:
        return cost(Program(name, flat, peaks, _padding(state, known)), target)
    except TooManyIterationsError:
        raise LowerError(
            f"report: more than {BUDGET} iterations of loops in {name} differ from each other, as "
            "conditions or bounds that are not linear depend on them; use smaller sizes",
            kind="too-much",
        ) from None


def counted_form(
    name: str, lowered: Lowered, sizes: Mapping[str, int]
) -> tuple[PrimFunc, Mapping[str, int]]:
    """The function that is counted, in numbers, and the sizes that it has.

    It is the one before loops become vectors. Every access is counted as often as it is written in
    the printed form.
    """
    func = lowered.functions["flatten_buffer"]
    known = known_sizes(func, sizes, "report")
    return distinct(in_numbers(func, known)), known


def _padding(state: State, sizes: Mapping[str, int]) -> Mapping[str, int]:
    """Bytes of places without an element of the tensors that are stored whole, by memory."""
    found: Counter[str] = Counter()
    for stage in state:
        if not stage.layout.maps or not (stage.is_placeholder or isinstance(stage.attach, AtRoot)):
            continue
        for tensor in stage.op.outputs:
            stored, elements = (
                prod(extent_at(extent, sizes) or 0 for extent in shape)
                for shape in (stored_shape(stage), tensor.shape)
            )
            found[stage.scope] += (stored - elements) * tensor.dtype.bytes
    return found
