"""The pragmas that a loop can have, each with what it may be set to; others change nothing."""

from __future__ import annotations

import warnings

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

# What code needs in TVM, and what does the same here.
_NEEDED = {"import_c": _LIBRARY, "import_llvm": _LIBRARY}
# What changes how fast it runs there.
_INSTEAD = {
    "debug_skip_region": "leave the stage out of the computation to see what it costs",
    "tensor_core": "use te.dot for the dot products that the machine has",
}


def check_pragma(kind: object, value: object, where: str) -> tuple[str, int]:
    """The pragma and its value.

    One that is not known is warned of: TVM takes any, and so its programs run.

    Raises:
        ScheduleError: what computes the stage would be missing, or the pragma cannot have that
            value.
    """
    if is_one_of(kind, LAUNCH):
        return str(kind), 1
    if not isinstance(kind, str) or kind in _NEEDED:
        instead = _NEEDED.get(kind, "write a text") if isinstance(kind, str) else "write a text"
        raise ScheduleError(
            f"{where}: there is no pragma {kind!r} here; {instead}; the pragmas are {_KNOWN}",
            kind="unknown-choice",
        )
    if kind == EXPLICIT:
        return kind, _truth(value, where)
    if kind != STEPS:
        instead = f"{_INSTEAD[kind]}; " if kind in _INSTEAD else ""
        # The frame of who called `s[T].pragma`.
        warnings.warn(
            f"{where}: there is no pragma {kind!r} here, so it changes nothing; {instead}"
            f"the pragmas are {_KNOWN}",
            stacklevel=6,
        )
        return kind, 1
    steps = None if isinstance(value, Expr) else whole_number(value)
    if steps is None or steps < 0:
        raise ScheduleError(
            f"{where}: {STEPS} is how many statements may be written out, 0 or more, got {value!r}",
            kind="wrong-number",
        )
    return kind, steps


def _truth(value: object, where: str) -> int:
    number = 1 if value is None else int(value) if isinstance(value, bool) else whole_number(value)
    if number not in (0, 1):
        raise ScheduleError(
            f"{where}: {EXPLICIT} is True or False, got {value!r}", kind="wrong-argument"
        )
    return number
