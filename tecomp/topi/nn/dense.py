"""Matrix products of neural networks, with bias and result dtype."""

from __future__ import annotations

from collections.abc import Sequence

from tecomp import DefinitionError, te
from tecomp.ir.nodes.argument_checks import shape_text
from tecomp.topi.contraction import define_matmul
from tecomp.topi.extents import Size, equal
from tecomp.topi.validation import check_rank, tensor_of


def matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = False,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> te.Tensor:
    """Compute `tensor_a @ tensor_b + bias`.

    Args:
        tensor_a: Matrices, shape (..., m, k), or (..., k, m) if transposed.
        tensor_b: Matrices, shape (..., k, n), or (..., n, k) if transposed; leading axes are
            broadcast.
        bias: Bias, shape (n,). Default: no bias.
        out_dtype: Result and accumulation dtype. Default: the dtype of `tensor_a`. float16 and
            bfloat16 accumulate in float32.
        transpose_a: If True, transpose the last two axes of `tensor_a`.
        transpose_b: If True, transpose the last two axes of `tensor_b`.
        auto_scheduler_rewritten_layout: Ignored.
        meta_schedule_original_shape: Ignored.

    Raises:
        DefinitionError: If the shapes do not match.

    >>> A, B = te.placeholder((4, 8), name="A"), te.placeholder((8, 6), name="B")
    >>> matmul(A, B, te.placeholder((6,), name="b")).shape
    (4, 6)
    """
    return _product(
        tensor_a, tensor_b, bias, out_dtype, transpose_a, transpose_b, "topi.nn.matmul",
        "T_matmul_NN")


def dense(
    data: te.Tensor,
    weight: te.Tensor,
    bias: te.Tensor | None = None,
    out_dtype: str | None = None,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> te.Tensor:
    """Compute `data @ weight.T + bias`.

    Args:
        data: Input tensor, shape (..., k).
        weight: Weights, shape (n, k).
        bias: Bias, shape (n,). Default: no bias.
        out_dtype: Result and accumulation dtype. Default: the dtype of `data`. float16 and bfloat16
            accumulate in float32.
        auto_scheduler_rewritten_layout: Ignored.
        meta_schedule_original_shape: Ignored.

    Raises:
        DefinitionError: If the shapes do not match.

    >>> dense(te.placeholder((4, 8), name="A"), te.placeholder((6, 8), name="W")).shape
    (4, 6)
    """
    return _product(
        data, weight, bias, out_dtype, False, True, "topi.nn.dense", "T_matmul_NT")


def batch_matmul(
    tensor_a: te.Tensor,
    tensor_b: te.Tensor,
    oshape: Sequence[Size] | None = None,
    out_dtype: str | None = None,
    transpose_a: bool = False,
    transpose_b: bool = True,
    auto_scheduler_rewritten_layout: str = "",
    meta_schedule_original_shape: object = None,
) -> te.Tensor:
    """Compute the matrix products of two batches.

    Args:
        tensor_a: Matrices, shape (b, m, k), or (b, k, m) if transposed; b may be 1 in one of the
            tensors.
        tensor_b: Matrices, shape (b, k, n), or (b, n, k) if transposed, which is the default.
        oshape: Ignored; the result shape follows from the operands.
        out_dtype: Result and accumulation dtype. Default: the dtype of `tensor_a`. float16 and
            bfloat16 accumulate in float32.
        transpose_a: If True, transpose the last two axes of `tensor_a`.
        transpose_b: If True, transpose the last two axes of `tensor_b`.
        auto_scheduler_rewritten_layout: Ignored.
        meta_schedule_original_shape: Ignored.

    Raises:
        DefinitionError: If the shapes do not match.

    >>> A, B = te.placeholder((2, 4, 8), name="A"), te.placeholder((2, 6, 8), name="B")
    >>> batch_matmul(A, B).shape
    (2, 4, 6)
    """
    where = "topi.nn.batch_matmul"
    check_rank(tensor_of(tensor_a, where, "tensor_a"), 3, where, "tensor_a", "a batch of matrices")
    check_rank(tensor_of(tensor_b, where, "tensor_b"), 3, where, "tensor_b", "a batch of matrices")
    return _product(
        tensor_a, tensor_b, None, out_dtype, transpose_a, transpose_b, where, "T_batch_matmul")


def _product(
    a: te.Tensor, b: te.Tensor, bias: te.Tensor | None, dtype: str | None, transpose_a: bool,
    transpose_b: bool, where: str, name: str,
) -> te.Tensor:
    if bias is not None:
        check_rank(tensor_of(bias, where, "bias"), 1, where, "bias", "one number for each column")
        shape = tensor_of(b, where, "weight").shape
        columns = shape[-2 if transpose_b else -1] if len(shape) > 1 else 0
        if not equal(bias.shape[0], columns):
            raise DefinitionError(
                "{where}: bias has shape {shape}, but the result has {columns} columns; pass one "
                "number per column",
                kind="shapes", where=where, shape=shape_text(bias.shape), columns=columns,
            )
    return define_matmul(a, b, transpose_a, transpose_b, dtype, where, name, bias)
