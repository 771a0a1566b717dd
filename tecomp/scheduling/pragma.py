"""The pragmas that a loop can have: a closed set, each with what it may be set to."""

from __future__ import annotations

from tecomp.errors import ScheduleError
from tecomp.ir.language.expr import Expr
from tecomp.ir.language.given import is_one_of, whole_number
from tecomp.ir.language.stmt import ForKind

STEPS = "auto_unroll_max_step"
EXPLICIT = "unroll_explicit"
# What they are about is so without them.
LAUNCH = ("parallel_launch_point", "parallel_stride_pattern", "parallel_barrier_when_finish")
MARKS = {"unroll": ForKind.UNROLLED, "vectorize": ForKind.VECTORIZED}
"""How a loop runs, said by a pragma."""
_KNOWN = ", ".join((STEPS, EXPLICIT, *MARKS, *LAUNCH))

_LIBRARY = "compile the code to a shared library, and call its functions with te.call_extern"

# What TVM has and what does the same here.
_INSTEAD = {
    "import_c": _LIBRARY,
    "import_llvm": _LIBRARY,
    "debug_skip_region": "leave the stage out of the computation to see what it costs",
    "tensor_core": "use te.dot for the dot products that the machine has",
}


def check_pragma(kind: object, value: object, where: str) -> tuple[str, int]:
    """The pragma and its value.

    Raises:
        ScheduleError: there is none of that name, or it cannot have that value.
    """
    if is_one_of(kind, LAUNCH):
        return str(kind), 1
    if not isinstance(kind, str) or kind not in (STEPS, EXPLICIT):
        instead = _INSTEAD.get(kind) if isinstance(kind, str) else None
        raise ScheduleError(
            f"{where}: there is no pragma {kind!r} here; "
            + (f"{instead}; " if instead else "") + f"the pragmas are {_KNOWN}"
        )
    if kind == EXPLICIT:
        if value is not None and whole_number(value) != 1 and value is not True:
            raise ScheduleError(
                f"{where}: loops marked unroll are always written out in the IR, so {EXPLICIT} "
                f"is True, got {value!r}; leave the mark out for a loop that LLVM may unroll"
            )
        return kind, 1
    steps = None if isinstance(value, Expr) else whole_number(value)
    if steps is None or steps < 0:
        raise ScheduleError(
            f"{where}: {STEPS} is how many statements may be written out, 0 or more, got {value!r}"
        )
    return kind, steps
