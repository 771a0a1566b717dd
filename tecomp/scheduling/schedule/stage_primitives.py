"""Methods that add or rewrite stages."""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from tecomp.compute.iter_var import IterVar
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import check_list
from tecomp.scheduling import cache_stages
from tecomp.scheduling.cache_subexpressions import cache_factor, cache_repeated, cache_terms
from tecomp.scheduling.rewrite_reductions import merge_formula, merge_reduction, narrow_reduction
from tecomp.scheduling.schedule.primitive_calls import (
    Handle,
    ScheduleCalls,
    operation_of,
    tensor_of,
)
from tecomp.scheduling.tensorize import into_dots


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
            cache_stages.cache_read, "cache_read", None,
            (tensor_of(tensor, "s.cache_read"), scope, keys),
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
            cache_stages.cache_write, "cache_write", None, (written, scope)
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
                has less of it is combined with the other, not the one that comes first. By default
                the first value that is an index and increases with the iterations of the
                reduction, if there is one: a reducer that keeps the first of several equal
                elements, such as argmax, then finds the same index as without `rfactor`.

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
            cache_stages.rfactor, "rfactor", None, arguments,
            {} if order is None else {"order": order},
        )
        return made


class FormulaPrimitives(ScheduleCalls):
    """Primitives of a schedule that rewrite what its stages compute."""

    def cache_factor(self, tensor: Tensor, factors: int | Sequence[int], scope: str) -> Tensor:
        """Compute the product of some factors of a reduction's terms first, each element once.

        Before and after::

            C[i, j] = sum(relu(A[i, k]) * B[k, j])    ->    C_factor[i, k] = relu(A[i, k])
                                                            C[i, j] = sum(C_factor[i, k] * B[k, j])

        Its axes are those that the factors depend on, in the order of what they read most of. Where
        axes only come as a sum, as in windows, that sum is an axis::

            C[i] = sum(if_then_else(i + r > 0, A[i + r - 1], 0) * W[r])
            ->    C_factor[p] = if_then_else(p > 0, A[p - 1], 0)
                  C[i] = sum(C_factor[i + r] * W[r])

        What a term is divided by is a factor, too. Floats are rounded otherwise where factors are
        not neighbours.

        Args:
            tensor: a reduction without `where=` and `init=`.
            factors: the numbers of factors, from 0 on, as they are written in its terms.
            scope: the memory of the new stage.

        Returns:
            The product of the factors.

        Raises:
            ScheduleError: the stage is no such reduction, there is no such factor, all of them are
                named, or they depend on no axis.

        >>> from tecomp import te
        >>> A, B = te.placeholder((8, 4), name="A"), te.placeholder((4, 6), name="B")
        >>> k = te.reduce_axis((0, 4), name="k")
        >>> C = te.compute((8, 6), lambda i, j: te.sum(te.exp(A[i, k]) * B[k, j], axis=k), name="C")
        >>> s = te.create_schedule(C)
        >>> print(s.cache_factor(C, 0, "global").op)
        C_factor[i, k] = exp(A[i, k])
        >>> print(s[C].op)
        C[i, j] = sum(C_factor[i, k] * B[k, j], axis=[k])
        """
        where = "s.cache_factor"
        many = list(factors) if isinstance(factors, list | tuple) else [factors]
        check_list(many, int, f"{where}: factors", "give numbers from 0 on", ScheduleError)
        made: Tensor = self._apply(
            cache_factor, "cache_factor", None, (tensor_of(tensor, where), many, scope))
        return made

    def cache_terms(
        self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]
    ) -> Tensor:
        """Compute the terms of a reduction first, each once for all stages that compute them.

        Before and after::

            C[i] = sum(exp(A[i, k]))            C_terms[i, k] = exp(A[i, k])
            D[i, j] = exp(A[i, j]) / C[i]   ->  C[i] = sum(C_terms[i, k])
                                                D[i, j] = C_terms[i, j] / C[i]

        The new stage has the axes of a term, in the order of what it reads most of, as that of
        `cache_factor` has.

        Args:
            tensor: a reduction without `where=` and `init=`.
            scope: the memory of the new stage.
            readers: other stages that compute such terms, maybe as a part of something else, for
                axes of the same extents.

        Returns:
            The terms.

        Raises:
            ScheduleError: the stage is no such reduction, its terms are elements of a tensor as
                they are, or depend on no axis; or a reader computes no such term.

        >>> from tecomp import te
        >>> A = te.placeholder((8, 10), name="A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> C = te.compute((8,), lambda i: te.sum(te.exp(A[i, k]), axis=k), name="C")
        >>> D = te.compute((8, 10), lambda i, j: te.exp(A[i, j]) / C[i], name="D")
        >>> s = te.create_schedule(D)
        >>> terms = s.cache_terms(C, "global", [D])
        >>> print(terms.op)
        C_terms[i, k] = exp(A[i, k])
        >>> print(s[D].op)
        D[i, j] = C_terms[i, j] / C[i]
        """
        many = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(operation_of(r, "s.cache_terms")).key for r in many]
        made: Tensor = self._apply(
            cache_terms, "cache_terms", None, (tensor_of(tensor, "s.cache_terms"), scope, keys)
        )
        return made

    def cache_repeated(self, tensor: Tensor, axis: IterVar, scope: str) -> Tensor:
        """Compute first the longest part of a formula that is the same for each value of an axis.

        Before and after::

            B[i, j] = A[i, j] / sqrt(C[i] + 1)    ->    B_repeated[i] = sqrt(C[i] + 1)
                                                        B[i, j] = A[i, j] / B_repeated[i]

        Args:
            tensor: a formula of elements.
            axis: one of its axes; the part depends on all others. What is computed under a
                condition only is no such part.
            scope: the memory of the new stage.

        Returns:
            The part, which has all other axes.

        Raises:
            ScheduleError: the stage is no formula of elements, has no such axis, or repeats
                nothing.

        >>> from tecomp import te
        >>> A, C = te.placeholder((8, 10), name="A"), te.placeholder((8,), name="C")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] / te.sqrt(C[i] + 1.0), name="B")
        >>> s = te.create_schedule(B)
        >>> print(s.cache_repeated(B, B.op.axis[1], "global").op)
        B_repeated[i] = sqrt(C[i] + float32(1.0))
        >>> print(s[B].op)
        B[i, j] = A[i, j] / B_repeated[i]
        """
        arguments = (tensor_of(tensor, "s.cache_repeated"), axis, scope)
        made: Tensor = self._apply(cache_repeated, "cache_repeated", None, arguments)
        return made

    def merge_reduction(self, tensor: Tensor) -> None:
        """Reduce the terms of the reduction whose elements a stage reduces, by the same reducer.

        Before and after::

            B[i, j] = sum(A[i, j, k])
            C[i] = sum(B[i, j])          ->    C[i] = sum(A[i, j, k])

        The loops over the terms are the innermost of C. B is gone if nothing else reads it. Floats
        are combined in another order.

        Args:
            tensor: C.

        Raises:
            ScheduleError: the stage is no sum, product, least or greatest of elements, or they are
                not made by the same; there is `where=` or `init=`; or loops of one of both were
                changed.

        >>> from tecomp import te
        >>> A = te.placeholder((4, 5, 6), name="A")
        >>> j, k = te.reduce_axis((0, 5), name="j"), te.reduce_axis((0, 6), name="k")
        >>> B = te.compute((4, 5), lambda i, j: te.sum(A[i, j, k], axis=k), name="B")
        >>> C = te.compute((4,), lambda i: te.sum(B[i, j], axis=j), name="C")
        >>> s = te.create_schedule(C)
        >>> s.merge_reduction(C)
        >>> print(s[C].op)
        C[i] = sum(A[i, j, k], axis=[j, k])
        """
        self._apply(merge_reduction, "merge_reduction", None,
                    (tensor_of(tensor, "s.merge_reduction"),))

    def merge_formula(self, tensor: Tensor) -> None:
        """Make a formula of elements part of the operations that read it, and remove its stage.

        Before and after::

            B[i, j] = A[j, i] * 2
            C[i] = sum(B[i, j])          ->    C[i] = sum(A[j, i] * 2)

        Unlike with `compute_inline`, the readers are then operations on what the formula read:
        their accesses and factors say so, and primitives that take these work on them.

        Args:
            tensor: B.

        Raises:
            ScheduleError: the stage is a result, no formula of elements, or one of several values;
                nothing reads it; or its loops were changed.

        >>> from tecomp import te
        >>> A = te.placeholder((5, 4), name="A")
        >>> j = te.reduce_axis((0, 5), name="j")
        >>> B = te.compute((4, 5), lambda i, j: A[j, i] * 2.0, name="B")
        >>> C = te.compute((4,), lambda i: te.sum(B[i, j], axis=j), name="C")
        >>> s = te.create_schedule(C)
        >>> s.merge_formula(B)
        >>> print(s, s[C].op)
        Schedule(A, C) C[i] = sum(A[j, i] * float32(2.0), axis=[j])
        """
        self._apply(merge_formula, "merge_formula", None, (tensor_of(tensor, "s.merge_formula"),))

    def narrow_reduction(self, tensor: Tensor, dtype: str) -> Tensor:
        """Reduce integers in a narrower type, which holds all of the results, and widen those.

        Before and after::

            C[i] = min(if_then_else(A[i, k] > 0, int64(k), 9))
            ->    C_narrow[i] = min(if_then_else(A[i, k] > 0, int32(k), 9))
                  C[i] = int64(C_narrow[i])

        Args:
            tensor: a sum, least or greatest of integers, without `where=` and `init=`.
            dtype: the narrower type.

        Returns:
            The reduction in that type.

        Raises:
            ScheduleError: the stage is no such reduction, or its loops were changed; or its terms
                are not known to fit into the type.

        >>> from tecomp import te
        >>> A = te.placeholder((4, 10), "int8", "A")
        >>> k = te.reduce_axis((0, 10), name="k")
        >>> C = te.compute((4,), lambda i: te.sum(A[i, k].astype("int64"), axis=k), name="C")
        >>> s = te.create_schedule(C)
        >>> print(s.narrow_reduction(C, "int16").op)
        C_narrow[i] = sum(cast("int16", A[i, k]), axis=[k])
        >>> print(s[C].op)
        C[i] = cast("int64", C_narrow[i])
        """
        where = "s.narrow_reduction"
        made: Tensor = self._apply(
            narrow_reduction, "narrow_reduction", None, (tensor_of(tensor, where), dtype))
        return made

    def into_dots(
        self, tensor: Tensor, axis: IterVar, first: str, second: str
    ) -> tuple[Tensor, ...]:
        """Multiply and add up neighbouring terms of a sum of products by `te.dot`.

        Before and after::

            C[i, j] += A[i, k] * B[k, j]    ->    A_dots[i, k] = A[i, 2 * k], A[i, 2 * k + 1]
                                                  B_dots[k, j] = B[2 * k, j], B[2 * k + 1, j]
                                                  C_dots[i, j] += dot(A_dots[i, k], B_dots[k, j])
                                                  C[i, j] = C_dots[i, j]

        The vectors are held in int32, the last filled up with zeros. Of int8 as uint8x4 each number
        is 128 more, of uint8 as int8x4 128 less, and C subtracts what that adds: another sum, for
        each index of the other factor. Integers stay exact; floats are added in another order.

        Args:
            tensor: a `te.sum` of products of two elements, cast to its type; casts on the way there
                keep each value. Elements of stages that are computed inline are those that these
                read.
            axis: the axis of the sum along which terms are put together, an index of both factors.
            first: type of the vectors of the factor on the left, as `te.dot` takes them.
            second: type of those on the right.

        Returns:
            The sum, the two tensors of vectors, and the sum that C subtracts if it does.

        Raises:
            ScheduleError: the stage is no such sum, or the types do not hold the factors.

        >>> from tecomp import te
        >>> A, B = te.placeholder((8, 64), "uint8", "A"), te.placeholder((64, 16), "int8", "B")
        >>> k = te.reduce_axis((0, 64), name="k")
        >>> product = lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k)
        >>> C = te.compute((8, 16), product, name="C")
        >>> s = te.create_schedule(C)
        >>> [made.shape for made in s.into_dots(C, k, "uint8x4", "int8x4")]
        [(8, 16), (8, 16), (16, 16)]
        """
        arguments = (tensor_of(tensor, "s.into_dots"), axis, first, second)
        made: tuple[Tensor, ...] = self._apply(into_dots, "into_dots", None, arguments)
        return made
