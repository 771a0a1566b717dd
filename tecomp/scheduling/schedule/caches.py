"""Primitives that put stages before or after others: copies, caches and partial results."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from tecomp.compute.axis import IterVar
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError
from tecomp.scheduling import caches
from tecomp.scheduling.schedule.calls import ScheduleCalls
from tecomp.scheduling.schedule.handles import Handle, operation_of, tensor_of


class CachePrimitives(ScheduleCalls):
    """Primitives of a schedule that add stages beside those of its tensors."""

    def cache_read(self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]) -> Tensor:
        """Copy a tensor into memory `scope`, and let `readers` read the copy.

        Before and after::

            C[i] = A[i] + 1    ->    A_local[i] = A[i]
                                     C[i] = A_local[i] + 1

        The copy is a stage of its own: it can be placed with compute_at, and given a layout.

        Args:
            tensor: what is copied: an input, or the result of a stage.
            scope: the memory of the copy.
            readers: who reads the copy: operations or tensors.

        Returns:
            The copy.

        Raises:
            ScheduleError: a reader does not read the tensor.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8,), name="A")
        >>> B = te.compute((8,), lambda i: A[i] * 2.0, name="B")
        >>> s = te.create_schedule(B)
        >>> copy = s.cache_read(A, "local", [B])
        >>> s[copy].compute_at(s[B], B.op.axis[0])
        >>> print(tecomp.lower(s, [A, B], stop_after="lower_storage").body)
        for i in range(8):
            with Allocate(Buffer("float32", (1,), scope="local")) as A_local:
                A_local[0] = A[i]
                B[i] = A_local[0] * float32(2.0)
        """
        many = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(operation_of(r, "s.cache_read")).key for r in many]
        made: Tensor = self._apply(
            caches.cache_read, "cache_read", None, (tensor_of(tensor, "s.cache_read"), scope, keys)
        )
        return made

    @overload
    def cache_write(self, tensor: Tensor, scope: str) -> Tensor: ...

    @overload
    def cache_write(self, tensor: Sequence[Tensor], scope: str) -> tuple[Tensor, ...]: ...

    def cache_write(
        self, tensor: Tensor | Sequence[Tensor], scope: str
    ) -> Tensor | tuple[Tensor, ...]:
        """Compute a stage in memory `scope` first, and copy the result.

        Before and after::

            C[i] = sum(A[i, k])    ->    C_local[i] = sum(A[i, k])
                                         C[i] = C_local[i]

        The reduction, with its axes, moves to the cache. The cache has an axis for each loop over
        data that the stage has now, in their order: after `tile(i, j, 4, 2)` of 8x8 elements its
        shape is (2, 4, 4, 2). The loops of the stage begin anew. A call of an intrinsic moves to
        the cache too.

        Args:
            tensor: a result of a stage, or a list of all of them.
            scope: the memory in which they are computed.

        Returns:
            The cache, or one for each output if a list was given.

        Raises:
            ScheduleError: the tensors are not the outputs of one stage, or a reduction axis of it
                has been split or fused already, a stage is computed at a loop of it, or it is
                tensorized.

        >>> import tecomp
        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> B = te.compute((8,), lambda i: te.sum(A[i, k], axis=k), name="B")
        >>> s = te.create_schedule(B)
        >>> cache = s.cache_write(B, "local")
        >>> outer, inner = s[B].split(B.op.axis[0], factor=4)
        >>> s[cache].compute_at(s[B], outer)
        >>> print(tecomp.lower(s, [A, B], stop_after="lower_storage").body)
        for i_outer in range(2):
            with Allocate(Buffer("float32", (4,), scope="local")) as B_local:
                for i_c in range(4):
                    B_local[i_c] = float32(0.0)
                    for k in range(10):
                        B_local[i_c] = B_local[i_c] + A[i_outer * 4 + i_c, k]
                for i_inner in range(4):
                    B[i_outer * 4 + i_inner] = B_local[i_inner]
        """
        given = list(tensor) if isinstance(tensor, list | tuple) else [tensor]
        if not given:
            raise ScheduleError(
                "s.cache_write: expected at least one tensor, got none", kind="nothing-given"
            )
        checked = [tensor_of(t, "s.cache_write") for t in given]
        written = checked if isinstance(tensor, list | tuple) else checked[0]
        made: Tensor | tuple[Tensor, ...] = self._apply(
            caches.cache_write, "cache_write", None, (written, scope)
        )
        return made

    def rfactor(
        self, tensor: Tensor, axis: IterVar, factor_axis: int = 0, *, order: int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Make partial results, one for each iteration of a reduction loop, and combine them after.

        Before and after::

            for i: for ko: for ki:           for ki: for i: for ko:
                B[i] += A[i, ko*f + ki]  ->      B_rf[ki, i] += A[i, ko*f + ki]
                                             for i: for ki:
                                                 B[i] += B_rf[ki, i]

        The partial results can run in parallel or as a vector. They start from the identity; what
        combines them starts from `init=`.

        The reduction of the partial results has the axes that are whole, in their order, and then
        the loops that others were cut into; its loops run in the order that they have now.

        Args:
            tensor: the reduction.
            axis: one of its loops.
            factor_axis: where the partial results have the new axis.
            order: the number of a value by which partial results are in order: of two, the one that
                has less of it is combined with the other, not the one that comes first. A reducer
                that takes the first of several as good, with its index, finds the same one so.

        Returns:
            The partial results, one tensor for each output if there are several.

        Raises:
            ScheduleError: the stage is no reduction, `axis` is no reduction loop, or it has no
                value of the number `order`.

        >>> from tecomp import te
        >>> A = te.placeholder((64,), name="A")
        >>> k = te.reduce_axis((0, 64), name="k")
        >>> B = te.compute((1,), lambda i: te.sum(A[k], axis=k), name="B")
        >>> s = te.create_schedule(B)
        >>> outer, inner = s[B].split(k, factor=8)
        >>> partial = s.rfactor(B, inner)
        >>> s[partial].vectorize(partial.op.axis[0])
        >>> partial.shape, s[partial]
        ((8, 1), Stage(B.rf: k.inner, i, k.outer))
        """
        arguments = (tensor_of(tensor, "s.rfactor"), axis, factor_axis)
        made: Tensor | tuple[Tensor, ...] = self._apply(
            caches.rfactor, "rfactor", None, arguments, {} if order is None else {"order": order}
        )
        return made
