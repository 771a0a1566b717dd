"""Methods that transform and annotate loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.ir.nodes.stmt import Extent, ForKind
from tecomp.scheduling import compute_location, loops
from tecomp.scheduling.annotations import check_env_threads, pragma, prefetch
from tecomp.scheduling.schedule.primitive_calls import StageCalls, tensor_of
from tecomp.scheduling.state import State
from tecomp.scheduling.tensorize import tensorize
from tecomp.scheduling.threads import ThreadAxis


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
                may stand anywhere: initial values are stored before the first of them. Another
                order of reduction loops changes the result of a reducer that is not commutative.

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


class MarkPrimitives(StageCalls):
    """Primitives of a stage that make its loops lanes, copies, threads or operations."""

    def vectorize(self, var: IterVar) -> None:
        """Run a loop as operations on vectors, its iterations being their lanes.

        A loop has one mark of `vectorize`, `unroll` and `parallel`; the last one counts. A tail is
        masked; full tiles get loops of their own, without a mask.

        Args:
            var: a loop of this stage, of any number of iterations; it is no reduction.

        Raises:
            ScheduleError: it is no loop here, a reduction, whose iterations all update the same
                elements, or the steps of a scan, which follow one another.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((16,), name="A")
        >>> B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=8)
        >>> s[B].vectorize(inner)
        >>> print(tecomp.lower(s, [A, B], stop_after="nest").body)
        for i_outer in range(2):
            for i_inner in vectorized(8):
                B[i_outer * 8 + i_inner] = A[i_outer * 8 + i_inner] * float32(2.0)
        """
        self._mark("vectorize", var, ForKind.VECTORIZED)

    def unroll(self, var: IterVar) -> None:
        """Write a loop out: one copy of its body for each iteration.

        Args:
            var: a loop of this stage. One of more than 4096 iterations is refused when it is
                lowered; one whose extent comes at the call stays a loop.

        Raises:
            ScheduleError: it is no loop of this stage.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((2,), name="A")
        >>> B = te.compute((2,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].unroll(B.op.axis[0])
        >>> print(tecomp.lower(s, [A, B]).body)
        B[0] = A[0] * float32(2.0)
        B[1] = A[1] * float32(2.0)
        """
        self._mark("unroll", var, ForKind.UNROLLED)

    def parallel(self, var: IterVar) -> None:
        """Share the iterations of a loop among threads.

        There are as many threads as processors, or as the environment variable `TECOMP_NUM_THREADS`
        says.

        Args:
            var: a loop of this stage; it is no reduction.

        Raises:
            ScheduleError: it is no loop here, a reduction, whose iterations all update the same
                elements, or the steps of a scan, which follow one another.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((16,), name="A")
        >>> B = te.compute((16,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].parallel(B.op.axis[0])
        >>> print(tecomp.lower(s, [A, B]).body)
        for i in parallel(16):
            B[i] = A[i] * float32(2.0)
        """
        self._mark("parallel", var, ForKind.PARALLEL)

    def bind(self, ivar: IterVar, thread_ivar: ThreadAxis | str) -> None:
        """Bind a loop to a thread axis, or to an axis of the grid of cores that a target has.

        A `blockIdx` loop and one of the grid, such as `core.x`, run in parallel where loops do;
        `threadIdx` and `vthread` loops run one iteration after another, which computes the same.
        Which axes there are in the grid, and how many cores along them, `build` asks the target.

        Args:
            ivar: a loop of this stage.
            thread_ivar: what `te.thread_axis` gives, or its tag. If it says how many threads there
                are, the loop has as many iterations.

        Raises:
            ScheduleError: there is no such thread axis, `ivar` is no loop of this stage or has
                another number of iterations, it is a reduction that would run in parallel, or
                another loop of the stage is bound to that axis of the grid.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> B = te.compute((64,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> block, thread = s[B].split(B.op.axis[0], factor=16)
        >>> s[B].bind(block, te.thread_axis("blockIdx.x"))
        >>> s[B].bind(thread, te.thread_axis((0, 16), "threadIdx.x"))
        >>> print(s.trace, end="")
        def schedule(B):
            s = te.create_schedule(B.op)
            i, = s[B].op.axis
            i_outer, i_inner = s[B].split(i, factor=16)
            s[B].bind(i_outer, 'blockIdx.x')
            s[B].bind(i_inner, 'threadIdx.x')
            return s
        """
        tag = thread_ivar
        if isinstance(thread_ivar, ThreadAxis):
            tag = thread_ivar.tag
            loops.check_threads(self._schedule.state, self._key, ivar, tag, thread_ivar.extent)
        self._apply(loops.bind, "bind", ivar, tag)

    def env_threads(self, threads: ThreadAxis | Sequence[ThreadAxis]) -> None:
        """Name the threads around the steps of a scan.

        They change nothing: loops that are bound to them run one iteration after another in each
        step.

        Args:
            threads: what `te.thread_axis` gives, or a list of such.

        Raises:
            ScheduleError: the stage is no scan, or something is no thread axis.

        >>> from tecomp import te
        >>> X = te.placeholder((5, 4), name="X")
        >>> state = te.placeholder((5, 4), name="state")
        >>> first = te.compute((1, 4), lambda _, i: X[0, i], name="first")
        >>> step = te.compute((5, 4), lambda t, i: state[t - 1, i] + X[t, i], name="step")
        >>> sums = te.scan(first, step, state, inputs=[X], name="sums")
        >>> s = te.create_schedule(sums)
        >>> s[sums].env_threads(te.thread_axis("threadIdx.x"))
        """
        check_env_threads(self._state, threads)

    def prefetch(self, tensor: Tensor, var: IterVar, offset: int) -> None:
        """Fetch to the caches what a loop reads of a tensor, some iterations before it is read.

        Before and after::

            for i in range(I):        ->    for i in range(I):
                C[i] = A[8 * i]                 prefetch(A[min(8 * (i + offset), last)])
                                                C[i] = A[8 * i]

        Where `var` runs past its end, the last elements are asked for. A second call for the same
        tensor and loop replaces the first.

        Args:
            tensor: what the stage reads.
            var: a loop of this stage.
            offset: iterations of `var`, 0 or more.

        Raises:
            ScheduleError: the stage does not read the tensor, `var` is no loop of it, or the offset
                is no count of iterations.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8, 16), name="A")
        >>> B = te.compute((8,), lambda i: A[i, 0] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].prefetch(A, B.op.axis[0], 2)
        >>> print(tecomp.lower(s, [A, B], stop_after="nest").body)
        for i in range(8):
            prefetch(A[min(i + 2, 7), 0])
            B[i] = A[i, 0] * float32(2.0)
        """
        given = tensor_of(tensor, f"s[{self._state.name}].prefetch")
        self._apply(prefetch, "prefetch", given, var, offset)

    def pragma(self, var: IterVar, pragma_type: str, pragma_value: int | None = None) -> None:
        """Set a pragma of a loop.

        `auto_unroll_max_step`: the loops inside of it that have a fixed number of iterations are
        written out, inner ones first, up to so many statements each. `unroll_explicit`: loops that
        are unrolled are written out in the IR, as they always are. `parallel_launch_point`,
        `parallel_stride_pattern` and `parallel_barrier_when_finish` are taken and change nothing:
        threads wait for work from call to call, share iterations in pieces, and finish together.
        `unroll` and `vectorize` are the primitives of these names.

        Args:
            var: a loop of this stage; when it is split or fused, its pragmas are gone.
            pragma_type: the name of the pragma.
            pragma_value: its value, for those that have one.

        Raises:
            ScheduleError: there is no such pragma, it has no such value, or `var` is no loop of the
                stage.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((2, 2), name="A")
        >>> B = te.compute((2, 2), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].pragma(B.op.axis[0], "auto_unroll_max_step", 8)
        >>> print(tecomp.lower(s, [A, B], stop_after="nest").body)
        for i in range(2):
            for j in unrolled(2):
                B[i, j] = A[i, j] * float32(2.0)
        """
        values = () if pragma_value is None else (pragma_value,)
        self._apply(pragma, "pragma", var, pragma_type, *values)

    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Compute a loop and all inside it by an operation of the machine.

        Before and after::

            for i in range(16):            ->    the statements of the intrinsic, on the parts of
                for j in range(16):              A, B and C that these loops touch
                    for k in range(16):
                        C[...] += A[...] * B[...]

        Whether the loops compute what the intrinsic does is decided when the schedule is lowered,
        by what they read and write and not by how they are written: axes may be permuted, fused or
        split, operands exchanged, transposed or in any layout.

        Args:
            var: a loop of this stage.
            tensor_intrin: what `te.decl_tensor_intrin` or `tecomp.intrinsics(target)` gives.

        Raises:
            ScheduleError: `var` is no loop of this stage, or `tensor_intrin` no intrinsic of its
                types.

        >>> import tecomp
        >>> from tecomp import te
        >>> a = te.placeholder((4,), "float32", "a")
        >>> twice = te.compute((4,), lambda i: a[i] * 2.0, name="twice")
        >>> vtwice = te.decl_tensor_intrin(twice.op, lambda ins, outs: outs[0].vstore(
        ...     0, ins[0].vload(0, "float32x4") * 2.0), name="vtwice")
        >>> A = te.placeholder((8,), "float32", "A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[B].tensorize(inner, vtwice)
        >>> print(tecomp.lower(s, [A, B]).body)
        for i_outer in range(2):
            B[i_outer * 4] = A[i_outer * 4] * float32(2.0)
            B[i_outer * 4 + 1] = A[i_outer * 4 + 1] * float32(2.0)
            B[i_outer * 4 + 2] = A[i_outer * 4 + 2] * float32(2.0)
            B[i_outer * 4 + 3] = A[i_outer * 4 + 3] * float32(2.0)
        """
        self._apply(tensorize, "tensorize", var, tensor_intrin)

    def expand(self) -> None:
        """Compute this stage by loops, as its definition says, not by the intrinsic that it calls.

        Before and after::

            for i in range(I):        ->    for i in range(I):
                vadd(C[i, :], ...)              for ax0 in range(16):
                                                    C[i, ax0] = A[i, ax0] + B[i, ax0]

        Raises:
            ScheduleError: no intrinsic computes the stage.

        >>> import tecomp
        >>> from tecomp import te
        >>> a, b = (te.placeholder((4,), "float32", name) for name in "ab")
        >>> add = te.compute((4,), lambda i: a[i] + b[i], name="add")
        >>> vadd = te.decl_tensor_intrin(add.op, lambda ins, outs: outs[0].vstore(
        ...     0, ins[0].vload(0, "float32x4") + ins[1].vload(0, "float32x4")), name="vadd")
        >>> A, B = (te.placeholder((8, 4), "float32", name) for name in "AB")
        >>> C = te.compute((8, 4), lambda i: vadd(A[i, 0:4], B[i, 0:4]), name="C")
        >>> s = te.create_schedule(C)
        >>> s[C].expand()
        >>> print(tecomp.lower(s, [A, B, C], stop_after="nest").body)
        for i in range(8):
            for ax0 in range(4):
                C[i, ax0] = A[i, ax0] + B[i, ax0]
        """
        self._apply(compute_location.expand, "expand")

    def _mark(self, name: str, axis: IterVar, kind: ForKind) -> None:
        def primitive(state: State, key: Operation, marked: IterVar) -> tuple[State, None]:
            return loops.mark(state, key, marked, kind)

        self._apply(primitive, name, axis)
