"""Methods of `Schedule` that insert or rewrite stages.

Primitives that few schedules use are imported by the methods.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import overload

from tecomp.compute.iter_var import IterVar
from tecomp.compute.tensor import Tensor
from tecomp.errors import ScheduleError
from tecomp.ir.nodes.argument_checks import check_list
from tecomp.scheduling import cache_stages
from tecomp.scheduling.schedule.primitive_calls import (
    Handle,
    ScheduleCalls,
    operation_of,
    primitive,
    tensor_of,
)


class CachePrimitives(ScheduleCalls):
    """Primitives of a schedule that insert cache and partial-result stages."""

    @primitive
    def cache_read(self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]) -> Tensor:
        """Insert a stage that copies a tensor into memory `scope`, and redirect `readers` to it.

        Before and after::

            C[i] = A[i] + 1    ->    A_local[i] = A[i]
                                     C[i] = A_local[i] + 1

        The copy is a separate stage: it accepts `compute_at` and `transform_layout`.

        Args:
            tensor: Tensor to copy: an input or the result of a stage.
            scope: Memory of the copy.
            readers: Operations or tensors whose stages read the copy instead of `tensor`.

        Returns:
            The copy.

        Raises:
            ScheduleError: If a reader does not read the tensor, `readers` is empty, or `scope` is
                not a non-empty string.

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
        reader_list = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(operation_of(r, "s.cache_read")).key for r in reader_list]
        result: Tensor = self._apply(
            cache_stages.cache_read, "cache_read", None,
            (tensor_of(tensor, "s.cache_read"), scope, keys),
        )
        return result

    @overload
    def cache_write(self, tensor: Tensor, scope: str) -> Tensor: ...

    @overload
    def cache_write(self, tensor: Sequence[Tensor], scope: str) -> tuple[Tensor, ...]: ...

    @primitive
    def cache_write(
        self, tensor: Tensor | Sequence[Tensor], scope: str
    ) -> Tensor | tuple[Tensor, ...]:
        """Compute a stage into memory `scope`, and copy the result to the original tensor.

        Before and after::

            C[i] = sum(A[i, k])    ->    C_local[i] = sum(A[i, k])
                                         C[i] = C_local[i]

        The reduction and its axes move to the cache stage. The cache has one axis for each current
        data loop of the stage, in loop order: after `tile(i, j, 4, 2)` of 8x8 elements its shape is
        (2, 4, 4, 2). The loops of the original stage are reset. An intrinsic call moves to the
        cache too.

        Args:
            tensor: Output tensor of a stage, or a list of all its outputs.
            scope: Memory of the cache.

        Returns:
            The cache, or a tuple with one cache per output if a list was given.

        Raises:
            ScheduleError: If the tensors are not all outputs of one stage, the stage is a scan or a
                `te.extern`, a reduction axis was already split or fused, another stage is computed
                at one of its loops, or the stage is tensorized.

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
        tensors = list(tensor) if isinstance(tensor, list | tuple) else [tensor]
        if not tensors:
            raise ScheduleError(
                "s.cache_write: expected at least one tensor, got none", kind="missing-input"
            )
        checked = [tensor_of(t, "s.cache_write") for t in tensors]
        target = checked if isinstance(tensor, list | tuple) else checked[0]
        result: Tensor | tuple[Tensor, ...] = self._apply(
            cache_stages.cache_write, "cache_write", None, (target, scope)
        )
        return result

    @primitive
    def rfactor(
        self, tensor: Tensor, axis: IterVar, factor_axis: int = 0, *, order: int | None = None
    ) -> Tensor | tuple[Tensor, ...]:
        """Factor a reduction loop into partial results, which a second reduction combines.

        Before and after::

            for i: for ko: for ki:           for ki: for i: for ko:
                B[i] += A[i, ko*f + ki]  ->      B_rf[ki, i] += A[i, ko*f + ki]
                                             for i: for ki:
                                                 B[i] += B_rf[ki, i]

        The loop over partial results can be parallelized or vectorized. Partial results start from
        the identity of the reducer; the combining reduction starts from `init=`.

        The reduction axes of the partial stage are the unsplit axes in their order, followed by the
        loops split from the other axes. Its loops keep their current order.

        Args:
            tensor: Result of the reduction.
            axis: Reduction loop of its stage.
            factor_axis: Position of the new axis in the shape of the partial results. Negative
                values count from the end. Default: 0.
            order: Index of the value that orders the partial results in a reducer of several
                values: the partial result with the smaller value is the left operand, in place of
                the earlier one. Default: the first value that is an index and increases with the
                iterations of the reduction, if there is one. A reducer that keeps the first of
                several equal elements, such as argmax, then gives the same index as without
                `rfactor`.

        Returns:
            The partial results, one tensor per output if there are several.

        Raises:
            ScheduleError: If the stage is not a reduction, `axis` is not a reduction loop, a
                reduction loop is fused with a data loop, or `factor_axis` or `order` is out of
                range.

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
        result: Tensor | tuple[Tensor, ...] = self._apply(
            cache_stages.rfactor, "rfactor", None, arguments,
            {} if order is None else {"order": order},
        )
        return result


