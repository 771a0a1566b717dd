"""Primitives that say which loops a stage has, and in which order."""

from __future__ import annotations

from typing import Any

from tecomp.compute.axis import IterVar
from tecomp.ir.language.stmt import Extent
from tecomp.scheduling import loops
from tecomp.scheduling.schedule.calls import StageCalls


class LoopPrimitives(StageCalls):
    """Primitives of a stage that cut, join and order its loops."""

    def split(
        self,
        parent: IterVar,
        factor: Extent | None = None,
        nparts: Extent | None = None,
        disable_predication: bool = False,
        tail: str = "guard",
    ) -> tuple[IterVar, IterVar]:
        """Cut a loop into an outer and an inner one.

        Before and after::

            for i in range(E):    ->    for i_outer in range(ceil(E / factor)):
                body(i)                     for i_inner in range(factor):
                                                body(i_outer * factor + i_inner)

        Where the factor does not divide the extent, the last outer iteration is shorter. With
        `nparts` the outer loop gets that many iterations, and the factor follows. Neither loop gets
        more iterations than there are: 8 split by 32 are 1 and 8, and in 32 parts 8 and 1. A number
        that depends on sizes and is below 1 when it is computed counts as 1.

        What is computed in the loop is computed in the inner one then.

        Args:
            parent: a loop of this stage.
            factor: iterations of the inner loop: a number, or an expression of sizes.
            nparts: iterations of the outer loop, in place of `factor`.
            disable_predication: whether no part is guarded: where they are not proved to be equally
                long, the last one is shifted.
            tail: `guard` makes the last part shorter. With `shift_inwards` all parts have `factor`
                iterations: the last one begins earlier, at `E - factor`, and computes some elements
                once more. So the stage has to compute each element by itself, and the loop has to
                have `factor` iterations at least.

        Returns:
            The outer and the inner loop.

        Raises:
            ScheduleError: both or none of factor and nparts, one below 1, `parent` is no loop here,
                or the last part cannot be shifted and has to be.

        Source:
            TailStrategy::ShiftInwards of Halide.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((10,), name="A")
        >>> B = te.compute((10,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[B], outer.extent, inner.extent
        (Stage(B: i.outer, i.inner), 3, 4)
        >>> print(tecomp.lower(s, [A, B]).body)
        for i_outer in range(3):
            for i_inner in range(min(4, 10 - i_outer * 4)):
                B[i_outer * 4 + i_inner] = A[i_outer * 4 + i_inner] * float32(2.0)
        """
        kwargs: dict[str, Any] = {
            key: value for key, value in (("factor", factor), ("nparts", nparts))
            if value is not None
        }
        if disable_predication is not False:
            kwargs["disable_predication"] = disable_predication
        if tail != "guard":
            kwargs["tail"] = tail
        made: tuple[IterVar, IterVar] = self._apply(loops.split, "split", parent, **kwargs)
        return made

    def fuse(self, *axes: IterVar) -> IterVar:
        """Make one loop of several that are directly inside one another.

        Before and after::

            for i in range(I):        ->    for i_j_fused in range(I * J):
                for j in range(J):              body(i_j_fused // J, i_j_fused % J)
                    body(i, j)

        Args:
            axes: the loops, outer to inner. Without one, an outermost loop of one iteration is
                added.

        Returns:
            The fused loop. It is a reduction if one of its parts is.

        Raises:
            ScheduleError: the axes are not adjacent loops, outer to inner, or are steps of a scan
                and elements of a step.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> fused = s[B].fuse(*B.op.axis)
        >>> s[B], fused.extent
        (Stage(B: i.j.fused), 80)
        """
        made: IterVar = self._apply(loops.fuse, "fuse", *axes)
        return made

    def reorder(self, *axes: IterVar) -> None:
        """Put loops in the order given, in the places that these loops have now.

        Args:
            axes: loops of this stage, outer to inner; all others stay where they are. Reductions
                may stand anywhere: initial values are stored before the first of them.

        Raises:
            ScheduleError: an axis is no loop of this stage, or is named twice.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].reorder(k, B.op.axis[0])
        >>> s[B]
        Stage(B: k, i)
        """
        self._apply(loops.reorder, "reorder", *axes)

    def tile(
        self,
        x_parent: IterVar,
        y_parent: IterVar,
        x_factor: Extent,
        y_factor: Extent,
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Split two loops, and put the two inner ones innermost.

        Args:
            x_parent: a loop of this stage.
            y_parent: another one.
            x_factor: iterations of the inner loop of the first, as `split` takes them.
            y_factor: those of the second.

        Returns:
            x outer, y outer, x inner, y inner.

        Raises:
            ScheduleError: the two are one loop, or a split is refused.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> io, jo, ii, ji = s[B].tile(*B.op.axis, 4, 5)
        >>> s[B], [axis.extent for axis in (io, jo, ii, ji)]
        (Stage(B: i.outer, j.outer, i.inner, j.inner), [2, 2, 4, 5])
        """
        made: tuple[IterVar, IterVar, IterVar, IterVar] = self._apply(
            loops.tile, "tile", x_parent, y_parent, x_factor, y_factor
        )
        return made
