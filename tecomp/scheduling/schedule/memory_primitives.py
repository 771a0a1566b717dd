"""Methods that place stages in memory."""

from __future__ import annotations

from typing import Any

from tecomp.compute.iter_var import IterVar
from tecomp.ir.nodes.argument_checks import is_one_of
from tecomp.ir.nodes.expr import Expr
from tecomp.scheduling import compute_location
from tecomp.scheduling.annotations import set_store_predicate
from tecomp.scheduling.schedule.primitive_calls import StageCalls
from tecomp.scheduling.transform_layout import NamedLayout, transform_layout


class MemoryPrimitives(StageCalls):
    """Primitives of a stage about the memory of its elements."""

    def set_scope(self, scope: str) -> None:
        """Keep this stage's elements in a memory of the target.

        Args:
            scope: the name of the memory. Whether the target has it, and whether the buffer fits
                it, is decided when code is made.

        Raises:
            ScheduleError: `scope` is no name.

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

    def storage_align(self, axis: IterVar, factor: int, offset: int) -> None:
        """Pad rows so that the stride of an axis is some number of elements modulo another.

        Columns then fall into different banks of a memory, or rows begin at a line.

        Args:
            axis: an axis of the stored tensor.
            factor: elements, 1 or more.
            offset: the stride of `axis` modulo `factor`, in elements; from 0 to below `factor`.

        Raises:
            ScheduleError: `axis` is no axis of the stored tensor, or offset is no remainder of
                factor.

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

    def double_buffer(self) -> None:
        """Keep two copies of a stage that is computed inside a loop, one for the next iteration.

        Before and after::

            for i in range(I):        ->    P[0] = f(0)
                P = f(i)                    for i in range(I):
                C[i] = g(P)                     if i + 1 < I: P[(i + 1) % 2] = f(i + 1)
                                                C[i] = g(P[i % 2])

        Loads of the next iteration then overlap with arithmetic of this one. Lowering refuses
        stages that are not inside a loop, and loops whose iterations run at the same time.

        Raises:
            ScheduleError: the stage is an output, or has several.

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

    def rolling_buffer(self) -> None:
        """Keep what the last iteration of the loop around has computed, and compute what is new.

        Before and after::

            for i in range(I):           ->    for i in range(I):
                P = f(i), f(i + 1)                 if i == 0: P[0] = f(0)
                C[i] = P[0] + P[1]                 P[(i + 1) % 2] = f(i + 1)
                                                   C[i] = P[i % 2] + P[(i + 1) % 2]

        Lowering refuses stages that are not inside a loop, and loops no two iterations of which
        need one element.

        Raises:
            ScheduleError: the stage is an output.

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

    def set_store_predicate(self, predicate: Expr) -> None:
        """Store elements where a condition holds; all others are left as they are.

        Before and after::

            for tx in range(16):        ->    for tx in range(16):
                B[tx] = ...                       if tx < 3: B[tx] = ...

        A thread axis is the loop that is bound to it. Where threads compute the same elements,
        because the loop is one of a reduction or around this stage, those of one of them are
        stored.

        Args:
            predicate: a condition of axes of this stage, of thread axes and of sizes.

        Raises:
            ScheduleError: the condition is none of axes of this stage, threads and sizes.

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

    def transform_layout(
        self, mapping_function: object, pad_value: object = None, loops: str = "physical"
    ) -> tuple[IterVar, ...]:
        """Store the tensor at `mapping_function(*index)`, and compute it in that order.

        For a computed `B[16, 64]` and `lambda i, j: [j, i]`::

            for i in range(16):               for j in range(64):
                for j in range(64):    ->         for i in range(16):
                    B[i, j] = ...                     B'[j, i] = ...

        A second call starts from the axes that the first one made, and composes; a composed map
        counts as a call for each of its parts. Axis separators are kept until a later call has its
        own.

        Args:
            mapping_function: a function of the indices that gives a list of physical ones (with
                `te.AXIS_SEPARATOR` between axes of memory), an `IndexMap` or a named layout.
            pad_value: a number, or a function of the physical indices, which is written to places
                that the map leaves without an element; without it they are never read.
            loops: `logical` leaves the loops as they are, and so does a scan: what a step reads has
                to be computed before. A te.extern has none.

        Returns:
            The loops that the map made: none for a placeholder, the current ones with
            `loops="logical"` and for a scan.

        Raises:
            LayoutError: the map is not injective, negative somewhere, not quasi-affine, or of
                another arity.
            ScheduleError: the axes have been split or fused, so that their order is fixed.

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
        made: tuple[IterVar, ...] = self._apply(
            transform_layout, "transform_layout", mapping_function, **kwargs
        )
        return made
