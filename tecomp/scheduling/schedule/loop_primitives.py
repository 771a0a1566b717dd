"""Methods of `Stage` that transform and annotate loops."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.compute.operation import Operation
from tecomp.compute.tensor import Tensor
from tecomp.compute.tensor_intrin import TensorIntrin
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.stmt import Extent, ForKind
from tecomp.scheduling import compute_location, loops
from tecomp.scheduling.annotations import check_env_threads, pragma, prefetch
from tecomp.scheduling.schedule.primitive_calls import StageCalls, primitive, tensor_of
from tecomp.scheduling.state import ScheduleState
from tecomp.scheduling.threads import ThreadAxis


class LoopPrimitives(StageCalls):
    """Primitives of a stage that split, fuse and reorder its loops."""

    @primitive
    def split(
        self,
        parent: IterVar,
        factor: Extent | None = None,
        nparts: Extent | None = None,
        disable_predication: bool = False,
        tail: str = "guard",
    ) -> tuple[IterVar, IterVar]:
        """Split a loop into an outer and an inner loop.

        Before and after::

            for i in range(E):    ->    for i_outer in range(ceil(E / factor)):
                body(i)                     for i_inner in range(factor):
                                                body(i_outer * factor + i_inner)

        If the factor does not divide the extent, the last inner loop is shorter. With `nparts`, the
        outer loop has `nparts` iterations and the factor follows. Neither loop has more iterations
        than the original loop: an extent of 8 split with factor 32 gives 1 and 8, and split into 32
        parts gives 8 and 1. A symbolic factor or count that evaluates to less than 1 is taken as 1.

        Stages attached to `parent` with `compute_at` are attached to the inner loop afterwards.

        Args:
            parent: Loop of this stage.
            factor: Extent of the inner loop: an integer or an expression of sizes.
            nparts: Extent of the outer loop, instead of `factor`.
            disable_predication: If True, no part is guarded: unless the parts are proved to have
                equal length, the last part is shifted as with `tail="shift_inwards"`.
            tail: `guard` shortens the last part. With `shift_inwards`, all parts have `factor`
                iterations: the last part starts earlier, at `E - factor`, and computes some
                elements twice. The stage must therefore be element-wise, without a reduction, and
                the loop must have at least `factor` iterations.

        Returns:
            The outer and the inner loop.

        Raises:
            ScheduleError: If both or neither of `factor` and `nparts` are given, the given one is
                less than 1, `parent` is not a loop of this stage, or the last part must be shifted
                but cannot be.

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
        if not is_one_of(tail, ("guard",)):
            kwargs["tail"] = tail
        result: tuple[IterVar, IterVar] = self._apply(loops.split, "split", parent, **kwargs)
        return result

    @primitive
    def fuse(self, *axes: IterVar) -> IterVar:
        """Fuse perfectly nested adjacent loops into one loop.

        Before and after::

            for i in range(I):        ->    for i_j_fused in range(I * J):
                for j in range(J):              body(i_j_fused // J, i_j_fused % J)
                    body(i, j)

        Args:
            axes: Loops to fuse, from outer to inner. Without arguments, an outermost loop with one
                iteration is added.

        Returns:
            The fused loop. It is a reduction loop if one of `axes` is.

        Raises:
            ScheduleError: If the axes are not adjacent loops from outer to inner, or combine the
                steps of a scan with loops inside a step.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> fused = s[B].fuse(*B.op.axis)
        >>> s[B], fused.extent
        (Stage(B: i.j.fused), 80)
        """
        result: IterVar = self._apply(loops.fuse, "fuse", *axes)
        return result

    @primitive
    def reorder(self, *axes: IterVar) -> None:
        """Permute the given loops among the positions that they occupy in the nest.

        Args:
            axes: Loops of this stage in their new order, from outer to inner. All other loops keep
                their positions. Reduction loops may be at any position: initial values are stored
                before the outermost of them. Permuting reduction loops changes the result of a
                reducer that is not commutative.

        Raises:
            ScheduleError: If an axis is not a loop of this stage or occurs twice.

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

    @primitive
    def tile(
        self,
        x_parent: IterVar,
        y_parent: IterVar,
        x_factor: Extent,
        y_factor: Extent,
    ) -> tuple[IterVar, IterVar, IterVar, IterVar]:
        """Tile two loops: split both and reorder to x outer, y outer, x inner, y inner.

        Args:
            x_parent: First loop of this stage.
            y_parent: Second loop of this stage.
            x_factor: Extent of the inner loop split from `x_parent`, as `factor` of `split`.
            y_factor: Extent of the inner loop split from `y_parent`, as `factor` of `split`.

        Returns:
            The loops x outer, y outer, x inner, y inner.

        Raises:
            ScheduleError: If both loops are the same, or one of the splits is invalid.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> io, jo, ii, ji = s[B].tile(*B.op.axis, 4, 5)
        >>> s[B], [axis.extent for axis in (io, jo, ii, ji)]
        (Stage(B: i.outer, j.outer, i.inner, j.inner), [2, 2, 4, 5])
        """
        result: tuple[IterVar, IterVar, IterVar, IterVar] = self._apply(
            loops.tile, "tile", x_parent, y_parent, x_factor, y_factor
        )
        return result


    @primitive
    def unroll_and_jam(
        self, axis: IterVar, factor: int, tail: str = "guard"
    ) -> tuple[IterVar, IterVar]:
        """Unroll a loop by a factor and jam the copies of the loops inside it.

        Before and after::

            for i in range(I):        ->    for i_outer in range(I / 2):
                for k in range(K):              for k in range(K):
                    body(i, k)                      body(i_outer * 2, k)
                                                    body(i_outer * 2 + 1, k)

        Elements that only the inner loops index are loaded once for `factor` iterations, and
        the copies are independent, which hides the latency of accumulations. The unrolled loop is
        placed around the innermost vectorized loops and around a tensorized nest.

        Args:
            axis: Data loop of this stage, or a reduction loop without a reduction loop inside it.
            factor: Number of copies, 1 or more.
            tail: `guard` gives the last group fewer copies. With `shift_inwards`, the last group
                starts earlier and computes some elements twice; the stage must be element-wise,
                and the loop must have at least `factor` iterations.

        Returns:
            The loop over groups of iterations, and the unrolled loop.

        Raises:
            ScheduleError: If `factor` is not a positive integer, `axis` is not a loop of this
                stage, is the step loop of a scan, or is a reduction loop around another one, whose
                jamming would change the order of accumulation, or the split is invalid.

        Source:
            The loop pass LoopUnrollAndJam of LLVM.

        >>> import tecomp
        >>> from tecomp import te
        >>> A, x = te.placeholder((4, 3), name="A"), te.placeholder((3,), name="x")
        >>> k = te.reduce_axis((0, 3), name="k")
        >>> y = te.compute((4,), lambda i: te.sum(A[i, k] * x[k], axis=k), name="y")
        >>> s = te.create_schedule(y)
        >>> outer, inner = s[y].unroll_and_jam(y.op.axis[0], 2)
        >>> s[y]
        Stage(y: i.outer, k, i.inner)
        >>> print(tecomp.lower(s, [A, x, y]).body)
        for i_outer in range(2):
            y[i_outer * 2] = float32(0.0)
            y[i_outer * 2 + 1] = float32(0.0)
            for k in range(3):
                y[i_outer * 2] = y[i_outer * 2] + A[i_outer * 6 + k] * x[k]
                y[i_outer * 2 + 1] = y[i_outer * 2 + 1] + A[i_outer * 6 + k + 3] * x[k]
        """
        options = {} if is_one_of(tail, ("guard",)) else {"tail": tail}
        new_loops: tuple[IterVar, IterVar] = self._apply(
            loops.unroll_and_jam, "unroll_and_jam", axis, factor, **options
        )
        return new_loops


class MarkPrimitives(StageCalls):
    """Primitives of a stage that vectorize, unroll, parallelize, bind or tensorize its loops."""

    @primitive
    def vectorize(self, var: IterVar) -> None:
        """Vectorize a loop: its iterations become the lanes of vector operations.

        A loop has at most one of the annotations `vectorize`, `unroll` and `parallel`; the last
        call wins. A partial tail is masked; full tiles get separate loops without a mask.

        Args:
            var: Data loop of this stage, of any extent.

        Raises:
            ScheduleError: If `var` is not a loop of this stage, is a reduction loop, whose
                iterations all update the same elements, or is the step loop of a scan, whose
                iterations depend on one another.

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

    @primitive
    def unroll(self, var: IterVar) -> None:
        """Unroll a loop completely: replicate its body once per iteration.

        Args:
            var: Loop of this stage. Lowering rejects a loop that expands to more than 4096
                statements. A loop without a constant bound of its extent is not unrolled.

        Raises:
            ScheduleError: If `var` is not a loop of this stage.

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

    @primitive
    def parallel(self, var: IterVar) -> None:
        """Distribute the iterations of a loop among threads.

        The number of threads is the number of processors, or the value of the environment variable
        `TECOMP_NUM_THREADS`.

        Args:
            var: Data loop of this stage.

        Raises:
            ScheduleError: If `var` is not a loop of this stage, is a reduction loop, whose
                iterations all update the same elements, or is the step loop of a scan, whose
                iterations depend on one another.

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

    @primitive
    def bind(self, ivar: IterVar, thread_ivar: ThreadAxis | str) -> None:
        """Bind a loop to a thread axis or to an axis of the core grid of the target.

        Loops bound to `blockIdx` or to a grid axis such as `core.x` run in parallel on targets with
        parallel loops. Loops bound to `threadIdx` or `vthread` run sequentially, with the same
        result. `build` reads the axes of the grid and their extents from the target.

        Args:
            ivar: Loop of this stage.
            thread_ivar: Thread axis made by `te.thread_axis`, or its tag. If the thread axis has an
                extent, the loop must have the same extent.

        Raises:
            ScheduleError: If the thread axis does not exist, `ivar` is not a loop of this stage or
                has a different extent, `ivar` is a reduction loop or the step loop of a scan and
                would run in parallel, or another loop of the stage is bound to the same grid axis.

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
        """Check the thread axes around the steps of a scan, for compatibility with TVM.

        The call has no effect on the generated code: loops bound to these threads run sequentially
        in each step.

        Args:
            threads: Thread axis made by `te.thread_axis`, or a list of thread axes.

        Raises:
            ScheduleError: If the stage is not a scan, or an argument is not a thread axis.

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

    @primitive
    def prefetch(self, tensor: Tensor, var: IterVar, offset: int) -> None:
        """Prefetch the elements of a tensor that a loop reads, some iterations ahead.

        Before and after::

            for i in range(I):        ->    for i in range(I):
                C[i] = A[8 * i]                 prefetch(A[min(8 * (i + offset), last)])
                                                C[i] = A[8 * i]

        Indices past the end of `var` are clamped to the last iteration. A second call for the same
        tensor and loop replaces the first.

        Args:
            tensor: Tensor that the stage reads.
            var: Loop of this stage.
            offset: Prefetch distance in iterations of `var`, 0 or more.

        Raises:
            ScheduleError: If the stage does not read `tensor`, `var` is not a loop of the stage, or
                `offset` is not a non-negative integer.

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
        source = tensor_of(tensor, f"s[{self._state.name}].prefetch")
        self._apply(prefetch, "prefetch", source, var, offset)

    @primitive
    def pragma(self, var: IterVar, pragma_type: str, pragma_value: int | None = None) -> None:
        """Attach a pragma to a loop.

        `auto_unroll_max_step`: unroll the loops of constant extent inside `var`, innermost first,
        up to the given number of statements per loop. `unroll_explicit`: no effect, because
        unrolled loops are always expanded in the IR. `parallel_launch_point`,
        `parallel_stride_pattern` and `parallel_barrier_when_finish`: no effect, because the thread
        pool persists between calls, distributes iterations in chunks and joins at the end of a
        loop. `unroll` and `vectorize`: the same as the primitives of these names. Other names give
        a warning and have no effect.

        Args:
            var: Loop of this stage. Splitting or fusing the loop removes its pragmas.
            pragma_type: Name of the pragma.
            pragma_value: Value of the pragma, if it takes one.

        Raises:
            ScheduleError: If the pragma is not supported, does not accept the value, or `var` is
                not a loop of the stage.

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

    @primitive
    def tensorize(self, var: IterVar, tensor_intrin: TensorIntrin) -> None:
        """Replace a loop and everything inside it by a tensor intrinsic.

        Before and after::

            for i in range(16):            ->    the statements of the intrinsic, on the parts of
                for j in range(16):              A, B and C that these loops touch
                    for k in range(16):
                        C[...] += A[...] * B[...]

        Lowering checks that the loops compute the definition of the intrinsic. The check compares
        access relations, not syntax: axes may be permuted, fused or split, and operands may be
        exchanged, transposed or in any layout.

        Args:
            var: Loop of this stage.
            tensor_intrin: Intrinsic from `te.decl_tensor_intrin` or `tecomp.intrinsics(target)`.

        Raises:
            ScheduleError: If `var` is not a loop of this stage, `tensor_intrin` is not an intrinsic
                or has other dtypes than the stage, the stage is a scan, or the stage is already
                tensorized at another loop.

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
        from tecomp.scheduling.tensorize import tensorize

        self._apply(tensorize, "tensorize", var, tensor_intrin)

    @primitive
    def expand(self) -> None:
        """Replace the intrinsic call of this stage by loops over its definition.

        Before and after::

            for i in range(I):        ->    for i in range(I):
                vadd(C[i, :], ...)              for ax0 in range(16):
                                                    C[i, ax0] = A[i, ax0] + B[i, ax0]

        Raises:
            ScheduleError: If the stage does not call an intrinsic.

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
        def marked_state(
            state: ScheduleState, key: Operation, marked: IterVar
        ) -> tuple[ScheduleState, None]:
            return loops.mark(state, key, marked, kind)

        self._apply(marked_state, name, axis)
