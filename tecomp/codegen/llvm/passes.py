"""Which of LLVM's passes a function needs."""

from __future__ import annotations

from tecomp.codegen.llvm.emit import Options
from tecomp.codegen.llvm.loop_work import has_loop_work
from tecomp.codegen.llvm.plain_loops import has_plain_loops
from tecomp.codegen.llvm.source import Passes
from tecomp.ir.language.stmt import Stmt


def passes_for(root: Stmt, options: Options, *, is_outlined: bool = False) -> Passes:
    """The passes that have something to do.

    Args:
        root: what becomes a function.
        options: how code is generated.
        is_outlined: whether it includes parallel loops, which are functions of their own otherwise.
    """
    if has_plain_loops(root, fast_math=options.fast_math, is_outlined=is_outlined):
        return Passes.ALL
    if options.fast_math or has_loop_work(root, is_outlined=is_outlined):
        return Passes.LOOPS
    return Passes.FEW