class FormulaPrimitives(ScheduleCalls):
    """Primitives of a schedule that rewrite the definitions of its stages."""

    @primitive
    def cache_factor(self, tensor: Tensor, factors: int | Sequence[int], scope: str) -> Tensor:
        """Hoist a product of factors out of the terms of a reduction into a stage of its own.

        Before and after::

            C[i, j] = sum(relu(A[i, k]) * B[k, j])    ->    C_factor[i, k] = relu(A[i, k])
                                                            C[i, j] = sum(C_factor[i, k] * B[k, j])

        The axes of the new stage are the axes that the factors depend on, ordered as in the index
        of the load with the most axes. If several axes occur only as a sum, as in windows, the
        sum becomes one axis::

            C[i] = sum(if_then_else(i + r > 0, A[i + r - 1], 0) * W[r])
            ->    C_factor[p] = if_then_else(p > 0, A[p - 1], 0)
                  C[i] = sum(C_factor[i + r] * W[r])

        A divisor of the terms counts as a factor. Floating-point results may be rounded differently
        if the chosen factors are not adjacent.

        Args:
            tensor: Result of a reduction without `where=` and `init=`.
            factors: Index or indices of the factors, counted from 0 in the order of the term.
            scope: Memory of the new stage.

        Returns:
            The product of the factors.

        Raises:
            ScheduleError: If the stage is not such a reduction, a factor does not exist, `factors`
                is empty or names all factors, or the factors depend on no axis.

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
        from tecomp.scheduling.cache_subexpressions import cache_factor

        where = "s.cache_factor"
        factor_list = list(factors) if isinstance(factors, list | tuple) else [factors]
        check_list(factor_list, int, f"{where}: factors", "pass integers >= 0", ScheduleError)
        result: Tensor = self._apply(
            cache_factor, "cache_factor", None, (tensor_of(tensor, where), factor_list, scope))
        return result

    @primitive
    def cache_terms(
        self, tensor: Tensor, scope: str, readers: Handle | Sequence[Handle]
    ) -> Tensor:
        """Materialize the terms of a reduction in a stage that other stages can read too.

        Before and after::

            C[i] = sum(exp(A[i, k]))            C_terms[i, k] = exp(A[i, k])
            D[i, j] = exp(A[i, j]) / C[i]   ->  C[i] = sum(C_terms[i, k])
                                                D[i, j] = C_terms[i, j] / C[i]

        The axes of the new stage are the axes of the term, ordered as by `cache_factor`.

        Args:
            tensor: Result of a reduction without `where=` and `init=`.
            scope: Memory of the new stage.
            readers: Other stages with the same term as a subexpression, over axes of the same
                extents.

        Returns:
            The terms.

        Raises:
            ScheduleError: If the stage is not such a reduction, its terms are plain tensor elements
                or depend on no axis, or a reader does not contain the term.

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
        from tecomp.scheduling.cache_subexpressions import cache_terms

        reader_list = readers if isinstance(readers, list | tuple) else [readers]
        keys = [self.state.stage(operation_of(r, "s.cache_terms")).key for r in reader_list]
        result: Tensor = self._apply(
            cache_terms, "cache_terms", None, (tensor_of(tensor, "s.cache_terms"), scope, keys)
        )
        return result

    @primitive
    def cache_repeated(self, tensor: Tensor, axis: IterVar, scope: str) -> Tensor:
        """Hoist the largest subexpression that is invariant along an axis into its own stage.

        Before and after::

            B[i, j] = A[i, j] / sqrt(C[i] + 1)    ->    B_repeated[i] = sqrt(C[i] + 1)
                                                        B[i, j] = A[i, j] / B_repeated[i]

        Args:
            tensor: Result of a stage without a reduction.
            axis: Axis of the stage. The subexpression depends on all other axes and not on this
                one, and is evaluated unconditionally.
            scope: Memory of the new stage.

        Returns:
            The hoisted subexpression, as a tensor over all other axes.

        Raises:
            ScheduleError: If the stage is a reduction or has several outputs, does not have this
                axis, or contains no such subexpression.

        >>> from tecomp import te
        >>> A, C = te.placeholder((8, 10), name="A"), te.placeholder((8,), name="C")
        >>> B = te.compute((8, 10), lambda i, j: A[i, j] / te.sqrt(C[i] + 1.0), name="B")
        >>> s = te.create_schedule(B)
        >>> print(s.cache_repeated(B, B.op.axis[1], "global").op)
        B_repeated[i] = sqrt(C[i] + float32(1.0))
        >>> print(s[B].op)
        B[i, j] = A[i, j] / B_repeated[i]
        """
        from tecomp.scheduling.cache_subexpressions import cache_repeated

        arguments = (tensor_of(tensor, "s.cache_repeated"), axis, scope)
        result: Tensor = self._apply(cache_repeated, "cache_repeated", None, arguments)
        return result

    @primitive
    def merge_reduction(self, tensor: Tensor) -> None:
        """Merge a reduction of a reduction into one reduction over the axes of both.

        Before and after::

            B[i, j] = sum(A[i, j, k])
            C[i] = sum(B[i, j])          ->    C[i] = sum(A[i, j, k])

        The reduction loops of B become the innermost loops of C. The stage of B is removed if no
        other stage reads it and it is not an output. Floating-point values are combined in a
        different order.

        Args:
            tensor: Result of the outer reduction, C in the example.

        Raises:
            ScheduleError: If the stages are not both reductions with the same reducer (sum,
                product, minimum or maximum), use `where=` or `init=`, their loops were changed, or
                another stage is computed at one of their loops.

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
        from tecomp.scheduling.rewrite_reductions import merge_reduction

        self._apply(merge_reduction, "merge_reduction", None,
                    (tensor_of(tensor, "s.merge_reduction"),))

    @primitive
    def merge_formula(self, tensor: Tensor) -> None:
        """Substitute the definition of a stage into its readers, and remove the stage.

        Before and after::

            B[i, j] = A[j, i] * 2
            C[i] = sum(B[i, j])          ->    C[i] = sum(A[j, i] * 2)

        Unlike `compute_inline`, the call rewrites the definitions of the readers: their accesses
        and factors refer to the inputs of the removed stage, and primitives that depend on accesses
        or factors apply to them.

        Args:
            tensor: Result of the stage to substitute, B in the example.

        Raises:
            ScheduleError: If the stage is an output, is a reduction, has several outputs, has a
                reader that is neither a `te.compute` formula nor a reduction, its loops were
                changed, or another stage is computed at one of its loops.

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
        from tecomp.scheduling.rewrite_reductions import merge_formula

        self._apply(merge_formula, "merge_formula", None, (tensor_of(tensor, "s.merge_formula"),))

    @primitive
    def narrow_reduction(self, tensor: Tensor, dtype: str) -> Tensor:
        """Reduce integers in a narrower dtype that holds every result, and widen the result.

        Before and after::

            C[i] = min(if_then_else(A[i, k] > 0, int64(k), 9))
            ->    C_narrow[i] = min(if_then_else(A[i, k] > 0, int32(k), 9))
                  C[i] = int64(C_narrow[i])

        Args:
            tensor: Sum, minimum or maximum of integers, without `where=` and `init=`.
            dtype: Narrower integer dtype.

        Returns:
            The reduction in the narrower dtype.

        Raises:
            ScheduleError: If the stage is not such a reduction, its loops were changed, or its
                results are not proved to fit the dtype.

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
        from tecomp.scheduling.rewrite_reductions import narrow_reduction

        where = "s.narrow_reduction"
        result: Tensor = self._apply(
            narrow_reduction, "narrow_reduction", None, (tensor_of(tensor, where), dtype))
        return result

    @primitive
    def into_dots(
        self, tensor: Tensor, axis: IterVar, first: str, second: str
    ) -> tuple[Tensor, ...]:
        """Group adjacent terms of a sum of products into `te.dot` of 32-bit vectors.

        Before and after::

            C[i, j] += A[i, k] * B[k, j]    ->    A_dots[i, k] = A[i, 2 * k], A[i, 2 * k + 1]
                                                  B_dots[k, j] = B[2 * k, j], B[2 * k + 1, j]
                                                  C_dots[i, j] += dot(A_dots[i, k], B_dots[k, j])
                                                  C[i, j] = C_dots[i, j]

        Vectors are stored as int32 words, and the last word is padded with zeros. An int8 factor
        stored as uint8x4 is biased by +128, and a uint8 factor stored as int8x4 by -128. C then
        subtracts a correction, a sum for each index of the other factor. Integer results stay
        exact; floating-point terms are added in a different order.

        Args:
            tensor: `te.sum` of products of two elements, cast to the dtype of the sum by casts that
                preserve every value. Loads from inlined stages are resolved to the tensors that
                these stages read.
            axis: Reduction axis along which terms are grouped; it must be an index of both factors.
            first: Vector dtype of the left factor, as accepted by `te.dot`.
            second: Vector dtype of the right factor.

        Returns:
            The sum of dot products, the left and right tensor of words, and the correction if there
            is one.

        Raises:
            ScheduleError: If the stage is not such a sum, `axis` was split or fused, or a dtype
                cannot hold its factor.

        >>> from tecomp import te
        >>> A, B = te.placeholder((8, 64), "uint8", "A"), te.placeholder((64, 16), "int8", "B")
        >>> k = te.reduce_axis((0, 64), name="k")
        >>> product = lambda i, j: te.sum(A[i, k].astype("int32") * B[k, j].astype("int32"), axis=k)
        >>> C = te.compute((8, 16), product, name="C")
        >>> s = te.create_schedule(C)
        >>> [made.shape for made in s.into_dots(C, k, "uint8x4", "int8x4")]
        [(8, 16), (8, 16), (16, 16)]
        """
        from tecomp.scheduling.tensorize import into_dots

        arguments = (tensor_of(tensor, "s.into_dots"), axis, first, second)
        result: tuple[Tensor, ...] = self._apply(into_dots, "into_dots", None, arguments)
        return result
