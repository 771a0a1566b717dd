"""Which of LLVM's passes a function needs besides the one that all get."""

from __future__ import annotations

from tecomp.codegen.llvm.emit import LOOP_WORK, PLAIN_LOOPS, Options
from tecomp.codegen.llvm.loop_work import has_loop_work
from tecomp.codegen.llvm.plain_loops import has_plain_loops
from tecomp.ir.stmt import Stmt


def passes_for(root: Stmt, options: Options, *, is_outlined: bool = False) -> str:
    """The attribute that asks for more passes; "" if there is nothing for them to do.

    Args:
        root: what becomes a function.
        options: how code is generated.
        is_outlined: whether it includes parallel loops, which are functions of their own otherwise.
    """
    if has_plain_loops(root, fast_math=options.fast_math, is_outlined=is_outlined):
        return PLAIN_LOOPS
    if options.fast_math or has_loop_work(root, is_outlined=is_outlined):
        return LOOP_WORK
    return ""
