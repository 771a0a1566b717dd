"""Methods of `Stage` that choose memory, padding, buffering and layout."""

from __future__ import annotations

from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.expr import Expr
from tecomp.scheduling import compute_location
from tecomp.scheduling.annotations import set_store_predicate
from tecomp.scheduling.schedule.primitive_calls import StageCalls, primitive
from tecomp.scheduling.transform_layout import NamedLayout, transform_layout


class MemoryPrimitives(StageCalls):
    """Primitives of a stage that determine how its elements are stored."""

    @primitive
    def set_scope(self, scope: str) -> None:
        """Store the elements of this stage in the given memory of the target.

        Args:
            scope: Name of the memory. `build` checks that the target has the memory and that the
                buffer fits.

        Raises:
            ScheduleError: If `scope` is not a non-empty string.

        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].set_scope("local")
        >>> s[P].scope, s[C].scope
        ('local', 'global')
        """
        self._apply(compute_location.set_scope, "set_scope", scope)

    @primitive
    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad the tensor so that the stride of an axis is `offset` modulo `factor` elements.

        This avoids bank conflicts between the elements of a column, or aligns rows to cache lines.

        Args:
            axis: Axis of the stored tensor.
            factor: Alignment in elements, 1 or more.
            offset: Stride of `axis` modulo `factor`, in elements, with `0 <= offset < factor`.

        Raises:
            ScheduleError: If the stage is a placeholder, `axis` is not an axis of the stored
                tensor, or `factor` or `offset` is not an integer in its range.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((4, 8), name="A")
        >>> P = te.compute((4, 8), lambda i, j: A[i, j] * 2.0, name="P")
        >>> C = te.compute((8, 4), lambda i, j: P[j, i], name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].storage_align(P.op.axis[0], 8, 1)
        >>> print(tecomp.lower(s, [A, C], stop_after="lower_storage").body)
        with Allocate(Buffer("float32", (4, 8), strides=(9, 1))) as P:
            for i in range(4):
                for j in range(8):
                    P[i, j] = A[i, j] * float32(2.0)
            for i in range(8):
                for j in range(4):
                    C[i, j] = P[j, i]
        """
        self._apply(compute_location.storage_align, "storage_align", axis, factor, offset)

    @primitive
    def double_buffer(self) -> None:
        """Double-buffer a stage: compute the data of the next iteration before the current use.

        Before and after::

            for i in range(I):        ->    P[0] = f(0)
                P = f(i)                    for i in range(I):
                C[i] = g(P)                     if i + 1 < I: P[(i + 1) % 2] = f(i + 1)
                                                C[i] = g(P[i % 2])

        Loads of the next iteration then overlap with computation of the current one. Lowering
        rejects stages that are not computed inside a loop, and loops that run in parallel.

        Raises:
            ScheduleError: If the stage is a placeholder, is an output, or has several outputs.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((8,), lambda i: P[i] + 1.0, name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].compute_at(s[C], C.op.axis[0])
        >>> s[P].double_buffer()
        >>> print(tecomp.lower(s, [A, C]).body)
        with Allocate(Buffer("float32", (2,))) as P:
            P[0] = A[0] * float32(2.0)
            for i in range(8):
                if i < 7:
                    P[(i + 1) % 2] = A[i + 1] * float32(2.0)
                C[i] = P[i % 2] + float32(1.0)
        """
        self._apply(compute_location.double_buffer, "double_buffer")

    @primitive
    def rolling_buffer(self) -> None:
        """Reuse elements computed by the previous iteration of the enclosing loop.

        Before and after::

            for i in range(I):           ->    for i in range(I):
                P = f(i), f(i + 1)                 if i == 0: P[0] = f(0)
                C[i] = P[0] + P[1]                 P[(i + 1) % 2] = f(i + 1)
                                                   C[i] = P[i % 2] + P[(i + 1) % 2]

        Each iteration computes only the elements that the previous iteration did not. The buffer is
        addressed modulo its extent. Lowering rejects stages that are not computed inside a loop,
        and loops whose iterations have no element in common.

        Raises:
            ScheduleError: If the stage is a placeholder or an output.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> P = te.compute((8,), lambda i: A[i] * 2.0, name="P")
        >>> C = te.compute((7,), lambda i: P[i] + P[i + 1], name="C")
        >>> s = te.create_schedule(C)
        >>> s[P].compute_at(s[C], C.op.axis[0])
        >>> s[P].rolling_buffer()
        >>> print(tecomp.lower(s, [A, C]).body)
        with Allocate(Buffer("float32", (2,))) as P:
            for i in range(7):
                if i >= 1:
                    P[(i + 1) % 2] = A[i + 1] * float32(2.0)
                else:
                    for i_1 in range(2):
                        P[i + i_1] = A[i + i_1] * float32(2.0)
                C[i] = P[i % 2] + P[(i + 1) % 2]
        """
        self._apply(compute_location.rolling_buffer, "rolling_buffer")

    @primitive
    def set_store_predicate(self, predicate: Expr) -> None:
        """Store elements only where a condition holds; other elements stay unchanged.

        Before and after::

            for tx in range(16):        ->    for tx in range(16):
                B[tx] = ...                       if tx < 3: B[tx] = ...

        A thread axis in the condition represents the loop bound to it. If several threads compute
        the same elements, because the bound loop is a reduction loop or encloses this stage, the
        condition selects the thread that stores them.

        Args:
            predicate: Scalar boolean expression of axes of this stage, thread axes and sizes.

        Raises:
            ScheduleError: If `predicate` is not such an expression, or the stage is a scan, a
                `te.extern`, or calls an intrinsic.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> s[B].set_store_predicate(B.op.axis[0] < 3)
        >>> print(tecomp.lower(s, [A, B]).body)
        for i in range(8):
            if i < 3:
                B[i] = A[i] * float32(2.0)
        """
        self._apply(set_store_predicate, "set_store_predicate", predicate)

    @primitive
    def transform_layout(
        self, mapping_function: object, pad_value: object = None, loops: str = "physical"
    ) -> tuple[IterVar, ...]:
        """Store the tensor at `mapping_function(*index)`, and reorder its loops accordingly.

        For a computed `B[16, 64]` and `lambda i, j: [j, i]`::

            for i in range(16):               for j in range(64):
                for j in range(64):    ->         for i in range(16):
                    B[i, j] = ...                     B'[j, i] = ...

        A second call starts from the axes that the first call returned, and the maps compose. A
        composed map is equivalent to one call per part. Axis separators persist until a later map
        has separators.

        Args:
            mapping_function: Function of the logical indices that returns a list of physical
                indices (with `te.AXIS_SEPARATOR` between axes of memory), an `IndexMap`, or a named
                layout.
            pad_value: Number, or function of the physical indices, that is written to padding.
                Without a pad value, padding is never read. Default: the pad value of a named
                layout, for computed stages.
            loops: `physical` makes the loops follow the map; `logical` keeps the loops. Scans keep
                their loops in any case, because each step must be computed after the elements that
                the step reads. A `te.extern` has no loops.

        Returns:
            The new loops. The result is empty for a placeholder, and contains the axes before the
            call for `loops="logical"` and for scans.

        Raises:
            LayoutError: If the map is not injective, takes negative values, is not quasi-affine,
                has the wrong arity, or is a named layout for another shape or dtype.
            ScheduleError: If the axes were split or fused, which fixes their order, or if
                `pad_value` or `loops` is invalid.

        Source:
            transform_layout RFC.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((16, 64), name="A")
        >>> B = te.compute((16, 64), lambda i, j: A[i, j] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> axes = s[B].transform_layout(lambda i, j: [j // 16, i, j % 16])
        >>> [axis.extent for axis in axes]
        [4, 16, 16]
        >>> print(tecomp.lower(s, [A, B], stop_after="apply_buffer_transforms").body)
        for j_outer in range(4):
            for i in range(16):
                for j_inner in range(16):
                    B[j_outer, i, j_inner] = A[i, j_outer * 16 + j_inner] * float32(2.0)
        """
        kwargs: dict[str, Any] = {} if is_one_of(loops, ("physical",)) else {"loops": loops}
        is_computed = bool(self._state.op.input_tensors)
        if pad_value is None and is_computed and isinstance(mapping_function, NamedLayout):
            pad_value = mapping_function.pad_value
        if pad_value is not None:
            kwargs["pad_value"] = pad_value
        result: tuple[IterVar, ...] = self._apply(
            transform_layout, "transform_layout", mapping_function, **kwargs
        )
        return result
